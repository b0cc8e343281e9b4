"""A table without a time column: what its columns look like, and what to do about it."""

import re
import shlex
import warnings
from contextlib import suppress

import pyarrow as pa

from ibforecast.core.errors import DataError
from ibforecast.data.columns import MONTHS, cells_of, parse_times
from ibforecast.data.dates import read_times
from ibforecast.data.parts import suggested

TIME_NAMES = ("date", "ds", "time", "timestamp", "datetime")
"""Usual names of a time column."""

BETWEEN = " - "
"""What is between the ends of a span of time."""


def untimed(arrow: pa.Table, names: list[str]) -> DataError:
    """Return the error for a table that has no time column among `names`, with a remedy for what it seems to have."""
    rule, got = "a table must have a time column", f"none among {listed(arrow.column_names)}"
    unread = next((name for name in names if _could_be_times(name, arrow[name], name == names[0])), None)
    if unread is not None:
        first = cells_of(arrow[unread].drop_null()[:1])[0]
        got += f"; {unread!r} has {first!r}, which is not read as a time"
        if BETWEEN in str(first):
            by_pandas = f"table[{unread!r}].str.partition({BETWEEN!r})[0]"
            return DataError(rule, got, f"keep the first of both times, such as with pandas by {by_pandas}")
    return DataError(rule, got, _remedy(arrow, names, unread))


def listed(names: list[str]) -> str:
    """Return names in quotes, the first eight of many."""
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def is_number(column: pa.ChunkedArray) -> bool:
    """Return whether a column contains numbers."""
    return bool(pa.types.is_integer(column.type) or pa.types.is_floating(column.type))


def _remedy(arrow: pa.Table, names: list[str], unread: str | None) -> str:
    if by_month := _by_month(names):
        return by_month
    if several := suggested(arrow):
        return f"name the columns that make up the time (fit --time {shlex.quote(several)})"
    if could_be := [name for name in names if _would_be_read(name, arrow[name])]:
        return f"if {could_be[0]!r} has the times, name it (fit --time {shlex.quote(could_be[0])})"
    if len(names) > 2 and parse_times(pa.chunked_array([names[1:]])) is not None:
        by_pandas = f"table.set_index({names[0]!r}).T.rename_axis('time').reset_index()"
        return f"write the times in rows and not in columns, such as with pandas by {by_pandas}"
    remedy = "name it (fit --time), and write its times as YYYY-MM-DD HH:MM:SS"
    if unread is not None:
        return remedy
    by_pandas = "table.insert(0, 'time', pandas.date_range('2000', periods=len(table), freq='h'))"
    return f"{remedy}; or, if the rows only follow each other, add times with pandas by {by_pandas}"


def _by_month(names: list[str]) -> str:
    """Return the remedy for a table with a row per year and a column per month; empty if it is none."""
    short = {name.strip().lower()[:3]: name for name in reversed(names)}
    if "yea" not in short or not {month[:3] for month in MONTHS} <= short.keys():
        return ""
    year, first, last = short["yea"], short[MONTHS[0][:3]], short[MONTHS[-1][:3]]
    by_pandas = (
        f"table.set_index({year!r}).loc[:, {first!r}:{last!r}].stack().rename_axis([{year!r}, 'month'])"
        ".reset_index(name='value')"
    )
    return (
        f"write one row per month, such as with pandas by {by_pandas}, and name both columns with time='{year},month'"
    )


def _could_be_times(name: str, column: pa.ChunkedArray, is_first: bool) -> bool:
    """Return whether a column has a usual name of times, or is the first one and has text that begins with a digit."""
    if column.null_count == len(column):
        return False
    first = cells_of(column.drop_null()[:1])[0]
    return name.lower() in TIME_NAMES or (is_first and isinstance(first, str) and first[:1].isdigit())


def _would_be_read(name: str, column: pa.ChunkedArray) -> bool:
    """Return whether a column is read as times if it is named; numbers only if its name is that of a time."""
    if is_number(column) and not re.search("date|time|year", name, re.IGNORECASE):
        return False
    with warnings.catch_warnings(action="ignore"), suppress(DataError):
        return read_times(name, column) is not None
    return True
