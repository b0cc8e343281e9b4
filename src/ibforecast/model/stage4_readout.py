"""Stage 4: compute the future deviation from evidence, mask and context, and from nothing else. Paper: Eq. 7, D̂."""

from abc import ABC, abstractmethod
from functools import reduce
from operator import add

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from ibforecast.core.context import Context
from ibforecast.core.cycles import parts, tiled
from ibforecast.layers.attention import Attention

Evidence = Float[Tensor, "batch look_back channel"]
Mask = Float[Tensor, "batch patch channel"]
Future = Float[Tensor, "batch horizon channel"]


class Readout(nn.Module, ABC):
    """f_base: from masked deviations to future deviations, shared by all channels. Paper: Eq. 7, D̂."""

    @abstractmethod
    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation."""


class LinearReadout(Readout):
    """The paper's gated-linear readout: one linear map over time."""

    def __init__(self, look_back: int, horizon: int) -> None:
        super().__init__()
        self.map: nn.Module = nn.Linear(look_back, horizon)

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation, from the evidence only."""
        future: Tensor = self.map(evidence.transpose(1, 2))
        return future.transpose(1, 2)


class MLPReadout(LinearReadout):
    """The paper's MLP readout: one hidden layer with ReLU over time."""

    def __init__(self, look_back: int, horizon: int, width: int) -> None:
        super().__init__(look_back, horizon)
        self.map = nn.Sequential(nn.Linear(look_back, width), nn.ReLU(), nn.Linear(width, horizon))


class PhaseReadout(Readout):
    """The phase-aware residual readout: evidence and mask, plus an embedding of τ, a GELU block with a skip.

    `channels` adds a learned embedding of each channel; 0 leaves it out.
    """

    def __init__(
        self, look_back: int, horizon: int, patches: int, cycle: int, channels: int, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.enter = nn.Linear(look_back + patches, width)
        self.phase = nn.Embedding(cycle, width)
        self.block = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.dropout = nn.Dropout(dropout)
        self.leave = nn.Linear(width, horizon)
        nn.init.zeros_(self.phase.weight)
        self.channel = nn.Parameter(torch.zeros(channels, width)) if channels else None

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation."""
        tables = parts(self.phase.weight, context.cycles)
        phase = reduce(add, (embedding(context.phase[:, 0] % len(table), table) for table in tables))
        hidden = self.enter(torch.cat([evidence, mask], dim=1).transpose(1, 2)) + phase[:, None]
        if self.channel is not None:
            hidden = hidden + self.channel
        hidden = self.dropout(hidden + self.block(hidden))
        future: Tensor = self.leave(hidden)
        return future.transpose(1, 2)


class TargetsOnly(Readout):
    """A readout whose deviation is zero for the last `past` channels, which are read and not forecast."""

    def __init__(self, readout: Readout, past: int) -> None:
        super().__init__()
        self.readout, self.past = readout, past

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation, zero for channels that are not forecast."""
        future: Tensor = self.readout(evidence, mask, context)
        return pad(future[..., : -self.past], (0, self.past))


class CrossChannel(Readout):
    """A readout in which channels first read each other by attention, with learned queries for each phase."""

    def __init__(self, readout: Readout, look_back: int, cycle: int, channels: int, dropout: float) -> None:
        super().__init__()
        self.readout = readout
        self.query = nn.Parameter(torch.zeros(cycle, channels))
        heads = next(n for n in (4, 3, 2, 1) if look_back % n == 0)
        self.attention = Attention(look_back, heads, dropout)

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation."""
        query = tiled(self.query, context.phase[:, : evidence.shape[1]], context.cycles)
        gathered = self.attention(query.transpose(1, 2), evidence.transpose(1, 2)).transpose(1, 2)
        future: Tensor = self.readout(evidence + gathered, mask, context)
        return future
