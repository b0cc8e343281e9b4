"""Loaded models, each with its worker; a model is replaced without dropping a request."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ibforecast.audit import FILE as AUDIT
from ibforecast.audit import saved_audit
from ibforecast.core.errors import ModelFileError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.files import sha256, to_json
from ibforecast.data.tables import Table
from ibforecast.engine import facts_of
from ibforecast.forecaster import IBForecaster
from ibforecast.serve import wire
from ibforecast.serve.metrics import Metrics
from ibforecast.serve.receipts import Ledger
from ibforecast.serve.refusals import Refused
from ibforecast.serve.worker import Worker
from ibforecast.zoo.saved import FittedModel

T = TypeVar("T")


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
        config = self.fitted.config
        return (config.look_back + 2 * config.horizon + sum(config.cycles)) * config.channels

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
            audit=self.audit,
        )

    def open(self, table: Any, future: Any = None) -> Table:
        """Read a table as the training table was read; `future` has the covariates known after its end."""
        return self.forecaster.open(table, future)

    def task(
        self, source: Table, at: str | None, budget: float | None, render: Callable[[ExplainedForecast], T]
    ) -> Callable[[], T]:
        """Return a window for the worker to explain and render."""
        return lambda: render(self.forecaster.explain(source, at, budget=budget))


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
        worker = Worker(name, self._threads, lambda windows: self._metrics.turn(name, windows))
        return LoadedModel(name, path, forecaster, _audit_of(path, forecaster.fitted.weights_sha256), worker)


def _audit_of(path: Path, weights_sha256: str) -> dict[str, Any] | None:
    """Return the audit saved with a model, unchanged; None if there is no complete one of these weights."""
    try:
        if saved_audit(path, weights_sha256) is None:
            return None
    except ModelFileError:
        return None
    document: dict[str, Any] = json.loads((path / AUDIT).read_bytes())
    return document
