"""Names for the numbers of all tables, for texts that quote them."""

from collections.abc import Mapping

from ibforecast_lab.experiments.frame import Row
from ibforecast_lab.experiments.sheet import Sheet


def facts(sheets: Mapping[str, Sheet]) -> dict[str, float]:
    """Return every number of the sheets by its name, `label/key/.../column`.

    The keys are the values of the row's identifying fields, and "published" for a published row. A field without a
    value is left out: `per_horizon/ETTh1/96/steady/mse`, `accuracy/Overall/tqnet/published/mse`.
    """
    return {
        "/".join((label, *name_of(row, sheet.keys), column)): float(value)
        for label, sheet in sheets.items()
        for row in sheet.rows
        for column, value in row.items()
        if column not in sheet.keys and isinstance(value, int | float) and not isinstance(value, bool)
    }


def name_of(row: Row, keys: tuple[str, ...]) -> list[str]:
    """Return the values that identify a row, in the order of its table's keys."""
    values = [row[key] for key in keys if row[key] is not None]
    source = [row["source"]] if row.get("source") == "published" else []
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values] + source
