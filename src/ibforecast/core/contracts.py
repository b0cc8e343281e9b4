"""The interfaces of forecasters and explainers: training, explaining and measuring use only these."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.window import Target, Window


@dataclass(frozen=True)
class Loss:
    """The weighted terms of an objective by name, and the fraction of tokens open while training."""

    terms: Mapping[str, Float[Tensor, ""]]
    open_rate: Float[Tensor, ""]

    @property
    def total(self) -> Float[Tensor, ""]:
        """The sum of the terms, which training minimises."""
        return torch.stack(list(self.terms.values())).sum()


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that share a learning rate, as a multiple of the recipe's."""

    parameters: list[nn.Parameter]
    rate: float = 1.0


class Predictor(nn.Module, ABC):
    """Anything that forecasts a batch of windows in one pass: all that explaining and measuring need."""

    reads_calendar: bool = False
    """Whether windows must have a calendar."""

    @abstractmethod
    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast deterministically, in the window's own context or in the `held` one, kept while values change."""

    @abstractmethod
    def context(self, window: Window) -> Context:
        """Return the context of the window: its level, scale, phases and profile."""

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with hard decisions softened, so that gradients flow; by default the same as `forward`."""
        values: Tensor = self(window, held).values
        return values


class Forecaster(Predictor):
    """A predictor that can be trained, with its own loss."""

    capturable: bool = True
    """Whether a training step can be recorded as a CUDA graph: no branch may depend on the values of tensors."""

    stackable: bool = False
    """Whether several of one shape can be trained as one: all random numbers come from `dropout` and `uniform_`."""

    @abstractmethod
    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Return the loss of one training batch; `progress` runs from 0 to 1 over the epochs."""

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return every parameter exactly once, grouped by learning rate."""
        return [ParameterGroup([parameter for parameter in self.parameters() if parameter.requires_grad])]


class Accountable(Forecaster):
    """A forecaster whose forecast can be computed again from only its explanation: Ŷ = g(E; 𝒞)."""

    @abstractmethod
    def replay(self, explanation: Explanation) -> Float[Tensor, "batch horizon channel"]:
        """Compute the forecast from an explanation."""


@dataclass(frozen=True)
class Importance:
    """A graded map, never negative, and how often the explainer ran the predictor on the whole batch."""

    values: Float[Tensor, "batch look_back channel"]
    forwards: int
    backwards: int = 0


class Explainer(ABC):
    """A method that grades the values a predictor's forecasts depend on; it leaves the predictor unchanged."""

    @abstractmethod
    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value; `share` is the fraction of each window an explainer with a budget may mark."""


class SelfExplaining(ABC):
    """A forecaster that grades what its forecast depends on, cheaply and without another method."""

    @abstractmethod
    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Grade every look-back value: larger means more important, and no grade is negative."""
