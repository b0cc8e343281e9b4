"""Tokens: one (patch, channel) cell of a window, a slice of patch_len steps. Paper: Eq. 3, d."""

from jaxtyping import Bool, Float, Shaped
from torch import Tensor


def to_tokens(
    steps: Shaped[Tensor, "batch look_back channel"], patch_len: int
) -> Shaped[Tensor, "batch patch channel patch_len"]:
    """Cut every channel into consecutive patches. Paper: Eq. 3, d."""
    batch, look_back, channel = steps.shape
    return steps.reshape(batch, look_back // patch_len, patch_len, channel).transpose(2, 3)


def from_tokens(
    tokens: Shaped[Tensor, "batch patch channel patch_len"],
) -> Shaped[Tensor, "batch look_back channel"]:
    """Join the patches end to end: the inverse of `to_tokens`."""
    batch, patch, channel, patch_len = tokens.shape
    return tokens.transpose(2, 3).reshape(batch, patch * patch_len, channel)


def spread(mask: Shaped[Tensor, "batch patch channel"], patch_len: int) -> Shaped[Tensor, "batch look_back channel"]:
    """Broadcast one value per token over the steps of its patch. Paper: Eq. 7, m̄."""
    return mask if patch_len == 1 else mask.repeat_interleave(patch_len, dim=1)


def closed_to_zero(
    mask: Bool[Tensor, "batch patch channel"], deviation: Float[Tensor, "batch look_back channel"]
) -> Float[Tensor, "batch look_back channel"]:
    """Keep the open tokens and replace all others by exact zeros. Paper: Eq. 7, m̄ ⊙ D."""
    # Not a product with the mask: 0 times infinity is NaN, and 0 times a negative number is -0.0.
    return deviation.where(spread(mask, deviation.shape[1] // mask.shape[1]), deviation.new_zeros(()))
