"""Receipts: what adds up to a forecast, in the table's units and to the last digit.

A forecast is the sum of these amounts:

- the calendar: the forecast if every value that was read had been at its learned profile,
- for each value that was read, what it adds by not being at its profile: through the level, the scale and as evidence,
- what is known ahead,
- the effect of other values, if the choice of what is read or the level depends on them,
- the difference between the forecast and what the model computed, if the channel has limits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Context, Decimal, localcontext
from itertools import islice
from math import floor, isfinite, log10
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from ibforecast.core import reading
from ibforecast.core.errors import DataError, UsageError, VerificationError, require

Kind = Literal["calendar", "read", "known ahead", "unread", "limit"]
Step = int | Literal["mean"]
"""A step ahead, counted from 1, or the mean over the horizon."""

FINE, COARSE = 4, 2
"""Digits after the first one of a channel's standard deviation: in a receipt, and in words."""

UNREAD = "values that were not read"
"""The name of the source of the part "unread"."""

SIGNIFICANT = 14
"""Digits that every number of a receipt may have: one less than a float keeps, because amounts are also added."""

MOST_DIGITS = 8
"""Digits of a receipt after the first one of the standard deviation, even if these are no whole numbers.

An amount may be a million times as large as the deviation, where values are far from the usual ones, and a float must
keep its last digit."""

NEARLY = 2.0**-50
"""By what part of itself the product of two floats may miss the true product: a few times half of their last digit."""

LARGEST_REST = 1e-3
"""By how much amounts may miss the forecast before they are rounded, in standard deviations: single precision."""

EVERY_DIGIT = Context(prec=1000)
"""Decimal arithmetic in which sums of doubles are exact, whatever their sizes."""

LARGEST_COUNT = 2.0**53
"""The largest number of last digits that a float can count."""

REST_OF_AMOUNTS = 2.0**-18
"""The same as a part of all amounts: values far from the usual ones lose more to single precision."""


@dataclass(frozen=True)
class Part:
    """An entry of a receipt: what it is, of which channel and time, and the amount it adds to the forecast."""

    part: Kind
    channel: str
    start: str
    end: str
    amount: float


@dataclass(frozen=True, eq=False)
class Amounts:
    """The amounts that add up to the forecast of one channel, at every step ahead, in its units and not rounded.

    `read` has a row for every open token, in the order of the mask's rows, and `known` one for every covariate.
    `unread` is the effect of values that were not read; it is None if a model is sealed: there is no such effect.
    `limit` is by how much the limits of the channel change what the model computed; None if it has none. `error` is the
    standard error of `read` if orders were sampled; None if the amounts are exact.
    """

    calendar: Float64[np.ndarray, " horizon"]
    read: Float64[np.ndarray, "open horizon"]
    known: Float64[np.ndarray, "covariate horizon"]
    unread: Float64[np.ndarray, " horizon"] | None = None
    limit: Float64[np.ndarray, " horizon"] | None = None
    error: Float64[np.ndarray, "open horizon"] | None = None

    def at(self, step: Step) -> "Amounts":
        """Return the amounts of one step, or of the mean over the horizon, as arrays of one step."""

        def cut(array: Float64[np.ndarray, "*some horizon"]) -> Float64[np.ndarray, "*some 1"]:
            return array.mean(axis=-1, keepdims=True) if step == "mean" else array[..., step - 1 : step]

        return Amounts(
            cut(self.calendar),
            cut(self.read),
            cut(self.known),
            None if self.unread is None else cut(self.unread),
            None if self.limit is None else cut(self.limit),
            # The error of a mean is at most the mean of the errors.
            None if self.error is None else cut(self.error),
        )


