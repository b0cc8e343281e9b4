"""TimeXer: attention within a channel's patches, and a token of the whole channel that looks at all series."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.attention import Attention
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.embedding import look_back_calendar, sinusoidal_positions
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class TimeXerConfig(Sizes):
    """`hidden` is the width of the feed-forward blocks; with `calendar`, four calendar series are looked at as well."""

    patch_len: int = 16
    width: int = 512
    hidden: int = 2048
    layers: int = 2
    heads: int = 8
    dropout: float = 0.1
    calendar: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("patch_len", "width", "hidden", "layers", "heads")
        self.require_fraction("dropout")
        self.require_divides("heads", "width")
        self.require_divides("patch_len", "look_back")

    @property
    def patches(self) -> int:
        """Number of patches of a channel."""
        return self.look_back // self.patch_len


class Layer(nn.Module):
    """Attention among the tokens of one channel, then of each channel's last token to all series, then feed-forward."""

    def __init__(self, config: TimeXerConfig) -> None:
        super().__init__()
        width = config.width
        self.within = Attention(width, config.heads, config.dropout)
        self.across = Attention(width, config.heads, config.dropout)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, config.hidden), nn.GELU(), nn.Dropout(config.dropout), nn.Linear(config.hidden, width)
        )
        self.within_norm, self.across_norm, self.feed_forward_norm = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self, tokens: Float[Tensor, "batch channel token width"], series: Float[Tensor, "batch series width"]
    ) -> Float[Tensor, "batch channel token width"]:
        """Return the tokens of every channel, informed of the other series through its last token."""
        own = tokens.flatten(0, 1)
        tokens = self.within_norm(own + self.dropout(self.within(own, own))).view_as(tokens)
        whole = tokens[:, :, -1]
        whole = self.across_norm(whole + self.dropout(self.across(whole, series)))
        tokens = torch.cat([tokens[:, :, :-1], whole[:, :, None]], dim=2)
        encoded: Tensor = self.feed_forward_norm(tokens + self.dropout(self.feed_forward(tokens)))
        return encoded


class TimeXer(Rival):
    """Patches of one channel are tokens, with a learned token of that channel; each series as a whole is another.

    A channel knows of the others only through its learned token. As in the authors' multivariate runs, every channel is
    forecast, and all of them, with the calendar, are the series that are looked at.
    """

    def __init__(self, config: TimeXerConfig) -> None:
        super().__init__()
        self.reads_calendar, self.patch_len = config.calendar, config.patch_len
        self.embed = nn.Linear(config.patch_len, config.width, bias=False)
        self.embed_series = nn.Sequential(nn.Linear(config.look_back, config.width), nn.Dropout(config.dropout))
        self.whole = nn.Parameter(torch.randn(config.channels, 1, config.width))
        position = sinusoidal_positions(config.patches, config.width)
        self.position = nn.Parameter(position, requires_grad=False)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.leave = nn.Sequential(
            nn.Linear((config.patches + 1) * config.width, config.horizon), nn.Dropout(config.dropout)
        )

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values and, if `reads_calendar`, the calendar of the look-back."""
        framed = frame.remove(values)
        patches = torch.unflatten(framed.transpose(1, 2), 2, (-1, self.patch_len))
        whole = self.whole.expand(len(values), -1, -1, -1)
        tokens = self.dropout(torch.cat([self.embed(patches) + self.position, whole], dim=2))
        calendar = look_back_calendar(window) if self.reads_calendar else framed[:, :, :0]
        series = self.embed_series(torch.cat([framed, calendar], dim=2).transpose(1, 2))
        for layer in self.layers:
            tokens = layer(tokens, series)
        future: Tensor = self.leave(self.norm(tokens).flatten(2))
        return frame.restore(future.transpose(1, 2))
