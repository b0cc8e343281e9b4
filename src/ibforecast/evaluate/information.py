"""How much a mask tells, in bits: the rate term of the objective, window by window. Paper: Eq. 9, KL."""

from jaxtyping import Float64
from torch import Tensor

from ibforecast.core.explanation import Explanation
from ibforecast.core.information import token_bits as token_bits


def rate_bits(explanation: Explanation, prior: float) -> Float64[Tensor, " batch"]:
    """Bits of each window's gates above the prior, summed over its tokens; no gate decides a missing one."""
    bits = token_bits(explanation.probability, prior)
    return bits.where(~explanation.missing, 0.0).sum(dim=(1, 2))
