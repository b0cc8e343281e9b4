"""iTransformer: every channel's whole look-back is one token, and a transformer runs over the channels."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.embedding import look_back_calendar
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class ITransformerConfig(Sizes):
    """`hidden` is the width of the feed-forward blocks; `calendar` adds four calendar series as tokens."""

    width: int = 512
    hidden: int = 512
    layers: int = 2
    heads: int = 8
    dropout: float = 0.1
    calendar: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "hidden", "layers", "heads")
        self.require_fraction("dropout")
        self.require_divides("heads", "width")


class ITransformer(Rival):
    """Embed each series whole, let the tokens attend to each other, and project each onto the horizon.

    Tokens have no positions: permuting the channels permutes the forecast.
    """

    def __init__(self, config: ITransformerConfig) -> None:
        super().__init__()
        self.reads_calendar = config.calendar
        self.embed = nn.Sequential(nn.Linear(config.look_back, config.width), nn.Dropout(config.dropout))
        self.encoder = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    config.width, config.heads, config.hidden, config.dropout, activation="gelu", batch_first=True
                )
                for _ in range(config.layers)
            ),
            nn.LayerNorm(config.width),
        )
        self.leave = nn.Linear(config.width, config.horizon)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values and, if `reads_calendar`, the calendar of the look-back."""
        series = frame.remove(values)
        covariates = look_back_calendar(window) if self.reads_calendar else series[:, :, :0]
        tokens = self.encoder(self.embed(torch.cat([series, covariates], dim=2).transpose(1, 2)))
        future: Tensor = self.leave(tokens[:, : values.shape[2]])  # calendar tokens have no future to forecast
        return frame.restore(future.transpose(1, 2))
