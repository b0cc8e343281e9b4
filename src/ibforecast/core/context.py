"""The disclosed context 𝒞 = (τ; μ, σ; Q), and the two ways through it: remove and restore."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Context:
    """Phase, frame (level μ, scale σ) and seasonal profile Q of a batch of windows. Paper: Algorithm 1, C."""

    level: Float[Tensor, "batch channel"]
    scale: Float[Tensor, "batch channel"]
    phase: Int[Tensor, "batch steps"]
    profile: Float[Tensor, "cycle channel"]

    def expected(self, phase: Int[Tensor, "batch some"]) -> Float[Tensor, "batch some channel"]:
        """Read the profile at these phases, tiled periodically. Paper: Eq. 2, Q^per."""
        return self.profile[phase % self.profile.shape[0]]

    def remove(self, values: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch look_back channel"]:
        """Take level, scale and profile out of a look-back window. Paper: Eq. 2, D."""
        framed = (values - self.level[:, None]) / self.scale[:, None]
        return framed - self.expected(self.phase[:, : values.shape[1]])

    def restore(self, deviation: Float[Tensor, "batch horizon channel"]) -> Float[Tensor, "batch horizon channel"]:
        """Give profile, scale and level back to future deviations. Paper: Eq. 8, Ŷ."""
        expected = self.expected(self.phase[:, self.phase.shape[1] - deviation.shape[1] :])
        return self.scale[:, None] * (deviation + expected) + self.level[:, None]

    def reference(self, look_back: int) -> Float[Tensor, "batch look_back channel"]:
        """What stands in for an absent token: the seasonal pattern at the window's level, μ + σQ."""
        return self.scale[:, None] * self.expected(self.phase[:, :look_back]) + self.level[:, None]
