"""The readers that get malformed input: each is a function of bytes, with a few true inputs to begin with.

A reader may refuse its input with an error of the library. Any other exception is a defect.
"""

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from tests.forgery.forgeries import sealed

from ibforecast import IBForecaster
from ibforecast.adapters.onnx import OnnxForecaster
from ibforecast.adapters.onnx_file import _MARK, BLANK, stamped
from ibforecast.core import document as documents
from ibforecast.core.errors import IBForecastError
from ibforecast.core.files import sha256
from ibforecast.core.sizes import Sizes
from ibforecast.data import tables as readers
from ibforecast.data.layout import Layout
from ibforecast.data.sources import to_csv
from ibforecast.serve.app import create_app
from ibforecast.serve.arrow import STREAM, from_stream
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings
from ibforecast.zoo import saved
from ibforecast.zoo.recipes import OWN, resolve_ours
from torture.mutate import Draws, edited, odd_table
from torture.tables import HORIZON, LOOK_BACK, forecaster, save_recipe, table

Probe = Callable[[bytes], None]


class RefusedError(Exception):
    """The service refused a request."""


@dataclass(frozen=True)
class Target:
    """A reader, and true inputs for it; `drawn` if bytes say how to edit a true input. `close` ends its threads."""

    probe: Probe
    seeds: tuple[bytes, ...]
    drawn: bool = False
    close: Callable[[], None] = lambda: None


def make(name: str, folder: Path) -> Target:
    """Return a target by its name, with its files in a folder."""
    return MAKERS[name](folder)


def _file(folder: Path, name: str) -> Probe:
    """Return a reader of tables that gets its bytes as a file of this name."""
    path = folder / name

    def probe(content: bytes) -> None:
        path.write_bytes(content)
        readers.read(path, Layout())

    return probe


def _csv(folder: Path) -> Target:
    rows = table(rows=12)
    long = "unique_id,ds,y\n" + "".join(f"{id},2024-01-{day:02},{day}.5\n" for id in "ab" for day in range(1, 8))
    zoned = "when,x\n" + "".join(f"2024-03-31T{hour:02}:00:00+01:00,{hour}\n" for hour in range(12))
    odd = "Datum,Wert,Rest\n" + "".join(f"{day:02}.01.2024 13:00,{day},\n" for day in range(1, 14))
    return Target(
        _file(folder, "t.csv"), (to_csv(rows), long.encode(), zoned.encode(), odd.encode(), b"a,b\r\n1,2\r\n")
    )


def _gz(folder: Path) -> Target:
    whole = _file(folder, "t.csv.gz")

    def probe(content: bytes) -> None:
        # Half of the inputs are changed before they are packed: damaged gzip is refused before it is read.
        whole(gzip.compress(content[1:]) if content[:1] in (b"t", b"u") else content)

    return Target(
        probe, (gzip.compress(to_csv(table(rows=12)), mtime=0), *(b"t" + seed for seed in _csv(folder).seeds))
    )


def _parquet(folder: Path) -> Target:
    def written(rows: pa.Table, **settings: Any) -> bytes:
        sink = BytesIO()
        parquet.write_table(rows, sink, **settings)
        return sink.getvalue()

    rows = table(rows=12)
    texts = pa.table(
        {"time": [f"2024-01-{day:02}" for day in range(1, 13)], "x": pa.array(range(12)).dictionary_encode()}
    )
    return Target(_file(folder, "t.parquet"), (written(rows), written(rows, compression="none"), written(texts)))


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _arrow(folder: Path) -> Target:
    texts = pa.table({"time": [f"2024-01-{day:02}" for day in range(1, 13)], "x": list(range(12))})

    def probe(content: bytes) -> None:
        readers.read(from_stream(content, 10_000_000), Layout())

    return Target(probe, (_stream(table(rows=12)), _stream(texts)))


