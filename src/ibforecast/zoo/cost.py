"""What a fit costs: rough time on one thread of a processor, and memory, before anything is trained."""

from dataclasses import dataclass

from ibforecast.zoo.recipes import Recipe
from ibforecast.zoo.stages import TRIAL_EPOCHS

STEP_SECONDS, CELL_SECONDS, CHOOSING_FACTOR, ADDITIVE_FACTOR = 4.0e-3, 1.2e-7, 3.3, 1.3
"""The model of time, on one thread: a training step takes a fixed time and one per cell, which is a step of look-back
or horizon of one channel of one window of the batch; choosing and additive readers take longer by a factor. From
results/bench/cpu-fits.json, results/trials/cpu-steps.jsonl and cpu-readouts.jsonl, with instructions for bfloat16."""

BASE_MEGABYTES, BYTES_PER_VALUE, BYTES_PER_CELL = 700, 30, 4500
"""The model of memory: Python and PyTorch, a value of the table in all its copies, and the intermediate results that a
step of a choosing reader keeps for each cell. From the peaks of fits to six and to eight channels."""

LONG_SECONDS, LARGE_MEGABYTES = 60.0, 1000.0
"""A fit that may need more than this is announced before it begins."""


@dataclass(frozen=True)
class Cost:
    """Roughly what a fit needs: seconds on one thread, at least and at most, and memory.

    `seconds` is the time if the contest of a recipe ends as it usually does: the additive candidate is given up after
    its trial, and the sealed one wins. `most_seconds` is the time if every candidate is trained to its end.
    """

    channels: int
    seconds: float
    most_seconds: float
    megabytes: float

    @property
    def is_large(self) -> bool:
        """Whether the fit may take more than about a minute or a gigabyte."""
        return self.most_seconds > LONG_SECONDS or self.megabytes > LARGE_MEGABYTES

    @property
    def time(self) -> str:
        """The time in words: one if the shortest and the longest are the same, otherwise both."""
        least, most = duration(self.seconds), duration(self.most_seconds)
        if least == most:
            return most
        same_unit = least.split()[1] == most.split()[1]
        return f"{least.split()[0] if same_unit else least} to {most}"

    def within(self, seconds: float) -> "Cost":
        """Return the cost of a fit that ends within a time."""
        return Cost(self.channels, min(self.seconds, seconds), min(self.most_seconds, seconds), self.megabytes)

    def __str__(self) -> str:
        channels = f"{self.channels:,} channel{'' if self.channels == 1 else 's'}"
        return f"{channels}: about {self.time} on one thread and {self.megabytes / 1000:.1f} GB of memory"


def cost_of(recipe: Recipe, windows: int, rows: int) -> Cost:
    """Return roughly what a fit needs, by the numbers of training windows and of rows."""
    return Cost(
        channels=recipe.config.channels,
        seconds=seconds_of(recipe, windows, usual=True),
        most_seconds=seconds_of(recipe, windows),
        megabytes=megabytes_of(recipe, windows, rows),
    )


def seconds_of(recipe: Recipe, windows: int, usual: bool = False) -> float:
    """Return roughly the longest time of a fit on one thread, by the number of training windows.

    The `usual` time is that of a contest whose additive candidate is given up and whose choosing one loses.
    """
    train, config = recipe.train, recipe.config
    cells = train.batch_of(windows) * config.channels * (config.look_back + config.horizon)
    epoch = train.steps_of(windows) * (STEP_SECONDS + CELL_SECONDS * cells)
    epochs = float(train.epochs)
    if train.additive_margin:
        epochs += ADDITIVE_FACTOR * (min(TRIAL_EPOCHS, train.epochs) if usual else train.epochs)
    if train.contest_margin:
        epochs += train.contest.epochs * (1.0 + CHOOSING_FACTOR)
    if not (usual and train.contest_margin):
        epochs += (CHOOSING_FACTOR if config.chooses else 1.0) * train.second_epochs
    return float(epoch * epochs)


def megabytes_of(recipe: Recipe, windows: int, rows: int) -> float:
    """Return roughly the memory of a fit."""
    config = recipe.config
    cells = recipe.train.batch_of(windows) * config.channels * (config.look_back + config.horizon)
    return float(BASE_MEGABYTES + (rows * config.channels * BYTES_PER_VALUE + cells * BYTES_PER_CELL) / 1e6)


def duration(seconds: float) -> str:
    """Return a time in words: seconds, and minutes above 100 of them."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"
