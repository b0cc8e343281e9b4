"""Backtesting: forecasts from past moments, next to the values that followed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast import DataError, IBForecaster, UsageError
from ibforecast.backtest import cutoffs
from ibforecast.fitting import fit_source

ROWS, LOOK_BACK, HORIZON = 400, 48, 12
CHANNELS = ("load", "wind")
TINY = """
[model.gate]
width = 16
[model.readout]
width = 16
[train]
epochs = 1
batch = 64
"""


def frame(rows: int = ROWS) -> pd.DataFrame:
    hour, noise = np.arange(rows), np.random.default_rng(5).normal(size=(rows, 2))
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
        return IBForecaster(**(usual | {"split": (0.5, 0.25, 0.25)} | settings))

    return make


@pytest.fixture(scope="module")
def model(unfitted: Callable[..., IBForecaster]) -> IBForecaster:
    return unfitted().fit(frame())


# --- Moments ---


@given(
    rows=st.integers(1, 400),
    look_back=st.integers(1, 60),
    horizon=st.integers(1, 30),
    n_windows=st.integers(1, 20),
    step_size=st.integers(1, 40),
)
def test_cutoffs_have_the_requested_number_and_distance_and_end_with_the_table(
    rows: int, look_back: int, horizon: int, n_windows: int, step_size: int
) -> None:
    needed = look_back + (n_windows - 1) * step_size + horizon
    if rows < needed:
        with pytest.raises(DataError, match=rf"give {needed} rows or more"):
            cutoffs(rows, look_back, horizon, n_windows, step_size)
        return
    lasts = cutoffs(rows, look_back, horizon, n_windows, step_size)
    assert len(lasts) == n_windows
    assert lasts[-1] + horizon == rows - 1
    assert lasts[0] >= look_back - 1
    assert set(np.diff(lasts)) <= {step_size}


@pytest.mark.parametrize(("windows", "step"), [(1, None), (4, None), (3, 5), (2, 30)])
def test_every_forecast_is_the_one_made_at_its_cutoff(model: IBForecaster, windows: int, step: int | None) -> None:
    table = frame()
    backtest = model.cross_validation(table, windows, step, level=[80])
    assert backtest.columns.tolist() == [
        *("unique_id", "ds", "cutoff", "y", "IBForecast", "IBForecast-lo-80", "IBForecast-hi-80")
    ]
    assert len(backtest) == 2 * windows * HORIZON
    assert backtest["cutoff"].dtype == backtest["ds"].dtype == table["when"].dtype
    rows = [ROWS - HORIZON - 1 - number * (step or HORIZON) for number in reversed(range(windows))]
    assert backtest["cutoff"].unique().tolist() == table["when"][rows].tolist()
    for cutoff, fold in backtest.groupby("cutoff"):
        single = model.predict(table, cutoff, level=80)
        for name in CHANNELS:
            own = fold[fold["unique_id"] == name]
            assert own["ds"].tolist() == single["when"].tolist()
            np.testing.assert_array_equal(own["IBForecast"], single[name])
            np.testing.assert_array_equal(own["IBForecast-lo-80"], single[f"{name}-lo-80"])
            np.testing.assert_array_equal(own["y"], table.set_index("when")[name][own["ds"]])


def test_adapting_over_all_moments_equals_adapting_at_each(model: IBForecaster) -> None:
    table = frame()
    backtest = model.cross_validation(table, 5, 7, level=[80, 95], adaptive=True)
    for cutoff, fold in backtest.groupby("cutoff"):
        single = model.predict(table, cutoff, level=[80, 95], adaptive=True)
        expected = np.concatenate([single[f"{name}-hi-95"] for name in CHANNELS])
        np.testing.assert_allclose(fold["IBForecast-hi-95"], expected, rtol=1e-6)


def test_a_long_table_keeps_its_names_and_kind(model: IBForecaster, unfitted: Callable[..., IBForecaster]) -> None:
    table = pl.from_pandas(long_frame().rename(columns={"unique_id": "meter", "ds": "moment", "y": "kw"}))
    backtest = unfitted(id="meter", target="kw", time="moment").fit(table).cross_validation(table, 2)
    assert isinstance(backtest, pl.DataFrame)
    assert backtest.columns == ["meter", "moment", "cutoff", "kw", "IBForecast"]
    expected = model.cross_validation(frame(), 2)
    assert backtest["IBForecast"].to_numpy().tobytes() == expected["IBForecast"].to_numpy().tobytes()


def test_a_time_zone_is_kept(unfitted: Callable[..., IBForecaster]) -> None:
    table = frame().assign(when=pd.date_range("2023-03-15", periods=ROWS, freq="h", tz="Europe/Berlin"))
    backtest = unfitted().fit(table).cross_validation(table, 2)
    assert backtest["cutoff"].dtype == backtest["ds"].dtype == table["when"].dtype
    assert backtest["cutoff"].unique().tolist() == table["when"][[ROWS - 2 * HORIZON - 1, ROWS - HORIZON - 1]].tolist()


def test_unobserved_values_have_no_row(model: IBForecaster) -> None:
    table = frame()
    table.loc[[ROWS - 3, ROWS - 20], "load"] = np.nan
    backtest = model.cross_validation(table, 2, level=80, adaptive=True)
    assert backtest.notna().all(axis=None)
    assert backtest.groupby("unique_id").size().to_dict() == {"load": 22, "wind": 24}
    assert table["when"][ROWS - 3] not in backtest.loc[backtest["unique_id"] == "load", "ds"].tolist()


def test_utilsforecast_evaluates_a_backtest_directly(model: IBForecaster) -> None:
    evaluation = pytest.importorskip("utilsforecast.evaluation", reason="needs utilsforecast")
    losses = pytest.importorskip("utilsforecast.losses")
    backtest = model.cross_validation(frame(), 3, level=[80, 95])
    table = evaluation.evaluate(backtest, [losses.mae, losses.coverage], level=[80, 95])
    assert table.columns.tolist() == ["unique_id", "cutoff", "metric", "IBForecast"]
    off = (backtest["y"] - backtest["IBForecast"]).abs().groupby([backtest["unique_id"], backtest["cutoff"]]).mean()
    errors = table[table["metric"] == "mae"].set_index(["unique_id", "cutoff"])["IBForecast"].sort_index()
    np.testing.assert_allclose(errors, off.sort_index())
    within = table.loc[table["metric"] == "coverage_level95", "IBForecast"]
    assert within.between(0, 1).all()


# --- Refitting ---


def test_with_refit_every_forecast_is_from_a_model_fitted_to_earlier_rows(
    model: IBForecaster, unfitted: Callable[..., IBForecaster]
) -> None:
    table, weights = frame(), model.fitted.weights_sha256
    backtest = model.cross_validation(table, 2, 30, refit=True, level=80)
    for cutoff, fold in backtest.groupby("cutoff"):
        before = table[table["when"] <= cutoff]
        single = unfitted(split=(2 / 3, 1 - 2 / 3, 0.0)).fit(before).predict(before, level=80)
        expected = np.concatenate([single[f"{name}-lo-80"] for name in CHANNELS])
        np.testing.assert_array_equal(fold["IBForecast-lo-80"], expected)
    assert model.fitted.weights_sha256 == weights


def test_a_step_size_of_zero_is_refused(model: IBForecaster) -> None:
    with pytest.raises(UsageError, match=r"step_size must be at least 1 \(got 0\)"):
        model.cross_validation(frame(), 2, 0)


def test_refit_may_happen_every_few_windows(model: IBForecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted_to: list[int] = []
    monkeypatch.setattr(
        "ibforecast.backtest.fit_source",
        lambda source, *rest: fitted_to.append(source.series.rows) or fit_source(source, *rest),
    )
    model.cross_validation(frame(), 5, 10, refit=2)
    assert fitted_to == [ROWS - HORIZON - 10 * number for number in (4, 2, 0)]
    fitted_to.clear()
    model.cross_validation(frame(), 5, 10)
    assert fitted_to == []


def test_an_unfitted_model_is_fitted_to_the_earlier_rows_and_stays_unfitted(
    unfitted: Callable[..., IBForecaster],
) -> None:
    table, fresh = frame(), unfitted()
    backtest = fresh.cross_validation(table, 2, 20)
    before = table[: ROWS - HORIZON - 20]
    fitted = unfitted(split=(2 / 3, 1 - 2 / 3, 0.0)).fit(before)
    np.testing.assert_array_equal(backtest["IBForecast"], fitted.cross_validation(table, 2, 20)["IBForecast"])
    with pytest.raises(UsageError, match="must be fitted before it is used"):
        fresh.predict(table)


# --- Invalid arguments ---


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_windows": 0}, UsageError, r"n_windows must be at least 1 \(got 0\)"),
        ({"step_size": -1}, UsageError, r"step_size must be at least 1 \(got -1\); try 12"),
        ({"refit": -1}, UsageError, r"refit must be a number of windows, or True for every one \(got -1\)"),
        ({"n_windows": 40}, DataError, r"look_back = 48 rows before its first cutoff \(got 0\); give 528 rows or more"),
        (
            {"n_windows": 20},
            UsageError,
            r"not trained on \(got a first forecast of 2023-01-07 16:00, trained on rows before 2023-01-09 08:00\)",
        ),
    ],
    ids=["no windows", "backwards", "refit", "too many", "trained on"],
)
def test_an_invalid_backtest_is_refused(
    model: IBForecaster, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        model.cross_validation(frame(), **arguments)


def test_a_loaded_model_recognises_its_training_rows_by_their_times(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again, later = IBForecaster.load(tmp_path / "model", device="cpu"), frame()[100:]
    first = 200 - 100  # of the table that begins later
    most = (len(later) - HORIZON - first) // HORIZON + 1
    assert len(again.cross_validation(later, most)) == most * HORIZON * 2
    with pytest.raises(UsageError, match="trained on rows before 2023-01-09 08:00"):
        again.cross_validation(later, most + 1)
