"""One column of a table, read as moments or as numbers; errors name the rows that are neither."""

import re
import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast.core.calendar import DAY
from ibforecast.core.errors import DataError
from ibforecast.core.zones import IN_YEARS, in_order, outside_years, place_with, to_wall
from ibforecast.data.sources import OFFSETS, has_zone, is_time, moments_of, offsets_in

FORMATS = (
    *("%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d"),
    *("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y"),
    *("%Y%m%dT%H%M%S", "%Y%m%dT%H%M", "%Y%m%d %H:%M:%S", "%Y%m%d %H:%M", "%Y%m%d:%H%M", "%Y%m%d"),
)
MONTH = (
    r"^\s*(?P<year>\d{4})(?:-(?P<month>0[1-9]|1[0-2])|[Mm](?P<named>0?[1-9]|1[0-2])|[- ]?[Qq](?P<quarter>[1-4]))\s*$"
)
QUARTER_FIRST = r"^\s*([Qq][1-4])[ /-]?(\d{4})\s*$"
"""A month or a quarter, such as 2014-01, 2014M01, 2014Q1 or Q1 2014, which means its first day."""

WEEK = r"^\s*(?P<year>\d{4})-?W(?P<week>0[1-9]|[1-4]\d|5[0-3])\s*$"
"""A week of ISO 8601, such as 2024-W05, which means its Monday."""

LATE = r"(\d)[ T]24:00((?::00(?:\.0+)?)?)\s*$"
"""Midnight at the end of a day."""

MONTHS = [
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
]
_MONTH = (
    r"(?P<month>"
    + "|".join(f"{name}|{name[:3]}t?" if name == "september" else f"{name}|{name[:3]}" for name in MONTHS)
    + r")\.?"
)
_CLOCK = r"(?:[ T,:]+(?P<hour>\d{1,2})(?P<rest>:\d{2}(?::\d{2})?)(?: ?(?P<half>[ap])\.?m\.?)?)?\s*$"
NAMED = (
    r"(?i)^\s*(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*[., ]+)?(?:(?P<before>\d{1,2})[ ./-]+)?"
    + _MONTH
    + r"[ ./-]+(?:(?P<after>\d{1,2}),?[ ./-]+)?(?P<year>\d{4}|\d{2})"
    + _CLOCK,
    r"(?i)^\s*(?P<before>)(?P<year>\d{4})[ ./-]+" + _MONTH + r"(?:[ ./-]+(?P<after>\d{1,2}))?" + _CLOCK,
)
"""A date with the English name of a month, such as 31-Jan-2024, Wed Jan 31, 2024, Jan 2024 or 2024-Jan."""

PIECE = 100_000
"""Cells that are parsed together, and the most that are looked at one by one to find those that are no times."""

NAMED_AT_MOST = 3
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
"""A number as text; Python's `float` would also read 1_000 and the digits of other scripts."""

MARKS = ",.' \u00a0\u202f\u2019"
"""What may be between thousands, or before decimals."""

WITH_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
POINTED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*", re.ASCII)
GROUPED = re.compile(
    r"\s*[+-]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+,\d*|(\.\d{3}){2,}|([' \u00a0\u202f\u2019]\d{3})+([.,]\d*)?)\s*",
    re.ASCII,
)
UNITED = re.compile(
    r"(?:[€$£¥]\s*)?(?P<number>[+-]?\d+(?:\.\d+)?)\s*(?:%|[€$£¥]|[A-Za-z°µ][A-Za-z°µ/²³0-9^-]*)?", re.ASCII
)
"""A number with a currency, a percent sign or a unit."""

WORDS_AT_MOST = 3
"""Different texts in a channel that may mean missing values; with more of them its cells are words."""

POINTS_FIRST = re.compile(r"\.\d{3},")
"""Numbers with a decimal comma, with points that may be between thousands, and with marks between thousands."""

Parse = Callable[[pa.ChunkedArray], pa.ChunkedArray | None]


