"""The cost of a fit, before anything is trained: rough time on one thread of a processor, and memory."""

from dataclasses import dataclass, replace

from ibforecast.data.windows import within_cells
from ibforecast.train.loop import VALIDATION_BATCH
from ibforecast.zoo.recipes import Recipe
from ibforecast.zoo.stages import TRIAL_EPOCHS

STEP_SECONDS, CELL_SECONDS, PAIR_SECONDS = 3.5e-3, 1.1e-7, 5e-8
"""The model of time, on one thread. A training step takes a fixed time, a time per cell, and a time per pair of
channels that read each other in a window. A cell is a step, of look-back or horizon, of one channel in one window of
the batch.
"""

CHOOSING_FACTOR, ADDITIVE_FACTOR = 3.3, 1.3
"""How many times longer an epoch of a choosing and of an additive reader takes, from results/trials/cpu-steps.jsonl and
cpu-readouts.jsonl."""

BASE_MEGABYTES, BYTES_PER_VALUE, BYTES_PER_STEP_CELL, BYTES_PER_VALIDATION_CELL = 490, 30, 4500, 580
"""The model of memory: Python and PyTorch, a value of the table in all its copies, and the intermediate results of a
choosing reader for each cell: a step keeps all for the gradients, a batch of validation windows is larger and keeps
few."""

LONG_SECONDS, LARGE_MEGABYTES = 90.0, 1000.0
"""A fit that may need more than this is announced before it begins: its usual time is then half a minute or more."""


@dataclass(frozen=True)
class Cost:
    """Roughly what a fit needs: seconds on one thread, and memory.

    `seconds` is the time if the contest of a recipe ends as it usually does: the additive candidate is given up after
    its trial, and the sealed one wins. `most_seconds` is the time if every candidate is trained to its end.

    Measured as the processor seconds and the largest memory of plain fits to generated tables of 1 to 300 channels, a
    new process each, on a busy machine with instructions for bfloat16 (results/trials/cpu-cost.jsonl), and by
    `python -m benchmarks fits`. The usual time was right within a factor of 1.5, so was the memory. The seconds in
    which a table is read and a model calibrated are not in it, nor a slower machine.
    """

    channels: int
    seconds: float
    most_seconds: float
    megabytes: float

    @property
    def is_large(self) -> bool:
        """Whether the fit may need so much time or memory that a user should know before it begins."""
        return self.most_seconds > LONG_SECONDS or self.megabytes > LARGE_MEGABYTES

    @property
    def time(self) -> str:
        """The time in words: the usual and the longest one, or only one if they are the same."""
        least, most = duration(self.seconds), duration(self.most_seconds)
        number, unit = least.split()
        return most if least == most else f"{number if most.endswith(unit) else least} to {most}"

    def within(self, seconds: float) -> "Cost":
        """Return the cost of a fit that ends within a time."""
        return replace(self, seconds=min(self.seconds, seconds), most_seconds=min(self.most_seconds, seconds))

    @property
    def words(self) -> str:
        """Time and memory in words."""
        return f"about {self.time} on one thread and {self.megabytes / 1000:.1f} GB of memory"

    def __str__(self) -> str:
        return f"{self.channels:,} channel{'' if self.channels == 1 else 's'}: {self.words}"


def cost_of(recipe: Recipe, rows: int, windows: int, validation: int) -> Cost:
    """Return roughly what a fit needs, by the numbers of rows, of training and of validation windows."""
    return Cost(
        channels=recipe.config.channels,
        seconds=seconds_of(recipe, windows, usual=True),
        most_seconds=seconds_of(recipe, windows),
        megabytes=megabytes_of(recipe, rows, windows, validation),
    )


def seconds_of(recipe: Recipe, windows: int, usual: bool = False) -> float:
    """Return roughly the longest time of a fit on one thread, by the number of training windows.

    The `usual` time is that of a contest whose additive candidate is given up and whose choosing one loses.
    """
    train, config, batch = recipe.train, recipe.config, recipe.train.batch_of(windows)
    cells = batch * config.channels * (config.look_back + config.horizon)
    pairs = batch * config.channels**2 if config.readout.cross_channel else 0
    epoch = train.steps_of(windows) * (STEP_SECONDS + CELL_SECONDS * cells + PAIR_SECONDS * pairs)
    epochs = float(train.epochs)
    if train.additive_margin:
        epochs += ADDITIVE_FACTOR * (min(TRIAL_EPOCHS, train.epochs) if usual else train.epochs)
    if train.contest_margin:
        epochs += train.contest.epochs * (1.0 + CHOOSING_FACTOR)
    if not (usual and train.contest_margin):
        epochs += (CHOOSING_FACTOR if config.chooses else 1.0) * train.second_epochs
    return float(epoch * epochs)


def megabytes_of(recipe: Recipe, rows: int, windows: int, validation: int) -> float:
    """Return roughly the memory of a fit, by the numbers of rows, of training and of validation windows."""
    train, config = recipe.train, recipe.config
    steps = config.look_back + config.horizon
    batches = train.batch_of(windows), min(validation, within_cells(VALIDATION_BATCH, config.channels, steps))
    step, validated = (batch * config.channels * steps for batch in batches)
    results = max(step * BYTES_PER_STEP_CELL, validated * BYTES_PER_VALIDATION_CELL)
    return float(BASE_MEGABYTES + (rows * config.channels * BYTES_PER_VALUE + results) / 1e6)


def duration(seconds: float) -> str:
    """Return a time in words: seconds, and minutes above 100 of them."""
    return f"{max(1, round(seconds))} s" if seconds < 100 else f"{round(seconds / 60)} min"
