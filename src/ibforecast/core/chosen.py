"""The choice of windows to measure if not all are."""

import torch
from jaxtyping import Int
from torch import Tensor

from ibforecast.core.errors import require


def evenly_spaced(count: int, total: int) -> Int[Tensor, " chosen"]:
    """Return the indices of `count` of `total` windows, evenly spaced from first to last; all if there are fewer."""
    require(count >= 1, "count must be at least 1", f"count={count}", "give 1 or more")
    require(total >= 1, "total must be at least 1", f"total={total}", "give a data set that has windows")
    chosen = min(count, total)
    # In whole numbers: the choice must not depend on floating-point rounding.
    return torch.arange(chosen) * (total - 1) // max(chosen - 1, 1)
