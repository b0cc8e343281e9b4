"""Stage 4: compute the future deviation from evidence, mask and context, and from nothing else. Paper: Eq. 7, D̂."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, pad

from ibforecast.core.context import Context
from ibforecast.core.cycles import parts, tiled
from ibforecast.core.tokens import spread
from ibforecast.layers.attention import Attention, in_parts

Evidence = Float[Tensor, "batch look_back channel"]
Mask = Float[Tensor, "batch patch channel"]
Future = Float[Tensor, "batch horizon channel"]
Versions = Float[Tensor, "version look_back channel"]
"""Evidence of channels in several versions: any window combines one of each."""

Which = Int[Tensor, "some channel"]
SomeMask = Float[Tensor, "some patch channel"]

MIXTURES = 4
"""How many learned maps over time the channels of an additive readout share to read each other."""


class Readout(nn.Module, ABC):
    """f_base: from masked deviations to future deviations, shared by all channels. Paper: Eq. 7, D̂."""

    @abstractmethod
    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation."""

    def of_versions(
        self, versions: Versions, which: Which, mask: SomeMask, context: Context, columns: Sequence[int]
    ) -> Float[Tensor, "some horizon column"]:
        """Return the future deviation of some channels in many windows that consist of few versions of each channel.

        `which` is the version of each channel in each window. All windows have the same mask and the same phases. No
        bit of a channel depends on which other channels are in `columns`.
        """
        evidence = _picked(versions, which).transpose(1, 2)
        deviation: Tensor = self(evidence, mask, context)[..., list(columns)]
        return deviation


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
        return self.of_channels(evidence, mask, context.phase, context.cycles, slice(None))

    def of_channels(
        self,
        evidence: Evidence,
        mask: Mask,
        phase: Int[Tensor, "batch steps"],
        cycles: tuple[int, ...],
        channels: slice,
    ) -> Future:
        """Return the future deviation of some channels, from evidence and mask of only these."""
        tables = parts(self.phase.weight, cycles)
        embedded = reduce(add, (embedding(phase[:, 0] % len(table), table) for table in tables))
        hidden = self.enter(torch.cat([evidence, mask], dim=1).transpose(1, 2)) + embedded[:, None]
        if self.channel is not None:
            hidden = hidden + self.channel[channels]
        hidden = self.dropout(hidden + self.block(hidden))
        future: Tensor = self.leave(hidden)
        return future.transpose(1, 2)


