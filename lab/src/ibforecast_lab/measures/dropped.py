"""Errors without the last, incomplete batch of test windows, which many published numbers leave out.

The windows of a benchmark are in order of time, so the windows left out are the latest ones. How many they are depends
only on the size of the batch.
"""

from collections.abc import Iterator
from typing import Any

from jaxtyping import Float
from torch import Tensor

from ibforecast.evaluate.accuracy import Accuracy

BATCHES = (32, 128, 256, 2048)
"""The sizes of batches in the test loaders of published code."""

MEASURE = "dropped_batch"


def kept(errors: Float[Tensor, " window"], batch: int) -> Float[Tensor, " kept"]:
    """Return the errors of the windows in complete batches; none if there are fewer windows than a batch has."""
    return errors[: len(errors) // batch * batch]


def dropped_batches(accuracy: Accuracy) -> Iterator[dict[str, Any]]:
    """Yield the errors over complete batches of each size that leaves any windows."""
    for batch in BATCHES:
        squared, absolute = kept(accuracy.squared_error, batch), kept(accuracy.absolute_error, batch)
        if len(squared):
            yield {
                "measure": MEASURE,
                "batch": batch,
                "windows": len(squared),
                "mse": float(squared.mean()),
                "mae": float(absolute.mean()),
            }
