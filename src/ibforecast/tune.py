"""Search for a recipe with Optuna: a few knobs that matter, compared on validation windows alone."""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ibforecast.core.budget import allowance
from ibforecast.core.errors import DataError, IBForecastError, MissingExtraError, UsageError
from ibforecast.core.files import sha256
from ibforecast.core.sizes import Sizes
from ibforecast.data import tables
from ibforecast.data.sources import load
from ibforecast.fitting import recipe_for
from ibforecast.forecaster import IBForecaster
from ibforecast.train.checkpoint import Epoch
from ibforecast.zoo.configs import changed, chosen
from ibforecast.zoo.recipes import Recipe

if TYPE_CHECKING:
    import optuna

PATCHES = range(4, 33)
"""Patch lengths that are tried, where they divide the look-back."""

UNPRUNED_TRIALS = 4


@dataclass(frozen=True)
class Choice:
    """A knob with a few positions."""

    positions: tuple[Any, ...]

    def suggest(self, trial: "optuna.Trial", name: str) -> Any:
        """Let Optuna choose a position."""
        return trial.suggest_categorical(name, self.positions)

    def including(self, value: Any) -> "Choice":
        """The same knob with one more position, if it is not there."""
        return self if value in self.positions else Choice((*self.positions, value))


@dataclass(frozen=True)
class Span:
    """A knob that turns freely between two ends."""

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: "optuna.Trial", name: str) -> float:
        """Let Optuna choose a place."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def including(self, value: float) -> "Span":
        """The same knob, wide enough to hold a value."""
        return replace(self, low=min(self.low, value), high=max(self.high, value))


Knob = Choice | Span
KNOBS: dict[str, Knob] = {
    "model.gate.noise": Span(0.0, 1.5),
    "model.gate.recent": Choice((0, 1, 2, 4)),
    "model.readout.kind": Choice(("phase", "mlp", "linear")),
    "model.readout.width": Choice((64, 128, 256, 512)),
    "model.readout.dropout": Span(0.0, 0.6),
    "model.objective.consistency_weight": Choice((0.0, 0.02, 0.05, 0.1, 0.2)),
    "train.learning_rate": Span(3e-4, 1e-2, log=True),
}
"""What is searched, in addition to the patch length and, if wanted, the budget: names as in a recipe."""


@dataclass(frozen=True)
class Trial:
    """One recipe that was tried: its knobs, its error on the validation windows, and how much of them it read."""

    number: int
    state: Literal["finished", "pruned", "failed"]
    validation_error: float | None
    open_rate: float | None
    epochs: int
    seconds: float
    knobs: Mapping[str, Any]
    message: str = ""


@dataclass(frozen=True)
class Tuning:
    """All trials in their order, the best of them, its recipe as TOML, and a forecaster that has it, not fitted."""

    trials: tuple[Trial, ...]
    best: Trial
    recipe: str
    forecaster: IBForecaster

    @property
    def patch_len(self) -> int:
        """The patch length of the best recipe."""
        return int(self.best.knobs["model.patch_len"])

    def fit(self, table: Any, **settings: Any) -> IBForecaster:
        """Fit the winner; `settings` as in `IBForecaster.fit`. The same table gives the weights of its trial."""
        return self.forecaster.replace().fit(table, **settings)


def tune(
    table: Any,
    forecaster: IBForecaster,
    trials: int,
    *,
    storage: str | Path | None = None,
    timeout: float | None = None,
    budgets: tuple[float, ...] = (),
    on_trial: Callable[[Trial, int], None] = lambda trial, trials: None,
) -> Tuning:
    """Try recipes until there are so many `trials`, the first being the forecaster's own, and return the best.

    Trials train on the training windows and are compared by the error on the validation windows; test windows are
    never looked at. With a `storage` file the search can be stopped and gone on with: what is in it counts, and the
    trials are those of a search that was never stopped. `timeout` seconds after its begin no new trial is started.
    A larger budget is almost always more accurate, so the budget is held unless `budgets` to choose among are given.
    """
    if trials < 1:
        raise UsageError("trials must be at least 1", trials, "try 30")
    source = load(table)[0]
    base, data_sha256 = _base(source, forecaster)
    knobs = _knobs(base, forecaster, budgets)
    identity = sha256(f"{data_sha256}/{base.sha256}/{_settings(forecaster)}/{knobs}".encode())
    begun = time.monotonic()
    with _quiet_optuna():
        study = _study(storage, identity, unpruned_epochs=base.train.epochs // 3)
        while len(ended := _ended(study)) < trials and (timeout is None or time.monotonic() - begun < timeout):
            _try(_ask(study, base, knobs, forecaster.seed, len(ended)), study, source, base, forecaster)
            on_trial(_ended(study)[-1], trials)
    finished = [trial for trial in ended if trial.state == "finished"]
    if not finished:
        raise IBForecastError("a search must finish a trial", f"{len(ended)} that did not", "give it more time")
    best = min(finished, key=lambda trial: (trial.validation_error, trial.number))
    winner = _turned(base, best.knobs)
    return Tuning(tuple(ended), best, to_toml(winner), _with_recipe(forecaster, winner, best.knobs))


def to_toml(recipe: Recipe) -> str:
    """Write a recipe as TOML that reads back as it, the inverse of `resolve`; what a table tells is left out."""
    of_table = {"further_cycles", "past", "future", *(field.name for field in fields(Sizes))}
    model = {name: value for name, value in chosen(recipe.config).items() if name not in of_table}
    lines = [f'forecaster = "{recipe.forecaster}"']
    for name, settings in (("model", model), ("train", chosen(recipe.train))):
        lines += _table(name, settings)
    return "\n".join(lines) + "\n"


def _table(name: str, settings: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"[{name}]")
    inner = {key: value for key, value in settings.items() if isinstance(value, Mapping)}
    yield from (f"{key} = {json.dumps(value)}" for key, value in settings.items() if key not in inner)
    for key, value in inner.items():
        yield from _table(f"{name}.{key}", value)


def _settings(forecaster: IBForecaster) -> str:
    """The settings a trial depends on in addition to the recipe and the table."""
    return str([(name, value) for name, value in forecaster.document().items() if name not in ("recipe", "device")])


def _base(source: Any, forecaster: IBForecaster) -> tuple[Recipe, str]:
    """The recipe to begin with, as the forecaster would resolve it for this table, and the table's fingerprint."""
    series = tables.read(source, forecaster.layout).series
    return recipe_for(forecaster, series), series.sha256


