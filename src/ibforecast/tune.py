"""Search for a recipe with Optuna: a few important knobs, compared on only the validation windows."""

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

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
"""Patch lengths to try, if they divide the look-back."""

UNPRUNED_TRIALS = 4


@dataclass(frozen=True)
class Choice:
    """A knob with a few positions."""

    positions: tuple[Any, ...]

    def suggest(self, trial: "optuna.Trial", name: str) -> Any:
        """Let Optuna choose a position."""
        return trial.suggest_categorical(name, self.positions)

    def including(self, value: Any) -> "Choice":
        """Return the knob with this position added if it is missing."""
        return self if value in self.positions else Choice((*self.positions, value))


@dataclass(frozen=True)
class Span:
    """A continuous knob between two ends."""

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: "optuna.Trial", name: str) -> float:
        """Let Optuna choose a value."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def including(self, value: float) -> "Span":
        """Return the knob, widened to include a value."""
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
"""The knobs of a search, in addition to the patch length and optionally the budget; names as in a recipe."""


@dataclass(frozen=True)
class Trial:
    """One tried recipe: its knobs, its error on the validation windows, and the fraction of them it read."""

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
    """All trials in order, the best one, its recipe as TOML, and an unfitted forecaster with that recipe."""

    trials: tuple[Trial, ...]
    best: Trial
    recipe: str
    forecaster: IBForecaster

    @property
    def patch_len(self) -> int:
        """The patch length of the best recipe."""
        return int(self.best.knobs["model.patch_len"])

    def fit(self, table: Any, **settings: Any) -> IBForecaster:
        """Fit the best recipe; `settings` as in `IBForecaster.fit`. The same table gives the weights of its trial."""
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
    """Try recipes until there are `trials` trials, starting with the forecaster's own, and return the best.

    Trials train on the training windows and are compared by the error on the validation windows; test windows are
    never read. With a `storage` file a search can be stopped and continued: trials in the file count, and the result is
    that of a search that was never stopped. No new trial starts after `timeout` seconds. A larger budget is almost
    always more accurate, so the budget is fixed unless there are `budgets` to choose from.
    """
    if trials < 1:
        raise UsageError("trials must be at least 1", trials, "try 30")
    source = load(table)[0]
    base, data_sha256 = _base(source, forecaster)
    knobs = _knobs(base, forecaster, budgets)
    identity = sha256(f"{data_sha256}/{base.sha256}/{_settings(forecaster)}/{knobs}".encode())
    begun = time.monotonic()
    with _quiet_optuna(), _only_user(storage):
        study = _study(storage, identity, unpruned_epochs=base.train.epochs // 3)
        while len(ended := _ended(study)) < trials and (timeout is None or time.monotonic() - begun < timeout):
            _try(_next_trial(study, base, knobs, forecaster.seed, len(ended)), study, source, base, forecaster)
            on_trial(_ended(study)[-1], trials)
    finished = [trial for trial in ended if trial.state == "finished"]
    if not finished:
        raise IBForecastError("a search must finish a trial", f"{len(ended)} that did not", "give it more time")
    best = min(finished, key=lambda trial: (trial.validation_error, trial.number))
    winner = _with_knobs(base, best.knobs)
    return Tuning(tuple(ended), best, to_toml(winner), _with_recipe(forecaster, winner, best.knobs))


def to_toml(recipe: Recipe) -> str:
    """Return a recipe as TOML, the inverse of `resolve`; values that come from the table are left out."""
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
    """Return the settings a trial depends on in addition to the recipe and the table, as text."""
    return str([(name, value) for name, value in forecaster.document().items() if name not in ("recipe", "device")])


def _base(source: Any, forecaster: IBForecaster) -> tuple[Recipe, str]:
    """Return the first recipe, which is the forecaster's resolved for this table, and the table's fingerprint."""
    series = tables.read(source, forecaster.layout).series
    return recipe_for(forecaster, series), series.sha256


def _knobs(base: Recipe, forecaster: IBForecaster, budgets: tuple[float, ...]) -> dict[str, Knob]:
    """Return the knobs for this recipe, each widened to include the recipe's own value."""
    if not all(0 < budget <= 1 for budget in budgets):
        raise UsageError("budgets must lie in (0, 1]", budgets, "try 0.1, 0.2 and 0.3")
    config = base.config
    tokens = {n: config.look_back // n * config.channels for n in PATCHES if config.look_back % n == 0}
    patches = [n for n in tokens if allowance(min((config.budget, *budgets)), tokens[n])]
    knobs: dict[str, Knob] = {"model.patch_len": Choice(() if forecaster.patch_len else tuple(patches)), **KNOBS}
    if config.past:  # only a phase readout can read `past` channels
        knobs["model.readout.kind"] = Choice(())
    spread = config.gate.spread or config.gate.every > 0
    if config.gate.attention == "none" and not spread:  # with 0, gates would have only their bias
        knobs["model.gate.recent"] = Choice((1, 2, 4))
    if config.sealed or config.level_from == "reading":  # neither has this term
        del knobs["model.objective.consistency_weight"]
    if budgets:
        knobs["model.budget"] = Choice(tuple(map(float, budgets)))
    return {name: knob.including(_position(base, name)) for name, knob in knobs.items()}


def _position(recipe: Recipe, name: str) -> Any:
    part, *path = name.split(".")
    return reduce(getattr, path, recipe.config if part == "model" else recipe.train)


def _with_knobs(base: Recipe, knobs: Mapping[str, Any]) -> Recipe:
    """Return the recipe with these knobs; settings that only some readouts have are turned off for the others."""
    settings: dict[str, Any] = {}
    for name, value in knobs.items():
        *path, last = name.split(".")
        reduce(lambda table, key: table.setdefault(key, {}), path, settings)[last] = value
    if knobs["model.readout.kind"] not in ("phase", "additive"):
        settings["model"]["readout"] |= {"cross_channel": False, "by_channel": False}
    config, schedule = changed(base.config, settings["model"]), changed(base.train, settings["train"])
    return replace(base, name="tuned", config=config, train=schedule)


def _with_recipe(forecaster: IBForecaster, recipe: Recipe, knobs: Mapping[str, Any]) -> IBForecaster:
    budget = knobs.get("model.budget", forecaster.budget)
    return forecaster.replace(recipe=recipe, patch_len=knobs["model.patch_len"], budget=budget)


def _study(storage: str | Path | None, name: str, unpruned_epochs: int) -> "optuna.Study":
    """Return the search of this name, new or continued; trials that a killed run left running are marked as failed."""
    from optuna import create_study
    from optuna.pruners import MedianPruner
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import TrialState

    class Journal(JournalFileBackend):
        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            """Append whole lines or nothing: if the disk is full, what follows half a line would be joined to it."""
            size = Path(str(storage)).stat().st_size
            try:
                super().append_logs(logs)
            except OSError:
                os.truncate(str(storage), size)
                raise

    kept = None
    if storage is not None:
        kept = JournalStorage(Journal(str(storage), cast(Any, _Held())))
    pruner = MedianPruner(n_startup_trials=UNPRUNED_TRIALS, n_warmup_steps=unpruned_epochs)
    study = create_study(storage=kept, study_name=name, pruner=pruner, load_if_exists=True)
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
    return study


class _Held:
    """A lock for Optuna that does nothing, because `_only_user` holds the file for the whole search."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


@contextmanager
def _only_user(storage: str | Path | None) -> Iterator[None]:
    """Be the only search that uses a file; the system ends that if the process is killed.

    Remove the last line if a killed process has not finished it: whatever follows would be joined to it.
    """
    if storage is None:
        yield
        return
    path = _check_storage(Path(storage))
    with path.open("ab+") as file:
        if os.name == "posix":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    "a search's file must be used by one search at a time", path, "wait for the other, or name another"
                ) from error
        file.seek(0)
        content = file.read()
        if not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)
        yield


def _check_storage(storage: Path) -> Path:
    """Return the path of a search's file; refuse a file with other content before anything is written."""
    storage.parent.mkdir(parents=True, exist_ok=True)
    first = b'{"op_code":'  # as Optuna writes it
    try:
        with storage.open("rb") as lines:
            line = next(lines, b"")
    except FileNotFoundError:
        line = b""
    except OSError:
        line = b"unreadable"
    # A process that was killed may have written only a part of it.
    if not line.startswith(first) and not first.startswith(line):
        raise DataError("the storage must be the file of a search", repr(str(storage)), "name another")
    return storage


def _next_trial(
    study: "optuna.Study", base: Recipe, knobs: Mapping[str, Knob], seed: int, count: int
) -> "optuna.Trial":
    """Return the next trial: first the recipe itself, then what Optuna draws."""
    from optuna.samplers import TPESampler
    from optuna.trial import TrialState

    if not count and not study.get_trials(states=(TrialState.WAITING,)):
        study.enqueue_trial({name: _position(base, name) for name in knobs})
    # A seed per trial, so that a continued search draws what an uninterrupted one would.
    study.sampler = TPESampler(seed=random.Random(f"{seed}/{count}").getrandbits(32))
    trial = study.ask()
    for name, knob in knobs.items():
        knob.suggest(trial, name)
    return trial


def _try(trial: "optuna.Trial", study: "optuna.Study", source: Any, base: Recipe, forecaster: IBForecaster) -> None:
    """Fit one recipe and report to the study; a recipe that cannot be trained has failed, but the first raises."""
    from optuna import TrialPruned
    from optuna.trial import TrialState

    def report(epoch: int, epochs: int, outcome: Epoch) -> None:
        trial.report(outcome.validation_error, epoch)
        if trial.should_prune():
            raise TrialPruned

    begun, state, error = time.perf_counter(), TrialState.COMPLETE, None
    try:
        recipe = _with_knobs(base, trial.params)
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
    """Return the trials that ended, in order, without those that were killed."""
    from optuna.trial import TrialState

    states: dict[TrialState, Literal["finished", "pruned", "failed"]] = {
        TrialState.COMPLETE: "finished",
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: "failed",
    }
    trials = study.get_trials(states=tuple(states))
    ended = [
        t for t in trials if t.state != TrialState.FAIL or "message" in t.user_attrs
    ]  # no message: the run was killed
    return [
        Trial(
            number=number,
            state=states[trial.state],
            # The epochs of a finished trial include those of a candidate that lost its contest.
            validation_error=min(trial.intermediate_values.values(), default=None)
            if trial.value is None
            else trial.value,
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
    """Let Optuna log only warnings, and restore its verbosity afterwards."""
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
