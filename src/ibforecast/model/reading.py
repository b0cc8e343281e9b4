"""Networks that read first, and then compute context and forecast from what was read, and from nothing else.

The steps are in reading order. After the reading, everything is given a window in which every other value is marked as
unobserved. A sealed network reads by a learned fixed mask, which never looks at the window, so no unread value can
change a bit. A choosing network looks at the window to choose its mask; given the mask, no unread value matters.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from math import inf

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Loss
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import spread, to_tokens
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage3_gate import Gate

Marks = Bool[Tensor, "batch patch channel"]
PerToken = Float[Tensor, "batch patch channel"]

EXCHANGED_SHARE = 0.3
"""The weight of the error through an exchanged mask, relative to that through the window's own mask."""


class ReadingForecast(IBForecast, ABC):
    """IB-Forecast in reading order: read, then take level and scale from what was read."""

    @abstractmethod
    def reading(self, window: Window) -> tuple[Marks, PerToken]:
        """Return (mask, probability)."""

    def read(self, window: Window, held: Context | None = None) -> Explanation:
        """Read a window; given the mask, the explanation depends on nothing that was not read."""
        # 1. The mask. A token with a missing step stays closed.
        mask, probability = self.reading(window)
        # 2. Everything else is out of sight from here on.
        seen = self.seen(window, mask)
        # 3. Level and scale of what was read, and what they do not explain: the evidence.
        context, evidence = self.decompose(seen, held)
        return Explanation(mask, evidence, probability, self.missing(window), context)

    def seen(self, window: Window, mask: Marks) -> Window:
        """Return the window that the context is taken from, given the mask: what is read, and nothing else."""
        return only(window, mask)

    def context(self, window: Window) -> Context:
        """Return the disclosed context, which comes from what is read."""
        return self.read(window).context

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with gates as wide open as they are probable, so that gradients pass them."""
        return self._forecast(window, self.reading(window)[1], held)

    def _forecast(
        self, window: Window, mask: PerToken, held: Context | None = None
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast through gates that may be partly open, with the context of what they let through."""
        seen = spread(mask, self.config.patch_len)
        values = window.values.where(window.observed, window.values.new_zeros(()))
        context = self.decompose.context(values, window, seen) if held is None else held
        return context.restore(self.readout(seen * context.remove(values), mask, context))


@dataclass(frozen=True)
class _KeptMask:
    """A fixed mask and what it was computed from: equal bits of these give the same mask again."""

    gate: Gate
    allowance: Tensor
    scores: Float[Tensor, "patch channel"]
    mask: Marks
    probability: PerToken

    def holds(self, gate: Gate, scores: Float[Tensor, "patch channel"]) -> bool:
        """Return whether the gate would compute the same mask from these scores."""
        return (
            gate is self.gate
            and scores.dtype == self.scores.dtype
            and scores.device == self.scores.device
            and torch.equal(gate.allowance, self.allowance)
            and torch.equal(scores, self.scores)
        )


class SealedForecast(ReadingForecast):
    """A network whose mask is fixed: nothing that was not read can change anything."""

    _kept: _KeptMask | None = None

    def reading(self, window: Window) -> tuple[Marks, PerToken]:
        """Return (mask, probability), the same for all windows in which nothing is missing."""
        return self.first_reading(self.missing(window))

    def first_reading(
        self, missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability): the tokens with the best learned scores, without those that are missing."""
        mask, probability = self._fixed()
        return mask & ~missing, probability.masked_fill(mask & missing, 0.0)

    def _fixed(self) -> tuple[Marks, PerToken]:
        """Return (mask, probability) of a window in which nothing is missing.

        In use on a processor they are kept, because computing them takes a fifth of the time of one forecast. They are
        computed again as soon as a bit of the scores differs, so no change of the weights can leave an old mask behind.
        """
        scores = self.score.unseen()
        # Elsewhere a comparison would stop a recording or wait for the device, and gradients need the computation.
        keeps = scores.device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()
        kept = self._kept if keeps else None
        if kept is not None and kept.holds(self.gate, scores):
            return kept.mask, kept.probability
        mask, probability = self.gate(scores[None], torch.zeros_like(scores[None], dtype=torch.bool))
        if keeps:
            self._kept = _KeptMask(self.gate, self.gate.allowance.clone(), scores.clone(), mask, probability)
        return mask, probability

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch, with noise on the scores of the mask so that every token is tried."""
        missing = self.missing(window)
        scores, none = self.score.unseen().expand(missing.shape), torch.zeros_like(missing)
        count = self.gate.drawn_count(progress, generator)
        mask = self.gate.sample(scores, none, progress, generator, count) * ~missing
        forecast = self._forecast(window, mask)
        return Loss({"fit": objective.fit(forecast, target, self.config.objective)}, mask.detach().mean())


