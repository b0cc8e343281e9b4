"""Errors of windows read through other masks than their own: is a mask specific to its window?"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ibforecast.core.contracts import Accountable
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import closed_to_zero
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import squared_error
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import ReadingForecast, only

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


def read_through(forecaster: IBForecast, window: Window, mask: Bool[Tensor, "batch patch channel"]) -> Explanation:
    """Return the explanation of windows that are read through the given masks.

    A sealed model takes level and scale from what is read, so they depend on the mask. Any other model takes them from
    the whole window and keeps them.
    """
    missing = forecaster.missing(window)
    readable = mask & ~missing  # a missing token stays closed: there is no value to read
    seen = only(window, readable) if isinstance(forecaster, ReadingForecast) else window
    context, deviation = forecaster.decompose(seen)
    evidence = closed_to_zero(readable, deviation)
    return Explanation(readable, evidence, readable.to(evidence.dtype), missing, context)


@torch.no_grad()
def errors_through(
    forecaster: IBForecast, windows: Windows, masks: Bool[Tensor, "window patch channel"]
) -> Float[Tensor, " window"]:
    """Return the squared error of each window, read through the given mask."""
    batches = zip(windows.batches(BATCH), torch.split(masks, BATCH), strict=True)
    errors = [
        squared_error(forecaster.replay(read_through(forecaster, window, mask)), target)
        for (window, target), mask in batches
    ]
    return torch.cat(errors).cpu()


def blocks_of(windows: Windows, steps: int) -> Int[Tensor, " window"]:
    """Return the number of the block of each window: windows that start within the same `steps` steps share one.

    Steps are counted from the start of the first window. Only blocks that have windows are numbered.
    """
    starts = windows.starts.cpu().numpy()
    return torch.from_numpy(np.unique((starts - starts.min()) // steps, return_inverse=True)[1])


def block_means(errors: Float[Tensor, " window"], block: Int[Tensor, " window"]) -> Float[Tensor, " block"]:
    """Return the mean error of each block."""
    return torch.bincount(block, errors) / torch.bincount(block)
