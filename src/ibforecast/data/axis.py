"""From the times of a table to its time axis: sorted, evenly spaced, or read as the user asks."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast.core.errors import DataError
from ibforecast.data.calendar import Clock, Frequency, month_day
from ibforecast.data.columns import NAMED_AT_MOST, at_fault, text_of
from ibforecast.data.series import Series
from ibforecast.data.zones import to_utc, to_wall

Irregular = Literal["error", "by_row", "fill"]
HOUR = np.timedelta64(1, "h")
GRID_AT_MOST, FILLED_AT_MOST = 100_000, 100
"""A grid of more rows than the first must hold a value in one row of the second."""

SENTINELS = (-9999.0, -99999.0, -999.0, 9999.0, 99999.0)
"""Numbers that are known to stand for 'missing'."""


@dataclass(frozen=True)
class Axis:
    """Moments as the table has them; `name` is their column, `zone` their time zone."""

    moments: Shaped[np.ndarray, " row"]
    zone: str | None
    name: str

    @cached_property
    def wall(self) -> Shaped[np.ndarray, " row"]:
        """The same moments by the local clock."""
        return to_wall(self.moments, self.zone)

    def check_order(self, rows: Int64[np.ndarray, " row"] | None = None) -> None:
        """Refuse times that run backwards; `rows` are the row numbers to name."""
        if len(back := np.flatnonzero(np.diff(self.moments) < np.timedelta64(0)) + 1):
            says = [f"{text_of(self.wall[at])} comes after {text_of(self.wall[at - 1])}" for at in back[:NAMED_AT_MOST]]
            numbers = back if rows is None else rows[back]
            remedy = f"sort the table by {self.name!r}{self._clock_change(back)}"
            raise DataError("timestamps must increase", at_fault(numbers, says), remedy)

    def check_repeats(self, rows: Int64[np.ndarray, " row"]) -> None:
        """Refuse a time that is there twice."""
        if len(again := np.flatnonzero(np.diff(self.moments) == np.timedelta64(0)) + 1):
            says = [f"{text_of(moment)} is there twice" for moment in self.wall[again[:NAMED_AT_MOST]]]
            raise DataError(
                "a channel must have one value per time",
                at_fault(rows[again], says),
                "drop the repeated rows, or keep the first of each with irregular='fill' (fit --irregular fill)"
                f"{self._clock_change(again)}",
            )

    def series(
        self,
        values: Float64[np.ndarray, "row channel"],
        channels: tuple[str, ...],
        asked: str | None,
        irregular: Irregular,
    ) -> Series:
        """Lay the values on the time axis they belong to."""
        if len(values) < 3:
            raise DataError("a table must have at least 3 rows to show its frequency", len(values), "add rows")
        self.check_order()
        frequency = self._frequency(asked, irregular)
        even = self.moments if not frequency.by_date else self.wall
        if irregular == "fill":
            return self._filled(even, frequency, values, channels)
        if irregular == "error" and len(rows := np.flatnonzero(uneven(even, frequency))):
            raise self._unevenness(rows, frequency, _beside(values, channels))
        return Series(values, channels, Clock(self.moments, frequency, self.zone, by_row=irregular == "by_row"))

    def _frequency(self, asked: str | None, irregular: Irregular) -> Frequency:
        found = Frequency.infer(self.wall)
        if asked is None:
            return found
        wanted = Frequency.parse(asked)
        is_even = {
            step: not uneven(self.wall if step.by_date else self.moments, step).any() for step in (found, wanted)
        }
        if wanted != found and not is_even[wanted] and (irregular == "error" or is_even[found]):
            raise DataError(
                "the table must have the frequency asked for",
                f"steps of {found}, asked for {wanted}",
                f"resample the table, or ask for {found}",
            )
        return wanted

    def _unevenness(self, rows: Int64[np.ndarray, " fault"], frequency: Frequency, more: str) -> DataError:
        """Return the error for rows that break the even steps; `more` is added to its remedy."""
        says = [
            f"{text_of(self.wall[at])} is there twice"
            if self.moments[at] == self.moments[at - 1]
            else f"{text_of(self.wall[at])} follows {text_of(self.wall[at - 1])}"
            for at in rows[:NAMED_AT_MOST]
        ]
        return DataError(
            f"timestamps must follow each other in even steps, here of {frequency}",
            at_fault(rows, says),
            "read by row number with irregular='by_row' (fit --irregular by_row), put the rows on the even grid with "
            f"irregular='fill' (fit --irregular fill), or give the frequency (fit --freq) if it is not {frequency}"
            f"{self._clock_change(rows)}{more}",
        )

    def _clock_change(self, rows: Int64[np.ndarray, " fault"]) -> str:
        """What else to do where one of these rows is off by the hour of a clock put on or back at night."""
        steps, counts = np.unique(np.diff(self.moments), return_counts=True)
        off = self.moments[rows] - self.moments[rows - 1] - steps[counts.argmax()]
        at_night = self.wall[rows] - self.wall[rows].astype("datetime64[D]") < 4 * HOUR
        if self.zone is not None or not (at_night & (np.abs(off) == HOUR)).any():
            return ""
        return (
            ", or say zone='Europe/Berlin' (fit --zone Europe/Berlin) if a clock was put on or back here, and write "
            "the times with their offsets if it was put back"
        )

    def _filled(
        self,
        even: Shaped[np.ndarray, " row"],
        frequency: Frequency,
        values: Float64[np.ndarray, "row channel"],
        channels: tuple[str, ...],
    ) -> Series:
        day, position = month_day(even), frequency.count(even[0], even)
        if len(off := np.flatnonzero(frequency.after(even[0], position, day) != even)):
            says = [text_of(moment) for moment in self.wall[off[:NAMED_AT_MOST]]]
            raise DataError(
                f"to fill the grid, times must lie on steps of {frequency} from the first on",
                at_fault(off, says),
                (
                    "round the times, give another frequency (fit --freq), or read by row number with "
                    "irregular='by_row' (fit --irregular by_row)"
                ),
            )
        self._check_grid(position, frequency)
        grid = frequency.after(even[0], np.arange(position[-1] + 1), day)
        filled = np.full((len(grid), len(channels)), np.nan)
        filled[position[::-1]] = values[::-1]  # backwards, so that of repeated times the first stays
        return Series(
            filled, channels, Clock(to_utc(grid, self.zone) if frequency.by_date else grid, frequency, self.zone)
        )

    def _check_grid(self, position: Int64[np.ndarray, " row"], frequency: Frequency) -> None:
        """Refuse to fill a gap so wide that next to nothing else would be left: most likely a time is wrong."""
        rows, grid = len(position), int(position[-1]) + 1
        if grid > max(GRID_AT_MOST, FILLED_AT_MOST * rows):
            widest = int(np.diff(position).argmax()) + 1
            before, after = (text_of(moment) for moment in self.wall[widest - 1 : widest + 1])
            raise DataError(
                f"a grid to fill must have at most {FILLED_AT_MOST} times the rows of the table",
                (
                    f"{grid:,} steps of {frequency} for {rows:,} rows, most of them in row {widest}: {after} follows "
                    f"{before}"
                ),
                (
                    "correct the time, cut the table there, give another frequency (fit --freq), or read by row "
                    "number with irregular='by_row' (fit --irregular by_row)"
                ),
            )


def uneven(even: Shaped[np.ndarray, " row"], frequency: Frequency) -> Bool[np.ndarray, " row"]:
    """Tell which rows do not follow the row before by exactly one step."""
    if not frequency.months:
        step = np.timedelta64(frequency.seconds, "s")
        return np.concatenate([[False], np.diff(even) != step])
    position = frequency.count(even[0], even)
    off = frequency.after(even[0], position, month_day(even)) != even
    return np.asarray(off | (np.diff(position, prepend=-1) != 1))


def warn_of_marks(values: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> None:
    """Say of a table that was read which of its numbers look like marks for missing values."""
    if found := _marks(values, channels):
        rule = "a number must be a value, not a mark for a missing one"
        warnings.warn(f"{rule} (read as numbers: {_counted(found)}); if it is one, {_declare(found)}", stacklevel=3)


def _beside(values: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> str:
    """The same beside another complaint; nothing where no number looks so."""
    found = _marks(values, channels)
    return f", and {_counted(found)} looks like a mark for missing values: {_declare(found)}" if found else ""


def _marks(values: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> list[tuple[float, str, int]]:
    """The sentinels that lie far from all other values of their channel, each with the channel and its count.

    Far is more than half of the range of these others and zero.
    """
    is_mark = np.isin(values, SENTINELS)
    found = []
    for column in np.flatnonzero(is_mark.any(axis=0)):
        others = values[~is_mark[:, column] & ~np.isnan(values[:, column]), column]
        if not len(others):
            continue
        low, high = others.min(), others.max()
        for mark in SENTINELS:
            count = int((values[:, column] == mark).sum())
            if count and max(low - mark, mark - high) > (max(high, 0.0) - min(low, 0.0)) / 2:
                found.append((mark, channels[column], count))
    return found


def _counted(found: list[tuple[float, str, int]]) -> str:
    named = ", ".join(f"{count} x {mark:g} in {name!r}" for mark, name, count in found[:NAMED_AT_MOST])
    return named if len(found) <= NAMED_AT_MOST else f"{named} and {len(found) - NAMED_AT_MOST} more"


def _declare(found: list[tuple[float, str, int]]) -> str:
    marks = [f"{mark:g}" for mark in SENTINELS if mark in {mark for mark, _, _ in found}]
    listed = f"{marks[0]}," if len(marks) == 1 else ", ".join(marks)
    return f"say missing_values=({listed}) (fit {' '.join(f'--missing-value {mark}' for mark in marks)})"
