"""Errors and the share read at every budget, and the cost of one model for all budgets. Paper: Figure "pareto"."""

from ibforecast_lab.experiments.frame import Row, errors, mean, most, over, seeds, select, spread, summarised
from ibforecast_lab.experiments.plans import FORMER, OTHER_BUDGETS, PLANS, WHOLE_PATCHES
from ibforecast_lab.experiments.published import in_print
from ibforecast_lab.experiments.sheet import PAPER, Column, Table, change, measured, placed, share
from ibforecast_lab.experiments.studies import budgets

LABEL = "tradeoff"
OURS, ANY_BUDGET, DENSE = FORMER, "any-budget", "dense"
"""One model for each budget, one model for all budgets, and the model that both are compared with."""

OWN, OWN_WHOLE_PATCHES = 0.2, 0.25
"""The recipes' own budget, and that of the recipe that reads whole patches."""

BUDGETS: dict[str, tuple[float, ...]] = {
    OURS: tuple(sorted((OWN, *OTHER_BUDGETS))),
    ANY_BUDGET: budgets.BUDGETS,
    "static-fixed": tuple(sorted((OWN, *OTHER_BUDGETS))),
    "static-newest": tuple(sorted((OWN_WHOLE_PATCHES, *WHOLE_PATCHES))),
    DENSE: (1.0,),
}
"""The models in the order of the table, and the budgets at which each is measured."""

KEYS = ("data", "horizon", "model", "budget")
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
    """Return the runs of the plan's models, data sets and horizons, at any budget, compared with other models."""
    plan = PLANS[LABEL]
    runs = [row for row in errors(tidy) if row["model"] in BUDGETS and row["model"] != ANY_BUDGET]
    runs += select(tidy, model=ANY_BUDGET, study="budgets", measure="budget", part="test")
    planned = [row for row in runs if row["data"] in plan.data and row["horizon"] in plan.horizons]
    rows = summarised(planned, KEYS, FIELDS)
    known = {tuple(row[key] for key in KEYS): row for row in rows}
    order = list(BUDGETS)
    return [
        row | _shares(row, known)
        for row in sorted(rows, key=lambda row: (row["data"], row["horizon"], order.index(row["model"]), row["budget"]))
    ]


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


def _lines(rows: list[Row]) -> list[Row]:
    plan, ours = PLANS[LABEL], select(rows, source="ledger")
    return placed(
        rows,
        [
            dict(zip(KEYS, (data, horizon, model, budget), strict=True))
            for data in plan.data
            for horizon in plan.horizons
            for model, planned in BUDGETS.items()
            for budget in sorted(
                {*planned, *(row["budget"] for row in select(ours, data=data, horizon=horizon, model=model))}
            )
        ],
    )


def _counterparts(line: Row, published: list[Row]) -> list[Row]:
    return select(published, data=line["data"]) if (line["model"], line["budget"]) == (OURS, OWN) else []


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
        Column("MSE over dense", "mse_over_dense", change),
        Column("MAE over dense", "mae_over_dense", change),
        Column("MSE over the model for this budget", "mse_over_own", change),
        Column("published MSE over dense", "mse_over_dense", change, published=True),
        Column("published MAE over dense", "mae_over_dense", change, published=True),
    ),
    rows=rows_of,
    lines=_lines,
    note=(
        "read: the mean share of the test windows; most read: the largest of any window and seed. any-budget is "
        "trained once per seed and measured at every budget; the model for a budget is steady trained for that budget "
        "only, at 100 % dense. static-newest reads whole patches: a budget of 20 % allows it 12.5 %, and one of 35 % "
        "allows it 25 %. The published shares are the largest of the three horizons, at the paper's own budgets."
    ),
    missing=("mse",),
    published=_published,
    counterparts=_counterparts,
)
