"""Forecasts as Nixtla's tidy tables: utilsforecast's `evaluate` accepts them unchanged."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("utilsforecast", reason="needs utilsforecast: pip install 'ibforecast[neuralforecast]'")

import pandas as pd
import polars as pl
from utilsforecast.evaluation import evaluate
from utilsforecast.losses import mae

from ibforecast import DataError, IBForecaster
from ibforecast.adapters.nixtla import with_truth

ROWS, HORIZON, NOW = 120, 6, 110


def wide_table() -> pd.DataFrame:
    values = np.random.default_rng(1).normal(size=(ROWS, 2)) * (5.0, 0.1) + (100.0, -3.0)
    times = pd.date_range("2020-01-05", periods=ROWS, freq="D")
    return pd.DataFrame({"day": times, "load": values[:, 0], "heat": values[:, 1]})


def long_table() -> pd.DataFrame:
    return wide_table().melt("day", var_name="unique_id", value_name="y").rename(columns={"day": "ds"})


def fitted(table: Any) -> IBForecaster:
    return IBForecaster(HORIZON, 12, patch_len=3, recipe="any-budget", epochs=1, device="cpu").fit(table)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("make", [wide_table, long_table])
def test_evaluate_accepts_a_forecast_joined_with_its_truth(make: Any, kind: type) -> None:
    table = make() if kind is pd.DataFrame else pl.from_pandas(make())
    model, now = fitted(table), wide_table()["day"][NOW - 1]
    scores = evaluate(with_truth(model.predict(table, at=now), table), metrics=[mae])
    assert isinstance(scores, kind)
    explained = model.explain(table, at=now)
    errors = dict(zip(explained.channels, np.abs(explained.forecast - explained.truth).mean(axis=0), strict=True))
    assert dict(zip(scores["unique_id"], scores["IBForecast"], strict=True)) == pytest.approx(errors)


def test_a_long_forecast_needs_only_the_truth_added() -> None:
    table = long_table()
    forecast = fitted(table).predict(table, at=wide_table()["day"][NOW - 1])
    assert forecast.columns.tolist() == ["unique_id", "ds", "IBForecast"]
    scores = evaluate(forecast.merge(table, on=["unique_id", "ds"]), metrics=[mae])
    pd.testing.assert_frame_equal(scores, evaluate(with_truth(forecast, table), metrics=[mae]))


def test_steps_without_truth_are_left_out() -> None:
    table = wide_table()
    table.loc[NOW + 1, "load"] = np.nan
    forecast = fitted(table).predict(table, at=table["day"][NOW - 1])
    joined = with_truth(forecast, table.iloc[: NOW + 4])
    assert joined.columns.tolist() == ["unique_id", "ds", "IBForecast", "y"]
    assert joined.groupby("unique_id").size().to_dict() == {"load": 3, "heat": 4}


@pytest.mark.parametrize("make", [wide_table, long_table])
def test_interval_columns_get_nixtlas_names(make: Any) -> None:
    table = make()
    forecast = fitted(table).predict(table, at=wide_table()["day"][NOW - 1])
    name = [column for column in forecast.columns if column not in ("unique_id", "ds", "day")]
    ends = {
        f"{column}{end}": forecast[column] + offset
        for column in name
        for end, offset in (("-lo-80", -1), ("-hi-80", 1))
    }
    joined = with_truth(forecast.assign(**ends, open_rate=0.2), table)
    np.testing.assert_allclose(joined["IBForecast-hi-80"], joined["IBForecast"] + 1)
    np.testing.assert_allclose(joined["IBForecast-lo-80"], joined["IBForecast"] - 1)
    assert len(joined) == 2 * HORIZON
    assert "open_rate" not in joined


def test_other_column_names_become_nixtlas() -> None:
    table = long_table().set_axis(["hour", "site", "kw"], axis=1)
    model = IBForecaster(HORIZON, 12, patch_len=3, recipe="any-budget", epochs=1, device="cpu", id="site", target="kw")
    forecast = model.fit(table).predict(table, at=wide_table()["day"][NOW - 1])
    joined = with_truth(forecast, table, time="hour", id="site", target="kw")
    assert set(joined.columns) == {"unique_id", "ds", "y", "IBForecast"}
    assert len(joined) == 2 * HORIZON


def test_a_table_with_other_columns_than_the_forecast_is_refused() -> None:
    table = wide_table()
    forecast = fitted(table).predict(table, at=table["day"][NOW - 1])
    with pytest.raises(DataError, match=r"in the layout of the forecast \(got one without \['day', 'load', 'heat'\]\)"):
        with_truth(forecast, long_table())
