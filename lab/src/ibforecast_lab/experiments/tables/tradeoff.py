"""Errors against what is read, budget by budget, and what one model for all budgets costs. Paper: Figure "pareto"."""

from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from statistics import mean
from typing import Literal

from ibforecast_lab.experiments.ledger import Record, Scores
from ibforecast_lab.experiments.plans import OTHER_BUDGETS, PLANS, WHOLE_PATCHES
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.studies import budgets
from ibforecast_lab.experiments.tables.measured import NONE, NOT_RUN, PAPER, in_print, in_words, spread_of

LABEL = "tradeoff"
OURS, TURNED, DENSE = "steady", "any-budget", "dense"
"""One model per budget, one model for all of them, and what both are held against."""

OWN, OWN_WHOLE_PATCHES = 0.2, 0.25
"""The budget of the recipes themselves, and of the one that reads whole patches."""

BUDGETS: dict[str, tuple[float, ...]] = {
    OURS: tuple(sorted((OWN, *OTHER_BUDGETS))),
    TURNED: budgets.BUDGETS,
    "static-fixed": tuple(sorted((OWN, *OTHER_BUDGETS))),
    "static-newest": tuple(sorted((OWN_WHOLE_PATCHES, *WHOLE_PATCHES))),
    DENSE: (1.0,),
}
"""The models in the order they are shown, each with the budgets it is measured at."""

HEADER = [
    *("data", "horizon", "model", "budget", "read", "most read", "seeds", "MSE", "MAE", "MSE over dense"),
    *("MAE over dense", "MSE over the model for this budget", "published MSE over dense", "published MAE over dense"),
]
TITLE = "Errors against the share of the window that is read (standardised; look-back 96)"
NOTE = (
    "read: the mean share of the test windows; most read: the largest of any window and seed. any-budget is trained "
    "once per seed and measured at every budget; the model for a budget is steady trained for it alone, at 100 % "
    "dense. static-newest reads whole patches, so that 12.5 % is what a budget of 20 % leaves it and 25 % what 35 "
    "% does. The published shares are the largest of the three horizons, at the paper's own budgets."
)
Place = tuple[str, int, str, float]


@dataclass(frozen=True)
class Line:
    """One model on one data set, horizon and budget, over its seeds; shares over other models are of mean errors."""

    data: str
    horizon: int | None
    model: str
    budget: float | None
    seeds: int
    mse: float | None
    mse_std: float | None
    mae: float | None
    mae_std: float | None
    open_rate: float | None
    largest_open_rate: float | None
    mse_over_dense: float | None
    mae_over_dense: float | None
    mse_over_own: float | None
    mae_over_own: float | None
    source: Literal["ledger", "published"]


def sheet(records: list[Record]) -> Sheet:
    """Every data set, horizon, model and budget of the plan; what was not run says so."""
    found, plan = lines_of(records), PLANS[LABEL]
    places = [
        (data, horizon, model, budget)
        for data in plan.data
        for horizon in plan.horizons
        for model, planned in BUDGETS.items()
        for budget in sorted({*planned, *(place[3] for place in found if place[:3] == (data, horizon, model))})
    ]
    body = [_shown(place, found.get(place)) for place in places]
    return Sheet(TITLE, [asdict(line) for line in (*found.values(), *_published_lines())], HEADER, body, NOTE)


def lines_of(records: list[Record]) -> dict[Place, Line]:
    """What was run of the plan's models, data sets and horizons, at whichever budgets."""
    measured = _scores(records)
    errors = {
        place: (mean(score.mse for score in by_seed.values()), mean(score.mae for score in by_seed.values()))
        for place, by_seed in measured.items()
    }
    return {place: _line(place, list(by_seed.values()), errors) for place, by_seed in measured.items()}


