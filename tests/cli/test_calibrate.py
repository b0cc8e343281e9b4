"""ibforecast calibrate: add intervals to a model and leave everything else unchanged."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.evaluate.conformal import FEW_WINDOWS
from ibforecast.zoo.saved import INTERVALS

Call = Callable[..., Any]


@pytest.fixture
def uncalibrated(desk: Any, tmp_path: Path) -> Path:
    """A model without intervals, in a folder with another file."""
    folder = tmp_path / "model"
    replace(IBForecaster.load(desk.model).fitted, calibration=None).save(folder)
    (folder / "notes").mkdir()
    (folder / "notes" / "dear.txt").write_text("do not lose me")
    return folder


def test_a_model_without_intervals_gets_those_that_fit_would_have_made(
    desk: Any, call: Call, uncalibrated: Path
) -> None:
    assert call("predict", uncalibrated, desk.table, "--level", 80).code == 2
    outcome = call("calibrate", uncalibrated, desk.table, "--device", "cpu")
    assert (outcome.code, outcome.out) == (0, f"{uncalibrated}\n")
    assert outcome.err == "calibrated on 29 windows (validation): intervals of up to 96 %\n"
    assert (uncalibrated / INTERVALS).read_bytes() == (desk.model / INTERVALS).read_bytes()
    expected = call("predict", desk.model, desk.table, "--level", 80)
    assert call("predict", uncalibrated, desk.table, "--level", 80).out == expected.out


def test_other_files_in_the_folder_are_left_unchanged(desk: Any, call: Call, uncalibrated: Path) -> None:
    assert call("calibrate", uncalibrated, desk.table).code == 0
    assert (uncalibrated / "notes" / "dear.txt").read_text() == "do not lose me"
    assert [path.name for path in uncalibrated.parent.iterdir()] == ["model"]


def test_a_later_table_is_used_as_a_whole_and_reported_as_json(desk: Any, call: Call, tmp_path: Path) -> None:
    folder, later = tmp_path / "model", tmp_path / "later.csv"
    shutil.copytree(desk.model, folder)
    table = pd.read_csv(desk.table)
    table.assign(when=pd.date_range("2024-01-01", periods=len(table), freq="h")).to_csv(later, index=False)
    before = [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]
    refused = call("calibrate", folder, later)
    assert refused.code == 2
    assert "must come from the table the model was fitted on" in refused.err
    assert [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())] == before

    document = call("calibrate", folder, later, "--split", "all", "--json").document
    assert (document["model"], document["split"], document["windows"]) == (str(folder), "all", 341)
    calibration = IBForecaster.load(folder).fitted.calibration
    assert calibration is not None
    assert (calibration.windows, calibration.since) == (document["windows"], document["since"])


def test_training_rows_cannot_be_chosen(desk: Any, call: Call) -> None:
    outcome = call("calibrate", desk.model, desk.table, "--split", "train")
    assert outcome.code == 2
    assert "'train', which is not one of" in outcome.err


def test_a_folder_without_a_model_is_refused_and_left_unchanged(desk: Any, call: Call, tmp_path: Path) -> None:
    assert call("calibrate", tmp_path, desk.table).code == 5
    assert list(tmp_path.iterdir()) == []


def test_few_windows_are_warned_of_by_fit_and_by_calibrate(desk: Any, call: Call, tmp_path: Path) -> None:
    table, folder = tmp_path / "short.csv", tmp_path / "model"
    table.write_text("\n".join(desk.table.read_text().splitlines()[:171]) + "\n")
    words = ("--horizon", 12, "--look-back", 48, "--split", "0.7,0.1,0.2", "--epochs", 1, "--sealed", "--device", "cpu")
    fitted = call("fit", table, *words, "--out", folder)
    calibration = IBForecaster.load(folder).fitted.calibration
    assert calibration is not None
    assert calibration.windows < FEW_WINDOWS
    assert calibration.warning in fitted.err.splitlines()
    assert calibration.warning in call("calibrate", folder, table).err.splitlines()
