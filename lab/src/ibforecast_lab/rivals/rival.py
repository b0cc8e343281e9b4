"""The base of all rivals: fill gaps with the window's mean, forecast values, minimise the squared error."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Forecaster, Loss
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Target, Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean, mean_where


class Rival(Forecaster):
    """A forecaster without an explanation, trained on the mean squared error.

    `frame` computes the window's level and scale. CycleNet and TQNet define the scale by the unbiased variance, the
    other rivals by the population variance.
    """

    def __init__(self) -> None:
        super().__init__()
        self.frame: Callable[[Tensor], InstanceFrame] = InstanceFrame.population

    @abstractmethod
    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values and their frame; `window` has the phase and the calendar."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast deterministically, in the frame of the values or of the given context."""
        values = filled_with_mean(window.values, window.observed)
        frame = self.frame(values) if held is None else InstanceFrame(held.level[:, None], held.scale[:, None])
        return Forecast(self.predict(values, frame, window))

    def context(self, window: Window) -> Context:
        """Return the window's frame with a profile of zeros, so that an absent value is replaced by the level."""
        frame = self.frame(filled_with_mean(window.values, window.observed))
        return Context(frame.level[:, 0], frame.scale[:, 0], window.phase, torch.zeros_like(frame.level[0]))

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch by its squared error; the open rate is 1, because a rival reads everything."""
        error = mean_where((self(window).values - target.values) ** 2, target.observed)
        return Loss({"fit": error}, torch.ones_like(error))
