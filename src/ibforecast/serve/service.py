"""What the service does, whatever the protocol: questions in, answers out."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic_core import to_json

from ibforecast import checks
from ibforecast._version import __version__
from ibforecast.core.account import PLAIN, Account
from ibforecast.core.errors import DataError, IBForecastError, ModelFileError, UsageError
from ibforecast.data import tables
from ibforecast.data.tables import Table
from ibforecast.explained import ExplainedForecast
from ibforecast.serve import wire
from ibforecast.serve.history import history
from ibforecast.serve.metrics import Metrics
from ibforecast.serve.models import LoadedModel, Models
from ibforecast.serve.refusals import Refused, reading
from ibforecast.serve.settings import Settings
from ibforecast.serve.tables import Kept, Shelf, explainable, from_bytes, from_json, is_small
from ibforecast.serve.whatif import replay

READERS = 4
HISTORIES_KEPT = 32
READINGS_KEPT = 4

T = TypeVar("T")


class Service:
    """Loaded models, kept tables, and the threads that read and compute.

    Tables are read in `READERS` threads, windows are computed in one thread per model, and histories in one more, so
    that neither a large table nor a long history holds up a single window.
    """

    def __init__(self, paths: dict[str, Path], settings: Settings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.models = Models(paths, settings.threads, self.metrics)
        self.shelf = Shelf(settings.max_tables)
        self._readers = ThreadPoolExecutor(READERS, "tables")
        self._historians = ThreadPoolExecutor(1, "history", torch.set_num_threads, (settings.threads,))
        self._histories: OrderedDict[tuple[str, str, int], wire.History] = OrderedDict()
        self._reloading = asyncio.Lock()

    def close(self) -> None:
        """Finish what was accepted, and end the threads."""
        self._readers.shutdown()
        self._historians.shutdown(cancel_futures=True)
        self.models.close()

    def health(self) -> wire.Health:
        """Tell that the service is up."""
        return wire.Health(ibforecast=__version__, models=self.models.names)

    def cards(self) -> wire.Models:
        """Tell about every model."""
        return wire.Models(models=[model.card() for model in self.models])

    async def reload(self, asked: wire.Reload) -> wire.Reloaded:
        """Read models anew; where one cannot be read, all stay as they are."""
        names = self.models.names if asked.models is None else list(dict.fromkeys(asked.models))
        async with self._reloading:
            try:
                changed = await self._in_reader(self.models.reload, names)
            except ModelFileError as error:
                raise Refused.because(error, "models", 409) from error
        return wire.Reloaded(reloaded=names, changed=changed)

    async def forecast(self, asked: wire.AboutTable) -> wire.Forecasts:
        """Forecast from every moment asked for."""
        model, found = await self._explain(asked, _forecast)
        return wire.Forecasts(model=model, forecasts=found)

    async def explain(self, asked: wire.AboutTable) -> tuple[str, list[bytes]]:
        """Explain every moment asked for; returns the model's name and the documents as they are written."""
        return await self._explain(asked, _document)

    async def verify(self, asked: wire.AboutExplanation) -> wire.Verdict:
        """Check an explanation against the model named, or the one that gave it."""
        account = await self._in_reader(_account, asked.explanation)
        model = self.models.that_gave(account.weights_sha256, asked.model)
        (verification,) = await self._compute(model, [partial(checks.verify, model.fitted, account)], "explanation")
        return wire.Verdict(
            model=model.name,
            verified=bool(verification),
            checks=[wire.Check(**asdict(check)) for check in verification.checks],
        )

    async def replay(self, asked: wire.WhatIf) -> wire.Replayed:
        """Compute the forecast for another mask or other evidence, the context held."""
        account = await self._in_reader(_account, asked.explanation)
        model = self.models.that_gave(account.weights_sha256, asked.model)
        work = [partial(replay, model.name, model.fitted, account, asked)]
        (replayed,) = await self._compute(model, work, "explanation")
        return replayed

    async def upload(self, content: bytes, name: str) -> wire.Uploaded:
        """Take in a table: one that can be read as it is, or by one of the models."""
        source, series, fits = await self._in_reader(self._read_upload, content, name)
        kept = self.shelf.add(content, name, source, series)
        return wire.Uploaded(table=kept.facts, models=fits)

    def tables(self) -> wire.Tables:
        """List the tables at hand."""
        return wire.Tables(tables=self.shelf.list())

    async def moments(self, id: str, model_name: str | None, listed: bool) -> wire.MomentsOf:
        """Tell from which moments of a table a model can forecast, one by one where they are to be `listed`."""
        model, kept = self.models.get(model_name), self.shelf.get(id)
        source = await self._read_kept(model, kept)

        def find() -> wire.MomentsOf:
            clock, look_back = source.series.clock, model.fitted.config.look_back
            starts = _starts(model, source)
            rows = starts + look_back - 1
            labels = clock.labels(0, source.series.rows) if listed else None
            first, last = (clock.labels(int(row), 1)[0] for row in rows[[0, -1]])
            return wire.MomentsOf(
                model=model.name,
                table=id,
                first=first,
                last=last,
                step=str(clock.frequency),
                count=len(rows),
                unreadable=int(rows[-1] - rows[0]) + 1 - len(rows),
                moments=None if labels is None else [labels[row] for row in rows],
            )

        return await self._in_reader(find)

    async def history(self, id: str, model_name: str | None, windows: int) -> wire.History:
        """Run a model over a whole table, on evenly spaced windows."""
        model, kept = self.models.get(model_name), self.shelf.get(id)
        if windows > self.settings.max_history:
            raise Refused(
                413,
                f"a history must have at most {self.settings.max_history} windows (got {windows})",
                "ask for fewer",
                "windows",
            )
        key = (id, model.fitted.weights_sha256, windows)
        if key not in self._histories:
            source = await self._read_kept(model, kept)
            with reading("table"):
                _starts(model, source)
            stopped = Event()
            try:
                found = await asyncio.get_running_loop().run_in_executor(
                    self._historians, history, model, id, source, windows, stopped
                )
            finally:
                stopped.set()
            self._histories[key] = found
            while len(self._histories) > HISTORIES_KEPT:
                self._histories.popitem(last=False)
        return self._histories[key].model_copy(update={"model": model.name})

    async def _explain(self, asked: wire.AboutTable, told: Callable[[ExplainedForecast], T]) -> tuple[str, list[T]]:
        """Explain every moment, each in a window of its own, and tell what was asked for."""
        model = self.models.get(asked.model)
        moments: Sequence[str | None] = asked.at if isinstance(asked.at, list) else [asked.at]
        self._check_moments(moments, model)
        source = await self._source(model, asked.table)

        def find() -> None:
            with reading("at"):
                for moment in moments:
                    if moment is not None:
                        source.series.clock.row_of(moment)

        await self._in_reader(find) if len(moments) > 1 else find()
        work = [model.ask(source, moment, asked.budget, told) for moment in moments]
        return model.name, await self._compute(model, work, "table" if asked.at is None else "at", "budget")

    def _check_moments(self, moments: Sequence[str | None], model: LoadedModel) -> None:
        most = min(self.settings.max_windows, max(self.settings.max_numbers // model.numbers, 1))
        if len(moments) > most:
            raise Refused(
                413, f"a request must ask for at most {most} moments (got {len(moments)})", "ask in parts", "at"
            )
        if not moments:
            raise Refused(422, "at must name a moment (got none)", "leave it out for the table's end", "at")

    async def _source(self, model: LoadedModel, sent: Any) -> Table:
        """The table that was sent, or the one of the shelf that was named."""
        if isinstance(sent, str) and "\n" not in sent:
            return await self._read_kept(model, self.shelf.get(sent, absent=422))
        if is_small(sent):
            return self._read_sent(model, sent)
        return await self._in_reader(self._read_sent, model, sent)

    async def _compute(
        self, model: LoadedModel, work: Sequence[Callable[[], T]], field: str, setting: str | None = None
    ) -> list[T]:
        """Have windows computed; `field` is at fault for bad data, `setting` for what cannot be set."""
        try:
            return await model.worker.compute(work)
        except IBForecastError as error:
            at_fault = setting if setting and isinstance(error, UsageError) else field
            raise Refused.because(error, at_fault) from error

    async def _read_kept(self, model: LoadedModel, kept: Kept) -> Table:
        """Read a table of the shelf as a model reads it, once."""
        weights = model.fitted.weights_sha256
        if weights not in kept.read:

            def read() -> Table:
                with reading("table"):
                    return model.open(kept.source)

            source = await self._in_reader(read)
            while len(kept.read) >= READINGS_KEPT:
                kept.read.pop(next(iter(kept.read)))
            kept.read[weights] = source
        return kept.read[weights]

    def _read_sent(self, model: LoadedModel, sent: Any) -> Table:
        with reading("table"):
            if isinstance(sent, str):
                return model.open(from_bytes(sent.encode(), "table", self.settings.max_unpacked))
            return model.open(from_json(sent, self.settings.max_body // 2))  # as many cells as columns could send

    def _read_upload(self, content: bytes, name: str) -> tuple[Any, Any, dict[str, str | None]]:
        with reading("body"):
            source = from_bytes(content, name, self.settings.max_unpacked)
            fits: dict[str, str | None] = {}
            series = None
            for model in self.models:
                try:
                    opened = model.open(source)
                except IBForecastError as error:
                    fits[model.name] = str(error)
                else:
                    fits[model.name], series = None, series or opened.series
            return source, series or tables.read(source).series, fits

    async def _in_reader(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, *arguments)


def _starts(model: LoadedModel, source: Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """First rows of all windows that can be explained; at least one."""
    look_back = model.fitted.config.look_back
    starts = np.flatnonzero(explainable(source.series, look_back))
    if not len(starts):
        with reading("table"):
            raise DataError(
                f"a table must have look_back = {look_back} rows in which every channel is observed at least once",
                f"none among {source.series.rows} rows",
                "give a longer table, or one with fewer gaps",
            )
    return starts


def _forecast(found: ExplainedForecast) -> wire.Forecast:
    return wire.Forecast(
        at=found.at,
        times=list(found.times[found.look_back :]),
        channels=list(found.channels),
        values=found.forecast.tolist(),
    )


def _document(found: ExplainedForecast) -> bytes:
    return found.to_json(_digits).encode()


def _digits(values: list[Any]) -> str:
    """Lists of numbers as the library writes them, which is quick except for numbers that are large, small or none."""
    text = to_json(values).decode()
    return PLAIN.encode(values) if "e" in text or "0.0000" in text or "N" in text or "I" in text else text


def _account(explanation: dict[str, Any] | str) -> Account:
    with reading("explanation"), np.errstate(all="ignore"):
        account = Account.from_json(explanation if isinstance(explanation, str) else json.dumps(explanation))
        if not isinstance(account.weights_sha256, str) or not isinstance(account.budget, int | float):
            told = (account.weights_sha256, account.budget)
            raise DataError("an explanation must name its weights and budget", told, "send it as it was written")
        return account
