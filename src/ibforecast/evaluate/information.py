"""The information of a mask in bits: the rate term of the objective, window by window. Paper: Eq. 9, KL."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.core import information
from ibforecast.core.explanation import Explanation


def token_bits(probability: Float[Tensor, "*shape"], prior: float) -> Float64[Tensor, "*shape"]:
    """Return KL(Bern(p) ‖ Bern(π)) of each token, in bits."""
    bits = information.token_bits(probability.detach().cpu().numpy(), prior)
    return torch.from_numpy(bits).to(probability.device)


def rate_bits(explanation: Explanation, prior: float) -> Float64[Tensor, " batch"]:
    """Return the bits of each window's gates beyond the prior, summed over its tokens without a missing step."""
    bits = token_bits(explanation.probability, prior)
    return bits.where(~explanation.missing, 0.0).sum(dim=(1, 2))
