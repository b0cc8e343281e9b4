"""The settings of training: length, learning rate, early stopping."""

from dataclasses import dataclass, replace
from math import inf

from ibforecast.core.errors import UsageError

FEWEST_STEPS, SMALLEST_BATCH = 8, 16
"""If there are few windows, batches shrink until an epoch has this many steps, but not below this size."""


@dataclass(frozen=True)
class TrainConfig:
    """Adam at `learning_rate`, constant for some epochs and then multiplied by `decay` after each.

    Training stops when the validation error has not improved for `patience` epochs; the best epoch is kept.
    """

    epochs: int = 36
    batch: int = 256
    learning_rate: float = 1e-3
    constant_epochs: int = 10
    decay: float = 0.85
    patience: int = 14

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "constant_epochs", "patience"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1", getattr(self, name), "give a positive number")
        if not 0 < self.decay <= 1:
            raise UsageError("decay must lie in (0, 1]", self.decay, "try 0.8")
        if not 0 < self.learning_rate < inf:
            raise UsageError("learning_rate must be positive", self.learning_rate, "try 0.001")

    def rate_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        return self.learning_rate * self.decay ** max(0, epoch + 1 - self.constant_epochs)

    def progress_at(self, epoch: int) -> float:
        """Return the progress of an epoch, from 0 for the first to 1 for the last."""
        return epoch / max(1, self.epochs - 1)

    def for_windows(self, windows: int) -> "TrainConfig":
        """Return the settings with a batch size small enough for several steps an epoch, if there are few windows."""
        return replace(self, batch=min(self.batch, max(SMALLEST_BATCH, windows // FEWEST_STEPS)))
