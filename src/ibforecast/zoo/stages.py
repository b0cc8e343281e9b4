"""Training of a recipe in stages, and the contest between sealed, additive and choosing readers.

The first stage trains a sealed reader. The second stage starts again from its best weights: a choosing reader, which
at first reads the same, learns to choose. Between the two there may be a contest:

- A sealed reader with an additive readout is trained in the same way. It takes the place of the first if its errors,
  the mean squared and the mean absolute one together, are smaller by a margin. It is given up after a few epochs if it
  is not ahead of the first reader by as much at the same epoch.
- A sealed and a choosing candidate are trained from the first reader's weights for a few epochs, with the same seed.
  The sealed reader has the stronger promise, so it wins unless the choosing one is better by the margin. It also wins
  if there are too few validation windows to know, or if the choosing one hardly chooses: `Contest.doubt`.

Last, channels that a naive forecast describes better get an anchor (`zoo.anchoring`).
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt
from pathlib import Path
from typing import Literal, cast

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import IBForecastError
from ibforecast.core.files import sha256
from ibforecast.data.windows import Windows
from ibforecast.model.config import GateConfig, ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.deadline import TAIL_PASSES, Deadline
from ibforecast.train.loop import Hopeless, Training, epoch_seed, never, never_hopeless, pace_of, train
from ibforecast.train.stack import Member, train_stacked
from ibforecast.zoo.anchoring import BATCH, anchored
from ibforecast.zoo.recipes import Recipe

USED_SHARE = 0.9
"""The share of the time until a deadline that is planned; the rest is a reserve for steps slower than measured."""

MEASURED_SHARE = 0.03
"""About the share of a time limit in which the pace of each candidate is measured."""

TAIL_SHARE = 0.3
"""The largest share of the time that the end of a fit may take; if it would take more, fewer windows are validated."""

FEWEST_VALIDATED = 64
"""A time limit never leaves fewer validation windows than this."""

FIRST_SHARE = 2 / 3
"""The largest share of the planned time, without the contest, that the first of two stages takes."""

FEWEST_EPOCHS = 8
"""A contest is left out if its first stage would have fewer epochs than this."""

TRIAL_EPOCHS = 4
"""After how many epochs an additive candidate is compared with the first reader, and given up if it is not ahead."""

FEWEST_APART = 25
"""With fewer validation windows, of which no two forecast the same step, a choosing reader never wins a contest.

From window to window the errors of both candidates differ by about 5 % (quarter hours of ETTm1, ten minutes of
Tetuan). So the standard error of their mean difference is 1 % with 25 windows, and the usual margin of 2 % is twice
that. With fewer, chance might give up the stronger promise.
"""

LEAST_VARIED = 0.01
"""A choosing reader that reads, on average, a smaller share of other tokens than usual never wins a contest."""

VARIED_WINDOWS = 512
"""The number of validation windows, evenly spaced, whose masks are compared."""

STAGES = ("", ".additive", ".sealed", ".choosing", ".second")
"""What is appended to the path of a checkpoint: first stage, the three candidates of a contest, second stage."""

READERS = dict(
    zip(STAGES, ("", "additive candidate", "sealed candidate", "choosing candidate", "choosing reader"), strict=True)
)
"""What the stages are called in the progress of a fit."""


@dataclass(frozen=True)
class Contest:
    """The validation errors of a sealed and a choosing reader after a short training, and the time of all candidates.

    `additive` is the error of an additive reader as a share of that of the first one, which is sealed as well; None if
    no additive reader took part. `windows` is the number of validation windows of which no two forecast the same step.
    `varied` says how much the choosing reader's mask changes; it is measured only if nothing else decides.
    """

    sealed: float
    choosing: float
    margin: float
    seconds: float
    additive: float | None = None
    additive_margin: float = 0.0
    windows: int | None = None
    varied: float | None = None

    @property
    def additive_wins(self) -> bool:
        """Whether the additive reader takes the place of the first one."""
        return self.additive is not None and self.additive < 1 - self.additive_margin

    @property
    def gain(self) -> float:
        """By what share of the better sealed reader's error the choosing one is better; negative if it is worse."""
        best = self.sealed * (self.additive if self.additive_wins and self.additive is not None else 1.0)
        return 1 - self.choosing / best if best else 0.0

    @property
    def doubt(self) -> str:
        """Why a choosing reader cannot win, however much better it is; empty if it can."""
        if self.windows is not None and self.windows < FEWEST_APART:
            return f"there are fewer than {FEWEST_APART} validation windows without overlap ({self.windows})"
        if self.varied is not None and self.varied < LEAST_VARIED:
            return "it reads the same places in nearly every validation window"
        return ""

    @property
    def winner(self) -> str:
        """The name of the winner."""
        if self.gain > self.margin and not self.doubt:
            return "choosing"
        return "additive" if self.additive_wins else "sealed"

    def __str__(self) -> str:
        words = []
        if self.additive is not None:
            enough = (
                "" if self.additive_wins or self.additive >= 1 else f", not enough (margin {self.additive_margin:.0%})"
            )
            words.append(f"an additive readout was {_compared(1 - self.additive)}{enough}")
        verdict = _compared(self.gain)
        if self.winner == "choosing":
            verdict += f", more than the {self.margin:.0%} that the weaker promise must be worth"
        elif self.gain > self.margin:
            verdict += f", but the stronger promise is kept by rule: {self.doubt}"
        elif self.gain > 0:
            verdict += f", not worth the weaker promise (margin {self.margin:.0%})"
        words.append(f"a choosing reader was {verdict}")
        return f"{self.winner}: {'; '.join(words)}; {len(words) + 1} candidates, {self.seconds:.0f} s"