@dataclass(frozen=True)
class Receipt:
    """The amounts that add up to one number of a forecast, rounded so that they do so to the last digit.

    `read` has one amount for every open token, in the order of the mask's rows. `unread` and `limit` are None if there
    can be no such amount. `error` is the largest standard error of the amounts of `read`, or None if they are exact.
    """

    channel: str
    step: Step
    forecast: float
    calendar: float
    read: tuple[float, ...]
    known: tuple[float, ...] = ()
    unread: float | None = None
    limit: float | None = None
    error: float | None = None

    @property
    def amounts(self) -> tuple[float, ...]:
        """All amounts: the calendar, what was read, what is known ahead, what was not read, and the limits."""
        others = (each for each in (self.unread, self.limit) if each is not None)
        return (self.calendar, *self.read, *self.known, *others)

    @property
    def adds_up(self) -> bool:
        """Whether the amounts add up to the forecast exactly, as decimal numbers."""
        with localcontext(EVERY_DIGIT):  # otherwise 28 digits, so that tiny amounts would not count
            return sum(map(printed, self.amounts)) == printed(self.forecast)

    def document(self) -> dict[str, Any]:
        """Return the receipt as plain data, without `limit` if there is none: documents had none before."""
        return {name: value for name, value in vars(self).items() if name != "limit" or value is not None}

    def parts(self, explained: "ExplainedForecast") -> Iterator[Part]:
        """Yield the entries of the receipt: calendar, read places from old to new, known ahead, unread, limit."""
        start, end = span(explained, self.step)
        yield Part("calendar", self.channel, start, end, self.calendar)
        for (patch, column), amount in zip(places(explained), self.read, strict=True):
            steps = explained.steps(patch)
            first, last = explained.times[steps.start], explained.times[steps.stop - 1]
            yield Part("read", explained.channels[column], first, last, amount)
        for covariate, amount in zip(explained.covariates, self.known, strict=True):
            yield Part("known ahead", covariate, start, end, amount)
        if self.unread is not None:
            times = explained.times
            yield Part("unread", self.channel, times[0], times[explained.look_back - 1], self.unread)
        if self.limit is not None:
            yield Part("limit", self.channel, start, end, self.limit)


def receipt_of(
    explained: "ExplainedForecast", amounts: Amounts, channel: str, step: Step, digits: int = FINE
) -> Receipt:
    """Return the receipt of one number of a forecast from the amounts of its channel.

    Raises VerificationError if the amounts do not add up to the forecast.
    """
    column = column_of(explained, channel)
    exact, here = unrounded(explained, amounts, channel, step), amounts.at(step)
    total, decimals = total_of(explained, column, step), decimals_for(explained, column, step, digits)
    if max(map(abs, exact)) * 10.0**decimals > LARGEST_COUNT:
        raise VerificationError(
            "the amounts of a receipt must be of a size that a float can keep to its last digit",
            f"{max(exact, key=abs):g}, where the forecast is {total:g}",
            "look for values that are far from the usual ones",
        )
    listed = iter(adding_up(exact, total, decimals))
    return Receipt(
        channel=channel,
        step=step,
        forecast=rounded(total, decimals),
        calendar=next(listed),
        read=tuple(islice(listed, len(here.read))),
        known=tuple(islice(listed, len(here.known))),
        unread=None if here.unread is None else next(listed),
        limit=None if here.limit is None else next(listed),
        error=None if here.error is None else float(here.error.max(initial=0.0)),
    )


def unrounded(explained: "ExplainedForecast", amounts: Amounts, channel: str, step: Step) -> list[float]:
    """Return the amounts of a receipt in its order and before they are rounded.

    The calendar takes what single precision leaves of the forecast. Raises VerificationError if that is more.
    """
    column = column_of(explained, channel)
    require_step(explained, step)
    total, here = total_of(explained, column, step), amounts.at(step)
    others = [float(each[0]) for each in (here.unread, here.limit) if each is not None]
    exact = [float(here.calendar[0]), *here.read[:, 0].tolist(), *here.known[:, 0].tolist(), *others]
    std, rest, moved = float(explained.units.std[column]), total - sum(exact), sum(map(abs, exact[1:]))
    # Not `>`: amounts that are not finite have no rest to compare.
    if not abs(rest) <= LARGEST_REST * std + REST_OF_AMOUNTS * moved + 1e-12 * abs(total) * len(exact):
        raise VerificationError(
            "the amounts of a receipt must add up to the forecast", f"{sum(exact)!r} of {total!r}", "explain again"
        )
    exact[0] += rest
    return exact


