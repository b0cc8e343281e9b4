"""Errors by horizon. Paper: Table "perhorizon"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import MAIN, PLANS
from ibforecast_lab.experiments.rows import ledger_rows, published_rows
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.errors import error_sheet


def sheet(records: list[Record]) -> Sheet:
    """Every cell of the main table; a cell that was not run says so."""
    ours = [row for row in ledger_rows(records) if row.data in MAIN]
    title = "Errors by horizon (standardised; look-back 96)"
    published = [*published_rows("per_horizon"), *published_rows("cyclenet_linear")]
    return error_sheet(title, ours, published, PLANS["per_horizon"].models)