def _compared(gain: float) -> str:
    return f"{abs(gain):.1%} {'better' if gain > 0 else 'worse'}"


Reason = Literal["no time", "out of time", "stopped"]


@dataclass(frozen=True)
class NoContest:
    """A contest without an outcome, and the reason; the reader is then sealed by rule."""

    reason: Reason

    def __str__(self) -> str:
        why = {
            "no time": "there was no contest, because the time limit was too short for one",
            "out of time": "the contest has no outcome, because the time was over before it ended",
            "stopped": "the contest has no outcome, because the fit was stopped before it ended",
        }
        return f"sealed by rule: {why[self.reason]}"


@dataclass(frozen=True)
class Trained:
    """A trained forecaster, its recipe with the configuration it ended with, and the history of all its stages.

    A recipe with a contest gives its outcome, or why there is none.
    """

    forecaster: Forecaster
    recipe: Recipe
    training: Training
    contest: Contest | None = None
    no_contest: NoContest | None = None


@dataclass(frozen=True)
class Stage:
    """One stage that a training needs next: a forecaster, its schedule, the epochs before it, when it is given up."""

    name: str
    forecaster: Forecaster
    config: TrainConfig
    done: int = 0
    hopeless: Hopeless = never_hopeless
    needed: bool = False
    """Whether there is no result without it; it then has at least one epoch, however late it is."""

    share: float = 1.0
    """The share of the time until a deadline that it may take; the rest is for a later stage."""

    def seed(self, seed: int) -> int:
        """Return the seed of this stage, given that of the training; all that continue another stage have the same."""
        return seed if self.name in STAGES[:2] else epoch_seed(seed, -1)


Plan = Generator[Stage, Training, Trained]
"""The stages of a training one after the other: each is sent the outcome of the one before."""


