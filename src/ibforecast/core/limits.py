"""Limits: the last step from what a model computes to a forecast, in the table's units.

The forecast of a channel is rounded, if it must be a whole number, then raised to its lower limit or lowered to its
upper one. The step depends only on the forecast, so it changes no promise about what was read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from ibforecast.core.standardiser import frozen

LIMIT = "the limits of the forecast"
"""The name of the source of the part "limit"."""

SHARE_OF_ZEROS, ZEROS = 0.05, 10
"""The share and the number of zeros from which a channel of whole numbers, none of them negative, is limited to 0."""

Future = Float64[np.ndarray, "*some horizon channel"]


@dataclass(frozen=True, eq=False)
class Limits:
    """The lowest and the highest forecast of each channel, infinite if there is none, and which are whole numbers."""

    low: Float64[np.ndarray, " channel"]
    high: Float64[np.ndarray, " channel"]
    whole: Bool[np.ndarray, " channel"]

    def __post_init__(self) -> None:
        for name in ("low", "high", "whole"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name))))

    @property
    def present(self) -> Bool[np.ndarray, " channel"]:
        """Which channels have a limit."""
        return np.asarray(np.isfinite(self.low) | np.isfinite(self.high) | self.whole)

    def apply(self, values: Future) -> Future:
        """Return forecasts within the limits; NaN stays NaN."""
        rounded = np.where(self.whole, np.rint(values), values)
        return np.clip(rounded, self.low, self.high) + 0.0  # turns -0.0 into 0.0

    def around(self, low: Future, high: Future) -> tuple[Future, Future]:
        """Return the ends of intervals within the limits; whole numbers are rounded outwards.

        If an interval contains what the model computed, the new one contains the forecast. It contains every possible
        value that the old one did.
        """
        below, above = np.where(self.whole, np.floor(low), low), np.where(self.whole, np.ceil(high), high)
        return np.clip(below, self.low, self.high) + 0.0, np.clip(above, self.low, self.high) + 0.0

    def first(self, count: int) -> "Limits":
        """Return the limits of the first channels, which are those that are forecast."""
        return Limits(self.low[:count], self.high[:count], self.whole[:count])

    def named(self, channels: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Yield each channel that has a limit, and its limits in words."""
        for name, low, high, whole in zip(channels, self.low, self.high, self.whole, strict=True):
            words = [f"at least {low:g}"] * bool(np.isfinite(low)) + [f"at most {high:g}"] * bool(np.isfinite(high))
            if words or whole:
                yield name, ", ".join([*words, *["whole numbers"] * bool(whole)])

    def document(self) -> dict[str, list[Any]]:
        """Return the limits as plain data, None for an infinite one: the inverse of `of_document`."""
        ends = {name: [float(each) if np.isfinite(each) else None for each in getattr(self, name)] for name in ENDS}
        return {**ends, "whole": self.whole.tolist()}

    @classmethod
    def of_document(cls, plain: Mapping[str, Any]) -> "Limits":
        """Read what `document` returned."""
        low, high = (
            np.array([away if each is None else each for each in plain[name]], dtype=np.float64)
            for name, away in ENDS.items()
        )
        return cls(low, high, np.array(plain["whole"], dtype=bool))

    def same_as(self, other: "Limits") -> bool:
        """Return whether both have the same limits."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("low", "high", "whole"))

    def flaw(self, channels: int) -> str:
        """Return what is wrong with the limits of a number of channels; empty if nothing is."""
        if {self.low.shape, self.high.shape, self.whole.shape} != {(channels,)}:
            return f"limits of the shape {self.low.shape} instead of one for each of {channels} channels"
        if np.isnan(self.low).any() or np.isnan(self.high).any() or not (self.low <= self.high).all():
            return "a lower limit above the upper one"
        ends = np.concatenate([self.low[self.whole], self.high[self.whole]])
        finite = ends[np.isfinite(ends)]
        if (finite != np.rint(finite)).any() or np.isposinf(self.low).any() or np.isneginf(self.high).any():
            return "a limit of whole numbers that is none, or an infinite one"
        return ""


ENDS = {"low": -np.inf, "high": np.inf}


def rests_at_zero(values: Float64[np.ndarray, " row"]) -> bool:
    """Return whether values are counts that are often 0: whole numbers, none of them negative, many of them 0.

    A forecast below 0 is then certainly wrong. Whole numbers that are seldom 0 could be rounded measurements, such as
    temperatures, of which later ones may be negative.
    """
    seen = values[~np.isnan(values)]
    zeros = int((seen == 0).sum())
    return (
        max(ZEROS, SHARE_OF_ZEROS * len(seen)) <= zeros < len(seen)
        and bool((seen >= 0).all())
        and bool((seen == np.rint(seen)).all())
    )