class ChoosingForecast(ReadingForecast):
    """A network whose mask is chosen by a gate network that looks at the whole window."""

    def reading(self, window: Window) -> tuple[Marks, PerToken]:
        """Return (mask, probability): the best tokens of this window."""
        mask, probability = self.gate(self.score(self._looked(window)), self.missing(window))
        return mask, probability

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch with sampled gates, and with one exchange in each window.

        The gates learn by the straight-through gradient and by what exchanges are worth; the readout learns from both
        masks, and so meets tokens that the gates do not open yet.
        """
        knobs, missing, looked = self.config.objective, self.missing(window), self._looked(window)
        logits = self.score(looked)
        count = self.gate.drawn_count(progress, generator)
        mask = self.gate.sample(logits, missing, progress, generator, count)
        forecast = self._forecast(window, mask)
        terms = {"fit": objective.fit(forecast, target, knobs)}
        if knobs.exchange_weight:
            size = to_tokens(looked, self.config.patch_len).square().mean(dim=-1)
            other, opened, closed = exchanged(mask.detach(), missing, size, logits, generator)
            tried = self._forecast(window, other)
            before, after = (objective.squared_by_window(values, target) for values in (forecast, tried))
            terms["exchange"] = knobs.exchange_weight * objective.exchange(before, after, opened, closed)
            terms["exchanged"] = EXCHANGED_SHARE * objective.fit(tried, target, knobs)
        if knobs.departure_weight:
            terms["departure"] = knobs.departure_weight * objective.departure(logits, self.score.unseen(), missing)
        return Loss(terms, mask.detach().mean())

    def _looked(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Return what the gate network looks at: the deviation in a context of the whole window."""
        # No gradient: the frame is for what was read, and must not be bent to suit the gates.
        deviation: Tensor = self.decompose(window)[1]
        return deviation.detach()


def exchanged(
    mask: PerToken, missing: Marks, size: PerToken, logits: PerToken, generator: torch.Generator
) -> tuple[PerToken, Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """Exchange an open token of each window for a closed one; return the mask, and the logits of both tokens.

    The open token is drawn evenly. The closed one is drawn evenly in about half of the windows, and in the others in
    proportion to its size, because rare events are large. A window in which nothing is open, or nothing can be opened,
    keeps its mask, and its two logits are the same one, so that nothing is learned from it.
    """
    open_marks, closed_marks = (mask > 0).flatten(1), ((mask == 0) & ~missing).flatten(1)
    drawn = torch.empty_like(mask).uniform_(1e-6, 1 - 1e-6, generator=generator).flatten(1)
    gumbel = -(-drawn.log()).log()
    by_size = torch.empty_like(gumbel[:, :1]).uniform_(generator=generator) < 0.5
    heavy = gumbel + by_size * (size.flatten(1) + 1e-6).log()
    possible = open_marks.any(dim=1, keepdim=True) & closed_marks.any(dim=1, keepdim=True)
    opened = gumbel.masked_fill(~open_marks, -inf).argmax(dim=1, keepdim=True)
    closed = heavy.masked_fill(~closed_marks, -inf).argmax(dim=1, keepdim=True).where(possible, opened)
    other = mask.flatten(1).scatter(1, opened, 0.0).scatter(1, closed, 1.0).where(possible, mask.flatten(1))
    of_opened, of_closed = (logits.flatten(1).gather(1, place).squeeze(1) for place in (opened, closed))
    return other.view_as(mask), of_opened, of_closed


def only(window: Window, mask: Bool[Tensor, "batch patch channel"]) -> Window:
    """Return the window as if nothing but the open tokens had been observed."""
    look_back = window.values.shape[1]
    return replace(window, observed=window.observed & spread(mask, look_back // mask.shape[1]))


def network_of(config: ModelConfig) -> IBForecast:
    """Build the network a configuration describes."""
    if config.sealed:
        return SealedForecast(config)
    return ChoosingForecast(config) if config.chooses else IBForecast(config)
