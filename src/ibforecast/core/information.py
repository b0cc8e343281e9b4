"""How much a gate tells, in bits: the one home of the arithmetic, for accounts and measures alike."""

from math import log

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core.errors import require


def token_bits(probability: Float[Tensor, "*shape"], prior: float) -> Float64[Tensor, "*shape"]:
    """KL(Bern(p) ‖ Bern(π)) of each token, in bits; finite at p = 0 and 1, zero at p = π. Paper: Eq. 9, KL."""
    require(0 < prior < 1, "prior must lie in (0, 1)", f"prior={prior}", "try 0.2")
    opened = probability.double()
    closed = 1 - opened
    nats = torch.special.xlogy(opened, opened / prior) + torch.special.xlogy(closed, closed / (1 - prior))
    bits: Tensor = nats.clamp(min=0) / log(2)
    return bits
