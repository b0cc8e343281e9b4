"""Backtesting: forecasts from past moments of a table, next to the true values."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Shaped

from ibforecast.core.errors import DataError, UsageError, require
from ibforecast.data import tables
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.data.tables import Table
from ibforecast.fitting import fit_source, recipe_for
from ibforecast.intervals import Fold, distinct, folds
from ibforecast.settings import Settings, whole_number
from ibforecast.use import Desk
from ibforecast.zoo.saved import FittedModel

TIME = "ds"
"""The name of the time column in the result for a wide table, as other libraries name it."""


def cross_validation(
    table: Any,
    settings: Settings,
    fitted: FittedModel | None,
    n_windows: int,
    step_size: int | None,
    refit: bool | int,
    levels: tuple[float, ...],
    adaptive: bool,
) -> Any:
    """Forecast from `n_windows` past moments of a table, `step_size` rows apart: `IBForecaster.cross_validation`.

    Without a fitted model, or with `refit`, models are fitted to the rows before each forecast.
    """
    require(refit >= 0, "refit must be a number of windows, or True for every one", f"{refit}", "try 1")
    n_windows = whole_number("n_windows", n_windows)
    step = settings.horizon if step_size is None else whole_number("step_size", step_size)
    desk = None if fitted is None or refit else Desk(fitted, settings.device)
    source = desk.open(table) if desk else tables.read(table, settings.layout)
    lasts = cutoffs(source.series.rows, settings.look_back, settings.horizon, n_windows, step)
    if desk:
        _require_untrained(desk, source.series, lasts[0] + 1)
    made, every = [], int(refit) or n_windows
    for group in (lasts[first : first + every] for first in range(0, n_windows, every)):
        current = desk or Desk(_refitted(source, settings, fitted, group[0] + 1), settings.device)
        starts = [current.start_of(source.series, last) for last in group]
        made += folds(current, source, starts, levels, adaptive)
    return tidy(source, made)


def _refitted(source: Table, settings: Settings, fitted: FittedModel | None, rows: int) -> FittedModel:
    """Fit to only the first rows, with no test part."""
    series = source.series
    clock = replace(series.clock, stamps=series.clock.stamps[:rows])
    split = fitted.split if fitted else Split.by_fractions(settings.split, series.rows)
    share = split.train_end / split.validation_end
    before = replace(series, values=series.values[:rows], clock=clock)
    return fit_source(
        replace(source, series=before),
        settings,
        recipe_for(settings, before),
        Split.by_fractions((share, 1 - share, 0.0), rows),
    )


def _require_untrained(desk: Desk, series: Series, row: int) -> None:
    trained = desk.trained_rows(series)
    if row < trained:
        first, until = (series.clock.labels(at, 1)[0] for at in (row, trained))
        raise UsageError(
            "a backtest must forecast rows the model was not trained on",
            f"a first forecast of {first}, trained on rows before {until}",
            "use fewer windows or smaller steps, or fit again with refit=True",
        )


def cutoffs(rows: int, look_back: int, horizon: int, n_windows: int, step_size: int) -> list[int]:
    """Return the last rows read by `n_windows` forecasts, `step_size` rows apart; the last ends with the table."""
    require(n_windows >= 1, "n_windows must be at least 1", f"{n_windows}", "give 1 or more")
    require(step_size >= 1, "step_size must be at least 1", f"{step_size}", f"try {horizon}, the horizon")
    last = rows - horizon - 1
    first = last - (n_windows - 1) * step_size
    if first < look_back - 1:
        needed = rows + look_back - 1 - first
        raise DataError(
            f"a backtest must have look_back = {look_back} rows before its first cutoff",
            max(first + 1, 0),
            f"give {needed} rows or more, or use fewer windows or smaller steps",
        )
    return list(range(first, last + 1, step_size))


def tidy(source: Table, folds: list[Fold]) -> Any:
    """Return one row per channel, cutoff and observed step; a long table keeps the names of its columns."""
    series, layout, stamps = source.series, source.layout, source.series.clock.stamps
    time = source.time_name if layout.shape == "long" else TIME
    steps = np.array([fold.cutoff + 1 + np.arange(len(fold.forecast)) for fold in folds])
    truth = series.values[steps][..., : len(series.targets)]
    seen = ~np.isnan(truth).transpose(2, 0, 1)

    def column(values: Shaped[np.ndarray, "*shape"]) -> Shaped[np.ndarray, " row"]:
        """Return values by fold, step and channel, or some of these, as one column of the observed steps."""
        return np.asarray(np.broadcast_to(values, truth.shape).transpose(2, 0, 1)[seen])

    forecasts = [fold.columns() for fold in folds]
    return source.build(
        distinct(
            [
                (layout.id, column(np.array(series.targets, dtype=object))),
                (time, column(stamps[steps][..., None])),
                ("cutoff", column(stamps[steps[:, :1] - 1][..., None])),
                (layout.target, column(truth)),
                *((name, column(np.stack([one[name] for one in forecasts]))) for name in forecasts[0]),
            ]
        )
    )
