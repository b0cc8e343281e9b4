"""Training of a recipe in two stages, and the contest between a sealed and a choosing reader.

The first stage trains a sealed reader. The second stage starts again from its best weights: a choosing reader, which
at first reads the same, learns to choose. In a contest a sealed and a choosing candidate are first trained from there
for a few epochs, with the same seed. The sealed reader has the stronger promise, so it wins unless the choosing one is
better by the margin. If it wins, the model is that of the first stage.

Last, channels that a naive forecast describes better get an anchor (`zoo.anchoring`).
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import IBForecastError
from ibforecast.core.files import sha256
from ibforecast.data.windows import Windows
from ibforecast.model.config import GateConfig, ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import Training, epoch_seconds, epoch_seed, never, train
from ibforecast.train.stack import Member, train_stacked
from ibforecast.zoo.anchoring import anchored
from ibforecast.zoo.recipes import Recipe

USED_SHARE = 0.8
"""The share of a time limit that is planned; the rest is for measuring, calibrating and saving."""

FIRST_SHARE = 2 / 3
"""The largest share of the planned time, without the contest, that the first of two stages takes."""

FEWEST_EPOCHS = 8
"""A contest is left out if its first stage would have fewer epochs than this."""

STAGES = ("", ".sealed", ".choosing", ".second")
"""What is appended to the path of a checkpoint: first stage, the two candidates of a contest, second stage."""


@dataclass(frozen=True)
class Contest:
    """The validation errors of a sealed and a choosing reader after a short training, and the time of both."""

    sealed: float
    choosing: float
    margin: float
    seconds: float

    @property
    def gain(self) -> float:
        """By what share of the sealed reader's error the choosing one is better; negative if it is worse."""
        return 1 - self.choosing / self.sealed if self.sealed else 0.0

    @property
    def winner(self) -> str:
        """The name of the winner."""
        return "choosing" if self.gain > self.margin else "sealed"

    def __str__(self) -> str:
        difference = f"{abs(self.gain):.1%} {'better' if self.gain > 0 else 'worse'}"
        if self.winner == "choosing":
            verdict = f"{difference}, more than the {self.margin:.0%} that the weaker promise must be worth"
        elif self.gain > 0:
            verdict = f"{difference}, not worth the weaker promise (margin {self.margin:.0%})"
        else:
            verdict = difference
        return f"{self.winner}: a choosing reader was {verdict}; 2 candidates, {self.seconds:.0f} s"


@dataclass(frozen=True)
class Trained:
    """A trained forecaster, its recipe with the configuration it ended with, and the history of all its stages."""

    forecaster: Forecaster
    recipe: Recipe
    training: Training
    contest: Contest | None = None


@dataclass(frozen=True)
class Stage:
    """One stage that a training needs next: a forecaster, its schedule, and how many epochs were before it."""

    name: str
    forecaster: Forecaster
    config: TrainConfig
    done: int = 0

    def seed(self, seed: int) -> int:
        """Return the seed of this stage in a training with some seed; all stages after the first have the same."""
        return seed if self.name == STAGES[0] else epoch_seed(seed, -1)


Plan = Generator[Stage, Training, Trained]
"""The stages of a training one after the other: each is sent the outcome of the one before."""


def train_recipe(
    recipe: Recipe,
    training: Windows,
    validation: Windows,
    seed: int,
    checkpoint: Path | None = None,
    identity: str = "",
    on_epoch: Callable[[int, Epoch], None] = lambda epoch, outcome: None,
    until: Callable[[], bool] = never,
) -> Trained:
    """Train a recipe in all its stages; arguments as in `ibforecast.train.loop.train`.

    With a `checkpoint` path every stage has a file there; `forget` removes them. A training that is stopped in a
    contest has no outcome of it, and keeps the sealed reader.
    """
    plan = stages(recipe, seed)
    stage = next(plan)
    while True:
        outcome = train(
            stage.forecaster,
            training,
            validation,
            stage.config,
            stage.seed(seed),
            None if checkpoint is None else Path(f"{checkpoint}{stage.name}"),
            sha256(f"{identity}{stage.name}".encode()),
            partial(_counted, on_epoch, stage.done),
            until,
        )
        try:
            stage = plan.send(outcome)
        except StopIteration as end:
            return _with_anchor(cast(Trained, end.value), validation)


def train_recipes_stacked(
    recipe: Recipe, windows: Sequence[tuple[Windows, Windows]], seeds: Sequence[int]
) -> list[Trained | IBForecastError]:
    """Train a recipe several times as one batched model: a training and a validation part and a seed for each.

    Models that are in the same stage are one stack; the winners of a contest go on in smaller stacks. A model that
    does not stay finite is an error in its place.
    """
    plans = [stages(recipe, seed) for seed in seeds]
    waiting = {place: next(plan) for place, plan in enumerate(plans)}
    trained: dict[int, Trained | IBForecastError] = {}
    while waiting:
        name = min((stage.name for stage in waiting.values()), key=STAGES.index)
        now = {place: stage for place, stage in waiting.items() if stage.name == name}
        members = [Member(stage.forecaster, *windows[place], stage.seed(seeds[place])) for place, stage in now.items()]
        outcomes = train_stacked(members, next(iter(now.values())).config)
        for place, outcome in zip(now, outcomes, strict=True):
            del waiting[place]
            if isinstance(outcome, IBForecastError):
                trained[place] = outcome
                continue
            try:
                waiting[place] = plans[place].send(outcome)
            except StopIteration as end:
                trained[place] = _with_anchor(end.value, windows[place][1])
    return [trained[place] for place in range(len(plans))]


