"""Ridge regression in closed form: one linear map over time, shared by all channels, of deviations from the level."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean
from ibforecast_lab.rivals.fitted import Fitted

BATCH = 1024


@dataclass(frozen=True)
class RidgeConfig(Sizes):
    """`penalty` is added to the squared error, summed over all training windows, for each squared weight."""

    penalty: float = 1.0


class Ridge(Fitted):
    """The weights with the smallest squared error on the training windows; nothing is drawn and nothing is selected.

    A channel of a window whose target has a gap is left out of the fit.
    """

    weights: Float[Tensor, "horizon look_back"]

    def __init__(self, config: RidgeConfig) -> None:
        super().__init__()
        self.penalty = config.penalty
        self.register_buffer("weights", torch.zeros(config.horizon, config.look_back))

    @torch.no_grad()
    def fit(self, training: Windows) -> None:
        """Solve the normal equations, summed over all windows and channels in double precision."""
        look_back, horizon = training.look_back, training.horizon
        gram = torch.zeros(look_back, look_back, dtype=torch.float64)
        moment = torch.zeros(look_back, horizon, dtype=torch.float64)
        for window, target in training.batches(BATCH):
            values = filled_with_mean(window.values, window.observed)
            level = values.mean(dim=1, keepdim=True)
            complete = target.observed.all(dim=1)
            past, future = _rows(values - level, complete), _rows(target.values - level, complete)
            gram += past.T @ past
            moment += past.T @ future
        solved = torch.linalg.solve(gram + self.penalty * torch.eye(look_back, dtype=torch.float64), moment)
        self.weights.copy_(solved.T)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Add a linear function of the deviations to the level."""
        return self.weights @ (values - frame.level) + frame.level


def _rows(
    values: Float[Tensor, "batch step channel"], kept: Float[Tensor, "batch channel"] | Tensor
) -> Float64[Tensor, "row step"]:
    return values.transpose(1, 2)[kept].double().cpu()