def _columns(folder: Path) -> Target:
    """Tables that are whole files, with columns of any type: read, and forecast if they are read."""
    model, doors = _fitted(folder), [folder / "t.parquet", folder / "t.csv", folder / "t.csv.gz"]

    def probe(content: bytes) -> None:
        draws = Draws(content)
        rows = odd_table(draws, (40, 40, 40, 24, 12, 2, 1, 0)[draws.below(8)])
        door = draws.below(5)
        if door == 4:
            model.predict(rows)
        elif door == 3:
            model.explain(from_stream(_stream(rows), 10_000_000))
        else:
            path = doors[door]
            _write(rows, path)
            model.predict(path)

    return Target(probe, DRAWN, drawn=True)


def _texts(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return [str(cell) for cell in column.to_pylist()]
    return [cell or "" for cell in column.cast(pa.string()).to_pylist()]


def _write(rows: pa.Table, path: Path) -> None:
    """Write a table as it is; texts of what CSV has no type for."""
    if path.suffix == ".parquet":
        parquet.write_table(rows, path)
        return
    lines = [rows.column_names, *zip(*(_texts(column) for column in rows.columns), strict=True)]
    content = "\n".join(",".join(line) for line in lines).encode("utf8", "surrogatepass")
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)


def _recipe(folder: Path) -> Target:
    path, sizes = folder / "own.toml", Sizes(LOOK_BACK, HORIZON, 2, 24)

    def probe(content: bytes) -> None:
        path.write_bytes(content)
        resolve_ours(str(path), sizes).build(0)

    return Target(probe, tuple(OWN.text(name).encode() for name in ("sealed", "choosing", "default", "additive")))


def _fitted(folder: Path, **settings: Any) -> IBForecaster:
    recipe = save_recipe(folder / "recipe.toml", settings.pop("extends", "sealed"), epochs=1)
    return forecaster(recipe, **settings).fit(table())


DRAWN = tuple(bytes(range(start, 256, step)) for start, step in ((0, 7), (3, 11), (1, 5), (128, 13)))
"""Bytes for targets that draw their edits from them."""


def _document(folder: Path) -> Target:
    model = _fitted(folder)
    rows = table()
    why = model.explain(rows)
    truths = [json.loads(one.to_json()) for one in (why, why.with_receipts(["load"]))]

    def probe(content: bytes) -> None:
        draws = Draws(content)
        lie = edited(json.loads(json.dumps(truths[draws.below(len(truths))])), draws)
        # The forger knows the format, and usually makes statements and fingerprint agree.
        model.verify(sealed(lie) if isinstance(lie, dict) and draws.below(8) else json.dumps(lie))

    return Target(probe, DRAWN, drawn=True)


def _model(folder: Path) -> Target:
    model = _fitted(folder)
    home, rows = folder / "model", table()
    model.save(home)
    files = {path.name: path.read_bytes() for path in home.iterdir()}
    truth = documents.read(files[saved.DOCUMENT], saved.FORMAT, saved.VERSION)

    def probe(content: bytes) -> None:
        draws = Draws(content)
        lie, how = json.loads(json.dumps(truth)), draws.below(4)
        weights = files[saved.WEIGHTS]
        if how == 0:
            at = draws.below(min(len(weights), 4000))
            weights = weights[:at] + draws.rest()[:64] + weights[at + draws.below(64) :]
        else:
            lie = edited(lie, draws)
        if isinstance(lie.get("weights"), dict):
            lie["weights"] |= {"bytes": len(weights), "sha256": sha256(weights)}
        try:
            text = documents.write(saved.FORMAT, saved.VERSION, lie)
        except (ValueError, TypeError, OverflowError, RecursionError):  # no JSON, or no text
            text = json.dumps({"format": saved.FORMAT, "version": saved.VERSION, **lie, "sha256": "0" * 64})
        (home / saved.DOCUMENT).write_text(text, "utf8", "surrogatepass")
        (home / saved.WEIGHTS).write_bytes(weights)
        IBForecaster.load(home, device="cpu").predict(rows)

    return Target(probe, DRAWN, drawn=True)


