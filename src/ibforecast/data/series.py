"""The content of a table: numbers by row and channel, on a time axis."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from ibforecast.core.calendar import Clock
from ibforecast.core.files import sha256, to_json
from ibforecast.core.standardiser import Standardiser


@dataclass(frozen=True)
class Series:
    """A multivariate series in the table's own units; a missing value is NaN.

    The last `past` channels are read and not forecast. `known` contains the `covariates` known ahead, for all rows and
    as far beyond the last row as they are known.
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

    def units(self, rows: int) -> tuple[Standardiser, Standardiser | None]:
        """Return the units of the channels and of the covariates known ahead, if any, by the first `rows` rows."""
        channels = Standardiser.of(self.values[:rows], self.channels)
        known = None if self.known is None else Standardiser.around_median(self.known[:rows], self.covariates)
        return channels, known

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the channel names and every value, and of the covariates if there are any."""
        # NaN has many bit patterns; the fingerprint must not depend on them.
        one_nan = np.where(np.isnan(self.values), np.nan, self.values)
        parts = [to_json(self.channels), one_nan.tobytes()]
        if self.past:
            parts.append(to_json(self.past))
        if self.known is not None:
            # Only the rows of the table: covariates beyond its end do not change the table.
            parts += [to_json(self.covariates), self.known[: self.rows].tobytes()]
        return sha256(parts)
