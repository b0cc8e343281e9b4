"""An explanation in words: which channels were read where, and which were not."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise, zip_longest
from typing import Any

import numpy as np

from ibforecast.core.explained import ExplainedForecast

TINY = 1e-5
"""A fraction below this is not printed as a number."""

FEW_PLACES = 3
"""The places of a channel are named up to this number, and counted above it."""


def in_words(explained: ExplainedForecast, full: bool) -> str:
    """Return one sentence per line; `full` names every place of every channel."""
    # The full words are part of documents, whose times have offsets.
    times, zone = (explained.times, "") if full else (explained.moments, explained.zone)
    mask = explained.explanation.mask
    read = _read_in_full(explained) if full else _read_in_brief(explained)
    unread = [channel for channel, opened in zip(explained.channels, mask.T, strict=True) if not opened.any()]
    gaps = [
        f"{channel} ({count} of {_patches(explained)})"
        for channel, count in zip(explained.channels, explained.explanation.missing.sum(axis=0), strict=True)
        if count
    ]
    lines = [
        f"Forecast of {times[explained.look_back]} to {times[-1]}, made at {times[explained.look_back - 1]}{zone}.",
        f"It read {explained.open_count} of {_tokens(explained)}: {percent(explained.open_rate)} of the window, "
        f"where the budget allows {percent(explained.budget)}{_chosen(explained)}.",
        f"Read: {'; '.join(read)}." if read else "Read: nothing.",
    ]
    if unread:
        beyond = "" if explained.sealed else " beyond the disclosed context"
        lines.append(f"Nothing was read{beyond} of: {', '.join(unread)}.")
    if explained.sealed:
        lines.append("Unconditionally: no value that was not read can change this forecast, its mask or its context.")
    if gaps:
        lines.append(f"Not readable because of missing values: {'; '.join(gaps)}.")
    if explained.zero_at:
        lines.append(f"Empty cells of the table were read as 0 at {', '.join(explained.zero_at)}.")
    if explained.past:
        lines.append(f"Not forecast: {', '.join(explained.past)}.")
    if explained.covariates:
        lines.append(f"Known ahead, up to {times[-1]}, and part of the context: {', '.join(explained.covariates)}.")
    return "\n".join(lines)


def _chosen(explained: ExplainedForecast) -> str:
    """Return how the places were chosen, with the bits that a choice carries; a sealed model does not choose."""
    if explained.sealed:
        return ", in places that are the same for every window"
    return f"; its gates carry {explained.rate_bits:.1f} bits beyond their prior"


def _tokens(explained: ExplainedForecast) -> str:
    return f"{explained.explanation.mask.size} {'values' if explained.patch_len == 1 else 'tokens'}"


def _patches(explained: ExplainedForecast) -> str:
    return f"{len(explained.explanation.mask)} {'values' if explained.patch_len == 1 else 'patches'}"


def rate_line(explained: ExplainedForecast) -> str:
    """Return a line on how much of the window was read, and how much the budget allows."""
    return (
        f"read {explained.open_count} of {_tokens(explained)}: {percent(explained.open_rate)} of "
        f"the window (budget {percent(explained.budget)})"
    )


def percent(fraction: float) -> str:
    """Return a fraction as a percentage with three significant digits, or as a bound if it is tiny."""
    if 0 < abs(fraction) < TINY:
        return "0 %" if fraction < 0 else f"under {100 * TINY:g} %"  # below 0 it is rounding
    return f"{100 * fraction:{'.0f' if abs(fraction) >= 10 else '.3g'}} %"


def count_of(number: int, noun: str) -> str:
    """Return a number of things, such as "1 window" or "2,500 windows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_difference(stated: Any, own: Any) -> str:
    """Return the first line of `stated` that differs from `own`, or all of it if it is not text, shortened."""
    if isinstance(stated, str) and isinstance(own, str):
        lines = zip_longest(stated.split("\n"), own.split("\n"))
        stated = next((one for one, other in lines if one != other), stated)
    return f"{stated!r:.200}"


def _read_in_full(explained: ExplainedForecast) -> list[str]:
    return [
        f"{channel} ({', '.join(_spans(explained, np.flatnonzero(opened).tolist(), explained.times))})"
        for channel, opened in zip(explained.channels, explained.explanation.mask.T, strict=True)
        if opened.any()
    ]


def _read_in_brief(explained: ExplainedForecast) -> list[str]:
    """Return one item for all channels whose places are described alike."""
    mask, alike = explained.explanation.mask, defaultdict[str, list[str]](list)
    for column in np.flatnonzero(mask.any(axis=0)).tolist():
        alike[_places(explained, column)].append(explained.channels[column])
    return [f"{', '.join(channels)} ({places})" for places, channels in alike.items()]


def _places(explained: ExplainedForecast, column: int) -> str:
    """Return where a channel was read: each span or, if there are many, their number and regular distance."""
    mask = explained.explanation.mask
    patches: list[int] = np.flatnonzero(mask[:, column]).tolist()
    spans = list(_spans(explained, patches, explained.moments))
    if len(spans) <= FEW_PLACES:
        return ", ".join(spans)
    steps = {later - patch for patch, later in pairwise(patches)}
    evenly = f", one in {steps.pop()}" if len(steps) == 1 else ""
    return f"{len(patches)} of {_patches(explained)}{evenly}, {span_of(explained, patches[0], patches[-1])}"


def _spans(explained: ExplainedForecast, patches: list[int], times: tuple[str, ...]) -> Iterator[str]:
    """Yield the time span of each run of consecutive patches."""
    for _, run in groupby(enumerate(patches), key=lambda pair: pair[1] - pair[0]):
        members = [patch for _, patch in run]
        yield span_of(explained, members[0], members[-1], times)


def span_of(explained: ExplainedForecast, first: int, last: int, times: tuple[str, ...] | None = None) -> str:
    """Return the times of a run of patches, as words name them: the first and the last one, or the only one."""
    times, length = explained.moments if times is None else times, explained.patch_len
    start, end = times[first * length], times[(last + 1) * length - 1]
    return start if start == end else f"{start} to {end}"


def span_between(start: str, end: str) -> str:
    """Return two times as one span: the date of the second is left out if it is that of the first."""
    return start if start == end else f"{start} to {without_date(end, start)}"


def without_date(time: str, other: str) -> str:
    """Return the time of day if another time is on the same date; the whole time otherwise."""
    date, separator, of_day = time.partition(" ")
    return of_day if separator and other.startswith(f"{date} ") else time
