"""The input of a forecaster and the values that truly follow."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Window:
    """A batch of look-back windows X with the phase of every step, look-back and horizon alike.

    `values` is standardised and finite everywhere; where `observed` is false, the value has no meaning.
    `phase` has one entry per step because wall clocks jump: without a jump it is τ, τ+1, … modulo the cycle.
    `calendar` is for forecasters that read the date: hour, weekday, day of month and day of year, each scaled to
    [−½, ½]. `known` contains the standardised covariates known ahead, if a forecaster reads any.
    """

    values: Float[Tensor, "batch look_back channel"]
    observed: Bool[Tensor, "batch look_back channel"]
    phase: Int[Tensor, "batch steps"]
    calendar: Float[Tensor, "batch steps 4"] | None = None
    known: Float[Tensor, "batch steps covariate"] | None = None


@dataclass(frozen=True)
class Target:
    """The values Y that truly follow the windows, and which of them were observed."""

    values: Float[Tensor, "batch horizon channel"]
    observed: Bool[Tensor, "batch horizon channel"]
