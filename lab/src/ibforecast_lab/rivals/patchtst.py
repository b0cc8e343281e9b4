"""PatchTST: overlapping patches of one channel are tokens, and a transformer runs over each channel separately."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.errors import require, require_choice
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.embedding import sinusoidal_positions
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class PatchTSTConfig(Sizes):
    """`variant`: "library" is the network behind the published numbers, "official" is the authors' network.

    The library's network has fixed sinusoidal positions, layer normalisation, and one batch normalisation at the end.
    The official network learns its positions, uses batch normalisation throughout, and adds the attention scores of
    each layer to those of the next.
    """

    variant: Literal["library", "official"] = "library"
    patch_len: int = 16
    stride: int = 8
    width: int = 512
    hidden: int = 2048
    layers: int = 2
    heads: int = 8
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("variant", self.variant, ("library", "official"))
        self.require_positive("patch_len", "stride", "width", "hidden", "layers", "heads")
        self.require_fraction("dropout")
        self.require_divides("heads", "width")
        require(
            self.patch_len <= self.look_back,
            "patch_len must not exceed look_back",
            f"patch_len={self.patch_len}, look_back={self.look_back}",
            f"try {self.look_back} or less",
        )

    @property
    def patches(self) -> int:
        """Number of patches, one more than fit into the look-back because of the padding at its end."""
        return (self.look_back - self.patch_len) // self.stride + 2


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation of every feature over all rows."""

    def forward(self, rows: Float[Tensor, "batch patch width"]) -> Float[Tensor, "batch patch width"]:
        """Normalise the last axis; PyTorch expects the features on the second."""
        return super().forward(rows.transpose(1, 2)).transpose(1, 2)


class Layer(nn.Module):
    """A post-norm transformer layer that adds the previous layer's attention scores to its own and returns the sum.

    Written out because PyTorch's fused attention accepts at most 65,535 sequences at a time, and one window has a
    sequence per channel.
    """

    def __init__(self, config: PatchTSTConfig, norm: Callable[[int], nn.Module], attention_dropout: float) -> None:
        super().__init__()
        width, self.heads = config.width, config.heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, config.hidden), nn.GELU(), nn.Dropout(config.dropout), nn.Linear(config.hidden, width)
        )
        self.attention_norm, self.feed_forward_norm = norm(width), norm(width)
        self.dropout, self.attention_dropout = nn.Dropout(config.dropout), nn.Dropout(attention_dropout)

    def forward(
        self, rows: Float[Tensor, "batch patch width"], earlier: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "batch patch width"], Float[Tensor, "batch heads patch patch"]]:
        """Return (rows, scores)."""
        parts = self.query_key_value(rows).unflatten(2, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5 + earlier
        gathered = (self.attention_dropout(scores.softmax(dim=-1)) @ value).transpose(1, 2).flatten(2)
        attended = self.attention_norm(rows + self.dropout(self.out(gathered)))
        return self.feed_forward_norm(attended + self.dropout(self.feed_forward(attended))), scores


class PatchTST(Rival):
    """Patch each channel, embed, encode, flatten, and map onto the horizon; all channels share the weights."""

    def __init__(self, config: PatchTSTConfig) -> None:
        super().__init__()
        library = config.variant == "library"
        self.patch_len, self.stride = config.patch_len, config.stride
        self.carried = 0.0 if library else 1.0
        norm, attention_dropout = (nn.LayerNorm, config.dropout) if library else (BatchNorm, 0.0)
        self.embed = nn.Linear(config.patch_len, config.width, bias=not library)
        positions = sinusoidal_positions(config.patches, config.width)
        self.position = nn.Parameter(
            positions if library else torch.empty_like(positions).uniform_(-0.02, 0.02), requires_grad=not library
        )
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(Layer(config, norm, attention_dropout) for _ in range(config.layers))
        self.norm = BatchNorm(config.width) if library else nn.Identity()
        self.leave = nn.Sequential(
            nn.Linear(config.patches * config.width, config.horizon), nn.Dropout(config.dropout if library else 0.0)
        )

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values."""
        tokens = self.to_patches(frame.remove(values))
        rows = self.dropout(self.embed(tokens.flatten(0, 1)) + self.position)
        earlier = rows.new_zeros(())
        for layer in self.layers:
            rows, scores = layer(rows, earlier)
            earlier = self.carried * scores
        future: Tensor = self.leave(self.norm(rows).flatten(1)).unflatten(0, tokens.shape[:2])
        return frame.restore(future.transpose(1, 2))

    def to_patches(
        self, values: Float[Tensor, "batch look_back channel"]
    ) -> Float[Tensor, "batch channel patch patch_len"]:
        """Repeat the last value for one stride, and cut every channel into overlapping patches."""
        padded = torch.cat([values, values[:, -1:].expand(-1, self.stride, -1)], dim=1)
        return padded.unfold(1, self.patch_len, self.stride).transpose(1, 2)
