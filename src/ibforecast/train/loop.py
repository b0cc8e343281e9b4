"""The training loop: shuffle, step, validate, keep the best, stop early, resume exactly."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.data.windows import Windows
from ibforecast.train import ranks
from ibforecast.train.checkpoint import Checkpoint, Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.deadline import Deadline
from ibforecast.train.step import Step

VALIDATION_BATCH = 1024
TIMED_STEPS, REHEARSED_WINDOWS = 4, 64


Hopeless = Callable[[tuple[Epoch, ...]], bool]
"""Whether a run with some history cannot become what it is trained for, so that the rest of it is left out."""


def never() -> bool:
    """Return False."""
    return False


def never_hopeless(history: tuple[Epoch, ...]) -> bool:
    """Return False."""
    return False


@dataclass(frozen=True)
class Training:
    """The history of a run, the epoch whose weights were kept, counted from 1, and its errors on all windows.

    A run that was stopped before its first epoch has no history, epoch 0 and infinite errors.
    """

    history: tuple[Epoch, ...]
    best_epoch: int
    best_error: float
    best_absolute_error: float
    stopped: bool = False
    """Whether it was stopped before its schedule ended."""

    @property
    def seconds(self) -> float:
        """The time of all epochs, including those before an interruption."""
        return sum(epoch.seconds for epoch in self.history)


def train(
    forecaster: Forecaster,
    training: Windows,
    validation: Windows,
    config: TrainConfig,
    seed: int,
    checkpoint: Path | None = None,
    identity: str = "",
    on_epoch: Callable[[int, Epoch], None] = lambda epoch, outcome: None,
    until: Callable[[], bool] = never,
    hopeless: Hopeless = never_hopeless,
    deadline: Deadline | None = None,
    needed: bool = True,
) -> Training:
    """Fit a forecaster on one part and select on another; the same seed on the same machine gives the same weights.

    Once `until` returns True, training stops and keeps the best epoch so far. It also stops at a `deadline`, which
    learns how long validation takes. If the result is `needed`, the first epoch is always finished, or ended early at
    the deadline; otherwise training may stop before it. It is over early if its history is `hopeless`.

    With a `checkpoint` path every finished epoch is saved there, and a run with the same `identity` continues
    after the last one. Every epoch has its own seed, so a resumed run draws the same numbers as an uninterrupted one.
    """
    device = training.values.device
    if not len(training) or not len(validation):
        raise DataError("training and validation need at least one window each", "none", "give a longer table")
    batch, steps = ranks.shared_batch(config.batch_of(len(training))), config.steps_of(len(training))
    compared = validation.compared(config.validated)
    history: tuple[Epoch, ...] = ()
    stopped, first = False, ranks.rank() == 0

    def late() -> bool:
        return deadline is not None and bool(ranks.of_the_first(float(deadline.over()), device))

    def enough() -> bool:
        if needed and not history:
            return False
        return bool(ranks.of_the_first(float(until()), device)) or late()

    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), in_order(device):
        forecaster.to(device).train()
        generator = torch.Generator(device)
        step = Step(forecaster, training, batch, generator, config.kept_share(steps), config.bfloat16)
        best_weights = copy_of(forecaster.state_dict())
        resumed = Checkpoint.load(checkpoint, identity) if checkpoint else None
        if resumed:
            history = resumed.history
            write_into(forecaster.state_dict(), resumed.weights)
            write_into(step.moments(), resumed.moments)
            write_into(best_weights, resumed.best_weights)
            write_into(step.averages, resumed.averages)
        if ranks.of_the_first(float(len(history)), device) != len(history):
            raise IBForecastError(
                "all processes must continue from the same checkpoint",
                f"{len(history)} epochs in process {ranks.rank()}",
                "use a folder that all machines share, or remove the checkpoint",
            )
        while not (is_over(history, config) or hopeless(history)):
            if stopped := enough():
                break
            number, begun, short = len(history), time.perf_counter(), False
            drawn = epoch_seed(seed, number)
            noise = drawn if first else epoch_seed(drawn, ranks.rank())
            torch.manual_seed(noise)
            generator.manual_seed(noise)
            rate = config.rate_at(number)
            step.set_pace(rate, config.progress_at(number))
            for starts in drawn_starts(training, batch, steps, drawn):
                step.run(starts)
                if (stopped := enough()) or (short := needed and not history and late()):
                    break
            if stopped:
                break
            ((loss, open_rate),) = step.means()
            with step.averaged():
                trained = time.perf_counter()
                error, ended = error_on(forecaster, compared), time.perf_counter()
                if deadline:
                    deadline.note(type(forecaster).__name__, (ended - trained) * len(validation) / len(compared))
                outcome = Epoch(loss, open_rate, error, rate, ended - begun)
                if best_of((*history, outcome)) == number:
                    write_into(best_weights, forecaster.state_dict())
            if diverged := divergence(outcome, number):
                raise diverged
            history = (*history, outcome)
            if checkpoint and first:
                Checkpoint(
                    identity, history, forecaster.state_dict(), best_weights, step.moments(), step.averages
                ).save(checkpoint)
            on_epoch(number + 1, outcome)
            if stopped := short:
                break
        if not history:
            forecaster.eval()
            return Training((), 0, inf, inf, stopped=True)
        forecaster.load_state_dict(best_weights)
        best = best_of(history)
        every = compared is validation or len(compared) == len(validation)
        squared, absolute = errors_on(forecaster, validation)
    forecaster.eval()
    return Training(history, best + 1, history[best].validation_error if every else squared, absolute, stopped)


@dataclass(frozen=True)
class Pace:
    """The seconds of a training step, and of a window in validation."""

    step: float
    window: float

    def epoch(self, training: Windows, validation: Windows, config: TrainConfig) -> float:
        """Return the seconds of an epoch on these windows."""
        validated = min(config.validated or len(validation), len(validation))
        return self.step * config.steps_of(len(training)) + self.window * validated


def pace_of(
    forecaster: Forecaster, training: Windows, validation: Windows, config: TrainConfig, most_seconds: float = inf
) -> Pace:
    """Return how fast a forecaster is on this machine, from a few steps; the weights of `forecaster` change.

    The first step and a few windows take longer, so they are a rehearsal and do not count. Only if the others would
    take more than `most_seconds` are they the measurement.
    """
    device, count = training.values.device, min(config.validated or len(validation), len(validation))
    batch, steps = ranks.shared_batch(config.batch_of(len(training))), config.steps_of(len(training))
    with torch.random.fork_rng([device] if device.type == "cuda" else []), in_order(device):
        forecaster.to(device).train()
        step = Step(forecaster, training, batch, torch.Generator(device), config.kept_share(steps), config.bfloat16)
        starts = drawn_starts(training, batch, 1, 0)[0]

        def timed(times: int, windows: Windows) -> Pace:
            begun = time.perf_counter()
            for _ in range(times):
                step.run(starts)
            trained = time.perf_counter()
            error_on(forecaster, windows)
            seconds = (trained - begun) / times, (time.perf_counter() - trained) / len(windows)
            return Pace(*(ranks.of_the_first(each, device) for each in seconds))

        some = validation.spaced(min(count, validation.at_once(VALIDATION_BATCH)))
        first = timed(1, some.spaced(REHEARSED_WINDOWS))
        if first.step * TIMED_STEPS + first.window * len(some) > most_seconds:
            return first
        return timed(TIMED_STEPS, some)


@contextmanager
def in_order(device: torch.device) -> Iterator[None]:
    """Make sums on a processor independent of the order in which threads finish; on a GPU they already are."""
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    filling: Any = import_module("torch.utils.deterministic")  # PyTorch does not declare its attribute
    fills = filling.fill_uninitialized_memory
    torch.use_deterministic_algorithms(before or device.type == "cpu", warn_only=warn_only)
    # Nothing here reads memory before it is written, and filling all of it first takes a twentieth of the time.
    filling.fill_uninitialized_memory = False
    try:
        yield
    finally:
        filling.fill_uninitialized_memory = fills
        torch.use_deterministic_algorithms(before, warn_only=warn_only)


def is_over(history: tuple[Epoch, ...], config: TrainConfig) -> bool:
    """Return whether a run has had all its epochs, or has run out of patience."""
    return len(history) >= config.epochs or len(history) - 1 - best_of(history) >= config.patience


def divergence(outcome: Epoch, number: int) -> IBForecastError | None:
    """Return the error of an epoch, counted from 0, whose validation error is not finite; None if it is."""
    if outcome.validation_error < float("inf"):
        return None
    where = f"{outcome.validation_error} at the end of epoch {number + 1}"
    return IBForecastError("training must stay finite", where, "lower the learning rate")


def best_of(history: tuple[Epoch, ...]) -> int:
    """Return the index of the smallest validation error, the last of equal ones; −1 for an empty history."""
    errors = [epoch.validation_error for epoch in history]
    return len(errors) - 1 - errors[::-1].index(min(errors)) if errors else -1


def epoch_seed(seed: int, epoch: int) -> int:
    """Return a different seed for every epoch of every run."""
    return random.Random(f"{seed}/{epoch}").getrandbits(62)


def drawn_starts(windows: Windows, batch: int, steps: int, seed: int) -> tuple[Tensor, ...]:
    """Return the first rows of the windows of each step of an epoch; no window is drawn twice."""
    order = torch.randperm(len(windows), generator=torch.Generator().manual_seed(seed))[: steps * batch]
    return windows.starts[order.to(windows.starts.device)].view(-1, batch).unbind()


def error_on(forecaster: Forecaster, windows: Windows) -> float:
    """Return the mean squared error over windows, with gates as in use."""
    return errors_on(forecaster, windows)[0]


@torch.no_grad()
def errors_on(forecaster: Forecaster, windows: Windows) -> tuple[float, float]:
    """Return the mean squared and the mean absolute error over windows, with gates as in use."""
    forecaster.eval()
    squared, absolute = 0.0, 0.0
    own = replace(windows, starts=ranks.share_of(windows.starts))
    for window, target in own.batches(own.at_once(VALIDATION_BATCH)):
        misses, seen = forecaster(window).values - target.values, target.observed.sum(dim=(1, 2)).clamp(min=1)
        squared += float(((misses**2).double().where(target.observed, 0.0).sum(dim=(1, 2)) / seen).sum())
        absolute += float((misses.abs().double().where(target.observed, 0.0).sum(dim=(1, 2)) / seen).sum())
    forecaster.train()
    squared, absolute = (ranks.total(total, windows.starts.device) / len(windows) for total in (squared, absolute))
    return squared, absolute


def copy_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a copy of tensors, without their gradients."""
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


@torch.no_grad()
def write_into(destination: Mapping[str, Tensor], source: Mapping[str, Tensor]) -> None:
    """Copy values into the tensors of the same name."""
    for name, tensor in destination.items():
        tensor.copy_(source[name])
