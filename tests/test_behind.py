"""Channels that a naive forecast describes better than a fit, on validation windows: kept, printed and true."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.cli.fit import MOST_BEHIND, _behind
from ibforecast.zoo.saved import Behind

RECIPE = """
extends = "sealed"
[model.readout]
width = 16
[train]
epochs = 1
"""


def make_table(rows: int = 700) -> pd.DataFrame:
    """Make a table with too few weeks of training for the usual one to be blended in."""
    random, hour = np.random.default_rng(3), np.arange(rows)
    return pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=rows, freq="h"),
            "noise": random.normal(size=rows),
            "week": 30.0 * (hour % 168 < 120) + random.normal(size=rows),
            "constant": 5.0,
        }
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    recipe = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    recipe.write_text(RECIPE)
    return IBForecaster(24, 48, cycle=24, recipe=str(recipe), device="cpu").fit(make_table())


def test_a_fit_names_the_channels_that_evaluate_finds_worse_than_naive(model: IBForecaster) -> None:
    behind = model.fitted.summary.behind
    assert [(each.channel, each.naive_cycle) for each in behind][:1] == [("week", 168)]
    assert not {"noise", "constant"} & {each.channel for each in behind}
    rows = {row.channel: row for row in model.evaluate(make_table(), "validation").channels}
    for each in behind:
        row = rows[each.channel]
        assert (each.mae, each.naive_mae) == pytest.approx((row.mae, row.naive_mae), rel=1e-6)
        assert row.mae > 1.02 * row.naive_mae


def test_a_saved_model_keeps_them(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    assert IBForecaster.load(tmp_path / "model").fitted.summary.behind == model.fitted.summary.behind


def test_the_line_of_fit_names_few_and_a_cycle_that_the_model_does_not_know(model: IBForecaster) -> None:
    config, week, day = model.fitted.config, Behind("week", 15.0, 10.0, 168), Behind("day", 1.2, 1.0, 24)
    assert _behind([week], config) == (
        "worse than a naive forecast on validation windows: week (MAE 150% of repeating the last 168 steps); "
        "try --cycle 24,168"
    )
    line = _behind([day] * (MOST_BEHIND + 2), config)
    assert line.count("day (MAE 120%") == MOST_BEHIND
    assert line.endswith(", and 2 other channels; see ibforecast evaluate")
