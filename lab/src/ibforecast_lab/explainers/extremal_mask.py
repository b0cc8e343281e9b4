"""ExtremalMask: Dynamask with replacements that are learned together with the mask."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from ibforecast.core.errors import require
from ibforecast.explain.subject import Subject, Values
from ibforecast_lab.explainers.dynamask import Dynamask, PerWindow, StandIn


class LearnedStandIn(StandIn):
    """The reference plus the output of two convolutions over the deviation, at most one scale away from it.

    It starts at the reference. Its term of the loss is `anchor_weight` times the mean square of that output.
    """

    def __init__(
        self, subject: Subject, width: int, kernel: int, anchor_weight: float, rate: float, generator: torch.Generator
    ) -> None:
        super().__init__(subject)
        self.rate, self.anchor_weight = rate, anchor_weight
        self.scale = subject.held.scale[:, None]
        deviation = subject.held.remove(subject.values).where(subject.window.observed, self.scale.new_zeros(()))
        self.rows = deviation.transpose(1, 2)
        channels = self.rows.shape[1]
        drawn = torch.rand(width, channels, kernel, generator=generator, device=generator.device)
        self.enter = nn.Parameter((2 * drawn - 1).to(deviation) / (channels * kernel) ** 0.5)
        self.bias = nn.Parameter(deviation.new_zeros(width))
        self.leave = nn.Parameter(deviation.new_zeros(channels, width, kernel))

    def forward(self) -> tuple[Values, PerWindow]:
        """Return the values, and their term of the loss."""
        hidden = functional.gelu(functional.conv1d(self.rows, self.enter, self.bias, padding="same"))
        proposed = torch.tanh(functional.conv1d(hidden, self.leave, padding="same")).transpose(1, 2)
        return self.reference + self.scale * proposed, self.anchor_weight * proposed.square().mean(dim=(1, 2))


@dataclass(frozen=True)
class ExtremalMask(Dynamask):
    """Dynamask that also learns the values that masked ones fade to, close to the reference (Enguehard 2023).

    The network that computes the replacements is fitted to each batch and shared by its windows. So a window's mask
    depends on the other windows of its batch; this is true of no other explainer here.
    """

    width: int = 32
    kernel: int = 5
    anchor_weight: float = 1.0
    network_rate: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width >= 1, "width must be at least 1", f"width={self.width}", "try 32")
        require(self.kernel >= 1 and self.kernel % 2 == 1, "kernel must be odd", f"kernel={self.kernel}", "try 5")
        require(
            self.anchor_weight >= 0,
            "anchor_weight must not be negative",
            f"anchor_weight={self.anchor_weight}",
            "try 1",
        )
        require(self.network_rate > 0, "network_rate must be positive", f"network_rate={self.network_rate}", "try 0.01")

    def stand_in(self, subject: Subject, generator: torch.Generator) -> StandIn:
        """Return the module that learns the values that masked ones fade to."""
        return LearnedStandIn(subject, self.width, self.kernel, self.anchor_weight, self.network_rate, generator)
