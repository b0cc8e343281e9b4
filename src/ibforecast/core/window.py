"""What enters a forecaster and what truly follows."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Window:
    """A batch of look-back windows X with the phase of every step, look-back and horizon alike.

    `values` is standardised and finite everywhere; where `observed` is false it means nothing.
    `phase` holds one entry per step because wall clocks jump: without a jump it is τ, τ+1, … modulo the cycle.
    `calendar` is there for forecasters that read the date itself: hour, weekday, day of month and day of year,
    each scaled to [−½, ½]. `known` holds the covariates known ahead, standardised, where a forecaster reads any.
    """

    values: Float[Tensor, "batch look_back channel"]
    observed: Bool[Tensor, "batch look_back channel"]
    phase: Int[Tensor, "batch steps"]
    calendar: Float[Tensor, "batch steps 4"] | None = None
    known: Float[Tensor, "batch steps covariate"] | None = None


@dataclass(frozen=True)
class Target:
    """What truly follows the windows, Y, and which of its values were observed."""

    values: Float[Tensor, "batch horizon channel"]
    observed: Bool[Tensor, "batch horizon channel"]
