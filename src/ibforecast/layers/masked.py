"""Statistics over the observed steps alone."""

from jaxtyping import Bool, Float
from torch import Tensor


def mean_where(
    values: Float[Tensor, "batch horizon channel"], observed: Bool[Tensor, "batch horizon channel"]
) -> Float[Tensor, ""]:
    """Mean over the observed entries; zero where there is none."""
    return (values * observed).sum() / observed.sum().clamp(min=1)
