"""Backtesting: forecasts from past moments of a table, beside what truly followed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from ibforecast.core.errors import DataError, require
from ibforecast.data.tables import Table
from ibforecast.intervals import NAME, Interval, built

TIME = "ds"
"""What other libraries call the time column of a long table, as this is, whatever a wide one called it."""


@dataclass(frozen=True)
class Fold:
    """A forecast made at row `cutoff`, the last of its window, and how much of the window was read."""

    cutoff: int
    forecast: Float64[np.ndarray, "horizon channel"]
    intervals: tuple[Interval, ...]
    open_rate: float

    def columns(self) -> dict[str, Float64[np.ndarray, "horizon channel"]]:
        """The forecast and the ends of its intervals by the names of their columns."""
        ends = {name: values for interval in self.intervals for name, values in interval.columns(NAME).items()}
        return {NAME: self.forecast} | ends


def cutoffs(rows: int, look_back: int, horizon: int, n_windows: int, step_size: int) -> list[int]:
    """Last rows read by `n_windows` forecasts, `step_size` rows apart; the truth of the last ends with the table."""
    require(n_windows >= 1, "n_windows must be at least 1", f"{n_windows}", "ask for a window or more")
    require(step_size >= 1, "step_size must be at least 1", f"{step_size}", f"try {horizon}, the horizon")
    last = rows - horizon - 1
    first = last - (n_windows - 1) * step_size
    if first < look_back - 1:
        needed = rows + look_back - 1 - first
        raise DataError(
            f"a backtest must have look_back = {look_back} rows before its first cutoff",
            max(first + 1, 0),
            f"give {needed} rows or more, or ask for fewer windows or smaller steps",
        )
    return list(range(first, last + 1, step_size))


def tidy(source: Table, folds: list[Fold]) -> Any:
    """One row per channel, cutoff and step whose truth was observed; a long table keeps the names of its columns."""
    series, layout, stamps = source.series, source.layout, source.series.clock.stamps
    time = layout.time if layout.shape == "long" and layout.time else TIME
    steps = np.array([fold.cutoff + 1 + np.arange(len(fold.forecast)) for fold in folds])
    truth = series.values[steps][..., : len(series.targets)]
    seen = ~np.isnan(truth).transpose(2, 0, 1)

    def column(values: Shaped[np.ndarray, "*shape"]) -> Shaped[np.ndarray, " row"]:
        """Values by fold, step and channel, or by some of these, channel after channel where truth is known."""
        return np.asarray(np.broadcast_to(values, truth.shape).transpose(2, 0, 1)[seen])

    forecasts = [fold.columns() for fold in folds]
    return built(
        source,
        [
            (layout.id, column(np.array(series.targets, dtype=object))),
            (time, column(stamps[steps][..., None])),
            ("cutoff", column(stamps[steps[:, :1] - 1][..., None])),
            (layout.target, column(truth)),
            *((name, column(np.stack([one[name] for one in forecasts]))) for name in forecasts[0]),
        ],
    )
