"""Sealed models as a user meets them: fitted, listing what they read, and used on a table with nothing else."""

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from ibforecast import DataError, IBForecaster, UsageError
from ibforecast.cli.main import run
from ibforecast.evaluate.conformal import scores
from ibforecast.fleet import Fleet
from ibforecast.report import to_html

LOOK_BACK, HORIZON = 48, 6
RECIPE = """
[model]
patch_len = 2
sealed = true
frame = "seasonal"
[model.gate]
attention = "none"
recent = 2
every = 4
[model.readout]
width = 16
cross_channel = true
[model.objective]
loss = "frequency"
[train]
epochs = 2
batch = 64
"""


def make_table(rows: int = 400, freq: str = "h", zone: str | None = None) -> pd.DataFrame:
    random, hour = np.random.default_rng(0), np.arange(rows)
    values = (
        np.sin(2 * np.pi * hour / 24)[:, None] * (5.0, 1.0, 30.0) + random.normal(size=(rows, 3)) + (0.0, 40.0, 7.0)
    )
    when = pd.date_range("2023-03-01", periods=rows, freq=freq, tz=zone)
    return pd.DataFrame({"when": when, "load": values[:, 0], "wind": values[:, 1], "heat": values[:, 2]})


def fit(folder: Path, table: pd.DataFrame, **settings: Any) -> IBForecaster:
    recipe = folder / "tiny.toml"
    recipe.write_text(RECIPE)
    settings = {"recipe": str(recipe), "cycle": 24, "sealed": True, "device": "cpu"} | settings
    return IBForecaster(HORIZON, LOOK_BACK, **settings).fit(table)


def only_what_is_read(model: IBForecaster, table: pd.DataFrame, budget: float | None = None) -> pd.DataFrame:
    """Return the last window of a table with every cell empty that the model does not read."""
    window = table[-LOOK_BACK:].reset_index(drop=True)
    kept = {(LOOK_BACK - 1 - row.steps_back, row.channel) for row in model.reads(budget=budget).itertuples()}
    for channel in window.columns[1:]:
        window.loc[[step for step in range(LOOK_BACK) if (step, channel) not in kept], channel] = np.nan
    return window


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame) -> IBForecaster:
    return fit(tmp_path_factory.mktemp("sealed"), table)


@pytest.mark.parametrize(("patch_len", "unit"), [(1, "values"), (2, "tokens")])
def test_the_words_count_what_was_read_and_carry_no_bits(
    tmp_path: Path, table: pd.DataFrame, patch_len: int, unit: str
) -> None:
    explained = fit(tmp_path, table, patch_len=patch_len, epochs=1).explain(table)
    _, words, *_ = explained.in_words(full=True).splitlines()
    assert words.startswith(f"It read {explained.open_count} of {explained.mask.size} {unit}: ")
    assert words.endswith(", in places that are the same for every window.")


def test_a_table_with_only_the_read_cells_gives_the_same_forecast(model: IBForecaster, table: pd.DataFrame) -> None:
    sparse = only_what_is_read(model, table)
    assert sparse.iloc[:, 1:].notna().to_numpy().mean() <= 0.2
    pd.testing.assert_frame_equal(model.predict(sparse), model.predict(table), check_exact=True)
    explained = model.explain(sparse)
    assert "Unconditionally" in explained.in_words(full=True)
    verification = model.verify(explained, sparse, exact=True)
    assert verification
    assert verification.checks[-1].name == "unread"


def test_a_model_for_any_budget_lists_what_it_reads_at_each(tmp_path: Path, table: pd.DataFrame) -> None:
    (tmp_path / "any.toml").write_text(RECIPE.replace("[model.gate]", "[model.gate]\nany_budget = true"))
    model = fit(tmp_path, table, recipe=str(tmp_path / "any.toml"), epochs=1)
    for budget in (0.1, 0.6):
        sparse = only_what_is_read(model, table, budget)
        whole, part = (model.predict(one, budget=budget) for one in (table, sparse))
        pd.testing.assert_frame_equal(part, whole, check_exact=True)


def without_wind(model: IBForecaster) -> IBForecaster:
    """Return the model with a mask that never reads the channel wind."""
    network = deepcopy(model.fitted.network)
    with torch.no_grad():
        network.score.bias[:, 1] = -100
    return IBForecaster.of(replace(model.fitted, network=network), device="cpu")


def test_a_channel_may_be_empty_only_if_it_is_never_read(model: IBForecaster, table: pd.DataFrame) -> None:
    empty = table.assign(wind=np.nan)
    with pytest.raises(DataError, match=r"must be observed at least once in the window, where it is read"):
        model.predict(empty)
    blind = without_wind(model)
    pd.testing.assert_frame_equal(blind.predict(empty), blind.predict(table), check_exact=True)


