"""What still and interactive figures share: colours, words, ticks and the room each channel takes."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float32, Float64

from ibforecast.core.account import Account

# Okabe and Ito: colours that stay apart for colour-blind readers.
GREY = "#7F7F7F"
BLACK = "#000000"
VERMILLION = "#D55E00"
BLUE = "#0072B2"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"

LOOK_BACK, TRUTH, FORECAST, EXPECTED = "look-back", "truth", "forecast", "profile at this level and scale"
OPEN, MISSING, MADE, KNOWN = "open (read)", "missing", "forecast made", "known ahead"

MANY = 12
"""Channels beyond which a figure has fewer numbers per row."""

_MOMENT = re.compile(r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d)(?P<seconds>:\d\d(?:\.\d+)?)?(?P<zone>.*)")
_GRIDS = (1, 2, 3, 4, 6, 12, 24)
"""Hours between labels that divide a day, so that every midnight has one."""


def headline(account: Account) -> str:
    """Say when the forecast was made."""
    return f"Forecast made at {account.at}"


def rate_line(account: Account) -> str:
    """Say how much of the window was read, and how much the budget allows."""
    return (
        f"read {account.open_count} of {account.mask.size} tokens: {100 * account.open_rate:.3g} % of the window "
        f"(budget {100 * account.budget:.3g} %)"
    )


def shortened(text: str, width: int) -> str:
    """Keep both ends of a long text, which is where channel names tend to differ."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def wrapped(name: str, width: int, number: str = "") -> str:
    """Lay a name out on at most two lines of `width`, broken after a separator where that fits."""
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
    """Names as the rows show them; those that shortening would make alike carry their column's number."""
    names = [wrapped(name, width) for name in channels]
    alike = Counter(names)
    return [
        wrapped(channel, width, f" ({column})") if alike[name] > 1 else name
        for column, (channel, name) in enumerate(zip(channels, names, strict=True), start=1)
    ]


def time_ticks(times: tuple[str, ...], at_most: int) -> tuple[list[int], list[str]]:
    """Positions and labels of a handful of moments, at round hours and midnights where the times have them."""
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
    """Say a date again only as far as it differs: all of it, month and day, or nothing."""
    if old == new:
        return ""
    return new[5:] if old[:4] == new[:4] else new


