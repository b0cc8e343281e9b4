"""The information of a gate in bits; explanations and measures both use this definition."""

import numpy as np
from jaxtyping import Float, Float64

from ibforecast.core.errors import require


def token_bits(probability: Float[np.ndarray, "*shape"], prior: float) -> Float64[np.ndarray, "*shape"]:
    """Return KL(Bern(p) ‖ Bern(π)) of each token, in bits; finite at p = 0 and 1, zero at p = π. Paper: Eq. 9, KL."""
    require(0 < prior < 1, "prior must lie in (0, 1)", f"prior={prior}", "try 0.2")
    opened = probability.astype(np.float64)
    closed = 1 - opened
    with np.errstate(over="ignore"):  # a prior as small as a number can be, which no model has, gives infinity
        bits = _x_log2_y(opened, opened / prior) + _x_log2_y(closed, closed / (1 - prior))
    return np.asarray(np.maximum(bits, 0.0))  # near p = π rounding can give less than 0


def _x_log2_y(x: Float64[np.ndarray, "*shape"], y: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """Return x·log₂ y, and 0 where x is 0, for any y."""
    return x * np.log2(np.where(x > 0, y, 1.0))
