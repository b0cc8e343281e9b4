"""Advice on the values of channels: what kind of numbers they are, where they end, and what stands out."""

import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

import numpy as np
from jaxtyping import Float64

from ibforecast.check.advice import NAMED, Advice, leaving_out, listing, named
from ibforecast.core.limits import SHARE_OF_ZEROS, rests_at_zero
from ibforecast.data.axis import as_text
from ibforecast.data.series import Series
from ibforecast.settings import EVERY, Settings

CONSTANT_SHARE = 0.995
"""A channel with one value in at least this share of its rows is constant."""

OWNING_SHARE = 0.5
"""The share of the variance above which a few values dominate the scale."""

SATURATED_SHARE, SATURATED_RUNS, SATURATED_FACTOR = 0.01, 10, 1.5
"""Thresholds of the rule in `_saturation`."""

STUCK_SHARE, STUCK_STEPS, STUCK_FACTOR = 0.1, 24, 10
"""Thresholds of the rule in `about_runs`."""

Kind = Literal["constant", "flag", "resting", "count", "positive", "other"]
"""Nearly constant, only 0 and 1, counts that are often 0, other counts, often 0 and never below, or anything else."""


def about_channels(settings: Settings, series: Series) -> Iterator[Advice]:
    """Advise on channels by their values: constant ones, flags of 0 and 1, counts, and values that dominate the scale.

    A channel that is not forecast gets no advice on its forecasts, and one that has limits gets none on limits.
    """
    free = set() if EVERY in settings.ranges else set(series.targets) - set(settings.ranges)
    columns = {
        name: seen
        for name, column in zip(series.channels, series.values.T, strict=True)
        if len(seen := column[~np.isnan(column)])
    }
    kinds = {name: _kind(seen) for name, seen in columns.items()}

    def of(kind: Kind, among: Collection[str]) -> list[str]:
        return [name for name, own in kinds.items() if own == kind and name in among]

    yield from _about_constants(series, of("constant", series.channels))
    yield from _about_flags(series, of("flag", series.targets), free)
    yield from _about_counts(of("resting", free), of("count", free))
    yield from _about_limits(series, of("positive", free), {name: kind for name, kind in kinds.items() if name in free})
    # A channel that mostly rests at one value, like rain, has such values by nature.
    varying = [name for name, seen in columns.items() if np.unique(seen, return_counts=True)[1].max() < len(seen) / 2]
    owners = (_owner(series, series.channels.index(name), columns[name]) for name in varying)
    for finding in [owner for owner in owners if owner][:NAMED]:
        yield Advice("outliers", finding, "if it is wrong, empty the cell; if the number always is, --missing-value")


def _kind(seen: Float64[np.ndarray, " value"]) -> Kind:
    different, often = np.unique(seen, return_counts=True)
    if often.max() >= CONSTANT_SHARE * len(seen):
        return "constant"
    if set(different.tolist()) <= {0.0, 1.0}:
        return "flag"
    if rests_at_zero(seen):
        return "resting"
    if different[0] >= 0 and (different == np.rint(different)).all():
        return "count"
    return "positive" if different[0] == 0 and often[0] >= SHARE_OF_ZEROS * len(seen) else "other"


def _about_constants(series: Series, constant: list[str]) -> Iterator[Advice]:
    if constant:
        finding = f"one value in at least {CONSTANT_SHARE:.1%} of the rows of {named(constant)}"
        yield Advice("constant channels", finding, *leaving_out(series, constant))


def _about_flags(series: Series, flags: list[str], free: set[str]) -> Iterator[Advice]:
    if flags and len(flags) < len(series.channels):
        option = listing("--future", flags)
        finding = f"only 0 and 1, like a holiday, in {named(flags)}; it would be forecast"
        limit = f"--limit {shlex.quote(f'{flags[0]}=0..1')}"
        remedy = f"if it is known ahead: {option}; if not, and only to be read: --past; if it must be forecast: {limit}"
        yield Advice("flags", finding, remedy if flags[0] in free else remedy.rpartition("; ")[0])


def _about_counts(resting: list[str], counts: list[str]) -> Iterator[Advice]:
    if resting:
        finding = f"counts, often 0, in {named(resting)}; no forecast will be below 0"
        yield Advice(
            "counts", finding, f"if values below 0 are possible: --limit {shlex.quote(f'{resting[0]}=..')} allows them"
        )
    if counts:
        finding = f"only whole numbers from 0 on in {named(counts)}; forecasts may be fractions or negative"
        remedy = (
            f"{_limit_option(counts[:1])} keeps them from falling below 0; {listing('--whole', counts[:1])} rounds "
            "them, but a mean "
        )
        yield Advice("counts", finding, f"{remedy}of 0.4 a step is a better forecast than 0")


