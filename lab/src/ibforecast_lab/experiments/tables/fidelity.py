"""Fidelity of every explainer on every forecaster, beside the published numbers. Paper: Table "fidelity"."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from ibforecast.evaluate.fidelity import Aggregate, Measure
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import (
    NATIVE,
    NONE,
    NOT_RUN,
    PAPER,
    Group,
    Measurement,
    as_printed,
    groups,
    in_print,
    in_words,
    mean_of,
    spread_of,
)
from ibforecast_lab.explainers.timing import VARIANTS

STUDY = "explanations"
OF_THE_PAPER = ("steady", "exact", "paper-sparse")
"""Our recipes that stand where the paper's own model stands: its numbers are put beside theirs."""

SELF_EXPLAINED = (PAPER, "dlinear", "patchdecomp", "tft")
"""Names in print that mean a forecaster's native explanation of its own forecast."""

TIMINGS = tuple(f"timing_{name}" for name in VARIANTS)
HEADER = [
    *("data", "horizon", "model", "explainer", "read", "seeds", "comp", "comp clipped", "suff", "score"),
    *("frozen comp", "frozen suff", "published read", "published comp", "published suff", "published score"),
]
TITLE = "Fidelity of explanations, mean over seeds"
NOTE = (
    "comp: comprehensiveness, higher is better. suff: sufficiency, lower is better. score: min(comp, 1) less "
    "suff. comp clipped counts no window above 1. frozen holds each window's first mask, where the native map has "
    "1 and 0 by construction, as it has wherever the mask never changes. Published timing is the best of three "
    "settings and stands beside the best of ours. Bold: the best map of that model."
)


@dataclass(frozen=True)
class Line:
    """An explainer on a recipe and data set, mean over seeds; None is undefined, or does not exist."""

    data: str
    horizon: int
    model: str
    budget: float | None
    seeds: int
    explainer: str
    comprehensiveness: float | None
    sufficiency: float | None
    score: float | None
    score_std: float | None
    clipped_comprehensiveness: float | None
    score_by_window: float | None
    frozen_comprehensiveness: float | None
    frozen_sufficiency: float | None
    open_rate: float | None
    source: Literal["ledger", "published"]

    @property
    def by_construction(self) -> bool:
        """Whether this is a mask that did not react to anything: its perfect score says nothing."""
        return self.explainer == NATIVE and (self.comprehensiveness, self.sufficiency) == (1.0, 0.0)


def sheet(records: list[Record]) -> Sheet:
    """Every model of the plan and whatever else was measured; what was not run says so."""
    measured, plan = groups(records, STUDY), PLANS["fidelity"]
    ours = {(group.data, group.horizon, group.model, group.budget): lines_of(group) for group in measured}
    places = [(data, horizon) for horizon in plan.horizons for data in plan.data]
    body: list[list[str]] = []
    for data, horizon in dict.fromkeys((*places, *((group.data, group.horizon) for group in measured))):
        here = [lines for place, lines in ours.items() if place[:2] == (data, horizon)]
        others = (lines[0].model for lines in here)
        for model in dict.fromkeys((*(plan.models if (data, horizon) in places else ()), *others)):
            runs = [lines for lines in here if lines[0].model == model]
            body += [line for lines in runs for line in _shown(lines)] or list(_not_run(data, horizon, model))
    rows = [*(line for lines in ours.values() for line in lines), *published_lines()]
    return Sheet(TITLE, [asdict(row) for row in rows], HEADER, body, NOTE)


def lines_of(group: Group) -> list[Line]:
    """Every explainer of a group, at the default measure."""
    return [_line(group, name, rows) for name, rows in group.by_explainer("fidelity").items()]


def published_lines() -> list[Line]:
    """What the paper prints, in the same shape."""
    found = []
    for (data, horizon, name), printed in in_print("fidelity").items():
        numbers = {metric: number.value for metric, number in printed.items()}
        native = name in SELF_EXPLAINED
        read = in_print("fidelity_read").get((data, horizon, name), {}).get("open_rate")
        found.append(
            Line(
                data=data,
                horizon=horizon or 0,
                model=name if native else PAPER,
                budget=None,
                seeds=0,
                explainer=NATIVE if native else name,
                comprehensiveness=numbers.get("comprehensiveness"),
                sufficiency=numbers.get("sufficiency"),
                score=numbers.get("score"),
                score_std=None,
                clipped_comprehensiveness=None,
                score_by_window=None,
                frozen_comprehensiveness=None,
                frozen_sufficiency=None,
                open_rate=None if read is None else read.value,
                source="published",
            )
        )
    return found


