"""Values of any size: a forecast is finite with ordered intervals, or the value is refused with its place."""

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest

from ibforecast import DataError, IBForecaster
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.standardiser import FARTHEST, LARGEST, Standardiser

ROWS, LOOK_BACK = 300, 24
FILL = 9.969209968386869e36
"""The value that NetCDF writes for a missing one."""

KINDS = {
    "sealed": {"sealed": True},
    "choosing": {"choosing": True},
    "any-budget": {"recipe": "any-budget"},
    "dense": {"recipe": "dense"},
}


def table(rows: int = ROWS, size: float = 1.0) -> pd.DataFrame:
    steps, random = np.arange(rows), np.random.default_rng(0)
    daily = np.sin(2 * np.pi * steps / 24) + random.normal(0, 0.1, rows)
    return pd.DataFrame(
        {
            "time": pd.date_range("2024-01-01", periods=rows, freq="h"),
            "load": size * daily,
            "wind": random.normal(0, 1, rows),
        }
    )


@cache
def fitted(kind: str, horizon: int = 4) -> IBForecaster:
    return IBForecaster(horizon=horizon, look_back=LOOK_BACK, epochs=1, device="cpu", **KINDS[kind]).fit(table())


def require_sane(model: IBForecaster, given: pd.DataFrame) -> None:
    """Forecast in every way; every number must be finite, every interval ordered, and the explanation true."""
    explained = model.explain(given)
    assert np.isfinite(explained.forecast).all()
    assert model.verify(explained, given)
    for adaptive in (False, True):
        forecast = model.predict(given, level=[50, 80], adaptive=adaptive)
        for name in ("load", "wind"):
            ends = [f"{name}-lo-80", f"{name}-lo-50", name, f"{name}-hi-50", f"{name}-hi-80"]
            numbers = forecast[ends].to_numpy()
            assert np.isfinite(numbers).all()
            assert (np.diff(numbers, axis=1) >= 0).all()


def newest(given: pd.DataFrame, value: float) -> pd.DataFrame:
    changed = given.copy()
    changed.loc[len(given) - 1, "load"] = value
    return changed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_one_outlier_in_a_window_is_computed_with_or_refused(kind: str, sign: int) -> None:
    model = fitted(kind)
    assert model.fitted.cells[-1, 0]
    units = model.fitted.standardiser
    for size in (1e-300, 1e-30, 1e6, 0.9 * FARTHEST, 1.1 * FARTHEST, 1e18, 1e20, FILL, 3.4e38, 1e39, 1e160, 1e300):
        value = sign * size * float(units.std[0]) + float(units.mean[0])
        given = newest(table(), value)
        if size < FARTHEST:
            require_sane(model, given)
            continue
        for verb in (model.predict, model.explain, lambda given: model.predict(given, level=80)):
            words = re.escape(f"compute with (got {value!r} in 'load' at 2024-01-13 11:00)")
            with pytest.raises(DataError, match=rf"{words}.*--missing-value {re.escape(repr(value))}\)$"):
                verb(given)
        with pytest.raises(DataError, match=re.escape(f"(got {value!r} in row 299 of 'load', at 2024-01-13 11:00)")):
            model.evaluate(given, split="all")


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-40, 1e-6, 1e6, 1e20, 0.5 * LARGEST])
def test_a_table_in_units_of_any_size_gives_a_sane_forecast(size: float) -> None:
    model = IBForecaster(horizon=1, look_back=LOOK_BACK, epochs=1, sealed=True).fit(table(size=size))
    require_sane(model, table(size=size))


