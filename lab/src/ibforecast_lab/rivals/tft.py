"""TFT, its interpretable core: variable selection, a recurrent encoder and decoder, attention with shared values."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ibforecast.core.contracts import SelfExplaining
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class TFTConfig(Sizes):
    """`width` is that of every layer, `heads` are those of the attention."""

    width: int = 64
    heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "heads")
        self.require_fraction("dropout")
        self.require_divides("heads", "width")


class LinearPerChannel(nn.Module):
    """One linear layer per channel, computed as one batched product."""

    def __init__(self, channels: int, enter: int, leave: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, enter, leave).uniform_(-(enter**-0.5), enter**-0.5))
        self.bias = nn.Parameter(torch.empty(channels, 1, leave).uniform_(-(enter**-0.5), enter**-0.5))

    def forward(self, rows: Float[Tensor, "channel row enter"]) -> Float[Tensor, "channel row leave"]:
        """Map the rows of each channel by that channel's weights."""
        return torch.baddbmm(self.bias, rows, self.weight)


class NormPerChannel(nn.Module):
    """One layer normalisation per channel."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels, 1, width))
        self.shift = nn.Parameter(torch.zeros(channels, 1, width))

    def forward(self, rows: Float[Tensor, "channel row width"]) -> Float[Tensor, "channel row width"]:
        """Normalise every row."""
        return functional.layer_norm(rows, rows.shape[-1:]) * self.gain + self.shift


class GateAddNorm(nn.Module):
    """A gated linear unit that decides how much of the new rows is added to the kept ones, then normalisation."""

    def __init__(
        self,
        width: int,
        dropout: float,
        linear: Callable[[int, int], nn.Module] = nn.Linear,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.dropout, self.gate, self.norm = nn.Dropout(dropout), linear(width, 2 * width), norm(width)

    def forward(
        self, new: Float[Tensor, "*some width"], kept: Float[Tensor, "*some width"]
    ) -> Float[Tensor, "*some width"]:
        """Return norm(kept + GLU(new))."""
        merged: Tensor = self.norm(kept + functional.glu(self.gate(self.dropout(new)), dim=-1))
        return merged


class GatedResidual(nn.Module):
    """The gated residual network (GRN): linear, ELU, linear, then gated, added to its input and normalised."""

    def __init__(
        self,
        enter: int,
        width: int,
        leave: int,
        dropout: float,
        linear: Callable[[int, int], nn.Module] = nn.Linear,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
    ) -> None:
        super().__init__()
        self.body = nn.Sequential(linear(enter, width), nn.ELU(), linear(width, leave))
        self.skip = nn.Identity() if enter == leave else linear(enter, leave)
        self.merge = GateAddNorm(leave, dropout, linear, norm)

    def forward(self, rows: Float[Tensor, "*some enter"]) -> Float[Tensor, "*some leave"]:
        """Transform every row."""
        transformed: Tensor = self.merge(self.body(rows), self.skip(rows))
        return transformed


class VariableSelection(nn.Module):
    """Embeds every channel, and adds the channels up with weights that are computed at every step."""

    def __init__(self, channels: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embed = LinearPerChannel(channels, 1, width)
        self.weigh = GatedResidual(channels * width, width, channels, dropout)
        self.refine = GatedResidual(
            width, width, width, dropout, partial(LinearPerChannel, channels), partial(NormPerChannel, channels)
        )

    def forward(
        self, values: Float[Tensor, "batch look_back channel"]
    ) -> tuple[Float[Tensor, "batch look_back width"], Float[Tensor, "batch look_back channel"]]:
        """Return the weighted sum of the channels, and the weights."""
        embedded = self.embed(values.permute(2, 0, 1).flatten(1)[..., None])  # channel, batch · look_back, width
        weights = torch.softmax(self.weigh(embedded.transpose(0, 1).flatten(1)), dim=-1)
        selected = torch.einsum("rc,crw->rw", weights, self.refine(embedded))
        return torch.unflatten(selected, 0, values.shape[:2]), torch.unflatten(weights, 0, values.shape[:2])


class SharedValueAttention(nn.Module):
    """Attention whose heads share their values, so that the mean of their weights shows what was read."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width // heads), nn.Linear(width // heads, width, bias=False)

    def forward(
        self, rows: Float[Tensor, "batch steps width"], horizon: int
    ) -> tuple[Float[Tensor, "batch horizon width"], Float[Tensor, "batch horizon steps"]]:
        """Let each of the last `horizon` rows attend to itself and all rows before; return also the mean weights."""
        query, key = self._split(self.query(rows[:, -horizon:])), self._split(self.key(rows))
        ahead = torch.ones(horizon, rows.shape[1], dtype=torch.bool, device=rows.device)
        ahead = ahead.triu(rows.shape[1] - horizon + 1)
        logits = (query @ key.transpose(-2, -1) * key.shape[-1] ** -0.5).masked_fill(ahead, float("-inf"))
        weights = torch.softmax(logits, dim=-1).mean(dim=1)
        return self.out(weights @ self.value(rows)), weights

    def _split(self, rows: Float[Tensor, "batch some width"]) -> Float[Tensor, "batch heads some part"]:
        return torch.unflatten(rows, 2, (self.heads, -1)).transpose(1, 2)