def train_recipe(
    recipe: Recipe,
    training: Windows,
    validation: Windows,
    seed: int,
    checkpoint: Path | None = None,
    identity: str = "",
    on_epoch: Callable[[int, Epoch, str], None] = lambda epoch, outcome, reader: None,
    until: Callable[[], bool] = never,
    deadline: Deadline | None = None,
) -> Trained:
    """Train a recipe in all its stages; arguments as in `ibforecast.train.loop.train`.

    `on_epoch` also gets the name of the reader that is trained; for the first one it is empty. With a `checkpoint` path
    every stage has a file there; `forget` removes them. A training that is stopped in a contest has no outcome of it,
    and keeps the sealed reader.
    """
    plan = stages(recipe, seed, validation)
    stage = next(plan)
    while True:
        if deadline:
            deadline.grant(stage.share)
        outcome = train(
            stage.forecaster,
            training,
            validation,
            stage.config,
            stage.seed(seed),
            None if checkpoint is None else Path(f"{checkpoint}{stage.name}"),
            sha256(f"{identity}{stage.name}".encode()),
            partial(_counted, on_epoch, stage),
            until,
            stage.hopeless,
            deadline,
            stage.needed,
        )
        try:
            stage = plan.send(outcome)
        except StopIteration as end:
            trained = _with_anchor(cast(Trained, end.value), validation)
            break
    if recipe.train.contest_margin and not trained.contest:
        reason: Reason = "out of time" if deadline and deadline.reached else "stopped"
        return replace(trained, no_contest=NoContest(reason))
    return trained


def train_recipes_stacked(
    recipe: Recipe, windows: Sequence[tuple[Windows, Windows]], seeds: Sequence[int]
) -> list[Trained | IBForecastError]:
    """Train a recipe several times as one batched model: a training and a validation part and a seed for each.

    Models that are in the same stage are one stack; the winners of a contest go on in smaller stacks. A model that
    does not stay finite is an error in its place.
    """
    plans = [stages(recipe, seed, part[1]) for seed, part in zip(seeds, windows, strict=True)]
    waiting = {place: next(plan) for place, plan in enumerate(plans)}
    trained: dict[int, Trained | IBForecastError] = {}
    while waiting:
        name = min((stage.name for stage in waiting.values()), key=STAGES.index)
        now = {place: stage for place, stage in waiting.items() if stage.name == name}
        members = [
            Member(stage.forecaster, *windows[place], stage.seed(seeds[place]), stage.hopeless)
            for place, stage in now.items()
        ]
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
    """Return what was trained, with an anchor if its recipe has a margin for one and a channel is better with it."""
    margin = trained.recipe.train.anchor_margin
    if not margin:
        return trained
    assert isinstance(trained.forecaster, IBForecast)
    network = anchored(trained.forecaster, validation, margin)
    return replace(trained, forecaster=network, recipe=replace(trained.recipe, config=network.config))


def stages(recipe: Recipe, seed: int, validation: Windows) -> Plan:
    """Yield the stages of a recipe; return the outcome of the last, with the history of all."""
    if not recipe.train.second_epochs:
        forecaster = recipe.build(seed)
        return Trained(forecaster, recipe, (yield Stage(STAGES[0], forecaster, recipe.train, needed=True)))
    sealed = sealed_of(recipe)
    first = sealed.build(seed)
    by_hand = recipe.config.chooses and not recipe.train.contest_margin
    early = yield Stage(STAGES[0], first, recipe.train, needed=True, share=FIRST_SHARE if by_hand else 1.0)
    fixed = Trained(first, replace(sealed, train=recipe.train.single), early)
    if early.stopped and not by_hand:
        return fixed
    done = len(early.history)
    if recipe.config.chooses and recipe.train.contest_margin:
        rival = None
        if recipe.train.additive_margin:
            rival = yield from _additive(fixed, recipe.train, seed)
            done += len(rival.training.history)
            if rival.training.stopped:
                return replace(fixed, training=replace(early, stopped=True))
        contest = yield from _contest(recipe, fixed, rival, seed, done, validation)
        done += 2 * recipe.train.contest.epochs
        if rival and contest and contest.additive_wins:
            fixed = replace(rival, training=_after(early, rival.training))
        fixed = replace(fixed, contest=contest)
        if contest is None or contest.winner != "choosing":
            return replace(fixed, training=replace(fixed.training, stopped=contest is None))
    second = _grown(recipe, first, seed)
    late = yield Stage(STAGES[4], second, recipe.train.second, done, needed=by_hand)
    schedule = replace(recipe.train, contest_margin=0.0, additive_margin=0.0)
    if fixed.contest and late.history:
        fixed = replace(fixed, contest=replace(fixed.contest, varied=varied(second, validation)))
    won = fixed.contest is not None and fixed.contest.winner == "choosing"
    if by_hand or (won and late.best_error < fixed.training.best_error):
        return Trained(second, replace(recipe, train=schedule), _after(early, late), fixed.contest)
    whole = replace(fixed.training, history=(*fixed.training.history, *late.history), stopped=late.stopped)
    return replace(fixed, recipe=replace(fixed.recipe, train=schedule), training=whole)


