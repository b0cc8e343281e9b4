"""Statistics over only the observed steps."""

from jaxtyping import Bool, Float
from torch import Tensor


def mean_where(
    values: Float[Tensor, "batch horizon channel"], observed: Bool[Tensor, "batch horizon channel"]
) -> Float[Tensor, ""]:
    """Return the mean over the observed entries; 0 if there is none."""
    # The count stays a tensor: reading its value would stop the recording of a CUDA graph.
    return values.where(observed, values.new_zeros(())).sum() / observed.sum().clamp(min=1)


def filled_with_mean(
    values: Float[Tensor, "batch look_back channel"], observed: Bool[Tensor, "batch look_back channel"]
) -> Float[Tensor, "batch look_back channel"]:
    """Return the values with each channel's observed mean in place of missing ones."""
    mean = (values * observed).sum(dim=1, keepdim=True) / observed.sum(dim=1, keepdim=True).clamp(min=1)
    return values.where(observed, mean)
