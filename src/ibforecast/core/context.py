"""The disclosed context 𝒞 = (τ; μ, σ; Q), and the two ways through it: remove and restore.

Beyond the paper, Q may be the sum of several profiles, and covariates that are known ahead may be part of 𝒞.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from ibforecast.core.cycles import tiled


def effect(
    known: Float[Tensor, "batch some covariate"],
    response: Float[Tensor, "cycle covariate channel"],
    phase: Int[Tensor, "batch some"],
) -> Float[Tensor, "batch some channel"]:
    """By how much covariates move every channel: each times the channel's response to it at that phase, added up."""
    return (known[..., None] * response[phase % len(response)]).sum(dim=2)


@dataclass(frozen=True)
class Context:
    """Phase, frame (level μ, scale σ) and seasonal profile Q of a batch of windows. Paper: Algorithm 1, C.

    The profiles of several `cycles` lie end to end in `profile` (by default it is that of one), and phases count modulo
    the period they share. `known` holds the covariates known ahead, over look-back and horizon, and `response` by how
    much a unit of each moves each channel, at the phases of the first cycle.
    """

    level: Float[Tensor, "batch channel"]
    scale: Float[Tensor, "batch channel"]
    phase: Int[Tensor, "batch steps"]
    profile: Float[Tensor, "cycle channel"]
    cycles: tuple[int, ...] = ()
    known: Float[Tensor, "batch steps covariate"] | None = None
    response: Float[Tensor, "first_cycle covariate channel"] | None = None

    def __post_init__(self) -> None:
        if not self.cycles:
            object.__setattr__(self, "cycles", (len(self.profile),))

    def expected(self, phase: Int[Tensor, "batch some"]) -> Float[Tensor, "batch some channel"]:
        """Read the profile at these phases, tiled periodically. Paper: Eq. 2, Q^per."""
        seasonal: Tensor = tiled(self.profile, phase, self.cycles)
        return seasonal

    def remove(self, values: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch look_back channel"]:
        """Take level, scale and profile out of a look-back window. Paper: Eq. 2, D."""
        past = slice(values.shape[1])
        framed = (self._without_known(values, past) - self.level[:, None]) / self.scale[:, None]
        return framed - self.expected(self.phase[:, past])

    def restore(self, deviation: Float[Tensor, "batch horizon channel"]) -> Float[Tensor, "batch horizon channel"]:
        """Give profile, scale and level back to future deviations. Paper: Eq. 8, Ŷ."""
        future = slice(self.phase.shape[1] - deviation.shape[1], None)
        expected = self.expected(self.phase[:, future])
        return self._with_known(self.scale[:, None] * (deviation + expected) + self.level[:, None], future)

    def reference(self, look_back: int) -> Float[Tensor, "batch look_back channel"]:
        """What stands in for an absent token: the seasonal pattern at the window's level, μ + σQ."""
        past = slice(look_back)
        return self._with_known(self.scale[:, None] * self.expected(self.phase[:, past]) + self.level[:, None], past)

    def _without_known(
        self, values: Float[Tensor, "batch some channel"], steps: slice
    ) -> Float[Tensor, "batch some channel"]:
        return values if self.known is None else values - self._effect(steps)

    def _with_known(
        self, values: Float[Tensor, "batch some channel"], steps: slice
    ) -> Float[Tensor, "batch some channel"]:
        return values if self.known is None else values + self._effect(steps)

    def _effect(self, steps: slice) -> Float[Tensor, "batch some channel"]:
        assert self.known is not None
        assert self.response is not None
        return effect(self.known[:, steps], self.response, self.phase[:, steps])
