"""Stage 1: take level, scale and seasonal profile out of the window. Paper: Eq. 2, D."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.window import Window

SMALLEST_VARIANCE = 1e-5


def spread_about(
    level: Float[Tensor, "batch channel"],
    values: Float[Tensor, "batch look_back channel"],
    observed: Bool[Tensor, "batch look_back channel"],
) -> Float[Tensor, "batch channel"]:
    """Unbiased standard deviation of the observed steps about a level, kept away from zero. Paper: Eq. 2, σ."""
    squares = ((values - level[:, None]) ** 2 * observed).sum(dim=1)
    return (squares / (observed.sum(dim=1) - 1).clamp(min=1) + SMALLEST_VARIANCE).sqrt()


class MeanFrame(nn.Module):
    """Level and scale as the mean and the spread of the observed steps. Paper: Eq. 2, μ."""

    def forward(
        self, values: Float[Tensor, "batch look_back channel"], observed: Bool[Tensor, "batch look_back channel"]
    ) -> tuple[Float[Tensor, "batch channel"], Float[Tensor, "batch channel"]]:
        """Return (level, scale)."""
        level = (values * observed).sum(dim=1) / observed.sum(dim=1).clamp(min=1)
        return level, spread_about(level, values, observed)


class WeightedFrame(nn.Module):
    """A learned weighted level: one softmax over the look-back, shared by all channels; scale = spread about it."""

    def __init__(self, look_back: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(look_back))

    def forward(
        self, values: Float[Tensor, "batch look_back channel"], observed: Bool[Tensor, "batch look_back channel"]
    ) -> tuple[Float[Tensor, "batch channel"], Float[Tensor, "batch channel"]]:
        """Return (level, scale)."""
        weights = torch.softmax(self.logits, dim=0)[:, None] * observed
        level = (values * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-37)
        return level, spread_about(level, values, observed)


class NoFrame(nn.Module):
    """The ablation: level 0 and scale 1, whatever the window."""

    def forward(
        self, values: Float[Tensor, "batch look_back channel"], observed: Bool[Tensor, "batch look_back channel"]
    ) -> tuple[Float[Tensor, "batch channel"], Float[Tensor, "batch channel"]]:
        """Return (level, scale)."""
        return torch.zeros_like(values[:, 0]), torch.ones_like(values[:, 0])


class Decompose(nn.Module):
    """From a window to its context and the deviation the context leaves unexplained.

    A missing step deviates by exactly zero, whatever value stands in the gap.
    """

    def __init__(self, frame: nn.Module, cycle: int, channels: int, learn_profile: bool) -> None:
        super().__init__()
        self.frame = frame
        self.profile = nn.Parameter(torch.zeros(cycle, channels), requires_grad=learn_profile)

    def forward(
        self, window: Window, held: Context | None = None
    ) -> tuple[Context, Float[Tensor, "batch look_back channel"]]:
        """Return (context, deviation), the context being the one `held` where one is. Paper: Eq. 2, D."""
        values = window.values.where(window.observed, window.values.new_zeros(()))
        context = self.context(values, window) if held is None else held
        return context, context.remove(values).where(window.observed, values.new_zeros(()))

    def context(self, values: Float[Tensor, "batch look_back channel"], window: Window) -> Context:
        """Take level and scale from complete values, the phase from the window. Paper: Algorithm 1, C."""
        level, scale = self.frame(values, window.observed)
        return Context(level, scale, window.phase, self.profile)
