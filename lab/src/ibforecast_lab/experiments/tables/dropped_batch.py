"""Errors without the last, incomplete test batch, compared with those over all test windows."""

from ibforecast_lab.experiments.frame import Row, mean, most, over, seeds, select, summarised
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Column, Table, change, number, placed, places
from ibforecast_lab.measures.dropped import BATCHES, MEASURE

KEYS = ("data", "horizon", "model")


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
    return [row | _without(row, kept) for row in whole]


def _run(row: Row) -> tuple[object, ...]:
    return tuple(row[key] for key in (*KEYS, "seed"))


def _without(row: Row, kept: list[Row]) -> Row:
    fields: Row = {}
    for batch in BATCHES:
        here = next(iter(select(kept, batch=batch, **{key: row[key] for key in KEYS})), {})
        fields |= {f"{field}_{batch}": here.get(field) for field in ("windows", "mse", "mae")}
        fields |= {f"{metric}_{batch}_change": over(here.get(metric), row[metric]) for metric in ("mse", "mae")}
    return fields


dropped_batch = Table(
    title="Errors without the last, incomplete test batch (standardised; look-back 96)",
    keys=KEYS,
    columns=(
        *(Column(key, key) for key in KEYS),
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
    missing=("mse", "mae", *(f"{metric}_{batch}_change" for metric in ("mse", "mae") for batch in BATCHES)),
)