def _round_hours(clocks: list[str], at_most: int) -> list[int]:
    """Positions on the finest grid of hours that still fits; none where no grid gives three labels."""
    for hours in _GRIDS:
        grid = {f"{hour:02d}:00" for hour in range(0, 24, hours)}
        positions = [position for position, clock in enumerate(clocks) if clock in grid]
        if len(positions) <= at_most:
            break
    else:
        positions = positions[:: -(-len(positions) // at_most)]
    return positions if len(positions) >= 3 else []


def _evenly(count: int, at_most: int) -> list[int]:
    """Positions in the middle of equal stretches, so that no label sticks out at an end."""
    labels = min(at_most, count)
    return [(2 * label + 1) * count // (2 * labels) for label in range(labels)]


def value_ticks(low: float, high: float, at_most: int) -> tuple[list[float], list[str]]:
    """Two or more round values inside a row, clear of its edges so that neighbouring rows' labels never touch."""
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
    """Write numbers with as many decimals as they need, the same for all."""
    largest = float(np.abs(ticks).max())
    kind = "f" if 1e-4 <= largest < 1e6 else "e"
    for decimals in range(16):
        texts = [f"{tick + 0.0:.{decimals}{kind}}" for tick in ticks]
        if all(abs(float(text) - tick) <= tolerance for text, tick in zip(texts, ticks, strict=True)):
            break
    return [_plainer(text) for text in texts]


def _plainer(text: str) -> str:
    """Write 1e+06 as 1e6 and nought as 0, with a minus sign that is one."""
    mantissa, _, exponent = text.partition("e")
    if float(mantissa) == 0:
        return "0"
    return (f"{mantissa}e{int(exponent)}" if exponent else mantissa).replace("-", "−")


def value_ranges(account: Account) -> Float64[np.ndarray, "channel 2"]:
    """Lowest and highest value each channel's row must show, with some air around them."""
    shown = [account.history, account.forecast, account.expected]
    if account.truth is not None:
        shown.append(account.truth)
    values = np.concatenate(shown)
    values = np.where(np.isfinite(values), values, np.nan)
    return with_air(np.nanmin(values, axis=0), np.nanmax(values, axis=0))


def profile_range(account: Account) -> tuple[float, float]:
    """One range for all profiles, so that a flat one looks flat."""
    return _around_zero(account.profile)


def profile_place(account: Account, number: int, phase: Float64[np.ndarray, " phase"]) -> Float64[np.ndarray, " phase"]:
    """Where phases of a cycle lie along the panel of profiles: side by side, each cycle as wide as the first."""
    width = account.cycles[0]
    return np.asarray(number * width + phase * width / account.cycles[number])


def profile_ticks(account: Account) -> tuple[list[float], list[str]]:
    """Positions and labels of a few phases of every cycle along the panel; of a cycle alone the last one too."""
    several = len(account.cycles) > 1
    places, texts = [], []
    for number, cycle in enumerate(account.cycles):
        phases = sorted({0, cycle // 2} if several else {0, cycle // 2, cycle - 1})
        places += profile_place(account, number, np.array(phases, dtype=np.float64)).tolist()
        texts += [str(phase) for phase in phases]
    return places, texts


def profile_marks(account: Account) -> list[float]:
    """Where along the panel of profiles the forecast was made, in every cycle."""
    made = int(account.phase[account.look_back - 1])
    return [
        float(profile_place(account, number, np.array([made % cycle + 0.5]))[0])
        for number, cycle in enumerate(account.cycles)
    ]


def line_name(account: Account, name: str) -> str:
    """What the legend calls a line: the baseline holds the effects of what is known ahead where anything is."""
    return "profile at this level + effects" if name == EXPECTED and account.known is not None else name


def cycles_line(account: Account) -> str:
    """Say what the panel of profiles runs over."""
    lengths = " and ".join(map(str, account.cycles))
    return f"phase (cycle{'s' if len(account.cycles) > 1 else ''} of {lengths})"


def known_ranges(account: Account) -> Float64[np.ndarray, "covariate 2"]:
    """Lowest and highest value the row of each covariate known ahead must show; none where there is none."""
    if account.known is None:
        return np.empty((0, 2))
    return with_air(account.known.values.min(axis=0), account.known.values.max(axis=0))


def response_range(account: Account, number: int) -> tuple[float, float]:
    """Range of the responses to a covariate, zero included."""
    assert account.known is not None
    return _around_zero(account.known.response[:, number])


def responses(account: Account) -> list[tuple[int, str, bool]]:
    """Column, colour and dash of every channel that is forecast, in the panels of responses; too many look alike."""
    columns = [column for column, channel in enumerate(account.channels) if channel not in account.past]
    if len(columns) > MANY:
        return [(column, PURPLE, False) for column in columns]
    colours = (PURPLE, SKY, ORANGE, GREEN, BLUE, VERMILLION)
    return [(column, colours[at % len(colours)], at >= len(colours)) for at, column in enumerate(columns)]


def covariates(account: Account) -> tuple[str, ...]:
    """Names of the covariates known ahead."""
    return () if account.known is None else account.known.names


def _around_zero(values: Float32[np.ndarray, "phase channel"]) -> tuple[float, float]:
    lowest, highest = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    ((low, high),) = with_air(np.array([lowest]), np.array([highest])).tolist()
    return low, high


def with_air(low: Float64[np.ndarray, " row"], high: Float64[np.ndarray, " row"]) -> Float64[np.ndarray, "row 2"]:
    """Return ranges a little wider than from `low` to `high`, and never empty."""
    span = high - low
    level = np.maximum(np.abs(low), np.abs(high))
    flat = span <= 1e-9 * level
    air = np.where(flat, np.where(level > 0, 0.5 * level, 1.0), 0.08 * span)
    return np.stack([low - air, high + air], axis=1)


def alone(values: Float64[np.ndarray, " steps"]) -> Bool[np.ndarray, " steps"]:
    """Mark the values without a neighbour, which no line would show."""
    known = np.isfinite(values)
    padded = np.pad(known, 1)
    lonely: Bool[np.ndarray, " steps"] = known & ~padded[:-2] & ~padded[2:]
    return lonely
