"""ProtoTS: a forecast is a mixture of a few learned curves, weighted by distance; the worst curves are split."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ibforecast.core.contracts import Loss
from ibforecast.core.errors import UsageError, require
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Target, Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean, mean_where
from ibforecast_lab.rivals.rival import Rival

CALENDAR = 4
"""Hour, weekday, day of month, day of year."""


@dataclass(frozen=True)
class ProtoTSConfig(Sizes):
    """The encoder's shape, and the prototypes.

    `roots` prototypes are learned first. After the fraction `split_at` of the training, the fraction `split_share` of
    them with the largest error is split into `children` each. `memory` is the share of the running error that each
    batch keeps.
    """

    width: int = 128
    bottleneck: int = 16
    layers: int = 2
    dropout: float = 0.1
    roots: int = 6
    children: int = 3
    split_share: float = 0.5
    split_at: float = 0.5
    entropy_weight: float = 0.01
    memory: float = 0.99

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "bottleneck", "layers", "roots", "children")
        self.require_fraction("dropout")
        require(0 <= self.memory < 1, "memory must lie in [0, 1)", f"memory={self.memory}", "try 0.99")
        for name in ("split_share", "split_at"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"{name} must lie in [0, 1]", f"{name}={value}", "try 0.5")
        require(
            self.entropy_weight >= 0,
            "entropy_weight must not be negative",
            f"entropy_weight={self.entropy_weight}",
            "try 0.01",
        )


class Mixer(nn.Module):
    """Mix features through a bottleneck, then steps through a hidden layer; both have a residual connection."""

    def __init__(self, steps: int, width: int, bottleneck: int, dropout: float) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, bottleneck), nn.GELU(), nn.Linear(bottleneck, width)
        )
        self.norm = nn.LayerNorm(width)
        self.steps = nn.Sequential(nn.Linear(steps, width), nn.GELU(), nn.Linear(width, steps))
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Float[Tensor, "row steps width"]) -> Float[Tensor, "row steps width"]:
        """Mix the features, then the steps."""
        mixed: Tensor = rows + self.dropout(self.features(rows))
        over_time: Tensor = self.dropout(self.steps(self.norm(mixed).transpose(1, 2)))
        return mixed + over_time.transpose(1, 2)


class Encoder(nn.Module):
    """Encodes the past of one channel, and the calendar of past and future, as one vector."""

    def __init__(self, config: ProtoTSConfig) -> None:
        super().__init__()
        steps, width = config.look_back + config.horizon, config.width
        self.value = nn.Linear(1, width)
        # The sum of one small network per calendar feature: each has its own hidden units, one map leads to the width.
        self.units = nn.Parameter(torch.empty(2, CALENDAR, config.bottleneck).uniform_(-1, 1))
        self.project = nn.Linear(CALENDAR * config.bottleneck, width)
        self.mixers = nn.Sequential(
            *(Mixer(steps, width, config.bottleneck, config.dropout) for _ in range(config.layers))
        )
        self.pool = nn.Linear(steps, 1)

    def forward(
        self, values: Float[Tensor, "batch look_back channel"], calendar: Float[Tensor, "batch steps 4"]
    ) -> Float[Tensor, "batch channel width"]:
        """Embed every step, mix, and pool over time."""
        slope, offset = self.units
        known = self.project(torch.relu(calendar[..., None] * slope + offset).flatten(2))
        past = self.value(values.transpose(1, 2)[..., None]) + known[:, None, : values.shape[1]]
        future = known[:, None, values.shape[1] :].expand(-1, values.shape[2], -1, -1)
        steps = torch.cat([past, future], dim=2)  # batch, channel, steps, width
        pooled: Tensor = self.pool(self.mixers(steps.flatten(0, 1)).transpose(1, 2))
        return torch.unflatten(pooled.squeeze(-1), 0, steps.shape[:2])


class ProtoTS(Rival):
    """Hierarchical prototypes: curves over the horizon, in the window's own frame, each with a place in feature space.

    A row of the tables is a root, leaf 0, and its children, leaves 1, 2, …. Children follow their root until it is
    split. Our choices: children start at slightly different places with the same curve, so that the split itself
    changes no forecast; the calendar is read as continuous features.
    """

    reads_calendar = True
    apart: Float[Tensor, "leaf width"]
    split: Bool[Tensor, " root"]
    errors: Float[Tensor, " root"]
    visits: Float[Tensor, " root"]

    def __init__(self, config: ProtoTSConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        leaves, width = 1 + config.children, config.width
        apart = torch.cat([torch.zeros(1, width), torch.randn(config.children, width) * width**-0.5])
        self.register_buffer("apart", apart)
        self.places = nn.Parameter(torch.randn(config.roots, 1, width) + apart)
        self.curves = nn.Parameter(0.1 * torch.randn(config.roots, 1, config.horizon).repeat(1, leaves, 1))
        self.register_buffer("split", torch.zeros(config.roots, dtype=torch.bool))
        self.register_buffer("errors", torch.zeros(config.roots))
        self.register_buffer("visits", torch.zeros(config.roots))

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Mix the curves and restore the window's level and scale."""
        return self._mixture(frame, self._weights(frame.remove(values), window))

    def prototypes(self, window: Window) -> Float[Tensor, "batch channel root leaf"]:
        """Return the weight of each leaf in the forecast. Leaf 0 is the root; a split root has weight 0."""
        values = filled_with_mean(window.values, window.observed)
        return self._weights(InstanceFrame.population(values).remove(values), window)

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a training batch by its absolute error and the entropy of the roots' weights."""
        self._grow(progress)
        values = filled_with_mean(window.values, window.observed)
        frame = InstanceFrame.population(values)
        weights = self._weights(frame.remove(values), window)
        error = (self._mixture(frame, weights) - target.values).abs()
        rooted = weights.sum(dim=-1)
        self._remember(error.detach(), target.observed, rooted.detach(), progress)
        entropy = -torch.xlogy(rooted, rooted.clamp(min=1e-12)).sum(dim=-1).mean()
        fit = mean_where(error, target.observed)
        return Loss({"fit": fit, "entropy": self.config.entropy_weight * entropy}, torch.ones_like(fit))

    def _weights(
        self, values: Float[Tensor, "batch look_back channel"], window: Window
    ) -> Float[Tensor, "batch channel root leaf"]:
        """Weight the roots by distance, and the children of a split root likewise."""
        if window.calendar is None:
            raise UsageError("ProtoTS must get a calendar", "a window without one", "give the table a time column")
        instance = self.encoder(values, window.calendar)
        nearness: Tensor = -torch.linalg.vector_norm(instance[:, :, None, None] - self.places, dim=-1)
        split = self.split[:, None].to(nearness.dtype)
        shares = torch.cat([(1 - split).expand_as(nearness[..., :1]), split * nearness[..., 1:].softmax(dim=-1)], -1)
        return nearness[..., :1].softmax(dim=-2) * shares

    def _mixture(
        self, frame: InstanceFrame, weights: Float[Tensor, "batch channel root leaf"]
    ) -> Float[Tensor, "batch horizon channel"]:
        return frame.restore(torch.einsum("bcrl,rlh->bhc", weights, self.curves))

    @torch.no_grad()
    def _grow(self, progress: Float[Tensor, ""]) -> None:
        """Keep the children at their root until the split, then split the worst roots."""
        # No branch on a tensor: the training loop captures this step as a CUDA graph.
        unsplit = ~self.split.any()
        self.places.copy_(torch.where(unsplit, self.places[:, :1] + self.apart, self.places))
        self.curves.copy_(torch.where(unsplit, self.curves[:, :1], self.curves))
        mean_error = self.errors / self.visits.clamp(min=1e-12)
        worst = mean_error.argsort(descending=True).argsort() < round(self.config.split_share * self.config.roots)
        self.split.copy_(worst & (progress >= self.config.split_at))

    @torch.no_grad()
    def _remember(
        self,
        error: Float[Tensor, "batch horizon channel"],
        observed: Bool[Tensor, "batch horizon channel"],
        rooted: Float[Tensor, "batch channel root"],
        progress: Float[Tensor, ""],
    ) -> None:
        """Update the running errors and visits of the root nearest to each channel; after the split they stay."""
        visited = (rooted == rooted.amax(dim=-1, keepdim=True)).to(error.dtype)
        mean_error = (error * observed).sum(dim=1) / observed.sum(dim=1).clamp(min=1)
        learning = progress < self.config.split_at
        for kept, new in (
            (self.errors, (mean_error[..., None] * visited).sum(dim=(0, 1))),
            (self.visits, visited.sum(dim=(0, 1))),
        ):
            kept.copy_(torch.where(learning, self.config.memory * kept + (1 - self.config.memory) * new, kept))
