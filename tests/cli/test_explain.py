"""ibforecast explain: the picture of a channel and step, and the forecast as a workbook of formulas."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibforecast import IBForecaster

Call = Callable[..., Any]
ADDITIVE = 'extends = "additive"\n[model.readout]\nwidth = 8\n[train]\nepochs = 1\nbatch = 64\n'


@pytest.fixture(scope="module")
def additive(desk: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("additive")
    (folder / "tiny.toml").write_text(ADDITIVE)
    IBForecaster(12, 48, recipe=str(folder / "tiny.toml"), device="cpu").fit(desk.table).save(folder / "model")
    return folder / "model"


def test_a_picture_is_of_the_channel_and_the_step(desk: Any, call: Call, tmp_path: Path) -> None:
    path = tmp_path / "why.svg"
    outcome = call("explain", desk.model, desk.table, "--channel", "wind", "--step", 3, "--plot", path)
    assert (outcome.code, outcome.err) == (0, f"picture drawn at {path}\n")
    explained = IBForecaster.load(desk.model).explain(desk.table)
    assert f">What adds up to the forecast of wind for {explained.times[48 + 2]}" in path.read_text()
    assert path.read_text() == explained.plot(tmp_path / "again.svg", "wind", 3).read_text()


def test_a_picture_is_of_the_mean_by_default(desk: Any, call: Call, tmp_path: Path) -> None:
    path = tmp_path / "why.svg"
    assert call("explain", desk.model, desk.table, "--channel", "heat", "--plot", path).code == 0
    assert ">What adds up to the mean forecast of heat" in path.read_text()


def test_a_step_after_the_horizon_is_refused(desk: Any, call: Call, tmp_path: Path) -> None:
    outcome = call("explain", desk.model, desk.table, "--step", 13, "--plot", tmp_path / "why.png")
    assert outcome.code == 2
    assert "steps ahead from 1 to 12 (got 13)" in outcome.err


def test_the_forecast_of_an_additive_model_is_written_as_formulas(
    desk: Any, call: Call, additive: Path, tmp_path: Path
) -> None:
    openpyxl, path = pytest.importorskip("openpyxl"), tmp_path / "why.xlsx"
    outcome = call("explain", additive, desk.table, "--channel", "wind", "--step", 2, "--spreadsheet", path)
    assert (outcome.code, outcome.err) == (0, f"spreadsheet written to {path}\n")
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["About", "Forecast", "Read", "Scales", "1 wind"]
    expected = IBForecaster.load(additive).explain(desk.table).to_spreadsheet(tmp_path / "same.xlsx", ["wind"], [2])
    cells = [[cell.value for cell in row] for row in book["1 wind"].iter_rows()]
    assert cells == [[cell.value for cell in row] for row in openpyxl.load_workbook(expected)["1 wind"].iter_rows()]


def test_a_spreadsheet_of_a_model_that_is_not_additive_is_refused_before_the_table_is_read(
    desk: Any, call: Call, tmp_path: Path
) -> None:
    outcome = call("explain", desk.model, tmp_path / "no-table.csv", "--spreadsheet", tmp_path / "why.xlsx")
    assert outcome.code == 2
    assert "a spreadsheet needs a sealed model whose readout is additive (got readout 'phase'" in outcome.err
    assert "recipe" in outcome.err
    assert not (tmp_path / "why.xlsx").exists()


def test_a_spreadsheet_of_another_ending_or_without_openpyxl_is_refused_before_any_work(
    desk: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("explain", tmp_path / "no-model", desk.table, "--spreadsheet")
    assert "a spreadsheet's file must end in .xlsx (got 'why.csv')" in call(*words, tmp_path / "why.csv").err
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "pip install 'ibforecast[spreadsheet]'" in call(*words, tmp_path / "why.xlsx").err


def test_the_mean_that_the_hint_of_a_wrong_step_proposes_is_taken(desk: Any, call: Call) -> None:
    wrong = call("explain", desk.model, desk.table, "--step", 0)
    assert (wrong.code, wrong.err.splitlines()[1]) == (2, 'hint: try "mean"')
    usual = call("explain", desk.model, desk.table, "--channel", "wind")
    assert call("explain", desk.model, desk.table, "--channel", "wind", "--step", "mean").out == usual.out
    words = ("compare", desk.model, desk.table, "--channel", "wind")
    assert call(*words, "--step", "mean").out == call(*words).out
    assert "got 'newest', which is not a valid integer" in call(*words, "--step", "newest").err
