"""Guests from outside the library: any function that forecasts, and any map that was computed elsewhere."""

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

    Its context is the mean and the unbiased spread of every channel, and a profile of zeros, so that absent values are
    replaced by the mean. Gaps are filled with the level before the function is called. A held context fixes that
    filling and the unit of shifts, but not the inside of the function: if it normalises its input, it does so for every
    input. If the function is a module, it moves to devices and into evaluation mode with the guest; anything else it
    refers to must be ready to use.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast with the function."""
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
        """Return mean and unbiased spread of the values, with gaps filled with the mean; the profile is zero."""
        frame = InstanceFrame.unbiased(filled_with_mean(window.values, window.observed))
        return Context(frame.level[:, 0], frame.scale[:, 0], window.phase, torch.zeros_like(frame.level[0]))


@dataclass(frozen=True, eq=False)
class GivenMap(Explainer):
    """An importance computed elsewhere for the same windows; signs are dropped."""

    values: Values

    def __post_init__(self) -> None:
        finite = bool(self.values.isfinite().all())
        require(finite, "a given map must be finite", "NaN or infinity in it", "repair it where it was computed")

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Return the map, without running the predictor."""
        require(
            self.values.shape == window.values.shape,
            "a given map must grade every value of the windows",
            f"{tuple(self.values.shape)} for {tuple(window.values.shape)}",
            "give it as (batch, look_back, channel), for one batch",
        )
        return Importance(graded(window, self.values.to(window.values)), forwards=0)
