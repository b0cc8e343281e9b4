"""A global fleet: one model for all series, each in its own units, with forecasts and receipts that are verified."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.fleet.test_fleet import Make

from ibforecast import DataError, IBForecaster
from ibforecast.cli.main import run
from ibforecast.fleet import Fleet, together
from ibforecast.fleet.members import Member
from ibforecast.fleet.work import UNSEEN

LENGTHS = {"long": 300, "middle": 160, "short": 70, "shorter": 50, "shortest": 30}


@pytest.fixture(scope="module")
def sales(series: Make) -> dict[str, pd.DataFrame]:
    """Five series of different sizes; two are too short for look-back, horizon and a part to select on."""
    tables = {}
    for seed, (name, rows) in enumerate(LENGTHS.items(), start=1):
        table = series(seed, rows)
        table["y"] = table["y"] * 10.0 ** (seed - 3)
        tables[name] = table
    return tables


@pytest.fixture(scope="module")
def settings() -> IBForecaster:
    return IBForecaster(horizon=12, look_back=48, recipe="sealed", epochs=1, device="cpu")


@pytest.fixture(scope="module")
def fleet(sales: dict[str, pd.DataFrame], settings: IBForecaster, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    made = Fleet(tmp_path_factory.mktemp("global") / "fleet")
    made.fit_global(sales, settings)
    return made


def test_naive_forecasts_repeat_no_rows_of_another_series(
    settings: IBForecaster, series: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def noted(windows: Any, cycles: Any) -> list[Any]:
        tried.extend(cycles)
        return []

    monkeypatch.setattr(together, "naive_forecasts", noted)
    members = [Member(name, pa.Table.from_pandas(series(seed, 400))) for seed, name in enumerate(("one", "two"))]
    together.fit_together(members, settings)
    assert tried == [1, 24], "a week of hours would begin before the look-back"


def test_all_series_share_one_network_and_have_their_own_units(fleet: Fleet, sales: dict[str, pd.DataFrame]) -> None:
    models = {name: fleet.model(name, "cpu") for name in sales}
    assert len({model.fitted.weights for model in models.values()}) == 1
    assert len({model.fitted.weights_sha256 for model in models.values()}) == len(models), "it covers the units"
    for name, model in models.items():
        rows = sales[name]["y"].to_numpy()[: model.fitted.split.train_end]
        assert model.fitted.standardiser.mean == pytest.approx([rows.mean()])
        assert model.fitted.standardiser.std == pytest.approx([rows.std()])
    weights = list(fleet.folder.rglob("weights.safetensors"))
    assert len(weights) == len(sales) + 1
    assert len({path.stat().st_ino for path in weights}) == 1, "shared, not copied"


def test_every_series_that_fills_a_window_is_forecast_explained_and_verified(
    fleet: Fleet, sales: dict[str, pd.DataFrame]
) -> None:
    forecasts = fleet.predict(sales)
    assert set(forecasts.parts) == {"long", "middle", "short", "shorter"}
    assert {outcome.name for outcome in forecasts.outcomes if outcome.state == "failed"} == {"shortest"}
    for name in forecasts.parts:
        model, table = fleet.model(name, "cpu"), sales[name]
        explained = model.explain(table)
        column = forecasts.parts[name]["IBForecast"].to_numpy()
        assert (column == explained.forecast[:, 0]).all()
        assert explained.itemised("y").adds_up
        document = explained.with_receipts().to_json()
        assert model.verify(document, table, exact=True)
        other = fleet.model("long" if name != "long" else "short", "cpu")
        assert not other.verify(document), "the units of another series are not its own"


def test_no_window_crosses_from_one_series_to_another(settings: IBForecaster, series: Make) -> None:
    from ibforecast.core.standardiser import Standardiser
    from ibforecast.data import tables
    from ibforecast.fleet.members import Member
    from ibforecast.fleet.together import Opened, _split, _windows

    opened = []
    for number, rows in enumerate((300, 40, 90)):
        table = series(number, rows)
        table["y"] = float(number)
        source = tables.read(table, settings.layout)
        units = Standardiser(np.zeros(1), np.ones(1))
        opened.append(Opened(Member(str(number), None), source, _split(settings, rows), units, None))
    for windows in _windows(opened, settings, 24):
        assert len(windows) > 0
        for window, target in windows.batches(64):
            seen = np.concatenate([window.values, target.values], axis=1)[..., 0]
            observed = np.concatenate([window.observed, target.observed], axis=1)[..., 0]
            for row, known in zip(seen, observed, strict=True):
                assert len(set(row[known])) == 1
            ahead = window.phase[:, 1:] - window.phase[:, :-1]
            assert set(ahead.unique().tolist()) <= {1, -23}


def test_an_unseen_series_is_forecast_in_its_own_units_and_says_so(fleet: Fleet, series: Make) -> None:
    table = series(9, 120)
    forecasts = fleet.predict({"new": table})
    (outcome,) = forecasts.outcomes
    assert outcome.state == "forecast"
    assert outcome.message == UNSEEN
    model = fleet.model("new", "cpu", table=table)
    assert (forecasts.parts["new"]["IBForecast"].to_numpy() == model.explain(table).forecast[:, 0]).all()
    assert abs(forecasts.parts["new"]["IBForecast"].to_numpy() - 90).max() < 10
    assert model.verify(model.explain(table), table)


def test_the_report_has_the_worst_series_first(fleet: Fleet) -> None:
    report = pd.read_csv(fleet.folder / "fleet.csv")
    ratios = report["ratio"].dropna().to_numpy()
    assert len(ratios) == 3
    assert (np.diff(ratios) <= 0).all()
    assert (report["channel"].dropna() == "y").all()
    assert (report["channel_mae"] / report["channel_naive_mae"]).to_numpy()[:3] == pytest.approx(
        report["ratio"].to_numpy()[:3], rel=1e-4
    )
    assert report["ratio"].to_numpy()[:3] == pytest.approx((report["mae"] / report["naive_mae"]).to_numpy()[:3])


def test_a_global_fleet_is_kept_until_a_table_changes(
    fleet: Fleet, sales: dict[str, pd.DataFrame], settings: IBForecaster, tmp_path: Path
) -> None:
    copied = Fleet(shutil.copytree(fleet.folder, tmp_path / "fleet"))
    again = copied.fit_global(sales, settings, on_epoch=_never)
    assert {outcome.state for outcome in again} == {"kept"}
    other = sales["short"].copy()
    other.loc[0, "y"] += 1.0
    changed = copied.fit_global({**sales, "short": other}, settings)
    assert {outcome.state for outcome in changed} == {"fitted"}


def test_a_global_fit_that_was_stopped_continues_to_the_same_weights(
    sales: dict[str, pd.DataFrame], settings: IBForecaster, tmp_path: Path
) -> None:
    twice, seen = settings.replace(epochs=2), list[int]()
    whole, stopped = Fleet(tmp_path / "whole"), Fleet(tmp_path / "stopped")
    whole.fit_global(sales, twice)
    stopped.fit_global(sales, twice, until=lambda: True)
    assert stopped.unfinished
    assert stopped.model("long", "cpu").fitted.summary.stopped
    again = stopped.fit_global(sales, twice, on_epoch=lambda epoch, epochs, outcome: seen.append(epoch))
    assert {outcome.state for outcome in again} == {"fitted"}
    assert not stopped.unfinished
    assert seen[-1] == 2
    first, second = (each.model("long", "cpu").fitted.weights_sha256 for each in (whole, stopped))
    assert first == second
    assert {outcome.state for outcome in stopped.fit_global(sales, twice, on_epoch=_never)} == {"kept"}


def _never(*_: Any) -> None:
    raise AssertionError("nothing must be trained")


def test_a_series_of_another_kind_is_reported_and_stops_nothing(
    sales: dict[str, pd.DataFrame], series: Make, settings: IBForecaster, tmp_path: Path
) -> None:
    daily = series(7, 100).assign(ds=pd.date_range("2023-01-01", periods=100, freq="D"))
    outcomes = Fleet(tmp_path / "fleet").fit_global({**sales, "daily": daily, "empty": daily.head(0)}, settings)
    failed = {outcome.name: outcome.message for outcome in outcomes if outcome.state == "failed"}
    assert set(failed) == {"daily", "empty"}
    assert "same frequency" in failed["daily"]


def test_series_without_a_single_window_are_refused(series: Make, settings: IBForecaster, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must contain a window"):
        Fleet(tmp_path / "fleet").fit_global({"a": series(1, 9)}, settings)


def exit_code(arguments: list[str]) -> Any:
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    return ended.value.code


def test_the_command_line_fits_and_forecasts_a_long_table(
    sales: dict[str, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = pd.concat(table.assign(unique_id=name) for name, table in sales.items())
    long.to_csv(tmp_path / "sales.csv", index=False)
    fleet = str(tmp_path / "fleet")
    options = ["--horizon", "12", "--look-back", "48", "--sealed", "--epochs", "1", "--global", "--out", fleet]
    assert exit_code(["fleet", "fit", str(tmp_path / "sales.csv"), *options]) == 0
    said = capsys.readouterr().err
    assert "worst first: " in said
    forecasts = Fleet(fleet).predict(tmp_path / "sales.csv")
    assert set(forecasts.table()["unique_id"]) == {"long", "middle", "short", "shorter"}
