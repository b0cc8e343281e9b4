"""Intervals of IBForecaster: next to the forecast, saved with the model, and never based on later rows."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ibforecast import DataError, IBForecaster, ModelFileError, UsageError
from ibforecast.zoo.saved import INTERVALS

ROWS, LOOK_BACK, HORIZON = 500, 48, 6
CHANNELS = ("load", "wind")
TINY = """
[model.gate]
width = 16
[model.readout]
width = 16
[train]
epochs = 2
batch = 64
"""


def frame(rows: int = ROWS, seed: int = 5) -> pd.DataFrame:
    """Make two channels with a daily cycle at different levels and scales."""
    hour, noise = np.arange(rows), np.random.default_rng(seed).normal(size=(rows, 2))
    rhythm = np.stack([np.sin(2 * np.pi * (hour / 24 + shift)) for shift in (0.0, 0.3)], axis=1)
    values = (rhythm + 0.3 * noise) * (20.0, 3.0) + (900.0, 40.0)
    when = pd.date_range("2023-01-01", periods=rows, freq="h")
    return pd.DataFrame({"when": when} | dict(zip(CHANNELS, values.T, strict=True)))


def long_frame() -> pd.DataFrame:
    melted = frame().melt("when", CHANNELS, "unique_id", "y").rename(columns={"when": "ds"})
    return melted[["unique_id", "ds", "y"]]


@pytest.fixture(scope="module")
def unfitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., IBForecaster]:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY)

    def make(**settings: Any) -> IBForecaster:
        usual = {"horizon": HORIZON, "look_back": LOOK_BACK, "budget": 0.25, "recipe": str(path), "device": "cpu"}
        return IBForecaster(**(usual | {"split": (0.6, 0.2, 0.2)} | settings))

    return make


@pytest.fixture(scope="module")
def model(unfitted: Callable[..., IBForecaster]) -> IBForecaster:
    return unfitted().fit(frame())


# --- Columns of the table ---


def test_a_wide_forecast_has_both_ends_next_to_every_channel_and_the_open_rate(model: IBForecaster) -> None:
    forecast = model.predict(frame(), level=[95, 80])
    ends = [f"-{end}-{level}" for level in (80, 95) for end in ("lo", "hi")]
    assert forecast.columns.tolist() == ["when", *(name + end for name in CHANNELS for end in ("", *ends)), "open_rate"]
    pd.testing.assert_frame_equal(forecast[["when", *CHANNELS]], model.predict(frame()), check_exact=True)
    assert set(forecast["open_rate"]) == {model.explain(frame()).open_rate}
    for name in CHANNELS:
        nested = forecast[[f"{name}-lo-95", f"{name}-lo-80", name, f"{name}-hi-80", f"{name}-hi-95"]].to_numpy()
        assert (np.diff(nested) >= 0).all()
        np.testing.assert_allclose(
            forecast[name] - forecast[f"{name}-lo-80"], forecast[f"{name}-hi-80"] - forecast[name]
        )


def test_a_long_forecast_has_the_same_ends_in_separate_columns(
    model: IBForecaster, unfitted: Callable[..., IBForecaster]
) -> None:
    table = pl.from_pandas(long_frame())
    forecast = unfitted().fit(table).predict(table, level=97.5)
    assert isinstance(forecast, pl.DataFrame)
    assert forecast.columns == [
        "unique_id",
        "ds",
        "IBForecast",
        "IBForecast-lo-97.5",
        "IBForecast-hi-97.5",
        "open_rate",
    ]
    wide = model.predict(frame(), level=97.5)
    lows = np.concatenate([wide[f"{name}-lo-97.5"] for name in CHANNELS])
    assert forecast["IBForecast-lo-97.5"].to_numpy().tobytes() == lows.tobytes()


def test_intervals_are_in_the_tables_units(model: IBForecaster, unfitted: Callable[..., IBForecaster]) -> None:
    larger = frame().assign(load=lambda table: 1024 * table["load"])
    forecast, expected = unfitted().fit(larger).predict(larger, level=80), model.predict(frame(), level=80)
    assert (forecast["load-hi-80"].to_numpy() == 1024 * expected["load-hi-80"].to_numpy()).all()


def test_the_coverage_is_close_to_the_level(model: IBForecaster) -> None:
    backtest = model.cross_validation(frame(), 90, 1, level=[50, 80])
    for level in (50, 80):
        within = backtest["y"].between(backtest[f"IBForecast-lo-{level}"], backtest[f"IBForecast-hi-{level}"])
        assert abs(within.mean() - level / 100) < 0.06


def test_an_interval_without_a_width_contains_the_value_that_its_forecast_repeats(
    unfitted: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    (tmp_path / "anchored.toml").write_text(TINY + "anchor_margin = 0.02")
    rows = frame().assign(open=(np.arange(ROWS) % 400 >= 40).astype(float))
    fitted = unfitted(recipe=str(tmp_path / "anchored.toml")).fit(rows)
    anchored = next(line for line in fitted.fitted.anchors() if "open" in line)
    assert anchored.startswith("100% repeats the newest value")
    backtest = fitted.cross_validation(rows, 20, 1, level=50).query("unique_id == 'open'")
    assert (backtest["y"] == 1.0).all()
    assert (backtest["IBForecast"] != 1.0).any()  # by rounding in single precision
    assert backtest["y"].between(backtest["IBForecast-lo-50"], backtest["IBForecast-hi-50"]).all()
    assert (backtest["IBForecast-hi-50"] - backtest["IBForecast-lo-50"]).max() < 1e-6


def test_a_past_channel_has_no_interval(unfitted: Callable[..., IBForecaster]) -> None:
    fitted = unfitted(past=["wind"]).fit(frame())
    forecast = fitted.predict(frame(), level=80, adaptive=True)
    assert forecast.columns.tolist() == ["when", "load", "load-lo-80", "load-hi-80", "open_rate"]
    assert forecast.notna().all(axis=None)


# --- Adapting ---


@pytest.mark.parametrize("row", [380, 450, ROWS - 2])
def test_rows_after_the_moment_do_not_change_an_interval(model: IBForecaster, row: int) -> None:
    table, changed = frame(), frame()
    changed.loc[row + 1 :, list(CHANNELS)] += 1e6
    at = table["when"][row]
    options = {"level": [80, 95], "adaptive": True}
    expected = model.predict(table[: row + 1], **options)
    pd.testing.assert_frame_equal(model.predict(table, at, **options), expected, check_exact=True)
    pd.testing.assert_frame_equal(model.predict(changed, at, **options), expected, check_exact=True)


def test_training_rows_do_not_change_an_interval(model: IBForecaster) -> None:
    """Only the look-back of the first window after the training rows overlaps them."""
    table = frame()
    first = model.fitted.split.train_end - LOOK_BACK
    options = {"level": [80], "adaptive": True}
    pd.testing.assert_frame_equal(
        model.predict(table[first:], **options), model.predict(table, **options), check_exact=True
    )


def test_adaptive_intervals_widen_when_forecasts_get_worse(model: IBForecaster) -> None:
    table, worse = frame(), frame()
    rows = np.arange(320, ROWS - LOOK_BACK)  # shuffled rows have no cycle
    worse.loc[rows, list(CHANNELS)] = table.loc[np.random.default_rng(1).permutation(rows), list(CHANNELS)].to_numpy()
    width = {
        (name, adaptive): (forecast["load-hi-80"] - forecast["load-lo-80"]).mean()
        for name, data in (("calm", table), ("worse", worse))
        for adaptive in (False, True)
        for forecast in [model.predict(data, level=80, adaptive=adaptive)]
    }
    assert width["worse", False] == width["calm", False]
    assert width["worse", True] > width["calm", True]


def test_without_earlier_forecasts_adapting_changes_nothing(model: IBForecaster) -> None:
    last = frame()[-LOOK_BACK:]
    pd.testing.assert_frame_equal(
        model.predict(last, level=80, adaptive=True), model.predict(last, level=80), check_exact=True
    )


@pytest.mark.parametrize("adaptive", [False, True])
def test_gaps_are_skipped(model: IBForecaster, adaptive: bool) -> None:
    table = frame()
    table.loc[200:420:3, "load"] = np.nan
    table.loc[330:410, "wind"] = np.nan  # longer than a look-back: some windows cannot be used
    forecast = model.predict(table, level=[80, 95], adaptive=adaptive)
    assert forecast.notna().all(axis=None)
    assert np.isfinite(forecast.drop(columns="when")).all(axis=None)


def test_a_model_fitted_with_gaps_has_intervals(unfitted: Callable[..., IBForecaster]) -> None:
    table = frame()
    table.loc[310:390:4, "load"] = np.nan
    fitted = unfitted().fit(table)
    assert fitted.fitted.calibration.quantiles[:19].isfinite().all()
    assert np.isfinite(fitted.predict(table, level=95).drop(columns="when")).all(axis=None)


# --- Saving and calibrating ---


def test_a_loaded_model_gives_the_same_intervals(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = IBForecaster.load(tmp_path / "model", device="cpu")
    for adaptive in (False, True):
        one, other = (any_.predict(frame(), level=[80, 95], adaptive=adaptive) for any_ in (model, again))
        pd.testing.assert_frame_equal(one, other, check_exact=True)


def without_intervals(model: IBForecaster, folder: Path) -> IBForecaster:
    """Return the same model without a calibration, saved and loaded."""
    replace(model.fitted, calibration=None).save(folder)
    assert not (folder / INTERVALS).exists()
    return IBForecaster.load(folder, device="cpu")


def test_a_model_without_intervals_forecasts_and_names_the_command_to_get_them(
    model: IBForecaster, tmp_path: Path
) -> None:
    old = without_intervals(model, tmp_path / "model")
    pd.testing.assert_frame_equal(old.predict(frame()), model.predict(frame()), check_exact=True)
    with pytest.raises(
        UsageError, match=r"must be calibrated .*; call calibrate\(table\) with the table it was fitted"
    ):
        old.predict(frame(), level=80)
    old.calibrate(frame())
    pd.testing.assert_frame_equal(old.predict(frame(), level=80), model.predict(frame(), level=80), check_exact=True)
    old.save(tmp_path / "model", overwrite=True)
    assert (tmp_path / "model" / INTERVALS).is_file()


def test_another_table_is_used_as_a_whole_for_calibration(model: IBForecaster) -> None:
    other = frame(300, seed=9).assign(when=pd.date_range("2024-01-01", periods=300, freq="h"))
    again = IBForecaster.of(model.fitted, device="cpu")
    with pytest.raises(UsageError, match='split "validation" must come from the table the model was fitted on'):
        again.calibrate(other)
    again.calibrate(other, "all")
    assert again.fitted.calibration.windows == 300 - LOOK_BACK - HORIZON + 1
    assert again.fitted.calibration.since.startswith("2024-01-03T00:00")
    assert model.fitted.calibration.windows == 100 - HORIZON + 1


def test_training_rows_are_not_used_for_calibration(model: IBForecaster) -> None:
    again = IBForecaster.of(model.fitted, device="cpu")
    trained = model.fitted.split.train_end
    untrained = "calibrated on windows the model was not trained on"
    with pytest.raises(UsageError, match=rf'{untrained} \(got split="train"\); use "validation"'):
        again.calibrate(frame(), "train")
    begin = frame()["when"][trained - LOOK_BACK]
    with pytest.raises(
        UsageError, match=rf"{untrained} \(got a first .*; give the rows from {begin:%Y-%m-%d %H:%M} on"
    ):
        again.calibrate(frame(), "all")
    with pytest.raises(UsageError, match=untrained):
        again.calibrate(frame()[trained - LOOK_BACK - 1 :], "all")
    assert again.fitted is model.fitted
    again.calibrate(frame()[trained - LOOK_BACK :], "all")
    again.calibrate(frame(), "test")
    with pytest.raises(UsageError, match="trained on rows before"):
        again.cross_validation(frame(), (ROWS - trained) // HORIZON + 1)


@pytest.mark.parametrize("damage", ["changed", "cut off", "gone"])
def test_damaged_intervals_are_refused(model: IBForecaster, tmp_path: Path, damage: str) -> None:
    model.save(tmp_path / "model")
    path = tmp_path / "model" / INTERVALS
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content if damage == "changed" else content[:-1])
    with pytest.raises(ModelFileError, match=INTERVALS):
        IBForecaster.load(tmp_path / "model")


# --- Invalid arguments ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 100}, r"percentage from 1 to 99 \(got 100\)"),
        ({"level": []}, r"percentage from 1 to 99 \(got none\)"),
        ({"adaptive": True}, r"intervals that adapt must have a level \(got level=None\); try level="),
        ({"level": 80, "budget": 0.1}, r"budget the model was calibrated at, 0\.25 \(got budget=0\.1\); leave"),
    ],
    ids=["a certain one", "none", "adapting to nothing", "another budget"],
)
def test_an_invalid_interval_is_refused(model: IBForecaster, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model.predict(frame(), **arguments)


def test_a_level_with_too_few_windows_is_refused(unfitted: Callable[..., IBForecaster]) -> None:
    fitted = unfitted(split=(0.95, 0.02, 0.03)).fit(frame())
    assert fitted.fitted.calibration.windows == 5
    fitted.predict(frame(), level=80)
    with pytest.raises(UsageError, match=r"95 % must be calibrated on 19 windows or more \(got 5.*use at most 80 %"):
        fitted.predict(frame(), level=[80, 95])


def test_a_channel_whose_name_is_taken_is_refused(unfitted: Callable[..., IBForecaster]) -> None:
    table = frame().rename(columns={"wind": "open_rate"})
    with pytest.raises(DataError, match=r"different names \(got 'open_rate' twice\); rename"):
        unfitted().fit(table).predict(table, level=80)


def test_a_forecast_without_intervals_is_unchanged(model: IBForecaster) -> None:
    plain = IBForecaster.of(replace(model.fitted, calibration=None), device="cpu")
    pd.testing.assert_frame_equal(plain.predict(frame()), model.predict(frame()), check_exact=True)
