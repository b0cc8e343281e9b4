"""The naive yardstick: a forecast that repeats the last cycle of the look-back."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import errors, per_window


def repeatable(cycles: Sequence[int], look_back: int) -> int:
    """Return the longest cycle that fits into the look-back; 1, which repeats the last value, if none does."""
    return max((cycle for cycle in cycles if cycle <= look_back), default=1)


def repeated(window: Window, cycle: int, horizon: int) -> Float[Tensor, "batch horizon channel"]:
    """Forecast by repeating the last `cycle` steps of each window.

    A missing step is replaced by the last value observed a whole number of cycles before it or, if there is none, by
    the last value observed in the channel. A channel without any value is forecast as 0, its mean in training.
    """
    look_back, device = window.values.shape[1], window.values.device
    steps = torch.arange(look_back, dtype=torch.int32, device=device)[:, None]
    seen = torch.where(window.observed, steps, -1)
    filled = torch.nn.functional.pad(seen, (0, 0, -look_back % cycle, 0), value=-1)
    latest = filled.reshape(len(filled), -1, cycle, filled.shape[2]).amax(dim=1)
    latest = torch.where(latest < 0, seen.amax(dim=1, keepdim=True), latest)
    cycles = window.values.gather(1, latest.clamp(min=0).long()).where(latest >= 0, 0.0)
    return cycles[:, torch.arange(horizon, device=device) % cycle]


def naive_errors(
    windows: Windows, cycle: int, batch: int = 1024
) -> tuple[Float[Tensor, " window"], Float[Tensor, " window"]]:
    """Return the squared and absolute error of `repeated` on every window, over the same targets as `accuracy`."""
    squared, absolute = per_window(
        windows, lambda window, target: errors(repeated(window, cycle, windows.horizon), target), 2, batch
    )
    return squared, absolute
