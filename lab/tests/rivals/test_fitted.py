"""Rivals that are fitted at once: the seasonal naive forecast, ridge regression and LightGBM."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.evaluate.naive import naive_errors
from ibforecast_lab.recipes import resolve
from ibforecast_lab.rivals.ridge import Ridge, RidgeConfig
from ibforecast_lab.rivals.seasonal_naive import SeasonalNaive, SeasonalNaiveConfig
from ibforecast_lab.rivals.trees import Trees, TreesConfig

LOOK_BACK, HORIZON, CHANNELS, CYCLE, ROWS = 12, 3, 2, 6, 400
SIZES = {"look_back": LOOK_BACK, "horizon": HORIZON, "channels": CHANNELS, "cycle": CYCLE}


def windows(past: int = 0, known: bool = False, missing: float = 0.0) -> Windows:
    """Return windows of hourly waves; the second channel repeats the covariate, which is noise, at the same hour."""
    random, hour = np.random.default_rng(0), np.arange(ROWS)
    noise = random.normal(size=ROWS)
    wave = np.sin(2 * np.pi * hour / CYCLE) + 0.1 * random.normal(size=ROWS)
    values = np.stack([wave, noise], axis=1)
    values[random.random(values.shape) < missing] = np.nan
    clock = Clock(np.datetime64("2024-01-01", "us") + hour * np.timedelta64(1, "h"), Frequency(3600))
    series = Series(values, ("a", "b"), clock, past)
    if known:
        series = replace(series, covariates=("c",), known=noise[:, None])
    standardiser = Standardiser.of(values, series.channels)
    ahead = None if series.known is None else Standardiser.around_median(series.known, ("c",))
    starts = range(ROWS - LOOK_BACK - HORIZON + 1)
    return Windows.of(series, standardiser, CYCLE, starts, LOOK_BACK, HORIZON, known=ahead)


def split(every: Windows) -> tuple[Windows, Windows]:
    return every.at(range(250)), every.at(range(280, len(every)))


def test_the_naive_forecast_has_the_errors_that_the_product_reports() -> None:
    _, test = split(windows(missing=0.1))
    forecaster = SeasonalNaive(SeasonalNaiveConfig(**SIZES))
    forecaster.fit(test)
    measured, (squared, absolute) = accuracy(forecaster, test), naive_errors(test, CYCLE)
    assert torch.equal(measured.squared_error, squared)
    assert torch.equal(measured.absolute_error, absolute)


@pytest.mark.parametrize(
    ("cycle", "further", "repeated"), [(6, (), 6), (12, (6,), 12), (24, (6,), 6), (24, (), 1), (24, (18,), 1)]
)
def test_the_longest_cycle_that_fits_is_repeated(cycle: int, further: tuple[int, ...], repeated: int) -> None:
    config = SeasonalNaiveConfig(**{**SIZES, "cycle": cycle}, further_cycles=further)
    assert SeasonalNaive(config).cycle == repeated


@pytest.mark.parametrize(("data", "cycle", "repeated"), [("metro_i94", 168, 24), ("flow_france19", 365, 1)])
def test_the_recipe_repeats_the_day_if_the_week_does_not_fit(data: str, cycle: int, repeated: int) -> None:
    sizes = SeasonalNaiveConfig(96, 24, 1, cycle)
    forecaster = resolve("seasonal-naive", sizes, data).build(0)
    assert isinstance(forecaster, SeasonalNaive)
    assert forecaster.cycle == repeated


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_ridge_regression_has_the_weights_of_least_squares_with_a_penalty(missing: float) -> None:
    training, test = split(windows(missing=missing))
    forecaster = Ridge(RidgeConfig(**SIZES, penalty=3.0))
    forecaster.fit(training)
    past, future = [], []
    for window, target in training.batches(1):
        for channel in range(CHANNELS):
            if target.observed[0, :, channel].all():
                seen = window.observed[0, :, channel]
                level = window.values[0, seen, channel].mean()
                past.append((window.values[0, :, channel] - level).where(seen, 0.0).double())
                future.append((target.values[0, :, channel] - level).double())
    rows = torch.cat([torch.stack(past), 3.0**0.5 * torch.eye(LOOK_BACK, dtype=torch.float64)])
    targets = torch.cat([torch.stack(future), torch.zeros(LOOK_BACK, HORIZON, dtype=torch.float64)])
    expected = torch.linalg.lstsq(rows, targets).solution.T
    assert torch.allclose(forecaster.weights.double(), expected, atol=1e-5)
    naive = SeasonalNaive(SeasonalNaiveConfig(**SIZES))
    assert accuracy(forecaster, test).mse < accuracy(naive, test).mse


def trees(training: Windows, **settings: Any) -> Trees:
    for library in Trees.libraries:
        pytest.importorskip(library, reason=f"needs {library} (extra trees)")
    forecaster = Trees(TreesConfig(**SIZES, **settings))
    forecaster.fit(training)
    return forecaster


@pytest.mark.parametrize("together", [False, True])
def test_trees_learn_a_wave_that_the_naive_forecast_repeats_with_its_noise(together: bool) -> None:
    training, test = split(windows())
    learned, naive = trees(training, together=together), SeasonalNaive(SeasonalNaiveConfig(**SIZES))
    assert accuracy(learned, test).mse < 0.8 * accuracy(naive, test).mse


def test_trees_forecast_as_mlforecast_does_after_its_table() -> None:
    training, _ = split(windows())
    forecaster = trees(training)
    import pandas as pd
    from lightgbm import LGBMRegressor
    from mlforecast import MLForecast

    rows = int(training.starts[-1]) + LOOK_BACK + HORIZON
    hour = np.arange(rows + HORIZON)
    series = {"unique_id": 0, "ds": hour, "phase": training.phase[hour].numpy().astype(np.float32)}
    table = pd.DataFrame(series | {"y": training.values[hour, 0].numpy()})
    model = MLForecast({"trees": LGBMRegressor(verbosity=-1)}, freq=1, lags=list(range(1, LOOK_BACK + 1)))
    model.fit(table[:rows], static_features=[], max_horizon=HORIZON)
    expected = model.predict(HORIZON, X_df=table.loc[rows:, ["unique_id", "ds", "phase"]])["trees"]
    with torch.no_grad():
        forecast = forecaster(training.look_backs(torch.tensor([rows - LOOK_BACK]))).values
    np.testing.assert_allclose(forecast[0, :, 0].numpy(), expected.to_numpy(), rtol=1e-5)


def test_trees_read_covariates_known_ahead() -> None:
    errors = []
    for known in (False, True):
        training, test = split(windows(known=known))
        with torch.no_grad():
            window, target = test.take(test.starts)
            errors.append(float((trees(training)(window).values - target.values)[..., 1].square().mean()))
    assert errors[1] < 0.3 * errors[0]


def test_trees_do_not_read_missing_values_or_other_channels() -> None:
    training, test = split(windows(missing=0.1))
    forecaster = trees(training)
    window, _ = test.take(test.starts)
    filled = replace(window, values=window.values.where(window.observed, torch.tensor(1e6)))
    other = replace(window, values=window.values * torch.tensor([1.0, 5.0]))
    with torch.no_grad():
        forecast = forecaster(window).values
        assert forecast.isfinite().all()
        assert torch.equal(forecaster(filled).values, forecast)
        assert torch.equal(forecaster(other).values[..., 0], forecast[..., 0])


def test_trees_fit_nothing_for_channels_that_are_only_read() -> None:
    training, test = split(windows(past=1))
    forecaster = trees(training)
    window, target = test.take(test.starts)
    assert [list(group.channels) for group in forecaster.groups] == [[0]]
    assert not forecaster(window).values[..., 1].any()
    assert not target.observed[..., 1].any()
