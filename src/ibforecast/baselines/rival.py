"""What all rivals share: they fill gaps with the window's mean, forecast values, and minimise the squared error."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Forecaster, Loss
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Target, Window
from ibforecast.layers.masked import filled_with_mean, mean_where


class Rival(Forecaster):
    """A forecaster of values alone, trained on the mean squared error."""

    @abstractmethod
    def predict(
        self, values: Float[Tensor, "batch look_back channel"], window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values; `window` gives phase and calendar to those that read them."""

    def forward(self, window: Window) -> Forecast:
        """Forecast deterministically."""
        return Forecast(self.predict(filled_with_mean(window.values, window.observed), window))

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score one training batch by its squared error; everything is read."""
        error = mean_where((self(window).values - target.values) ** 2, target.observed)
        return Loss({"fit": error}, torch.ones_like(error))
