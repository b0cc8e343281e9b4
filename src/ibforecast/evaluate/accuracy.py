"""The errors of forecasts, window by window; no window is shuffled or dropped."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.window import Target
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


def squared_error(forecast: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    """Return the mean squared error over the observed part of each target."""
    return _per_window((forecast - target.values) ** 2, target)


def absolute_error(forecast: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    """Return the mean absolute error over the observed part of each target."""
    return _per_window((forecast - target.values).abs(), target)


def _per_window(errors: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    observed = errors.double().where(target.observed, 0.0)
    return observed.sum(dim=(1, 2)) / target.observed.sum(dim=(1, 2))


@torch.no_grad()
def accuracy(forecaster: Forecaster, windows: Windows, batch: int = 1024) -> Accuracy:
    """Measure a forecaster on every window; one without explanations counts as having read everything."""
    squared, absolute, read = [], [], []
    for window, target in windows.batches(batch):
        forecast = forecaster(window)
        squared.append(squared_error(forecast.values, target))
        absolute.append(absolute_error(forecast.values, target))
        explanation = forecast.explanation
        read.append(explanation.open_rate if explanation else torch.ones_like(squared[-1]))
    return Accuracy(torch.cat(squared).cpu(), torch.cat(absolute).cpu(), torch.cat(read).cpu())
