"""The receipt of one channel as a picture shows it: a bar for each amount, from the calendar to the forecast."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float64

from ibforecast.core import receipt, words
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.host import Itemiser
from ibforecast.core.limits import LIMIT
from ibforecast.core.receipt import COARSE, Amounts, Kind, Receipt, Step
from ibforecast.plots import labels

LARGEST = 6
"""How many read places have a bar of their own; the others share one."""

MOST_KNOWN = 3
"""Up to this number of covariates known ahead have a bar of their own; more share one."""

_NAME_WIDTH = 24


@dataclass(frozen=True)
class Bar:
    """An amount of a waterfall: its text and number, and the sums before and after it."""

    part: Kind | Literal["others", "forecast"]
    text: str
    number: str
    amount: float
    before: float
    after: float


@dataclass(frozen=True)
class Waterfall:
    """The amounts that add up to one number of a channel's forecast, rounded so that they do so to the last digit.

    The first bar is the calendar and the last one the forecast.
    """

    channel: str
    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, eq=False)
class Itemised:
    """The receipts that a picture shows: that of one channel, and the amounts of all channels that were computed."""

    receipt: Receipt
    amounts: dict[str, Amounts]


def itemised(explained: ExplainedForecast, channel: str | None = None, step: Step = "mean") -> Itemised | None:
    """Return the receipts that a picture shows; None without receipts and without a model that computes them.

    `channel` is the one whose forecast is itemised, at one step ahead or its mean. By default it is the one that the
    values of the window move most, compared with its standard deviation.
    """
    receipt.require_step(explained, step)
    computes = isinstance(explained.host, Itemiser)
    if computes:
        names = [name for name in explained.channels if name not in explained.past]
        if len(names) > labels.MANY:  # the receipts of hundreds of channels would take minutes
            names = names[: labels.MANY] if channel is None else [channel]
    else:
        names = [own.channel for own in explained.receipts if own.step == step]
        if not names:
            return None
    amounts = explained.amounts_of(names) if computes else {}
    if channel is None:
        moves = [_moved(explained, explained.itemised(name, step)) for name in names]
        channel = names[moves.index(max(moves))]
    return Itemised(explained.itemised(channel, step), amounts)


def waterfall_of(explained: ExplainedForecast, own: Receipt) -> Waterfall:
    """Return the waterfall of a receipt: its largest amounts, the others summed, at the precision of words."""
    places, column = receipt.places(explained), explained.channels.index(own.channel)
    decimals = receipt.decimals_of(float(explained.units.std[column]), COARSE)
    order = sorted(range(len(places)), key=lambda place: -abs(own.read[place]))
    largest = [place for place in order[:LARGEST] if receipt.rounded(own.read[place], decimals)]
    parts: list[tuple[Kind | Literal["others"], str, float]] = [("calendar", "calendar", own.calendar)]
    for place in largest:
        patch, source = places[place]
        name = labels.shortened(explained.channels[source], _NAME_WIDTH)
        parts.append(("read", f"{name}, {words.span_of(explained, patch, patch)}", own.read[place]))
    if others := order[len(largest) :]:
        one, several = ("value", "values") if explained.explanation.patch_len == 1 else ("token", "tokens")
        text = f"{len(others)} other {one if len(others) == 1 else several} read"
        parts.append(("others", text, sum(own.read[place] for place in others)))
    if 0 < len(own.known) <= MOST_KNOWN:
        names = (labels.shortened(name, _NAME_WIDTH) for name in explained.covariates)
        parts += [("known ahead", f"{name}, known ahead", by) for name, by in zip(names, own.known, strict=True)]
    elif own.known:
        parts.append(("known ahead", f"{len(own.known)} covariates known ahead", sum(own.known)))
    if own.unread is not None:
        parts.append(("unread", receipt.UNREAD, own.unread))
    if receipt.rounded(own.limit or 0.0, decimals):
        parts.append(("limit", LIMIT, own.limit or 0.0))
    rest = next((place for place, (part, *_) in enumerate(parts) if part == "others"), None)
    amounts = receipt.adding_up([amount for *_, amount in parts], own.forecast, decimals, kept=1, rest=rest)
    bars, height = [], amounts[0]
    bars.append(Bar("calendar", "calendar", _number(height, decimals), height, height, height))
    for (part, text, _), amount in zip(parts[1:], amounts[1:], strict=True):
        after = receipt.rounded(height + amount, decimals)
        bars.append(Bar(part, text, _number(amount, decimals, "+"), amount, height, after))
        height = after
    forecast = receipt.rounded(own.forecast, decimals)
    bars.append(Bar("forecast", "= forecast", _number(forecast, decimals), forecast, forecast, forecast))
    return Waterfall(own.channel, _title(explained, own, decimals), tuple(bars))


def tones(explained: ExplainedForecast, own: Receipt) -> Float64[np.ndarray, "patch channel"]:
    """Return what each read place adds, as a part of the largest amount: from -1 to 1, and 0 where nothing was read."""
    mask = explained.explanation.mask
    tone = np.zeros(mask.shape)
    largest = max(map(abs, own.read), default=0.0)
    if largest > 0:
        tone[mask] = np.round(np.array(own.read) / largest, 6) + 0.0
    return tone


def _moved(explained: ExplainedForecast, own: Receipt) -> float:
    """Return by how much the values of the window move the forecast of a channel, in standard deviations."""
    std = float(explained.units.std[explained.channels.index(own.channel)])
    return abs(own.forecast - own.calendar - sum(own.known)) / std


def forecast_of(explained: ExplainedForecast, own: Receipt, width: int | None = None) -> str:
    """Name the number that a receipt is about; `width` shortens the name of the channel."""
    channel = own.channel if width is None else labels.shortened(own.channel, width)
    if own.step == "mean":
        return f"mean forecast of {channel}"
    return f"forecast of {channel} for {receipt.span(explained, own.step)[0]}"


def _title(explained: ExplainedForecast, own: Receipt, decimals: int) -> str:
    title = f"What adds up to the {forecast_of(explained, own, _NAME_WIDTH)}"
    if own.error is None or (error := receipt.rounded(own.error, decimals)) == 0:
        return title
    return f"{title} (amounts of read values: standard error up to {_number(error, decimals)})"


def _number(value: float, decimals: int, sign: Literal["-", "+"] = "-") -> str:
    """Format an amount, with a minus sign instead of a hyphen."""
    return receipt.shown(value, decimals, sign).replace("-", "−")
