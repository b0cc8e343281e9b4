"""Limits on the size of a table, checked before it is parsed; real tables stay below them, attacks need not."""

from collections.abc import Iterable

from ibforecast.core.errors import DataError

MOST_COLUMNS = 10_000
"""Columns of a table, or ids of a long one; arrow needs 8 KB of memory for each, however short the file."""

MOST_CELLS = 1_000_000_000
"""Rows times columns; in double precision this many take 8 GB."""

LONGEST_NAME = 1_000
"""Characters in the name of a column."""

LONGEST_HEADER = 2**20
"""Bytes of the first line of a CSV file."""

LONGEST_TEXT = 2**32
"""Bytes of a CSV file after it is unpacked."""


def check_columns(columns: int, what: str = "columns") -> None:
    """Refuse a table of too many columns, or of other things that become columns."""
    if columns > MOST_COLUMNS:
        raise DataError(
            f"a table must have at most {MOST_COLUMNS:,} {what}", f"{columns:,}", "split the table into several"
        )


def check_cells(rows: int, columns: int) -> None:
    """Refuse a table of too many cells."""
    if rows * columns > MOST_CELLS:
        raise DataError(
            f"a table must have at most {MOST_CELLS:,} cells",
            f"{rows:,} rows of {columns:,} columns",
            "give fewer rows or columns",
        )


def check_shape(rows: int, names: Iterable[object]) -> None:
    """Refuse a table of too many rows or columns, or with a name that is too long."""
    listed = [str(name) for name in names]
    check_columns(len(listed))
    check_cells(rows, len(listed))
    if long := next((name for name in listed if len(name) > LONGEST_NAME), None):
        raise DataError(
            f"the name of a column must have at most {LONGEST_NAME:,} characters",
            f"{len(long):,} in {long[:40]!r}…",
            "rename it",
        )
