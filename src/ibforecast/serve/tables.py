"""Tables as they arrive, and the shelf of those that are kept."""

import io
import zlib
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool
from pyarrow import parquet

from ibforecast.core.errors import DataError
from ibforecast.core.files import sha256
from ibforecast.data import catalogue
from ibforecast.data.demo import demo_table
from ibforecast.data.series import Series
from ibforecast.data.sources import load
from ibforecast.data.tables import Table
from ibforecast.serve import wire
from ibforecast.serve.refusals import Refused

DEMO = "demo"
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
FEW_CELLS = 4096
"""Cells of a table that is read sooner than it is handed to another thread."""


def from_json(table: dict[str, list[Any]] | list[dict[str, Any]], most: int) -> pa.Table:
    """Columns as lists, or rows as objects, as arrow; a cell that does not fit its column is left to the reader.

    Rows that have few names in common would become far more cells than were sent: at most `most` are made of them.
    """
    columns: Mapping[str, list[Any]]
    if isinstance(table, list):
        names = _names(table)
        if len(names) * len(table) > most:
            raise Refused(
                413,
                f"rows times names of a table must be at most {most} (got {len(table)} rows of {len(names)} names)",
                "send fewer rows, or rows of the same names",
                "table",
            )
        columns = {name: [row.get(name) for row in table] for name in names}
    else:
        columns = table
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} in {name!r}" for name, length in list(lengths.items())[:4])
        raise DataError("columns must be of one length", told, "fill up with null")
    return pa.table({name: _column(cells) for name, cells in columns.items()})


def is_small(sent: Any) -> bool:
    """Whether a table that was sent as columns or rows is read in less than a millisecond or so."""
    parts = sent.values() if isinstance(sent, dict) else sent if isinstance(sent, list) else None
    if parts is None or len(sent) > FEW_CELLS or sum(map(len, parts)) > FEW_CELLS:
        return False
    return isinstance(sent, dict) or len(_names(sent)) * len(sent) <= FEW_CELLS


def from_bytes(content: bytes, name: str, most: int) -> pa.Table:
    """A file's content as arrow: Parquet, CSV or gzipped CSV, found out from its first bytes."""
    if content.startswith(PARQUET):
        _check_unpacked(content, most)
        suffix = ".parquet"
    else:
        content = _unzipped(content, most) if content.startswith(GZIP) else content
        suffix = ".csv"
    with TemporaryDirectory(prefix="ibforecast-") as folder:
        path = Path(folder) / f"{_stem(name)}{suffix}"
        path.write_bytes(content)
        table, _ = load(path)
    return table


@dataclass
class Kept:
    """A table on the shelf, and how models have read it so far, by their weights."""

    facts: wire.Table
    source: pa.Table | str
    read: dict[str, Table] = field(default_factory=dict)


