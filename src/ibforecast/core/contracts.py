"""The promises every forecaster keeps, so that training, explaining and measuring need not know which one it is."""

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
        """What is minimised."""
        return torch.stack(list(self.terms.values())).sum()


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that share a learning rate, as a multiple of the recipe's."""

    parameters: list[nn.Parameter]
    rate: float = 1.0


class Predictor(nn.Module, ABC):
    """From a batch of windows to a forecast, in one pass: all that explaining and measuring ask for."""

    reads_calendar: bool = False
    """Whether windows must come with their calendar."""

    @abstractmethod
    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        """Forecast deterministically, in the window's own context or in one that is held while values change."""

    @abstractmethod
    def context(self, window: Window) -> Context:
        """What the window is seen in: its level and scale, and a profile where there is one."""

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with hard decisions softened so that gradients flow; as ever where there are none."""
        values: Tensor = self(window, held).values
        return values


class Forecaster(Predictor):
    """A predictor that can be trained, on the loss it names itself."""

    capturable: bool = True
    """Whether a training step can be recorded as a CUDA graph: no decision on the values of tensors."""

    @abstractmethod
    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score one training batch; `progress` runs from 0 to 1 over the epochs."""

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return every parameter exactly once, grouped by learning rate."""
        return [ParameterGroup([parameter for parameter in self.parameters() if parameter.requires_grad])]


class Accountable(Forecaster):
    """A forecaster whose forecast can be computed again from its explanation alone: Ŷ = g(E; 𝒞)."""

    @abstractmethod
    def replay(self, explanation: Explanation) -> Float[Tensor, "batch horizon channel"]:
        """Compute the forecast an explanation stands for."""


@dataclass(frozen=True)
class Importance:
    """A graded map from any explainer, never negative, and how often it ran the predictor on the whole batch."""

    values: Float[Tensor, "batch look_back channel"]
    forwards: int
    backwards: int = 0


class Explainer(ABC):
    """From a predictor and windows to what its forecasts went by; the predictor is left as it was found."""

    @abstractmethod
    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value; `share` is the fraction of each window an explainer with a budget may mark."""


class SelfExplaining(ABC):
    """A forecaster that exposes what it went by as a graded map, cheaply and without another method's help."""

    @abstractmethod
    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Grade every look-back value, larger meaning more, never negative."""
