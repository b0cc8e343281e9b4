"""The tasks of fev-bench as cells, studies and a table."""

from typing import Any

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.series import Series
from ibforecast_lab.data import catalogue, fev
from ibforecast_lab.data.catalogue import DataSet
from ibforecast_lab.data.fev import FEV, TASKS, FevItem
from ibforecast_lab.experiments import parts
from ibforecast_lab.experiments.ledger import Cell, Record, Scores
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.run import run
from ibforecast_lab.experiments.tables import TABLES

ROWS, HORIZON, CYCLE = 400, 4, 6
TINY = DataSet("Tiny", 2, ROWS, "1h", CYCLE, "ratio", "https://nowhere/tiny.csv", "sha256:0", "none")
ITEM = FevItem("ETT_1H", TINY, HORIZON)
LOSSES = ("absolute_error", "quantile_loss", "absolute_value", "seasonal_error")


@pytest.fixture
def series(monkeypatch: pytest.MonkeyPatch) -> Any:
    random, hour = np.random.default_rng(0), np.arange(ROWS)
    values = 50 + np.sin(hour / CYCLE * 2 * np.pi)[:, None] + 0.1 * random.normal(size=(ROWS, 2))
    values[30:33, 1] = fev.SENTINEL
    stamps = np.datetime64("2020-01-01", "us") + hour * np.timedelta64(1, "h")
    table = Series(values, ("a", "b"), Clock(stamps, Frequency(3600), by_row=True))
    monkeypatch.setitem(catalogue.CATALOGUE, "Tiny", TINY)
    monkeypatch.setitem(FEV, ITEM.name, ITEM)
    for module in (catalogue, fev):
        monkeypatch.setattr(module, "load", lambda name: table)
    parts.series_of.cache_clear()
    yield table
    parts.series_of.cache_clear()


def test_the_study_measures_the_last_windows_in_the_units_of_the_table(series: Series) -> None:
    record = run(Cell("Tiny-fev", HORIZON, "seasonal-naive", 1, look_back=12, study="fev"), torch.device("cpu"))
    rows = [row for row in record.measurements if row["measure"] == "fev"]
    assert [row["window"] for row in rows] == list(range(20))
    assert record.test.windows == 20
    first = ROWS - 20 * HORIZON
    steps = np.arange(first, first + HORIZON)
    expected = np.abs(series.values[steps] - series.values[steps - CYCLE]).mean(axis=0)
    assert rows[0]["absolute_error"] == pytest.approx(expected, rel=1e-3)
    assert rows[0]["absolute_value"] == pytest.approx(np.abs(series.values[steps]).mean(axis=0), rel=1e-3)
    with_sentinels = np.abs(series.values[CYCLE:first] - series.values[: first - CYCLE]).mean(axis=0)
    assert rows[0]["seasonal_error"] == pytest.approx(with_sentinels, rel=1e-3)
    assert with_sentinels[1] > 10 * with_sentinels[0]


def test_a_failed_sensor_is_missing_in_training(series: Series) -> None:
    values = parts.series_of("Tiny-fev").values
    assert np.isnan(values).sum() == 3
    assert np.isnan(values[30:33, 1]).all()


def record(data: str, seed: int, error: float, look_back: int = 96) -> Record:
    item = FEV[data]
    rows = [
        {"measure": "fev", "task": item.task, "window": number} | {name: [error, 2.0] for name in LOSSES}
        for number in range(20)
    ]
    cell = Cell(data, item.horizon, "default", seed, look_back=look_back, study="fev")
    scores, proof = Scores(20, 0.1, 0.2, 0.2, 0.2), ("r", "d", 1, "c", "CPU", {}, "now")
    return Record(cell, "ibforecast", scores, scores, 10, 0, 1, 1, 1, 30.0, 10.0, {"config": {}}, *proof, rows)


def test_a_task_with_two_items_has_a_score_only_if_both_were_run() -> None:
    one, other = (item.name for item in TASKS["ETT_1H"])
    assert not [row for row in TABLES["fev"]([record(one, 1, 1.0)]).rows if row["source"] == "ledger"]
    sheet = TABLES["fev"]([record(one, 1, 1.0), record(other, 1, 3.0), record(one, 2, 1.0)])
    (row,) = [row for row in sheet.rows if row["source"] == "ledger"]
    assert (row["task"], row["look_back"], row["seeds"], row["seconds"]) == ("ETT_1H", 96, 1, 60.0)
    assert row["MASE"] == 1.0
    assert row["WAPE"] == 1.0


def test_the_lines_of_a_task_are_sorted_and_name_what_was_not_run() -> None:
    body = [line for line in TABLES["fev"]([]).body if line[0] == "ETT_15T"]
    published = [float(line[6]) for line in body if line[2] == "published"]
    assert published == sorted(published)
    assert len(published) == 12
    assert [line[1:4] for line in body if line[6] == "not run"][:3] == [
        ["default", "–", str(n)] for n in (96, 336, 720)
    ]
    assert {cell.data for cell in PLANS["fev"].cells()} == set(FEV)
