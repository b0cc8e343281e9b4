"""The time axis of a table: sorted and evenly spaced, or read by row number or filled on request."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast.core.calendar import DAY, Clock, Frequency, month_day
from ibforecast.core.errors import DataError
from ibforecast.core.zones import to_utc, to_wall
from ibforecast.data.columns import NAMED_AT_MOST, describe_rows, text_of
from ibforecast.data.layout import Irregular
from ibforecast.data.series import Series

HOUR = np.timedelta64(1, "h")
GRID_AT_MOST, FILLED_AT_MOST = 100_000, 100
"""A filled grid may have up to the first number of rows, or the second number of rows per row of the table."""

SENTINELS = (-9999.0, -99999.0, -999.0, 9999.0, 99999.0)
"""Numbers that often mean 'missing'."""

HUGE = 1e15
"""The size from which a number that is there more than once may mean 'missing', such as 1e20 and 9.97e36."""


@dataclass(frozen=True)
class Axis:
    """The moments of a table, in UTC if there is a `zone`; `name` is their column."""

    moments: Shaped[np.ndarray, " row"]
    zone: str | None
    name: str

    @cached_property
    def wall(self) -> Shaped[np.ndarray, " row"]:
        """The same moments in local time."""
        return to_wall(self.moments, self.zone)

    def check_order(self, rows: Int64[np.ndarray, " row"] | None = None) -> None:
        """Refuse times that decrease; `rows` are the row numbers for the error."""
        if len(back := np.flatnonzero(np.diff(self.moments) < np.timedelta64(0)) + 1):
            details = [
                f"{text_of(self.wall[at])} comes after {text_of(self.wall[at - 1])}" for at in back[:NAMED_AT_MOST]
            ]
            numbers = back if rows is None else rows[back]
            remedy = f"sort the table by {self.name!r}{self._clock_change(back)}"
            raise DataError("timestamps must increase", describe_rows(numbers, details), remedy)

    def check_repeats(self, rows: Int64[np.ndarray, " row"]) -> None:
        """Refuse a time that appears twice; `rows` are the row numbers for the error."""
        if len(again := self.repeats):
            details = [f"{text_of(moment)} appears twice" for moment in self.wall[again[:NAMED_AT_MOST]]]
            raise DataError(
                "a channel must have one value per time",
                describe_rows(rows[again], details),
                "drop the repeated rows, or keep the first of each with irregular='fill' (fit --irregular fill)"
                f"{self._clock_change(again)}",
            )

    @property
    def repeats(self) -> Int64[np.ndarray, " repeat"]:
        """The rows whose time is that of the row before."""
        return np.flatnonzero(np.diff(self.moments) == np.timedelta64(0)) + 1

    def warn_of_repeats(self, others: int = 0) -> None:
        """Warn of rows whose time appears twice, of which only the first is kept; `others` are those of other ids."""
        if len(again := self.repeats):
            total = len(again) + others
            count = f"{total} {'row' if total == 1 else 'rows'}"
            details = ", ".join(text_of(moment) for moment in self.wall[again[:NAMED_AT_MOST]])
            more = "" if total <= min(len(again), NAMED_AT_MOST) else " and others"
            warnings.warn(
                f"a time must be there once ({count} with a time that appears twice left out: {details}{more}); "
                f"correct the times{self._clock_change(again)}",
                stacklevel=5,
            )

    def series(
        self,
        values: Float64[np.ndarray, "row channel"],
        channels: tuple[str, ...],
        frequency: str | None,
        irregular: Irregular,
    ) -> Series:
        """Return the values on their time axis; the frequency is inferred if None."""
        if len(values) < 3:
            raise DataError("a table must have at least 3 rows to show its frequency", len(values), "add rows")
        self.check_order()
        step = self._step(frequency, irregular)
        # Steps of days and months are even by the wall clock, shorter ones in UTC.
        even = self.moments if not step.by_date else self.wall
        if irregular == "fill":
            return self._filled(even, step, values, channels)
        if irregular == "error" and len(rows := np.flatnonzero(uneven(even, step))):
            raise self._unevenness(rows, step, _mark_hint(values, channels))
        return Series(values, channels, Clock(self.moments, step, self.zone, by_row=irregular == "by_row"))

    def _step(self, frequency: str | None, irregular: Irregular) -> Frequency:
        inferred = Frequency.infer(self.wall)
        if frequency is None:
            return inferred
        requested = Frequency.parse(frequency)
        is_even = {
            step: not uneven(self.wall if step.by_date else self.moments, step).any() for step in (inferred, requested)
        }
        # Workdays are never inferred. A holiday among them is an uneven time, and not another frequency.
        strict = irregular == "error" and not requested.workdays
        if requested != inferred and not is_even[requested] and (strict or is_even[inferred]):
            raise DataError(
                "the table must have the requested frequency",
                f"steps of {inferred.words}, requested {requested}",
                f"resample the table, or request {inferred}",
            )
        return requested

    def _unevenness(self, rows: Int64[np.ndarray, " fault"], frequency: Frequency, more: str) -> DataError:
        """Return the error for unevenly spaced rows; `more` is added to its remedy."""
        details = [
            f"{text_of(self.wall[at])} appears twice"
            if self.moments[at] == self.moments[at - 1]
            else f"{text_of(self.wall[at])} follows {text_of(self.wall[at - 1])}"
            for at in rows[:NAMED_AT_MOST]
        ]
        rule, got = (
            f"timestamps must follow each other in even steps, here of {frequency.words}",
            describe_rows(rows, details),
        )
        if frequency.workdays:
            return DataError(
                rule,
                got,
                "if these are holidays, make them rows of missing values with irregular='fill' (fit --irregular fill), "
                f"or count only days that have a row with irregular='by_row' (fit --irregular by_row){more}",
            )
        even, step = self.wall if frequency.by_date else self.moments, str(frequency)
        step = step.upper() if step[-1] in "dw" else step  # as pandas writes days and weeks
        onto_grid = (
            f"put the rows on an even grid first, such as with pandas by table.resample({step!r}, "
            f"on={self.name!r}).mean()"
            if len(_off_grid(even, frequency))
            else "put the rows on the even grid with irregular='fill' (fit --irregular fill)"
        )
        return DataError(
            rule,
            got,
            f"{self._workdays(frequency)}read by row number with irregular='by_row' (fit --irregular by_row), "
            f"{onto_grid}, or give the frequency (fit --freq) if it is not {frequency}{self._clock_change(rows)}{more}",
        )

    def _workdays(self, frequency: Frequency) -> str:
        """Return a first remedy if the rows are days without any Saturday or Sunday."""
        if frequency != Frequency(DAY) or not np.is_busday(self.wall.astype("datetime64[D]")).all():
            return ""
        return "count days from Monday to Friday with freq='B' (fit --freq B, and --irregular fill for holidays), "

    def _clock_change(self, rows: Int64[np.ndarray, " fault"]) -> str:
        """Return a further remedy if one of these rows is off by an hour at night, as when the clock changes."""
        steps, counts = np.unique(np.diff(self.moments), return_counts=True)
        off = self.moments[rows] - self.moments[rows - 1] - steps[counts.argmax()]
        at_night = self.wall[rows] - self.wall[rows].astype("datetime64[D]") < 4 * HOUR
        if self.zone is not None or not (at_night & (np.abs(off) == HOUR)).any():
            return ""
        return (
            ", or set zone='Europe/Berlin' (fit --zone Europe/Berlin) if the clock changed here: an hour that is there "
            "twice is then read first in summer time"
        )

    def _filled(
        self,
        even: Shaped[np.ndarray, " row"],
        frequency: Frequency,
        values: Float64[np.ndarray, "row channel"],
        channels: tuple[str, ...],
    ) -> Series:
        day, position = month_day(even), frequency.count(even[0], even)
        if len(off := _off_grid(even, frequency)):
            details = [text_of(moment) for moment in self.wall[off[:NAMED_AT_MOST]]]
            raise DataError(
                f"to fill the grid, times must lie on steps of {frequency.words} from the first on",
                describe_rows(off, details),
                (
                    "round the times, give another frequency (fit --freq), or read by row number with "
                    "irregular='by_row' (fit --irregular by_row)"
                ),
            )
        self._check_grid(position, frequency)
        self.warn_of_repeats()
        grid = frequency.after(even[0], np.arange(position[-1] + 1), day)
        filled = np.full((len(grid), len(channels)), np.nan)
        filled[position[::-1]] = values[::-1]  # in reverse, so that the first of repeated times is kept
        return Series(
            filled, channels, Clock(to_utc(grid, self.zone) if frequency.by_date else grid, frequency, self.zone)
        )

    def _check_grid(self, position: Int64[np.ndarray, " row"], frequency: Frequency) -> None:
        """Refuse to fill a gap that is far longer than the rest of the table: probably a time is wrong."""
        rows, grid = len(position), int(position[-1]) + 1
        if grid > max(GRID_AT_MOST, FILLED_AT_MOST * rows):
            widest = int(np.diff(position).argmax()) + 1
            before, after = (text_of(moment) for moment in self.wall[widest - 1 : widest + 1])
            raise DataError(
                f"a grid to fill must have at most {FILLED_AT_MOST} times the rows of the table",
                (
                    f"{grid:,} steps of {frequency.words} for {rows:,} rows, most of them in row {widest}: {after} "
                    f"follows {before}"
                ),
                (
                    "correct the time, cut the table there, give another frequency (fit --freq), or read by row "
                    "number with irregular='by_row' (fit --irregular by_row)"
                ),
            )


def _off_grid(even: Shaped[np.ndarray, " row"], frequency: Frequency) -> Int64[np.ndarray, " fault"]:
    """Return the rows that do not lie on steps of the frequency from the first row on."""
    position = frequency.count(even[0], even)
    return np.flatnonzero(frequency.after(even[0], position, month_day(even)) != even)


def uneven(even: Shaped[np.ndarray, " row"], frequency: Frequency) -> Bool[np.ndarray, " row"]:
    """Return which rows do not follow the previous row by exactly one step."""
    if frequency.seconds:
        step = np.timedelta64(frequency.seconds, "s")
        return np.concatenate([[False], np.diff(even) != step])
    position = frequency.count(even[0], even)
    off = frequency.after(even[0], position, month_day(even)) != even
    return np.asarray(off | (np.diff(position, prepend=-1) != 1))


@dataclass(frozen=True)
class Mark:
    """A number that looks like a mark for missing values, the channel it is in, and how often."""

    number: float
    channel: str
    count: int


def warn_of_marks(marks: list[Mark]) -> None:
    """Warn of numbers that look like marks for missing values, if there are any."""
    if marks:
        rule = "a number must be a value, not a mark for a missing one"
        warnings.warn(f"{rule} (read as numbers: {counted(marks)}); if it is one, {declare(marks)}", stacklevel=3)


def _mark_hint(values: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> str:
    """Return a hint for the remedy of another error; empty if no number looks like a mark."""
    marks = marks_in(values, channels)
    return f", and {counted(marks)} looks like a mark for missing values: {declare(marks)}" if marks else ""


def marks_in(values: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> list[Mark]:
    """Return the sentinels that are far from all other values of their channel, with the channel and their number.

    A huge number that repeats exactly is one as well. Far means more than half the range of the other values and zero.
    """
    is_huge = (np.abs(values) >= HUGE) & np.isfinite(values)
    is_sentinel = np.isin(values, SENTINELS)
    marks = []
    for column in np.flatnonzero((is_sentinel | is_huge).any(axis=0)):
        own = values[:, column]
        huge, often = np.unique(own[is_huge[:, column]], return_counts=True)
        numbers = (*SENTINELS, *huge[often > 1].tolist())
        others = own[~np.isin(own, numbers) & ~np.isnan(own)]
        if not len(others):
            continue
        low, high = others.min(), others.max()
        for number in numbers:
            count = int((own == number).sum())
            if count and max(low - number, number - high) > (max(high, 0.0) - min(low, 0.0)) / 2:
                marks.append(Mark(number, channels[column], count))
    return marks


def counted(marks: list[Mark]) -> str:
    """Return the marks with their numbers and channels as text."""
    named = ", ".join(f"{mark.count} x {as_text(mark.number)} in {mark.channel!r}" for mark in marks[:NAMED_AT_MOST])
    return named if len(marks) <= NAMED_AT_MOST else f"{named} and {len(marks) - NAMED_AT_MOST} more"


def as_text(number: float) -> str:
    """Return a number as briefly as possible, but exactly, as an option must have it."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


def mark_options(marks: list[Mark]) -> tuple[str, ...]:
    """Return the options of `fit` that declare the marks."""
    numbers = {mark.number for mark in marks}
    ordered = [number for number in SENTINELS if number in numbers] + sorted(numbers - set(SENTINELS))
    return tuple(f"--missing-value {as_text(number)}" for number in ordered)


def declare(marks: list[Mark]) -> str:
    """Return how to declare the marks, in Python and as options."""
    options = mark_options(marks)
    numbers = [option.split()[1] for option in options]
    listed = f"{numbers[0]}," if len(numbers) == 1 else ", ".join(numbers)
    return f"set missing_values=({listed}) (fit {' '.join(options)})"
