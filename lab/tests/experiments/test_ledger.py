"""The ledger: one whole file per cell, read back as it was written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ibforecast.core import files
from ibforecast.core.errors import DataError
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores

CELL = Cell("ETTh1", 96, "exact", 2024)
RECORD = Record(
    cell=CELL,
    forecaster="ibforecast",
    validation=Scores(2785, 1 / 3, 0.4, 0.196, 0.196),
    test=Scores(2785, 0.1 + 0.2, 0.39, 0.19, 0.2),
    verified_windows=1000,
    broken_windows=0,
    parameters=123_456,
    epochs=36,
    best_epoch=20,
    seconds=12.345,
    windows_per_second=2500.5,
    recipe={"config": {"budget": 0.2, "gate": {"temperature": [0.5, 0.1]}}, "train": {"epochs": 36}},
    recipe_sha256="a" * 64,
    data_sha256="b" * 64,
    results_version=1,
    commit="c" * 40,
    device="CPU, 2 threads",
    versions={"torch": "2.13.0"},
    finished="2026-01-01T00:00:00+00:00",
)


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results")
    path = ledger.write(RECORD)
    assert path == ledger.path(CELL)
    assert ledger.read(CELL) == RECORD
    assert ledger.records() == [RECORD]


def test_a_cell_without_a_record_has_none(tmp_path: Path) -> None:
    assert Ledger(tmp_path).read(CELL) is None
    assert Ledger(tmp_path / "nowhere").records() == []


def test_a_newer_record_takes_the_place_of_the_older(tmp_path: Path) -> None:
    ledger, newer = Ledger(tmp_path), replace(RECORD, commit="d" * 40)
    ledger.write(RECORD)
    ledger.write(newer)
    assert ledger.records() == [newer]


def test_cells_that_differ_in_anything_have_files_of_their_own(tmp_path: Path) -> None:
    cells = [
        CELL,
        replace(CELL, data="ETTh2"),
        replace(CELL, horizon=192),
        replace(CELL, look_back=336),
        replace(CELL, recipe="paper"),
        replace(CELL, seed=2025),
        replace(CELL, budget=0.2),
        replace(CELL, budget=0.1),
        replace(CELL, budget=1.0),
    ]
    ledger = Ledger(tmp_path)
    for cell in cells:
        ledger.write(replace(RECORD, cell=cell))
    assert len({ledger.path(cell) for cell in cells}) == len(cells) == len(ledger.records())
    assert all(ledger.read(cell) == replace(RECORD, cell=cell) for cell in cells)
    assert [record.cell.key for record in ledger.records()] == sorted(cell.key for cell in cells)


def test_a_recipe_may_be_named_by_its_path(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results")
    own = replace(RECORD, cell=replace(CELL, recipe=str(tmp_path / "own.toml")))
    ledger.write(own)
    assert ledger.read(own.cell) == own
    assert ledger.records() == [own]


def test_a_recipe_of_ones_own_does_not_take_the_place_of_the_one_that_ships(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results")
    own = replace(RECORD, cell=replace(CELL, recipe=str(tmp_path / "exact.toml")))
    ledger.write(RECORD)
    ledger.write(own)
    assert ledger.read(CELL) == RECORD


def test_a_record_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path)
    ledger.write(RECORD)

    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ledger.write(replace(RECORD, commit="d" * 40))
    assert ledger.records() == [RECORD]
    assert [path.name for path in tmp_path.iterdir()] == [ledger.path(CELL).name]


def test_a_number_that_is_none_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        Ledger(tmp_path).write(replace(RECORD, test=replace(RECORD.test, mse=float("nan"))))
    assert Ledger(tmp_path).records() == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"cell": 1}'])
def test_a_record_that_is_not_whole_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    ledger = Ledger(tmp_path)
    ledger.path(CELL).write_text(content)
    with pytest.raises(DataError, match=rf"a ledger record must be whole \(got .+{CELL.key}.+\); run its cell again"):
        ledger.read(CELL)


def test_a_record_with_a_field_too_many_or_too_few_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    path = ledger.write(RECORD)
    whole = json.loads(path.read_text())
    for damaged in (whole | {"mood": "good"}, {key: whole[key] for key in whole if key != "commit"}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(DataError, match="must be whole"):
            ledger.records()
