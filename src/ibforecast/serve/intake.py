"""What requests send, read off the event loop: bodies, tables and explanations."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from ibforecast.core import verification
from ibforecast.core.errors import IBForecastError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.verdict import Verification
from ibforecast.data import tables
from ibforecast.data.series import Series
from ibforecast.data.tables import Table
from ibforecast.serve import arrow, wire
from ibforecast.serve.bodies import SMALL, parse, validated
from ibforecast.serve.clients import Shares
from ibforecast.serve.models import LoadedModel, Models
from ibforecast.serve.refusals import Refused, reading
from ibforecast.serve.settings import Settings
from ibforecast.serve.tables import Kept, Shelf, from_bytes, from_json, keep

READERS = 4
FEW, FEW_CELLS = 64, 4096
"""The largest Arrow table, in columns and cells, that is read at once: handing it to a thread would take longer."""

READINGS_KEPT = 4

T = TypeVar("T")
K = TypeVar("K", bound=wire.Question)


class Intake:
    """Reads what requests send, in threads of its own: one for large bodies, and `READERS` for everything else."""

    def __init__(self, models: Models, shelf: Shelf, settings: Settings) -> None:
        self._models, self._shelf, self._settings = models, shelf, settings
        self._parsing, self._reading = Shares(1), Shares(READERS // 2)
        self._parsers = ThreadPoolExecutor(1, "bodies")
        self._readers = ThreadPoolExecutor(READERS, "tables")

    def close(self) -> None:
        """Finish the work that has begun, and end the threads."""
        for executor in (self._parsers, self._readers):
            executor.shutdown(cancel_futures=True)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do some work in a thread that reads."""
        async with self._reading.turn():
            return await asyncio.get_running_loop().run_in_executor(self._readers, work, *arguments)

    async def parse(self, kind: type[K], body: bytes, content_type: str, strict: bool = False) -> K:
        """Return the question in a body; a large body is read in a thread, one after the other."""
        if len(body) <= SMALL:
            return parse(kind, body, content_type, strict)
        work = partial(parse, kind, body, content_type, strict)
        async with self._parsing.turn():
            return await asyncio.get_running_loop().run_in_executor(self._parsers, work)

    async def about(self, body: bytes, content_type: str, fields: dict[str, Any]) -> wire.AboutTable:
        """Return the question about a table: JSON, or the table as an Arrow stream, with the other fields apart."""
        if not arrow.is_stream(content_type):
            return await self.parse(wire.AboutTable, body, content_type)
        question = validated(wire.AboutTable, {"table": {}} | fields)

        def read() -> Any:
            with reading("body"):
                return arrow.from_stream(body, self._settings.max_unpacked)

        return question.model_copy(update={"table": read() if len(body) <= SMALL else await self.run(read)})

    async def explanation(self, sent: Any, field: str = "explanation") -> ExplainedForecast | Verification:
        """Read a document that was sent as text or as an object; return a verdict if its content was changed."""
        return await self.run(_read_explanation, sent, field)

    async def claimed(
        self, sent: Any, name: str | None, field: str = "explanation"
    ) -> tuple[LoadedModel, ExplainedForecast]:
        """Read an explanation; also return the named model, or else the one that made it."""
        read = await self.explanation(sent, field)
        if isinstance(read, Verification):
            raise Refused(422, f"an explanation must be true: {read.checks[0].detail}", field=field)
        return self._models.that_gave(read, name), read

    async def table(self, model: LoadedModel, sent: Any, future: Any = None) -> Table:
        """Read the table that was sent, or the one on the shelf with this id; `future` has covariates known ahead."""
        if isinstance(sent, str) and "\n" not in sent:
            source = await self.kept(model, self._shelf.get(sent, absent=422))
        elif is_small(sent):
            source = self.sent(model, sent)
        else:
            source = await self.run(self.sent, model, sent)
        if future is None:
            return source

        def extend() -> Table:
            with reading("future"):
                return model.open(source, self._arrow(future))

        return await self.run(extend)

    def sent(self, model: LoadedModel, sent: Any) -> Table:
        """Read a table that was sent, in the thread of the caller."""
        with reading("table"):
            return model.open(self._arrow(sent))

    async def kept(self, model: LoadedModel, kept: Kept) -> Table:
        """Read a table of the shelf with a model, or return it if it was read before."""
        if model.identity not in kept.read:

            def read() -> Table:
                with reading("table"):
                    return model.open(kept.source)

            keep(kept.read, model.identity, await self.run(read), READINGS_KEPT)
        return kept.read[model.identity]

    async def upload(self, content: bytes, name: str) -> tuple[Any, Any, dict[str, str | None]]:
        """Read a file; return the table, its numbers as one of the models reads them, and `by_models` of it."""

        def read() -> tuple[Any, Any, dict[str, str | None]]:
            with reading("body"):
                source = from_bytes(content, name, self._settings.max_unpacked)
                read, fits = self.by_models(source)
                return source, read[0] if read else tables.read(source).series, fits

        return await self.run(read)

    def by_models(self, source: Any) -> tuple[list[Series], dict[str, str | None]]:
        """Return a table as each model that can reads it, and for every model why it cannot, None if it can."""
        fits: dict[str, str | None] = {}
        read: list[Series] = []
        for model in self._models:
            try:
                opened = model.open(source)
            except IBForecastError as error:
                fits[model.name] = str(error)
            else:
                fits[model.name] = None
                read.append(opened.series)
        return read, fits

    def _arrow(self, sent: Any) -> Any:
        """Return a table that was sent as text, columns, rows or Arrow; no model has read it yet."""
        if isinstance(sent, pa.Table):
            return sent
        if isinstance(sent, str):
            return from_bytes(sent.encode(), "table", self._settings.max_unpacked)
        return from_json(sent, self._settings.max_body // 2)  # as many cells as columns in a body of this size can have


def is_small(sent: Any) -> bool:
    """Return whether a table was sent as Arrow, and has few columns and cells."""
    return isinstance(sent, pa.Table) and sent.num_columns <= FEW and sent.num_rows * sent.num_columns <= FEW_CELLS


def _read_explanation(sent: dict[str, Any] | str, field: str) -> ExplainedForecast | Verification:
    with reading(field):
        return verification.read(sent if isinstance(sent, str) else json.dumps(sent))
