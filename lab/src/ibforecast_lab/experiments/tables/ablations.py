"""What each part is worth: taken out one at a time, in errors, reading and fidelity. Paper: Table "ablations"."""

from dataclasses import asdict, dataclass
from statistics import mean
from typing import Literal

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import PLANS, STATIC
from ibforecast_lab.experiments.published import PublishedNumber
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables import fidelity
from ibforecast_lab.experiments.tables.measured import (
    NONE,
    NOT_RUN,
    PAPER,
    Group,
    as_printed,
    groups,
    in_print,
    in_words,
    spread_of,
)
from ibforecast_lab.experiments.variants import JOIN, VARIANTS, parted, words_for

STUDY = "native"
OF_THE_PAPER = {"paper-sparse": PAPER, **{f"paper-sparse{JOIN}{name}": name for name in VARIANTS}}
OF_THE_PAPER |= {f"factors{JOIN}no-diversity": "no-diversity"}
"""Beside which of our models each row of the paper stands: its own, rebuilt; what has factors, beside ours that has."""

METRICS = ("mse", "mae", "open_rate", "comprehensiveness", "sufficiency", "score")
HEADER = [
    *("data", "horizon", "recipe", "change", "seeds", "MSE", "MAE", "read", "comp", "suff", "score"),
    *(f"published {metric}" for metric in ("MSE", "MAE", "read", "comp", "suff", "score")),
]
TITLE = "Ablations, mean over seeds"
NOTE = (
    "comp and suff: comprehensiveness (higher is better) and sufficiency (lower is better) of the model's own mask, "
    "gates run again. score: min(comp, 1) less suff; published: comp less suff. Where everything is read a score of 1 "
    "says nothing, and where the mask never changes it holds by construction. steady is our default, paper-sparse the "
    "paper's model for explanations, factors the one model that has a diversity term to leave out."
)


@dataclass(frozen=True)
class Line:
    """A recipe or a variant of one, mean over seeds; None is undefined."""

    data: str
    horizon: int | None
    model: str
    recipe: str
    change: str
    seeds: int
    mse: float | None
    mse_std: float | None
    mae: float | None
    open_rate: float | None
    comprehensiveness: float | None
    sufficiency: float | None
    score: float | None
    score_std: float | None
    source: Literal["ledger", "published"]


def sheet(records: list[Record]) -> Sheet:
    """Every model of the plan; what was not run says so."""
    lines, plan = lines_of(records), PLANS["ablations"]
    found = {(line.data, line.horizon, line.model): line for line in lines}
    body = [
        _shown(data, horizon, model, found.get((data, horizon, model)))
        for data in plan.data
        for horizon in plan.horizons
        for model in plan.models
    ]
    return Sheet(TITLE, [asdict(line) for line in (*lines, *_published_lines())], HEADER, body, NOTE)


def lines_of(records: list[Record]) -> list[Line]:
    """The plan's models as far as they were run, each at its own budget, in the plan's order."""
    plan = PLANS["ablations"]
    own = [record for record in records if record.cell.budget is None and record.cell.recipe in plan.models]
    found = [group for group in groups(own, STUDY) if group.data in plan.data and group.horizon in plan.horizons]
    return [_line(group) for group in sorted(found, key=lambda group: plan.models.index(group.model))]


def change_in(model: str) -> str:
    """What was done to a recipe, in words."""
    return "static mask" if model in STATIC else words_for(model) if parted(model)[1] else NONE


def _line(group: Group) -> Line:
    (told,) = fidelity.lines_of(group)
    errors = [record.test.mse for record in group.records]
    return Line(
        data=group.data,
        horizon=group.horizon,
        model=group.model,
        recipe=parted(group.model)[0],
        change=change_in(group.model),
        seeds=group.seeds,
        mse=mean(errors),
        mse_std=spread_of(errors),
        mae=mean(record.test.mae for record in group.records),
        open_rate=group.open_rate,
        comprehensiveness=told.comprehensiveness,
        sufficiency=told.sufficiency,
        score=told.score,
        score_std=told.score_std,
        source="ledger",
    )


def _published_lines() -> list[Line]:
    found = []
    for (data, horizon, name), printed in in_print("ablations").items():
        told = {metric: printed[metric].value for metric in METRICS}
        words = VARIANTS[name].words if name in VARIANTS else NONE
        found.append(
            Line(data, horizon, name, PAPER, words, 0, mse_std=None, score_std=None, source="published", **told)
        )
    return found


def _shown(data: str, horizon: int, model: str, line: Line | None) -> list[str]:
    own = [NONE, NOT_RUN, *[NONE] * 5]
    if line is not None:
        own = [
            *(str(line.seeds), in_words(line.mse, line.mse_std), in_words(line.mae)),
            NONE if line.open_rate is None else f"{line.open_rate:.1%}",
            *map(in_words, (line.comprehensiveness, line.sufficiency)),
            in_words(line.score, line.score_std) + _reservation(line),
        ]
    printed = in_print("ablations").get((data, horizon, OF_THE_PAPER.get(model, "")), {})
    return [data, str(horizon), parted(model)[0], change_in(model), *own, *_as_printed(printed)]


def _reservation(line: Line) -> str:
    """Say of a perfect score why it says nothing."""
    if (line.comprehensiveness, line.sufficiency) != (1.0, 0.0):
        return ""
    return " (nothing left out)" if line.open_rate == 1 else " (by construction)"


def _as_printed(printed: dict[str, PublishedNumber]) -> list[str]:
    cells = [as_printed(printed.get(metric)) for metric in METRICS]
    read = printed.get("open_rate")
    return [*cells[:2], NONE if read is None else f"{read.value:.1%}", *cells[3:]]