def within(recipe: Recipe, training: Windows, validation: Windows, deadline: Deadline) -> tuple[Recipe, Windows]:
    """Return the recipe with as many epochs as this machine can train until a deadline, and the windows to validate on.

    Both follow from a measurement of a few steps. A contest that would leave too few epochs is left out, and the
    reader is sealed. If the end of the fit would take too large a share of the time, the validation windows are fewer,
    evenly spaced.
    """
    plain, pace = sealed_of(recipe), recipe.train
    by_hand = bool(pace.second_epochs) and not pace.contest_margin

    def measured(candidate: Recipe, windows: Windows, most: float = inf) -> tuple[float, float, Windows]:
        """Return the seconds of an epoch and of a pass, and the windows of the pass."""
        network = candidate.build(0)
        speed = pace_of(network, training, windows, pace, MEASURED_SHARE * deadline.seconds)
        if speed.window * len(windows) * TAIL_PASSES > most:
            windows = windows.spaced(max(FEWEST_VALIDATED, int(most / (speed.window * TAIL_PASSES))))
        deadline.note(type(network).__name__, speed.window * len(windows))
        return speed.epoch(training, windows, pace), speed.window * len(windows), windows

    def planned(passes: float) -> float:
        """Return the seconds left for training, given the seconds of a pass over all validation windows."""
        return max(0.0, USED_SHARE * deadline.left - TAIL_PASSES * passes)

    # A reader that was chosen by hand determines how long the end takes; otherwise usually the sealed one.
    later = later_pass = 0.0
    if by_hand:
        later, later_pass, validation = measured(recipe, validation, TAIL_SHARE * deadline.left)
    first, first_pass, validation = measured(plain, validation, inf if by_hand else TAIL_SHARE * deadline.left)
    single = replace(plain, train=pace.single.scaled(min(1.0, planned(first_pass) / (pace.epochs * first))))
    if not pace.second_epochs:
        return single, validation
    candidates = 2 if pace.additive_margin else 1
    if not by_hand:
        if planned(first_pass) * FIRST_SHARE < FEWEST_EPOCHS * candidates * first:  # without measuring the others
            return single, validation
        later, later_pass, _ = measured(recipe, validation)
    if pace.additive_margin:  # the first stage again, with another readout
        first += measured(additive_of(plain), validation)[0]
    contest = pace.contest.epochs * (first / candidates + later) + 2 * later_pass if pace.contest_margin else 0.0
    left = max(0.0, planned(max(first_pass, later_pass)) - contest)
    share = left * FIRST_SHARE / (pace.epochs * first)
    if pace.contest_margin and share * pace.epochs < FEWEST_EPOCHS:
        return single, validation
    epochs = pace.scaled(min(1.0, share)).epochs
    second = max(1, int(min(pace.second_epochs, (left - epochs * first) / later)))
    return replace(recipe, train=replace(pace, epochs=epochs, second_epochs=second)), validation


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


def additive_of(sealed: Recipe) -> Recipe:
    """Return the recipe of a sealed reader with an additive readout, and with what such a readout needs."""
    config: ModelConfig = sealed.config
    readout = replace(config.readout, kind="additive", cross_channel=True, by_channel=True)
    return replace(sealed, config=replace(config, frame="seasonal", readout=readout))


def _additive(fixed: Trained, config: TrainConfig, seed: int) -> Generator[Stage, Training, Trained]:
    """Train an additive reader like the first one, from new weights; give it up if it is not ahead after a trial."""
    recipe, early = additive_of(fixed.recipe), fixed.training.history
    network = recipe.build(seed)
    outcome = yield Stage(STAGES[1], network, config, len(early), partial(_behind, early, config.additive_margin))
    return Trained(network, recipe, outcome)


