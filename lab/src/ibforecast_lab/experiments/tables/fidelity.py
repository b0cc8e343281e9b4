"""Fidelity of every explainer on every forecaster, and at every budget. Paper: Table "fidelity"."""

from collections.abc import Iterator

from ibforecast_lab.experiments.frame import (
    DEFAULT_WAY,
    LEVEL,
    Row,
    lead,
    least,
    mean,
    of_study,
    seeds,
    select,
    spread,
    summarised,
)
from ibforecast_lab.experiments.plans import OF_THE_PAPER, PLANS
from ibforecast_lab.experiments.published import explained, explainers, in_print
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.sheet import NATIVE, PAPER, Column, Table, marked, measured, number, placed, share
from ibforecast_lab.explainers.timing import VARIANTS

STUDY = "explanations"
TIMINGS = tuple(f"timing_{name}" for name in VARIANTS)
FROZEN = DEFAULT_WAY | {"gating": "frozen"}
NUMBERS = {
    "comprehensiveness": mean("comprehensiveness", **DEFAULT_WAY),
    "sufficiency": mean("sufficiency", **DEFAULT_WAY),
    "score": mean("score", **DEFAULT_WAY),
    "score_std": spread("score", **DEFAULT_WAY),
}
FIELDS = {
    "seeds": seeds,
    **NUMBERS,
    "clipped_comprehensiveness": mean("clipped_comprehensiveness", **DEFAULT_WAY),
    "score_by_window": mean("score_by_window", **DEFAULT_WAY),
    "score_by_window_std": spread("score_by_window", **DEFAULT_WAY),
    "frozen_comprehensiveness": mean("comprehensiveness", **FROZEN),
    "frozen_sufficiency": mean("sufficiency", **FROZEN),
    "open_rate": mean("open_rate"),
}
KEYS = ("data", "horizon", "model", "budget", "explainer")
COMPARED = {"native_is": "score", "native_is_by_window": "score_by_window"}
METRICS = {"comprehensiveness": "comp", "sufficiency": "suff", "score": "score"}


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return a row for each explainer, recipe and data set, the native explainer first."""
    rows = summarised(select(of_study(tidy, STUDY), measure="fidelity"), KEYS, FIELDS)
    return sorted(rows, key=lambda row: (*(str(row[key]) for key in KEYS[:-1]), row["explainer"] != NATIVE))


def by_construction(row: Row) -> bool:
    """Return whether the mask never changed, so that its perfect score says nothing."""
    return row["explainer"] == NATIVE and (row["comprehensiveness"], row["sufficiency"]) == (1.0, 0.0)


def published() -> list[Row]:
    """Return the paper's numbers as rows with the same fields."""
    rows = []
    for (data, horizon, name), numbers in in_print("fidelity").items():
        row: Row = dict.fromkeys((*KEYS, *FIELDS)) | {"data": data, "horizon": horizon, "seeds": 0} | explained(name)
        row |= {metric: number.value for metric, number in numbers.items()}
        read = in_print("fidelity_read").get((data, horizon, name), {})
        rows.append(row | {metric: number.value for metric, number in read.items()} | {"source": "published"})
    return rows


def compared(rows: list[Row]) -> list[Row]:
    """Add to the row of every other explainer how the native one compares with it."""
    native = {
        tuple(row[key] for key in KEYS[:-1]): row
        for row in rows
        if (row["source"], row["explainer"]) == ("ledger", NATIVE) and not by_construction(row)
    }
    return [
        row
        | {
            field: None
            if row["explainer"] == NATIVE or row["source"] != "ledger"
            else lead(native.get(tuple(row[key] for key in KEYS[:-1])), row, score, larger_is_better=True)
            for field, score in COMPARED.items()
        }
        for row in rows
    ]


def _lines(rows: list[Row]) -> Iterator[Row]:
    plan, ours = PLANS["fidelity"], select(rows, source="ledger")
    planned = [(data, horizon) for horizon in plan.horizons for data in plan.data]
    for data, horizon in dict.fromkeys((*planned, *((row["data"], row["horizon"]) for row in ours))):
        here = select(ours, data=data, horizon=horizon)
        models = plan.models if (data, horizon) in planned else ()
        for model in dict.fromkeys((*models, *(row["model"] for row in here))):
            yield from _marked(select(here, model=model)) or _not_run(data, horizon, model)


def _marked(rows: list[Row]) -> list[Row]:
    """Mark the best map of a model, a perfect score that says nothing, and the best TIMING."""
    known = [row for row in rows if row["score"] is not None]
    best = max(known, key=lambda row: row["score"]) if len(known) > 1 else None
    timings = [row for row in known if row["explainer"] in TIMINGS]
    best_timing = max(timings, key=lambda row: row["score"], default=None)
    lines = []
    for row in rows:
        mark = "{} (by construction)" if by_construction(row) else "**{}**" if row is best else "{}"
        lines.append(marked(row, score=mark) | {"best_timing": row is best_timing})
    return lines


def _not_run(data: str, horizon: int, model: str) -> list[Row]:
    """Return the lines of a model that was not run: its own explainer, and those that the paper prints for it."""
    others = explainers("fidelity", data) if model == OF_THE_PAPER else []
    return [{"data": data, "horizon": horizon, "model": model, "explainer": name} for name in (NATIVE, *others)]


