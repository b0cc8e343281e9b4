"""The stacked engine: which cells are one stack, and that its records are those of cells run on their own."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError
from ibforecast.data.series import Series
from ibforecast_lab.data import catalogue
from ibforecast_lab.data.catalogue import DataSet
from ibforecast_lab.experiments import parts, stacked
from ibforecast_lab.experiments.ledger import Cell, Ledger
from ibforecast_lab.experiments.local import run_missing
from ibforecast_lab.experiments.run import run
from ibforecast_lab.experiments.stacked import run_missing_stacked, stacks

ROWS, LOOK_BACK, HORIZON = 130, 12, 4
TINY = DataSet("Tiny", 2, ROWS, "1h", 6, "ratio", "https://nowhere/tiny.csv", "sha256:0", "none")
RECIPE = """
forecaster = "ibforecast"
[model]
patch_len = 3
budget = 0.5
sealed = true
[model.gate]
attention = "none"
recent = 1
[model.readout]
width = 8
[train]
epochs = 2
batch = 16
learning_rate = 1e-2
"""
CELL = Cell("Tiny", HORIZON, "tiny.toml", 7, look_back=LOOK_BACK)
CPU = torch.device("cpu")


def series(name: str) -> Series:
    random, hour = np.random.default_rng(len(name)), np.arange(ROWS)
    values = np.sin(hour / 6 * 2 * np.pi)[:, None] + random.normal(size=(ROWS, 2))
    stamps = np.datetime64("2020-01-01", "us") + hour * np.timedelta64(1, "h")
    return Series(values, ("a", "b"), Clock(stamps, Frequency(3600), by_row=True))


@pytest.fixture(autouse=True)
def _a_small_catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(RECIPE)
    Path("rival.toml").write_text('forecaster = "itransformer"\n[model]\nwidth = 8\nhidden = 8\n[train]\nepochs = 1\n')
    monkeypatch.setitem(catalogue.CATALOGUE, "Tiny", TINY)
    monkeypatch.setitem(catalogue.CATALOGUE, "Other", replace(TINY, name="Other"))
    monkeypatch.setattr(catalogue, "load", series)
    parts.series_of.cache_clear()
    yield
    parts.series_of.cache_clear()


def test_seeds_and_data_sets_of_one_size_are_one_stack_and_anything_else_is_not() -> None:
    alike = [CELL, replace(CELL, seed=8), replace(CELL, data="Other")]
    longer, rivals = replace(CELL, horizon=5), [replace(CELL, recipe="rival.toml", seed=seed) for seed in (1, 2)]
    assert list(stacks([alike[0], longer, *alike[1:], *rivals])) == [alike, [longer], [rivals[0]], [rivals[1]]]


def test_the_records_of_a_stack_are_those_of_its_cells_run_on_their_own(tmp_path: Path) -> None:
    cells = [CELL, replace(CELL, seed=8), replace(CELL, data="Other"), replace(CELL, recipe="rival.toml")]
    ledger, reports = Ledger(tmp_path / "ledger.jsonl.zst"), []
    assert run_missing_stacked(cells, ledger.packed, "cpu", on_cell=lambda *report: reports.append(report)) == {}
    assert [cell for cell, _, _ in reports] == cells
    for cell in cells:
        record, alone = ledger.read(cell), run(cell, CPU)
        assert record is not None
        assert record.test.mse == pytest.approx(alone.test.mse, rel=1e-4)
        assert (record.epochs, record.best_epoch) == (alone.epochs, alone.best_epoch)
        assert record.recipe_sha256 == alone.recipe_sha256
        assert record.broken_windows == 0
        together = [] if cell.recipe == "rival.toml" else [{"measure": "stacked", "models": 3}]
        assert record.measurements == together
    never = partial(pytest.fail, "nothing is missing")
    assert run_missing_stacked(cells, ledger.packed, "cpu", on_cell=lambda *report: never()) == {}


def test_a_stack_that_fails_is_reported_for_each_of_its_cells_and_the_others_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(stacked, "train_recipes_stacked", fail)
    cells = [CELL, replace(CELL, seed=8), replace(CELL, recipe="rival.toml")]
    failures = run_missing_stacked(cells, tmp_path / "ledger.jsonl.zst", "cpu")
    assert failures == dict.fromkeys(cells[:2], "MemoryError: no room")
    assert [record.cell for record in Ledger(tmp_path / "ledger.jsonl.zst").records()] == cells[2:]


def test_a_stack_whose_data_are_missing_fails_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def load(name: str) -> Series:
        if name == "Other":
            raise DataError("a file must exist", "none", "download it")
        return series(name)

    monkeypatch.setattr(catalogue, "load", load)
    cells = [replace(CELL, data="Other"), CELL]
    failures = run_missing_stacked(cells, tmp_path / "ledger.jsonl.zst", "cpu")
    assert list(failures) == cells[:1]
    assert "a file must exist" in failures[cells[0]]


@pytest.mark.parametrize("engine", [run_missing, run_missing_stacked])
def test_no_cell_begins_when_the_time_is_over(engine: Any, tmp_path: Path) -> None:
    cells, reported = [CELL, replace(CELL, recipe="rival.toml")], list[Cell]()

    def report(cell: Cell, *_: object) -> None:
        reported.append(cell)

    assert engine(cells, tmp_path / "ledger.jsonl.zst", "cpu", on_cell=report, minutes=0.0) == {}
    assert reported == []