@pytest.mark.parametrize("size", [1e30, 1e300, -1.7e308])
def test_unread_values_may_be_of_any_size(model: IBForecaster, table: pd.DataFrame, size: float) -> None:
    huge = table.copy()
    huge.iloc[-LOOK_BACK:, 1:] = np.where(model.fitted.cells, table.iloc[-LOOK_BACK:, 1:], size)
    looks_missing = pytest.warns(UserWarning, match="must be a value, not a mark for a missing one")
    with looks_missing:
        explained = model.explain(huge)
    assert np.array_equal(explained.forecast, model.explain(table).forecast)
    with looks_missing:
        assert model.verify(explained, huge, exact=True)


def with_gaps(model: IBForecaster, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which some windows have a channel that is empty exactly where it is read."""
    gaps = table.copy()
    read = np.flatnonzero(model.fitted.cells[:, 2])
    gaps.loc[[300 + step for step in read], "heat"] = np.nan
    gaps.loc[100:180, "load"] = np.nan
    return gaps


def test_the_measured_windows_are_those_the_model_forecasts(model: IBForecaster, table: pd.DataFrame) -> None:
    gaps = with_gaps(model, table)
    values, accepted = gaps.iloc[:, 1:].to_numpy(), []
    for last in range(LOOK_BACK - 1, len(gaps) - HORIZON):
        followed = not np.isnan(values[last + 1 : last + 1 + HORIZON]).all(axis=0).any()
        try:
            model.predict(gaps, at=gaps["when"].iloc[last])
        except DataError:
            continue
        accepted += [last - LOOK_BACK + 1] if followed else []
    windows = model.desk.windows(model.open(gaps).series, "all")
    assert windows.starts.tolist() == accepted
    assert not {300, 301} & set(accepted)  # one step later every token that is read has one of the gaps
    assert 300 in replace(windows.at(range(len(gaps) - LOOK_BACK - HORIZON + 1)), tokens=None).usable().starts
    assert model.evaluate(gaps, "all").windows == len(accepted)


def test_a_model_is_measured_where_a_channel_it_never_reads_is_empty(model: IBForecaster, table: pd.DataFrame) -> None:
    blind = without_wind(model)
    assert not blind.fitted.cells[:, 1].any()
    gaps = table.copy()
    gaps.loc[100 : 99 + LOOK_BACK, "wind"] = np.nan  # the look-back of one window, whose target is observed
    total = len(table) - LOOK_BACK - HORIZON + 1
    hidden = LOOK_BACK - HORIZON + 1  # windows without any wind in their target
    measured = blind.evaluate(gaps, "all")
    assert measured.windows == total - hidden
    assert model.evaluate(gaps, "all").windows < measured.windows
    assert np.isfinite([measured.mse, measured.naive_mse]).all()
    assert blind.explain(gaps, at=gaps["when"].iloc[99 + LOOK_BACK]).verify()


def test_intervals_leave_out_windows_without_a_value_where_a_channel_is_read(
    model: IBForecaster, table: pd.DataFrame
) -> None:
    gaps = with_gaps(model, table)
    desk = model.desk
    windows = desk.windows_at(desk.open(gaps).series, np.array([300, 240]))
    known = ~scores(model.fitted.network, windows).isnan()
    assert known[:, 0].tolist() == [[True, True, False], [True, True, True]]
    later = gaps[-LOOK_BACK - len(gaps) + model.fitted.split.train_end :].reset_index(drop=True)
    calibrated = IBForecaster.of(model.fitted, device="cpu").calibrate(later, "all")
    assert calibrated.fitted.calibration is not None
    assert calibrated.fitted.calibration.windows == calibrated.evaluate(later, "all").windows
    assert calibrated.fitted.calibration.windows < len(later) - LOOK_BACK - HORIZON + 1
    assert len(calibrated.predict(table, level=50, adaptive=True)) == HORIZON


def test_fitting_calibrates_on_the_validation_windows_that_the_model_forecasts(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    gaps, rows = table.copy(), np.arange(len(table))
    gaps.loc[(rows >= 240) & (np.random.default_rng(0).random(len(rows)) < 0.7), "load"] = np.nan
    model = fit(tmp_path, gaps)
    fitted = model.fitted.calibration
    again = model.calibrate(gaps, "validation").fitted.calibration
    assert fitted is not None
    assert again is not None
    assert 0 < fitted.windows == again.windows == model.evaluate(gaps, "validation").windows < 35
    assert torch.equal(fitted.quantiles, again.quantiles)


def test_the_cells_have_the_times_of_the_window(model: IBForecaster, table: pd.DataFrame) -> None:
    cells = model.reads(at=table["when"].iloc[-1])
    assert len(cells) == model.fitted.cells.sum() == model.explain(table).mask.sum() * 2
    expected = [table["when"].iloc[-1 - steps] for steps in cells["steps_back"]]
    assert pd.to_datetime(cells["time"]).tolist() == expected
    assert list(cells.columns) == ["channel", "steps_back", "time"]
    assert model.reads()["time"].isna().all()


def test_times_follow_the_clock_of_a_zone(tmp_path: Path) -> None:
    local = make_table(24 * 30, zone="Europe/Berlin")
    model = fit(tmp_path, local)
    cells = model.reads(at="2023-03-26 12:00")
    first = local["when"][local["when"] == pd.Timestamp("2023-03-26 12:00", tz="Europe/Berlin")].index[0]
    times = pd.to_datetime(cells["time"], utc=True)
    assert times.tolist() == [local["when"].iloc[first - steps].tz_convert("UTC") for steps in cells["steps_back"]]


def test_daily_and_monthly_steps_are_counted_by_the_calendar(tmp_path: Path) -> None:
    monthly = make_table(freq="MS")
    cells = fit(tmp_path, monthly, cycle=12).reads(at=monthly["when"].iloc[-1])
    expected = [monthly["when"].iloc[-1 - steps] for steps in cells["steps_back"]]
    assert pd.to_datetime(cells["time"]).tolist() == expected


def test_the_setting_refuses_a_recipe_that_is_not_sealed() -> None:
    table = make_table()
    with pytest.raises(UsageError, match=r"a sealed model needs a sealed recipe \(got recipe='any-budget'\)"):
        IBForecaster(HORIZON, LOOK_BACK, sealed=True, recipe="any-budget", device="cpu").fit(table)
    fitted = IBForecaster(HORIZON, LOOK_BACK, sealed=True, epochs=1, device="cpu").fit(table).fitted
    assert fitted.summary.recipe == "sealed"
    assert fitted.config.sealed


def test_a_saved_model_is_still_sealed(model: IBForecaster, table: pd.DataFrame, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = IBForecaster.load(tmp_path / "model", device="cpu")
    assert loaded.fitted.config.sealed
    assert loaded.explain(table).to_json() == model.explain(table).to_json()


def test_a_model_that_looks_has_no_list_of_cells(table: pd.DataFrame) -> None:
    looking = IBForecaster(HORIZON, LOOK_BACK, recipe="dense", epochs=1, device="cpu").fit(table)
    with pytest.raises(UsageError, match="only a sealed model reads places that are known before it reads"):
        looking.reads()


def test_an_audit_of_a_sealed_model_finds_no_movement(model: IBForecaster, table: pd.DataFrame) -> None:
    audit = model.audit(table, "all", windows=64)
    assert (audit.relative, audit.masks_changed, audit.changed_bits) == (0.0, 0.0, 0)
    assert "the model is sealed" in audit.in_words()


def test_a_backtest_and_a_report_need_only_the_read_cells(model: IBForecaster, table: pd.DataFrame) -> None:
    last = len(table) - HORIZON - 1
    sparse = pd.concat([only_what_is_read(model, table[: last + 1]), table[last + 1 :]], ignore_index=True)
    whole, part = (model.cross_validation(one, n_windows=1, level=50) for one in (table, sparse))
    pd.testing.assert_frame_equal(part, whole, check_exact=True)
    at = table["when"].iloc[last]
    assert b"Unconditionally" in to_html(model, sparse, [at], "model", "table")  # every check passed, or it raises


def test_members_of_a_fleet_may_be_sealed(tmp_path: Path, table: pd.DataFrame) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE)
    forecaster = IBForecaster(
        HORIZON, LOOK_BACK, recipe=str(tmp_path / "tiny.toml"), cycle=24, sealed=True, device="cpu"
    )
    fleet = Fleet(tmp_path / "fleet")
    assert [outcome.state for outcome in fleet.fit({"town": table}, forecaster)] == ["fitted"]
    member = fleet.model("town", device="cpu")
    sparse = only_what_is_read(member, table)
    whole, part = (fleet.predict({"town": one}).table() for one in (table, sparse))
    pd.testing.assert_frame_equal(part, whole, check_exact=True)


def test_the_verb_prints_the_same_cells(
    model: IBForecaster, table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "model")
    at = str(table["when"].iloc[-1])
    with pytest.raises(SystemExit) as stop:
        run(["reads", str(tmp_path / "model"), "--at", at, "--json"])
    assert stop.value.code == 0
    assert pd.DataFrame(json.loads(capsys.readouterr().out)["reads"]).equals(model.reads(at))


def test_a_loaded_model_may_be_fitted_again_with_a_recipe_that_looks(
    model: IBForecaster, table: pd.DataFrame, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    other = IBForecaster.load(tmp_path / "model", device="cpu").replace(recipe="static-fixed", patch_len=None, epochs=1)
    fitted = other.fit(table).fitted
    assert not fitted.config.sealed
    assert fitted.config.objective.loss == "mse"
