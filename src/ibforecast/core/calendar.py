"""Time axes: the length of a step, the moment of each row, and the phase of that moment in the cycle."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from ibforecast.core.errors import DataError, UsageError
from ibforecast.core.standardiser import frozen
from ibforecast.core.zones import check_years, to_utc, to_wall, utc_of

DAY = 86_400
SECOND = np.timedelta64(1_000_000, "us")
MONDAY = np.datetime64("1970-01-05", "us")
"""The moment of phase 0, a Monday at midnight."""

NUMBERED = re.compile(r"([1-9]\d{0,9}) steps?")
"""The frequency of rows that are numbered instead of dated, such as "1 step"."""

NOT_SET = np.datetime64("NaT", "us")
IN_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
IN_MONTHS = {"mo": 1, "q": 3, "y": 12}
WORKDAYS = "b"
"""The unit of days from Monday to Friday; holidays are among them."""

SPELLINGS = (
    {unit: unit for unit in (*IN_SECONDS, *IN_MONTHS, WORKDAYS)}
    | {"S": "s", "sec": "s", "T": "min", "m": "min", "H": "h", "D": "d", "W": "w", "B": WORKDAYS}
    | {"M": "mo", "MS": "mo", "ME": "mo", "Q": "q", "QS": "q", "QE": "q", "Y": "y", "YS": "y", "YE": "y"}
)


@dataclass(frozen=True)
class Frequency:
    """The length of a step: a number of seconds, of calendar months, or of days from Monday to Friday."""

    seconds: int = 0
    months: int = 0
    workdays: int = 0

    def __post_init__(self) -> None:
        lengths = (self.seconds, self.months, self.workdays)
        if min(lengths) < 0 or sum(length > 0 for length in lengths) != 1:
            raise UsageError(
                "a step must be a positive number of seconds or else of months or of workdays",
                f"seconds={self.seconds}, months={self.months}, workdays={self.workdays}",
                "set one of them",
            )

    @classmethod
    def parse(cls, text: str) -> "Frequency":
        """Read a frequency such as "15min", "h", "1d", "W" or "MS": the inverse of `str`."""
        match = re.fullmatch(r"\s*([0-9]{0,9})\s*([A-Za-z]+)(-[A-Za-z]{3})?\s*", text)
        count, unit = (int(match[1] or 1), SPELLINGS.get(match[2], "")) if match else (0, "")
        if count == 0 or not unit:
            raise UsageError(
                "a frequency must be a count and a unit", f"{text!r:.80}", "try '15min', '1h', '1d' or '1mo'"
            )
        return cls(
            seconds=count * IN_SECONDS.get(unit, 0),
            months=count * IN_MONTHS.get(unit, 0),
            workdays=count * (unit == WORKDAYS),
        )

    @classmethod
    def infer(cls, wall: Shaped[np.ndarray, " row"]) -> "Frequency":
        """Return the most common step between these wall-clock times, in months if all times fit the calendar."""
        steps, counts = np.unique(np.diff(wall.astype("datetime64[us]")), return_counts=True)
        steps, counts = steps[steps > 0], counts[steps > 0]
        if not len(steps):
            raise DataError("a time axis must have two different times", f"{len(wall)} rows of one", "add rows")
        step = steps[counts.argmax()]
        if step >= 28 * DAY * SECOND and _fits_months(wall, month_day(wall)):
            return cls(months=int(np.rint(step / (DAY * SECOND) / 30.44)))  # the mean length of a month in days
        if step % SECOND:
            raise DataError("steps must be whole seconds", f"{step / SECOND} s", "round the times")
        return cls(seconds=int(step / SECOND))

    def __str__(self) -> str:
        if self.months:
            return f"{self.months}mo"
        if self.workdays:
            return f"{self.workdays}{WORKDAYS}"
        unit = max((unit for unit in IN_SECONDS if self.seconds % IN_SECONDS[unit] == 0), key=IN_SECONDS.__getitem__)
        return f"{self.seconds // IN_SECONDS[unit]}{unit}"

    @property
    def words(self) -> str:
        """The frequency in words: that of `str`, except for workdays, whose unit few people know."""
        return f"{self.workdays} workday{'s' if self.workdays > 1 else ''}" if self.workdays else str(self)

    @property
    def by_date(self) -> bool:
        """Whether steps are whole days, workdays or months, which keep the time of day when the clock changes."""
        return self.seconds % DAY == 0

    def cycle(self) -> int:
        """Return the number of steps of the natural cycle: a day, an hour, a week or a year."""
        named = {Frequency(DAY): 7, Frequency(7 * DAY): 52, Frequency(months=1): 12, Frequency(months=3): 4}
        named |= {Frequency(workdays=1): 5}
        whole = DAY if self.seconds >= 60 else 3600
        if self in named:
            return named[self]
        if not self.seconds or self.seconds >= whole or whole % self.seconds:
            raise UsageError(
                f"a step of {self} has no natural cycle, so it must be given",
                "cycle='auto'",
                "give `cycle` (fit --cycle) as a number of steps; ibforecast check finds cycles in the values",
            )
        return whole // self.seconds

    def count(self, start: np.datetime64, moments: Shaped[np.ndarray, "*shape"]) -> Int64[np.ndarray, "*shape"]:
        """Return the number of whole steps from `start` to each moment."""
        if self.months:
            months = moments.astype("datetime64[M]") - start.astype("datetime64[M]")
            return np.asarray(months.astype(np.int64) // self.months)
        if self.workdays:
            days = np.busday_count(start.astype("datetime64[D]"), moments.astype("datetime64[D]"))
            return np.asarray(days // self.workdays, dtype=np.int64)
        return np.asarray((moments - start) // (self.seconds * SECOND), dtype=np.int64)

    def after(self, start: np.datetime64, steps: Int64[np.ndarray, " row"], day: int) -> Shaped[np.ndarray, " row"]:
        """Return the moments `steps` after `start`; months use `day`, or their last day if they are shorter."""
        if self.workdays:
            dates = np.busday_offset(start.astype("datetime64[D]"), steps * self.workdays, roll="forward")
            return np.asarray(dates.astype("datetime64[us]") + (start - start.astype("datetime64[D]")))
        if not self.months:
            return np.asarray(start + steps * self.seconds * SECOND)
        month = start.astype("datetime64[M]") + steps * self.months
        date = month.astype("datetime64[D]") + np.minimum(day, _days_in(month)) - 1
        return np.asarray(date.astype("datetime64[us]") + (start - start.astype("datetime64[D]")))


def month_day(wall: Shaped[np.ndarray, " row"]) -> int:
    """Return the day of the month of these times: 31 if every time is on the last day of its month."""
    month = wall.astype("datetime64[M]")
    day = (wall.astype("datetime64[D]") - month.astype("datetime64[D]")).astype(np.int64) + 1
    return 31 if (day == _days_in(month)).all() else int(day.max())


def _fits_months(wall: Shaped[np.ndarray, " row"], day: int) -> bool:
    monthly = Frequency(months=1)
    return bool((monthly.after(wall[0], monthly.count(wall[0], wall), day) == wall).all())


def _days_in(month: Shaped[np.ndarray, " row"]) -> Int64[np.ndarray, " row"]:
    return np.asarray((month + 1).astype("datetime64[D]") - month.astype("datetime64[D]"), dtype=np.int64)


@dataclass(frozen=True)
class Clock:
    """The time axis of a table: one moment per row, and how it continues after the last.

    `stamps` are in UTC if there is a `zone` and wall-clock times otherwise. With `by_row`, phases are row numbers
    counted from `origin`, the first moment of the training table, instead of wall-clock times. For a table without
    that moment the steps since `origin` are counted, so each of its rows must follow the previous one by one step.
    """

    stamps: Shaped[np.ndarray, " row"]
    frequency: Frequency
    zone: str | None = None
    by_row: bool = False
    origin: np.datetime64 = NOT_SET
    numbered: bool = False
    """Whether rows are labelled by number: whole seconds since a Monday at midnight."""
    countable: bool = True
    """Whether a row's number follows from its time: true if the training rows were evenly spaced."""
    row: int | None = None
    """The number of the first row, counted from the origin; None if it must be computed from the times."""

    def __post_init__(self) -> None:
        if np.isnat(self.origin) and len(self.stamps):
            object.__setattr__(self, "origin", self.stamps[0])

    def counted_from(self, origin: np.datetime64, countable: bool = True) -> "Clock":
        """Return the same axis with its rows counted from another origin."""
        return replace(self, origin=origin, countable=countable)

    @cached_property
    def wall(self) -> Shaped[np.ndarray, " row"]:
        """The local time of every row."""
        return to_wall(self.stamps, self.zone)

    @cached_property
    def offset(self) -> int:
        """Number of rows from the origin to the first row. Raises DataError if it does not follow from the times."""
        if self.row is not None:
            return self.row
        if (same := self.stamps == self.origin).any():
            return -int(same.argmax())
        if not self.countable:
            raise self._unplaced("and those of training did not")
        steps = self._steps_from(self.origin)
        if len(off := np.flatnonzero(np.diff(steps) != 1) + 1):
            before, at = self.labels(int(off[0]) - 1, 2)
            raise self._unplaced(f"in which {at} follows {before}")
        return int(steps[0])

    @property
    def even(self) -> bool:
        """Whether each row follows the one before it by one step."""
        return bool((np.diff(self._steps_from(self.stamps[0])) == 1).all())

    def _unplaced(self, why: str) -> DataError:
        """Return the error for a table whose row numbers are unknown; `why` ends the description of the table."""
        first = self._texts(np.array([self.origin]))[0]
        return DataError(
            (
                f"rows read by number must be counted from the first one of training, {first}, unless all follow "
                f"each other in even steps, here of {self.frequency.words}"
            ),
            f"a table from {self.labels(0, 1)[0]} on, {why}",
            "give the table from its beginning",
        )

    def times(self, first: int, count: int) -> Shaped[np.ndarray, " count"]:
        """Return the moments of `count` rows from `first` on; the steps continue beyond the end of the table."""
        inside = self.stamps[first : first + count]
        ahead = np.arange(max(first, len(self.stamps)), first + count) - (len(self.stamps) - 1)
        if not len(ahead):
            return inside
        if not self.frequency.by_date:
            return np.concatenate([inside, self.frequency.after(self.stamps[-1], ahead, 1)])
        beyond = self.frequency.after(self.wall[-1], ahead, month_day(self.wall))
        return np.concatenate([inside, to_utc(beyond, self.zone)])

    def ending_at(self, moment: str | datetime | np.datetime64, count: int) -> "Clock":
        """Return the axis of the `count` steps up to a moment, which need not be in the table."""
        last, steps = self._utc(moment), np.arange(1 - count, 1)
        if not self.frequency.by_date:
            return replace(self, stamps=self.frequency.after(last, steps, 1))
        wall = to_wall(np.array([last]), self.zone)
        # A moment on the last day of its month does not show which day the others are on; the table may.
        day = month_day(np.concatenate([self.wall, wall]))
        return replace(self, stamps=to_utc(self.frequency.after(wall[0], steps, day), self.zone))

    def window(self, first: int, count: int) -> "Clock":
        """Return the axis of `count` rows from `first` on; if rows are counted, with the number of the first."""
        row = self.offset + first if self.by_row else None
        return replace(self, stamps=frozen(self.times(first, count).copy()), row=row)

    def phase(self, first: int, count: int, cycle: int) -> Int64[np.ndarray, " count"]:
        """Return the phase of these rows in the cycle: by wall clock since a Monday at midnight, or by row number.

        Paper: Eq. 2, τ.
        """
        if not self.by_row:
            # Computed per step: when the clock changes, phases repeat or are skipped and do not follow from the first.
            return self.frequency.count(MONDAY, to_wall(self.times(first, count), self.zone)) % cycle
        return (self.offset + first + np.arange(count)) % cycle

    @property
    def step(self) -> str:
        """The frequency as documents write it and `of_labels` reads it."""
        count = self.frequency.seconds
        return f"{count} step{'s' if count > 1 else ''}" if self.numbered else str(self.frequency)

    def lasting(self, steps: int) -> str:
        """Return a number of steps as a length of time: "hour", "day" or "week", or else the number of steps."""
        names = {3600: "hour", DAY: "day", 7 * DAY: "week"}
        number = f"{steps} step{'s' if steps > 1 else ''}"
        return number if self.by_row or self.numbered else names.get(self.frequency.seconds * steps, number)

    @property
    def day(self) -> int:
        """The number of steps of a day; 1 if they are longer, do not divide it, or are counted by row."""
        seconds = self.frequency.seconds
        divides = seconds > 0 and DAY % seconds == 0 and not (self.by_row or self.numbered)
        return DAY // seconds if divides else 1

    def calendar(self, first: int, count: int) -> Float64[np.ndarray, "count 4"]:
        """Return hour, weekday, day of month and day of year of these rows by wall clock, each scaled to [−½, ½]."""
        wall = to_wall(self.times(first, count), self.zone).astype("datetime64[us]")
        date = wall.astype("datetime64[D]")
        month, year = (date.astype(unit).astype("datetime64[D]") for unit in ("datetime64[M]", "datetime64[Y]"))
        weekday = (date - MONDAY.astype("datetime64[D]")) % np.timedelta64(7, "D")
        parts = ((wall - date).astype("timedelta64[h]"), weekday, date - month, date - year)
        return np.stack([part.astype(np.int64) for part in parts], axis=1) / (23, 6, 30, 365) - 0.5

    def labels(self, first: int, count: int, shown: slice = slice(None)) -> tuple[str, ...]:
        """Return the moments of `times`, or those `shown`, as local ISO text, without parts that are zero in all."""
        return self._texts(self.times(first, count), shown)

    @classmethod
    def of_labels(cls, labels: Sequence[str], frequency: str, zone: str | None, row: int | None = None) -> "Clock":
        """Read a time axis from its labels: the inverse of `labels`, which refuses any other spelling.

        Labels of a frequency such as "1 step" are whole numbers, counted in seconds from a Monday at midnight. With a
        `row`, the number of the first row, phases are counted by row number.
        """
        if not labels:
            raise DataError("a time axis must have a time", "none", "give the time of every step")
        numbers = NUMBERED.fullmatch(frequency)
        step, read = (Frequency(int(numbers[1])), _number) if numbers else (Frequency.parse(frequency), _moment)
        moments = np.array([read(label, zone) for label in labels], dtype="datetime64[us]")
        clock = cls(moments, step, zone, by_row=row is not None, numbered=numbers is not None, row=row)
        if frequency != clock.step:
            raise DataError(
                "a frequency must be written as this library writes it", f"{frequency!r:.80}", f"try {clock.step!r}"
            )
        for label, again in zip(labels, clock.labels(0, len(labels)), strict=True):
            if label != again:
                raise DataError(
                    "times must be written as this library writes them, with the offset of their zone",
                    f"{label!r} in the zone {zone}",
                    f"try {again!r}",
                )
        clock.check_steps()
        return clock

    def check_steps(self) -> None:
        """Refuse times that decrease or, unless rows are counted, are not evenly spaced."""
        if len(back := np.flatnonzero(np.diff(self.stamps) < np.timedelta64(0))):
            raise DataError("times must increase", f"a step back in row {int(back[0]) + 1}", "sort the rows")
        even = self.wall if self.frequency.by_date else self.stamps
        expected = self.frequency.after(even[0], np.arange(len(even)), month_day(even))
        if not self.by_row and len(off := np.flatnonzero(expected != even)):
            row = int(off[0])
            raise DataError(
                f"times must follow each other in even steps, here of {self.frequency.words}",
                f"{even[row]} in row {row} where {expected[row]} belongs",
                "give a missing moment a row of NaN",
            )

    @property
    def on_grid(self) -> bool:
        """Whether every row is a whole number of steps from the origin."""
        zone = self.zone if self.frequency.by_date else None
        moments = to_wall(np.append(self.origin, self.stamps), zone)
        steps = np.append(0, self._steps_from(self.origin))
        return bool((self.frequency.after(moments[0], steps, month_day(moments)) == moments).all())

    def row_of(self, moment: str | datetime | np.datetime64) -> int:
        """Return the row of a moment; a moment without an offset is local time."""
        stamp = self._utc(moment)
        row = int(np.searchsorted(self.stamps, stamp))
        if row < len(self.stamps) and self.stamps[row] == stamp:
            return row
        nearest = int(np.abs(self.stamps - stamp).argmin())
        first, near, last = (self.labels(at, 1)[0] for at in (0, nearest, len(self.stamps) - 1))
        raise DataError(
            f"a moment must be a time of the table, which runs from {first} to {last}", moment, f"the nearest is {near}"
        )

    def _steps_from(self, moment: np.datetime64) -> Int64[np.ndarray, " row"]:
        """Return the number of steps from a moment to each row, rounded; days and months by the wall clock."""
        zone = self.zone if self.frequency.by_date else None
        start, moments = to_wall(np.array([moment]), zone)[0], to_wall(self.stamps, zone)
        return self.frequency.count(start, moments + self.frequency.seconds * SECOND // 2)

    def _texts(self, moments: Shaped[np.ndarray, " row"], shown: slice = slice(None)) -> tuple[str, ...]:
        if self.numbered:
            return tuple(map(str, ((moments[shown] - MONDAY) // SECOND).tolist()))
        return iso_texts(moments, to_wall(moments, self.zone), self.frequency.by_date, self.zone is not None, shown)

    def _utc(self, moment: str | datetime | np.datetime64) -> np.datetime64:
        if self.numbered and re.fullmatch(r"-?\d{1,15}", str(moment)):
            return np.datetime64(MONDAY + int(str(moment)) * SECOND)
        try:
            time = datetime.fromisoformat(str(moment)) if not isinstance(moment, datetime) else moment
        except ValueError as error:
            # The last row: before the first ones there are too few to forecast from.
            last = self.labels(len(self.stamps) - 1, 1)[0]
            raise UsageError("a moment must be an ISO time", repr(moment), f"try {last!r}") from error
        if time.tzinfo is not None:
            if self.zone is None:
                raise UsageError("the table's times have no zone", moment, "leave out the offset, or set the zone")
            return utc_of(time)
        wall = np.array([time], dtype="datetime64[us]")
        early, late = to_utc(wall, self.zone)[0], to_utc(wall, self.zone, fold=1)[0]
        if early < late and np.isin([early, late], self.stamps).all():
            both = " or ".join(self.labels(int(np.searchsorted(self.stamps, at)), 1)[0] for at in (early, late))
            raise UsageError(f"the clock of {self.zone} showed this time twice", moment, f"write {both}")
        if early > late and not self.frequency.by_date:
            around = np.array([late, early])
            either = " or ".join(iso_texts(around, to_wall(around, self.zone), False, True))
            raise UsageError(
                f"a local time must be one the clock of {self.zone} showed exactly once",
                f"{moment}, which it never showed",
                f"write {either}",
            )
        return late if late in self.stamps else early  # type: ignore[no-any-return]


def iso_texts(
    moments: Shaped[np.ndarray, " row"],
    wall: Shaped[np.ndarray, " row"],
    by_date: bool,
    zoned: bool,
    shown: slice = slice(None),
) -> tuple[str, ...]:
    """Return moments, or those `shown`, as local ISO text, as dates if steps are whole days and all are midnights."""
    check_years(wall)
    if by_date and (wall == wall.astype("datetime64[D]")).all():
        return tuple(wall[shown].astype("datetime64[D]").astype(str).tolist())
    unit = next(unit for unit in ("m", "s", "us") if (wall == wall.astype(f"datetime64[{unit}]")).all())
    moments, wall = moments[shown], wall[shown]
    texts = [text.replace("T", " ") for text in wall.astype(f"datetime64[{unit}]").astype(str).tolist()]
    if not zoned:
        return tuple(texts)
    offsets = ((wall - moments) // SECOND).tolist()
    return tuple(f"{text}{_signed(offset)}" for text, offset in zip(texts, offsets, strict=True))


def _number(label: str, zone: str | None) -> np.datetime64:
    if zone is not None or not re.fullmatch(r"-?\d{1,15}", label):
        raise DataError("times must be whole numbers without a zone", f"{label!r:.80}, zone {zone}", "number the steps")
    return np.datetime64(MONDAY + int(label) * SECOND)


def _moment(label: str, zone: str | None) -> np.datetime64:
    try:
        moment = datetime.fromisoformat(label)
    except ValueError as error:
        raise DataError("times must be ISO times", f"{label!r:.80}", "try '2024-01-31 18:00'") from error
    if moment.tzinfo is None:
        return np.datetime64(to_utc(np.array([moment], dtype="datetime64[us]"), zone)[0])
    if zone is None:
        raise DataError("times without a zone must have no offset", f"{label!r:.80}", "leave out the offset")
    return utc_of(moment)


def _signed(seconds: int) -> str:
    """Return an offset; it has seconds only where a clock followed the sun, before there were time zones."""
    minutes, rest = divmod(abs(seconds), 60)
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}{f':{rest:02}' if rest else ''}"
