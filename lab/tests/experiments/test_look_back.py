"""Longer look-backs: their cells, how far back they read, the table and the figure."""

import pytest
import torch

from ibforecast.core.budget import allowance
from ibforecast_lab.experiments.figures import drawn
from ibforecast_lab.experiments.ledger import Cell, Record, Scores
from ibforecast_lab.experiments.plans import LENGTHENED, PLANS
from ibforecast_lab.experiments.studies.reach import reach
from ibforecast_lab.experiments.tables import TABLES


def record(data: str, look_back: int, mse: float, seed: int = 2024) -> Record:
    cell = Cell(data, 96, "default", seed, 19.2 / look_back, look_back, "reach")
    scores = Scores(10, mse, 2 * mse, 19.2 / look_back, 0.2)
    rows = [{"measure": "reach", "values": 134.0, "beyond": 1 - 96 / look_back}]
    numbers, proof = (10, 0, 1, 1, 1, 1.0, 10.0), ("r", "d", 1, "c", "CPU", {}, "now")
    return Record(cell, "ibforecast", scores, scores, *numbers, {"config": {"budget": 0.2}}, *proof, rows)


RECORDS = [
    record("ETTh1", 96, 0.4),
    record("ETTh1", 96, 0.2, 2025),
    record("ETTh1", 336, 0.27),
    record("ETTh2", 336, 1.0),
]


def test_every_look_back_may_read_the_same_number_of_values() -> None:
    cells = PLANS["look_back"].cells()
    assert {cell.data for cell in cells} == set(LENGTHENED)
    assert {cell.look_back for cell in cells} == {96, 192, 336, 720}
    assert {allowance(cell.budget or 0, cell.look_back * 7) for cell in cells} == {134}
    assert len(cells) == len(LENGTHENED) * 4 * 3


def test_a_row_is_compared_with_the_look_back_of_the_protocol() -> None:
    rows = {(row["data"], row["look_back"]): row for row in TABLES["look_back"](RECORDS).rows}
    assert rows["ETTh1", 336]["mse_change"] == pytest.approx(-0.1)
    assert rows["ETTh1", 96]["mse_change"] == 0
    assert rows["ETTh1", 96]["seeds"] == 2
    assert rows["ETTh2", 336]["mse_change"] is None


def test_the_smallest_validation_error_is_bold_and_cells_without_a_run_say_so() -> None:
    lines = {(line[0], line[2]): line for line in TABLES["look_back"](RECORDS).body}
    assert lines["ETTh1", "336"][7] == "**0.270**"
    assert lines["ETTh1", "96"][7].startswith("0.300")
    assert lines["ETTh1", "720"][8] == "not run"


def test_the_figure_is_drawn_from_the_records_that_exist() -> None:
    picture = drawn("look_back", RECORDS, "svg").decode()
    assert "ETTh1" in picture
    assert "not run: ETTh2" in picture


def test_the_reach_counts_values_older_than_the_protocols_look_back() -> None:
    masks = torch.zeros(2, 48, 3, dtype=torch.bool)
    masks[:, 0, 0] = True  # steps 0 to 3 of 192
    masks[:, 23, 1] = True  # the last patch that is older
    masks[:, 24, 1] = True  # the first patch of the protocol's look-back
    masks[0, 47, 2] = True
    assert reach(masks, 192) == {"values": pytest.approx(4 * 3.5), "beyond": pytest.approx(4 / 7)}
