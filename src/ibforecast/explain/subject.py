"""The subject of an explanation: a predictor at rest, and windows whose context is held while values change."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.contracts import Importance, Predictor
from ibforecast.core.errors import require, require_choice
from ibforecast.core.explanation import FIELDS
from ibforecast.core.window import Window
from ibforecast.layers.masked import filled_with_mean

Values = Float[Tensor, "batch look_back channel"]
Points = Float[Tensor, "some batch look_back channel"]
"""Several copies of the batch, each with different values."""
Futures = Float[Tensor, "some batch horizon channel"]

Baseline = Literal["mean", "reference"]
Space = Literal["frame", "output"]


@contextmanager
def at_rest(predictor: Predictor) -> Iterator[None]:
    """Run a predictor in evaluation mode and without gradients, then restore all its training flags.

    cuDNN has no backward pass for recurrent layers in evaluation mode, so it is turned off if there are any.
    """
    modes = [(module, module.training) for module in predictor.modules()]
    recurrent = any(isinstance(module, nn.RNNBase) for module, _ in modes)
    cudnn = torch.backends.cudnn.enabled
    try:
        predictor.eval()
        torch.backends.cudnn.enabled = cudnn and not recurrent
        with torch.no_grad():
            yield
    finally:
        torch.backends.cudnn.enabled = cudnn
        for module, training in modes:
            module.training = training


def graded(window: Window, values: Values) -> Values:
    """Return the absolute values without gradients, with an exact zero where nothing was observed."""
    return values.detach().abs().where(window.observed, values.new_zeros(()))


@dataclass(frozen=True)
class Subject:
    """A predictor and its windows, with gaps filled with the mean and the context held constant."""

    predictor: Predictor
    window: Window
    held: Context

    @classmethod
    def of(cls, predictor: Predictor, window: Window) -> "Subject":
        """Return the subject with these windows held in their own context."""
        complete = replace(window, values=filled_with_mean(window.values.detach(), window.observed))
        own = predictor.context(complete)
        held = replace(own, **{name: array.detach() for name, array in _arrays(own, batched=False).items()})
        return cls(predictor, complete, held)

    @property
    def values(self) -> Values:
        """The windows as they are."""
        return self.window.values

    @property
    def reference(self) -> Values:
        """The replacement for absent values: the seasonal pattern at the window's level."""
        return self.held.reference(self.values.shape[1])

    def baseline(self, kind: Baseline) -> Values:
        """Return the start of a path to the windows: each channel's mean, or the reference."""
        require_choice("baseline", kind, get_args(Baseline))
        return self.reference if kind == "reference" else self.values.mean(dim=1, keepdim=True).expand_as(self.values)

    def forecast(self, points: Points) -> Futures:
        """Forecast these points with the predictor, in the held context."""
        futures: Tensor = self.predictor(*self._copies(points)).values
        return futures.reshape(*points.shape[:2], *futures.shape[1:])

    def relaxed(self, points: Points) -> Futures:
        """Forecast these points with the predictor's soft surrogate, so that gradients flow."""
        futures = self.predictor.relaxed(*self._copies(points))
        require(
            futures.requires_grad or not points.requires_grad,
            "gradients need a forecast that can be differentiated",
            "one detached from the window's values",
            "use occlusion, which only runs the predictor",
        )
        return futures.reshape(*points.shape[:2], *futures.shape[1:])

    def shift(
        self, intact: Float[Tensor, "batch horizon channel"], moved: Futures, space: Space = "frame"
    ) -> Float[Tensor, "some batch"]:
        """Return the mean squared distance from the intact forecast, in units of the window's scale or as forecast."""
        require_choice("space", space, get_args(Space))
        unit = self.held.scale[:, None] if space == "frame" else 1.0
        return ((moved - intact) / unit).square().mean(dim=(2, 3))

    def importance(self, values: Values, forwards: int, backwards: int = 0) -> Importance:
        """Return a map with its cost."""
        return Importance(graded(self.window, values), forwards, backwards)

    def _copies(self, points: Points) -> tuple[Window, Context]:
        some, window, held = len(points), self.window, self.held
        copies: dict[str, Any] = {name: _copied(array, some) for name, array in _arrays(held, batched=True).items()}
        context = replace(held, **copies)
        calendar = None if window.calendar is None else _copied(window.calendar, some)
        observed = _copied(window.observed, some)
        return Window(points.flatten(0, 1), observed, context.phase, calendar, context.known), context


def _arrays(context: Context, batched: bool) -> dict[str, Any]:
    """Return the arrays of a context by name, all of them or only those with a value for every window."""
    rows = (row for row in FIELDS if row.part == "context" and (row.batched or not batched))
    return {row.name: array for row in rows if (array := getattr(context, row.name)) is not None}


def _copied(array: Tensor, some: int) -> Tensor:
    """Return copies of a batch, one after the other."""
    return array.repeat(some, *(1,) * (array.ndim - 1))