def describe_rows(rows: Shaped[np.ndarray, " fault"], details: list[str]) -> str:
    """Return the numbers of the first few rows, each with its detail."""
    named = "; ".join(f"row {row}: {text}" for row, text in zip(rows[:NAMED_AT_MOST], details, strict=False))
    return named if len(rows) <= NAMED_AT_MOST else f"{named}; and {len(rows) - NAMED_AT_MOST} more"


def text_of(moment: np.datetime64) -> str:
    """Return a moment as text: to the minute, or to the second or microsecond if it needs that."""
    rounded = (moment.astype(f"datetime64[{unit}]") for unit in ("m", "s"))
    return str(next((short for short in rounded if short == moment), moment)).replace("T", " ")


def parse_times(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column as moments, or None: typed, ISO, Y/M/D, D.M.Y, months, quarters, weeks, or names of months."""
    if is_time(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        return parse_times(column.cast(column.type.value_type))
    if not _is_text(column.type) or column.null_count == len(column):
        return None
    ways: tuple[Parse, ...] = (
        *(partial(_iso, zone=zone) for zone in (None, "UTC")),
        *(partial(_dated_as, way=way) for way in FORMATS),
        *(_months, _weeks),
        *(partial(_named, pattern=pattern) for pattern in NAMED),
    )
    column = column.cast(pa.string())
    read = next((read for way in ways if (read := in_pieces(column, way)) is not None), None)
    return _late(column) if read is None else read


def in_pieces(column: pa.ChunkedArray, parse: Parse) -> pa.ChunkedArray | None:
    """Parse a column piece by piece; None as soon as `parse` returns None, because every bad cell takes long."""
    parts = []
    for start in range(0, len(column), PIECE):
        if (part := parse(column[start : start + PIECE])) is None:
            return None
        parts += part.chunks
    return pa.chunked_array(parts)


def _iso(column: pa.ChunkedArray, zone: str | None) -> pa.ChunkedArray | None:
    try:
        return column.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return None


def _dated_as(column: pa.ChunkedArray, way: str) -> pa.ChunkedArray | None:
    import pyarrow.compute as pc  # slow, and few tables need it

    parsed = pc.strptime(column, format=way, unit="us", error_is_null=True)
    # A year of two digits is not one of the first century: `dates` reads it.
    return parsed if parsed.null_count == column.null_count and pc.min(pc.year(parsed)).as_py() > 99 else None


def _months(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return months or quarters as their first moments, or None if a text is neither."""
    import pyarrow.compute as pc  # slow, and few tables need it

    parts = pc.extract_regex(pc.replace_substring_regex(column, QUARTER_FIRST, r"\2\1"), MONTH)
    if parts.null_count > column.null_count:
        return None

    def part(name: str) -> Any:
        return pc.replace_substring_regex(pc.struct_field(parts, name), "^$", "0").cast(pa.int64())

    # Of the three ways, two are empty, and so 0.
    quarter = pc.max_element_wise(pc.subtract(pc.multiply(part("quarter"), 3), 2), 0)
    month = pc.add(pc.add(part("month"), part("named")), quarter)
    since_1970 = pc.add(pc.multiply(pc.subtract(part("year"), 1970), 12), pc.subtract(month, 1))
    absent = _nulls(column)
    moments = np.array(pc.fill_null(since_1970, 0).to_numpy(), dtype=np.int64).astype("datetime64[M]")
    return pa.chunked_array([pa.array(moments.astype("datetime64[us]"), mask=absent)])


def _weeks(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return weeks of ISO 8601 as the first moments of their Mondays, or None if a text is none."""
    import pyarrow.compute as pc  # slow, and few tables need it

    parts = pc.extract_regex(column, WEEK)
    if parts.null_count > column.null_count:
        return None
    absent = _nulls(column)
    years, weeks = (
        np.array(pc.fill_null(pc.struct_field(parts, name).cast(pa.int64()), 1970).to_numpy(), dtype=np.int64)
        for name in ("year", "week")
    )
    # The first week has January 4, and day 4 of 1970-01-01 is a Monday.
    fourth = (years - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) + 3
    days = fourth - (fourth - 4) % 7 + 7 * (weeks - 1)
    next_fourth = (years - 1969).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) + 3
    if (~absent & (days > next_fourth - 7)).any():  # no week 53 in that year
        return None
    return pa.chunked_array([pa.array(days.astype("datetime64[D]").astype("datetime64[us]"), mask=absent)])


def _late(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return times of which some are 24:00, the midnight at the end of a day, or None if none is."""
    import pyarrow.compute as pc  # slow, and few tables need it

    late = pc.fill_null(pc.match_substring_regex(column, LATE), False)
    if not pc.any(late).as_py():
        return None
    read = parse_times(pc.replace_substring_regex(column, LATE, r"\1 00:00\2"))
    if read is None:
        return None
    return pc.add(read, pc.multiply(late.cast(pa.int64()), DAY * 1_000_000).cast(pa.duration("us")))


def _named(column: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray | None:
    """Return dates with the name of a month, or None if a text is none."""
    import pyarrow.compute as pc  # slow, and few tables need it

    parts = pc.extract_regex(column, pattern)
    if parts.null_count > column.null_count:
        return None
    before, after, year, name, hour, rest, half = (
        pc.struct_field(parts, each) for each in ("before", "after", "year", "month", "hour", "rest", "half")
    )
    short, is_twelve = pc.equal(pc.utf8_length(year), 2), pc.not_equal(half, "")
    clock = pc.if_else(pc.equal(hour, ""), "0", hour).cast(pa.int64())
    odd = (
        pc.and_(pc.not_equal(before, ""), pc.not_equal(after, "")),  # two days
        pc.and_(short, pc.equal(before, "")),  # may be a day
        pc.and_(is_twelve, pc.or_(pc.less(clock, 1), pc.greater(clock, 12))),
    )
    if any(pc.any(each).as_py() for each in odd):
        return None
    day = pc.binary_join_element_wise(before, after, "")
    century = pc.if_else(short, pc.if_else(pc.less(year, "70"), "20", "19"), "")
    month = pc.index_in(pc.utf8_slice_codeunits(pc.utf8_lower(name), 0, 3), pa.array([each[:3] for each in MONTHS]))
    past_noon = pc.equal(pc.utf8_lower(half), "p").cast(pa.int64())
    since_noon = pc.if_else(pc.equal(clock, 12), 0, clock)
    clock = pc.if_else(is_twelve, pc.add(since_noon, pc.multiply(past_noon, 12)), clock)
    two = [
        pc.utf8_lpad(each, 2, "0")
        for each in (
            pc.add(month, 1).cast(pa.string()),
            pc.if_else(pc.equal(day, ""), "1", day),
            clock.cast(pa.string()),
        )
    ]
    date = pc.binary_join_element_wise(pc.binary_join_element_wise(century, year, ""), *two[:2], "-")
    time = pc.binary_join_element_wise(two[2], pc.if_else(pc.equal(rest, ""), ":00", rest), "")
    return _iso(pc.binary_join_element_wise(date, time, " "), None)


def cells_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the cells as Python's objects, or as text if one has none, such as a date in the year 300,000."""
    try:
        cells: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        cells = column.cast(pa.string()).to_pylist()
    return cells


def check_offsets(field: pa.Field, column: pa.ChunkedArray, times: pa.ChunkedArray) -> None:
    """Refuse times with several offsets, which would become UTC without a zone; `column` is the original one."""
    if is_time(column.type):
        offsets = (field.metadata or {}).get(OFFSETS, b"").decode().split()
    else:
        offsets = offsets_in(column.cast(pa.string())) if has_zone(times.type) else []
    if len(offsets) > 1:
        place = place_with(offsets, moments_of(times.drop_null())[0])
        remedy = f"zone={place!r} (fit --zone {place})" if place else "zone='Europe/Berlin' (fit --zone Europe/Berlin)"
        raise DataError(
            "times must have one offset, or a zone whose clock they follow",
            f"{', '.join(offsets)} in {field.name!r}",
            f"give the zone, such as {remedy}{', whose clock has these offsets' if place else ''}",
        )


def as_moments(
    name: str,
    column: pa.ChunkedArray,
    zone: str | None,
    numbered: bool,
    groups: Shaped[np.ndarray, " row"] | None = None,
) -> tuple[Shaped[np.ndarray, " row"], str | None]:
    """Return the moments of the time column, in UTC if there is a zone, and that zone: `zone` or the column's own.

    Moments of `numbered` rows may have any year. An hour that the clock of the zone showed twice is read by the order
    of its rows; `groups` says which rows of a long table are of one channel.
    """
    if column.null_count:
        rows = np.flatnonzero(_nulls(column))
        raise DataError(
            "every row must have a time", f"{describe_rows(rows, ['none'] * NAMED_AT_MOST)} in {name!r}", "drop them"
        )
    moments, own_zone = moments_of(column)
    if not numbered and len(rows := np.flatnonzero(outside_years(moments))):
        got = describe_rows(rows, [text_of(moment) for moment in moments[rows[:NAMED_AT_MOST]]])
        raise DataError(IN_YEARS, f"{got} in {name!r}", "correct them, or remove the rows")
    if own_zone is not None or zone is None:
        return moments, zone or own_zone
    wall = moments
    moments, unsure = in_order(wall, zone, groups)
    if unsure.any():
        rows = np.flatnonzero(unsure)
        raise DataError(
            f"a local time must be one the clock of {zone} showed exactly once",
            describe_rows(rows, [text_of(moment) for moment in wall[rows[:NAMED_AT_MOST]]]),
            "give the times in UTC or with their offsets; an hour that the clock showed twice may also be there twice, "
            "first in summer time",
        )
    return moments, zone


def as_numbers(
    name: str,
    column: pa.ChunkedArray,
    moments: Shaped[np.ndarray, " row"],
    zone: str | None,
    missing: tuple[str, ...] = (),
) -> Float64[np.ndarray, " row"]:
    """Return a channel as numbers, NaN where a value is missing; `missing` are the texts that mean so."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if missing and _is_text(column.type):
        column = _without(column, missing)
    if is_time(column.type):
        raise DataError(
            "a channel must contain numbers",
            f"times in {name!r}",
            "leave it out by naming the channels (fit --channels)",
        )
    values = _cast(column)
    if values is None:
        cells = cells_of(column)
        rows = np.array([row for row, cell in enumerate(cells) if not _is_number(cell)], dtype=np.int64)
        if len(rows):
            rows, remedy = _wrong_numbers(cells, rows)
            details = [f"{cells[row]!r} at {text}" for row, text in _dated(rows, moments, zone)]
            raise DataError("a channel must contain numbers", f"{describe_rows(rows, details)} in {name!r}", remedy)
        values = np.array([np.nan if cell is None else float(cell) for cell in cells])
    if len(rows := np.flatnonzero(np.isinf(values))):
        details = [f"{values[row]} at {text}" for row, text in _dated(rows, moments, zone)]
        raise DataError(
            "values must be finite", f"{describe_rows(rows, details)} in {name!r}", "correct them or leave them empty"
        )
    return values


def _wrong_numbers(cells: list[Any], rows: Int64[np.ndarray, " fault"]) -> tuple[Int64[np.ndarray, " named"], str]:
    """Return which of the rows without a number an error names, and what to do about them.

    Cells that nobody can read come first, then those with marks between thousands, then those with decimal commas. Next
    to more decimal commas, "1.234" has such a mark, too.
    """
    texts = {int(row): str(cells[row]) for row in rows}
    commas = {row for row, text in texts.items() if WITH_COMMA.fullmatch(text)}
    grouped = {row for row, text in texts.items() if GROUPED.fullmatch(text)}
    if odd := sorted(set(texts) - commas - grouped):
        return np.array(odd), _corrected([texts[row] for row in odd])
    if commas - grouped or any(POINTS_FIRST.search(texts[row]) for row in grouped):  # so commas are decimal marks
        pointed = {row for row, cell in enumerate(cells) if POINTED.fullmatch(str(cell))}
        grouped = (grouped - commas) | (pointed if len(pointed) < len(texts) else set())
    if not grouped:
        return rows, "write decimal marks as points, not commas: 1.5"
    named = sorted(grouped)
    first = str(cells[named[0]]).strip()
    remedy = f"write numbers without marks between thousands: {_ungrouped(first)} instead of {first}"
    either = f", or {first.replace(',', '.')} if the comma is a decimal mark"
    return np.array(named), remedy + either * (grouped <= commas)


def _corrected(texts: list[str]) -> str:
    """Return what to do about cells that nobody can read as numbers."""
    others = "or leave the channel out by naming the others (fit --channels)"
    if united := UNITED.fullmatch(texts[0].strip()):
        number = united["number"].replace(" ", "")
        return f"write numbers without a unit or a sign: {number} instead of {texts[0].strip()}; {others}"
    words = sorted({text.strip() for text in texts})
    if len(words) > WORDS_AT_MOST or any(re.search(r"\d", word) for word in words):
        return f"correct the cells, {others}"
    options = " ".join(f"--missing-value {shlex.quote(word)}" for word in words)
    if len(words) == 1:
        means, listed = f"{words[0]!r} means a missing value", f"missing_values=[{words[0]!r}]"
    else:
        means, listed = f"{', '.join(map(repr, words))} mean missing values", f"missing_values={words!r}"
    return f"if {means}, set {listed} (fit {options}); otherwise correct the cells, {others}"


def _without(column: pa.ChunkedArray, missing: tuple[str, ...]) -> pa.ChunkedArray:
    """Return a column of text in which these texts are empty cells."""
    import pyarrow.compute as pc  # slow, and few tables need it

    column = column.cast(pa.string())
    are_missing = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array([text.strip() for text in missing]))
    return pc.if_else(are_missing, pa.scalar(None, pa.string()), column)


def _ungrouped(text: str) -> str:
    """Return a number without its marks between thousands: all marks, except the last one if it is a different one."""
    marks = [mark for mark in text if mark in MARKS]
    head, mark, tail = text.rpartition(marks[-1])
    keeps = marks.count(marks[-1]) == 1 and len(set(marks)) > 1
    return "".join(each for each in head if each not in MARKS) + (mark if keeps else "") + tail


def _cast(column: pa.ChunkedArray) -> Float64[np.ndarray, " row"] | None:
    try:
        numbers = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        if not pa.types.is_float64(numbers.type):
            # A safe cast would refuse whole numbers above 2**53, which a double rounds.
            numbers = numbers.cast(pa.float64(), safe=False)
        return np.array(numbers.to_numpy(), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _dated(
    rows: Shaped[np.ndarray, " fault"], moments: Shaped[np.ndarray, " row"], zone: str | None
) -> list[tuple[int, str]]:
    few = rows[:NAMED_AT_MOST]
    return [(int(row), text_of(moment)) for row, moment in zip(few, to_wall(moments[few], zone), strict=True)]


def _nulls(column: pa.ChunkedArray) -> Bool[np.ndarray, " row"]:
    return np.asarray(column.is_null().to_numpy(), dtype=bool)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(cell: Any) -> bool:
    try:
        return cell is None or (float(cell) is not None and (not isinstance(cell, str) or bool(NUMBER.fullmatch(cell))))
    except (TypeError, ValueError):
        return False