def _scores(records: list[Record]) -> dict[Place, dict[int, Scores]]:
    """What each model gave on the test windows, by seed; the same run under two studies counts once."""
    found: dict[Place, dict[int, Scores]] = defaultdict(dict)
    plan = PLANS[LABEL]
    for record in records:
        cell = record.cell
        if cell.data in plan.data and cell.horizon in plan.horizons:
            for budget, scores in _by_budget(record):
                found[cell.data, cell.horizon, cell.recipe, budget][cell.seed] = scores
    order = list(BUDGETS)
    return dict(sorted(found.items(), key=lambda item: (*item[0][:2], order.index(item[0][2]), item[0][3])))


def _by_budget(record: Record) -> list[tuple[float, Scores]]:
    """What a record tells of a model of this table: its one budget, or every budget it was turned to."""
    cell = record.cell
    if cell.recipe == TURNED and cell.study == "budgets":
        return [
            (row["budget"], Scores(**{field.name: row[field.name] for field in fields(Scores)}))
            for row in record.measurements
            if row["part"] == "test"
        ]
    alone = cell.recipe in BUDGETS and cell.recipe != TURNED
    return [(record.recipe["config"]["budget"], record.test)] if alone else []


def _line(place: Place, scores: list[Scores], errors: dict[Place, tuple[float, float]]) -> Line:
    data, horizon, model, budget = place
    mse, mae = errors[place]
    dense = errors.get((data, horizon, DENSE, 1.0))
    own = dense if budget == 1 else errors.get((data, horizon, OURS, budget))
    over_dense = _over((mse, mae), None if model == DENSE else dense)
    over_own = _over((mse, mae), own if model == TURNED else None)
    return Line(
        data=data,
        horizon=horizon,
        model=model,
        budget=budget,
        seeds=len(scores),
        mse=mse,
        mse_std=spread_of([score.mse for score in scores]),
        mae=mae,
        mae_std=spread_of([score.mae for score in scores]),
        open_rate=mean(score.open_rate for score in scores),
        largest_open_rate=max(score.largest_open_rate for score in scores),
        mse_over_dense=over_dense[0],
        mae_over_dense=over_dense[1],
        mse_over_own=over_own[0],
        mae_over_own=over_own[1],
        source="ledger",
    )


def _over(errors: tuple[float, float], others: tuple[float, float] | None) -> tuple[float | None, float | None]:
    return (None, None) if others is None else (errors[0] / others[0] - 1, errors[1] / others[1] - 1)


def _published_lines() -> list[Line]:
    found = []
    for data, told in _in_print().items():
        found.append(
            Line(
                data=data,
                horizon=None,
                model=PAPER,
                budget=None,
                seeds=0,
                mse=None,
                mse_std=None,
                mae=None,
                mae_std=None,
                open_rate=None,
                largest_open_rate=None,
                **told,
                mse_over_own=None,
                mae_over_own=None,
                source="published",
            )
        )
    return found


def _in_print() -> dict[str, dict[str, float]]:
    """The published shares over dense: by data set, then by metric."""
    return {data: {metric: told.value for metric, told in by.items()} for (data, _, _), by in in_print(LABEL).items()}


def _shown(place: Place, line: Line | None) -> list[str]:
    data, horizon, model, budget = place
    own = [NONE, NONE, NONE, NOT_RUN, *[NONE] * 4]
    if line is not None:
        shares = (line.mse_over_dense, line.mae_over_dense, line.mse_over_own)
        own = [
            *(NONE if rate is None else f"{rate:.1%}" for rate in (line.open_rate, line.largest_open_rate)),
            *(str(line.seeds), in_words(line.mse, line.mse_std), in_words(line.mae, line.mae_std)),
            *(NONE if share is None else f"{share:+z.1%}" for share in shares),
        ]
    beside = [NONE, NONE]
    if (model, budget) == (OURS, OWN):
        beside = [f"{_in_print()[data][metric]:+.1%}" for metric in ("mse_over_dense", "mae_over_dense")]
    return [data, str(horizon), model, f"{budget:.1%}".replace(".0%", "%"), *own, *beside]
