"""The ledger: one file for each new record, one packed file for all, read back as they were written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ibforecast.core import files
from ibforecast.core.errors import DataError
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores, packed, unpacked

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
    ledger = Ledger(tmp_path / "results" / "ledger.jsonl.zst")
    path = ledger.write(RECORD)
    assert path == ledger.path(CELL)
    assert ledger.read(CELL) == RECORD
    assert ledger.records() == [RECORD]


def test_a_cell_without_a_record_has_none(tmp_path: Path) -> None:
    assert Ledger(tmp_path / "ledger.jsonl.zst").read(CELL) is None
    assert Ledger(tmp_path / "nowhere" / "ledger.jsonl.zst").records() == []


def test_a_newer_record_replaces_the_older(tmp_path: Path) -> None:
    ledger, newer = Ledger(tmp_path / "ledger.jsonl.zst"), replace(RECORD, commit="d" * 40)
    ledger.write(RECORD)
    ledger.write(newer)
    assert ledger.records() == [newer]


def test_cells_that_differ_in_any_field_have_separate_files(tmp_path: Path) -> None:
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
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    for cell in cells:
        ledger.write(replace(RECORD, cell=cell))
    assert len({ledger.path(cell) for cell in cells}) == len(cells) == len(ledger.records())
    assert all(ledger.read(cell) == replace(RECORD, cell=cell) for cell in cells)
    assert [record.cell.key for record in ledger.records()] == sorted(cell.key for cell in cells)


def test_a_recipe_may_be_named_by_its_path(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results" / "ledger.jsonl.zst")
    own = replace(RECORD, cell=replace(CELL, recipe=str(tmp_path / "own.toml")))
    ledger.write(own)
    assert ledger.read(own.cell) == own
    assert ledger.records() == [own]


def test_your_own_recipe_does_not_replace_the_built_in_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "results" / "ledger.jsonl.zst")
    own = replace(RECORD, cell=replace(CELL, recipe=str(tmp_path / "exact.toml")))
    ledger.write(RECORD)
    ledger.write(own)
    assert ledger.read(CELL) == RECORD


def test_a_record_is_written_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    ledger.write(RECORD)

    def fail(handle: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        ledger.write(replace(RECORD, commit="d" * 40))
    assert ledger.records() == [RECORD]
    assert [path.name for path in ledger.folder.iterdir()] == [ledger.path(CELL).name]


def test_a_record_with_nan_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        Ledger(tmp_path / "ledger.jsonl.zst").write(replace(RECORD, test=replace(RECORD.test, mse=float("nan"))))
    assert Ledger(tmp_path / "ledger.jsonl.zst").records() == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"cell": 1}'])
def test_an_incomplete_record_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    ledger.folder.mkdir()
    ledger.path(CELL).write_text(content)
    with pytest.raises(DataError, match=rf"a ledger record must be whole \(got .+{CELL.key}.+\); run its cell again"):
        ledger.read(CELL)


def test_a_record_with_a_field_too_many_or_too_few_is_refused(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    path = ledger.write(RECORD)
    whole = json.loads(path.read_text())
    for damaged in (whole | {"mood": "good"}, {key: whole[key] for key in whole if key != "commit"}):
        path.write_text(json.dumps(damaged))
        with pytest.raises(DataError, match="must be whole"):
            ledger.records()


# --- The packed file ---


OTHERS = [replace(CELL, seed=seed, study=study) for seed in (3, 1, 2) for study in ("native", "")]


def test_packed_records_are_read_back_as_they_were_written_and_the_folder_is_empty(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    for cell in OTHERS:
        ledger.write(replace(RECORD, cell=cell, measurements=[{"measure": "rate", "bits": 0.1 + 0.2}]))
    before = ledger.records()
    assert ledger.pack() == len(OTHERS)
    assert ledger.records() == before == Ledger(ledger.packed).records()
    assert list(ledger.folder.iterdir()) == []
    assert all(ledger.read(cell) is not None for cell in OTHERS)


def test_packed_records_are_sorted_and_always_the_same_bytes(tmp_path: Path) -> None:
    records = [replace(RECORD, cell=cell) for cell in OTHERS]
    assert packed(records) == packed(reversed(records))
    path = tmp_path / "ledger.jsonl.zst"
    path.write_bytes(packed(records))
    assert [record.cell.key for record in unpacked(path)] == sorted(cell.key for cell in OTHERS)


def test_packing_twice_changes_nothing_and_keeps_packed_records(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    ledger.write(RECORD)
    ledger.pack()
    content = ledger.packed.read_bytes()
    assert ledger.pack() == 0
    assert ledger.packed.read_bytes() == content
    ledger.write(replace(RECORD, cell=OTHERS[0]))
    ledger.pack()
    assert {record.cell for record in ledger.records()} == {CELL, OTHERS[0]}


@pytest.mark.parametrize(("finished", "commit"), [("2026-01-02T00:00:00+00:00", "new"), ("2025-01-01", "c" * 40)])
def test_the_later_of_a_packed_and_a_new_record_is_used(tmp_path: Path, finished: str, commit: str) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    ledger.write(RECORD)
    ledger.pack()
    ledger.write(replace(RECORD, commit="new", finished=finished))
    assert [record.commit for record in ledger.records()] == [commit]
    ledger.pack()
    assert [record.commit for record in ledger.records()] == [commit]


def test_a_record_that_another_process_packs_is_found_and_kept(tmp_path: Path) -> None:
    mine, other = Ledger(tmp_path / "ledger.jsonl.zst"), Ledger(tmp_path / "ledger.jsonl.zst")
    mine.write(RECORD)
    assert mine.pack() == 1
    second = replace(RECORD, cell=replace(CELL, seed=1))
    other.write(second)
    assert other.pack() == 1
    assert mine.read(second.cell) == second
    mine.write(replace(RECORD, cell=replace(CELL, seed=2)))
    assert mine.pack() == 1
    assert {record.cell.seed for record in other.records()} == {CELL.seed, 1, 2}


def test_a_file_that_is_not_a_packed_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.json").write_text("{}")
    for path in (tmp_path / "ledger.json", tmp_path):
        with pytest.raises(DataError, match=r"a ledger must be a packed file of records \(got .+\); pass a file such"):
            Ledger(path).records()
