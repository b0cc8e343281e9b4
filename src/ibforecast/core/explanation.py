"""A forecast and the explanation it was computed from. Paper: Algorithm 1, E."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from ibforecast.core.context import Context


@dataclass(frozen=True)
class Explanation:
    """E = (mask, evidence) of a batch of windows, with its context. Paper: Algorithm 1, E.

    `probability` grades the tokens: what is open lies above ½, and what lies above ½ yet is closed fell to the
    budget. `missing` marks the tokens with a missing step, which are never open.
    """

    mask: Bool[Tensor, "batch patch channel"]
    evidence: Float[Tensor, "batch look_back channel"]
    probability: Float[Tensor, "batch patch channel"]
    missing: Bool[Tensor, "batch patch channel"]
    context: Context

    @property
    def open_count(self) -> Int[Tensor, " batch"]:
        """Number of open tokens of each window."""
        return self.mask.sum(dim=(1, 2))

    @property
    def open_rate(self) -> Float[Tensor, " batch"]:
        """Realised fraction of each window that was read."""
        return self.mask.double().mean(dim=(1, 2))


@dataclass(frozen=True)
class Forecast:
    """Ŷ and, where the forecaster has one, the explanation it was computed from."""

    values: Float[Tensor, "batch horizon channel"]
    explanation: Explanation | None = None
