"""Stage 1: take level, scale and seasonal profile out of the window. Paper: Eq. 2, D."""

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import reduce
from math import gcd, log
from operator import add

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn.functional import pad

from ibforecast.core.anchors import anchor_names, median_cycles, repeatable
from ibforecast.core.context import Context, effect
from ibforecast.core.cycles import parts, tiled
from ibforecast.core.errors import require
from ibforecast.core.window import Window
from ibforecast.layers import naive

SMALLEST_VARIANCE, SMALLEST_WEIGHT = 1e-5, 1e-37
FIRST_DOUBT = 8.0
"""The first value of `doubt`: how many further steps of ordinary spread the scale of a seasonal frame counts."""

Steps = Float[Tensor, "batch look_back channel"]
Seen = Shaped[Tensor, "batch look_back channel"]
"""Boolean in use; in training a number that carries the gradient of the gates."""

PerChannel = Float[Tensor, "batch channel"]


def spread_about(level: PerChannel, values: Steps, seen: Seen) -> PerChannel:
    """Return the unbiased standard deviation of the seen steps about a level, kept away from zero. Paper: Eq. 2, σ."""
    squares = ((values - level[:, None]) ** 2 * seen).sum(dim=1)
    return (squares / (seen.sum(dim=1) - 1).clamp(min=1) + SMALLEST_VARIANCE).sqrt()


def weighted_mean(values: Steps, weights: Steps) -> PerChannel:
    """Return the mean over the steps; 0 for a channel without any weight."""
    total = weights.sum(dim=1)
    # Divided by 1 where there is no weight: a tiny divisor would be harmless here and infinite in the gradient.
    return (values * weights).sum(dim=1) / total.where(total > SMALLEST_WEIGHT, 1.0)


class Frame(nn.Module, ABC):
    """Level and scale of a window from the steps that are seen.

    `seen` is 1 for a seen step and 0 for any other; in training it carries the gradient of the gates. `season` is the
    profile at each step.
    """

    @abstractmethod
    def forward(self, values: Steps, seen: Seen, season: Steps) -> tuple[PerChannel, PerChannel]:
        """Return (level, scale)."""


class MeanFrame(Frame):
    """Level and scale as the mean and the spread of the seen steps. Paper: Eq. 2, μ."""

    def forward(self, values: Steps, seen: Seen, season: Steps) -> tuple[PerChannel, PerChannel]:
        """Return (level, scale)."""
        level = (values * seen).sum(dim=1) / seen.sum(dim=1).clamp(min=1)
        return level, spread_about(level, values, seen)


class WeightedFrame(Frame):
    """A learned weighted level: one softmax over the look-back, shared by all channels; scale = spread about it."""

    def __init__(self, look_back: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(look_back))

    def forward(self, values: Steps, seen: Seen, season: Steps) -> tuple[PerChannel, PerChannel]:
        """Return (level, scale)."""
        level = weighted_mean(values, torch.softmax(self.logits, dim=0)[:, None] * seen)
        return level, spread_about(level, values, seen)


class SeasonalFrame(Frame):
    """Level and scale from few steps, whichever hours those are: the profile is taken out before averaging.

    The level is a mean with one learned weight per step and channel. The scale shrinks towards 1, the scale of the
    training rows, as if `doubt` further steps had been seen with that spread; `doubt` is learned for each channel.

        μ₀ = Σ w (x − Q) / Σ w
        σ² = (doubt + Σ (x − μ₀)²) / (doubt + n)
        μ = Σ w (x − σQ) / Σ w
    """

    def __init__(self, look_back: int, channels: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(look_back, channels))
        self.doubt = nn.Parameter(torch.full((channels,), log(FIRST_DOUBT)))

    def forward(self, values: Steps, seen: Seen, season: Steps) -> tuple[PerChannel, PerChannel]:
        """Return (level, scale)."""
        weights = torch.softmax(self.logits, dim=0) * seen
        level, of_season = weighted_mean(values, weights), weighted_mean(season, weights)
        first = level - of_season
        doubt = self.doubt.exp()
        squares = ((values - first[:, None]) ** 2 * seen).sum(dim=1)
        scale = ((doubt + squares) / (doubt + seen.sum(dim=1))).sqrt()
        return level - scale * of_season, scale


class NoFrame(Frame):
    """The ablation: level 0 and scale 1, whatever the window."""

    def forward(self, values: Steps, seen: Seen, season: Steps) -> tuple[PerChannel, PerChannel]:
        """Return (level, scale)."""
        return torch.zeros_like(values[:, 0]), torch.ones_like(values[:, 0])


def separated(profile: Float[Tensor, "cycle channel"], cycles: tuple[int, ...]) -> Float[Tensor, "cycle channel"]:
    """Remove from each profile what an earlier one can express, so that no pattern is counted twice.

    A pattern that fits two cycles has the period of their greatest common divisor. The mean over phases that are equal
    modulo that period is taken out of the later profile. A week's profile next to a day's is then only the difference
    between its days.
    """
    if len(cycles) == 1:
        return profile
    kept: list[Tensor] = []
    for number, part in enumerate(parts(profile, cycles)):
        for earlier in cycles[:number]:
            rows = part.reshape(-1, gcd(earlier, len(part)), part.shape[1])
            part = (rows - rows.mean(dim=0)).reshape_as(part)
        kept.append(part)
    return torch.cat(kept)


