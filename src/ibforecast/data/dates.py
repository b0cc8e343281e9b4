"""Times as people and programs write them: day or month first, seconds since 1970, serial numbers of spreadsheets.

ISO times, years first and days first with dots mean one thing and are read by `columns.parse_times`. The ways here do
not: `dates` names one, and without it a way is taken only if the whole column fits no other. A warning says so.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64, Shaped

from ibforecast.core.calendar import DAY, SECOND, Frequency
from ibforecast.core.errors import DataError, UsageError
from ibforecast.data.axis import uneven
from ibforecast.data.columns import NUMBER, in_pieces, parse_times, text_of
from ibforecast.data.layout import Dates
from ibforecast.data.sources import moments_of

WRITTEN = (
    r"^\s*(?P<a>\d{1,2})[/.-](?P<b>\d{1,2})[/.-](?P<year>\d{4}|\d{2})"
    r"(?:[ T,]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.0+)?)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?)?\s*$"
)
"""Two numbers and a year, and perhaps a time of day."""

SINCE_1970 = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
YEARS = (np.datetime64("1980-01-01", "s"), np.datetime64("2100-01-01", "s"))
"""Numbers are taken for moments only if all of them are in these years."""

SERIAL_ZERO = np.datetime64("1899-12-30", "us")
"""Day 0 of the serial numbers of spreadsheets, for all dates since March 1900."""

SAID: dict[Dates, str] = {
    "dayfirst": "with the day first",
    "monthfirst": "with the month first",
    "s": "as seconds since 1970",
    "ms": "as milliseconds since 1970",
    "us": "as microseconds since 1970",
    "ns": "as nanoseconds since 1970",
    "excel": "as serial numbers of a spreadsheet",
    "digits": "as digits of year, month, day and so on",
}

LONGEST, FIRST_YEAR = 14, 1500
ADDED = {4: 101_000_000, 6: 1_000_000, 8: 0, 10: 0, 12: 0, 14: 0}
"""What is added to digits, filled up with zeros to the second: the first month and day if they are not written.

