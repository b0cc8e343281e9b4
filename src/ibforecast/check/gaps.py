"""Advice on what is missing in a table: marks for missing values, empty channels and hours, steps that are left out."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float64, Int64

from ibforecast.check.advice import Advice, leaving_out, listing, named
from ibforecast.core.hours import MINUTES_OF_DAY, minutes
from ibforecast.data.axis import Mark, counted, mark_options
from ibforecast.data.columns import text_of
from ibforecast.data.series import Series
from ibforecast.settings import Settings

EMPTY_SHARE = 0.99
"""A phase or a channel with at least this share of missing values is empty."""

FEW_EMPTY, FEW_ZEROS, FEW_COUNTED, SMALL_SHARE = 0.01, 0.1, 2.0, 0.1
"""Thresholds of the rule in `_left_out`, which finds counts whose steps are left out when nothing happened."""


def about_marks(marks: list[Mark]) -> Iterator[Advice]:
    """Advise to declare the numbers that look like marks for missing values."""
    if marks:
        options = mark_options(marks)
        finding = f"{counted(marks)} looks like a mark and would be read as a number"
        yield Advice("missing values", finding, f"if it is one: {' '.join(options)}", options)


def about_gaps(
    settings: Settings, series: Series, absent: Bool[np.ndarray, "row channel"], cycle: int
) -> Iterator[Advice]:
    """Advise on steps of counts that are left out, on channels that are mostly empty, and on phases without values."""
    shares, is_filled = absent.mean(axis=0), settings.irregular == "fill"
    phase = series.clock.phase(0, series.rows, max(cycle, 1))
    always = _always_empty(absent[:, shares < EMPTY_SHARE], phase, max(cycle, 1))
    at_other_times = absent[~always[phase]] if cycle > 1 and series.rows >= 3 * cycle else absent
    counts = counts_left_out(series)
    if counts and not series.clock.by_row and at_other_times.mean() > FEW_EMPTY:
        yield _about_left_out(series, absent, counts, is_filled)
        return
    if sparse := [name for name, share in zip(series.channels, shares, strict=True) if share > 0.5]:
        worst = f"more than half of the values of {named(sparse)} are missing"
        yield Advice("empty channels", worst, *leaving_out(series, sparse))
    if not absent.any() or cycle < 2 or series.rows < 3 * cycle:
        return
    empty = np.flatnonzero(always)
    if not len(empty):
        return
    times = _phase_names(series, [int(np.flatnonzero(phase == each)[0]) for each in empty], cycle)
    finding = (
        f"{len(empty)} of {cycle} phases of the cycle are always empty, in all channels: {times}; "
        f"so {len(empty) / cycle:.0%} of every window can never be read"
    )
    by_row = f"leave these rows out of the table and count the rest: --irregular by_row --cycle {cycle - len(empty)}"
    if is_filled:  # rows are missing at other times, too: counted, they would be at other phases from then on
        by_row = "leave it so: other rows are missing, too, so rows cannot be counted"
    options, remedy = tuple[str, ...](), by_row
    if spans := _empty_times(series, absent[:, shares < EMPTY_SHARE]):
        options = (f"--zero-at {','.join(spans)}",)
        remedy = f"if nothing happened then, read them as 0: {options[0]}; if nothing was measured, {by_row}"
    is_count = bool(counts) and len(counts) == len(series.channels) and is_filled
    yield Advice(
        "empty hours" if series.clock.frequency.seconds < 86_400 else "empty phases",
        finding,
        remedy,
        options if is_count else (),
    )


def _about_left_out(
    series: Series, absent: Bool[np.ndarray, "row channel"], counts: tuple[str, ...], is_filled: bool
) -> Advice:
    """Ask whether a step without a row, or without a value, means that nothing happened."""
    what = "row" if absent.all(axis=1).sum() >= absent.any(axis=1).sum() / 2 else "value"
    gone = max(int(absent[:, series.channels.index(name)].sum()) for name in counts)
    finding = (
        f"only whole numbers, none below 0, in {named(counts)}, and no {what} in {gone:,} of {series.rows:,} steps: "
        f"no {what} = 0?"
    )
    unknown = "if not, these steps stay unknown"
    if not (span := _whole_day(series)):
        return Advice("left out", finding, f"if nothing happened then, write them into the table as 0; {unknown}")
    options = (f"--zero-at {span}", *(("--irregular fill",) if is_filled else ()))
    remedy = f"if nothing happened then, read them as 0: {' '.join(options)}"
    if len(counts) < len(series.channels):  # an empty cell of a temperature is no 0
        others = f"the other channels must be left out: {listing('--channels', list(counts))}"
        return Advice("left out", finding, f"{remedy}, for which {others}; {unknown}", options[1:])
    return Advice("left out", finding, f"{remedy}; {unknown}, so leave out --zero-at", options)


def _whole_day(series: Series) -> str:
    """Return all times of the day of a series as a span of `zero_at`; empty if steps do not divide a day."""
    times = _times_of_day(series)
    return f"{times[0]}..{times[-1]}" if times else ""


def _times_of_day(series: Series) -> list[str]:
    """Return the times of the day of the steps of a series, earliest first; none if steps do not divide a day."""
    steps, minute = series.clock.day, minutes(series.clock.wall)
    length = MINUTES_OF_DAY // steps
    if steps < 2 or not length or (minute % length != minute[0] % length).any():
        return []
    first = int(minute[0]) % length
    return [f"{each // 60:02}:{each % 60:02}" for each in range(first, first + steps * length, length)]


def _always_empty(
    absent: Bool[np.ndarray, "row channel"], phase: Int64[np.ndarray, " row"], cycle: int
) -> Bool[np.ndarray, " cycle"]:
    """Return the phases at which no channel has a value, except in a few rows; none if there is no channel."""
    rows = np.maximum(np.bincount(phase, minlength=cycle), 1)
    shares = [np.bincount(phase, weights=column, minlength=cycle) / rows for column in absent.T]
    return np.all([share >= EMPTY_SHARE for share in shares], axis=0) if shares else np.zeros(cycle, dtype=bool)


def _empty_times(series: Series, absent: Bool[np.ndarray, "row channel"]) -> tuple[str, ...]:
    """Return the times of the day that are always empty, as `zero_at` has them; none if steps do not divide a day."""
    times, steps = _times_of_day(series), series.clock.day
    if not times:
        return ()
    empty = _always_empty(absent, minutes(series.clock.wall) // (MINUTES_OF_DAY // steps), steps)
    # The day begins after a time with values, so that no span crosses its end.
    first = int(np.flatnonzero(~empty)[0])
    spans, order = list[list[str]](), [(first + step) % steps for step in range(steps)]
    for before, step in pairwise(order):
        if empty[step] and not empty[before]:
            spans.append([])
        if empty[step]:
            spans[-1].append(times[step])
    return tuple(span[0] if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans)


def _phase_names(series: Series, places: list[int], cycle: int) -> str:
    wall = series.clock.wall[places]
    whole_day = cycle * series.clock.frequency.seconds == 86_400
    names = sorted(text_of(moment)[-5:] for moment in wall) if whole_day else [text_of(moment) for moment in wall]
    return named(names, 12)


def counts_left_out(series: Series) -> tuple[str, ...]:
    """Return the channels of counts whose steps seem to be left out when nothing happened; none if there are none.

    That is so if many steps have no value, all values are whole and at least 0, some are small, and few are 0.
    """
    return tuple(
        name
        for name, column in zip(series.channels, series.values.T, strict=True)
        if _left_out(column[~np.isnan(column)], len(column))
    )


def _left_out(seen: Float64[np.ndarray, " value"], steps: int) -> bool:
    gone = steps - len(seen)
    if not len(seen) or gone < FEW_EMPTY * steps or seen.min() < 0 or (seen != np.rint(seen)).any():
        return False
    is_small = seen.min() <= max(FEW_COUNTED, SMALL_SHARE * float(np.median(seen)))
    return bool(is_small and len(np.unique(seen)) > 2 and (seen == 0).sum() <= FEW_ZEROS * gone)
