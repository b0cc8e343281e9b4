"""TimeEmb: the spectrum of the look-back without an embedding of the hour, filtered, then an MLP over time."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ibforecast.core.contracts import Loss
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Target, Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import mean_where
from ibforecast_lab.rivals.embedding import first_future_calendar
from ibforecast_lab.rivals.rival import Rival

SCALE = 0.02
"""The standard deviation of the filter's first values, by which it starts close to nothing."""


@dataclass(frozen=True)
class TimeEmbConfig(Sizes):
    """`hours` is the number of embeddings of the hour of the day, `days` whether there are seven of the weekday, too.

    `frequency` is the weight of the error of the spectrum in the loss; the rest is the squared error.
    """

    width: int = 512
    hours: int = 24
    days: bool = False
    frequency: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "hours")


class TimeEmb(Rival):
    """Embeddings hold what is the same at an hour in all windows; the filter acts on the rest of the spectrum.

    The embeddings are real, one for each hour, channel and frequency. They are removed before the filter and restored
    after it. The hour is that of the first step of the forecast.
    """

    reads_calendar = True

    def __init__(self, config: TimeEmbConfig) -> None:
        super().__init__()
        self.frame = InstanceFrame.unbiased
        self.frequency = config.frequency
        frequencies = config.look_back // 2 + 1
        self.by_hour = nn.Parameter(torch.zeros(config.hours, config.channels, frequencies))
        self.by_day = nn.Parameter(torch.zeros(7, config.channels, frequencies)) if config.days else None
        self.filter = nn.Parameter(SCALE * torch.randn(config.look_back))
        self.map = nn.Sequential(
            nn.Linear(config.look_back, config.width), nn.ReLU(), nn.Linear(config.width, config.horizon)
        )

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Filter what the embeddings leave of the spectrum, and map the result over time."""
        spectrum = torch.fft.rfft(frame.remove(values).transpose(1, 2), norm="ortho")
        usual = self.usual(window)
        filtered = (spectrum - usual) * torch.fft.rfft(self.filter, norm="ortho") + usual
        series = torch.fft.irfft(filtered, n=values.shape[1], norm="ortho")
        return frame.restore(self.map(series).transpose(1, 2))

    def usual(self, window: Window) -> Float[Tensor, "batch channel frequency"]:
        """Return the embeddings of the hour, and of the weekday if there are any."""
        calendar = first_future_calendar(window)
        usual = self.by_hour[_count(calendar[:, 0], 23) % len(self.by_hour)]
        return usual if self.by_day is None else usual + self.by_day[_count(calendar[:, 1], 6)]

    def loss(self, window: Window, target: Target, progress: Float[Tensor, ""], generator: torch.Generator) -> Loss:
        """Score a batch by the mean absolute error of the spectrum over the horizon, and by the squared error."""
        difference = (self(window).values - target.values).where(target.observed, 0.0)
        spectral = torch.fft.fft(difference, dim=1).abs().mean()
        squared = mean_where(difference**2, target.observed)
        terms = {"fit": (1 - self.frequency) * squared, "frequency": self.frequency * spectral}
        return Loss(terms, torch.ones_like(squared))


def _count(share: Float[Tensor, " batch"], most: int) -> Int[Tensor, " batch"]:
    """Return the whole number that the calendar holds as a share of the largest one, less a half."""
    return ((share + 0.5) * most).round().long()
