"""Intervals beside a forecast, in the table's units, names and layout."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from ibforecast.core.errors import DataError
from ibforecast.data.tables import Table

NAME = "IBForecast"
"""The column of a forecast in a long table."""


@dataclass(frozen=True)
class Interval:
    """From `low` to `high` the truth lies in `level` percent of cases, step by step and channel by channel."""

    level: float
    low: Float64[np.ndarray, "horizon channel"]
    high: Float64[np.ndarray, "horizon channel"]

    def columns(self, name: str) -> dict[str, Float64[np.ndarray, "horizon channel"]]:
        """Both ends under the names others use for them, such as `load-lo-80` and `load-hi-80`."""
        return {f"{name}-lo-{self.level:g}": self.low, f"{name}-hi-{self.level:g}": self.high}


def laid_out(
    source: Table,
    first_row: int,
    forecast: Float64[np.ndarray, "horizon channel"],
    intervals: Iterable[Interval],
    open_rate: float,
) -> Any:
    """Lay a forecast and its intervals out as the table was, with the fraction of the window that was read."""
    channels, time = source.series.targets, source.layout.time or "time"
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
    return built(source, [*columns, ("open_rate", np.full(len(columns[0][1]), open_rate))])


def built(source: Table, columns: list[tuple[str, Any]]) -> Any:
    """Make a table of the user's kind of columns whose names differ."""
    names = [name for name, _ in columns]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise DataError("columns of a forecast must have different names", f"{repeated[0]!r} twice", "rename yours")
    return source.build(dict(columns))
