"""Dynamask: a small mask, fitted to each window, that preserves the forecast."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.errors import require
from ibforecast.core.window import Window
from ibforecast.explain.subject import Subject, Values, at_rest

SMALLEST_SHIFT = 1e-12
"""Lower bound of the shift that errors are divided by, for a forecast that nothing moves."""

PerWindow = Float[Tensor, " batch"]
OnStep = Callable[[int, PerWindow], None]


def ignore(step: int, loss: PerWindow) -> None:
    """Do nothing after a step."""


class StandIn(nn.Module):
    """The values that masked ones fade to: the reference."""

    rate = 0.0
    """Learning rate of the parameters, if there are any."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.reference = subject.reference

    def forward(self) -> tuple[Values, PerWindow]:
        """Return the values, and their term of the loss."""
        return self.reference, self.reference.new_zeros(len(self.reference))


@dataclass(frozen=True)
class Dynamask(Explainer):
    """Fits one logit per value by Adam; masked values fade to the reference (Crabbé, van der Schaar 2021).

    loss = error + λ · size + `contiguity_weight` · contiguity. The error is the soft surrogate's forecast shift divided
    by its shift when everything is masked. The size is the distance of the sorted mask from one that marks exactly the
    window's share. λ grows geometrically from `size_weight` to `growth` times that. It starts small because Adam takes
    full steps even for a tiny gradient, and at first all values are tied for their rank. Losses of windows are summed,
    not averaged, so that a window's mask does not depend on the others. `on_step` is called after each step with its
    number and the losses.
    """

    steps: int = 500
    rate: float = 0.1
    size_weight: float = 1e-3
    growth: float = 1e5
    contiguity_weight: float = 0.05
    on_step: OnStep = field(default=ignore, repr=False, compare=False)

    def __post_init__(self) -> None:
        require(self.steps >= 1, "steps must be at least 1", f"steps={self.steps}", "try 500")
        require(self.rate > 0, "rate must be positive", f"rate={self.rate}", "try 0.1")
        require(self.size_weight > 0, "size_weight must be positive", f"size_weight={self.size_weight}", "try 0.001")
        require(self.growth >= 1, "growth must be at least 1", f"growth={self.growth}", "try 1e5")
        require(
            self.contiguity_weight >= 0,
            "contiguity_weight must not be negative",
            f"contiguity_weight={self.contiguity_weight}",
            "try 0.05",
        )

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value by the mask of its window."""
        require(
            bool(((share >= 0) & (share <= 1)).all()),
            "share must lie in [0, 1]",
            f"share from {float(share.min())} to {float(share.max())}",
            "use the fraction of each window that may be marked",
        )
        with at_rest(predictor):
            subject = Subject.of(predictor, window)
            mask = self.fitted(subject, share.to(subject.values), self.stand_in(subject, generator))
            return subject.importance(mask, forwards=self.steps + 2, backwards=self.steps)

    def stand_in(self, subject: Subject, generator: torch.Generator) -> StandIn:
        """Return the module that computes the replacements of masked values."""
        return StandIn(subject)

    def fitted(self, subject: Subject, share: PerWindow, stand_in: StandIn) -> Values:
        """Fit a mask to every window, and the stand-in with it."""
        values, observed = subject.values, subject.window.observed
        intact, nothing = subject.relaxed(torch.stack([values, subject.reference]))
        most = subject.shift(intact, nothing[None])[0].clamp(min=SMALLEST_SHIFT)
        logits = torch.zeros_like(values).requires_grad_()
        learned = [logits, *stand_in.parameters()]
        groups = [{"params": learned[:1], "lr": self.rate}, {"params": learned[1:], "lr": stand_in.rate}]
        optimiser = torch.optim.Adam(groups)
        for step in range(self.steps):
            with torch.enable_grad():
                mask = torch.sigmoid(logits) * observed
                replaced, price = stand_in()
                seen = mask * values + (1 - mask) * replaced
                error = subject.shift(intact, subject.relaxed(seen[None]))[0] / most
                pressure = self.size_weight * self.growth ** (step / self.steps)
                form = pressure * size(mask, share) + self.contiguity_weight * contiguity(mask, observed)
                loss = error + form + price
                # Not `backward`, which would add gradients to the predictor's parameters.
                slopes = torch.autograd.grad(loss.sum(), learned)
            for parameter, slope in zip(learned, slopes, strict=True):
                parameter.grad = slope
            optimiser.step()
            self.on_step(step, loss.detach())
        return torch.sigmoid(logits)


def size(mask: Values, share: PerWindow) -> PerWindow:
    """Return the mean squared distance of the sorted mask from zeros, then as many ones as the window's share."""
    ascending = mask.flatten(1).sort(dim=1, stable=True).values
    cells = ascending.shape[1]
    marked = torch.arange(cells, device=mask.device) >= cells - (share * cells).round()[:, None]
    return (ascending - marked.to(mask)).square().mean(dim=1)


def contiguity(mask: Values, observed: Bool[Tensor, "batch look_back channel"]) -> PerWindow:
    """Return the mean jump of the mask between neighbouring steps that were both observed."""
    both = observed[:, 1:] & observed[:, :-1]
    return (mask.diff(dim=1).abs() * both).mean(dim=(1, 2))
