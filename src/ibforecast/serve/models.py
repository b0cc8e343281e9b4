"""Loaded models, each with its worker; a model is replaced without dropping a request."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ibforecast.audit import FILE as AUDIT
from ibforecast.audit import saved_audit
from ibforecast.core import running
from ibforecast.core.calendar import Clock
from ibforecast.core.errors import ModelFileError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.files import sha256, to_json
from ibforecast.core.verification import Original
from ibforecast.data.tables import Table
from ibforecast.engine import Entering, TorchEngine, facts_of
from ibforecast.forecaster import IBForecaster
from ibforecast.serve import wire
from ibforecast.serve.metrics import Metrics
from ibforecast.serve.receipts import Ledger
from ibforecast.serve.refusals import Refused, log
from ibforecast.serve.worker import Shared, Worker
from ibforecast.zoo.saved import FittedModel

T = TypeVar("T")

Source = Callable[[], Table]
"""A function that reads a table, or returns one that was read."""

Last = Callable[[Table], int]
"""Returns the last row that a forecast from a table reads."""

MOST_TOGETHER, MOST_NUMBERS = 32, 100_000
"""How many windows are computed in one pass at most, and how many numbers their explanations may have."""


@dataclass(frozen=True)
class Forecasted:
    """A forecast of a model, without its explanation; `clock` is the time axis of look-back and horizon."""

    facts: ModelFacts
    clock: Clock
    forecast: np.ndarray

    @property
    def at(self) -> str:
        """The moment the forecast was made."""
        last = self.facts.look_back - 1
        return self.clock.labels(0, self.facts.steps, slice(last, last + 1))[0]

    @property
    def ahead(self) -> tuple[str, ...]:
        """The times that are forecast."""
        return self.clock.labels(0, self.facts.steps, slice(self.facts.look_back, None))


@dataclass(frozen=True)
class _Prepared:
    """The table, the model at the budget of a window, the rows of the window, and what the model computes it from."""

    source: Table
    engine: TorchEngine
    rows: Original
    entering: Entering


_Result = tuple[Callable[[], Explanation[np.ndarray]], np.ndarray]
"""A function that returns the explanation of a window, and what the model computed before any limits."""


def _computed(windows: list[_Prepared]) -> list[_Result]:
    """Run the model of several windows on all of them."""
    engine = windows[0].engine
    if len(windows) == 1:
        explanation, computed = engine.run(*windows[0].entering)
        return [(lambda: explanation, computed)]
    explanations, values = engine.run_together([each.entering for each in windows])
    return [(partial(explanations.window, number), own) for number, own in enumerate(values)]


@dataclass(frozen=True)
class LoadedModel:
    """A model with its name, the folder it was read from, the worker that computes its windows, and kept amounts."""

    name: str
    path: Path
    forecaster: IBForecaster
    audit: dict[str, Any] | None
    worker: Worker
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def fitted(self) -> FittedModel:
        """The fitted model."""
        return self.forecaster.fitted

    @cached_property
    def identity(self) -> str:
        """A fingerprint of all that decides its answers: weights, units, limits, and how tables are read."""
        facts, layout = facts_of(self.fitted).document(), asdict(self.fitted.layout)
        return sha256(to_json({"facts": facts, "layout": layout}))

    @property
    def numbers(self) -> int:
        """The approximate number of numbers in one explanation."""
        return numbers_of(self.fitted)

    def card(self) -> wire.Model:
        """Describe the model."""
        config, layout, summary = self.fitted.config, self.fitted.layout, self.fitted.summary
        return wire.Model(
            name=self.name,
            look_back=config.look_back,
            horizon=config.horizon,
            patch_len=config.patch_len,
            patches=config.patches,
            channels=list(self.fitted.channels),
            frequency=layout.frequency,
            zone=layout.zone,
            time=layout.time,
            cycles=list(config.cycles),
            past=list(layout.past),
            covariates=list(layout.future),
            budget=config.budget,
            allowance=config.allowance,
            any_budget=config.gate.any_budget,
            sealed=config.sealed,
            gate=config.gate.kind,
            prior=config.objective.prior,
            recipe=summary.recipe,
            training=asdict(summary),
            weights_sha256=self.fitted.weights_sha256,
            limits=None if self.fitted.limits is None else self.fitted.limits.document(),
            audit=self.audit,
        )

    def open(self, table: Any, future: Any = None) -> Table:
        """Read a table as the training table was read; `future` has the covariates known after its end."""
        return self.forecaster.open(table, future)

    def last(self, at: str | None) -> Last:
        """Return what finds the row of a moment, or the last one of a table (None)."""
        return lambda table: self.forecaster.desk.last(table.series, at)

    def task(
        self, source: Source, last: Last, budget: float | None, render: Callable[[ExplainedForecast], T]
    ) -> Callable[[], T]:
        """Return a window for the worker to explain and render."""

        def finish(own: _Prepared, result: _Result) -> T:
            explanation, computed = result
            running.require_numbers(own.engine.facts, own.rows, computed)
            explained = self.forecaster.desk.explained(own.source, own.rows, own.engine.facts, explanation(), computed)
            return render(explained)

        return self._shared(source, last, budget, finish)

    def forecast(
        self, source: Source, last: Last, budget: float | None, render: Callable[["Forecasted"], T]
    ) -> Callable[[], T]:
        """Return a window for the worker to forecast and render, without an explanation."""

        def finish(own: _Prepared, result: _Result) -> T:
            facts, (_, computed) = own.engine.facts, result
            running.require_numbers(facts, own.rows, computed)
            return render(Forecasted(facts, own.rows.clock, facts.limited(computed)))

        return self._shared(source, last, budget, finish)

    def _shared(
        self, source: Source, last: Last, budget: float | None, finish: Callable[["_Prepared", "_Result"], T]
    ) -> Callable[[], T]:
        desk = self.forecaster.desk

        def prepare() -> _Prepared:
            table = source()
            rows = desk.original(table, desk.start_of(table.series, last(table), budget))
            engine = TorchEngine(self.fitted.at_budget(budget))
            return _Prepared(table, engine, rows, running.entering(engine.facts, rows))

        # With another budget it is another network.
        return Shared("windows" if budget is None else None, prepare, _computed, finish)


class Models:
    """The loaded models by name."""

    def __init__(self, paths: dict[str, Path], threads: int, metrics: Metrics) -> None:
        self._threads, self._metrics = threads, metrics
        self._loaded = {name: self._load(name, path) for name, path in paths.items()}

    def __iter__(self) -> Iterator[LoadedModel]:
        return iter(list(self._loaded.values()))

    @property
    def names(self) -> list[str]:
        """Names of the models, in the order of loading."""
        return list(self._loaded)

    def get(self, name: str | None, absent: int = 422) -> LoadedModel:
        """Find a model; the name may be left out if there is only one. `absent` is the status if it is not loaded."""
        if name is None and len(self._loaded) == 1:
            return next(iter(self._loaded.values()))
        if name is None or name not in self._loaded:
            raise Refused(
                absent,
                "model must be one that is loaded",
                repr(name),
                f"choose among {', '.join(self._loaded)}",
                "model",
            )
        return self._loaded[name]

    def that_gave(self, explained: ExplainedForecast, name: str | None) -> LoadedModel:
        """Return the model with this name; without a name, the one that made an explanation or else the only one.

        The fingerprint that an explanation names covers units and limits, so models of a global fleet differ in it.
        """
        weights_sha256 = explained.weights_sha256
        if name is None:
            for model in self._loaded.values():
                if model.fitted.weights_sha256 == weights_sha256:
                    return model
        if name is None and len(self._loaded) > 1:
            raise Refused(
                422,
                "an explanation must come from a model that is loaded",
                f"weights {weights_sha256[:12]!r}",
                f"load that model, or name one of {', '.join(self._loaded)}",
                "model",
            )
        return self.get(name)

    def reload(self, names: Iterable[str]) -> list[str]:
        """Read models again, all of them or none; return the names of those that changed.

        Requests under way keep the model they began with; its worker ends when they are done.
        """
        # All are loaded before one is replaced, so that a broken folder leaves every model as it was.
        before = {name: self.get(name) for name in names}
        after = {name: self._load(name, model.path) for name, model in before.items()}
        self._loaded |= after
        for model in before.values():
            model.worker.close()
        return [name for name, model in after.items() if model.identity != before[name].identity]

    def close(self) -> None:
        """End the workers once all accepted windows are computed."""
        for model in self._loaded.values():
            model.worker.close()
        for model in self._loaded.values():
            model.worker.join()

    def _load(self, name: str, path: Path) -> LoadedModel:
        forecaster = IBForecaster.load(path, device="cpu")
        fitted = forecaster.fitted
        most = min(MOST_TOGETHER, MOST_NUMBERS // numbers_of(fitted))
        if most > 1 and not TorchEngine(fitted, self._threads).keeps_bits(most):
            log.warning("%s computes every window by itself: in one pass, they would get other bits", name)
            most = 1
        worker = Worker(name, self._threads, lambda windows: self._metrics.turn(name, windows), most)
        return LoadedModel(name, path, forecaster, _audit_of(path, fitted.weights_sha256), worker)


def numbers_of(fitted: FittedModel) -> int:
    """Return the approximate number of numbers in one explanation of a model."""
    config = fitted.config
    return (config.look_back + 2 * config.horizon + sum(config.cycles)) * config.channels


def _audit_of(path: Path, weights_sha256: str) -> dict[str, Any] | None:
    """Return the audit saved with a model, unchanged; None if there is no complete one of these weights."""
    try:
        if saved_audit(path, weights_sha256) is None:
            return None
    except ModelFileError:
        return None
    document: dict[str, Any] = json.loads((path / AUDIT).read_bytes())
    return document