@pytest.mark.parametrize("value", [LARGEST * 1.01, FILL, -FILL, 1e160, 1e300])
@pytest.mark.parametrize("row", [7, 250, 299])
def test_a_value_too_large_is_refused_before_training(value: float, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ibforecast.fitting.train_recipe", lambda *_: pytest.fail("it was trained on"))
    given = table()
    given.loc[row, "load"] = value
    words = re.escape(f"compute with (got {value!r} in row {row} of 'load'")
    with pytest.raises(DataError, match=rf"{words}.*missing_values=\({re.escape(repr(value))},\)"):
        IBForecaster(horizon=4, look_back=LOOK_BACK).fit(given)


def test_the_remedy_of_the_refusal_works() -> None:
    given = table()
    given.loc[[100, 260, 290], "wind"] = FILL
    model = IBForecaster(horizon=4, look_back=LOOK_BACK, epochs=1, sealed=True, missing_values=[FILL]).fit(given)
    require_sane(model, given)


@pytest.mark.parametrize("outlier", [1e6, 1e15, 1e29])
def test_one_outlier_in_training_leaves_forecasts_sane(outlier: float) -> None:
    given = newest(table(), 1.0)
    given.loc[50, "load"] = outlier
    require_sane(IBForecaster(horizon=4, look_back=LOOK_BACK, epochs=1, choosing=True).fit(given), given)


@pytest.mark.parametrize("value", [0.0, 1e-300, -5.0, 1e29])
def test_constant_channels_are_forecast(value: float) -> None:
    given = table().assign(load=value)
    model = IBForecaster(horizon=4, look_back=LOOK_BACK, epochs=1, choosing=True).fit(given)
    require_sane(model, given)


def test_a_long_look_back_at_the_limit_stays_finite() -> None:
    long = table(rows=6_000)
    model = IBForecaster(horizon=1, look_back=4_000, patch_len=500, epochs=1, recipe="any-budget").fit(long)
    units = model.fitted.standardiser
    signs = np.where(np.arange(4_000) % 3, 1.0, -1.0)
    far = long.copy()
    far.loc[2_000:, "load"] = signs * 0.99 * FARTHEST * units.std[0] + units.mean[0]
    explained = model.explain(far)
    assert np.isfinite(explained.forecast).all()
    assert model.verify(explained)


def test_covariates_known_ahead_are_bounded_too() -> None:
    given = table(ROWS + 4).assign(holiday=lambda frame: (frame["time"].dt.dayofweek == 6).astype(float))
    given.loc[ROWS:, ["load", "wind"]] = np.nan
    model = IBForecaster(horizon=4, look_back=LOOK_BACK, epochs=1, sealed=True, future=["holiday"]).fit(given)
    assert np.isfinite(model.explain(given).forecast).all()
    given.loc[ROWS + 1, "holiday"] = FILL
    for verb in (model.predict, model.explain):
        with pytest.raises(
            DataError, match=r"compute with \(got 9.969209968386869e\+36 in 'holiday' at 2024-01-13 13:00"
        ):
            verb(given)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_forecast_that_is_not_finite_cannot_be_verified(value: float) -> None:
    model = fitted("sealed")
    explained = model.explain(table())
    forecast = explained.forecast.copy()
    forecast[0, 0] = value
    facts = {name: getattr(explained, name) for name in explained.__dataclass_fields__} | {"forecast": forecast}
    with pytest.raises(DataError, match="forecast of an explanation must be finite"):
        ExplainedForecast(**facts)
    number = repr(float(explained.forecast[0, 0]))
    text = explained.to_json()
    assert number in text
    with pytest.raises(DataError, match=r"a number must be finite \(got 1e999\)"):
        model.verify(text.replace(number, "1e999", 1))


def test_the_limit_leaves_room_for_the_squares_of_the_longest_look_back() -> None:
    squares = np.full(1_000_000, FARTHEST, dtype=np.float32) ** 2
    assert np.isfinite(squares.sum(dtype=np.float32))
    units = Standardiser(np.array([5.0]), np.array([2.0]))
    values = np.array([[5 + 1.99 * FARTHEST], [5 + 2.01 * FARTHEST], [np.nan], [1e308], [-1e308]])
    assert units.too_far(values)[:, 0].tolist() == [False, True, False, True, True]
