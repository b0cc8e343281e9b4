"""A table with planted channels and lags: each target follows another channel of a fixed number of steps before.

Sources are noise, so that no other value is informative: neither another channel, nor another lag, nor the target.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64

from ibforecast.core.errors import require


@dataclass(frozen=True)
class LagConstants:
    """The numbers of the table; `source` and `lag` have one entry for every target.

    The targets are the first channels, the sources those after them. Some sources may move nothing.
    """

    rows: int = 3000
    sources: int = 5
    source: tuple[int, ...] = (0, 1, 2)
    lag: tuple[int, ...] = (12, 30, 60)
    noise: float = 0.3

    def __post_init__(self) -> None:
        require(
            len(self.source) == len(self.lag) and max(self.source) < self.sources and min(self.lag) >= 1,
            "source and lag must have an entry for every target, and sources must exist",
            f"source={self.source}, lag={self.lag}, sources={self.sources}",
            "number sources from 0",
        )

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of targets and sources."""
        targets = [f"target {number}" for number in range(len(self.source))]
        return (*targets, *(f"source {number}" for number in range(self.sources)))

    def support(self, look_back: int, horizon: int) -> Bool[np.ndarray, "target look_back channel"]:
        """Mark the values of a window that move each target at some step ahead."""
        marks = np.zeros((len(self.source), look_back, len(self.channels)), dtype=bool)
        for target, (source, lag) in enumerate(zip(self.source, self.lag, strict=True)):
            # Step h ahead, counted from 1, follows the value at row look_back - 1 + h - lag of the window.
            first, last = look_back - lag, min(look_back, look_back - lag + horizon)
            marks[target, max(first, 0) : max(last, 0), len(self.source) + source] = True
        return marks


def lagged(constants: LagConstants | None = None, seed: int = 0) -> Float64[np.ndarray, "row channel"]:
    """Draw the table: X_k[t] = ε_k[t], and Y_c[t] = X_source(c)[t − lag(c)] + noise · ε_c[t]."""
    k = constants or LagConstants()
    random = np.random.default_rng(seed)
    longest = max(k.lag)
    drawn = random.normal(size=(longest + k.rows, k.sources))
    targets = [
        drawn[longest - lag : longest - lag + k.rows, source] + k.noise * random.normal(size=k.rows)
        for source, lag in zip(k.source, k.lag, strict=True)
    ]
    return np.asarray(np.concatenate([np.stack(targets, axis=1), drawn[longest:]], axis=1))
