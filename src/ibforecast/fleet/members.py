"""The members of a fleet: a folder of tables, one long table, or tables by name; each is read when it is needed."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.files import sha256
from ibforecast.data.sources import SUFFIXES, load

Reader = Callable[[], pa.Table]


@dataclass(frozen=True)
class Member:
    """A series with its name, and its table or the reason why it has none."""

    name: str
    table: pa.Table | None
    problem: IBForecastError | None = None

    def read(self) -> pa.Table:
        """Return the table; raise the reason if there is none."""
        if self.problem is not None:
            raise self.problem
        return self.table

    @property
    def folder(self) -> str:
        """A name for folders and files: the plain characters of the member's name, and eight digits of its hash.

        The digits keep names apart that differ only in case, in special characters, or after the 40th character.
        """
        return f"{re.sub(r'[^A-Za-z0-9_]+', '_', self.name)[:40]}-{sha256(self.name.encode())[:8]}"

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the table, or of the reason why there is none."""
        if self.table is None:
            return sha256(str(self.problem).encode())
        sink = pa.BufferOutputStream()
        # The same cells in other chunks, or with other metadata, must have the same fingerprint.
        plain = self.table.replace_schema_metadata(None).combine_chunks()
        with pa.ipc.new_stream(sink, plain.schema) as stream:
            stream.write_table(plain)
        return sha256(sink.getvalue().to_pybytes())


@dataclass(frozen=True)
class Members:
    """All members in their order; `cut` is true if they are parts of one long table."""

    readers: Mapping[str, Reader]
    cut: bool = False

    def __len__(self) -> int:
        return len(self.readers)

    def __iter__(self) -> Iterator[Member]:
        for name, reader in self.readers.items():
            try:
                yield Member(name, reader())
            except IBForecastError as error:
                yield Member(name, None, error)


def members_of(source: Any, id: str) -> Members:
    """Return the members: files of a folder, ids of a long table (a path or a table), or entries of a mapping."""
    if isinstance(source, Mapping):
        members = Members(_by_name([(str(name), table) for name, table in source.items()]))
    elif isinstance(source, str | Path) and Path(source).is_dir():
        members = Members(_by_name([(_stem(path), path) for path in sorted(Path(source).iterdir()) if _stem(path)]))
    else:
        members = Members(_by_id(load(source)[0], id), cut=True)
    if not len(members):
        raise DataError("a fleet must have members", f"no table in {source!r}", f"give some, as {', '.join(SUFFIXES)}")
    return members


def _by_name(sources: list[tuple[str, Any]]) -> dict[str, Reader]:
    """Return readers by name; the reader of a name with several tables raises an error."""
    count = Counter(name for name, _ in sources)
    return {
        name: partial(_refuse, _several(count[name], name)) if count[name] > 1 else partial(_load, source)
        for name, source in sources
    }


def _several(count: int, name: str) -> DataError:
    return DataError("a member's name must belong to one table", f"{count} of the name {name!r}", "rename them")


def _by_id(arrow: pa.Table, id: str) -> dict[str, Reader]:
    """Return readers that select the rows of one id from a long table, in the order of the table."""
    if id not in arrow.column_names:
        raise DataError(
            "a fleet's table must have an id column",
            f"no {id!r} among {', '.join(map(repr, arrow.column_names[:8]))}",
            "name it, or give a folder with one table per series",
        )
    column = arrow[id].combine_chunks()
    # A column that is a dictionary already may list ids in another order, or ids without a row: decode it first.
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    encoded = column.dictionary_encode()
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(names)).to_numpy()
    grouped = np.argsort(codes, kind="stable")
    parts = np.split(grouped, np.searchsorted(codes[grouped], np.arange(1, len(names) + 1)))
    rest = arrow.drop_columns([id])
    nameless = sum(len(rows) for name, rows in zip([*names, ""], parts, strict=True) if not name.strip())
    readers: dict[str, Reader] = {
        name: partial(rest.take, pa.array(rows)) for name, rows in zip(names, parts[:-1], strict=True) if name.strip()
    }
    if nameless:
        readers[""] = partial(_refuse, DataError("every row must have an id", f"{nameless} without", f"fill {id!r}"))
    return readers


def _load(source: Any) -> pa.Table:
    return load(source)[0]


def _refuse(problem: DataError) -> pa.Table:
    raise problem


def _stem(path: Path) -> str:
    """Return a table's file name without its suffix; empty if the file is not a table, or hidden."""
    ending = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), "")
    return path.name[: -len(ending)] if ending and path.is_file() and not path.name.startswith(".") else ""