def _knobs(base: Recipe, forecaster: IBForecaster, budgets: tuple[float, ...]) -> dict[str, Knob]:
    """The knobs for this recipe, each wide enough for where it stands in the recipe itself."""
    if not all(0 < budget <= 1 for budget in budgets):
        raise UsageError("budgets must lie in (0, 1]", budgets, "try 0.1, 0.2 and 0.3")
    config = base.config
    tokens = {n: config.look_back // n * config.channels for n in PATCHES if config.look_back % n == 0}
    patches = [n for n in tokens if allowance(min((config.budget, *budgets)), tokens[n])]
    knobs: dict[str, Knob] = {"model.patch_len": Choice(() if forecaster.patch_len else tuple(patches)), **KNOBS}
    if config.past:  # which only a phase readout can read
        knobs["model.readout.kind"] = Choice(())
    if config.gate.attention == "none" and not config.gate.every:  # then gates have nothing but their bias
        knobs["model.gate.recent"] = Choice((1, 2, 4))
    if budgets:
        knobs["model.budget"] = Choice(tuple(map(float, budgets)))
    return {name: knob.including(_position(base, name)) for name, knob in knobs.items()}


def _position(recipe: Recipe, name: str) -> Any:
    part, *path = name.split(".")
    return reduce(getattr, path, recipe.config if part == "model" else recipe.train)


def _turned(base: Recipe, knobs: Mapping[str, Any]) -> Recipe:
    """The recipe with its knobs turned; settings that only a phase readout has are left out with any other."""
    settings: dict[str, Any] = {}
    for name, value in knobs.items():
        *path, last = name.split(".")
        reduce(lambda table, key: table.setdefault(key, {}), path, settings)[last] = value
    if knobs["model.readout.kind"] != "phase":
        settings["model"]["readout"] |= {"cross_channel": False, "by_channel": False}
    config, schedule = changed(base.config, settings["model"]), changed(base.train, settings["train"])
    return replace(base, name="tuned", config=config, train=schedule)


def _with_recipe(forecaster: IBForecaster, recipe: Recipe, knobs: Mapping[str, Any]) -> IBForecaster:
    budget = knobs.get("model.budget", forecaster.budget)
    return forecaster.replace(recipe=recipe, patch_len=knobs["model.patch_len"], budget=budget)


def _study(storage: str | Path | None, name: str, unpruned_epochs: int) -> "optuna.Study":
    """The search of this name, new or as far as it got; trials a killed run left under way are given up."""
    from optuna import create_study
    from optuna.pruners import MedianPruner
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
    from optuna.trial import TrialState

    kept = None
    if storage is not None:
        path = _checked(Path(storage))
        kept = JournalStorage(JournalFileBackend(path, JournalFileOpenLock(path)))
    pruner = MedianPruner(n_startup_trials=UNPRUNED_TRIALS, n_warmup_steps=unpruned_epochs)
    study = create_study(storage=kept, study_name=name, pruner=pruner, load_if_exists=True)
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
    return study


def _checked(storage: Path) -> str:
    """The path of a search's file; one that holds something else is refused before anything is written."""
    storage.parent.mkdir(parents=True, exist_ok=True)
    try:
        with storage.open("rb") as lines:
            begins_well = "op_code" in json.loads(next(lines, b'{"op_code": 0}'))
    except FileNotFoundError:
        begins_well = True
    except (OSError, ValueError, TypeError):
        begins_well = False
    if not begins_well:
        raise DataError("the storage must be the file of a search", repr(str(storage)), "name another")
    return str(storage)


def _ask(study: "optuna.Study", base: Recipe, knobs: Mapping[str, Knob], seed: int, count: int) -> "optuna.Trial":
    """The next trial: the recipe as it is, then what Optuna draws from a seed of its own for every trial."""
    from optuna.samplers import TPESampler
    from optuna.trial import TrialState

    if not count and not study.get_trials(states=(TrialState.WAITING,)):
        study.enqueue_trial({name: _position(base, name) for name in knobs})
    study.sampler = TPESampler(seed=random.Random(f"{seed}/{count}").getrandbits(32))
    trial = study.ask()
    for name, knob in knobs.items():
        knob.suggest(trial, name)
    return trial


def _try(trial: "optuna.Trial", study: "optuna.Study", source: Any, base: Recipe, forecaster: IBForecaster) -> None:
    """Fit one recipe and tell the study; one that cannot be trained is a bad one, but the first must be trained."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    def report(epoch: int, epochs: int, outcome: Epoch) -> None:
        trial.report(outcome.validation_error, epoch)
        if trial.should_prune():
            raise TrialPruned

    begun, state, error = time.perf_counter(), TrialState.COMPLETE, None
    try:
        recipe = _turned(base, trial.params)
        model = _with_recipe(forecaster, recipe, trial.params).fit(source, on_epoch=report)
        error = model.fitted.summary.validation_error
        trial.set_user_attr("open_rate", model.evaluate(source, "validation").open_rate)
    except TrialPruned:
        state = TrialState.PRUNED
    except IBForecastError as failure:
        if not _ended(study):
            raise
        state = TrialState.FAIL
        trial.set_user_attr("message", str(failure))
    trial.set_user_attr("seconds", round(time.perf_counter() - begun, 3))
    study.tell(trial, error, state)


def _ended(study: "optuna.Study") -> list[Trial]:
    """The trials that came to an end of their own, in their order."""
    from optuna.trial import TrialState

    states: dict[TrialState, Literal["finished", "pruned", "failed"]] = {
        TrialState.COMPLETE: "finished",
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: "failed",
    }
    trials = study.get_trials(states=tuple(states))
    ended = [t for t in trials if t.state != TrialState.FAIL or "message" in t.user_attrs]  # the others were killed
    return [
        Trial(
            number=number,
            state=states[trial.state],
            validation_error=min(trial.intermediate_values.values(), default=None),
            open_rate=trial.user_attrs.get("open_rate"),
            epochs=len(trial.intermediate_values),
            seconds=trial.user_attrs.get("seconds", 0.0),
            knobs=trial.params,
            message=trial.user_attrs.get("message", ""),
        )
        for number, trial in enumerate(ended, start=1)
    ]


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Ask Optuna to say nothing unless something is wrong, and leave it as it was."""
    try:
        from optuna import logging
    except ImportError as error:
        raise MissingExtraError("optuna", "tune") from error
    before = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        logging.set_verbosity(before)
