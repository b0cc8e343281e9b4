"""Comparisons: why a forecast is higher or lower than another one of the same model, as changes that add up.

Every change is a difference of two amounts of receipts, so that all changes add up to the difference of the two
printed forecasts, to the last digit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from typing import Literal

from ibforecast.core import words
from ibforecast.core.errors import require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.limits import LIMIT
from ibforecast.core.receipt import (
    COARSE,
    UNREAD,
    Receipt,
    Step,
    adding_up,
    decimals_of,
    places,
    printed,
    rounded,
    shown,
    span,
)
from ibforecast.core.zones import without_offsets

Kind = Literal["calendar", "re-weighted", "new", "left", "mask", "known ahead", "unread", "limit"]
"""What changed between two forecasts.

"calendar" is the forecast from the profile. "re-weighted" values were read by both forecasts. "mask" values were in
both windows and read by only one. "new" values were not in the window of the other forecast, and those that "left" are
not in the window of this one. "known ahead" is a covariate, "unread" the effect of values that were not read, and
"limit" that of the limits of the channel.
"""

LINES = 8
"""The largest number of lines of a comparison in words."""

NAMES: dict[Kind, str] = {
    "calendar": "the calendar: the profile at another time",
    "re-weighted": "{}, read by both, weighted differently now",
    "new": "{}, new values",
    "left": "{}, no longer in the window",
    "mask": "{}, read by only one of the two",
    "known ahead": "{}, known ahead",
    "unread": UNREAD,
    "limit": LIMIT,
}


@dataclass(frozen=True)
class Reason:
    """The sum of the changes of one kind and channel, or of all that are not named, and what they are."""

    change: float
    text: str


@dataclass(frozen=True)
class Change:
    """An entry of a comparison: its amounts in the other receipt and in this one, and their difference.

    An amount that a receipt does not have is 0.
    """

    kind: Kind
    channel: str
    start: str
    end: str
    before: float
    after: float
    change: float


@dataclass(frozen=True)
class Comparison:
    """Two receipts of one channel and step, and the changes that add up to the difference of their forecasts."""

    before: Receipt
    after: Receipt
    made_before: str
    made_after: str
    changes: tuple[Change, ...]
    decimals: int
    """How many decimals the numbers in words have."""

    zone: str | None = None
    """The time zone, which words name once; None if times have none."""

    @property
    def difference(self) -> float:
        """The forecast minus the other one, as decimal numbers."""
        return float(printed(self.after.forecast) - printed(self.before.forecast))

    @property
    def adds_up(self) -> bool:
        """Whether the changes add up to the difference exactly, as decimal numbers."""
        return sum(printed(each.change) for each in self.changes) == printed(self.difference)

    @property
    def totals(self) -> tuple[float, float]:
        """The other forecast and this one, as words print them."""
        before, after = (rounded(each.forecast, self.decimals) for each in (self.before, self.after))
        return before, after

    def reasons(self) -> tuple[Reason, ...]:
        """Return the largest reasons, and then the sum of all others, rounded so that they add up to the difference.

        The difference is that of the two forecasts as words print them.
        """
        sums = self._sums()
        large = [each for each in sums if rounded(each[0], self.decimals)]
        named = large if len(large) == len(sums) < LINES else large[: LINES - 2]
        if rest := sums[len(named) :]:
            others = "other reasons together" if len(rest) > 1 else "other reason"
            named = [*named, (sum((change for change, _ in rest), 0.0), f"{len(rest)} {others}")]
        before, after = map(printed, self.totals)
        amounts = adding_up([change for change, _ in named], float(after - before), self.decimals) if named else []
        return tuple(Reason(amount, text) for amount, (_, text) in zip(amounts, named, strict=True))

    def in_words(self) -> str:
        """Return the difference and its largest reasons, one a line; the last line sums all others."""
        before, after = self.totals
        zone = "" if self.zone is None else f" ({self.zone})"
        what = "The mean forecast" if self.after.step == "mean" else f"Step {self.after.step} of the forecast"
        headline = (
            f"{what} of {self.after.channel} made at {self._moments[self.made_after]}{zone} is "
            f"{self._than(float(printed(after) - printed(before)))} the one made at {self._moments[self.made_before]}: "
            f"{shown(after, self.decimals)} instead of {shown(before, self.decimals)}."
        )
        lines = [f"{shown(reason.change, self.decimals, '+')}: {reason.text}" for reason in self.reasons()]
        return "\n".join([headline, *lines])

    def _than(self, difference: float) -> str:
        if not difference:
            return "about equal to" if self.difference else "equal to"
        return f"{shown(abs(difference), self.decimals)} {'higher' if difference > 0 else 'lower'} than"

    def _sums(self) -> list[tuple[float, str]]:
        """Return the sum of the changes of each kind and channel, largest first, without sums of 0."""
        sums = []
        for (kind, channel), group in groupby(sorted(self.changes, key=_kind_and_channel), key=_kind_and_channel):
            changes = list(group)
            change = float(sum((printed(each.change) for each in changes), Decimal(0)))
            if change:
                sums.append((change, f"{NAMES[kind].format(channel)}{self._most(kind, changes)}"))
        return sorted(sums, key=lambda each: -abs(each[0]))

    def _most(self, kind: Kind, changes: list[Change]) -> str:
        """Return the place of the largest change, if there are several in different places."""
        if kind in ("calendar", "known ahead", "unread", "limit") or len(changes) == 1:
            return ""
        largest = max(changes, key=lambda each: abs(each.change))
        return f" (most: {words.span_between(self._moments[largest.start], self._moments[largest.end])})"

    @cached_property
    def _moments(self) -> dict[str, str]:
        """The times in words, by the times of the changes. They need no offsets, because the zone is named."""
        times = {self.made_before, self.made_after, *(time for each in self.changes for time in (each.start, each.end))}
        return dict(zip(times, times if self.zone is None else without_offsets(list(times)), strict=True))


def compare(explained: ExplainedForecast, other: ExplainedForecast, channel: str, step: Step = "mean") -> Comparison:
    """Return why a channel's forecast differs from that of another explanation, usually an earlier one."""
    mine, theirs = explained.weights_sha256, other.weights_sha256
    require(
        mine == theirs and explained.units.same_as(other.units),
        "only explanations of one model can be compared",
        f"weights {mine[:12]} and {theirs[:12]}" if mine != theirs else "the same fingerprint with other units",
        "explain both moments with the same model",
    )
    before, after = other.itemised(channel, step), explained.itemised(channel, step)
    changes = tuple(_changes(explained, after, other, before))
    decimals = decimals_of(float(explained.units.std[explained.channels.index(channel)]), COARSE)
    return Comparison(before, after, other.at, explained.at, changes, decimals, explained.clock.zone)


