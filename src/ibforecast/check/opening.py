"""Opening a table for a look: one with uneven times is read in the way that fits it best."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ibforecast.check.advice import Advice
from ibforecast.check.gaps import counts_left_out
from ibforecast.check.lengths import usual_horizon
from ibforecast.core.calendar import DAY, Frequency
from ibforecast.core.errors import DataError
from ibforecast.data.axis import Mark
from ibforecast.data.series import Series
from ibforecast.data.tables import Table, read_with_marks
from ibforecast.settings import Settings

ZONES = ("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York")
"""Zones to try if the clock seems to change in a table; in all others it changes at the same local times as in one."""


@dataclass(frozen=True)
class Opened:
    """A table that was read to be checked: its content, what looks like marks, and how to read it if it is uneven.

    `reading` are the settings by which it was read in place of those given, and `advice` says why.
    """

    source: Table
    marks: list[Mark]
    reading: Mapping[str, Any] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()


def open_table(table: Any, settings: Settings) -> Opened:
    """Read a table; uneven times are read by workdays, by row number or on the even grid, whichever fits best."""
    try:
        return Opened(*read_with_marks(table, settings.layout))
    except DataError as error:
        if settings.irregular != "error" or "even steps" not in error.rule:
            raise
        for zone in ZONES if settings.zone is None and "zone=" in error.remedy else ():
            with suppress(DataError):
                return _reading(
                    *read_with_marks(table, replace(settings, zone=zone).layout),
                    {"zone": zone},
                    f"{error.rule} ({error.got}); by the clock of {zone}, which changes there, all are",
                    f"give the time zone of the table, such as --zone {zone}",
                )
        try:
            source, marks = read_with_marks(table, replace(settings.layout, irregular="fill"))
        except DataError:
            raise error from None
        return _evened(table, settings, source, marks, error)


def _evened(table: Any, settings: Settings, source: Table, marks: list[Mark], error: DataError) -> Opened:
    """Return an uneven table as it is best read, and the advice to read it so; `source` is it on the even grid."""
    series, finding = source.series, f"{error.rule} ({error.got})"
    absent = np.isnan(series.values)
    workdays = settings.freq is None and series.clock.frequency == Frequency(DAY)
    if workdays and np.is_busday(series.clock.wall[~absent.all(axis=1)].astype("datetime64[D]")).all():
        ways: tuple[dict[str, Any], ...] = ({"freq": "B"}, {"freq": "B", "irregular": "fill"})
        holidays = ("", ", and make holidays rows of missing values")
        for reading, more in zip(ways, holidays, strict=True):
            with suppress(DataError):
                evened = read_with_marks(table, replace(settings, **reading).layout)
                options = _reading_options(reading)
                return _reading(
                    *evened,
                    reading,
                    f"{finding}; no row is on a Saturday or Sunday",
                    f"count days from Monday to Friday{more}: {' '.join(options)}",
                )
    cycle = usual_horizon(series)
    if settings.cycle == "auto" and not counts_left_out(series) and (empty := _never_there(series, cycle)):
        reading = {"irregular": "by_row", "cycle": cycle - empty}
        return _reading(
            *read_with_marks(table, replace(settings, **reading).layout),
            reading,
            f"{finding}; {empty} of {cycle} phases of the cycle have no rows, and all others always do",
            f"count the rows, {cycle - empty} to a cycle: {' '.join(_reading_options(reading))}",
        )
    grid = f"{finding}; on the even grid the table has {series.rows:,} rows"
    return _reading(source, marks, {"irregular": "fill"}, grid, "put the rows on the even grid: --irregular fill")


def _reading(source: Table, marks: list[Mark], reading: dict[str, Any], finding: str, remedy: str) -> Opened:
    return Opened(source, marks, reading, (Advice("uneven times", finding, remedy, _reading_options(reading)),))


def _reading_options(reading: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"--{name} {value}" for name, value in reading.items())


def _never_there(series: Series, cycle: int) -> int:
    """Return how many phases of a cycle have no row, if all others always have one; otherwise 0."""
    if cycle < 2 or series.rows < 3 * cycle:
        return 0
    absent, phase = np.isnan(series.values).all(axis=1), series.clock.phase(0, series.rows, cycle)
    never = np.array([absent[phase == each].all() for each in range(cycle)])
    return int(never.sum()) if (absent == never[phase]).all() else 0