def _about_limits(series: Series, positive: list[str], free: Mapping[str, Kind]) -> Iterator[Advice]:
    if positive:
        finding = f"never below 0, and often 0, in {named(positive)}; forecasts may be negative"
        yield Advice("limits", finding, f"if values below 0 are impossible: {_limit_option(positive)}")
    ends = ((name, kind, _saturation(series, name)) for name, kind in free.items() if kind not in ("constant", "flag"))
    saturated = [(name, "" if kind == "other" else "0", *end) for name, kind, end in ends if end]
    for name, low, highest, share in saturated[:NAMED]:
        finding = f"{name} is at its largest value, {highest:g}, in {share:.1%} of its rows; forecasts may be above it"
        remedy = f"if higher values are impossible: --limit {shlex.quote(f'{name}={low}..{as_text(highest)}')}"
        yield Advice("limits", finding, remedy)


def _saturation(series: Series, name: str) -> tuple[float, float] | None:
    """Return the largest value of a channel and its share, if values seem to end there; otherwise None.

    They seem to if the largest value is in one of a hundred rows, in ten separate runs, and half as often again as the
    next lower one. In a distribution that just thins out, it is less frequent than the next lower one.
    """
    column = series.values[:, series.channels.index(name)]
    seen = column[~np.isnan(column)]
    different, often = np.unique(seen, return_counts=True)
    if len(different) <= 2:
        return None
    at_top = column == different[-1]
    runs = int((at_top & ~np.concatenate([[False], at_top[:-1]])).sum())
    share = float(often[-1] / len(seen))
    if share < SATURATED_SHARE or runs < SATURATED_RUNS or often[-1] < SATURATED_FACTOR * often[-2]:
        return None
    return float(different[-1]), share


def _limit_option(names: list[str]) -> str:
    return " ".join(f"--limit {shlex.quote(f'{name}=0..')}" for name in names[:NAMED])


def about_runs(series: Series) -> Iterator[Advice]:
    """Advise on long runs of one value, as of a sensor that is stuck.

    A run is named if it is longer than a week of steps (but at least 24) or a tenth of the rows, and also longer than
    ten times the run that contains the median row of the channel. Zeros of counts that are often 0 are left out, and so
    are channels that are nearly constant.
    """
    week = max(STUCK_STEPS, 7 * 86_400 // (series.clock.frequency.seconds or 86_400))
    shortest = min(week, STUCK_SHARE * series.rows)
    stuck = []
    for name, column in zip(series.channels, series.values.T, strict=True):
        starts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))  # a missing value is a run
        lengths, values = np.diff(starts, append=len(column)), column[starts]
        seen = column[~np.isnan(column)]
        if not len(seen) or np.unique(seen, return_counts=True)[1].max() >= CONSTANT_SHARE * len(seen):
            continue
        usual = np.median(np.repeat(lengths, lengths)[~np.isnan(column)])
        odd = (lengths > max(shortest, STUCK_FACTOR * usual)) & ~np.isnan(values)
        if rests_at_zero(seen):
            odd &= values != 0
        if odd.any():
            longest = int(np.argmax(np.where(odd, lengths, 0)))
            first, length = int(starts[longest]), int(lengths[longest])
            since, until = (series.clock.labels(row, 1)[0] for row in (first, first + length - 1))
            others = int(odd.sum()) - 1
            more = f", and {others} more such {'run' if others == 1 else 'runs'}" if others else ""
            stuck.append(f"{name} is {values[longest]:g} in {length:,} rows in a row, {since} to {until}{more}")
    for finding in stuck[:NAMED]:
        yield Advice(
            "stuck values", finding, "if a sensor was stuck or off, empty these cells: they are learned as true"
        )


def _owner(series: Series, place: int, seen: Float64[np.ndarray, " value"]) -> str:
    """Say which values dominate the scale: at most one in a thousand that make up more than half of the variance."""
    few = max(1, len(seen) // 1000)
    apart = np.abs(seen - np.median(seen))
    squares = np.sort((apart / (apart.max() or 1.0)) ** 2)  # of shares, because squares of huge values overflow
    if len(seen) < 30 or squares.sum() == 0 or squares[-few:].sum() <= OWNING_SHARE * squares.sum():
        return ""
    column = series.values[:, place]
    row = int(np.nanargmax(np.abs(column - np.median(seen))))
    share = squares[-few:].sum() / squares.sum()
    values = "1 value makes" if few == 1 else f"{few} values make"
    return (
        f"{values} up {share:.0%} of the variance of {series.channels[place]!r}, and so its scale: "
        f"{column[row]:g} at {series.clock.labels(row, 1)[0]}, where the median is {np.median(seen):g}"
    )
