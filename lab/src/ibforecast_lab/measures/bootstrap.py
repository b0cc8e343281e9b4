"""Is a difference of mean errors larger than chance? A paired bootstrap over blocks of windows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64, Shaped

from ibforecast.core.errors import require

Verdict = Literal["ahead", "level", "behind"]

DRAWS = 10_000
TAILS = (2.5, 97.5)
"""The percentiles that bound an interval of 95 %."""


@dataclass(frozen=True)
class Difference:
    """The relative difference of a mean error from another, and the bounds of its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """How the first error compares: ahead or behind only if the interval excludes 0."""
        if self.high < 0:
            return "ahead"
        return "behind" if self.low > 0 else "level"


def paired(
    errors: Float64[np.ndarray, " block"],
    others: Float64[np.ndarray, " block"],
    weights: Shaped[np.ndarray, " block"],
    draws: int = DRAWS,
    seed: int = 0,
) -> Difference:
    """Compare the mean errors of two models on the same blocks: mean(errors) / mean(others) − 1.

    The weight of a block is its number of windows. Each draw takes as many blocks as there are, with replacement, and
    the same blocks for both models, so that blocks that are hard for both do not widen the interval.
    """
    require(
        len(weights) > 1,
        "a bootstrap needs several blocks",
        len(weights),
        "measure more windows, or make the blocks shorter",
    )
    sums, other_sums = weights * errors, weights * others
    drawn = np.random.default_rng(seed).integers(len(weights), size=(draws, len(weights)))
    differences = sums[drawn].sum(axis=1) / other_sums[drawn].sum(axis=1) - 1
    low, high = np.percentile(differences, TAILS)
    return Difference(float(sums.sum() / other_sums.sum() - 1), float(low), float(high))