class TFT(Rival, SelfExplaining):
    """The core of TFT without statics, known future or quantiles, in an instance frame, for all channels at once.

    Our choices: the decoder's inputs are learned horizon embeddings, because there is no known future. A future step
    attends to the look-back and to the future steps up to itself.
    """

    def __init__(self, config: TFTConfig) -> None:
        super().__init__()
        self.config = config
        width, dropout = config.width, config.dropout
        self.select = VariableSelection(config.channels, width, dropout)
        self.ahead = nn.Parameter(torch.randn(config.horizon, width))
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.after_recurrence = GateAddNorm(width, dropout)
        self.enrich = GatedResidual(width, width, width, dropout)
        self.attention = SharedValueAttention(width, config.heads)
        self.after_attention = GateAddNorm(width, dropout)
        self.position_wise = GatedResidual(width, width, width, dropout)
        self.before_readout = GateAddNorm(width, 0.0)
        self.readout = nn.Linear(width, config.channels)

    def train(self, mode: bool = True) -> "TFT":
        """Set the mode of all layers except the recurrent ones, which always stay in training mode."""
        super().train(mode)
        # cuDNN computes gradients of an LSTM only in training mode, and explainers need them in evaluation. An LSTM of
        # one layer has no dropout, so its mode changes no forecast.
        self.encoder.train()
        self.decoder.train()
        return self

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast in the window's own frame."""
        future, _, _ = self._read(frame.remove(values))
        return frame.restore(future)

    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Return the mean attention to each step, renormalised over the look-back, times the selection weight."""
        values = filled_with_mean(window.values, window.observed)
        _, attention, selection = self._read(InstanceFrame.population(values).remove(values))
        attended = attention.mean(dim=1)[:, : self.config.look_back]
        return (attended / attended.sum(dim=1, keepdim=True))[..., None] * selection

    def _read(
        self, values: Float[Tensor, "batch look_back channel"]
    ) -> tuple[
        Float[Tensor, "batch horizon channel"],
        Float[Tensor, "batch horizon steps"],
        Float[Tensor, "batch look_back channel"],
    ]:
        """Return the future, the attention of each future step, and the weight of each channel at each past step."""
        horizon = self.config.horizon
        # 1. The input of every step, past and future: (batch, look_back + horizon, width).
        past, selection = self.select(values)
        entered = torch.cat([past, self.ahead.expand(len(values), -1, -1)], dim=1)
        # 2. Local patterns: one recurrent layer reads the past, another continues from its state.
        read, state = self.encoder(past)
        continued, _ = self.decoder(entered[:, -horizon:], state)
        local = self.after_recurrence(torch.cat([read, continued], dim=1), entered)
        # 3. Distant patterns: the future steps attend.
        enriched = self.enrich(local)
        attended, attention = self.attention(enriched, horizon)
        distant = self.position_wise(self.after_attention(attended, enriched[:, -horizon:]))
        # 4. All channels at once.
        future = self.readout(self.before_readout(distant, local[:, -horizon:]))
        return future, attention, selection
