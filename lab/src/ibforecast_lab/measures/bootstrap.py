"""Is a difference of mean errors larger than chance? A paired bootstrap over runs of blocks of windows."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from jaxtyping import Float64, Shaped

from ibforecast.core.errors import require

Verdict = Literal["ahead", "level", "behind"]

DRAWS = 10_000
RUN = 7
"""The number of successive blocks that are drawn together. A run of seven days is a week."""

FEWEST_RUNS = 4
"""The smallest number of runs. With fewer, all draws contain nearly the same blocks and intervals are too short."""

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
    run: int = RUN,
) -> Difference:
    """Compare the mean errors of two models on the same blocks: mean(errors) / mean(others) − 1.

    The weight of a block is its number of windows. Each draw takes runs of successive blocks, with replacement, until
    there are as many blocks as before; a run may continue from the last block to the first. Runs are needed because
    neighbouring blocks are not independent: the targets of windows at the end of one reach into the next. The blocks
    are the same for both models, so that blocks that are hard for both do not widen the interval.
    """
    blocks = len(weights)
    require(
        blocks >= FEWEST_RUNS * run,
        f"a bootstrap with runs of {run} needs at least {FEWEST_RUNS * run} blocks",
        blocks,
        "measure more windows, or make the blocks shorter",
    )
    sums, other_sums = weights * errors, weights * others
    first = np.random.default_rng(seed).integers(blocks, size=(draws, ceil(blocks / run), 1))
    drawn = ((first + np.arange(run)) % blocks).reshape(draws, -1)[:, :blocks]
    differences = sums[drawn].sum(axis=1) / other_sums[drawn].sum(axis=1) - 1
    low, high = np.percentile(differences, TAILS)
    return Difference(float(sums.sum() / other_sums.sum() - 1), float(low), float(high))
