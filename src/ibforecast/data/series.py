"""What a table holds once it is read: numbers by row and channel, on a time axis."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from ibforecast.core.files import sha256, to_json
from ibforecast.data.calendar import Clock


@dataclass(frozen=True)
class Series:
    """A multivariate series in the table's own units; NaN stands for a missing value."""

    values: Float64[np.ndarray, "row channel"]
    channels: tuple[str, ...]
    clock: Clock

    @property
    def rows(self) -> int:
        """Number of time steps."""
        return len(self.values)

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the channel names and every value."""
        one_nan = np.where(np.isnan(self.values), np.nan, self.values)
        return sha256([to_json(self.channels), one_nan.tobytes()])
