"""Errors and the share read at every budget, and the cost of one model for all budgets. Paper: Figure "pareto"."""

from dataclasses import replace

from ibforecast_lab.experiments.frame import Row, errors, mean, most, over, seeds, select, spread, summarised
from ibforecast_lab.experiments.plans import CHOOSING, OF_THE_PAPER, ONE_MASK, OPEN, PLANS
from ibforecast_lab.experiments.published import in_print
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.sheet import PAPER, Column, Table, change, measured, placed, share
from ibforecast_lab.experiments.studies import budgets

LABEL = "tradeoff"
OURS, ANY_BUDGET, DENSE = ONE_MASK, "any-budget", OPEN
"""One model for each budget, one model for all budgets, and the model with gates open that all are compared with."""

OWN = 0.2
"""The recipes' own budget."""

ORDER = (OURS, CHOOSING, OF_THE_PAPER, ANY_BUDGET, "static-newest", DENSE, "dense")
"""The models in the order of the table."""

KEYS = ("data", "horizon", "model", "budget")
Place = tuple[str, int, str, float]
FIELDS = {
    "seeds": seeds,
    "mse": mean("mse"),
    "mse_std": spread("mse"),
    "mae": mean("mae"),
    "mae_std": spread("mae"),
    "open_rate": mean("open_rate"),
    "largest_open_rate": most("largest_open_rate"),
}
SHARES = {f"{metric}_over_{whom}": (metric, whom) for whom in ("dense", "own") for metric in ("mse", "mae")}


def rows_of(tidy: list[Row]) -> list[Row]:
    """Return the runs of the plan's models on its data sets and horizons, at any budget, with comparisons."""
    runs = [row for row in errors(tidy) if row["model"] != ANY_BUDGET]
    runs += select(tidy, model=ANY_BUDGET, study="budgets", measure="budget", part="test")
    planned = {place[:3] for place in places()}
    rows = summarised([row for row in runs if tuple(row[key] for key in KEYS[:3]) in planned], KEYS, FIELDS)
    known = {tuple(row[key] for key in KEYS): row for row in rows}
    return [row | _shares(row, known) for row in sorted(rows, key=lambda row: _order(tuple(row[key] for key in KEYS)))]


def places() -> list[Place]:
    """Return the data set, horizon, model and budget of every line of the plan."""
    planned = {
        (cell.data, cell.horizon, cell.recipe, budget)
        for cell in PLANS[LABEL].cells()
        for budget in (
            budgets.BUDGETS if cell.recipe == ANY_BUDGET else (float(recipe_of(replace(cell, seed=0)).config.budget),)
        )
    }
    return sorted(planned, key=_order)


def _order(place: Place) -> tuple[str, int, int, float]:
    data, horizon, model, budget = place
    return data, horizon, ORDER.index(model), budget


def _shares(row: Row, known: dict[tuple[object, ...], Row]) -> Row:
    dense = known.get((row["data"], row["horizon"], DENSE, 1.0), {})
    own = dense if row["budget"] == 1 else known.get((row["data"], row["horizon"], OURS, row["budget"]), {})
    others = {"dense": {} if row["model"] == DENSE else dense, "own": own if row["model"] == ANY_BUDGET else {}}
    return {name: over(row[metric], others[whom].get(metric)) for name, (metric, whom) in SHARES.items()}


def _published() -> list[Row]:
    return [
        dict.fromkeys((*KEYS, *FIELDS, *SHARES))
        | {"data": data, "model": PAPER, "seeds": 0}
        | {metric: number.value for metric, number in printed.items()}
        | {"source": "published"}
        for (data, _, _), printed in in_print(LABEL).items()
    ]


def _counterparts(line: Row, published: list[Row]) -> list[Row]:
    return select(published, data=line["data"]) if (line["model"], line["budget"]) == (OF_THE_PAPER, OWN) else []


tradeoff = Table(
    title="Errors and the share of the window that is read (standardised; look-back 96)",
    keys=KEYS,
    columns=(
        *(Column(name, name) for name in ("data", "horizon", "model")),
        Column("budget", "budget", lambda budget: f"{budget:.1%}".replace(".0%", "%")),
        Column("read", "open_rate", share),
        Column("most read", "largest_open_rate", share),
        Column("seeds", "seeds"),
        Column("MSE", "mse", measured, "mse_std"),
        Column("MAE", "mae", measured, "mae_std"),
        Column("MSE over gates open", "mse_over_dense", change),
        Column("MAE over gates open", "mae_over_dense", change),
        Column("MSE over the model for this budget", "mse_over_own", change),
        Column("published MSE over dense", "mse_over_dense", change, published=True),
        Column("published MAE over dense", "mae_over_dense", change, published=True),
    ),
    rows=rows_of,
    lines=lambda rows: placed(rows, [dict(zip(KEYS, place, strict=True)) for place in places()]),
    note=(
        "read: the mean share of the test windows; most read: the largest of any window and seed. Gates open: "
        f"`{DENSE}`, which has the readout and the loss of `{OURS}`; `dense` is an earlier recipe. any-budget is "
        f"trained once per seed and measured at every budget; the model for a budget is `{OURS}` trained for that "
        "budget only, at 100 % the one with gates open. static-newest reads whole patches. The published shares are "
        "the largest of the three horizons, at the paper's own budgets, over its own model with gates open."
    ),
    missing=("mse",),
    published=_published,
    counterparts=_counterparts,
)
