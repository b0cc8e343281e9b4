"""Errors averaged over the four horizons. Paper: Table "accuracy"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import MAIN, PLANS
from ibforecast_lab.experiments.rows import averaged, ledger_rows, overall, published_rows
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.errors import error_sheet


def sheet(records: list[Record]) -> Sheet:
    """A model is shown where all four horizons were run, and otherwise as not run."""
    ours = averaged(row for row in ledger_rows(records) if row.data in MAIN)
    published = [row for row in published_rows("accuracy") if row.data in (*MAIN, "Overall")]
    linear = averaged(published_rows("cyclenet_linear"))
    title = "Errors, mean over horizons 96, 192, 336 and 720 (standardised; look-back 96)"
    return error_sheet(
        title, [*ours, *overall(ours, MAIN)], [*published, *linear, *overall(linear, MAIN)], PLANS["accuracy"].models
    )