Years begin with 1500, because smaller numbers may count anything.
"""


@dataclass(frozen=True)
class Times:
    """A column read as moments, and the way it is written; "auto" if there is only one."""

    moments: pa.ChunkedArray
    dates: Dates


def read_times(name: str, column: pa.ChunkedArray, dates: Dates = "auto") -> Times | None:
    """Return a column as moments, or None if it contains no times. Raises DataError if it could mean two things."""
    if (plain := parse_times(column)) is not None:
        return Times(plain, "auto" if dates not in ("dayfirst", "monthfirst") else dates)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        return None
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        readings = _numbered(np.array(column.to_numpy(), dtype=np.float64))
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        readings = _written(column.cast(pa.string()))
    else:
        return None
    if dates != "auto":
        readings = {way: moments for way, moments in readings.items() if way == dates}
    if not readings:
        return None
    if len(readings) == 1:
        ((way, moments),) = readings.items()
        if dates == "auto" and way not in ("dayfirst", "monthfirst"):
            _say(name, way, moments, "")
        return Times(_column(moments, way), way)
    return _decided(name, column, readings)


def read_moment(moment: Any, dates: Dates = "auto") -> Any:
    """Return a moment as a datetime if it is written in a format of table times; otherwise return it unchanged.

    `dates` is how the times of the table are written. Raises UsageError if the text could mean two moments.
    """
    if not isinstance(moment, str):
        return moment
    with suppress(ValueError):
        datetime.fromisoformat(moment)
        return moment  # with its offset, if it has one
    try:
        written = pa.chunked_array([pa.array([moment.strip()])])
    except UnicodeEncodeError:  # half of a character, as JSON may have it
        return moment
    if dates in (*SINCE_1970, "excel", "digits") and NUMBER.fullmatch(moment):
        written = pa.chunked_array([pa.array([float(moment)])])
    elif dates not in ("dayfirst", "monthfirst"):
        dates = "auto"
    if (plain := parse_times(written)) is None and dates == "auto" and len(ways := _written(written)) > 1:
        both = [text_of(moments[0]) for moments in ways.values()]
        raise UsageError(
            "a moment must have one meaning: day or month first?",
            repr(moment),
            " or ".join(f"write {both[0]!r}" if not at else repr(each) for at, each in enumerate(both)),
        )
    times = Times(plain, "auto") if plain is not None else read_times("at", written, dates)
    if times is None:
        return moment
    read, zone = moments_of(times.moments)
    return read[0].item() if zone is None else read[0].item().replace(tzinfo=UTC)


def _decided(name: str, column: pa.ChunkedArray, readings: dict[Dates, Shaped[np.ndarray, " row"]]) -> Times:
    """Take the one reading under which the column is evenly spaced; refuse if both or neither is."""
    even = [way for way, moments in readings.items() if _is_even(moments)]
    if len(even) != 1:
        row = next((row for row, (a, b) in enumerate(zip(*readings.values(), strict=True)) if a != b), 0)
        first, second = (str(moments[row].astype("datetime64[D]")) for moments in readings.values())
        ways = [f"dates={way!r}" for way in readings]
        raise DataError(
            f"the times in {name!r} must have one meaning{': day or month first?' if 'dayfirst' in readings else ''}",
            f"{column[row].as_py()!r}, which is {first} or {second}",
            f"give {' or '.join(ways)} (fit --dates {next(iter(readings))})",
        )
    _say(name, even[0], readings[even[0]], ", because only then are they evenly spaced")
    return Times(_column(readings[even[0]], even[0]), even[0])


def _say(name: str, way: Dates, moments: Shaped[np.ndarray, " row"], why: str) -> None:
    warnings.warn(
        f"times must have one meaning (those in {name!r} were read {SAID[way]}, from {text_of(moments[0])} on{why}); "
        f"set dates={way!r} (fit --dates {way}) to say so",
        stacklevel=4,
    )


def _is_even(moments: Shaped[np.ndarray, " row"]) -> bool:
    """Return whether times increase in even steps, each counted once: a long table repeats them."""
    _, places = np.unique(moments, return_index=True)
    times = moments[np.sort(places)]
    if len(times) < 3 or (np.diff(times) < np.timedelta64(0)).any():
        return False
    return not uneven(times, Frequency.infer(times)).any()


def _numbered(numbers: Shaped[np.ndarray, " row"]) -> dict[Dates, Shaped[np.ndarray, " row"]]:
    """Return the readings of numbers whose moments are all in sensible years.

    Only seconds since 1970, and ten digits that end with the hour, can both fit the same numbers.
    """
    readings: dict[Dates, Shaped[np.ndarray, " row"]] = {}
    first, last = (year.astype(np.int64) for year in YEARS)
    if not np.isfinite(numbers).all() or not len(numbers):
        return {}
    ways: tuple[Dates, ...] = ("s", "ms", "us", "ns")
    for way in ways:
        seconds = numbers / SINCE_1970[way]
        if first <= seconds.min() and seconds.max() < last:
            readings[way] = np.rint(seconds * 1e6).astype(np.int64).view("datetime64[us]")
    days_from_zero = (np.array(YEARS).astype("datetime64[us]") - SERIAL_ZERO) / (DAY * SECOND)
    if days_from_zero[0] <= numbers.min() and numbers.max() < days_from_zero[1]:
        # A serial number has about the precision of a millisecond; nobody means more than seconds.
        readings["excel"] = SERIAL_ZERO + np.rint(numbers * DAY).astype(np.int64) * SECOND
    if (digits := _run_together(numbers)) is not None:
        readings["digits"] = digits
    return readings


def _run_together(numbers: Shaped[np.ndarray, " row"]) -> Shaped[np.ndarray, " row"] | None:
    """Return the moments of 2024, 202401, 20240131, 2024013118 and so on up to seconds; None if a number is none."""
    length = len(f"{numbers[0]:.0f}")
    if length not in ADDED:
        return None
    first, last = FIRST_YEAR * 10.0 ** (length - 4), 10.0**length
    if (numbers != np.rint(numbers)).any() or numbers.min() < first or numbers.max() >= last:
        return None
    digits = numbers.astype(np.int64) * 10 ** (LONGEST - length) + ADDED[length]
    month, day, hour, minute, second = (digits // 10**place % 100 for place in (8, 6, 4, 2, 0))
    return _moments(digits // 10**10, month, day, hour, minute, second)


def _written(texts: pa.ChunkedArray) -> dict[Dates, Shaped[np.ndarray, " row"]]:
    """Return the readings of two numbers and a year."""
    import pyarrow.compute as pc  # slow, and few tables need it

    def split(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
        parts = pc.extract_regex(texts, WRITTEN)
        return None if parts.null_count else parts

    parts = in_pieces(texts, split) if len(texts) else None
    if parts is None:
        return {}

    def part(name: str) -> Any:
        texts_of_part = pc.struct_field(parts, name)
        return pc.if_else(pc.equal(texts_of_part, ""), "0", texts_of_part).cast(pa.int64()).to_numpy()

    a, b, year = part("a"), part("b"), part("year")
    hour, minute, second = part("hour"), part("minute"), part("second")
    half = np.array(pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, "half"), 0, 1)).to_pylist())
    if ((half != "") & ((hour < 1) | (hour > 12))).any():
        return {}
    clock = (np.where(half == "", hour, hour % 12 + 12 * (half == "p")), minute, second)
    ways: tuple[Dates, ...] = ("dayfirst", "monthfirst")
    read = zip(ways, (_moments(year, b, a, *clock), _moments(year, a, b, *clock)), strict=True)
    readings = {way: each for way, each in read if each is not None}
    if len(readings) == 2 and ((a == b).all() or pc.all(pc.match_substring(texts, ".")).as_py()):
        readings.pop("monthfirst")  # the same moments, or dots, which are written after a day
    if (year < 100).all() and not any(map(_is_even, readings.values())):
        years_first = _moments(a, b, year, *clock)
        if years_first is not None and _is_even(years_first):
            return {}  # a day that counts years: nobody means that
    return readings


def _moments(
    year: Int64[np.ndarray, " row"],
    month: Int64[np.ndarray, " row"],
    day: Int64[np.ndarray, " row"],
    hour: Int64[np.ndarray, " row"],
    minute: Int64[np.ndarray, " row"],
    second: Int64[np.ndarray, " row"],
) -> Shaped[np.ndarray, " row"] | None:
    """Return moments by their parts, or None if one does not exist; years of two digits are of 1970 to 2069."""
    year = np.where(year < 100, year + np.where(year < 70, 2000, 1900), year)
    is_late = (hour == 24) & (minute == 0) & (second == 0)  # midnight at the end of the day
    if ((hour > 23) & ~is_late).any() or minute.max() > 59 or second.max() > 59 or not _exist(day, month, year).all():
        return None
    months = np.datetime64("0000-01", "M") + (year * 12 + month - 1)
    days = (months.astype("datetime64[D]") + (day - 1)).astype("datetime64[us]")
    return np.asarray(days + (hour * 3600 + minute * 60 + second) * SECOND)


def _exist(
    day: Int64[np.ndarray, " row"], month: Int64[np.ndarray, " row"], year: Int64[np.ndarray, " row"]
) -> Bool[np.ndarray, " row"]:
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    usable = (month >= 1) & (month <= 12) & (day >= 1)
    return np.asarray(usable & (day <= lengths[np.where(usable, month, 0)] + (leap & (month == 2))))


def _column(moments: Shaped[np.ndarray, " row"], way: Dates) -> pa.ChunkedArray:
    """Return moments as a column; those counted since 1970 are in UTC."""
    array = pa.array(moments.astype("datetime64[us]"))
    return pa.chunked_array([array.cast(pa.timestamp("us", "UTC")) if way in SINCE_1970 else array])
