"""Tables in requests, and the shelf of tables that the service keeps."""

import io
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64
from pyarrow import parquet

from ibforecast.core.errors import DataError, UsageError
from ibforecast.core.files import sha256
from ibforecast.data.demo import demo_table
from ibforecast.data.limits import MOST_COLUMNS
from ibforecast.data.series import Series
from ibforecast.data.sources import load
from ibforecast.data.tables import Table
from ibforecast.serve import wire
from ibforecast.serve.refusals import Refused
from ibforecast.use import Desk
from ibforecast.zoo.saved import FittedModel

DEMO = "demo"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"


_OF_HEADER = re.compile(rb'"[^"]*"|([,;\t|])|([\r\n])')
"""A quoted name, a separator, or the end of the line."""

K = TypeVar("K")
V = TypeVar("V")


def from_json(table: dict[str, list[Any]] | list[dict[str, Any]], most: int) -> pa.Table:
    """Convert columns as lists, or rows as objects, to arrow; a column of mixed types becomes text.

    Rows with few names in common would become far more cells than were sent: more than `most` are refused.
    """
    columns: Mapping[str, list[Any]]
    if isinstance(table, list):
        names = _names(table)
        if len(names) * len(table) > most:
            raise Refused(
                413,
                f"rows times names of a table must be at most {most}",
                f"{len(table)} rows of {len(names)} names",
                "send fewer rows, or rows with the same names",
                "table",
            )
        columns = {name: [row.get(name) for row in table] for name in names}
    else:
        columns = table
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{length} in {name!r}" for name, length in list(lengths.items())[:4])
        raise DataError("columns must have the same length", listed, "fill the shorter ones with null")
    return pa.table({name: _column(cells) for name, cells in columns.items()})


def check_names(count: int, field: str = "table") -> None:
    """Refuse a table of too many columns."""
    if count > MOST_COLUMNS:
        raise Refused(413, f"a table must have at most {MOST_COLUMNS} columns", count, "send fewer channels", field)


def from_bytes(content: bytes, name: str, most: int) -> pa.Table:
    """Read a file's content: Parquet, CSV or gzipped CSV, recognised by its first bytes."""
    if content.startswith(PARQUET):
        _check_unpacked(content, most)
        suffix = ".parquet"
    else:
        content = _unzipped(content, most) if content.startswith(GZIP) else content
        suffix = ".csv"
        _check_header(content)
    with TemporaryDirectory(prefix="ibforecast-") as folder:
        path = Path(folder) / f"{_stem(name)}{suffix}"
        path.write_bytes(content)
        table, _ = load(path)
    return table


@dataclass
class Kept:
    """A table on the shelf, and the table as each model reads it, by the weights of the model."""

    facts: wire.Table
    source: pa.Table | str
    read: dict[str, Table] = field(default_factory=dict)


def keep(store: dict[K, V], key: K, value: V, most: int) -> None:
    """Put an entry at the end of a store, and drop the first ones if there are more than `most`."""
    store.pop(key, None)
    store[key] = value
    while len(store) > most:
        del store[next(iter(store))]


