"""Short tables: a look-back, parts and patches that fit them, without a word from the user."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import DataError, IBForecaster
from ibforecast.core.sizes import Sizes
from ibforecast.data.splits import Split
from ibforecast.data.tables import read
from ibforecast.settings import Settings
from ibforecast.zoo.recipes import resolve_ours


def table_of(rows: int, freq: str, channels: int = 1) -> pd.DataFrame:
    random = np.random.default_rng(rows)
    values = np.sin(np.arange(rows))[:, None] + random.normal(size=(rows, channels))
    columns = {f"c{place}": values[:, place] for place in range(channels)}
    return pd.DataFrame({"time": pd.date_range("2010-01-01", periods=rows, freq=freq)} | columns)


@pytest.mark.parametrize(
    ("rows", "freq", "horizon", "look_back"),
    [
        (100, "MS", 12, 24),
        (100, "D", 7, 28),
        (120, "h", 24, 24),
        (60, "W", 4, 19),
        (30, "MS", 3, 12),
        (100, "D", 14, 21),
    ],
)
def test_a_short_table_is_fitted_with_a_shorter_look_back_and_says_so(
    rows: int, freq: str, horizon: int, look_back: int
) -> None:
    table = table_of(rows, freq)
    with pytest.warns(UserWarning, match=f"has {rows} rows, so look_back={look_back} and split="):
        model = IBForecaster(horizon, epochs=1, sealed=True, device="cpu").fit(table)
    assert model.fitted.config.look_back == look_back
    explained = model.explain(table)
    assert explained.explanation.mask.sum() >= 1
    assert model.verify(explained, table)
    assert len(model.predict(table)) == horizon


GIVEN = [{"look_back": 90}, {"look_back": 96}, {"split": (0.8, 0.1, 0.1)}, {"split": (0.7, 0.1, 0.2)}]


@pytest.mark.parametrize("settings", GIVEN)
def test_settings_that_were_given_do_not_change_even_if_they_are_the_defaults(settings: dict[str, Any]) -> None:
    series = read(table_of(100, "D")).series
    made = Settings(horizon=12, **settings)
    for each in (made, replace(made, seed=1), copy.deepcopy(made)):
        sized = each.sized(series)
        assert {name: getattr(sized, name) for name in settings} == settings


def test_defaults_change_with_a_short_table_after_settings_were_copied() -> None:
    plain = Settings(horizon=12)
    series = read(table_of(100, "D")).series
    for copied in (replace(plain, seed=1), copy.deepcopy(plain)):
        assert copied.sized(series).look_back == plain.sized(series).look_back == 28


@pytest.mark.parametrize("rows", [172, 400, 5000])
def test_a_table_that_is_long_enough_keeps_every_setting(rows: int) -> None:
    settings = Settings(horizon=12)
    series = read(table_of(rows, "h")).series
    assert settings.sized(series) is settings
    assert Split.by_fractions(settings.split, rows).starts("train", 96, 12)


@pytest.mark.filterwarnings("ignore:a table must hold")
def test_a_look_back_of_two_years_of_months_fits_a_hundred_rows_as_it_is() -> None:
    model = IBForecaster(12, 24, epochs=1, sealed=True, device="cpu").fit(table_of(100, "MS"))
    assert (model.fitted.config.look_back, model.fitted.split) == (24, Split(71, 88, 100))


def test_a_horizon_that_no_table_of_this_length_can_hold_is_refused() -> None:
    with pytest.raises(DataError, match="must contain at least one window"):
        IBForecaster(horizon=60, epochs=1, device="cpu").fit(table_of(100, "D"))


@pytest.mark.parametrize("recipe", ["default", "sealed", "any-budget", "static-fixed"])
@pytest.mark.parametrize("look_back", [2, 3, 4, 7, 12, 24, 28])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_channel_has_a_readable_value_where_the_budget_allowed_none(
    recipe: str, look_back: int, channels: int
) -> None:
    config = resolve_ours(recipe, Sizes(look_back, 4, channels, 12)).config
    assert config.allowance >= 1
    assert config.patch_len > 1 or config.allowance >= channels


def test_a_budget_that_was_given_is_kept() -> None:
    assert resolve_ours("default", Sizes(24, 4, 1, 12), budget=0.1).config.budget == 0.1
    assert resolve_ours("any-budget", Sizes(96, 4, 3, 24)).config.patch_len == 12


@pytest.mark.parametrize("settings", [{"recipe": "static-fixed"}, {"sealed": True}])
@pytest.mark.parametrize(("part", "gap"), [("training", slice(0, 205)), ("validation", slice(100, 290))])
def test_a_gap_as_long_as_a_part_of_the_table_is_refused_with_the_part(
    settings: dict[str, Any], part: str, gap: slice
) -> None:
    table = table_of(300, "h", 2)
    table.loc[gap, "c1"] = np.nan
    with pytest.raises(DataError, match=f"{part} needs a window in which every channel has a value"):
        IBForecaster(6, 24, epochs=1, device="cpu", **settings).fit(table)
