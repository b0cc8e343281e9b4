"""The effect of the factors, measured on a network whose factors are known, and shown in a table."""

from dataclasses import replace
from math import isclose
from pathlib import Path

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.evaluate.accuracy import accuracy
from ibforecast_lab.data import drivers
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record
from ibforecast_lab.experiments.parts import DRIVERS, Parts, fingerprint_of, parts_of
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.studies import STUDIES
from ibforecast_lab.experiments.tables import TABLES
from ibforecast_lab.networks.factors import FactorForecast

CELL = Cell(DRIVERS, 24, "factors", 2024, study="factors")
LEDGER = Ledger(Path(__file__).parents[3] / "results" / "ledger.jsonl.zst")


@pytest.fixture(scope="module")
def parts() -> Parts:
    return parts_of(CELL, torch.device("cpu"), with_calendar=False)


@pytest.fixture
def forecaster() -> FactorForecast:
    made = recipe_of(CELL).build(CELL.seed)
    assert isinstance(made, FactorForecast)
    return made.eval()


def measured(seed: int, auroc: tuple[float, ...] = (), cell: Cell = CELL) -> Record:
    areas = {"alignment": 0.9, "precision": 0.5, "recall": 1.0}
    rows = [
        {"measure": "worth", "mse_zeroed": 1.0, "base_size": 0.5, "factor_sizes": [0.1, 0.2, 0.3]},
        *({"measure": "driver", "driver": n, "auroc": value, **areas} for n, value in enumerate(auroc, 1)),
    ]
    run = Cell(cell.data, cell.horizon, cell.recipe, seed, study="factors")
    blank = LEDGER.read(CELL)
    assert blank is not None
    return replace(blank, cell=run, test=replace(blank.test, mse=0.2 + seed / 100), measurements=rows)


def test_the_drivers_are_a_data_set_with_planted_steps(parts: Parts) -> None:
    _, _, truth = drivers.splits()
    assert parts.support is not None
    assert torch.equal(parts.support, torch.from_numpy(truth.support.any(axis=1)))
    assert [len(part) for part in (parts.training, parts.validation, parts.test)] == [4000, 1000, 1000]
    assert fingerprint_of(DRIVERS) != fingerprint_of("framed-pulse")


def test_factors_that_add_nothing_have_no_effect(forecaster: FactorForecast, parts: Parts) -> None:
    worth, *by_driver = STUDIES["factors"](forecaster, parts, CELL)
    assert isclose(worth["mse_zeroed"], accuracy(forecaster, parts.test).mse, rel_tol=1e-6)
    assert worth["factor_sizes"] == [0.0, 0.0, 0.0]
    assert worth["base_size"] > 0
    assert [row["driver"] for row in by_driver] == [1, 2, 3]
    assert [row["alignment"] for row in by_driver] == [0.0, 0.0, 0.0]


def test_true_loadings_are_recognised_and_the_error_changes_when_they_are_zeroed(
    forecaster: FactorForecast, parts: Parts
) -> None:
    truth = torch.from_numpy(drivers.DriverConstants().loading).float()
    before, *_ = STUDIES["factors"](forecaster, parts, CELL)
    with torch.no_grad():
        forecaster.readout.loading.copy_(truth)
    worth, *by_driver = STUDIES["factors"](forecaster, parts, CELL)
    assert min(worth["factor_sizes"]) > 0
    assert worth["mse_zeroed"] == before["mse_zeroed"]
    assert accuracy(forecaster, parts.test).mse != worth["mse_zeroed"]
    assert len({row["alignment"] for row in by_driver}) == 3
    assert all(0 <= row[name] <= 1 for row in by_driver for name in ("auroc", "precision", "recall"))


def test_no_driver_is_searched_in_real_windows(forecaster: FactorForecast, parts: Parts) -> None:
    elsewhere = Cell("framed-pulse", 24, "factors", 1, study="factors")
    (worth,) = STUDIES["factors"](forecaster, parts, elsewhere)
    assert worth["measure"] == "worth"


def test_a_model_without_factors_is_refused(parts: Parts) -> None:
    plain = recipe_of(Cell(DRIVERS, 24, "paper-sparse", 1)).build(1)
    with pytest.raises(UsageError, match="needs a model with factors"):
        STUDIES["factors"](plain, parts, CELL)


def test_the_table_shows_the_worst_driver_and_what_was_not_run() -> None:
    sheet = TABLES["factors"]([measured(1, (0.99, 0.7, 1.0)), measured(3, (0.8, 1.0, 1.0))])
    (row,) = sheet.rows
    assert (row["seeds"], row["auroc"], row["mse"]) == (2, 0.7, pytest.approx(0.22))
    assert (row["mse_zeroed"], row["factor_size"]) == (1.0, pytest.approx(0.2))
    shown = {(line[0], line[2]): dict(zip(sheet.header, line, strict=True)) for line in sheet.body}
    assert shown["drivers", "factors"]["AUROC"] == "0.700"
    assert shown["drivers", "factors+no-diversity"]["MSE"] == "not run"
    assert shown["ETTh1", "factors"]["MSE"] == "not run"
    assert len(shown) == len({(cell.data, cell.recipe) for cell in PLANS["factors"].cells()})


def test_on_real_data_nothing_was_planted() -> None:
    sheet = TABLES["factors"]([measured(1, cell=Cell("ETTh1", 96, "factors", 1))])
    (row,) = sheet.rows
    assert (row["auroc"], row["alignment"], row["precision"], row["recall"]) == (None, None, None, None)
    line = next(dict(zip(sheet.header, line, strict=True)) for line in sheet.body if line[0] == "ETTh1")
    assert (line["AUROC"], line["size of a factor"]) == ("–", "0.200")
