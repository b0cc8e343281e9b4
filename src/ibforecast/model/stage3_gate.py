"""Stage 3: open gates, never more than the budget allows. Paper: Eq. 6, m."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ibforecast.model.config import GateConfig

PerToken = Float[Tensor, "batch patch channel"]
Marks = Bool[Tensor, "batch patch channel"]
Count = Int[Tensor, ""]

SMALLEST_BUDGET = 0.05
"""The smallest share of a window that a model for any budget is trained on."""

TEMPERATURE = (0.5, 0.1)
"""Temperature of the smooth gate in the first and in the last epoch; it affects only the gradient."""

LOWEST = -1e30
"""The logit of a token that must stay closed. It is finite because the threshold is a midpoint of two logits."""


def largest(logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, Float[Tensor, "batch 1 1"]]:
    """Return marks of the `count` largest logits of each window, and the threshold halfway to the next one.

    Missing tokens and logits that are not numbers are never marked, so no window has more than `count` marks.
    """
    ranked = _ranked(logits, missing)
    values, places = ranked.sort(dim=1, descending=True, stable=True)
    order = torch.arange(ranked.shape[1], device=ranked.device).expand_as(places)
    marked = torch.zeros_like(places).scatter(1, places, order) < count
    threshold = values.index_select(1, torch.stack([count - 1, count])).mean(dim=1)
    return (marked & (ranked > LOWEST))[:, :-1].view_as(logits), threshold[:, None, None]


def drawn_largest(logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, Float[Tensor, "batch 1 1"]]:
    """Return the same as `largest`, for training, where any of equal logits may be marked."""
    if logits.device.type != "cpu":
        return largest(logits, missing, count)
    # A processor finds the largest in a third of the time that sorting takes. A captured graph cannot read the count.
    ranked = _ranked(logits, missing)
    values, places = ranked.topk(int(count) + 1, dim=1)
    marked = torch.zeros_like(ranked, dtype=torch.bool).scatter(1, places[:, :-1], True)
    return (marked & (ranked > LOWEST))[:, :-1].view_as(logits), values[:, -2:].mean(dim=1)[:, None, None]


def _ranked(logits: PerToken, missing: Marks) -> Float[Tensor, "batch token_and_one"]:
    """Return the logits in one row per window, LOWEST where a token must stay closed and in a further column."""
    ranked = logits.masked_fill(missing | ~(logits > LOWEST), LOWEST).flatten(1)
    return torch.cat([ranked, ranked.new_full((ranked.shape[0], 1), LOWEST)], dim=1)


def straight_through(hard: Marks, smooth: PerToken) -> PerToken:
    """Return the hard gate, exactly 0 or 1, with the gradient of the smooth one. Paper: Eq. 6, m."""
    return hard.to(smooth.dtype) + (smooth - smooth.detach())


def logistic_noise(like: Float[Tensor, "..."], generator: torch.Generator) -> Float[Tensor, "..."]:
    """Draw ε = log u − log(1 − u) with u uniform. Paper: Eq. 6, ε."""
    uniform = torch.empty_like(like).uniform_(1e-6, 1 - 1e-6, generator=generator)
    return uniform.log() - (-uniform).log1p()


class Gate(nn.Module, ABC):
    """A rule that opens gates by their logits: `forward` without noise, `sample` in training.

    `forward` never opens more than `allowance` tokens, whatever the weights.
    """

    allowance: Tensor

    def __init__(self, allowance: int, tokens: int, config: GateConfig) -> None:
        super().__init__()
        self.config, self.tokens = config, tokens
        self.register_buffer("allowance", torch.tensor(allowance), persistent=False)

    @abstractmethod
    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability)."""

    @abstractmethod
    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Return the hard decision, and how far each logit is above or below its threshold."""

    def sample(
        self,
        logits: PerToken,
        missing: Marks,
        progress: Float[Tensor, ""],
        generator: torch.Generator,
        count: Count | None = None,
    ) -> PerToken:
        """Draw a mask for training, with `count` open gates or as many as scheduled. Paper: Eq. 6, m."""
        first, last = TEMPERATURE
        temperature = first * (last / first) ** progress
        noise = self.noise_at(progress) * logistic_noise(logits, generator)
        hard, margin = self.margin(logits + noise, missing, self.count_at(progress) if count is None else count)
        return straight_through(hard, torch.sigmoid(margin / temperature) * ~missing)

    def noise_at(self, progress: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return the size of the noise: it falls linearly to zero at `noise_until`, and stays constant if that is 1."""
        left = 1 - progress / self.config.noise_until if self.config.noise_until < 1 else torch.ones_like(progress)
        return self.config.noise * left.clamp(min=0)

    def count_at(self, progress: Float[Tensor, ""]) -> Count:
        """Return the number of open gates in training: all at first, fewer until `narrow_until`, then the budget."""
        left = (1 - progress / self.config.narrow_until).clamp(min=0) if self.config.narrow_until else 0 * progress
        return self.allowance + ((self.tokens - self.allowance) * left**3).round().long()

    def drawn_count(self, progress: Float[Tensor, ""], generator: torch.Generator) -> Count:
        """Return the number of open gates of a batch: as scheduled, or log-uniform in a model for any budget."""
        if not self.config.any_budget:
            return self.count_at(progress)
        share = SMALLEST_BUDGET ** torch.rand((), generator=generator, device=self.allowance.device)
        return (share * self.tokens).round().clamp(min=1).long()


