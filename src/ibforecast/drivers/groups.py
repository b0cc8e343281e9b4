"""Groups of windows: by the time of the forecast, or by how far it is from the calendar."""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Int64, Shaped

from ibforecast.core.calendar import MONDAY, NOT_SET, Clock
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.errors import DataError, UsageError, require, require_choice
from ibforecast.data.windows import Windows

By = Literal["quarter", "month", "weekday", "hour", "event"]
"""How windows are grouped: by the local time at which the forecast was made, or by how far it is from the calendar.

In "event" the first group has the tenth of the windows in which the forecast of a channel is furthest from the
calendar, on average over the horizon.
"""


NAMES: dict[By, tuple[str, ...]] = {
    "quarter": ("Q1", "Q2", "Q3", "Q4"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "hour": tuple(f"{hour:02}:00" for hour in range(24)),
    "event": ("event", "other"),
}
"""The names of the groups, in their order."""


GOLDEN = (5**0.5 - 1) / 2
"""The fractional parts of its multiples are spread evenly over 0 to 1 and never repeat."""


EVENTS = 10
"""One of this number of windows is an event."""


def chosen_starts(windows: Windows, clock: Clock, count: int, by: By | None, split: str) -> list[int]:
    """Return the first rows of `count` of the windows of a part of a table, in increasing order.

    They are evenly spaced, or about equally many of each group `by` the time of the forecast. Windows that cannot be
    grouped are refused before any work.
    """
    require(count >= 1, "windows must be at least 1", f"windows={count}", "give a positive number")
    if by is not None:
        require_choice("by", by, get_args(By))
    starts = windows.starts
    if by in (None, "event"):
        chosen = evenly_spaced(count, len(starts)).numpy()
    else:
        ends = starts.numpy() + windows.look_back - 1
        groups = numbers_of(np.full(len(ends), NOT_SET) if clock.numbered else clock.wall[ends], by)
        check_groups(groups[:, None], by, split)
        chosen = from_groups(groups, count)
    rows: list[int] = starts[chosen].tolist()
    return rows


def check_groups(groups: Int64[np.ndarray, "window forecast"], by: By, split: str) -> None:
    """Refuse windows that are all in one group."""
    if len(groups) and (groups == groups[0]).all():
        more = "more rows" if split == "all" else 'split="all"'
        raise DataError(
            f"windows must be in at least two groups by {by}",
            f"all {len(groups)} in {NAMES[by][int(groups[0, 0])]!r}",
            f"use {more}, another number of windows, or another `by`",
        )


def numbers_of(moments: Shaped[np.ndarray, " window"], by: By) -> Int64[np.ndarray, " window"]:
    """Return the number of the group of every local time."""
    if np.isnat(moments).any():
        raise UsageError(f"groups by {by} need times", "rows that are numbered", 'try by="event"')
    date = moments.astype("datetime64[D]")
    month = date.astype("datetime64[M]").astype(np.int64) % 12
    numbers = {
        "quarter": month // 3,
        "month": month,
        "weekday": (date - MONDAY.astype("datetime64[D]")).astype(np.int64) % 7,
        "hour": (moments - date).astype("timedelta64[h]").astype(np.int64),
    }
    return np.asarray(numbers[by])


def from_groups(groups: Int64[np.ndarray, " window"], count: int) -> Int64[np.ndarray, " chosen"]:
    """Return the indices of about equally many windows of each group, `count` in all, in increasing order."""
    chosen: list[int] = []
    members = sorted((np.flatnonzero(groups == number) for number in np.unique(groups)), key=len)
    for place, own in enumerate(members):
        share = min((count - len(chosen)) // (len(members) - place), len(own))
        # One of each of `share` equal parts, at varying places: even steps could be of the same hour or weekday.
        edges = np.arange(share + 1) * len(own) // max(share, 1)
        places = np.arange(len(chosen), len(chosen) + share) * GOLDEN % 1
        chosen += own[edges[:-1] + (places * np.diff(edges)).astype(np.int64)].tolist()
    return np.array(sorted(chosen), dtype=np.int64)
