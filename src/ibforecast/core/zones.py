"""Time zones: conversion between UTC, which runs evenly, and the wall clock, which people follow."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
from jaxtyping import Bool, Int64, Shaped

from ibforecast.core.errors import DataError, UsageError

YEARS = (np.datetime64("0002-01-01", "us"), np.datetime64("9999-01-01", "us"))
"""The first moment that is allowed, and the first later one that is not. With any offset, both are dates of Python."""

IN_YEARS = "a time must be in the years 2 to 9998"


PLACES = (
    *("Europe/Berlin", "Europe/London", "Europe/Athens"),
    *("America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Halifax"),
    *("Australia/Sydney", "Australia/Adelaide", "Pacific/Auckland", "America/Santiago", "Asia/Jerusalem"),
)
"""Places whose clock changes twice a year, to propose the one whose offsets a table has."""

LOOKED_AT = 1000
"""Moments of a table, evenly spaced, whose offsets are compared with those of a place."""


def place_with(offsets: Sequence[str], moments: Shaped[np.ndarray, " row"]) -> str | None:
    """Return a place whose clock has these offsets, such as "+01:00" and "+02:00", at these moments in UTC, or None."""
    some = moments[np.unique(np.linspace(0, len(moments) - 1, LOOKED_AT).round().astype(np.int64))]
    wanted = {np.timedelta64(int(text[0] + "1") * (60 * int(text[1:3]) + int(text[4:6])), "m") for text in offsets}
    return next(
        (place for place in PLACES if set((to_wall(some, place) - some).astype("timedelta64[m]")) == wanted), None
    )


def find_zone(name: str) -> tzinfo:
    """Return the time zone of a name such as "Europe/Berlin" or an offset such as "+02:00"."""
    if match := re.fullmatch(r"([+-])(\d\d):(\d\d)", name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    try:
        return ZoneInfo(name) if match is None else timezone(-offset if match[1] == "-" else offset)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError("a time zone must be one of the IANA list", repr(name), "try 'Europe/Berlin'") from error


def without_offsets(labels: Sequence[str]) -> tuple[str, ...]:
    """Return ISO times without their offsets, except for local times that the clock showed twice."""
    plain = [re.sub(r"(?<=:\d\d)[+-]\d\d:\d\d(:\d\d)?$", "", label) for label in labels]
    count = Counter(plain)
    return tuple(label if count[short] > 1 else short for label, short in zip(labels, plain, strict=True))


def outside_years(moments: Shaped[np.ndarray, " row"]) -> Bool[np.ndarray, " row"]:
    """Return which moments are not in `YEARS`."""
    return np.asarray((moments < YEARS[0]) | (moments >= YEARS[1]))


def check_years(moments: Shaped[np.ndarray, " row"]) -> Shaped[np.ndarray, " row"]:
    """Return moments; raise DataError if one of them is not in `YEARS`."""
    if (outside := outside_years(moments)).any():
        got = str(moments[outside][0]).replace("T", " ")
        raise DataError(IN_YEARS, got, "correct it, or number the rows instead of dating them")
    return moments


def utc_of(time: datetime) -> np.datetime64:
    """Return a time that has an offset in UTC."""
    wall, offset = time.replace(tzinfo=None), time.utcoffset()
    return np.datetime64(check_years(np.array([wall], dtype="datetime64[us]") - np.timedelta64(offset, "us"))[0])


def to_wall(moments: Shaped[np.ndarray, " row"], zone: str | None) -> Shaped[np.ndarray, " row"]:
    """Convert UTC to the zone's wall-clock time."""
    if zone is None:
        return moments
    place = find_zone(zone)
    # Clocks change only at quarters of an hour, so one lookup per quarter is enough.
    quarters, which = np.unique(check_years(moments).astype("datetime64[15m]"), return_inverse=True)
    offsets = _offsets(moment.replace(tzinfo=UTC).astimezone(place) for moment in _plain(quarters))
    return np.asarray(moments + offsets[which])


def to_utc(wall: Shaped[np.ndarray, " row"], zone: str | None, fold: int = 0) -> Shaped[np.ndarray, " row"]:
    """Convert wall-clock time to UTC; `fold` 0 or 1 selects the first or second of two equal local times."""
    if zone is None:
        return wall
    place = find_zone(zone)
    return np.asarray(wall - _offsets(moment.replace(tzinfo=place, fold=fold) for moment in _plain(check_years(wall))))


def uncertain(wall: Shaped[np.ndarray, " row"], zone: str | None) -> Bool[np.ndarray, " row"]:
    """Return which wall-clock times the zone's clock showed twice, or never."""
    return np.asarray(to_utc(wall, zone) != to_utc(wall, zone, fold=1))


def in_order(
    wall: Shaped[np.ndarray, " row"], zone: str, groups: Shaped[np.ndarray, " row"] | None = None
) -> tuple[Shaped[np.ndarray, " row"], Bool[np.ndarray, " row"]]:
    """Convert the wall-clock times of a table to UTC, and return which of them never occurred or are ambiguous.

    The order of rows distinguishes times that the clock showed twice: where they are repeated, the first are those
    before the clock was put back. `groups` says which rows are of one series; by default all are.
    """
    early, late = to_utc(wall, zone), to_utc(wall, zone, fold=1)
    unsure, moments = early != late, early.copy()
    for group in [np.arange(len(wall))] if groups is None else _members(groups, unsure):
        places = np.flatnonzero(early[group] < late[group])
        for run in np.split(places, np.flatnonzero(np.diff(places) != 1) + 1):
            rows = group[run]
            if len(back := np.flatnonzero(np.diff(wall[rows]) <= np.timedelta64(0))) == 1:
                second = rows[back[0] + 1 :]
                moments[second], unsure[rows] = late[second], False
    return moments, unsure


def _members(
    groups: Shaped[np.ndarray, " row"], unsure: Bool[np.ndarray, " row"]
) -> list[Int64[np.ndarray, " member"]]:
    """Return all rows of each group that has an unsure row."""
    if not unsure.any():
        return []
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(groups[order][1:] != groups[order][:-1]) + 1
    return [rows for rows in np.split(order, starts) if unsure[rows].any()]


def _plain(moments: Shaped[np.ndarray, " row"]) -> list[datetime]:
    plain: list[datetime] = moments.astype("datetime64[us]").tolist()
    return plain


def _offsets(moments: Iterable[datetime]) -> Shaped[np.ndarray, " row"]:
    return np.array([moment.utcoffset() for moment in moments], dtype="timedelta64[us]")
