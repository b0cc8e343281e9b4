"""The ledger: one packed file of records, and a folder of newer records that are not packed yet."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ibforecast.core.errors import DataError
from ibforecast.core.files import sha256, to_json, write_atomically
from ibforecast.core.folders import locked, sweep

LEDGER = Path("results/ledger.jsonl.zst")
"""The packed ledger of a checkout."""

RECORDS = "records"
"""The folder next to a packed ledger. New runs write their records to it."""

LOOK_BACK = 96
"""The look-back of the protocol. Tables are of this look-back unless they say otherwise."""

_LEVEL = 19
"""The level of compression. It is high because the packed file is written rarely and read often."""

HOLDER = {"native": "explanations"}
"""Studies whose measurements another study contains. A record of the larger study can replace one of the smaller."""


@dataclass(frozen=True)
class Cell:
    """The coordinates of a run: data set, lengths, recipe or variant of one, budget (None: the recipe's) and seed.

    `study` names what is measured on the trained forecaster in addition to its errors. It is empty if only the
    errors are measured.
    """

    data: str
    horizon: int
    recipe: str
    seed: int
    budget: float | None = None
    look_back: int = LOOK_BACK
    study: str = ""

    @property
    def key(self) -> str:
        """A unique name, used as file name and in messages."""
        budget = "" if self.budget is None else f"-b{self.budget:g}"
        study = f"-{self.study}" if self.study else ""
        path = self.recipe.endswith(".toml")
        own = f"{Path(self.recipe).stem}.{sha256(self.recipe.encode())[:8]}" if path else self.recipe
        return f"{self.data}-{self.look_back}-{self.horizon}-{own}{budget}-s{self.seed}{study}"


@dataclass(frozen=True)
class Scores:
    """Errors on one part of the data, in standardised units, and the share of its windows that was read."""

    windows: int
    mse: float
    mae: float
    open_rate: float
    largest_open_rate: float


@dataclass(frozen=True)
class Record:
    """The results of a cell and how they were computed.

    `measurements` are the flat rows of its study, of a contest, and of errors without the last, incomplete test batch.
    """

    cell: Cell
    forecaster: str
    validation: Scores
    test: Scores
    verified_windows: int
    broken_windows: int
    parameters: int
    epochs: int
    best_epoch: int
    seconds: float
    windows_per_second: float
    recipe: dict[str, Any]
    recipe_sha256: str
    data_sha256: str
    results_version: int
    commit: str
    device: str
    versions: dict[str, str]
    finished: str
    measurements: list[dict[str, Any]] = field(default_factory=list)


class Ledger:
    """The records of a packed file and of the folder `records` next to it, by cell.

    Each run writes its own JSON file, so several runs can use the folder at the same time. If a cell has two records,
    the one that finished later is used.
    """

    def __init__(self, packed: Path = LEDGER) -> None:
        self.packed = packed
        self.folder = packed.parent / RECORDS
        self._read: tuple[Any, dict[str, Record]] = None, {}

    def path(self, cell: Cell) -> Path:
        """Return the path to which a new record of a cell is written."""
        return self.folder / f"{cell.key}.json"

    def write(self, record: Record) -> Path:
        """Add the record of a new run. It replaces an older record of the same cell in the folder."""
        path = self.path(record.cell)
        with self._only():
            sweep(self.folder)  # a process that was killed may have left a temporary file
            write_atomically(path, to_json(asdict(record)))
        return path

    def read(self, cell: Cell) -> Record | None:
        """Return a cell's record, or None.

        A record of a study is also returned for the cell without a study, and for a study that it contains: it is the
        same run.
        """
        if cell.study in HOLDER:
            others = [replace(cell, study=HOLDER[cell.study]).key]
        else:
            others = [] if cell.study else sorted(key for key in self._keys() if key.startswith(f"{cell.key}-"))
        return next((record for key in (cell.key, *others) if (record := self._record(key))), None)

    def records(self) -> list[Record]:
        """Return every record, in the order of the keys."""
        return [record for key in sorted(self._keys()) if (record := self._record(key))]

    def pack(self) -> int:
        """Move the records of the folder into the packed file, and return their number."""
        with self._only():
            sweep(self.folder)
            sweep(self.packed.parent)
            paths = sorted(self.folder.glob("*.json"))
            if paths:
                write_atomically(self.packed, packed(self.records()))
            for path in paths:
                path.unlink()
        return len(paths)

    @contextmanager
    def _only(self) -> Iterator[None]:
        """Be the only process that writes or packs: a record that is written meanwhile would be removed."""
        self.packed.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.packed.parent, wait=True):
            yield

    @property
    def _packed(self) -> dict[str, Record]:
        """The packed records by key, read again if another process has packed."""
        try:
            status = self.packed.stat()
        except FileNotFoundError:
            return {}
        if (version := (status.st_ino, status.st_mtime_ns, status.st_size)) != self._read[0]:
            self._read = version, {record.cell.key: record for record in unpacked(self.packed)}
        return self._read[1]

    def _keys(self) -> set[str]:
        return {*self._packed, *(path.stem for path in self.folder.glob("*.json"))}

    def _record(self, key: str) -> Record | None:
        path = self.folder / f"{key}.json"
        try:
            new = _record(path.read_text(), path)
        except FileNotFoundError:  # or another process has packed it
            return self._packed.get(key)
        packed = self._packed.get(key)
        return new if packed is None or new.finished >= packed.finished else packed


def packed(records: Iterable[Record]) -> bytes:
    """Return records as compressed lines of JSON, sorted by key: the same records give the same bytes."""
    import pyarrow  # slow to import, and every verb imports this module for LEDGER

    lines = [
        json.dumps(asdict(record), separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"
        for record in sorted(records, key=lambda record: record.cell.key)
    ]
    codec = pyarrow.Codec("zstd", compression_level=_LEVEL)
    return bytes(codec.compress("".join(lines).encode(), asbytes=True))


def unpacked(path: Path) -> list[Record]:
    """Return the records of a packed file."""
    import pyarrow

    try:
        with pyarrow.input_stream(path, compression="zstd") as stream:
            lines = stream.read().decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            "a ledger must be a packed file of records", f"{error} in {path}", f"pass a file such as {LEDGER}"
        ) from error
    return [_record(line, path) for line in lines]


def _record(text: str, path: Path) -> Record:
    try:
        fields = json.loads(text)
        parts: dict[str, Any] = {
            "cell": Cell(**fields.pop("cell")),
            "validation": Scores(**fields.pop("validation")),
            "test": Scores(**fields.pop("test")),
        }
        return Record(**parts, **fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError("a ledger record must be whole", f"{error} in {path}", "run its cell again") from error
