"""A whole run on a small series, and which cells are run again."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ibforecast.core import workers
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.data.windows import Windows
from ibforecast.train import loop
from ibforecast.train.checkpoint import Checkpoint
from ibforecast.train.loop import train
from ibforecast_lab.data import catalogue
from ibforecast_lab.data.catalogue import DataSet
from ibforecast_lab.experiments import local, parts
from ibforecast_lab.experiments import run as runs
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.local import run_missing
from ibforecast_lab.experiments.run import is_current, recipe_of, run

ROWS, LOOK_BACK, HORIZON = 130, 12, 4
TINY = DataSet("Tiny", 2, ROWS, "1h", 6, "ratio", "https://nowhere/tiny.csv", "sha256:0", "none")
RECIPE = """
forecaster = "ibforecast"
[model]
patch_len = 3
budget = 0.5
[model.gate]
width = 4
heads = 2
[model.readout]
width = 8
[train]
epochs = 2
batch = 16
learning_rate = 1e-2
"""
RIVAL = 'forecaster = "dlinear"\n[model]\nkernel = 3\n[train]\nepochs = 1\n'
CELL = Cell("Tiny", HORIZON, "tiny.toml", 7, look_back=LOOK_BACK)
CPU = torch.device("cpu")


def series(seed: int = 0) -> Series:
    random, hour = np.random.default_rng(seed), np.arange(ROWS)
    values = np.sin(hour / 6 * 2 * np.pi)[:, None] + random.normal(size=(ROWS, 2))
    stamps = np.datetime64("2020-01-01", "us") + hour * np.timedelta64(1, "h")
    return Series(values, ("a", "b"), Clock(stamps, Frequency(3600), by_row=True))


@pytest.fixture(autouse=True)
def _a_small_catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(RECIPE)
    Path("rival.toml").write_text(RIVAL)
    monkeypatch.setitem(catalogue.CATALOGUE, "Tiny", TINY)
    serve(monkeypatch, series())
    yield
    parts.series_of.cache_clear()


def serve(monkeypatch: pytest.MonkeyPatch, table: Series) -> None:
    parts.series_of.cache_clear()
    monkeypatch.setattr(catalogue, "load", lambda name: table)


def test_a_record_contains_recipe_data_device_and_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBFORECAST_COMMIT", "c0ffee")
    record, recipe, split = run(CELL, CPU), recipe_of(CELL), Split(91, 104, 130)
    assert record.cell == CELL
    assert record.forecaster == "ibforecast"
    assert record.validation.windows == len(split.starts("validation", LOOK_BACK, HORIZON)) == 10
    assert record.test.windows == record.verified_windows == 23
    assert record.broken_windows == 0
    assert record.epochs == 2
    assert record.best_epoch in (1, 2)
    assert record.parameters == sum(p.numel() for p in recipe.build(0).parameters() if p.requires_grad)
    assert 0 < record.test.open_rate <= record.test.largest_open_rate == 0.5
    assert (record.recipe_sha256, record.data_sha256) == (recipe.sha256, series().sha256)
    assert record.recipe["train"]["learning_rate"] == 1e-2
    assert record.commit == "c0ffee"
    assert record.device.startswith("CPU")
    assert record.versions.keys() == {"python", "ibforecast", "torch", "numpy"}
    assert record.seconds > 0
    assert record.windows_per_second > 0


@torch.no_grad()
def naive_scores(forecaster: torch.nn.Module, windows: Windows, starts: range) -> tuple[float, float]:
    errors = []
    for start in starts:
        window, target = windows.take(torch.tensor([start]))
        errors.append((forecaster(window).values - target.values).double().numpy())
    return float(np.mean(np.square(errors))), float(np.mean(np.abs(errors)))


def test_the_scores_are_those_of_the_selected_weights_on_every_window_of_a_part() -> None:
    record, recipe, table = run(CELL, CPU), recipe_of(CELL), series()
    split = Split(91, 104, 130)
    standardiser = Standardiser.of(table.values[:91], table.channels)
    parts: dict[str, range] = {p: split.starts(p, LOOK_BACK, HORIZON) for p in ("train", "validation", "test")}  # type: ignore[arg-type]
    windows = Windows.of(table, standardiser, 6, parts["train"], LOOK_BACK, HORIZON)
    forecaster = recipe.build(CELL.seed)
    history = train(forecaster, windows, windows.at(parts["validation"]), recipe.train, CELL.seed).history
    assert (record.test.mse, record.test.mae) == pytest.approx(naive_scores(forecaster, windows, parts["test"]))
    validation = naive_scores(forecaster, windows, parts["validation"])
    assert (record.validation.mse, record.validation.mae) == pytest.approx(validation)
    assert record.validation.mse == pytest.approx(min(epoch.validation_error for epoch in history), rel=1e-5)


def test_the_same_cell_gives_the_same_scores_and_another_seed_gives_others() -> None:
    one, again, other = run(CELL, CPU), run(CELL, CPU), run(replace(CELL, seed=8), CPU)
    assert (one.validation, one.test) == (again.validation, again.test)
    assert one.test.mse != other.test.mse


def test_the_budget_of_a_cell_replaces_that_of_its_recipe() -> None:
    record = run(replace(CELL, budget=0.25), CPU)
    assert record.recipe["config"]["budget"] == 0.25
    assert record.test.largest_open_rate == 0.25
    assert record.recipe_sha256 != recipe_of(CELL).sha256


def test_a_rival_is_run_the_same_way_but_has_nothing_to_verify() -> None:
    record = run(replace(CELL, recipe="rival.toml"), CPU)
    assert record.forecaster == "dlinear"
    assert (record.verified_windows, record.broken_windows) == (0, 0)
    assert record.test.open_rate == record.test.largest_open_rate == 1
    assert record.test.windows == 23


def test_training_and_selection_do_not_depend_on_the_test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(CELL, CPU)
    other = series()
    other.values[104:] = 50 * np.random.default_rng(9).normal(size=(26, 2))
    serve(monkeypatch, other)
    after = run(CELL, CPU)
    assert after.validation == before.validation
    assert after.best_epoch == before.best_epoch
    assert after.test.mse > 10 * before.test.mse


def test_a_record_is_current_until_recipe_data_or_version_change(monkeypatch: pytest.MonkeyPatch) -> None:
    record = run(CELL, CPU)
    assert is_current(record, CELL)
    assert not is_current(None, CELL)
    assert not is_current(record, replace(CELL, budget=0.25))
    with monkeypatch.context() as patched:
        patched.setattr(runs, "RESULTS_VERSION", runs.RESULTS_VERSION + 1)
        assert not is_current(record, CELL)
    assert is_current(record, CELL)
    with monkeypatch.context() as patched:
        serve(patched, series(seed=1))
        assert not is_current(record, CELL)
    parts.series_of.cache_clear()
    assert is_current(record, CELL)
    Path("tiny.toml").write_text(RECIPE.replace("epochs = 2", "epochs = 1"))
    assert not is_current(record, CELL)


def test_a_comment_in_the_recipe_outdates_nothing() -> None:
    record = run(CELL, CPU)
    Path("tiny.toml").write_text("# the same\n" + RECIPE)
    assert is_current(record, CELL)


def test_the_ledger_changes_only_the_tuples_of_a_record(tmp_path: Path) -> None:
    record, ledger = run(CELL, CPU), Ledger(tmp_path / "results" / "ledger.jsonl.zst")
    ledger.write(record)
    again = ledger.read(CELL)
    assert again is not None
    assert replace(again, recipe={}) == replace(record, recipe={})
    assert again.recipe == json.loads(json.dumps(record.recipe))
    assert is_current(again, CELL)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """Run the cells of the local engine in this process, which has the small catalogue, and record which were run."""
    ran: list[Cell] = []

    def run_and_record(cell: Cell, device: torch.device, checkpoint: Path) -> Record:
        ran.append(cell)
        return run(cell, device, checkpoint)

    monkeypatch.setattr(workers, "ProcessPoolExecutor", lambda jobs, *_: ThreadPoolExecutor(jobs))
    monkeypatch.setattr(local, "run", run_and_record)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    return ran


def test_only_missing_or_outdated_cells_are_run(tmp_path: Path, in_this_process: list[Cell]) -> None:
    packed, other = tmp_path / "ledger.jsonl.zst", replace(CELL, seed=8)
    assert run_missing([CELL], packed, "cpu") == {}
    assert in_this_process == [CELL]
    assert run_missing([CELL, other], packed, "cpu") == {}
    assert in_this_process == [CELL, other]
    assert run_missing([CELL, other], packed, "cpu") == {}
    assert in_this_process == [CELL, other]
    record = Ledger(packed).read(other)
    assert record is not None
    Ledger(packed).write(replace(record, data_sha256="0" * 64))
    assert run_missing([CELL, other], packed, "cpu") == {}
    assert in_this_process == [CELL, other, other]
    assert {record.cell for record in Ledger(packed).records()} == {CELL, other}


def test_a_cell_has_one_thread_whatever_the_number_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: list[Cell]
) -> None:
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    for jobs in (1, 2):
        cells = [replace(CELL, seed=10 * jobs), replace(CELL, seed=10 * jobs + 1)]
        assert run_missing(cells, tmp_path / "ledger.jsonl.zst", "cpu", jobs) == {}
    assert threads == [1] * 4


def test_failures_are_collected_with_their_reasons_and_the_other_cells_are_run(
    tmp_path: Path, in_this_process: list[Cell]
) -> None:
    packed, reports = tmp_path / "ledger.jsonl.zst", []
    absent, short = replace(CELL, recipe="absent.toml"), replace(CELL, horizon=100)
    failures = run_missing(
        [absent, CELL, short],
        packed,
        "cpu",
        on_cell=lambda cell, record, failure: reports.append((cell, record, failure)),
    )
    assert failures.keys() == {absent, short}
    assert "UsageError" in failures[absent]
    assert "absent.toml" in failures[absent]
    assert "DataError" in failures[short]
    assert "look_back + horizon" in failures[short]
    assert [record.cell for record in Ledger(packed).records()] == [CELL]
    by_cell: dict[Cell, tuple[Any, str]] = {cell: (record, failure) for cell, record, failure in reports}
    assert by_cell[CELL] == (by_cell[CELL][0], "")
    assert by_cell[CELL][0].cell == CELL
    assert by_cell[absent] == (None, failures[absent])


def test_nothing_to_run_is_no_failure(tmp_path: Path, in_this_process: list[Cell]) -> None:
    assert run_missing([], tmp_path / "ledger.jsonl.zst", "cpu") == {}
    assert in_this_process == []


def test_a_damaged_record_is_run_again_as_its_error_says(tmp_path: Path, in_this_process: list[Cell]) -> None:
    ledger = Ledger(tmp_path / "results" / "ledger.jsonl.zst")
    run_missing([CELL], ledger.packed, "cpu")
    ledger.path(CELL).write_text("{")
    assert run_missing([CELL], ledger.packed, "cpu") == {}
    assert in_this_process == [CELL, CELL]


def test_a_killed_cell_continues_from_its_last_finished_epoch(
    tmp_path: Path, in_this_process: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, whole = Ledger(tmp_path / "results" / "ledger.jsonl.zst"), run(CELL, CPU)
    save, error = Checkpoint.save, loop.error_on
    monkeypatch.setattr(Checkpoint, "save", lambda self, path: (save(self, path), 1 / 0))
    assert "ZeroDivisionError" in run_missing([CELL], ledger.packed, "cpu")[CELL]
    assert ledger.records() == []
    monkeypatch.setattr(Checkpoint, "save", save)
    epochs: list[float] = []
    monkeypatch.setattr(loop, "error_on", lambda *arguments: epochs.append(error(*arguments)) or epochs[-1])
    assert run_missing([CELL], ledger.packed, "cpu") == {}
    record = ledger.read(CELL)
    assert record is not None
    assert (record.validation, record.test, record.epochs) == (whole.validation, whole.test, whole.epochs)
    assert len(epochs) == whole.epochs - 1
    assert [path.suffix for path in ledger.folder.iterdir()] == [".json"]


def test_cells_that_fail_in_child_processes_do_not_stop_the_engine(tmp_path: Path) -> None:
    # The small catalogue does not exist in child processes, so both cells fail there, each for its own reason.
    cells = [replace(CELL, recipe="absent.toml", data="ETTh1"), replace(CELL, data="Nowhere")]
    failures = run_missing(cells, tmp_path / "results" / "ledger.jsonl.zst", "cpu", jobs=1)
    assert failures.keys() == set(cells)
    assert "absent.toml" in failures[cells[0]]
    assert "Nowhere" in failures[cells[1]]
    assert Ledger(tmp_path / "results" / "ledger.jsonl.zst").records() == []