def decimals_of(std: float, digits: int) -> int:
    """Return how many decimals a channel's numbers get: `digits` after the first digit of its standard deviation."""
    return max(0, digits - floor(log10(std)))


def decimals_for(explained: "ExplainedForecast", column: int, step: Step, digits: int = FINE) -> int:
    """Return how many decimals the receipt of a number gets; negative if its last digits are zeros.

    There are fewer if the spread of its channel is very large, or if the number is so large, compared with the spread,
    that a float cannot keep them.
    """
    units, std = explained.units, float(explained.units.std[column])
    decimals = min(decimals_of(std, digits), MOST_DIGITS - floor(log10(std)))
    totals = (total_of(explained, column, step), total_of(explained, column, step, before_limits=True))
    size = max(*map(abs, totals), abs(float(units.mean[column])))
    return min(decimals, SIGNIFICANT - 1 - floor(log10(size))) if size > 0 else decimals


def total_of(explained: "ExplainedForecast", column: int, step: Step, before_limits: bool = False) -> float:
    """Return the number that a receipt adds up to, not rounded, or the one it would without limits."""
    values = (explained.computed if before_limits else explained.forecast)[:, column]
    with np.errstate(over="ignore"):  # the sum of huge numbers is infinite, which `check` refuses
        return float(values.mean() if step == "mean" else values[step - 1])


def rounded(value: float, decimals: int) -> float:
    """Return a number with this many decimals, and zero without a minus."""
    return round(value, decimals) + 0.0


def shown(value: float, decimals: int, sign: Literal["-", "+"] = "-") -> str:
    """Return a number as text with this many decimals; "+" gives positive numbers a sign, and zero never has one."""
    value = rounded(value, decimals)
    return f"{value:{sign if value else '-'}.{decimals}f}"


def adding_up(
    amounts: Sequence[float], total: float, decimals: int, kept: int = 0, rest: int | None = None
) -> list[float]:
    """Round amounts so that they still add up to their rounded total.

    Each is rounded to the nearest number. The difference that remains is given, one unit each, to those that rounding
    changed most in the other direction; an amount turns from zero, or to zero, only if there are no others. So an
    amount that is too small to be shown is hardly ever shown in one sum and not in another. The first `kept` amounts
    take nothing if there are others. If one amount is a `rest`, the sum of what has no name, it takes the whole
    difference. Both keep an amount the same in every sum.
    """
    counts = np.array(amounts) * 10.0**decimals
    nearest = np.rint(counts)
    # A product with a power of ten may be half-way between two numbers although the amount is not: 1.15 is below 23/20.
    for number in np.flatnonzero(abs(abs(counts - nearest) - 0.5) < NEARLY * abs(counts)).tolist():
        nearest[number] = _units(amounts[number], decimals)
    whole = [int(count) for count in nearest.tolist()]  # a float cannot count beyond 2**53
    missing = _units(total, decimals) - sum(whole)
    if rest is not None:
        whole[rest], missing = whole[rest] + missing, 0
    one = 1 if missing > 0 else -1
    left = one * (counts - nearest)
    turns = (nearest == 0) | (nearest == -one)
    firsts = np.arange(len(whole)) < kept
    for number in np.lexsort((-left, turns, left <= 0, firsts))[: abs(missing)].tolist():
        whole[number] += one
    # The rest is less than rounding and belongs to no value in particular, so the first amount takes it.
    whole[0] += one * max(abs(missing) - len(whole), 0)
    # Read from text, because a product with a power of ten need not be the nearest number to its decimals.
    return [float(f"{count}e{-decimals}") for count in whole]


def _units(value: float, decimals: int) -> int:
    """Return how many units of the last decimal a rounded number has."""
    return int(printed(rounded(value, decimals)).scaleb(decimals))


def printed(value: float) -> Decimal:
    """Return a number as it is printed."""
    return Decimal(repr(value))


