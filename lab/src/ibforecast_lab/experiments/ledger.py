"""The ledger: one small JSON file per finished cell, written whole or not at all."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ibforecast.core.errors import DataError
from ibforecast.core.files import sha256, to_json, write_atomically

LEDGER = Path("results/ledger")
"""Where the ledger of a checkout is."""

HOLDER = {"native": "explanations"}
"""Studies whose measurements are among those of another, which answers for them."""


@dataclass(frozen=True)
class Cell:
    """One run's coordinates: data set, lengths, recipe or variant of one, budget (None: its own) and seed.

    `study` names what is measured on the trained forecaster beyond its errors; empty where nothing is.
    """

    data: str
    horizon: int
    recipe: str
    seed: int
    budget: float | None = None
    look_back: int = 96
    study: str = ""

    @property
    def key(self) -> str:
        """A name for files and for people."""
        budget = "" if self.budget is None else f"-b{self.budget:g}"
        study = f"-{self.study}" if self.study else ""
        path = self.recipe.endswith(".toml")
        own = f"{Path(self.recipe).stem}.{sha256(self.recipe.encode())[:8]}" if path else self.recipe
        return f"{self.data}-{self.look_back}-{self.horizon}-{own}{budget}-s{self.seed}{study}"


@dataclass(frozen=True)
class Scores:
    """What one part of the data gave: errors in standardised units, and how much of the windows was read."""

    windows: int
    mse: float
    mae: float
    open_rate: float
    largest_open_rate: float


@dataclass(frozen=True)
class Record:
    """A cell's outcome with its birth certificate; `measurements` are the flat rows of its study."""

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
    """All records of a folder, by cell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, cell: Cell) -> Path:
        """Where a cell's record stands, or would."""
        return self.folder / f"{cell.key}.json"

    def write(self, record: Record) -> Path:
        """Add a record, in place of an older one of the same cell."""
        path = self.path(record.cell)
        write_atomically(path, to_json(asdict(record)))
        return path

    def read(self, cell: Cell) -> Record | None:
        """Return a cell's record, or None; being the same run, a study answers for the plain cell and one it holds."""
        others = [] if cell.study else sorted(self.folder.glob(f"{cell.key}-*.json"))
        if cell.study in HOLDER:
            others = [self.path(replace(cell, study=HOLDER[cell.study]))]
        return next((_record(path) for path in (self.path(cell), *others) if path.exists()), None)

    def records(self) -> list[Record]:
        """Every record, in the order of their names."""
        return [_record(path) for path in sorted(self.folder.glob("*.json"))]


def _record(path: Path) -> Record:
    try:
        fields = json.loads(path.read_text())
        parts: dict[str, Any] = {
            "cell": Cell(**fields.pop("cell")),
            "validation": Scores(**fields.pop("validation")),
            "test": Scores(**fields.pop("test")),
        }
        return Record(**parts, **fields)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError("a ledger record must be whole", f"{error} in {path}", "run its cell again") from error
