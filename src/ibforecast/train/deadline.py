"""A time limit of a fit: when training must stop, so that everything after it fits as well."""

import time
from collections import deque

AIM = 0.9
"""The share of a time limit within which everything should end; the rest is for what is slower than it was before."""

TAIL_PASSES = 10
"""How many passes over all validation windows are reserved for the end of a fit.

The last epoch is validated, the best weights are measured, anchors are chosen, intervals are calibrated, channels are
compared with naive forecasts and the model is saved. All of this took the time of 5 to 6 passes, and about 4 more where
a naive forecast is better, so that medians of training are tried.
"""

RECENT = 3
"""The time of the end is estimated from the slowest of this number of the latest passes."""


class Deadline:
    """The time limit of a fit that began at a moment of `time.perf_counter`, and how long its end will take.

    The time of the end is estimated from the passes over validation windows that were measured. The first pass of each
    kind of forecaster counts, because a choosing reader takes longer and only the end shows which is kept. It is
    corrected by how much slower or faster the latest passes were than the first of their kind.
    """

    def __init__(self, begun: float, seconds: float) -> None:
        self.begun, self.seconds = begun, seconds
        self.reached = False
        """Whether training was stopped because of the time."""
        self._owed = 0.0
        self._first: dict[str, float] = {}
        self._drift = deque([1.0], maxlen=RECENT)

    @property
    def left(self) -> float:
        """The seconds until everything should have ended; negative after that."""
        return self.begun + AIM * self.seconds - time.perf_counter()

    @property
    def tail(self) -> float:
        """About how many seconds a fit needs after its last step; 0 before a pass was noted."""
        return TAIL_PASSES * max(self._drift) * max(self._first.values(), default=0.0)

    def grant(self, share: float) -> None:
        """Let the next stage of training take this share of the time that is left for training."""
        self._owed = (1 - share) * max(0.0, self.left - self.tail)

    def note(self, kind: str, seconds: float) -> None:
        """Note how long a pass over all validation windows takes, of a kind of forecaster."""
        first = self._first.setdefault(kind, seconds)
        self._drift.append(seconds / first if first > 0 else 1.0)

    def over(self) -> bool:
        """Return whether a stage of training must stop now, so that the later ones and the end have their time."""
        over = self.left < self.tail + self._owed
        self.reached = self.reached or over
        return over
