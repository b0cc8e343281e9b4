"""The settings of training: length, learning rate, early stopping."""

from dataclasses import dataclass, replace
from math import exp, inf
from typing import Literal, get_args

from ibforecast.core.errors import UsageError, require_choice

Fall = Literal["decay", "linear"]

SMALLEST_BATCH = 16
"""Batches do not shrink below this size, however few windows there are."""

CONTEST_EPOCHS = 2
"""How many epochs each candidate is trained in a contest."""


@dataclass(frozen=True)
class TrainConfig:
    """Adam at `learning_rate`: constant for some epochs and then multiplied by `decay` after each, or `fall` "linear".

    A linear fall takes the rate to almost zero in the last epoch; the first epoch has half of it. An epoch is all
    training windows or, with `most_steps`, at most that many steps, on windows drawn for it. If there are few windows,
    batches shrink until all of them give `fewest_steps` steps.

    Training stops when the validation error has not improved for `patience` epochs; the best epoch is kept. Epochs are
    compared on all validation windows or, with `validated`, on that many, evenly spaced. With `averaged`, the weights
    that are validated and kept are an exponential average over about that many epochs of steps; 0 keeps those of the
    last step. With `bfloat16` a processor that has instructions for such short numbers multiplies matrices of them.

    With `second_epochs` training starts again from the best weights, for at most that many epochs. The learning rate is
    `learning_rate` again and falls in the same way, in proportion to the number of epochs. A choosing reader learns to
    choose only then. With a `contest_margin` it must first be better than a sealed one by this share of the error. With
    an `additive_margin` a sealed reader with an additive readout takes part in the contest, trained like that of the
    first stage; it must be better by this share.

    With an `anchor_margin` naive forecasts are blended into those of a channel, after training, if that makes its error
    on validation windows smaller by more than this share.
    """

    epochs: int = 36
    batch: int = 256
    learning_rate: float = 1e-3
    constant_epochs: int = 10
    decay: float = 0.85
    patience: int = 14
    fewest_steps: int = 8
    averaged: float = 0.0
    fall: Fall = "decay"
    most_steps: int = 0
    validated: int = 0
    bfloat16: bool = False
    second_epochs: int = 0
    contest_margin: float = 0.0
    additive_margin: float = 0.0
    anchor_margin: float = 0.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "constant_epochs", "patience", "fewest_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1", getattr(self, name), "give a positive number")
        if not 0 < self.decay <= 1:
            raise UsageError("decay must lie in (0, 1]", self.decay, "try 0.8")
        if not 0 < self.learning_rate < inf:
            raise UsageError("learning_rate must be positive", self.learning_rate, "try 0.001")
        if not 0 <= self.averaged < inf:
            raise UsageError("averaged must be finite and not negative", self.averaged, "try 1, or 0 for none")
        require_choice("fall", self.fall, get_args(Fall))
        for name, none in (("most_steps", "for all windows"), ("validated", "for all"), ("second_epochs", "for none")):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be negative", getattr(self, name), f"use 0 {none}")
        if not 0 <= self.contest_margin < 1:
            raise UsageError("contest_margin must lie in [0, 1)", self.contest_margin, "try 0.02, or 0 for no contest")
        if not 0 <= self.anchor_margin < 1:
            raise UsageError("anchor_margin must lie in [0, 1)", self.anchor_margin, "try 0.02, or 0 for no anchor")
        if self.contest_margin and not self.second_epochs:
            raise UsageError(
                "a contest must have a second stage", "second_epochs=0", "set second_epochs, or contest_margin = 0"
            )

        if not 0 <= self.additive_margin < 1:
            raise UsageError("additive_margin must lie in [0, 1)", self.additive_margin, "try 0.05, or 0 for none")
        if self.additive_margin and not self.contest_margin:
            raise UsageError(
                "an additive candidate needs a contest",
                "contest_margin=0",
                "set contest_margin, or additive_margin = 0",
            )

    def at_most(self, epochs: int) -> "TrainConfig":
        """Return the settings with at most this many epochs in each stage."""
        return replace(self, epochs=epochs, second_epochs=min(epochs, self.second_epochs))

    def scaled(self, share: float) -> "TrainConfig":
        """Return the settings with this share of the epochs of the first stage, at least one."""
        return replace(self, epochs=max(1, int(share * self.epochs)))

    @property
    def single(self) -> "TrainConfig":
        """The settings of the first stage, without those of the others."""
        return replace(self, second_epochs=0, contest_margin=0.0, additive_margin=0.0)

    @property
    def second(self) -> "TrainConfig":
        """The settings of the second stage."""
        return self._shortened(self.second_epochs, patience=max(1, self.second_epochs // 3))

    @property
    def contest(self) -> "TrainConfig":
        """The settings of a contest: a few epochs, all of which are run."""
        return self._shortened(min(CONTEST_EPOCHS, self.second_epochs), patience=CONTEST_EPOCHS)

    def _shortened(self, epochs: int, patience: int) -> "TrainConfig":
        """Return the same schedule in other epochs: as large a share at the full rate, and the same rate at the end."""
        share = epochs / self.epochs
        constant, decay = max(1, round(self.constant_epochs * share)), self.decay ** (1 / share)
        return replace(self.single, epochs=epochs, constant_epochs=constant, decay=decay, patience=patience)

    def rate_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        if self.fall == "linear":
            # Adam's averages of squared gradients are still rough in the first epoch, so its steps are halved.
            return self.learning_rate * (1 - (epoch + 0.5) / self.epochs) * (0.5 if epoch == 0 else 1.0)
        return self.learning_rate * self.decay ** max(0, epoch + 1 - self.constant_epochs)

    def progress_at(self, epoch: int) -> float:
        """Return the progress of an epoch, from 0 for the first to 1 for the last."""
        return epoch / max(1, self.epochs - 1)

    def batch_of(self, windows: int) -> int:
        """Return the batch size for a number of windows: small enough for `fewest_steps` steps an epoch."""
        return min(self.batch, max(SMALLEST_BATCH, windows // self.fewest_steps), windows)

    def steps_of(self, windows: int) -> int:
        """Return the number of steps of an epoch for a number of windows; an incomplete batch is left out."""
        steps = windows // self.batch_of(windows)
        return min(steps, self.most_steps) if self.most_steps else steps

    def kept_share(self, steps: int) -> float:
        """Return the share of the average that remains after a step, if an epoch has this many steps."""
        return exp(-1 / (self.averaged * steps)) if self.averaged else 0.0
