"""Conversion between the table's units and standardised ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from ibforecast.core.errors import DataError


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
        # Rounding gives a constant channel a tiny spread instead of 0, and dividing by it would give huge values.
        mean, std = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        return cls(mean, np.where(std > 1e-12 * np.abs(mean), std, 1.0))

    @classmethod
    def around_median(cls, rows: Float64[np.ndarray, "row channel"], channels: tuple[str, ...]) -> "Standardiser":
        """Return the standardiser with the median as mean, so that the usual value, such as no holiday, becomes 0."""
        return cls(np.median(rows, axis=0), cls.of(rows, channels).std)

    def standardise(self, values: Float64[np.ndarray, "row channel"]) -> Float64[np.ndarray, "row channel"]:
        """Convert from the table's units to standardised ones."""
        with np.errstate(over="ignore"):  # a value too large becomes infinite
            return np.asarray((values - self.mean) / self.std)

    def to_units(self, values: Float64[np.ndarray, "row channel"]) -> Float64[np.ndarray, "row channel"]:
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