class Shelf:
    """The available tables: those the service was started with, uploads, and the demo.

    Of the uploads, the least recently used one is dropped first.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.identities: dict[str, str] = {}
        """The fingerprint of each table that the service was started with, as the models read it."""
        self._opened: dict[str, Kept] = {}
        self._uploads: dict[str, Kept] = {}
        self._standing: dict[str, Kept] = {}

    def open(self, name: str, source: pa.Table, read: Sequence[Series]) -> None:
        """Keep a table, and how each model reads it, under its name for as long as the service runs."""
        if name in self._opened or name == DEMO:
            raise UsageError("tables must have different names", f"{name!r} twice", "rename one of the files")
        self._opened[name] = Kept(facts_of(name, name, "opened", read[0]), source)
        self.identities[name] = sha256(
            part for each in read for part in (each.sha256.encode(), each.clock.stamps.tobytes())
        )

    def add(self, content: bytes, name: str, source: pa.Table, series: Series) -> Kept:
        """Keep an upload under the fingerprint of its content."""
        id = sha256(content)[:16]
        kept = self._uploads.get(id) or Kept(facts_of(id, name, "upload", series), source)
        kept.facts = kept.facts.model_copy(update={"name": name})
        keep(self._uploads, id, kept, self._most)
        return kept

    def get(self, id: str, absent: int = 404) -> Kept:
        """Find a table by its id; `absent` is the status of the answer if there is none."""
        if id in self._opened:
            return self._opened[id]
        if id in self._uploads:
            keep(self._uploads, id, self._uploads[id], self._most)
            return self._uploads[id]
        if id not in self._standing:
            standing = self._stand(id)
            if standing is None:
                known = [table.id for table in self.list()]
                raise Refused(
                    absent,
                    "a table must be kept by the service",
                    repr(id[:80]),
                    f"upload it to /tables, or choose among {', '.join(known)}",
                    "table",
                )
            self._standing[id] = standing
        return self._standing[id]

    def list(self) -> list[wire.Table]:
        """Return the facts of every available table."""
        return [
            *(kept.facts for kept in self._opened.values()),
            *(kept.facts for kept in self._uploads.values()),
            self.get(DEMO).facts,
        ]

    def _stand(self, id: str) -> Kept | None:
        if id == DEMO:
            demo = demo_table()
            return Kept(facts_of(DEMO, "a small town's energy", "demo", demo.series), pa.table(demo.columns()))
        return None


def facts_of(id: str, name: str, kind: Literal["opened", "upload", "demo"], series: Series) -> wire.Table:
    """Return the facts of a table that was read."""
    return wire.Table(
        id=id,
        name=name,
        kind=kind,
        rows=series.rows,
        channels=list(series.channels),
        frequency=str(series.clock.frequency),
        first=series.clock.labels(0, 1)[0],
        last=series.clock.labels(series.rows - 1, 1)[0],
    )


def starts(series: Series, fitted: FittedModel) -> Int64[np.ndarray, " window"]:
    """Return the first rows of the windows from which a model can forecast; refuse a table without any.

    Every channel that the model reads must be observed at least once where it is read. With covariates known ahead,
    only windows whose horizon they cover count.
    """
    look_back = fitted.config.look_back
    windows = Desk(fitted).windows_at(series, range(series.rows - look_back + 1))
    rows = np.flatnonzero(windows.read().all(dim=1).numpy())
    if series.known is not None:
        rows = rows[rows + look_back + fitted.config.horizon <= len(series.known)]
    if not len(rows):
        raise Refused(
            422,
            f"a table must have look_back = {look_back} rows in which every channel is observed at least once"
            + (", where it is read" if fitted.config.sealed else ""),
            f"none among {series.rows} rows",
            "give a longer table, or one with fewer gaps",
            "table",
        )
    return rows


def _names(rows: list[dict[str, Any]]) -> dict[str, None]:
    """Return every name in any of the rows, in order of appearance."""
    names: dict[str, None] = {}
    for row in rows:
        if not row.keys() <= names.keys():
            names |= dict.fromkeys(row)
            check_names(len(names))
    return names


def _check_header(content: bytes) -> None:
    """Refuse CSV whose first line has too many columns."""
    count = 1
    for part in _OF_HEADER.finditer(content):
        if part[2]:
            return
        count += bool(part[1])
        check_names(count, "body")


def _column(cells: list[Any]) -> pa.Array:
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([cell if cell is None else str(cell) for cell in cells], pa.string())


def _stem(name: str) -> str:
    """Return a file name for messages: the last part of `name`, without its suffix."""
    kept = "".join(letter for letter in Path(name).name.partition(".")[0] if letter.isalnum() or letter in " -_")
    return kept[:60] or "table"


def _unzipped(content: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        # Unpacks one byte more than allowed and no further: a small file may unpack to gigabytes.
        plain = unpacker.decompress(content, most + 1)
    except zlib.error as error:
        raise DataError("a gzip file must be whole", error, "export it again") from error
    check_size(len(plain), most)
    if not unpacker.eof:
        raise DataError("a gzip file must be whole", "one that is cut off", "export it again")
    return plain


def _check_unpacked(content: bytes, most: int) -> None:
    """Refuse a Parquet file that would unpack to too much, without unpacking: it stores repeated text only once."""
    try:
        facts = parquet.read_metadata(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise DataError("a .parquet file must be whole and well formed", error, "export it again") from error
    check_names(facts.num_columns, "body")
    columns = [facts.schema.column(place) for place in range(facts.num_columns)]
    _check_flat(columns)
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    size = sum(group.num_rows for group in groups) * sum(max(8, column.length) for column in columns)
    check_size(max(size, sum(group.total_byte_size for group in groups)), most)
    text = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
    try:
        file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=text)
        for name in text:
            if not pa.types.is_dictionary(kind := file.schema_arrow.field(name).type):
                raise no_column(str(kind), name)
        for number, name in product(range(len(groups)), text):
            size += _text_size(file.read_row_group(number, [name], use_threads=False).column(0))
            check_size(size, most)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "a .parquet file must be whole, its text plain or as a dictionary", error, "export it again"
        ) from error


def _check_flat(columns: list[parquet.ColumnSchema]) -> None:
    """Refuse lists, whose size is unbounded, structs, and repeated names."""
    for column in columns:
        if column.path != column.name or column.max_repetition_level:
            raise no_column("lists or structs", column.path)
    if repeated := [name for name, count in Counter(column.name for column in columns).items() if count > 1]:
        raise DataError("channel names must differ", f"{repeated[0]!r} more than once", "rename one of them")


def no_column(kind: str, name: str) -> DataError:
    """Return the error about a column of a type that is not read."""
    return DataError("a column must hold numbers, times or text", f"{kind} in {name!r}", "leave it out")


def _text_size(column: pa.ChunkedArray) -> int:
    """Return the unpacked size in bytes of a text column that was read as a dictionary."""
    lengths = (pc.take(pc.binary_length(chunk.dictionary), chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(each).as_py() or 0 for each in lengths)


def check_size(size: int, most: int) -> None:
    """Refuse a table that takes too many bytes."""
    if size > most:
        raise Refused(
            413,
            f"a table must take at most {most} bytes when unpacked",
            "more",
            "send fewer rows or channels",
            "body",
        )
