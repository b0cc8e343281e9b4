"""Times in several columns: a date and a time of day, or a year, a month and so on. `time` names them in this order.

The first column has dates, or years that a column of months, quarters or days of the year follows, and perhaps one of
days. The next, if there are more, has the time of day: whole hours, numbers such as 1830, or text such as 18:30. Then
minutes and seconds. Hour 24 is midnight at the end of the day, so hours 1 to 24 are the ends of the hours.
"""

import re
import shlex

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64, Shaped

from ibforecast.core.calendar import SECOND
from ibforecast.core.errors import DataError
from ibforecast.data.columns import MONTHS, NAMED_AT_MOST, cells_of, describe_rows, text_of
from ibforecast.data.dates import FIRST_YEAR, Times, read_times
from ibforecast.data.layout import Dates
from ibforecast.data.sources import is_time, moments_of

OF_DAY = re.compile(r"\s*(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(?:\.0+)?)?\s*(?:([ap])\.?m\.?)?\s*", re.IGNORECASE)
"""A time of day as text, such as 18:30, 18.30.00 or 6:30 pm."""

QUARTER = re.compile(r"\s*q?([1-4])\s*", re.IGNORECASE)

NAMES: tuple[tuple[str, ...], ...] = (
    ("year", "yr", "yyyy"),
    ("month", "mon", "mo", "mm", "quarter", "qtr", "doy", "yday"),
    ("day", "dy", "dd"),
    ("hour", "hr", "hh"),
    ("minute", "mi"),
    ("second", "sec", "ss"),
)
"""Usual names of the columns that make up times, in their order; used for advice only."""

TIMES_OF_DAY = (*NAMES[3], "time", "he", "hour_ending", "hour ending", "hourending", "hour of day", "hhmm")
"""Usual names of a column with the time of day next to one of dates; used for advice only."""

DAY_SECONDS, YEAR_DAYS, MONTHS_OF_YEAR, WEEKS_OF_YEAR = 86_400, 366, 12, 53


def named_in(time: str | None, names: list[str]) -> list[str]:
    """Return the columns that `time` names: one of this name, or several, separated by commas; empty if it is None."""
    if time is None or time in names:
        return [time] if time else []
    several = [part.strip() for part in time.split(",")]
    return several if len(several) > 1 and set(several) & set(names) else [time]


def joined(arrow: pa.Table, names: list[str], dates: Dates) -> Times:
    """Return the moments that several columns make up. Raises DataError if a row has none."""
    first, *rest = names
    for name in names:
        if arrow[name].null_count:
            row = np.flatnonzero(arrow[name].is_null().to_numpy())
            got = f"{describe_rows(row, ['none'] * NAMED_AT_MOST)} in {name!r}"
            raise DataError("every row must have a time", got, "drop them")
    years, way = _numbers(arrow[first]), dates
    if years is not None and years.min() >= FIRST_YEAR and years.max() < 10_000:
        days, rest = _days_of(arrow, names, years)
    elif (times := read_times(first, arrow[first], dates)) is not None:
        (days, zone), way = moments_of(times.moments), times.dates
        if len(rows := np.flatnonzero((days != days.astype("datetime64[D]")) | (zone is not None))):
            raise DataError(
                "a date next to times of day must have no time of day and no zone",
                f"{describe_rows(rows, [text_of(day) for day in days[rows[:NAMED_AT_MOST]]])} in {first!r}",
                f"name only this column (fit --time {shlex.quote(first)})",
            )
    else:
        got = f"{cells_of(arrow[first][:1])[0]!r} in {first!r}"
        raise DataError("the first of several time columns must contain dates or years", got, "name that column first")
    readers = (_of_day, _minutes, _seconds)
    if len(rest) > len(readers):
        raise DataError("a time must be in at most six columns", ", ".join(names), "name fewer (fit --time)")
    seconds = sum(
        (read(arrow, name) for name, read in zip(rest, readers, strict=False)), np.zeros(len(arrow), np.int64)
    )
    return Times(pa.chunked_array([pa.array(days + seconds * SECOND)]), way)


def suggested(arrow: pa.Table) -> str:
    """Return the columns that seem to make up the times of a table without a time column; empty if there are none."""
    by_name = {name.strip().lower(): name for name in arrow.column_names}
    parts: list[str] = []
    for usual in NAMES:
        if (name := next((by_name[each] for each in usual if each in by_name), None)) is None:
            break
        parts.append(name)
    if len(parts) < 2:  # a year needs a month, a quarter or a day of the year
        return ""
    try:
        joined(arrow, parts, "auto")
    except DataError:
        return ""
    return ",".join(parts)


def time_of_day(arrow: pa.Table, date: str) -> str:
    """Return the column that seems to have the times of day next to one of dates; empty if there is none."""
    names: list[str] = arrow.column_names
    for name in names:
        kind = arrow.schema.field(name).type
        if name != date and (pa.types.is_time(kind) or name.strip().lower() in TIMES_OF_DAY) and not is_time(kind):
            try:
                _of_day(arrow, name)
            except DataError:
                continue
            return name
    return ""


