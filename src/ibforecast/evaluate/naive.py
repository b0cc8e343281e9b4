"""The naive yardsticks: forecasts that repeat the last value, day, week or other cycle, and means of training rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ibforecast.core.anchors import repeatable
from ibforecast.core.calendar import Frequency
from ibforecast.core.window import Window
from ibforecast.data.rhythms import natural_lengths
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import errors, per_window
from ibforecast.evaluate.channels import ChannelErrors, channel_errors
from ibforecast.layers import naive

AT_ONCE = 1 << 20
"""Values of look-backs that are held at once; a week of minutes is long. More take more memory and no less time."""


@dataclass(frozen=True)
class Naive:
    """The errors of repeating the last `cycle` steps: of every window, and of every channel."""

    cycle: int
    squared: Float[Tensor, " window"]
    absolute: Float[Tensor, " window"]
    channels: ChannelErrors

    @property
    def mse(self) -> float:
        """The mean squared error."""
        return float(self.squared.mean())

    @property
    def mae(self) -> float:
        """The mean absolute error."""
        return float(self.absolute.mean())


@dataclass(frozen=True)
class SeasonalMean:
    """The errors of forecasting the mean of the training rows at the same phase of a cycle, on all windows."""

    cycle: int
    mse: float
    mae: float


def longest_repeatable(cycles: Sequence[int], look_back: int) -> int:
    """Return the longest cycle that fits into the look-back; 1, which repeats the last value, if none does."""
    return max(repeatable(cycles, look_back), default=1)


def naive_cycles(cycles: Sequence[int], frequency: Frequency) -> tuple[int, ...]:
    """Return the numbers of steps to repeat: one, the cycles of a model, and the natural ones of its step."""
    return tuple(sorted({1, *cycles, *natural_lengths(frequency)}))


def repeated(window: Window, cycle: int, horizon: int) -> Float[Tensor, "batch horizon channel"]:
    """Forecast by repeating the last `cycle` steps of each window; `layers.naive.repeated` has the rules."""
    return naive.repeated(window.values, window.observed, cycle, horizon)


def naive_errors(
    windows: Windows, cycle: int, batch: int = 1024
) -> tuple[Float[Tensor, " window"], Float[Tensor, " window"]]:
    """Return the squared and absolute error of `repeated` on every window, over the same targets as `accuracy`."""
    squared, absolute = per_window(
        windows, lambda window, target: errors(repeated(window, cycle, windows.horizon), target), 2, batch
    )
    return squared, absolute


def naive_forecasts(windows: Windows, cycles: Sequence[int]) -> list[Naive]:
    """Measure the repetition of each cycle, on the same targets.

    A cycle that is longer than the look-back is taken from the rows before it, and left out if a window has too few.
    """
    measured = []
    for cycle in cycles:
        before = max(cycle - windows.look_back, 0)
        if before > int(windows.starts.min()):
            continue
        longer = replace(windows, starts=windows.starts - before, look_back=windows.look_back + before, tokens=None)
        batch = max(1, AT_ONCE // (longer.look_back * windows.values.shape[1]))
        by_channel = channel_errors(partial(repeated, cycle=cycle, horizon=windows.horizon), longer, batch)
        measured.append(Naive(cycle, *naive_errors(longer, cycle, batch), by_channel))
    return measured


def seasonal_mean(windows: Windows, phase: Int[Tensor, " row_and_beyond"], cycle: int, trained: int) -> SeasonalMean:
    """Measure the mean of the first `trained` rows at the same phase of a cycle, on the same targets as `accuracy`.

    `phase` is that of every row, and of the steps beyond the last one. A phase without a value has the mean of all.
    """
    own = phase[:trained].to(windows.values.device)
    observed = windows.observed[:trained].double()
    values = windows.values[:trained].double() * observed
    sums, counts = (torch.zeros(cycle, values.shape[1], dtype=values.dtype, device=values.device) for _ in range(2))
    sums.index_add_(0, own, values)
    counts.index_add_(0, own, observed)
    overall = values.sum(dim=0) / observed.sum(dim=0).clamp(min=1)
    means = torch.where(counts > 0, sums / counts.clamp(min=1), overall).to(windows.values.dtype)
    by_cycle = replace(windows, phase=phase.to(windows.values.device), tokens=None)
    squared, absolute = per_window(
        by_cycle, lambda window, target: errors(means[window.phase[:, windows.look_back :]], target), 2, 1024
    )
    return SeasonalMean(cycle, float(squared.mean()), float(absolute.mean()))
