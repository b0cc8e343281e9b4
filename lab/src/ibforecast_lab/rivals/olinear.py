"""OLinear: linear layers on coordinates in which the steps of a series are uncorrelated."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ibforecast.core.contracts import Loss
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import mean_where
from ibforecast_lab.rivals.prepared import Prepared

SMALLEST = 1e-4
"""A channel whose values have a smaller variance does not count in the correlations."""


@dataclass(frozen=True)
class OLinearConfig(Sizes):
    """`copies` is the size of the vector that every value is multiplied by.

    The error of step t of the horizon, counted from 1, is weighted by t to the power of −`fading`.
    """

    width: int = 512
    layers: int = 2
    copies: int = 16
    dropout: float = 0.2
    fading: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "layers", "copies")
        self.require_fraction("dropout")


class Mixing(nn.Module):
    """A layer over channels: a learned matrix of positive weights, each row adding up to 1, and a map of the features.

    Its authors call the first half NormLin. It takes the place of attention; its weights are the same in all windows.
    """

    def __init__(self, config: OLinearConfig) -> None:
        super().__init__()
        width, channels = config.width, config.channels
        self.weights = nn.Parameter(torch.eye(channels) + torch.randn(channels, channels))
        self.value, self.leave = nn.Linear(width, width), nn.Linear(width, width)
        self.features = nn.Sequential(
            nn.Linear(width, width),
            nn.GELU(),
            nn.Dropout(config.dropout),
            nn.Linear(width, width),
            nn.Dropout(config.dropout),
        )
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, tokens: Float[Tensor, "batch channel width"]) -> Float[Tensor, "batch channel width"]:
        """Mix the channels, then map the features of each; both are added to their input."""
        mixed = self.dropout(functional.normalize(functional.softplus(self.weights), p=1.0, dim=-1)) @ self.value(
            tokens
        )
        tokens = self.first(tokens + self.dropout(self.leave(mixed)))
        mapped: Tensor = self.second(tokens + self.features(tokens))
        return mapped


class OLinear(Prepared):
    """Turn the look-back into uncorrelated coordinates, map them to those of the horizon, and turn back.

    The two bases are the eigenvectors of the correlations between steps, as they are in the training rows on average
    over channels. The authors' matrices for ETT are made of 60 % of the file and so include validation rows; here
    they are made of training rows. Before `prepare`, the bases are the steps themselves.
    """

    past_basis: Float[Tensor, "look_back look_back"]
    future_basis: Float[Tensor, "horizon horizon"]
    weights: Float[Tensor, "horizon 1"]

    def __init__(self, config: OLinearConfig) -> None:
        super().__init__()
        look_back, horizon, channels = config.look_back, config.horizon, config.channels
        self.copies = nn.Parameter(torch.randn(config.copies, 1))
        self.gain, self.shift = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.past_offset = nn.Parameter(torch.zeros(channels, 1, look_back))
        self.future_offset = nn.Parameter(torch.zeros(channels, 1, horizon))
        self.map = nn.Sequential(
            nn.Linear(look_back * config.copies, config.width),
            *(Mixing(config) for _ in range(config.layers)),
            nn.LayerNorm(config.width),
            nn.Linear(config.width, horizon * config.copies),
        )
        self.leave = nn.Sequential(
            nn.Linear(horizon * config.copies, config.width),
            nn.GELU(),
            nn.Linear(config.width, horizon),
            nn.Dropout(config.dropout),
        )
        self.register_buffer("past_basis", torch.eye(look_back))
        self.register_buffer("future_basis", torch.eye(horizon))
        steps = torch.arange(1, horizon + 1)[:, None]
        self.register_buffer("weights", steps**-config.fading, persistent=False)

    def prepare(self, training: Windows) -> None:
        """Compute both bases."""
        rows = training.values[: int(training.starts.max()) + training.look_back + training.horizon]
        self.past_basis.copy_(uncorrelated(rows, len(self.past_basis)))
        self.future_basis.copy_(uncorrelated(rows, len(self.future_basis)))

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast in the uncorrelated coordinates of the horizon."""
        series = (frame.remove(values) * self.gain + self.shift).transpose(1, 2)
        past = (series[:, :, None] * self.copies) @ self.past_basis + self.past_offset
        mapped = self.map(past.flatten(2)).unflatten(2, (len(self.copies), -1))
        future = mapped @ self.future_basis.T + self.future_offset
        forecast = self.leave(future.transpose(2, 3).flatten(2)).transpose(1, 2)
        return frame.restore((forecast - self.shift) / self.gain.clamp(min=1e-2))

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a batch by its absolute error, in which later steps count less."""
        error = mean_where((self(window).values - target.values).abs() * self.weights, target.observed)
        return Loss({"fit": error}, torch.ones_like(error))


def uncorrelated(rows: Float[Tensor, "row channel"], steps: int) -> Float[Tensor, "steps steps"]:
    """Return the eigenvectors, as columns, of the mean over channels of the correlations between consecutive steps."""
    total = torch.zeros(steps, steps, dtype=torch.float64, device=rows.device)
    for channel in rows.double().T:
        covariance = torch.cov(channel.unfold(0, steps, 1).T)
        spread = covariance.diagonal().sqrt()
        if spread.min() ** 2 >= SMALLEST:
            total += covariance / (spread[:, None] * spread)
    vectors: Tensor = torch.linalg.eigh(total).eigenvectors
    return vectors.float()
