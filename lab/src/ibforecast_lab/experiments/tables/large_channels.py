"""Errors on data sets with hundreds of channels. Paper: Table "bigc"."""

from ibforecast_lab.data.standin import STAND_INS
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import LARGE, PLANS
from ibforecast_lab.experiments.rows import ledger_rows, published_rows
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.errors import error_sheet


def sheet(records: list[Record]) -> Sheet:
    """Electricity, Solar and Traffic, and the generated stand-ins for them; a cell that was not run says so."""
    ours = [row for row in ledger_rows(records) if row.data in (*LARGE, *STAND_INS)]
    title = "Errors on data sets with many channels (standardised; look-back 96)"
    return error_sheet(title, ours, published_rows("large_channels"), PLANS["large_channels"].models)