class Anchor(nn.Module):
    """Naive forecasts that are blended into the forecast: `blend` has the share of each in each channel.

    Each is a weighted sum of the values that are seen, given which of them are, or repeats `medians` of the training
    rows at each phase of the cycles, with those of all cycles end to end. Nothing here is learned with the network:
    `zoo.anchoring` chooses the shares on validation windows.
    """

    blend: Float[Tensor, "anchors channel"]
    medians: Float[Tensor, "phase channel"] | None

    def __init__(self, look_back: int, cycles: tuple[int, ...], channels: int, medians: bool = False) -> None:
        super().__init__()
        self.repeated, self.cycles = repeatable(cycles, look_back), median_cycles(cycles)
        self.register_buffer("blend", torch.zeros(len(anchor_names(cycles, look_back, medians)), channels))
        self.register_buffer("medians", torch.zeros(sum(self.cycles), channels) if medians else None)

    def each(self, values: Steps, seen: Seen, horizon: int) -> Float[Tensor, "anchors batch horizon channel"]:
        """Return every naive forecast from the values that are seen, in the order of `core.anchors`."""
        observed = seen > 0
        newest, line = naive.repeated(values, observed, 1, horizon), naive.continued(values, observed, horizon)
        return torch.stack([newest, line, *(naive.repeated(values, observed, each, horizon) for each in self.repeated)])

    def of_medians(self, ahead: Int[Tensor, "batch horizon"]) -> Float[Tensor, "batch horizon channel"] | None:
        """Return the sum of the medians at these phases, weighted by their shares; None if there are none."""
        if self.medians is None:
            return None
        tables = zip(self.blend[-len(self.cycles) :], parts(self.medians, self.cycles), strict=True)
        summed: Tensor = reduce(add, (share * table[ahead % len(table)] for share, table in tables))
        return summed

    def forward(
        self, values: Steps, seen: Seen, ahead: Int[Tensor, "batch horizon"]
    ) -> Float[Tensor, "batch horizon channel"]:
        """Return the sum of the naive forecasts, weighted by their shares; `ahead` has the phases of the horizon."""
        each, medians = self.each(values, seen, ahead.shape[1]), self.of_medians(ahead)
        continued = torch.einsum("ac,abhc->bhc", self.blend[: len(each)], each)
        return continued if medians is None else continued + medians


class Decompose(nn.Module):
    """Split a window into its context and the deviation that the context does not explain.

    A missing step has a deviation of exactly zero, whatever value its cell holds. The effect of covariates known ahead
    is removed first, so that level and scale are those of a window without planned events. Covariates act on the
    channels that are forecast, not on the last `past` ones.
    """

    def __init__(
        self,
        frame: nn.Module,
        cycle: int,
        channels: int,
        learn_profile: bool,
        further_cycles: tuple[int, ...] = (),
        past: int = 0,
        future: int = 0,
        anchor: Anchor | None = None,
    ) -> None:
        super().__init__()
        self.anchor = anchor
        self.frame, self.cycles, self.past = frame, (cycle, *further_cycles), past
        self.profile = nn.Parameter(torch.zeros(sum(self.cycles), channels), requires_grad=learn_profile)
        self.response = nn.Parameter(torch.zeros(cycle, future, channels - past)) if future else None

    def forward(
        self, window: Window, held: Context | None = None
    ) -> tuple[Context, Float[Tensor, "batch look_back channel"]]:
        """Return (context, deviation), in the context `held` if one is given. Paper: Eq. 2, D."""
        values = window.values.where(window.observed, window.values.new_zeros(()))
        context = self.context(values, window, window.observed) if held is None else held
        return context, context.remove(values).where(window.observed, values.new_zeros(()))

    def context(self, values: Steps, window: Window, seen: Seen) -> Context:
        """Take level and scale from complete values, the phase from the window. Paper: Algorithm 1, C."""
        profile = separated(self.profile, self.cycles)
        season = tiled(profile, window.phase[:, : values.shape[1]], self.cycles)
        look_back, known, response = values.shape[1], None, None
        if self.response is not None:
            require(
                window.known is not None,
                "a window must come with its covariates known ahead",
                "a window without",
                f"give the {self.response.shape[1]} covariates of every step",
            )
            assert window.known is not None
            known, response = window.known, pad(self.response, (0, self.past))
            values = values - effect(known[:, :look_back], response, window.phase[:, :look_back]).sum(-2)
        level, scale = self.frame(values, seen, season)
        context = Context(level, scale, window.phase, profile, self.cycles, known, response)
        if self.anchor is None:
            return context
        return replace(context, anchor=self.anchor(values, seen, window.phase[:, look_back:]), blend=self.anchor.blend)
