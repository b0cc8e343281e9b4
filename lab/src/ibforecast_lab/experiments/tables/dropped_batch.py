"""Errors without the last, incomplete test batch, compared with those over all test windows."""

from ibforecast_lab.experiments.frame import Row, grouped, mean, mean_of, most, over, seeds, select, summarised
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Column, Table, change, number, placed, places
from ibforecast_lab.measures.dropped import BATCHES, MEASURE

KEYS = ("data", "horizon", "model")
METRICS = ("mse", "mae")
OVERALL = "Overall"


def _rows(tidy: list[Row]) -> list[Row]:
    """Return a row for each data set, horizon and model with such errors: of all windows, and of complete batches."""
    measured = [row for row in select(tidy, measure=MEASURE, own_budget=True) if not row["variant"]]
    study = {_run(row): row["study"] for row in measured}  # of a run with several records, one is enough

    def of_these(rows: list[Row]) -> list[Row]:
        return [row for row in rows if study.get(_run(row)) == row["study"]]

    whole = summarised(
        of_these(select(tidy, measure="errors", own_budget=True)),
        KEYS,
        {"seeds": seeds, "mse": mean("mse"), "mae": mean("mae")},
    )
    kept = summarised(
        of_these(measured), (*KEYS, "batch"), {"windows": most("windows"), "mse": mean("mse"), "mae": mean("mae")}
    )
    rows = [row | _without(row, kept) for row in whole]
    return rows + _overall(rows)


def _overall(rows: list[Row]) -> list[Row]:
    """Return the mean errors of each model with all cells of the plan, and their change where every cell has one."""
    plan = PLANS["dropped_batch"]
    places = {(data, horizon) for data in plan.data for horizon in plan.horizons}
    means = []
    for (model,), group in grouped(rows, ("model",)).items():
        if {(row["data"], row["horizon"]) for row in group} >= places:
            here = [row for row in group if (row["data"], row["horizon"]) in places]
            row = dict.fromkeys(here[0]) | {"data": OVERALL, "model": model, "source": "ledger"}
            row["seeds"] = min(one["seeds"] for one in here)
            for metric in METRICS:
                row[metric] = mean_of([one[metric] for one in here])
                for batch in BATCHES:
                    row[f"{metric}_{batch}"] = mean_of([one[f"{metric}_{batch}"] for one in here])
                    row[f"{metric}_{batch}_change"] = over(row[f"{metric}_{batch}"], row[metric])
            means.append(row)
    return means


def _run(row: Row) -> tuple[object, ...]:
    return tuple(row[key] for key in (*KEYS, "seed"))


def _without(row: Row, kept: list[Row]) -> Row:
    fields: Row = {}
    for batch in BATCHES:
        here = next(iter(select(kept, batch=batch, **{key: row[key] for key in KEYS})), {})
        fields |= {f"{field}_{batch}": here.get(field) for field in ("windows", "mse", "mae")}
        fields |= {f"{metric}_{batch}_change": over(here.get(metric), row[metric]) for metric in METRICS}
    return fields


dropped_batch = Table(
    title="Errors without the last, incomplete test batch (standardised; look-back 96)",
    keys=KEYS,
    columns=(
        Column("data", "data"),
        Column("horizon", "horizon", lambda horizon: "mean" if horizon is None else str(horizon)),
        Column("model", "model"),
        Column("MSE, all windows", "mse", number),
        *(Column(f"batches of {batch:,}", f"mse_{batch}_change", change) for batch in BATCHES),
        Column("MAE, all windows", "mae", number),
        *(Column(f"MAE, batches of {batch:,}", f"mae_{batch}_change", change) for batch in BATCHES),
    ),
    rows=_rows,
    lines=lambda rows: placed(rows, places(PLANS["dropped_batch"])),
    note=(
        "A column of batches is the change of the error if the test windows that do not fill a batch of that size are "
        "left out: the latest ones. The model, its weights and its forecasts are the same in all columns of a line. A "
        "dash: fewer test windows than one batch."
    ),
    missing=("mse", "mae", *(f"{metric}_{batch}_change" for metric in METRICS for batch in BATCHES)),
)
