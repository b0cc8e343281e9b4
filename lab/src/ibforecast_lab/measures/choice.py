"""Errors of windows read through other masks than their own: is a mask specific to its window?"""

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
    """Return the mask of every window."""
    return torch.cat([forecaster(window).explanation.mask for window, _ in windows.batches(BATCH)])


def usual_mask(masks: Bool[Tensor, "window patch channel"], count: int) -> Bool[Tensor, "patch channel"]:
    """Mark the `count` tokens that are open in the most windows; of equals, the earlier come first."""
    often = masks.sum(0)
    ranked = often.flatten().argsort(descending=True, stable=True)
    return torch.zeros_like(often, dtype=torch.bool).flatten().index_fill(0, ranked[:count], True).view_as(often)


@torch.no_grad()
def errors_through(
    forecaster: Accountable, windows: Windows, masks: Bool[Tensor, "window patch channel"]
) -> Float[Tensor, " window"]:
    """Return the squared error of each window, read through the given mask and in its own context."""
    errors = []
    for (window, target), mask in zip(windows.batches(BATCH), torch.split(masks, BATCH), strict=True):
        explanation: Explanation = forecaster(window).explanation
        readable = mask & ~explanation.missing  # a missing token stays closed: there is no value to read
        evidence = closed_to_zero(readable, explanation.context.remove(window.values))
        errors.append(squared_error(forecaster.replay(replace(explanation, mask=readable, evidence=evidence)), target))
    return torch.cat(errors).cpu()