class AdditiveReadout(Readout):
    """A readout that is a sum over what was read: each value adds a function of itself, given phase and channel.

    A value enters as it is and, so that extreme values count less, bent by tanh. With u = x − Q, its departure from the
    profile, and all sums over the open values, the future deviation of channel c in standardised units is

        σ_c D̂_c = σ_c base_c + Σ_c' [ A_cc' (x − μ − σQ)_c' + B_cc' (tanh u − mean tanh u)_c' ]

    A and B are the two halves of one map of rank `width`, W_out diag(1 + gain) (W_in δ_cc' + Σ_k M_k,cc' V_k), and gain
    and base depend only on phase and channel. Scales cancel, so nothing is a product of two values; only the scale
    itself, which multiplies the calendar, depends on several.
    """

    def __init__(self, look_back: int, horizon: int, cycle: int, channels: int, width: int, dropout: float) -> None:
        super().__init__()
        self.enter = nn.Linear(2 * look_back, width, bias=False)
        self.over = nn.Linear(2 * look_back, MIXTURES * width, bias=False)
        self.mix = nn.Parameter(torch.zeros(MIXTURES, channels, channels))
        self.phase = nn.Embedding(cycle, width)
        self.channel = nn.Parameter(torch.zeros(channels, width))
        self.block = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.gain = nn.Linear(width, width)
        self.base = nn.Linear(width, horizon)
        self.leave = nn.Linear(width, horizon, bias=False)
        self.dropout = nn.Dropout(dropout)
        for weights in (self.phase.weight, self.gain.weight, self.gain.bias):
            nn.init.zeros_(weights)

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation."""
        scale, opened = context.scale[:, None], spread(mask, evidence.shape[1] // mask.shape[1])
        departure = scale * evidence + (scale - 1) * self._season(evidence, context) + context.level[:, None]
        bent = torch.tanh(departure) * opened
        bent = (bent - bent.sum(dim=1, keepdim=True) / opened.sum(dim=1, keepdim=True).clamp(min=1)) * opened
        entering = torch.cat([scale * evidence, bent], dim=1).transpose(1, 2)
        others = torch.unflatten(self.over(entering), -1, (MIXTURES, -1))
        hidden = self.enter(entering) + torch.einsum("kcd,bdkw->bcw", self.mix, others)
        embedded = self._embedded(context, self.channel)
        hidden = self.dropout(hidden * (1 + self.gain(embedded)))
        future: Tensor = self.leave(hidden) / context.scale[:, :, None] + self.base(self.dropout(embedded))
        return future.transpose(1, 2)

    def weights(
        self, context: Context, column: int, places: Int[Tensor, "value 2"]
    ) -> tuple[Float[Tensor, "batch horizon"], Float[Tensor, "batch two value horizon"]]:
        """Return base and (A, B) of one channel that is forecast, for each step ahead.

        A and B are those of the values at `places`: the channel and the step of each.
        """
        channel, step = places.unbind(dim=1)
        embedded = self._embedded(context, self.channel[column : column + 1])[:, 0]
        gained = self.leave.weight * (1 + self.gain(embedded))[:, None]
        # Maps over time first, then their mixture: the product of both would be large with many channels. The horizon
        # is the last axis, so that the weights of a value are one piece of memory.
        ahead = gained.transpose(1, 2)
        maps = torch.unflatten(self.over.weight, 0, (MIXTURES, -1)).transpose(1, 2) @ ahead[:, None]
        over, own = (torch.unflatten(each, -2, (2, -1)) for each in (maps, self.enter.weight.T @ ahead))
        both = (over.index_select(-2, step) * self.mix[:, column, channel, None].unsqueeze(1)).sum(dim=1)
        itself = channel == column
        both[:, :, itself] += own[:, :, step[itself]]
        return self.base(embedded), both

    def _embedded(
        self, context: Context, channel: Float[Tensor, "channel width"]
    ) -> Float[Tensor, "batch channel width"]:
        tables = parts(self.phase.weight, context.cycles)
        phase = reduce(add, (embedding(context.phase[:, 0] % len(table), table) for table in tables))
        embedded = phase[:, None] + channel
        block: Tensor = self.block(embedded)
        return embedded + block

    @staticmethod
    def _season(evidence: Evidence, context: Context) -> Evidence:
        return context.expected(context.phase[:, : evidence.shape[1]])


class TargetsOnly(Readout):
    """A readout whose deviation is zero for the last `past` channels, which are read and not forecast."""

    def __init__(self, readout: Readout, past: int) -> None:
        super().__init__()
        self.readout, self.past = readout, past

    def forward(self, evidence: Evidence, mask: Mask, context: Context) -> Future:
        """Return the future deviation, zero for channels that are not forecast."""
        future: Tensor = self.readout(evidence, mask, context)
        return pad(future[..., : -self.past], (0, self.past))

    def of_versions(
        self, versions: Versions, which: Which, mask: SomeMask, context: Context, columns: Sequence[int]
    ) -> Float[Tensor, "some horizon column"]:
        """Return the future deviation of channels that are forecast."""
        return self.readout.of_versions(versions, which, mask, context, columns)


class CrossChannel(Readout):
    """A readout in which channels first read each other by attention, with learned queries for each phase."""

    def __init__(self, readout: PhaseReadout, look_back: int, cycle: int, channels: int, dropout: float) -> None:
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

    def of_versions(
        self, versions: Versions, which: Which, mask: SomeMask, context: Context, columns: Sequence[int]
    ) -> Float[Tensor, "some horizon column"]:
        """Return the future deviation of some channels: only their queries, and keys and values once per version."""
        queries = tiled(self.query, context.phase[:1, : versions.shape[1]], context.cycles).transpose(1, 2)
        own = [slice(column, column + 1) for column in columns]
        gathered = self.attention.of_versions([queries[:, each] for each in own], versions.transpose(1, 2), which)
        futures = []
        for column, each, others in zip(columns, own, gathered, strict=True):
            evidence = (versions[..., column][which[:, column]] + others)[..., None]
            some = zip(in_parts(evidence), in_parts(mask[..., each]), in_parts(context.phase), strict=True)
            ahead = [self.readout.of_channels(*part, cycles=context.cycles, channels=each) for part in some]
            futures.append(torch.cat(ahead))
        return torch.cat(futures, dim=-1)


def _picked(versions: Versions, which: Which) -> Float[Tensor, "some channel look_back"]:
    """Return the windows that `which` describes."""
    return versions.transpose(1, 2)[which, torch.arange(which.shape[1], device=which.device)]
