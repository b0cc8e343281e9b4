"""Strangers at the table: any function that forecasts, and any map that was computed elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.errors import require
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Window
from ibforecast.explain.subject import Values, graded
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean


class Guest(Predictor):
    """Any function from complete values to forecasts, for any number of windows, that torch can differentiate.

    Its context is the mean and the unbiased spread of every channel, and a profile of zeros: what is absent is
    replaced by the mean. Gaps are filled with the level before the function sees them. A context that is held fixes
    that filling and the unit in which shifts are measured, but cannot reach inside: a function that normalises its
    input does so anew for every input. A module is taken along, to devices and into evaluation mode; whatever else
    a function closes over must be fit to be called as it is.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast as the function does."""
        context = self.context(window) if held is None else held
        values = window.values.where(window.observed, context.level[:, None])
        future = self.function(values)
        batch, _, channels = values.shape
        require(
            future.ndim == 3 and (future.shape[0], future.shape[2]) == (batch, channels),
            "a guest must forecast (batch, horizon, channel) from (batch, look_back, channel)",
            f"{tuple(future.shape)} from {tuple(values.shape)}",
            "wrap it in a function that rearranges the axes",
        )
        return Forecast(future)

    def context(self, window: Window) -> Context:
        """Mean and unbiased spread of the observed values, gaps counting as the mean; nothing is known of seasons."""
        frame = InstanceFrame.unbiased(filled_with_mean(window.values, window.observed))
        return Context(frame.level[:, 0], frame.scale[:, 0], window.phase, torch.zeros_like(frame.level[0]))


@dataclass(frozen=True, eq=False)
class GivenMap(Explainer):
    """An importance computed elsewhere for the very windows it is asked about; signs are dropped."""

    values: Values

    def __post_init__(self) -> None:
        finite = bool(self.values.isfinite().all())
        require(finite, "a given map must be finite", "NaN or infinity in it", "repair it where it was computed")

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Hand the map over; nothing is run."""
        require(
            self.values.shape == window.values.shape,
            "a given map must grade every value of the windows",
            f"{tuple(self.values.shape)} for {tuple(window.values.shape)}",
            "give it as (batch, look_back, channel), for one batch",
        )
        return Importance(graded(window, self.values.to(window.values)), forwards=0)
