"""Stage 3: open gates, never more than the budget allows. Paper: Eq. 6."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

LOWEST = -1e30
"""Stands for the logit of a token that must stay closed: finite, so that midpoints are."""


def largest(
    logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"], count: int
) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch 1 1"]]:
    """Mark the `count` largest logits of each window, and the threshold half-way to the next one.

    Missing tokens and logits that are not numbers are never marked, so no window has more than `count` marks.
    """
    ranked = logits.masked_fill(missing | ~(logits > LOWEST), LOWEST).flatten(1)
    ranked = torch.cat([ranked, ranked.new_full((len(ranked), 1), LOWEST)], dim=1)
    values, places = ranked.topk(count + 1)
    marked = torch.zeros_like(ranked, dtype=torch.bool).scatter(1, places[:, :count], True)
    threshold = (values[:, count - 1] + values[:, count]) / 2
    return (marked & (ranked > LOWEST))[:, :-1].view_as(logits), threshold[:, None, None]


def straight_through(
    hard: Bool[Tensor, "batch patch channel"], smooth: Float[Tensor, "batch patch channel"]
) -> Float[Tensor, "batch patch channel"]:
    """Go forward with the hard gate, exactly 0 or 1, and backward through the smooth one. Paper: Eq. 6, m."""
    return hard.to(smooth.dtype) + (smooth - smooth.detach())


def logistic_noise(like: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Draw ε = log u − log(1 − u) with u uniform. Paper: Eq. 6, ε."""
    uniform = torch.empty_like(like).uniform_(1e-6, 1 - 1e-6, generator=generator)
    return uniform.log() - (-uniform).log1p()


class Gate(nn.Module, ABC):
    """From logits to gates: `forward` decides without noise, `sample` decides while training.

    `allowance` is the promise: whatever the weights, `forward` opens no more tokens than that.
    """

    def __init__(self, allowance: int, temperature: tuple[float, float], noise: float, noise_until: float) -> None:
        super().__init__()
        self.allowance, self.temperature = allowance, temperature
        self.noise, self.noise_until = noise, noise_until

    @abstractmethod
    def forward(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability)."""

    @abstractmethod
    def margin(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return the hard decision, and by how much each logit clears or misses its threshold."""

    def sample(
        self,
        logits: Float[Tensor, "batch patch channel"],
        missing: Bool[Tensor, "batch patch channel"],
        progress: Float[Tensor, ""],
        generator: torch.Generator,
    ) -> Float[Tensor, "batch patch channel"]:
        """Draw a mask for training: hard forward, smooth backward. Paper: Eq. 6, m."""
        first, last = self.temperature
        temperature = first * (last / first) ** progress
        noise = self.noise_at(progress) * logistic_noise(logits, generator)
        hard, margin = self.margin(logits + noise, missing)
        return straight_through(hard, torch.sigmoid(margin / temperature) * ~missing)

    def noise_at(self, progress: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Size of the noise: it falls linearly to zero at `noise_until`, or never where that is 1."""
        if self.noise_until == 1:
            return torch.full_like(progress, self.noise)
        return self.noise * (1 - progress / self.noise_until).clamp(min=0)


class ExactGate(Gate):
    """Opens the best tokens up to the budget, in training and in use; the probability is ½ at the threshold."""

    def forward(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability)."""
        hard, margin = self.margin(logits, missing)
        return hard, torch.sigmoid(margin) * ~missing

    def margin(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Measure from half-way between the last logit opened and the first left closed."""
        hard, threshold = largest(logits, missing, self.allowance)
        return hard, logits - threshold.detach()


class ThresholdGate(Gate):
    """The paper's gate: open where p > ½, and where that is too many, only the best. Paper: Algorithm 1, m."""

    def forward(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability)."""
        within_budget, _ = largest(logits, missing, self.allowance)
        return within_budget & (logits > 0), torch.sigmoid(logits) * ~missing

    def margin(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Measure from zero. Paper: Eq. 6, b."""
        return (logits > 0) & ~missing, logits


class OpenGate(Gate):
    """The dense model: every token that is not missing is read."""

    def forward(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Return (mask, probability)."""
        return ~missing, (~missing).to(logits.dtype)

    def margin(
        self, logits: Float[Tensor, "batch patch channel"], missing: Bool[Tensor, "batch patch channel"]
    ) -> tuple[Bool[Tensor, "batch patch channel"], Float[Tensor, "batch patch channel"]]:
        """Clear the threshold always."""
        return ~missing, torch.zeros_like(logits)
