"""Is a mask its window's own? Errors of windows that are read through whichever masks they are given."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ibforecast.core.contracts import Accountable
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import closed_to_zero
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import squared_error

BATCH = 1024


@torch.no_grad()
def masks_of(forecaster: Accountable, windows: Windows) -> Bool[Tensor, "window patch channel"]:
    """The mask of every window."""
    return torch.cat([forecaster(window).explanation.mask for window, _ in windows.batches(BATCH)])


def usual_mask(masks: Bool[Tensor, "window patch channel"], count: int) -> Bool[Tensor, "patch channel"]:
    """So many tokens as are open in the most windows, the earlier of equals first."""
    often = masks.sum(0)
    ranked = often.flatten().argsort(descending=True, stable=True)
    return torch.zeros_like(often, dtype=torch.bool).flatten().index_fill(0, ranked[:count], True).view_as(often)


@torch.no_grad()
def errors_through(
    forecaster: Accountable, windows: Windows, masks: Bool[Tensor, "window patch channel"]
) -> Float[Tensor, " window"]:
    """Squared error of each window read through the mask it is given; its context is its own."""
    errors = []
    for (window, target), mask in zip(windows.batches(BATCH), torch.split(masks, BATCH), strict=True):
        explanation: Explanation = forecaster(window).explanation
        held = mask & ~explanation.missing
        evidence = closed_to_zero(held, explanation.context.remove(window.values))
        errors.append(squared_error(forecaster.replay(replace(explanation, mask=held, evidence=evidence)), target))
    return torch.cat(errors).cpu()