def _days_of(
    arrow: pa.Table, names: list[str], years: Int64[np.ndarray, " row"]
) -> tuple[Shaped[np.ndarray, " row"], list[str]]:
    """Return the days of years and what follows them, and the columns after those."""
    _, second, *rest = names
    column = arrow[second]
    numbers = _numbers(column)
    january = (years - 1970).astype("datetime64[Y]").astype("datetime64[M]")
    if numbers is not None and MONTHS_OF_YEAR < numbers.max() <= WEEKS_OF_YEAR:
        raise DataError(
            "after a year, a column must have months, quarters or days of the year",
            f"{second!r} from {numbers.min()} to {numbers.max()}, most likely weeks",
            "weeks are counted in several ways: add a column with the first day of each week, and name it (fit --time)",
        )
    if numbers is not None and numbers.max() > WEEKS_OF_YEAR:
        _require(arrow, second, (numbers >= 1) & (numbers <= YEAR_DAYS), "a day of the year must be from 1 to 366")
        days = january.astype("datetime64[D]") + (numbers - 1)
        same_year = days.astype("datetime64[Y]") == january.astype("datetime64[Y]")
        _require(arrow, second, same_year, "a day of the year must exist in that year")
        return days.astype("datetime64[us]"), rest
    months = january + _month_of(arrow, second, numbers)
    days = months.astype("datetime64[D]")
    if not rest:
        return days.astype("datetime64[us]"), rest
    name, *rest = rest
    of_month = _required_numbers(arrow, name)
    days = days + (of_month - 1)
    _require(arrow, name, (of_month >= 1) & (days.astype("datetime64[M]") == months), "a day must exist in its month")
    return days.astype("datetime64[us]"), rest


def _month_of(arrow: pa.Table, name: str, numbers: Int64[np.ndarray, " row"] | None) -> Int64[np.ndarray, " row"]:
    """Return the number of months that passed in the year, of a column of months or quarters."""
    if numbers is not None and not name.strip().lower().startswith("q"):
        _require(arrow, name, (numbers >= 1) & (numbers <= MONTHS_OF_YEAR), "a month must be from 1 to 12")
        return numbers - 1
    texts = [str(cell) for cell in cells_of(arrow[name])]
    quarters = [QUARTER.fullmatch(text) for text in texts]
    if any(quarters):
        _require(arrow, name, np.array([each is not None for each in quarters]), "a quarter must be from 1 to 4")
        return np.array([3 * (int(each[1]) - 1) for each in quarters if each is not None], dtype=np.int64)
    known = {spelt: place for place, month in enumerate(MONTHS) for spelt in (month, month[:3])}
    months = np.array([known.get(text.strip().rstrip(".").lower(), -1) for text in texts], dtype=np.int64)
    _require(arrow, name, months >= 0, "a month must be a number from 1 to 12 or an English name")
    return months


def _of_day(arrow: pa.Table, name: str) -> Int64[np.ndarray, " row"]:
    """Return the seconds since midnight of a column of times of day."""
    column, rule = arrow[name], "a time of day must be from 0 to 24 hours, or from 00:00 to 24:00"
    if pa.types.is_time(column.type):
        return np.array(column.cast(pa.time64("us")).cast(pa.int64()).to_numpy()) // 1_000_000
    if (numbers := _numbers(column)) is None:
        read = [OF_DAY.fullmatch(str(cell)) for cell in cells_of(column)]
        _require(arrow, name, np.array([each is not None for each in read], dtype=bool), rule)
        parts = [(each[1], each[2], each[3] or 0, (each[4] or "").lower()) for each in read if each is not None]
        hour, minute, second = (np.array([int(part[place]) for part in parts], dtype=np.int64) for place in range(3))
        half = np.array([part[3] for part in parts], dtype=object)
        _require(arrow, name, (half == "") | ((hour >= 1) & (hour <= 12)), rule)
        hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
    elif numbers.max() < 100:
        hour, minute, second = numbers, np.zeros_like(numbers), np.zeros_like(numbers)
    else:
        hour, minute, second = numbers // 100, numbers % 100, np.zeros_like(numbers)
    since = 3600 * hour + 60 * minute + second
    _require(arrow, name, (since >= 0) & (since <= DAY_SECONDS) & (minute < 60) & (second < 60), rule)
    return np.asarray(since)


def _minutes(arrow: pa.Table, name: str) -> Int64[np.ndarray, " row"]:
    return 60 * _below_sixty(arrow, name)


def _seconds(arrow: pa.Table, name: str) -> Int64[np.ndarray, " row"]:
    return _below_sixty(arrow, name)


def _below_sixty(arrow: pa.Table, name: str) -> Int64[np.ndarray, " row"]:
    numbers = _required_numbers(arrow, name)
    _require(arrow, name, (numbers >= 0) & (numbers < 60), "minutes and seconds must be from 0 to 59")
    return numbers


def _numbers(column: pa.ChunkedArray) -> Int64[np.ndarray, " row"] | None:
    """Return a column of whole numbers, or None."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)) or not len(column):
        return None
    numbers = np.array(column.to_numpy(), dtype=np.float64)
    if not np.isfinite(numbers).all() or (numbers != np.rint(numbers)).any() or (np.abs(numbers) >= 2**53).any():
        return None
    return numbers.astype(np.int64)


def _required_numbers(arrow: pa.Table, name: str) -> Int64[np.ndarray, " row"]:
    numbers = _numbers(arrow[name])
    if numbers is None:
        got = f"{cells_of(arrow[name][:1])[0]!r} in {name!r}"
        raise DataError("days, minutes and seconds must be whole numbers", got, "correct the cells")
    return numbers


def _require(arrow: pa.Table, name: str, holds: Bool[np.ndarray, " row"], rule: str) -> None:
    if len(rows := np.flatnonzero(~holds)):
        cells = [repr(cells_of(arrow[name][int(row) : int(row) + 1])[0]) for row in rows[:NAMED_AT_MOST]]
        remedy = "correct them, or name the columns of the time in their order, such as year,month,day,hour"
        raise DataError(rule, f"{describe_rows(rows, cells)} in {name!r}", remedy)
