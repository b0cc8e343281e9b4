"""Instance normalisation in two variants and a neutral one, as inverse pairs."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class InstanceFrame:
    """A window's own level and scale per channel, removed before a network and restored after it."""

    level: Float[Tensor, "batch 1 channel"]
    scale: Float[Tensor, "batch 1 channel"]

    @classmethod
    def unbiased(cls, values: Float[Tensor, "batch look_back channel"]) -> "InstanceFrame":
        """Return the frame of CycleNet and TQNet: unbiased variance, gradients flow."""
        return cls(values.mean(dim=1, keepdim=True), (values.var(dim=1, keepdim=True) + 1e-5).sqrt())

    @classmethod
    def population(cls, values: Float[Tensor, "batch look_back channel"]) -> "InstanceFrame":
        """Return the frame of RevIN: population variance, no gradients."""
        variance = values.var(dim=1, keepdim=True, unbiased=False)
        return cls(values.mean(dim=1, keepdim=True).detach(), (variance + 1e-5).sqrt().detach())

    @classmethod
    def neutral(cls, values: Float[Tensor, "batch look_back channel"]) -> "InstanceFrame":
        """Return level 0 and scale 1, for data whose level has a meaning: solar power at night is zero."""
        return cls(torch.zeros_like(values[:, :1]), torch.ones_like(values[:, :1]))

    def remove(self, values: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch look_back channel"]:
        """Remove level and scale."""
        return (values - self.level) / self.scale

    def restore(self, values: Float[Tensor, "batch horizon channel"]) -> Float[Tensor, "batch horizon channel"]:
        """Restore scale and level."""
        return values * self.scale + self.level
