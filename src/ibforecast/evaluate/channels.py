"""Measures channel by channel: errors of any forecast, and how often each place of a window is read."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows


@dataclass(frozen=True)
class ChannelErrors:
    """Mean absolute and root mean squared error of every channel that is forecast, in standardised units.

    The mean is over all observed steps of all windows. It is NaN if there are none.
    """

    mae: Float[Tensor, " target"]
    rmse: Float[Tensor, " target"]


@torch.no_grad()
def channel_errors(
    predict: Callable[[Window], Float[Tensor, "batch horizon channel"]], windows: Windows, batch: int = 1024
) -> ChannelErrors:
    """Measure a function that forecasts on every window."""
    targets = windows.values.shape[1] - windows.past
    absolute, squared, seen = torch.zeros(3, targets, dtype=torch.float64, device=windows.values.device)
    for window, target in windows.batches(windows.at_once(batch)):
        errors = (predict(window) - target.values).double().where(target.observed, 0.0)[..., :targets]
        absolute += errors.abs().sum(dim=(0, 1))
        squared += (errors**2).sum(dim=(0, 1))
        seen += target.observed[..., :targets].sum(dim=(0, 1))
    return ChannelErrors((absolute / seen).cpu(), (squared / seen).sqrt().cpu())


@torch.no_grad()
def read_shares(forecaster: Forecaster, windows: Windows, batch: int = 1024) -> Float[Tensor, "patch channel"]:
    """Return the share of windows in which each token is open; the forecaster must explain its forecasts."""
    opened = []
    for window, _ in windows.batches(windows.at_once(batch)):
        explanation = forecaster(window).explanation
        assert explanation is not None
        opened.append(explanation.mask.double().sum(dim=0).cpu())
    return torch.stack(opened).sum(dim=0) / len(windows)
