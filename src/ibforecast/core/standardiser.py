"""Conversion between the table's units and standardised ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from ibforecast.core.errors import DataError

LARGEST = 1e30
"""The largest size of a value to train on; marks for missing values such as 9.97e36 lie beyond it."""

FARTHEST = 1e15
"""The farthest a value may be from the mean of training, in standard deviations.

The network computes in single precision, which ends at 3.4e38: the sum of the squares of a million such departures, the
longest look-back, is 1e36, which leaves a factor of 340 for the weights.
"""


def too_large(value: float, place: str) -> DataError:
    """Return the error for a value that is too large to compute with, and the place where it is."""
    return DataError(
        "values must be of a size the model can compute with",
        f"{float(value)!r} {place}",
        "correct it or leave it empty; give all values in the units of training; if it marks a missing value, fit with "
        f"missing_values=({float(value)!r},) (fit --missing-value {float(value)!r})",
    )


def frozen(array: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """Make an array read-only and return it, so that it cannot change after it was checked."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Standardiser:
    """Per-channel z-scores: mean and population standard deviation of the training rows, or 1 if constant."""

    mean: Float64[np.ndarray, " channel"]
    std: Float64[np.ndarray, " channel"]

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name))))

    @classmethod
    def of(cls, rows: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> "Standardiser":
        """Return the standardiser with the statistics of the observed values of these rows."""
        empty = np.isnan(rows).all(axis=0)
        if empty.any():
            raise DataError(
                "every channel needs an observation in the training rows",
                f"none in {channels[int(empty.argmax())]!r}",
                "drop the channel or give earlier rows",
            )
        if (beyond := np.abs(rows) > LARGEST).any():
            row, column = np.argwhere(beyond)[0]
            raise too_large(rows[row, column], f"in row {row} of {channels[column]!r}, above {LARGEST:g}")
        # Rounding gives a constant channel a tiny spread instead of 0, and dividing by it would give huge values.
        mean, std = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        return cls(mean, np.where(std > 1e-12 * np.abs(mean), std, 1.0))

    @classmethod
    def around_median(cls, rows: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> "Standardiser":
        """Return the standardiser with the median as mean, so that the usual value, such as no holiday, becomes 0."""
        return cls(np.median(rows, axis=0), cls.of(rows, channels).std)

    def standardise(self, values: Float64[np.ndarray, "*row channel"]) -> Float64[np.ndarray, "*row channel"]:
        """Convert from the table's units to standardised ones."""
        with np.errstate(over="ignore"):  # a value too large becomes infinite
            return np.asarray((values - self.mean) / self.std)

    def too_far(self, values: Float64[np.ndarray, "row channel"]) -> Bool[np.ndarray, "row channel"]:
        """Return which values are too far from the mean to compute with."""
        return np.asarray(np.abs(self.standardise(values)) > FARTHEST)

    def to_units(self, values: Float64[np.ndarray, "*row channel"]) -> Float64[np.ndarray, "*row channel"]:
        """Convert from standardised units to the table's."""
        return np.asarray(values * self.std + self.mean)

    def document(self) -> dict[str, list[float]]:
        """Return the numbers as plain data: the inverse of `of_document`."""
        return {"mean": self.mean.tolist(), "std": self.std.tolist()}

    @classmethod
    def of_document(cls, plain: Mapping[str, Any]) -> "Standardiser":
        """Read what `document` returned."""
        return cls(np.array(plain["mean"], dtype=np.float64), np.array(plain["std"], dtype=np.float64))

    def same_as(self, other: "Standardiser") -> bool:
        """Return whether both standardisers have the same numbers."""
        return np.array_equal(self.mean, other.mean) and np.array_equal(self.std, other.std)
