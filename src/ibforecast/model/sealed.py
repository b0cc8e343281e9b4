"""Sealed reading: mask, context and forecast are computed from what was read, and from nothing else.

The steps are in reading order. The first reading is a learned fixed mask, which never looks at the window. All that
follows is given a window in which every other value is marked as unobserved, so no unread value can change a bit.
"""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Loss
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import spread
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast


class SealedForecast(IBForecast):
    """IB-Forecast in reading order: read, then take level and scale from what was read."""

    def read(self, window: Window, held: Context | None = None) -> Explanation:
        """Read a window; the explanation depends on nothing that was not read."""
        # 1. A fixed mask. A token with a missing step stays closed, and nothing is read in its place.
        missing = self.missing(window)
        mask, probability = self.first_reading(missing)
        # 2. Everything else is out of sight from here on.
        seen = only(window, mask)
        # 3. Level and scale of what was read, and what they do not explain: the evidence.
        context, evidence = self.decompose(seen, held)
        return Explanation(mask, evidence, probability, missing, context)

    def first_reading(
        self, missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability): the tokens with the best learned scores, without those that are missing."""
        mask, probability = self.gate(self.score.unseen()[None], torch.zeros_like(missing[:1]))
        return mask & ~missing, probability.where(~(mask & missing), probability.new_zeros(()))

    def context(self, window: Window) -> Context:
        """Return the disclosed context, which comes from what is read."""
        return self.read(window).context

    def relaxed(self, window: Window, held: Context | None = None) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with gates as wide open as they are probable, so that gradients pass them."""
        _, probability = self.first_reading(self.missing(window))
        context, evidence = self._through(window, probability, held)
        forecast: Tensor = context.restore(self.readout(evidence, probability, context))
        return forecast

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch, with noise on the scores of the mask so that every token is tried."""
        missing = self.missing(window)
        scores, none = self.score.unseen().expand(missing.shape), torch.zeros_like(missing)
        count = self.gate.drawn_count(progress, generator)
        mask = self.gate.sample(scores, none, progress, generator, count) * ~missing
        context, evidence = self._through(window, mask)
        forecast = context.restore(self.readout(evidence, mask, context))
        return Loss({"fit": objective.fit(forecast, target, self.config.objective)}, mask.detach().mean())

    def _through(
        self, window: Window, mask: Float[Tensor, "batch patch channel"], held: Context | None = None
    ) -> tuple[Context, Float[Tensor, "batch look_back channel"]]:
        """Return (context, evidence) through gates that may be partly open."""
        seen = spread(mask, self.config.patch_len)
        values = window.values.where(window.observed, window.values.new_zeros(()))
        context = self.decompose.context(values, window, seen) if held is None else held
        return context, seen * context.remove(values)


def only(window: Window, mask: Bool[Tensor, "batch patch channel"]) -> Window:
    """Return the window as if nothing but the open tokens had been observed."""
    look_back = window.values.shape[1]
    return replace(window, observed=window.observed & spread(mask, look_back // mask.shape[1]))


def network_of(config: ModelConfig) -> IBForecast:
    """Build the network a configuration describes."""
    return SealedForecast(config) if config.sealed else IBForecast(config)
