"""The scores of fev-bench: MASE and SQL, which are scaled by the seasonal error, WAPE and WQL, which are not.

Every score is computed for each window and channel, averaged over the items of a task, then over channels, then over
windows. Facts: autogluon/fev, src/fev/metrics.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

LEVELS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
"""The levels of the quantiles that are forecast."""

SMALLEST = 1.0
"""The smallest mean absolute value that a weighted score is divided by."""

SCORES = ("MASE", "SQL", "WAPE", "WQL")

ByWindow = Float64[np.ndarray, "window channel"]


@dataclass(frozen=True)
class Losses:
    """The means over the horizon, for each window and channel of an item, from which the scores are computed."""

    absolute_error: ByWindow
    quantile_loss: ByWindow
    absolute_value: ByWindow
    seasonal_error: ByWindow


def losses(
    history: Float64[np.ndarray, "row channel"],
    first: Int64[np.ndarray, " window"],
    season: int,
    forecast: Float64[np.ndarray, "window horizon channel"],
    quantiles: Float64[np.ndarray, "level window horizon channel"],
) -> Losses:
    """Compare forecasts that begin at the rows `first` with the truth, in the units of the history.

    `quantiles` are forecasts of the quantiles at `LEVELS`. The seasonal error of a window is of all rows before it.
    """
    horizon = forecast.shape[1]
    truth = history[first[:, None] + np.arange(horizon)]
    levels = np.array(LEVELS)[:, None, None, None]
    pinball = 2 * np.abs((truth - quantiles) * ((truth <= quantiles) - levels))
    differences = np.abs(history[season:] - history[:-season])
    return Losses(
        absolute_error=np.abs(truth - forecast).mean(axis=1),
        quantile_loss=pinball.mean(axis=(0, 2)),
        absolute_value=np.abs(truth).mean(axis=1),
        seasonal_error=np.stack([differences[: row - season].mean(axis=0) for row in first]),
    )


def scores(items: Sequence[Losses]) -> dict[str, float]:
    """Return the scores of a task from the losses of its items."""

    def over_items(field: str) -> Float64[np.ndarray, "item window channel"]:
        return np.stack([getattr(item, field) for item in items])

    error, pinball = over_items("absolute_error"), over_items("quantile_loss")
    scale, size = over_items("seasonal_error"), np.maximum(over_items("absolute_value").mean(axis=0), SMALLEST)
    return {
        "MASE": float((error / scale).mean()),
        "SQL": float((pinball / scale).mean()),
        "WAPE": float((error.mean(axis=0) / size).mean()),
        "WQL": float((pinball.mean(axis=0) / size).mean()),
    }
