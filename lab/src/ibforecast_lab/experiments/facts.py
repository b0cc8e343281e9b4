"""Names for the numbers of all tables, for texts that quote them."""

from pathlib import Path

from ibforecast_lab.experiments.frame import Row
from ibforecast_lab.experiments.ledger import LEDGER, Ledger
from ibforecast_lab.experiments.tables import TABLES


def facts(ledger_path: Path = LEDGER) -> dict[str, float]:
    """Return every number of every table by its name, `label/key/.../column`.

    The keys are the values of the row's identifying fields, and "published" for a published row. A field without a
    value is left out: `per_horizon/ETTh1/96/steady/mse`, `accuracy/Overall/tqnet/published/mse`.
    """
    records = Ledger(ledger_path).records()
    return {
        "/".join((label, *name_of(row, sheet.keys), column)): float(value)
        for label, table in TABLES.items()
        for sheet in [table(records)]
        for row in sheet.rows
        for column, value in row.items()
        if column not in sheet.keys and isinstance(value, int | float) and not isinstance(value, bool)
    }


def name_of(row: Row, keys: tuple[str, ...]) -> list[str]:
    """Return the values that identify a row, in the order of its table's keys."""
    values = [row[key] for key in keys if row[key] is not None]
    source = [row["source"]] if row.get("source") == "published" else []
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values] + source
