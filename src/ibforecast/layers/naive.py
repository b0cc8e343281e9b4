"""Naive forecasts from the values that were observed: the newest value, a straight line, or the last cycle again."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Values = Float[Tensor, "batch look_back channel"]
Observed = Bool[Tensor, "batch look_back channel"]
Future = Float[Tensor, "batch horizon channel"]


def repeated(values: Values, observed: Observed, cycle: int, horizon: int) -> Future:
    """Forecast by repeating the last `cycle` steps of each window; with a cycle of 1, its newest value.

    A missing step is replaced by the last value observed a whole number of cycles before it or, if there is none, by
    the last value observed in the channel. A channel without any value is forecast as 0, its mean in training.
    """
    look_back = values.shape[1]
    seen = _numbered(observed, -1)
    latest = newest = seen.amax(dim=1, keepdim=True)
    if cycle > 1:
        filled = torch.nn.functional.pad(seen, (0, 0, -look_back % cycle, 0), value=-1)
        latest = torch.unflatten(filled, 1, (-1, cycle)).amax(dim=1)
        latest = torch.where(latest < 0, newest, latest)
    cycles = values.gather(1, latest.clamp(min=0).long()).where(latest >= 0, 0.0)
    return cycles[:, torch.arange(horizon, device=values.device) % cycle]


def continued(values: Values, observed: Observed, horizon: int) -> Future:
    """Forecast along the straight line through the oldest and the newest observed value of each channel.

    A channel with one value stays there. One without any is forecast as 0, its mean in training.
    """
    look_back = values.shape[1]
    newest = _numbered(observed, -1).amax(dim=1, keepdim=True)
    oldest = _numbered(observed, look_back).amin(dim=1, keepdim=True)
    last, first = (values.gather(1, step.clamp(0, look_back - 1).long()) for step in (newest, oldest))
    slope = (last - first) / (newest - oldest).clamp(min=1)
    ahead = torch.arange(look_back, look_back + horizon, device=values.device)[:, None] - newest
    return (last + slope * ahead).where(newest >= 0, 0.0)


def _numbered(observed: Observed, otherwise: int) -> Int[Tensor, "batch look_back channel"]:
    """Return the number of each observed step; another number for all others."""
    steps = torch.arange(observed.shape[1], dtype=torch.int32, device=observed.device)[:, None]
    return torch.where(observed, steps, otherwise)
