"""TQNet: channels attend to each other with queries learned per phase of the cycle, then an MLP over time."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class TQNetConfig(Sizes):
    """`dropout` acts before the last layer, `attention_dropout` on the attention weights."""

    width: int = 512
    heads: int = 4
    dropout: float = 0.5
    attention_dropout: float = 0.5
    normalise: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "heads")
        self.require_fraction("dropout", "attention_dropout")
        self.require_divides("heads", "look_back")


class TQNet(Rival):
    """One attention over channels, whose queries are slices of a (cycle × channel) table, and a residual MLP.

    A channel is a token, and its look-back is the token's embedding: keys and values are the normalised series.
    """

    def __init__(self, config: TQNetConfig) -> None:
        super().__init__()
        self.frame = InstanceFrame.unbiased if config.normalise else InstanceFrame.neutral
        self.query = nn.Parameter(torch.zeros(config.cycle, config.channels))
        self.attention = nn.MultiheadAttention(
            config.look_back, config.heads, dropout=config.attention_dropout, batch_first=True
        )
        self.enter = nn.Linear(config.look_back, config.width)
        self.block = nn.Sequential(
            nn.Linear(config.width, config.width), nn.GELU(), nn.Linear(config.width, config.width), nn.GELU()
        )
        self.dropout = nn.Dropout(config.dropout)
        self.leave = nn.Linear(config.width, config.horizon)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values and the phase of every step."""
        series = frame.remove(values).transpose(1, 2)
        query = self.queries(window, values.shape[1])
        gathered, _ = self.attention(query, series, series, need_weights=False)
        hidden = self.enter(series + gathered)
        future: Tensor = self.leave(self.dropout(hidden + self.block(hidden)))
        return frame.restore(future.transpose(1, 2))

    def queries(self, window: Window, look_back: int) -> Float[Tensor, "batch channel look_back"]:
        """Return the rows of the table at the phases of the look-back."""
        return self.query[window.phase[:, :look_back] % len(self.query)].transpose(1, 2)