def _behind(first: tuple[Epoch, ...], margin: float, history: tuple[Epoch, ...]) -> bool:
    """Return whether a run that is at the end of its trial is not ahead of another one by a margin."""
    return len(history) == TRIAL_EPOCHS and _least(history) > (1 - margin) * _least(first[:TRIAL_EPOCHS])


def _least(history: tuple[Epoch, ...]) -> float:
    return min(epoch.validation_error for epoch in history)


def _relative(rival: Training, early: Training, margin: float) -> float:
    """Return the error of an additive reader as a share of the first one's, on the scale of squared errors.

    At the end it is the geometric mean of two ratios, of the mean squared errors and of the squares of the mean
    absolute ones. For a reader that was given up it is the ratio of squared errors at the end of its trial.
    """
    if _behind(early.history, margin, rival.history):
        return _ratio(_least(rival.history), _least(early.history[:TRIAL_EPOCHS]))
    squared = _ratio(rival.best_error, early.best_error)
    return sqrt(squared) * _ratio(rival.best_absolute_error, early.best_absolute_error)


def _ratio(own: float, other: float) -> float:
    """Return the ratio of two errors; 1 if both are zero, and 2 if only the other one is."""
    return own / other if other else 1.0 + float(own > 0)


def _after(early: Training, late: Training) -> Training:
    """Return a training that had another one before it, with the history of both."""
    return replace(late, history=(*early.history, *late.history), best_epoch=len(early.history) + late.best_epoch)


def _contest(
    recipe: Recipe, fixed: Trained, rival: Trained | None, seed: int, done: int, validation: Windows
) -> Generator[Stage, Training, Contest | None]:
    """Train a sealed and a choosing candidate for a few epochs from the first reader's weights; None if stopped."""
    config, first = recipe.train.contest, fixed.forecaster
    sealed = yield Stage(STAGES[2], _grown(fixed.recipe, first, seed), config, done)
    if sealed.stopped:
        return None
    candidate = _grown(recipe, first, seed)
    chosen = yield Stage(STAGES[3], candidate, config, done + config.epochs)
    if chosen.stopped:
        return None
    seconds = sealed.seconds + chosen.seconds + (rival.training.seconds if rival else 0.0)
    margin, wanted = recipe.train.contest_margin, recipe.train.additive_margin
    additive = _relative(rival.training, fixed.training, wanted) if rival else None
    errors, apart = (sealed.best_error, chosen.best_error), validation.apart()
    contest = Contest(*errors, margin, round(seconds, 3), additive, wanted, apart)
    if contest.winner != "choosing":
        return contest
    return replace(contest, varied=varied(candidate, validation))


@torch.no_grad()
def varied(reader: Forecaster, windows: Windows) -> float:
    """Return how much a reader's mask changes: the mean share of its open tokens that are not open as usual.

    The usual tokens are those that are open most often, as many as are open at once.
    """
    assert isinstance(reader, IBForecast)
    some = windows.spaced(VARIED_WINDOWS)
    masks = torch.cat([reader.read(window).mask.bool().flatten(1) for window, _ in some.batches(some.at_once(BATCH))])
    counts = masks.sum(dim=1)
    usual = masks.sum(dim=0).topk(int(counts.max())).indices
    others = counts - masks[:, usual].sum(dim=1)
    return round(float((others / counts.clamp(min=1)).mean()), 6)


def _counted(on_epoch: Callable[[int, Epoch, str], None], stage: Stage, epoch: int, outcome: Epoch) -> None:
    on_epoch(stage.done + epoch, outcome, READERS[stage.name])


def _grown(recipe: Recipe, first: Forecaster, seed: int) -> Forecaster:
    """Return the network of a recipe with the weights of the first stage; a new gate network has those of the seed."""
    network = recipe.build(seed)
    weights = {name: tensor.to(torch.device("cpu")) for name, tensor in first.state_dict().items()}
    network.load_state_dict({**network.state_dict(), **weights})
    return network
