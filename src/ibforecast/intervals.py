"""Intervals around a forecast, in the table's units, names and layout."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core.errors import DataError, UsageError, require
from ibforecast.data.series import Series
from ibforecast.data.tables import Table
from ibforecast.evaluate.conformal import Calibration, Level, scores, tracked
from ibforecast.use import Desk
from ibforecast.zoo.saved import FittedModel

NAME = "IBForecast"
"""The column of a forecast in a long table."""

ROUNDING = 2.0**-22
"""By how much single precision may move a forecast, as a share of how far it and the level are from the mean."""

Amounts = Float64[np.ndarray, "... channel"]


@dataclass(frozen=True)
class Interval:
    """The range that contains the truth in `level` percent of cases, for each step and channel."""

    level: float
    low: Float64[np.ndarray, "horizon channel"]
    high: Float64[np.ndarray, "horizon channel"]

    def columns(self, name: str) -> dict[str, Float64[np.ndarray, "horizon channel"]]:
        """Return both ends, named as in other libraries, such as `load-lo-80` and `load-hi-80`."""
        return {f"{name}-lo-{self.level:g}": self.low, f"{name}-hi-{self.level:g}": self.high}


@dataclass(frozen=True)
class Fold:
    """A forecast made at row `cutoff`, the last of its window, and how much of the window was read."""

    cutoff: int
    forecast: Float64[np.ndarray, "horizon channel"]
    intervals: tuple[Interval, ...]
    open_rate: float

    def columns(self) -> dict[str, Float64[np.ndarray, "horizon channel"]]:
        """Return the forecast and the ends of its intervals by column name."""
        ends = {name: values for interval in self.intervals for name, values in interval.columns(NAME).items()}
        return {NAME: self.forecast} | ends


def predict(
    desk: Desk, source: Table, start: int, levels: tuple[float, ...], adaptive: bool, budget: float | None = None
) -> Any:
    """Forecast from the window that begins at a row, with intervals, as a table like the opened one."""
    own = desk.fitted.config.budget
    require(
        budget in (None, own),
        f"intervals need the budget the model was calibrated at, {own:g}",
        f"budget={budget}",
        "leave the budget or the level out",
    )
    (fold,) = folds(desk, source, [start], levels, adaptive)
    return to_table(source, start + desk.look_back, fold.forecast, fold.intervals, fold.open_rate)


def folds(desk: Desk, source: Table, starts: list[int], levels: tuple[float, ...], adaptive: bool) -> list[Fold]:
    """Return forecasts of the windows that begin at these increasing rows, with their intervals."""
    targets, units, made = len(source.series.targets), desk.fitted.standardiser, []
    limits = None if desk.fitted.limits is None else desk.fitted.limits.first(targets)
    widths = _half_widths(desk, source.series, starts, levels, adaptive)
    for place, start in enumerate(starts):
        explanation, computed = desk.run(source, start)
        values, context = computed[:, :targets], explanation.context
        scale, level = ((array * units.std)[:targets] for array in (context.scale, context.level))
        reach = [width[place].double().numpy() * scale for width in widths]
        pairs = [ends(values, half, units.mean[:targets], level) for half in reach]
        if limits is not None:
            values, pairs = limits.apply(values), [limits.around(*both) for both in pairs]
        intervals = (Interval(one, *both) for one, both in zip(levels, pairs, strict=True))
        made.append(Fold(start + desk.look_back - 1, values, tuple(intervals), float(explanation.open_rate)))
    return made


def ends(
    values: Amounts, reach: Amounts, mean: Float64[np.ndarray, " channel"], level: Amounts
) -> tuple[Amounts, Amounts]:
    """Return both ends of intervals that reach this far from the forecast; `level` is relative to the mean.

    They reach at least as far as rounding does. Otherwise an interval without a width, around a forecast that repeats a
    value, would not contain that value.
    """
    reach = np.maximum(reach, ROUNDING * (np.abs(values - mean) + np.abs(level)))
    return values - reach, values + reach


def _half_widths(
    desk: Desk, series: Series, starts: list[int], levels: tuple[float, ...], adaptive: bool
) -> list[Float[Tensor, "window horizon channel"]]:
    """Return the half-widths of each level at these windows, in units of their scale, without later rows.

    Adaptive half-widths follow the errors of all forecasts that could have been made since the training rows.
    """
    if not levels:
        return []
    calibration = _calibration(desk.fitted, levels[-1])
    plain = [calibration.half_width(level) for level in levels]
    if not adaptive:
        return [width.expand(len(starts), -1, -1) for width in plain]
    first = min(max(desk.trained_rows(series) - desk.look_back, 0), starts[0])
    known = _scores(desk, series, range(first, starts[-1]))
    places = [start - first for start in starts]
    return [tracked(width, known, level)[places] for width, level in zip(plain, levels, strict=True)]


def _scores(desk: Desk, series: Series, starts: range) -> Float[Tensor, "window horizon channel"]:
    """Return the scores of consecutive windows that were known when the window after them ended."""
    # Later rows become NaN, so that their truth cannot leak into the widths.
    before = series.values[: starts.stop + desk.look_back]
    unknown = np.full((desk.horizon, len(series.channels)), np.nan)
    windows = desk.windows_at(replace(series, values=np.concatenate([before, unknown])), starts)
    with desk.at_work(desk.fitted.network) as device:
        return scores(desk.fitted.network, windows.to(device))


def _calibration(fitted: FittedModel, level: Level) -> Calibration:
    """Return the calibration of a model; raise UsageError if it does not reach the level."""
    calibration = fitted.calibration
    if calibration is None:
        raise UsageError(
            "a model must be calibrated to give intervals",
            "one that is not",
            'call calibrate(table) with the table it was fitted on, or calibrate(table, "all") with a later '
            "one, and save it again",
        )
    highest = calibration.highest_level
    if level > highest:
        raise UsageError(
            f"an interval of {level:g} % must be calibrated on {ceil(level / (100 - level))} windows or more",
            f"{calibration.windows}, less what is missing in them",
            (f"use at most {highest} %, or " if highest else "")
            + "give a longer table or a split with a larger validation part",
        )
    return calibration


def to_table(
    source: Table,
    first_row: int,
    forecast: Float64[np.ndarray, "horizon channel"],
    intervals: Iterable[Interval],
    open_rate: float,
) -> Any:
    """Return a forecast and its intervals in the layout of the table, with the fraction of the window read."""
    channels, time = source.series.targets, source.time_name
    times = source.series.clock.times(first_row, len(forecast))
    if source.layout.shape == "long":
        ids = [channel for channel in channels for _ in times]
        columns: list[tuple[str, Any]] = [
            (source.layout.id, ids),
            (time, np.tile(times, len(channels))),
            (NAME, forecast.T.ravel()),
        ]
        columns += [(name, ends.T.ravel()) for one in intervals for name, ends in one.columns(NAME).items()]
    else:
        columns = [(time, times)]
        for place, channel in enumerate(channels):
            columns.append((channel, forecast[:, place]))
            columns += [(name, ends[:, place]) for one in intervals for name, ends in one.columns(channel).items()]
    return source.build_forecast(distinct([*columns, ("open_rate", np.full(len(columns[0][1]), open_rate))]))


def distinct(columns: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return columns by name; refuse repeated names."""
    names = [name for name, _ in columns]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError("columns of a forecast must have different names", f"{repeated[0]!r} twice", "rename yours")
    return dict(columns)