def _onnx(folder: Path) -> Target:
    path = folder / "model.onnx"
    _fitted(folder).to_onnx(path)
    rows = table()
    history = [list(row) for row in zip(*(rows[name].to_pylist() for name in ("load", "wind")), strict=True)]
    times = [moment.isoformat() for moment in rows["time"].to_pylist()]
    truth = path.read_bytes()

    def probe(content: bytes) -> None:
        mark = content.rfind(_MARK)
        place = mark + len(_MARK)
        if mark >= 0 and len(content) >= place + len(BLANK):  # the forger stamps it again
            content = stamped(content[:place] + BLANK.encode() + content[place + len(BLANK) :])
        path.write_bytes(content)
        OnnxForecaster(path).predict(history, times)

    return Target(probe, (truth,))


ROUTES = ("/forecast", "/explain", "/verify", "/receipts", "/replay", "/rerun", "/models/reload", "/tables")
QUERIES = (
    b"",
    b"form=arrow",
    b"form=document",
    b"form=page",
    b"form=svg",
    b"form=csv",
    b"at=2024-01-05",
    b"name=t.parquet",
    b"budget=2",
    b"form=%00",
    b"at=%ff",
)
KINDS = (
    b"application/json",
    STREAM.encode(),
    b"text/csv",
    b"application/json; charset=utf-16",
    b"",
    b"multipart/form-data",
)


def _http(folder: Path) -> Target:
    model = _fitted(folder)
    model.save(folder / "served")
    service = Service({"model": folder / "served"}, Settings())
    app = create_app(service)
    rows = table(rows=40)
    columns = {
        name: [str(cell) if name == "time" else cell for cell in rows[name].to_pylist()] for name in rows.column_names
    }
    why = json.loads(model.explain(rows).to_json())
    mask = why["explanation"]["mask"]
    stream = _stream(rows)
    bodies: list[Any] = [
        {"table": columns},
        {"model": "model", "table": columns, "at": "2024-01-02 12:00"},
        {"explanation": why, "table": columns},
        {"explanation": json.loads(model.explain(rows).with_receipts(["load"]).to_json())},
        {"explanation": why, "channel": "load", "step": 1},
        {"explanation": why, "mask": mask},
        {"explanation": why, "seed": 1},
        {"models": ["model"]},
        stream,
        to_csv(rows),
    ]

    def probe(content: bytes) -> None:
        draws = Draws(content)
        route, query = ROUTES[draws.below(len(ROUTES))], QUERIES[draws.below(len(QUERIES))]
        kind, body = (
            KINDS[draws.below(len(KINDS))] if draws.below(4) == 0 else KINDS[0],
            bodies[draws.below(len(bodies))],
        )
        if isinstance(body, bytes):
            at = draws.below(len(body))
            sent = body[:at] + draws.rest() + body[at + draws.below(16) :]
            kind = KINDS[1] if body is stream else kind
        else:
            sent = json.dumps(edited(json.loads(json.dumps(body)), draws)).encode("utf8", "surrogatepass")
        status = asyncio.run(_status(app, route, query, kind, sent))
        assert status < 500, f"{route}?{query.decode()} answered {status}"
        if status >= 400:
            raise RefusedError(f"{route}?{query.decode()} answered {status}")

    return Target(probe, DRAWN, drawn=True, close=service.close)


async def _status(app: Any, path: str, query: bytes, kind: bytes, body: bytes) -> int:
    """Post a body to an application; return the status of the answer."""
    headers = [(b"host", b"localhost"), (b"content-type", kind), (b"content-length", str(len(body)).encode())]
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http"},
        **{"path": path, "raw_path": path.encode(), "query_string": query, "headers": headers, "root_path": ""},
        **{"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}},
    }
    statuses, parts = [], [body]

    async def receive() -> dict[str, Any]:
        if not parts:
            await asyncio.Event().wait()  # the client stays
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    return int(statuses[0])


MAKERS: dict[str, Callable[[Path], Target]] = {
    "csv": _csv,
    "gz": _gz,
    "parquet": _parquet,
    "arrow": _arrow,
    "columns": _columns,
    "recipe": _recipe,
    "document": _document,
    "model": _model,
    "onnx": _onnx,
    "http": _http,
}

REFUSED = (IBForecastError, RefusedError)
"""What a reader may raise."""
