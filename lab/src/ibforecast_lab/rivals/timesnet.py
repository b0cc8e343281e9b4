"""TimesNet: fold the sequence at its strongest periods and apply two-dimensional convolutions to the result."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ibforecast.core.errors import require
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.embedding import look_back_calendar, sinusoidal_positions
from ibforecast_lab.rivals.rival import Rival

MEMORY = 0.99
"""Share of the running mean of amplitudes that each training batch keeps."""


@dataclass(frozen=True)
class TimesNetConfig(Sizes):
    """`top` periods are used; convolutions of `kernels` sizes 1, 3, 5, … lead from `width` to `hidden` and back."""

    width: int = 32
    hidden: int = 32
    layers: int = 2
    top: int = 5
    kernels: int = 6
    dropout: float = 0.1
    calendar: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("width", "hidden", "layers", "top", "kernels")
        self.require_fraction("dropout")
        highest = (self.look_back + self.horizon) // 2
        require(
            self.top <= highest,
            "top must not exceed the number of frequencies of look_back + horizon steps",
            f"top={self.top}, {highest} frequencies",
            f"try {highest} or less",
        )


def amplitudes(hidden: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch frequency"]:
    """Return the amplitude of each frequency in each sequence, averaged over the width, without the constant."""
    spectrum: Tensor = torch.fft.rfft(hidden, dim=1)
    return spectrum.abs().mean(dim=2)[:, 1:]


def fold(hidden: Float[Tensor, "batch steps width"], period: int) -> Float[Tensor, "batch width rounds period"]:
    """Pad with zeros to whole periods and stack them as rows."""
    padded = functional.pad(hidden, (0, 0, 0, -hidden.shape[1] % period))
    batch, steps, width = padded.shape
    return padded.view(batch, steps // period, period, width).permute(0, 3, 1, 2)


def unfold(grid: Float[Tensor, "batch width rounds period"], steps: int) -> Float[Tensor, "batch steps width"]:
    """Concatenate the periods and drop the padding: the inverse of `fold`."""
    return grid.flatten(2).transpose(1, 2)[:, :steps]


class Inception(nn.Module):
    """The mean of parallel convolutions of sizes 1, 3, 5, …, computed as one whose kernel is the mean of theirs."""

    def __init__(self, enter: int, leave: int, kernels: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList(torch.empty(leave, enter, 2 * n + 1, 2 * n + 1) for n in range(kernels))
        self.bias = nn.Parameter(torch.zeros(leave))
        for weight in self.weights:
            nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")

    def forward(self, grid: Float[Tensor, "batch enter rounds period"]) -> Float[Tensor, "batch leave rounds period"]:
        """Convolve, keeping the size."""
        margin = len(self.weights) - 1
        padded = [functional.pad(weight, [margin - n] * 4) for n, weight in enumerate(self.weights)]
        return functional.conv2d(grid, torch.stack(padded).mean(dim=0), self.bias, padding=margin)


class TimesBlock(nn.Module):
    """Convolve the sequence as folded at each of its strongest periods, and add the weighted sum.

    In training all windows of a batch share the batch's periods, as published, and a running mean of the amplitudes is
    kept. In use the periods come from that mean, so that a forecast does not depend on the other windows of its batch.
    """

    mean_amplitude: Float[Tensor, " frequency"]

    def __init__(self, steps: int, width: int, hidden: int, top: int, kernels: int) -> None:
        super().__init__()
        self.top = top
        self.register_buffer("mean_amplitude", torch.zeros(steps // 2))
        self.convolve = nn.Sequential(Inception(width, hidden, kernels), nn.GELU(), Inception(hidden, width, kernels))

    def forward(self, hidden: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps width"]:
        """Return the sequence plus the contributions of its periods."""
        amplitude = amplitudes(hidden)
        ranked = self._update(amplitude.detach()) if self.training else self.mean_amplitude
        places = ranked.topk(self.top).indices
        weights = amplitude[:, places].softmax(dim=1)
        total = hidden
        for place, weight in zip(places.tolist(), weights.unbind(dim=1), strict=True):
            period = hidden.shape[1] // (place + 1)
            total = total + weight[:, None, None] * unfold(self.convolve(fold(hidden, period)), hidden.shape[1])
        return total

    def _update(self, amplitude: Float[Tensor, "batch frequency"]) -> Float[Tensor, " frequency"]:
        """Add the batch's mean amplitudes to the running mean, and return them."""
        mean = amplitude.mean(dim=0)
        self.mean_amplitude.lerp_(mean, 1 - MEMORY)
        return mean


class TimesNet(Rival):
    """Embed the window, extend it over the horizon, refine it block by block, and return the last steps."""

    capturable = False  # the periods of a batch are read from the device to fold it, which no CUDA graph allows

    def __init__(self, config: TimesNetConfig) -> None:
        super().__init__()
        self.reads_calendar = config.calendar
        self.horizon = config.horizon
        self.embed = nn.Conv1d(config.channels, config.width, 3, padding=1, padding_mode="circular", bias=False)
        nn.init.kaiming_normal_(self.embed.weight, mode="fan_in", nonlinearity="leaky_relu")
        self.embed_calendar = nn.Linear(4, config.width, bias=False) if config.calendar else None
        self.register_buffer("position", sinusoidal_positions(config.look_back, config.width), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        self.stretch = nn.Linear(config.look_back, config.look_back + config.horizon)
        self.blocks = nn.ModuleList(
            TimesBlock(config.look_back + config.horizon, config.width, config.hidden, config.top, config.kernels)
            for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.leave = nn.Linear(config.width, config.channels)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values and, if `reads_calendar`, the calendar of the look-back."""
        hidden = self.embed(frame.remove(values).transpose(1, 2)).transpose(1, 2) + self.position
        if self.embed_calendar is not None:
            hidden = hidden + self.embed_calendar(look_back_calendar(window))
        hidden = self.stretch(self.dropout(hidden).transpose(1, 2)).transpose(1, 2)
        for block in self.blocks:
            hidden = self.norm(block(hidden))
        future: Tensor = self.leave(hidden)[:, -self.horizon :]
        return frame.restore(future)
