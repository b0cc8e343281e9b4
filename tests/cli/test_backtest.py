"""The verbs for intervals and backtests: their output, and what they refuse."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ibforecast import IBForecaster

Call = Callable[..., Any]


@pytest.mark.parametrize("words", [(), ("--adaptive",)], ids=["plain", "adaptive"])
def test_a_forecast_has_the_requested_intervals(desk: Any, call: Call, words: tuple[str, ...]) -> None:
    outcome = call("predict", desk.model, desk.table, "--level", 80, "--level", 90, *words, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    rows = outcome.document["forecast"]
    expected = IBForecaster.load(desk.model).predict(desk.table, level=[80, 90], adaptive=bool(words))
    assert [row["load-lo-80"] for row in rows] == expected["load-lo-80"].tolist()
    assert list(rows[0]) == expected.columns.tolist()


@pytest.mark.parametrize("name", ["past.csv", "past.csv.gz", "past.parquet"])
def test_a_backtest_is_written_in_the_format_of_the_suffix(desk: Any, call: Call, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    outcome = call("backtest", desk.model, desk.table, "--windows", 3, "--step", 5, "--level", 80, "--out", path)
    assert (outcome.code, outcome.out) == (0, f"{path}\n")
    written = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path)
    expected = IBForecaster.load(desk.model).cross_validation(desk.table, 3, 5, level=80)
    assert written.columns.tolist() == expected.columns.tolist()
    assert pd.to_datetime(written["cutoff"]).tolist() == expected["cutoff"].tolist()
    assert all(map(math.isclose, written["IBForecast"], expected["IBForecast"]))


def test_without_an_output_file_a_backtest_is_csv_on_stdout(desk: Any, call: Call) -> None:
    outcome = call("backtest", desk.model, desk.table)
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "")
    assert lines[0] == "unique_id,ds,cutoff,y,IBForecast"
    assert len(lines) == 1 + 3 * 12


def test_a_backtest_as_json_is_one_document(desk: Any, call: Call) -> None:
    document = call("backtest", desk.model, desk.table, "--windows", 2, "--json").document
    assert len(document["backtest"]) == 2 * 3 * 12
    assert document["backtest"][0]["cutoff"] == "2023-01-16 15:00:00"


def test_a_daily_table_is_forecast_and_backtested_by_date(desk: Any, call: Call, tmp_path: Path) -> None:
    days = pd.read_csv(desk.table).assign(when=pd.date_range("2023-01-01", periods=400, freq="D"))
    days.to_csv(tmp_path / "days.csv", index=False)
    model = tmp_path / "model"
    assert call("fit", tmp_path / "days.csv", *desk.settings, "--epochs", 1, "--out", model).code == 0
    shown = call("predict", model, tmp_path / "days.csv")
    assert (shown.code, shown.out.splitlines()[1].split(",")[0]) == (0, "2024-02-05")
    outcome = call("predict", model, tmp_path / "days.csv", "--json")
    assert outcome.document["forecast"][0]["when"] == "2024-02-05"
    past = call("backtest", model, tmp_path / "days.csv", "--json")
    assert past.document["backtest"][0]["cutoff"] == "2024-01-23"


@pytest.mark.parametrize(("words", "refit"), [((), 0), (("--refit",), 1), (("--refit", "2"), 2)])
def test_refit_takes_an_optional_number(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], refit: int
) -> None:
    calls: list[Any] = []
    backtest = IBForecaster.load(desk.model).cross_validation(desk.table)
    monkeypatch.setattr(
        IBForecaster, "cross_validation", lambda *arguments, **named: calls.append(arguments) or backtest
    )
    assert call("backtest", desk.model, desk.table, "--windows", 4, *words).code == 0
    (arguments,) = calls
    assert arguments[2:] == (4, None, refit, None)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("predict", "--level", "100"), 2, "a level must be a percentage from 1 to 99"),
        (("predict", "--level", "0.8"), 2, "hint: try 80"),
        (("predict", "--adaptive"), 2, "intervals that adapt must have a level"),
        (("backtest", "--windows", "0"), 2, "n_windows must be at least 1"),
        (("backtest", "--windows", "20"), 2, "not trained on"),
        (("backtest", "--windows", "99"), 3, "rows before its first cutoff"),
        (("backtest", "--out", "past.xls"), 2, "must end in .csv"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_arguments_exit_with_the_code_of_their_kind(
    desk: Any, call: Call, words: tuple[str, ...], code: int, message: str
) -> None:
    verb, *options = words
    outcome = call(verb, desk.model, desk.table, *options)
    assert outcome.code == code
    assert message in outcome.err
    assert "hint: " in outcome.err