def measured_by(
    rows: list[Measurement], measure: Measure | None = None, aggregate: Aggregate = "ratio_of_means"
) -> list[Measurement]:
    """The rows of one way to measure, by default of the default one."""
    wanted = asdict(measure or Measure()) | {"aggregate": aggregate}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def score(row: Measurement, comprehensiveness: str = "comprehensiveness") -> float | None:
    """Comprehensiveness, counted as 1 at most, less sufficiency; None where either is undefined."""
    comp, suff = row[comprehensiveness], row["sufficiency"]
    return None if comp is None or suff is None else float(min(comp, 1.0) - suff)


def _line(group: Group, explainer: str, rows: list[Measurement]) -> Line:
    regated, frozen = measured_by(rows), measured_by(rows, Measure(gating="frozen"))
    scores = [score(row) for row in regated]

    def averaged(rows: list[Measurement], name: str) -> float | None:
        return mean_of([row[name] for row in rows])

    return Line(
        data=group.data,
        horizon=group.horizon,
        model=group.model,
        budget=group.budget,
        seeds=group.seeds,
        explainer=explainer,
        comprehensiveness=averaged(regated, "comprehensiveness"),
        sufficiency=averaged(regated, "sufficiency"),
        score=mean_of(scores),
        score_std=spread_of(scores),
        clipped_comprehensiveness=averaged(regated, "clipped_comprehensiveness"),
        score_by_window=mean_of([score(row, "clipped_comprehensiveness") for row in regated]),
        frozen_comprehensiveness=averaged(frozen, "comprehensiveness"),
        frozen_sufficiency=averaged(frozen, "sufficiency"),
        open_rate=group.open_rate,
        source="ledger",
    )


def _shown(lines: list[Line]) -> Iterator[list[str]]:
    known = [line for line in lines if line.score is not None]
    best = _best(known) if len(known) > 1 else None
    best_timing = _best([line for line in known if line.explainer in TIMINGS])
    for line in lines:
        told = in_words(line.score, line.score_std)
        if line.by_construction:
            told = f"{told} (by construction)"
        elif line is best:
            told = f"**{told}**"
        held = (line.frozen_comprehensiveness, line.frozen_sufficiency)
        yield [
            *(line.data, str(line.horizon), line.model, line.explainer),
            *(NONE if line.open_rate is None else f"{line.open_rate:.1%}", str(line.seeds)),
            *map(in_words, (line.comprehensiveness, line.clipped_comprehensiveness, line.sufficiency)),
            told,
            *(NONE if value is None else in_words(value) for value in held),
            *_beside(line.data, line.horizon, _names_in_print(line, line is best_timing)),
        ]


def _not_run(data: str, horizon: int, model: str) -> Iterator[list[str]]:
    """Lines for a model that was not run: the explainers the paper prints for it, or its own."""
    told = [name for place, _, name in in_print("fidelity") if place == data and name not in SELF_EXPLAINED]
    names = {model: NATIVE} if model in SELF_EXPLAINED else {PAPER: NATIVE} | {name: name for name in told}
    for name, explainer in names.items() if model in (*OF_THE_PAPER, *SELF_EXPLAINED) else [("", NATIVE)]:
        ours = [NONE, NONE, NONE, NONE, NONE, NOT_RUN, NONE, NONE]
        yield [data, str(horizon), model, explainer, *ours, *_beside(data, horizon, [name])]


def _names_in_print(line: Line, is_best_timing: bool) -> list[str]:
    """What goes beside a line: its explainer under the names it has in print."""
    if line.explainer == NATIVE:
        return [PAPER if line.model in OF_THE_PAPER else line.model]
    return [*(["timing"] if is_best_timing else []), line.explainer] if line.model in OF_THE_PAPER else []


def _beside(data: str, horizon: int, names: list[str]) -> list[str]:
    printed = [numbers for name in names if (numbers := in_print("fidelity").get((data, horizon, name)))]
    read = in_print("fidelity_read").get((data, horizon, PAPER), {}).get("open_rate") if PAPER in names else None
    cells = [f"{read.value:.1%}" if read else NONE]
    for metric in ("comprehensiveness", "sufficiency", "score"):
        told = [as_printed(numbers[metric]) for numbers in printed if metric in numbers]
        cells.append(" / ".join(told) or NONE)
    return cells


def _best(lines: list[Line]) -> Line | None:
    return max(lines, key=lambda line: line.score or 0.0, default=None)