class ExactGate(Gate):
    """Open the best tokens up to the budget, in training and in use; the probability is ½ at the threshold.

    In training no gradient passes the threshold, so that a token learns to exceed it and not to move it.
    """

    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability)."""
        hard, threshold = largest(logits, missing, self.allowance)
        return hard, torch.sigmoid(logits - threshold) * ~missing

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Measure from halfway between the last open logit and the first closed one."""
        hard, threshold = drawn_largest(logits, missing, count)
        return hard, logits - threshold.detach()


class ThresholdGate(Gate):
    """The paper's gate: open where p > ½, but only the best if those are too many. Paper: Algorithm 1, m."""

    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability). Paper: Eq. 5, p."""
        within_budget, _ = largest(logits, missing, self.allowance)
        return within_budget & (logits > 0), torch.sigmoid(logits) * ~missing

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Measure from zero. Paper: Eq. 6, b."""
        return (logits > 0) & ~missing, logits


class CappedGate(ThresholdGate):
    """The paper's gate with the cap in training as well: open where p > ½, and never more than the budget allows."""

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Measure from zero, or from the threshold of the budget if that is higher."""
        hard, threshold = largest(logits, missing, count)
        return hard & (logits > 0), logits - threshold.detach().clamp(min=0)


class OpenGate(Gate):
    """The dense model: every token that is not missing is read."""

    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability)."""
        return ~missing, (~missing).to(logits.dtype)

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Return a margin of zero; every token that is not missing is open."""
        return ~missing, torch.zeros_like(logits)


class NewestGate(OpenGate):
    """A static mask: the newest patches of every channel, as many as the budget allows, in every window."""

    def forward(self, logits: PerToken, missing: Marks) -> tuple[Marks, PerToken]:
        """Return (mask, probability)."""
        mask, _ = self.margin(logits, missing, self.allowance)
        return mask, mask.to(logits.dtype)

    def margin(self, logits: PerToken, missing: Marks, count: Count) -> tuple[Marks, PerToken]:
        """Open whole patches, so that the same steps of every channel are read."""
        age = torch.arange(logits.shape[1], 0, -1, device=logits.device)[:, None]
        newest = age <= torch.div(count, logits.shape[2], rounding_mode="floor")
        return newest & ~missing, torch.zeros_like(logits)