def _with_anchor(trained: Trained, validation: Windows) -> Trained:
    """Return what was trained with an anchor, if its recipe has a margin for one and a channel is better with it."""
    margin = trained.recipe.train.anchor_margin
    if not margin:
        return trained
    assert isinstance(trained.forecaster, IBForecast)
    network = anchored(trained.forecaster, validation, margin)
    return replace(trained, forecaster=network, recipe=replace(trained.recipe, config=network.config))


def stages(recipe: Recipe, seed: int) -> Plan:
    """Yield the stages of a recipe; return the outcome of the last, with the history of all."""
    if not recipe.train.second_epochs:
        forecaster = recipe.build(seed)
        return Trained(forecaster, recipe, (yield Stage(STAGES[0], forecaster, recipe.train)))
    sealed = sealed_of(recipe)
    first = sealed.build(seed)
    early = yield Stage(STAGES[0], first, recipe.train)
    contest, done = None, len(early.history)
    by_hand = recipe.config.chooses and not recipe.train.contest_margin
    if early.stopped and not by_hand:
        return Trained(first, replace(sealed, train=recipe.train.single), early)
    if recipe.config.chooses and recipe.train.contest_margin:
        contest = yield from _contest(recipe, sealed, first, seed, done)
        done += 2 * recipe.train.contest.epochs
        if contest is None or contest.winner == "sealed":
            early = replace(early, stopped=contest is None)
            return Trained(first, replace(sealed, train=recipe.train.single), early, contest)
    second = _grown(recipe, first, seed)
    late = yield Stage(STAGES[3], second, recipe.train.second, done)
    history, schedule = (*early.history, *late.history), replace(recipe.train, contest_margin=0.0)
    if by_hand or late.best_error < early.best_error:
        whole = replace(late, history=history, best_epoch=len(early.history) + late.best_epoch)
        return Trained(second, replace(recipe, train=schedule), whole, contest)
    whole = replace(early, history=history, stopped=late.stopped)
    return Trained(first, replace(sealed, train=schedule), whole, contest)


def within(recipe: Recipe, training: Windows, validation: Windows, seconds: float) -> Recipe:
    """Return the recipe with as many epochs as this machine can train in a time, by a measurement of a few steps.

    A contest that would leave too few epochs is left out, and the reader is sealed.
    """
    first = epoch_seconds(sealed_of(recipe).build(0), training, validation, recipe.train)
    pace, alone = recipe.train, seconds * USED_SHARE / (recipe.train.epochs * first)
    if not pace.second_epochs:
        return replace(recipe, train=pace.scaled(min(1.0, alone)))
    later = epoch_seconds(recipe.build(0), training, validation, pace.second)
    contest = pace.contest.epochs * (first + later) if pace.contest_margin else 0.0
    left = seconds * USED_SHARE - contest
    share = left * FIRST_SHARE / (pace.epochs * first)
    if pace.contest_margin and share * pace.epochs < FEWEST_EPOCHS:
        return replace(sealed_of(recipe), train=pace.single.scaled(min(1.0, alone)))
    epochs = pace.scaled(min(1.0, max(share, 0.0))).epochs
    second = max(1, min(pace.second_epochs, int((left - epochs * first) / later)))
    return replace(recipe, train=replace(pace, epochs=epochs, second_epochs=second))


def sealed_of(recipe: Recipe) -> Recipe:
    """Return the recipe with a fixed mask, if its reader chooses; otherwise the recipe itself."""
    config: ModelConfig = recipe.config
    if not config.chooses:
        return recipe
    # A gate that counts; if it was open, its budget is the whole window, so that it is still open.
    gate = replace(config.gate, kind="exact", attention="none", width=GateConfig.width, layers=GateConfig.layers)
    objective = replace(config.objective, exchange_weight=0.0, departure_weight=0.0)
    return replace(recipe, config=replace(config, sealed=True, level_from="window", gate=gate, objective=objective))


def forget(checkpoint: Path) -> None:
    """Remove the files of all stages of a checkpoint."""
    for stage in STAGES:
        Path(f"{checkpoint}{stage}").unlink(missing_ok=True)


def _contest(
    recipe: Recipe, sealed: Recipe, first: Forecaster, seed: int, done: int
) -> Generator[Stage, Training, Contest | None]:
    """Train both candidates for a few epochs from the same weights, in the same order of windows; None if stopped."""
    config = recipe.train.contest
    fixed = yield Stage(STAGES[1], _grown(sealed, first, seed), config, done)
    if fixed.stopped:
        return None
    chosen = yield Stage(STAGES[2], _grown(recipe, first, seed), config, done + config.epochs)
    if chosen.stopped:
        return None
    seconds = round(fixed.seconds + chosen.seconds, 3)
    return Contest(fixed.best_error, chosen.best_error, recipe.train.contest_margin, seconds)


def _counted(on_epoch: Callable[[int, Epoch], None], done: int, epoch: int, outcome: Epoch) -> None:
    on_epoch(done + epoch, outcome)


def _grown(recipe: Recipe, first: Forecaster, seed: int) -> Forecaster:
    """Return the network of a recipe with the weights of the first stage; a new gate network has those of the seed."""
    network = recipe.build(seed)
    weights = {name: tensor.to(torch.device("cpu")) for name, tensor in first.state_dict().items()}
    network.load_state_dict({**network.state_dict(), **weights})
    return network
