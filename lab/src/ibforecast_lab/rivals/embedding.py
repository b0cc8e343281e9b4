"""What a row of a sequence is told besides its values: where it stands, and when it was."""

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window


def sinusoidal_positions(length: int, width: int) -> Float[Tensor, "length width"]:
    """Sines at even and cosines at odd places, of wavelengths growing geometrically from 2π to 10,000·2π."""
    place = torch.arange(width)
    angle = torch.arange(length)[:, None] * 10_000.0 ** (-(place - place % 2) / width)
    return torch.where(place % 2 == 0, angle.sin(), angle.cos())


def look_back_calendar(window: Window) -> Float[Tensor, "batch look_back 4"]:
    """Hour, weekday, day of month and day of year of the look-back steps; windows without them are refused."""
    if window.calendar is None:
        raise UsageError(
            "a forecaster that reads the calendar must be given it",
            "windows without one",
            "give the table a time column, or set calendar = false",
        )
    return window.calendar[:, : window.values.shape[1]]
