"""How much a mask tells, in bits: the rate term of the objective, token by token. Paper: Eq. 9, KL."""

from math import log

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core.errors import require
from ibforecast.core.explanation import Explanation


def token_bits(probability: Float[Tensor, "*shape"], prior: float) -> Float64[Tensor, "*shape"]:
    """KL(Bern(p) ‖ Bern(π)) of each token, in bits; finite at p = 0 and 1, zero at p = π. Paper: Eq. 9, KL."""
    require(0 < prior < 1, "prior must lie in (0, 1)", f"prior={prior}", "try 0.2")
    opened = probability.double()
    closed = 1 - opened
    nats = torch.special.xlogy(opened, opened / prior) + torch.special.xlogy(closed, closed / (1 - prior))
    bits: Tensor = nats.clamp(min=0) / log(2)
    return bits


def rate_bits(explanation: Explanation, prior: float) -> Float64[Tensor, " batch"]:
    """Bits of each window's gates above the prior, summed over its tokens; no gate decides a missing one."""
    bits = token_bits(explanation.probability, prior)
    return bits.where(~explanation.missing, 0.0).sum(dim=(1, 2))