def places(explained: "ExplainedForecast") -> list[tuple[int, int]]:
    """Return patch and column of every open token, in the order in which a receipt lists them."""
    return [(patch, column) for patch, column in np.argwhere(explained.explanation.mask).tolist()]


def span(explained: "ExplainedForecast", step: Step) -> tuple[str, str]:
    """Return the first and the last moment that a receipt is about."""
    ahead = explained.times[explained.look_back :]
    return (ahead[0], ahead[-1]) if step == "mean" else (ahead[step - 1], ahead[step - 1])


def is_limited(explained: "ExplainedForecast", column: int) -> bool:
    """Return whether a channel has limits."""
    return explained.limits is not None and bool(explained.limits.present[column])


def column_of(explained: "ExplainedForecast", channel: str) -> int:
    """Return the column of a channel that is forecast; refuse any other name."""
    forecast = [name for name in explained.channels if name not in explained.past]
    require(channel in forecast, "channel must be one that is forecast", repr(channel), f"try {forecast[0]!r}")
    return explained.channels.index(channel)


def require_step(explained: "ExplainedForecast", step: Step) -> None:
    """Refuse a step that is not in the horizon."""
    whole = isinstance(step, int) and not isinstance(step, bool)
    if step != "mean" and not (whole and 1 <= int(step) <= explained.horizon):
        raise UsageError(
            f'step must be "mean" or a number of steps ahead from 1 to {explained.horizon}', repr(step), 'try "mean"'
        )


def check(explained: "ExplainedForecast", receipt: Receipt) -> None:
    """Refuse a receipt that does not belong to a forecast or does not add up to it."""
    column = column_of(explained, receipt.channel)
    require_step(explained, receipt.step)
    total, computed = (total_of(explained, column, receipt.step, before_limits) for before_limits in (False, True))
    if not isfinite(total) or not isfinite(computed):
        raise DataError("a receipt must be of a finite number", f"that of {receipt.channel!r}", "explain again")
    decimals = decimals_for(explained, column, receipt.step)
    rules = {
        "have an amount for every open token": len(receipt.read) == explained.open_count,
        "have an amount for every covariate": len(receipt.known) == len(explained.covariates),
        "have an amount for what was not read if and only if the model is not sealed": explained.sealed
        == (receipt.unread is None),
        "have an amount for the limits if and only if the channel has limits": (receipt.limit is not None)
        == is_limited(explained, column),
        "be of the number that was forecast": receipt.forecast == rounded(total, decimals),
        f"have amounts of {decimals} decimals": all(amount == rounded(amount, decimals) for amount in receipt.amounts),
        "add up to the forecast to the last digit": receipt.adds_up,
    }
    for rule, holds in rules.items():
        if not holds:
            raise DataError(f"a receipt must {rule}", f"that of {receipt.channel!r}", "use it as the model returned it")


def read(value: Any) -> Receipt:
    """Return a receipt from a document; whether it adds up is checked when its explanation is built."""
    names = [each.name for each in fields(Receipt) if each.name != "limit"]
    one = reading.members(value, names, "receipts", optional=("limit",))
    step = one["step"] if one["step"] == "mean" else reading.whole_number(one["step"], "receipts.step")
    amounts = {
        name: tuple(reading.number(amount, f"receipts.{name}") for amount in reading.sequence(one[name], "receipts"))
        for name in ("read", "known")
    }
    return Receipt(
        channel=reading.text(one["channel"], "receipts.channel"),
        step=step,
        forecast=reading.number(one["forecast"], "receipts.forecast"),
        calendar=reading.number(one["calendar"], "receipts.calendar"),
        **amounts,
        unread=reading.maybe(reading.number, one["unread"], "receipts.unread"),
        limit=None if "limit" not in one else reading.number(one["limit"], "receipts.limit"),
        error=reading.maybe(reading.number, one["error"], "receipts.error"),
    )


# ExplainedForecast imports this module, and each may be imported first.
from ibforecast.core.explained import ExplainedForecast  # noqa: E402