@dataclass(frozen=True)
class _Place:
    """A token that was read: its channel, the numbers of its first and last row, their times, and its amount."""

    column: int
    first: int
    last: int
    start: str
    end: str
    amount: Decimal
    after: bool
    """Whether the token is of this forecast, and not of the other one."""


def _changes(
    explained: ExplainedForecast, after: Receipt, other: ExplainedForecast, before: Receipt
) -> Iterator[Change]:
    """Yield the changes: calendar, read places from old to new, known ahead, unread, limit."""
    start, end = span(explained, after.step)
    yield _change("calendar", after.channel, start, end, before.calendar, after.calendar)
    ours, theirs = _rows(explained), _rows(other)
    read = [*_read(other, before, theirs, False), *_read(explained, after, ours, True)]
    for group in _overlapping(read):
        kind = _kind(group, set(theirs if group[0].after else ours))
        first, last = group[0], max(group, key=lambda place: place.last)
        amounts = [sum((place.amount for place in group if place.after is side), Decimal(0)) for side in (False, True)]
        yield _change(kind, explained.channels[first.column], first.start, last.end, *map(float, amounts))
    for covariate, was, now in zip(explained.covariates, before.known, after.known, strict=True):
        yield _change("known ahead", covariate, start, end, was, now)
    if after.unread is not None and before.unread is not None:
        times = explained.times
        yield _change("unread", after.channel, times[0], times[explained.look_back - 1], before.unread, after.unread)
    if after.limit is not None and before.limit is not None:
        yield _change("limit", after.channel, start, end, before.limit, after.limit)


def _rows(explained: ExplainedForecast) -> list[int]:
    """Return a number for each row of the look-back, the same in every window of a table."""
    clock = explained.clock
    if clock.row is not None:  # times may repeat if rows are counted
        return list(range(clock.row, clock.row + explained.look_back))
    numbers: list[int] = clock.stamps[: explained.look_back].astype("int64").tolist()
    return numbers


def _read(explained: ExplainedForecast, receipt: Receipt, rows: list[int], after: bool) -> Iterator[_Place]:
    for (patch, column), amount in zip(places(explained), receipt.read, strict=True):
        steps = explained.steps(patch)
        first, last = steps.start, steps.stop - 1
        times = explained.times[first], explained.times[last]
        yield _Place(column, rows[first], rows[last], *times, printed(amount), after)


def _overlapping(read: list[_Place]) -> list[list[_Place]]:
    """Group the tokens that share values, from old to new.

    The patches of two windows need not line up. An amount belongs to a whole token, so tokens that share some values
    are compared together.
    """
    groups: list[list[_Place]] = []
    for place in sorted(read, key=lambda place: (place.column, place.first, place.last)):
        group = groups[-1] if groups else []
        if group and group[0].column == place.column and place.first <= max(each.last for each in group):
            group.append(place)
        else:
            groups.append([place])
    return sorted(groups, key=lambda group: (group[0].first, group[0].column))


def _kind(group: list[_Place], elsewhere: set[int]) -> Kind:
    """Return what happened to the values of overlapping tokens; `elsewhere` has the rows of the opposite window."""
    if len(group) > 1:
        return "re-weighted"
    place = group[0]
    if place.first in elsewhere and place.last in elsewhere:
        return "mask"
    return "new" if place.after else "left"


def _change(kind: Kind, channel: str, start: str, end: str, before: float, after: float) -> Change:
    return Change(kind, channel, start, end, before, after, float(printed(after) - printed(before)))


def _kind_and_channel(change: Change) -> tuple[Kind, str]:
    return change.kind, change.channel
