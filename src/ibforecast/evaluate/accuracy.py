"""The errors of forecasts, window by window; no window is shuffled or dropped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Predictor
from ibforecast.core.explanation import Forecast
from ibforecast.core.limits import Limits
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows


@dataclass(frozen=True)
class Accuracy:
    """Squared error, absolute error (in standardised units) and fraction read of each window."""

    squared_error: Float[Tensor, " window"]
    absolute_error: Float[Tensor, " window"]
    open_rate: Float[Tensor, " window"]

    @property
    def mse(self) -> float:
        """Mean squared error over all windows."""
        return float(self.squared_error.mean())

    @property
    def mae(self) -> float:
        """Mean absolute error over all windows."""
        return float(self.absolute_error.mean())


class Limited(Predictor):
    """A predictor whose standardised forecasts are within limits, which are in the table's units."""

    def __init__(self, predictor: Predictor, units: Standardiser, limits: Limits) -> None:
        super().__init__()
        self.predictor, self.units, self.limits = predictor, units, limits
        self.reads_calendar = predictor.reads_calendar

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast within the limits."""
        forecast: Forecast = self.predictor(window, held)
        rows = forecast.values.flatten(0, 1).double().cpu().numpy()
        limited = self.units.standardise(self.limits.apply(self.units.to_units(rows)))
        return replace(forecast, values=torch.from_numpy(limited).to(forecast.values).view_as(forecast.values))

    def context(self, window: Window) -> Context:
        """Return the context of the predictor."""
        return self.predictor.context(window)


def squared_error(forecast: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    """Return the mean squared error over the observed part of each target."""
    return _mean_observed((forecast - target.values) ** 2, target)


def absolute_error(forecast: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    """Return the mean absolute error over the observed part of each target."""
    return _mean_observed((forecast - target.values).abs(), target)


def errors(
    forecast: Float[Tensor, "batch horizon channel"], target: Target
) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """Return the squared and the absolute error of each window."""
    return squared_error(forecast, target), absolute_error(forecast, target)


def _mean_observed(errors: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    observed = errors.double().where(target.observed, 0.0)
    return observed.sum(dim=(1, 2)) / target.observed.sum(dim=(1, 2))


@torch.no_grad()
def accuracy(forecaster: Predictor, windows: Windows, batch: int = 1024) -> Accuracy:
    """Measure a forecaster on every window; one without explanations counts as having read everything."""

    def measure(window: Window, target: Target) -> Sequence[Float[Tensor, " batch"]]:
        forecast = forecaster(window)
        squared, absolute = errors(forecast.values, target)
        explanation = forecast.explanation
        return squared, absolute, explanation.open_rate if explanation else torch.ones_like(squared)

    return Accuracy(*per_window(windows, measure, 3, batch))


def per_window(
    windows: Windows, measure: Callable[[Window, Target], Sequence[Float[Tensor, " batch"]]], count: int, batch: int
) -> Float64[Tensor, "count window"]:
    """Return `count` measures of every window, computed in batches."""
    batch = windows.at_once(batch)
    # Made before the first batch: small results in between the large arrays of batches would keep the memory of those
    # from being used again, nearly a kilobyte per window.
    results = windows.values.new_empty(count, len(windows), dtype=torch.float64)
    for first, (window, target) in zip(range(0, len(windows), batch), windows.batches(batch), strict=True):
        for result, part in zip(results, measure(window, target), strict=True):
            result[first : first + batch] = part
    return results.cpu()
