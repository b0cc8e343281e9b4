"""What a table holds once it is read: numbers by row and channel, on a time axis."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from ibforecast.core.calendar import Clock
from ibforecast.core.files import sha256, to_json


@dataclass(frozen=True)
class Series:
    """A multivariate series in the table's own units; NaN stands for a missing value.

    Of the channels the last `past` ones are read and not forecast. `known` holds the `covariates` known ahead, row by
    row and as far beyond the last row as they are known.
    """

    values: Float64[np.ndarray, "row channel"]
    channels: tuple[str, ...]
    clock: Clock
    past: int = 0
    covariates: tuple[str, ...] = ()
    known: Float64[np.ndarray, "row_and_beyond covariate"] | None = None

    @property
    def rows(self) -> int:
        """Number of time steps."""
        return len(self.values)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the channels that are forecast."""
        return self.channels[: len(self.channels) - self.past]

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the channel names and every value, and of the covariates where there are any."""
        one_nan = np.where(np.isnan(self.values), np.nan, self.values)
        told = [to_json(self.channels), one_nan.tobytes()]
        if self.past:
            told.append(to_json(self.past))
        if self.known is not None:
            told += [to_json(self.covariates), self.known[: self.rows].tobytes()]
        return sha256(told)
