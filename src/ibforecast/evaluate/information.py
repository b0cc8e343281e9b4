"""How much a mask tells, in bits: the rate term of the objective, window by window. Paper: Eq. 9, KL."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core import information
from ibforecast.core.explanation import Explanation


def token_bits(probability: Float[Tensor, "*shape"], prior: float) -> Float64[Tensor, "*shape"]:
    """KL(Bern(p) ‖ Bern(π)) of each token, in bits."""
    told = information.token_bits(probability.detach().cpu().numpy(), prior)
    return torch.from_numpy(told).to(probability.device)


def rate_bits(explanation: Explanation, prior: float) -> Float64[Tensor, " batch"]:
    """Bits of each window's gates above the prior, summed over its tokens; no gate decides a missing one."""
    bits = token_bits(explanation.probability, prior)
    return bits.where(~explanation.missing, 0.0).sum(dim=(1, 2))
