"""The table of errors without the last, incomplete test batch."""

from dataclasses import replace

import pytest

from ibforecast_lab.experiments.ledger import Cell, Record, Scores
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import NOT_RUN
from ibforecast_lab.experiments.tables import TABLES

CELL = Cell("ETTh2", 96, "ridge", 2024)


def record(cell: Cell, mse: float, kept: dict[int, float]) -> Record:
    scores = Scores(10, mse, 2 * mse, 1.0, 1.0)
    rows = [
        {"measure": "dropped_batch", "batch": batch, "windows": 8, "mse": value, "mae": 2 * value}
        for batch, value in kept.items()
    ]
    numbers, proof = (10, 0, 1, 1, 1, 1.0, 10.0), ("r", "d", 1, "c", "CPU", {}, "now")
    return Record(cell, "ridge", scores, scores, *numbers, {"config": {}}, *proof, rows)


def test_a_row_compares_the_errors_of_complete_batches_with_those_of_all_windows() -> None:
    sheet = TABLES["dropped_batch"]([record(CELL, 0.4, {32: 0.4, 128: 0.3})])
    (row,) = sheet.rows
    assert row["mse_32_change"] == 0
    assert row["mse_128_change"] == row["mae_128_change"] == pytest.approx(-0.25)
    assert row["windows_128"] == 8
    assert row["mse_2048"] is row["mse_2048_change"] is None
    line = next(line for line in sheet.body if line[:3] == ["ETTh2", "96", "ridge"])
    assert line[3:8] == ["0.400", "+0.0%", "-25.0%", "–", "–"]


def test_a_run_without_these_errors_has_no_row_even_if_another_record_of_it_has_them() -> None:
    old = record(replace(CELL, study="explanations"), 0.9, {})
    other = record(replace(CELL, seed=2025), 0.9, {})
    sheet = TABLES["dropped_batch"]([record(CELL, 0.4, {32: 0.3}), old, other])
    (row,) = sheet.rows
    assert (row["mse"], row["seeds"]) == (0.4, 1)


def test_a_model_with_all_cells_has_a_mean_whose_change_is_that_of_mean_errors() -> None:
    cells = [cell for cell in PLANS["dropped_batch"].cells() if cell.recipe == "ridge"]
    assert not [row for row in TABLES["dropped_batch"]([record(CELL, 0.4, {32: 0.3})]).rows if row["data"] == "Overall"]
    records = [record(cell, 0.4 + 0.1 * place, {32: 0.4, 128: 0.3}) for place, cell in enumerate(cells)]
    records[0] = record(cells[0], 0.4, {32: 0.4})
    (row,) = [row for row in TABLES["dropped_batch"](records).rows if row["data"] == "Overall"]
    assert row["mse"] == pytest.approx(0.4 + 0.1 * 9.5)
    assert row["mse_32_change"] == pytest.approx(0.4 / 1.35 - 1)
    assert row["mse_128_change"] is None


def test_every_planned_line_is_printed_and_lines_without_a_run_say_so() -> None:
    sheet = TABLES["dropped_batch"]([])
    assert len(sheet.body) == len(PLANS["dropped_batch"].cells()) == 60
    assert all(set(line[3:]) == {NOT_RUN} for line in sheet.body)


def test_runs_at_another_look_back_are_left_out_of_tables_about_the_protocol() -> None:
    records = [record(CELL, 0.4, {32: 0.3}), record(replace(CELL, look_back=336), 0.1, {32: 0.1})]
    (row,) = TABLES["dropped_batch"](records).rows
    assert row["mse"] == 0.4
    assert [row["mse"] for row in TABLES["per_horizon"](records).rows if row["model"] == "ridge"] == [0.4]
