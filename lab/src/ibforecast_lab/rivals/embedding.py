"""Inputs in addition to the values: the position of a step in the sequence, and its calendar."""

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window


def sinusoidal_positions(length: int, width: int) -> Float[Tensor, "length width"]:
    """Return sines at even and cosines at odd places; wavelengths grow geometrically from 2π to 10,000·2π."""
    place = torch.arange(width)
    angle = torch.arange(length)[:, None] * 10_000.0 ** (-(place - place % 2) / width)
    return torch.where(place % 2 == 0, angle.sin(), angle.cos())


def look_back_calendar(window: Window) -> Float[Tensor, "batch look_back 4"]:
    """Return hour, weekday, day of month and day of year of the look-back steps; raise if the window has none."""
    return _calendar(window)[:, : window.values.shape[1]]


def first_future_calendar(window: Window) -> Float[Tensor, "batch 4"]:
    """Return the same of the first step of the forecast."""
    return _calendar(window)[:, window.values.shape[1]]


def _calendar(window: Window) -> Float[Tensor, "batch step 4"]:
    if window.calendar is None:
        raise UsageError(
            "a forecaster that reads the calendar must get windows with a calendar",
            "windows without one",
            "give the table a time column, or set calendar = false",
        )
    return window.calendar