def _counterparts(line: Row, published: list[Row]) -> list[Row]:
    """Return the published rows of a line's explainer. The published TIMING belongs to the best of ours."""
    model = PAPER if line["model"] == OF_THE_PAPER else line["model"]
    explainers = [*(["timing"] if line.get("best_timing") else []), line["explainer"]]
    return [
        row
        for explainer in explainers
        for row in select(published, data=line["data"], horizon=line["horizon"], model=model, explainer=explainer)
    ]


fidelity = Table(
    title="Fidelity of explanations, mean over seeds",
    keys=("data", "horizon", "model", "explainer"),
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "model", "explainer")),
        Column("read", "open_rate", share),
        Column("seeds", "seeds"),
        Column("comp", "comprehensiveness", measured),
        Column("comp clipped", "clipped_comprehensiveness", measured),
        Column("suff", "sufficiency", measured),
        Column("score", "score", measured, "score_std"),
        Column("native is", "native_is"),
        Column("score by window", "score_by_window", measured, "score_by_window_std"),
        Column("native is, by window", "native_is_by_window"),
        Column("frozen comp", "frozen_comprehensiveness", number),
        Column("frozen suff", "frozen_sufficiency", number),
        Column("published read", "open_rate", share, published=True),
        *(Column(f"published {name}", metric, measured, published=True) for metric, name in METRICS.items()),
    ),
    rows=rows_of,
    lines=lambda rows: list(_lines(rows)),
    note=(
        "comp: comprehensiveness, higher is better. suff: sufficiency, lower is better. score: min(comp, 1) less suff. "
        "comp clipped and the score by window count no window above 1. frozen keeps the first mask of each window; the "
        "native map then has 1 and 0 by construction, as it has if the mask never changes. Published timing is the "
        "best of three settings and is next to the best of ours. Bold: the best map of that model. native is: how the "
        f"native map compares with the explainer, by the score of the column before. {LEVEL}"
    ),
    missing=("score",),
    published=published,
    compared=compared,
    counterparts=_counterparts,
)

# --- At every budget and horizon ---

LOW = 0.9
ALL = "all"
BY_BUDGET = ("data", "horizon", "model", "budget")
BY_BUDGET_FIELDS = {
    "seeds": seeds,
    "runs": len,
    "open_rate": mean("open_rate"),
    **NUMBERS,
    "lowest": least("score"),
    "below": lambda rows: sum(row["score"] < LOW for row in rows),
    "score_by_window": mean("score_by_window"),
    "lowest_by_window": least("score_by_window"),
    "below_by_window": lambda rows: sum(row["score_by_window"] < LOW for row in rows),
}


def runs_by_budget(tidy: list[Row]) -> list[Row]:
    """Return the fidelity of the native map in every run of the plan's models."""
    rows = select(of_study(tidy, "native"), measure="fidelity", explainer=NATIVE, **DEFAULT_WAY)
    return [row for row in rows if row["model"] in PLANS["fidelity_by_budget"].models and row["score"] is not None]


def _by_budget(tidy: list[Row]) -> list[Row]:
    """Return a row for each budget and horizon, and one for all runs that are not in the main table."""
    runs = runs_by_budget(tidy)
    others = [row | dict.fromkeys(("horizon", "budget")) | {"data": ALL} for row in runs if not _main(row)]
    return [*summarised(runs, BY_BUDGET, BY_BUDGET_FIELDS), *summarised(others, BY_BUDGET, BY_BUDGET_FIELDS)]


def _main(row: Row) -> bool:
    return row["own_budget"] and row["horizon"] in PLANS["fidelity"].horizons


def _by_budget_lines(rows: list[Row]) -> list[Row]:
    planned = {
        (cell.horizon, cell.data, recipe_of(cell).config.budget, cell.recipe)
        for cell in PLANS["fidelity_by_budget"].cells()
    }
    order = [
        {"data": data, "horizon": horizon, "model": model, "budget": budget}
        for horizon, data, budget, model in sorted(planned)
    ]
    return placed(rows, order)


fidelity_by_budget = Table(
    title="Fidelity of the native map at every budget and horizon",
    keys=BY_BUDGET,
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "model")),
        Column("budget", "budget", share),
        Column("read", "open_rate", share),
        Column("runs", "runs"),
        Column("comp", "comprehensiveness", measured),
        Column("suff", "sufficiency", measured),
        Column("score", "score", measured, "score_std"),
        Column("lowest score", "lowest", number),
        Column(f"runs below {LOW}", "below"),
        Column("score by window", "score_by_window", measured),
        Column("lowest score by window", "lowest_by_window", number),
        Column(f"runs below {LOW} by window", "below_by_window"),
    ),
    rows=_by_budget,
    lines=_by_budget_lines,
    note=(
        "A run is one seed. score: min(comp, 1) less suff, of means over windows, as in the table of fidelity; by "
        f"window it is stricter and counts no window's comprehensiveness above 1. The line of data set `{ALL}` "
        "summarises all runs at another budget than the recipe's own or another horizon than 96."
    ),
    missing=("score",),
)
