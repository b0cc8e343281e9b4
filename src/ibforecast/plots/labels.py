"""Labels of all figures: colours, shortened names, round ticks and ranges."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float64

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
GREY = "#7F7F7F"
BLACK = "#000000"
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"

INK, FAINT, GRID = "#333333", "#C8C8C8", "#ECECEC"
"""Colours of texts, of axes and of the grid."""

MANY = 12
"""The number of channels above which a figure has fewer labels per row."""

_MOMENT = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d)(?P<seconds>:\d\d(?:\.\d+)?)?(?P<zone>.*)")
_GRIDS = (1, 2, 3, 4, 6, 12, 24)
"""Hours between labels that divide a day, so that every midnight has one."""


def shortened(text: str, width: int) -> str:
    """Shorten a long text in its middle, because channel names usually differ at an end."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def wrapped(name: str, width: int, number: str = "") -> str:
    """Return a name in at most two lines of `width` characters, broken after a separator if possible."""
    text = name + number
    if len(text) <= width:
        return text
    if len(text) > 2 * width:
        return f"{name[: width - 1]}…\n{name[len(name) + len(number) - width :]}{number}"
    breaks = [match.end() for match in re.finditer(r"[\s_\-./:]+", text)]
    fitting = [cut for cut in breaks if len(text[:cut].rstrip()) <= width and len(text) - cut <= width]
    cut = min(fitting, key=lambda cut: abs(2 * cut - len(text)), default=width)
    return f"{text[:cut].rstrip()}\n{text[cut:]}"


def row_names(channels: tuple[str, ...], width: int) -> list[str]:
    """Return names as labels of rows; names that are equal once shortened get the number of their column."""
    names = [wrapped(name, width) for name in channels]
    alike = Counter(names)
    return [
        wrapped(channel, width, f" ({column})") if alike[name] > 1 else name
        for column, (channel, name) in enumerate(zip(channels, names, strict=True), start=1)
    ]


def time_ticks(times: tuple[str, ...], at_most: int) -> tuple[list[int], list[str]]:
    """Return positions and labels of a few moments, at round hours and midnights if the times have them."""
    moments = [moment for moment in map(_MOMENT.fullmatch, times) if moment]
    if len(moments) < len(times):
        positions = _evenly(len(times), min(at_most, 5))
        return positions, [shortened(times[position], 18) for position in positions]
    clocks, dates = [moment["clock"] for moment in moments], [moment["date"] for moment in moments]
    positions = _round_hours(clocks, at_most) or _evenly(len(times), at_most)
    days = [dates[positions[0]], *(_what_changed(dates[old], dates[new]) for old, new in pairwise(positions))]
    if all(clocks[position] == "00:00" for position in positions):
        return positions, days
    return positions, [f"{clocks[position]}\n{day}".rstrip() for position, day in zip(positions, days, strict=True)]


def _what_changed(old: str, new: str) -> str:
    """Return the part of a date that differs from the one before: all of it, month and day, or nothing."""
    if old == new:
        return ""
    return new[5:] if old[:4] == new[:4] else new


def _round_hours(clocks: list[str], at_most: int) -> list[int]:
    """Return positions on the finest grid of hours that fits; none if no grid gives three labels."""
    for hours in _GRIDS:
        grid = {f"{hour:02d}:00" for hour in range(0, 24, hours)}
        positions = [position for position, clock in enumerate(clocks) if clock in grid]
        if len(positions) <= at_most:
            break
    else:
        positions = positions[:: -(-len(positions) // at_most)]
    return positions if len(positions) >= 3 else []


def _evenly(count: int, at_most: int) -> list[int]:
    """Return positions in the middle of equal intervals, so that no label sticks out at an end."""
    labels = min(at_most, count)
    return [(2 * label + 1) * count // (2 * labels) for label in range(labels)]


def value_ticks(low: float, high: float, at_most: int) -> tuple[list[float], list[str]]:
    """Return two or more round values in a row, away from its edges so that labels of neighbouring rows never touch."""
    span = high - low
    bottom, top = low + 0.1 * span, high - 0.1 * span
    smallest = 10.0 ** np.floor(np.log10(span / (at_most + 1)))
    ticks = np.array([bottom, top])
    for step in (factor * power * smallest for power in (1, 10) for factor in (1, 2, 2.5, 5)):
        finer, ticks = ticks, np.arange(np.ceil(bottom / step), np.floor(top / step) + 1) * step
        if len(ticks) <= at_most:
            break
    if len(ticks) < 2:
        ticks = finer[[0, -1]]
    return ticks.tolist(), _numbers(ticks, 1e-3 * span)


def _numbers(ticks: Float64[np.ndarray, " tick"], tolerance: float) -> list[str]:
    """Format numbers with as many decimals as needed, the same for all."""
    largest = float(np.abs(ticks).max())
    kind = "f" if 1e-4 <= largest < 1e6 else "e"
    for decimals in range(16):
        texts = [f"{tick + 0.0:.{decimals}{kind}}" for tick in ticks]
        if all(abs(float(text) - tick) <= tolerance for text, tick in zip(texts, ticks, strict=True)):
            break
    return [_plainer(text) for text in texts]


def _plainer(text: str) -> str:
    """Write 1e+06 as 1e6, any zero as 0, and a hyphen as a minus sign."""
    mantissa, _, exponent = text.partition("e")
    if float(mantissa) == 0:
        return "0"
    return (f"{mantissa}e{int(exponent)}" if exponent else mantissa).replace("-", "−")


def with_air(low: Float64[np.ndarray, " row"], high: Float64[np.ndarray, " row"]) -> Float64[np.ndarray, "row 2"]:
    """Return ranges a little wider than from `low` to `high`, and never empty."""
    span = high - low
    level = np.maximum(np.abs(low), np.abs(high))
    flat = span <= 1e-9 * level
    air = np.where(flat, np.where(level > 0, 0.5 * level, 1.0), 0.08 * span)
    return np.stack([low - air, high + air], axis=1)


def isolated_steps(values: Float64[np.ndarray, " steps"]) -> Bool[np.ndarray, " steps"]:
    """Mark the values without a neighbour, which a line does not show."""
    known = np.isfinite(values)
    padded = np.pad(known, 1)
    isolated: Bool[np.ndarray, " steps"] = known & ~padded[:-2] & ~padded[2:]
    return isolated
