"""Which windows are measured where not all of them are."""

import torch
from jaxtyping import Int
from torch import Tensor

from ibforecast.core.errors import require


def evenly_spaced(count: int, total: int) -> Int[Tensor, " chosen"]:
    """Places of `count` windows out of `total`, evenly spaced from the first to the last; all where there are fewer.

    In whole numbers: fractions of a step are cut off, never lost to rounding.
    """
    require(count >= 1, "count must be at least 1", f"count={count}", "ask for a window or more")
    require(total >= 1, "total must be at least 1", f"total={total}", "give a data set that has windows")
    chosen = min(count, total)
    return torch.arange(chosen) * (total - 1) // max(chosen - 1, 1)
