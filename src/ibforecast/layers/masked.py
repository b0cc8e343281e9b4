"""Statistics over the observed steps alone."""

from jaxtyping import Bool, Float
from torch import Tensor


def mean_where(
    values: Float[Tensor, "batch horizon channel"], observed: Bool[Tensor, "batch horizon channel"]
) -> Float[Tensor, ""]:
    """Mean over the observed entries; zero where there is none."""
    return values.where(observed, values.new_zeros(())).sum() / observed.sum().clamp(min=1)


def filled_with_mean(
    values: Float[Tensor, "batch look_back channel"], observed: Bool[Tensor, "batch look_back channel"]
) -> Float[Tensor, "batch look_back channel"]:
    """Put each channel's observed mean where nothing was observed."""
    mean = (values * observed).sum(dim=1, keepdim=True) / observed.sum(dim=1, keepdim=True).clamp(min=1)
    return values.where(observed, mean)
