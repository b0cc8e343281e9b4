"""The work of the service, independent of HTTP: it turns requests into answers."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

import torch

from ibforecast._version import __version__
from ibforecast.core.errors import DataError, IBForecastError, ModelFileError, UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Step, require_step
from ibforecast.core.verdict import Verification
from ibforecast.data.sources import load
from ibforecast.data.tables import Table
from ibforecast.drivers import By
from ibforecast.serve import arrow, forms, wire
from ibforecast.serve.history import history
from ibforecast.serve.intake import Intake, is_small
from ibforecast.serve.metrics import Metrics
from ibforecast.serve.models import Last, LoadedModel, Models, Source
from ibforecast.serve.receipts import (
    chosen_channel,
    chosen_channels,
    chosen_steps,
    compared,
    drivers,
    on_page,
    shown_channels,
    written,
)
from ibforecast.serve.refusals import Refused, reading, shortened
from ibforecast.serve.settings import Settings
from ibforecast.serve.tables import Shelf, keep, starts
from ibforecast.serve.whatif import replay, rerun
from ibforecast.zoo.saved import FittedModel

HISTORIES_KEPT = 32

T = TypeVar("T")
Q = TypeVar("Q", bound=wire.AboutExplanation)


class Service:
    """Loaded models, kept tables, and the threads that read and compute; it starts with the tables in `opened`.

    The intake reads what is sent in its threads, one thread per model computes windows and receipts, and one more each
    computes histories and drivers. So neither a large table nor a long history delays a single window.
    """

    def __init__(self, paths: dict[str, Path], settings: Settings, opened: Sequence[Path] = ()) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.models = Models(paths, settings.threads, self.metrics)
        self.shelf = Shelf(settings.max_tables)
        self.intake = Intake(self.models, self.shelf, settings)
        for path in opened:
            source, _ = load(path)
            read, fits = self.intake.by_models(source)
            if not read:
                reasons = "; ".join(f"{name}: {reason}" for name, reason in fits.items())
                raise DataError("a table must be one that a model can read", f"{path.name}: {reasons}", "leave it out")
            self.shelf.open(path.name, source, read)
        self._historians = ThreadPoolExecutor(1, "history", torch.set_num_threads, (settings.threads,))
        self._averagers = ThreadPoolExecutor(1, "drivers", torch.set_num_threads, (settings.threads,))
        self._histories: dict[tuple[str, str, int], wire.History] = {}
        self._drivers: dict[tuple[str, str, str, int, str | None, By | None], bytes] = {}
        self._reloading = asyncio.Lock()

    def close(self) -> None:
        """Finish the work that has begun, and end the threads; nobody waits for the rest any more."""
        self.intake.close()
        for executor in (self._historians, self._averagers):
            executor.shutdown(cancel_futures=True)
        self.models.close()

    @property
    def identities(self) -> dict[str, str]:
        """The fingerprints of what it answers from: models, and tables that it was started with."""
        models = {f"model {model.name}": model.identity for model in self.models}
        return models | {f"table {name}": identity for name, identity in self.shelf.identities.items()}

    def health(self) -> wire.Health:
        """Say that the service is up."""
        return wire.Health(ibforecast=__version__, models=self.models.names)

    def cards(self) -> wire.Models:
        """Describe every model."""
        return wire.Models(models=[model.card() for model in self.models])

    async def reload(self, question: wire.Reload) -> wire.Reloaded:
        """Read models again; if one cannot be read, all stay as they are."""
        self._check_single("models can be read again")
        names = self.models.names if question.models is None else list(dict.fromkeys(question.models))
        async with self._reloading:
            try:
                changed = await self.intake.run(self.models.reload, names)
            except ModelFileError as error:
                raise Refused.because(error, "models", 409) from error
        return wire.Reloaded(reloaded=names, changed=changed)

    async def forecast(self, question: wire.AboutTable) -> tuple[str, list[bytes]]:
        """Forecast from every requested moment; return the model's name, and every forecast as JSON."""
        return await self._each(question, lambda model: partial(model.forecast, render=forms.forecast))

    async def stream(self, question: wire.AboutTable, route: str) -> bytes:
        """Forecast or explain every requested moment; return an Arrow stream."""
        if route == "forecast":
            name, rows = await self._each(question, lambda model: partial(model.forecast, render=arrow.forecast_row))
        else:
            name, rows = await self._explain(question, arrow.explanation_row)
        return arrow.to_stream(name, rows)

    async def explain(self, question: wire.AboutTable, form: str) -> tuple[str, list[bytes]]:
        """Explain every requested moment; return the model's name, and every explanation in one of its forms."""
        return await self._explain(question, forms.EXPLANATION[form])

    async def verify(self, question: wire.Claim) -> wire.Verdict:
        """Check an explanation with the named model, or else with the one that made it."""
        read = await self.intake.explanation(question.explanation)
        if isinstance(read, Verification):
            return _verdict(question.model or "", read)
        model = self.models.that_gave(read, question.model)
        table = None if question.table is None else await self.intake.table(model, question.table, question.future)
        key = None if question.key is None else question.key.encode()
        check = partial(model.forecaster.verify, read, table, exact=question.exact, key=key)
        (verification,) = await self._compute(model, [check], "explanation")
        return _verdict(model.name, verification)

    async def replay(self, question: wire.WhatIf) -> wire.Replayed:
        """Compute the forecast for another mask or other evidence in the same context."""
        return await self._change(question, replay)

    async def rerun(self, question: wire.Scramble) -> wire.Rerun:
        """Run the whole model again with other values where nothing was read."""
        return await self._change(question, rerun)

    async def receipts(self, question: wire.ReceiptsOf) -> tuple[wire.Receipts, list[bytes]]:
        """Return what adds up to the forecasts of channels: the answer without receipts, and those of each channel."""

        def steps_of(explained: ExplainedForecast, names: Sequence[str]) -> list[Step]:
            return chosen_steps(explained, question.step, len(names), self.settings.max_numbers)

        model, (explained, names, steps) = await self._itemise(question, chosen_channels, steps_of)
        work = [partial(written, explained, name, steps) for name in names]
        answer = wire.Receipts(model=model.name, at=explained.at, sha256=explained.sha256, receipts=[])
        return answer, await self._compute(model, work, "explanation")

    async def page(self, question: wire.ReceiptsOf) -> bytes:
        """Return the picture of an explanation with receipts, and the receipts that the page shows."""
        if question.step != "mean":
            raise Refused(422, "form=page has every step", repr(question.step), "leave step out", "step")
        model, (explained, names, _) = await self._itemise(question, shown_channels, lambda *_: [])
        (answer,) = await self._compute(
            model, [partial(on_page, explained, names, self.settings.max_numbers)], "explanation"
        )
        return answer

    async def _itemise(
        self,
        question: wire.ReceiptsOf,
        channels_of: Callable[[ExplainedForecast, str | list[str] | None], list[str]],
        steps_of: Callable[[ExplainedForecast, Sequence[str]], list[Step]],
    ) -> tuple[LoadedModel, tuple[ExplainedForecast, list[str], list[Step]]]:
        """Compute the amounts of a request, unless they are kept; also return its channels and steps."""

        def itemise(
            model: LoadedModel, explained: ExplainedForecast
        ) -> tuple[ExplainedForecast, list[str], list[Step]]:
            names = channels_of(explained, question.channel)
            steps = steps_of(explained, names)  # before anything is computed
            own = model.ledger.itemise(model.forecaster, explained, names, self.settings.max_numbers)
            return own, names, steps

        _check_one_source(question, ("future", "at", "budget"))
        if question.table is not None:
            model = self.models.get(question.model)
            source = await self.intake.table(model, question.table, question.future)
            work = model.task(lambda: source, model.last(question.at), question.budget, partial(itemise, model))
            field = "table" if question.at is None else "at"
        else:
            model, explained = await self.intake.claimed(question.explanation, question.model)
            work, field = partial(itemise, model, explained), "explanation"
        (itemised,) = await self._compute(model, [work], field, "budget" if field != "explanation" else None)
        return model, itemised

    async def compare(self, question: wire.ComparisonOf) -> wire.Comparison:
        """Return why a forecast differs from another one: of two documents, or of two moments of a table."""
        _check_one_source(question, ("future", "at", "other_at", "budget"))
        if question.table is not None:
            if question.other is not None:
                raise Refused(422, "other belongs to an explanation", "a table", "use other_at", "other")
            model = self.models.get(question.model)
            self._check_moments([question.at, question.other_at], model)
            source = await self.intake.table(model, question.table, question.future)
            moments = partial(self._both_moments, model, source, question)
        else:
            if question.other is None:
                raise Refused(422, "other must be sent with an explanation", "none", "send a document", "other")
            model, explained = await self.intake.claimed(question.explanation, question.model)
            _, other = await self.intake.claimed(question.other, model.name, "other")
            moments = partial(_both, explained, other)

        def work() -> wire.Comparison:
            both = moments()
            channel = chosen_channel(both["explanation"], question.channel)
            with reading("step"):
                require_step(both["explanation"], question.step)
            itemise = partial(model.ledger.itemise, model.forecaster, names=[channel], most=self.settings.max_numbers)
            itemised = [itemise(explained=each, field=field) for field, each in both.items()]
            return compared(model.name, itemised[0], itemised[1], channel, question.step)

        (answer,) = await self._compute(model, [work], "explanation" if question.table is None else "table")
        return answer

    @staticmethod
    def _both_moments(model: LoadedModel, source: Table, question: wire.ComparisonOf) -> dict[str, ExplainedForecast]:
        """Explain the two moments of a table; a refusal names the field of the invalid one."""
        forecaster, budget = model.forecaster, question.budget
        with reading("budget"):
            model.fitted.at_budget(budget)
        with reading("table" if question.at is None else "at"):
            explained = forecaster.explain(source, question.at, budget=budget)
        with reading("other_at"):
            if question.other_at is None:
                return _both(explained, forecaster.desk.explain_before(source, question.at, budget))
            return _both(explained, forecaster.explain(source, question.other_at, budget=budget))

    async def reads(self, name: str, at: str | None) -> wire.Reads:
        """List the values that a forecast of a sealed model needs."""
        model = self.models.get(name, absent=404)

        def find() -> wire.Reads:
            with reading("at" if model.fitted.config.sealed else "model"):
                cells = model.forecaster.desk.reads(at)
            return wire.Reads(
                model=name,
                weights_sha256=model.fitted.weights_sha256,
                at=at,
                look_back=model.fitted.config.look_back,
                cells=[wire.Cell(**asdict(cell)) for cell in cells],
                complete=True,
            )

        return await self.intake.run(find)

    async def upload(self, content: bytes, name: str) -> wire.Uploaded:
        """Keep a table that can be read by one of the models, or without one."""
        self._check_single("a table can be kept")
        source, series, fits = await self.intake.upload(content, name)
        kept = self.shelf.add(content, name, source, series)
        return wire.Uploaded(table=kept.facts, models=fits)

    def tables(self) -> wire.Tables:
        """List the available tables."""
        return wire.Tables(tables=self.shelf.list())

    async def moments(self, id: str, model_name: str | None, listed: bool) -> wire.MomentsOf:
        """Return the moments of a table from which a model can forecast, one by one if `listed`."""
        model, kept = self.models.get(model_name), self.shelf.get(id)
        source = await self.intake.kept(model, kept)

        def find() -> wire.MomentsOf:
            clock, config = source.series.clock, model.fitted.config
            rows = starts(source.series, model.fitted) + config.look_back - 1
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

        return await self.intake.run(find)

    async def history(self, id: str, model_name: str | None, windows: int) -> wire.History:
        """Run a model over a whole table, on evenly spaced windows."""
        model, kept = self.models.get(model_name), self.shelf.get(id)
        self._check_windows("a history", windows)
        key = (id, model.identity, windows)
        if key not in self._histories:
            source = await self.intake.kept(model, kept)
            answer = await _cancellable(self._historians, partial(history, model, id, source, windows))
            keep(self._histories, key, answer, HISTORIES_KEPT)
        return self._histories[key].model_copy(update={"model": model.name})

    async def drivers(self, id: str, model_name: str | None, windows: int, channel: str | None, by: By | None) -> bytes:
        """Average the receipts of a model over a whole table, on evenly spaced windows or on some of each group."""
        model, kept = self.models.get(model_name), self.shelf.get(id)
        self._check_windows("drivers", windows)
        key = (id, model.name, model.identity, windows, channel, by)
        if key not in self._drivers:
            source = await self.intake.kept(model, kept)
            desk, most = model.forecaster.desk, self.settings.max_numbers
            work = partial(drivers, model.name, desk, id, source, windows, channel, by, most)
            keep(self._drivers, key, await _cancellable(self._averagers, work), HISTORIES_KEPT)
        return self._drivers[key]

    def _check_single(self, what: str) -> None:
        """Refuse what only one of several processes would do."""
        if self.settings.workers > 1:
            remedy = "send the table with each request, or start the service with it or without --workers"
            raise Refused(409, f"{what} by a service of one process", f"{self.settings.workers} processes", remedy)

    def _check_windows(self, what: str, windows: int) -> None:
        most = self.settings.max_history
        if windows > most:
            raise Refused(413, f"{what} must have at most {most} windows", windows, "request fewer", "windows")

    async def _change(self, question: Q, work: Callable[[str, FittedModel, ExplainedForecast, Q], T]) -> T:
        """Compute another forecast from an explanation, with the named model or else with the one that made it."""
        model, read = await self.intake.claimed(question.explanation, question.model)
        (answer,) = await self._compute(model, [partial(work, model.name, model.fitted, read, question)], "explanation")
        return answer

    async def _explain(
        self, question: wire.AboutTable, render: Callable[[ExplainedForecast], T]
    ) -> tuple[str, list[T]]:
        """Explain every moment and render each explanation."""
        return await self._each(
            question, lambda model: lambda source, last, budget: model.task(source, last, budget, render)
        )

    async def _each(
        self,
        question: wire.AboutTable,
        tasks_of: Callable[[LoadedModel], Callable[[Source, Last, float | None], Callable[[], T]]],
    ) -> tuple[str, list[T]]:
        """Do a task of a model for every moment."""
        model = self.models.get(question.model)
        moments: Sequence[str | None] = question.at if isinstance(question.at, list) else [question.at]
        self._check_moments(moments, model)
        if is_small(question.table) and question.future is None and moments == [None]:
            # By the worker: reading one table here while it computes another, both would wait for the other's lock.
            source: Source = partial(self.intake.sent, model, question.table)
            lasts = [model.last(None)]
        else:
            source, lasts = await self._checked(model, question, moments)
        work = [tasks_of(model)(source, last, question.budget) for last in lasts]
        return model.name, await self._compute(model, work, "table" if question.at is None else "at", "budget")

    async def _checked(
        self, model: LoadedModel, question: wire.AboutTable, moments: Sequence[str | None]
    ) -> tuple[Source, list[Last]]:
        """Read the table of a request, and find these moments in it; refuse the request if one is not there."""
        source = await self.intake.table(model, question.table, question.future)

        def find() -> list[int]:
            with reading("at"):
                return [model.last(moment)(source) for moment in moments]

        # Before any window is computed: one invalid moment among many refuses the request at once.
        rows = find() if len(moments) == 1 else await self.intake.run(find)
        return lambda: source, [_row(row) for row in rows]

    def _check_moments(self, moments: Sequence[str | None], model: LoadedModel) -> None:
        most = min(self.settings.max_windows, max(self.settings.max_numbers // model.numbers, 1))
        if len(moments) > most:
            raise Refused(
                413, f"a request must have at most {most} moments", len(moments), "send several requests", "at"
            )
        if not moments:
            raise Refused(422, "at must name a moment", "none", "leave it out for the table's end", "at")

    async def _compute(
        self, model: LoadedModel, work: Sequence[Callable[[], T]], field: str, setting: str | None = None
    ) -> list[T]:
        """Compute windows; an error names `field`, or `setting` if the setting is invalid."""
        try:
            return await model.worker.compute(work)
        except IBForecastError as error:
            named = setting if setting and isinstance(error, UsageError) else field
            raise Refused.because(error, named) from error


def _row(row: int) -> Last:
    return lambda table: row


async def _cancellable(executor: ThreadPoolExecutor, work: Callable[[Event], T]) -> T:
    """Run work in a thread; its event is set once nobody waits for the result."""
    stopped = Event()
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, work, stopped)
    finally:
        stopped.set()


def _check_one_source(question: wire.ReceiptsOf | wire.ComparisonOf, of_table: Sequence[str]) -> None:
    """Refuse a question about an explanation and a table, or neither; fields `of_table` belong only to a table."""
    if (question.explanation is None) == (question.table is None):
        sent = "neither" if question.table is None else "both"
        raise Refused(422, "send an explanation or a table", sent, "send one of them", "explanation")
    for field in of_table if question.table is None else ():
        if (value := getattr(question, field)) is not None:
            raise Refused(422, f"{field} belongs to a table", shortened(value), "leave it out", field)


def _both(explained: ExplainedForecast, other: ExplainedForecast) -> dict[str, ExplainedForecast]:
    """Return the two sides of a comparison by the fields that refusals name."""
    return {"explanation": explained, "other": other}


def _verdict(model: str, verification: Verification) -> wire.Verdict:
    return wire.Verdict(
        model=model,
        verified=bool(verification),
        checks=[wire.Check(**asdict(check)) for check in verification.checks],
        notes=list(verification.notes),
    )
