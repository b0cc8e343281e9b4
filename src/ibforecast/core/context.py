"""The disclosed context 𝒞 = (τ; μ, σ; Q), with its inverse pair `remove` and `restore`.

Beyond the paper, Q may be the sum of several profiles, and covariates that are known ahead may be part of 𝒞.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from jaxtyping import Float, Int
from typing_extensions import TypeVar

from ibforecast.core.cycles import tiled

if TYPE_CHECKING:
    from torch import Tensor

Array = TypeVar("Array", bound=Any, default="Tensor")
"""A tensor while the network runs, a numpy array in what users receive; the arithmetic is the same for both."""


def effect(
    known: Float[Array, "*batch some covariate"],
    response: Float[Array, "first_cycle covariate channel"],
    phase: Int[Array, "*batch some"],
) -> Float[Array, "*batch some covariate channel"]:
    """Return by how much each covariate moves each channel: its value times the channel's response at that phase."""
    moved: Array = known[..., None] * response[phase % len(response)]
    return moved


@dataclass(frozen=True)
class Context(Generic[Array]):
    """Phase, frame (level μ, scale σ) and seasonal profile Q of one window or a batch. Paper: Algorithm 1, C.

    `profile` contains the profiles of all `cycles` end to end (by default there is one), and phases are modulo their
    common period. `known` contains the covariates known ahead, over look-back and horizon. `response` is by how much
    a unit of each covariate moves each channel, at the phases of the first cycle. Everything is standardised, and the
    profile is in units of the scale.

    An anchored model mixes naive forecasts into its own: `blend` has the share of each in each channel, in the order of
    `core.anchors`, and `anchor` is their sum, weighted by these shares.
    """

    level: Float[Array, "*batch channel"] = field(metadata={"in_scales": True})
    scale: Float[Array, "*batch channel"] = field(metadata={"in_scales": True})
    phase: Int[Array, "*batch steps"] = field(metadata={"given": True})
    profile: Float[Array, "cycle channel"]
    cycles: tuple[int, ...] = ()
    known: Float[Array, "*batch steps covariate"] | None = field(
        default=None, metadata={"given": True, "written": False, "needs": "covariates"}
    )
    response: Float[Array, "first_cycle covariate channel"] | None = field(
        default=None, metadata={"needs": "covariates", "computed": False}
    )
    anchor: Float[Array, "*batch horizon channel"] | None = field(
        default=None, metadata={"needs": "anchored", "in_scales": True}
    )
    blend: Float[Array, "anchors channel"] | None = field(
        default=None, metadata={"needs": "anchored", "computed": False}
    )

    def __post_init__(self) -> None:
        if not self.cycles:
            object.__setattr__(self, "cycles", (len(self.profile),))

    def expected(self, phase: Int[Array, "*batch some"]) -> Float[Array, "*batch some channel"]:
        """Return the profile at these phases, tiled periodically. Paper: Eq. 2, Q^per."""
        return tiled(self.profile, phase, self.cycles)

    def remove(self, values: Float[Array, "*batch look_back channel"]) -> Float[Array, "*batch look_back channel"]:
        """Remove level, scale and profile from a look-back window. Paper: Eq. 2, D."""
        past = slice(values.shape[-2])
        if self.known is not None:
            values = values - self._effect(past)
        framed = (values - self.level[..., None, :]) / self.scale[..., None, :]
        deviation: Array = framed - self.expected(self.phase[..., past])
        return deviation

    def restore(self, deviation: Float[Array, "*batch horizon channel"]) -> Float[Array, "*batch horizon channel"]:
        """Restore profile, scale and level to future deviations, and blend in the anchor. Paper: Eq. 8, Ŷ."""
        future = slice(self.phase.shape[-1] - deviation.shape[-2], None)
        framed = self._framed(deviation + self.expected(self.phase[..., future]))
        if self.anchor is not None:
            framed = framed * (1 - self.anchored) + self.anchor
        return self._with_known(framed, future)

    @property
    def anchored(self) -> Float[Array, " channel"]:
        """The share of each channel's forecast that is its anchor; only an anchored model has one."""
        assert self.blend is not None
        share: Array = self.blend.sum(0)
        return share

    def reference(self, steps: int) -> Float[Array, "*batch steps channel"]:
        """Return what replaces absent tokens in the first `steps`: the seasonal pattern at this level, μ + σQ."""
        past = slice(steps)
        return self._with_known(self._framed(self.expected(self.phase[..., past])), past)

    def _framed(self, values: Float[Array, "*batch some channel"]) -> Float[Array, "*batch some channel"]:
        framed: Array = self.scale[..., None, :] * values + self.level[..., None, :]
        return framed

    def _with_known(
        self, values: Float[Array, "*batch some channel"], steps: slice
    ) -> Float[Array, "*batch some channel"]:
        moved: Array = values if self.known is None else values + self._effect(steps)
        return moved

    def _effect(self, steps: slice) -> Float[Array, "*batch some channel"]:
        """Return the sum of the effects of all covariates at these steps."""
        assert self.known is not None
        assert self.response is not None
        moved = effect(self.known[..., steps, :], self.response, self.phase[..., steps])
        total: Array = moved.sum(-2)
        return total