class Shelf:
    """The tables at hand: uploads (the one unused longest makes room), the catalogue, the demo."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._uploads: OrderedDict[str, Kept] = OrderedDict()
        self._standing: dict[str, Kept] = {}

    def add(self, content: bytes, name: str, source: pa.Table, series: Series) -> Kept:
        """Keep an upload under the fingerprint of its content."""
        id = sha256(content)[:16]
        kept = self._uploads.setdefault(id, Kept(facts_of(id, name, "upload", series), source))
        kept.facts = kept.facts.model_copy(update={"name": name})
        self._uploads.move_to_end(id)
        while len(self._uploads) > self._most:
            self._uploads.popitem(last=False)
        return kept

    def get(self, id: str, absent: int = 404) -> Kept:
        """Find a table by its id; `absent` is the status that tells there is none."""
        if id in self._uploads:
            self._uploads.move_to_end(id)
            return self._uploads[id]
        if id not in self._standing:
            standing = self._stand(id)
            if standing is None:
                known = [table.id for table in self.list()]
                raise Refused(
                    absent,
                    f"a table must be kept by the service (got {id[:80]!r})",
                    f"upload it to /tables, or choose among {', '.join(known)}",
                    "table",
                )
            self._standing[id] = standing
        return self._standing[id]

    def list(self) -> list[wire.Table]:
        """Facts of every table at hand."""
        found = [name for name in catalogue.CATALOGUE if catalogue.find(name)]
        return [
            *(kept.facts for kept in self._uploads.values()),
            *(_of_catalogue(name) for name in found),
            self.get(DEMO).facts,
        ]

    def _stand(self, id: str) -> Kept | None:
        if id == DEMO:
            demo = demo_table()
            return Kept(facts_of(DEMO, "a small town's energy", "demo", demo.series), pa.table(demo.columns()))
        if id in catalogue.CATALOGUE and catalogue.find(id):
            return Kept(_of_catalogue(id), id)
        return None


def facts_of(id: str, name: str, kind: Literal["upload", "demo"], series: Series) -> wire.Table:
    """What there is to say of a table that was read."""
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


def explainable(series: Series, look_back: int) -> Bool[np.ndarray, " start"]:
    """Tell of every first row of a window whether each channel is observed in it at least once."""
    seen = np.cumsum(~np.isnan(series.values), axis=0)
    before = np.concatenate([np.zeros((1, seen.shape[1]), dtype=seen.dtype), seen[:-look_back]])
    return np.asarray((seen[look_back - 1 :] > before).all(axis=1))


def _of_catalogue(name: str) -> wire.Table:
    facts = catalogue.CATALOGUE[name]
    return wire.Table(
        id=name,
        name=name,
        kind="catalogue",
        rows=facts.rows,
        channels=facts.channels,
        frequency=facts.frequency,
        first=None,
        last=None,
    )


def _names(rows: list[dict[str, Any]]) -> dict[str, None]:
    """Every name in any of the rows, in the order they come."""
    return dict.fromkeys(name for row in rows for name in row)


def _column(cells: list[Any]) -> pa.Array:
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([cell if cell is None else str(cell) for cell in cells], pa.string())


def _stem(name: str) -> str:
    """A file name for messages alone: the last part of what was told, without its ending."""
    kept = "".join(letter for letter in Path(name).name.partition(".")[0] if letter.isalnum() or letter in " -_")
    return kept[:60] or "table"


def _unzipped(content: bytes, most: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(content, most + 1)
    except zlib.error as error:
        raise DataError("a gzip file must be whole", error, "export it again") from error
    _check_size(len(plain), most)
    if not unpacker.eof:
        raise DataError("a gzip file must be whole", "one that is cut off", "export it again")
    return plain


def _check_unpacked(content: bytes, most: int) -> None:
    """Refuse a Parquet file that would take too much, without unpacking it: repeated text is stored only once."""
    try:
        facts = parquet.read_metadata(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise DataError("a .parquet file must be whole and well formed", error, "export it again") from error
    columns = [facts.schema.column(place) for place in range(facts.num_columns)]
    _check_flat(columns)
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    size = sum(group.num_rows for group in groups) * sum(max(8, column.length) for column in columns)
    _check_size(max(size, sum(group.total_byte_size for group in groups)), most)
    text = [column.name for column in columns if column.physical_type == "BYTE_ARRAY"]
    try:
        file = parquet.ParquetFile(io.BytesIO(content), read_dictionary=text)
        for name in text:
            if not pa.types.is_dictionary(kind := file.schema_arrow.field(name).type):
                raise _no_column(str(kind), name)
        for number, name in product(range(len(groups)), text):
            size += _text_size(file.read_row_group(number, [name], use_threads=False).column(0))
            _check_size(size, most)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "a .parquet file must be whole, its text plain or as a dictionary", error, "export it again"
        ) from error


def _check_flat(columns: list[parquet.ColumnSchema]) -> None:
    """Refuse lists, whose size nothing bounds, structs, and names that stand for several columns."""
    for column in columns:
        if column.path != column.name or column.max_repetition_level:
            raise _no_column("lists or structs", column.path)
    if repeated := [name for name, count in Counter(column.name for column in columns).items() if count > 1]:
        raise DataError("channel names must differ", f"{repeated[0]!r} more than once", "rename one of them")


def _no_column(kind: str, name: str) -> DataError:
    return DataError("a column must hold numbers, times or text", f"{kind} in {name!r}", "leave it out")


def _text_size(column: pa.ChunkedArray) -> int:
    """Bytes of a column's text, written out, that was read as a dictionary."""
    lengths = (pc.take(pc.binary_length(chunk.dictionary), chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(each).as_py() or 0 for each in lengths)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise Refused(
            413,
            f"a table must take at most {most} bytes when unpacked (got more)",
            "send fewer rows or channels",
            "body",
        )
