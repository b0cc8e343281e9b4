"""One list of settings for the forecaster, the command line and sktime; settings of a forecaster do not change."""

import inspect
import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster, UsageError
from ibforecast.cli.fit import command as fit_command
from ibforecast.cli.settings import forecaster_of
from ibforecast.core.sizes import Sizes
from ibforecast.settings import Settings, Usual
from ibforecast.zoo.recipes import DEFAULT, Recipe, resolve, resolve_ours

NAMES = [each.name for each in fields(Settings)]
HORIZON, LOOK_BACK, ROWS = 6, 24, 200


def table() -> pd.DataFrame:
    noise = np.random.default_rng(1).normal(size=ROWS)
    rhythm = np.sin(2 * np.pi * np.arange(ROWS) / 24) + 0.2 * noise
    return pd.DataFrame({"when": pd.date_range("2023-01-01", periods=ROWS, freq="h"), "load": rhythm})


def unfitted(**settings: Any) -> IBForecaster:
    usual = {
        "horizon": HORIZON,
        "look_back": LOOK_BACK,
        "budget": 0.5,
        "recipe": "any-budget",
        "epochs": 1,
        "device": "cpu",
    }
    return IBForecaster(**(usual | settings))


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return unfitted().fit(table())


# --- One list ---


def test_a_forecaster_takes_the_settings_with_their_defaults() -> None:
    ours, listed = (list(inspect.signature(kind).parameters) for kind in (IBForecaster, Settings))
    assert ours == listed == NAMES
    default = IBForecaster(HORIZON)
    assert {name: getattr(default, name) for name in NAMES[1:]} == {name: getattr(Settings, name) for name in NAMES[1:]}


def test_the_docstring_of_a_forecaster_explains_every_setting() -> None:
    explained = set(re.findall(r"`(\w+)`", IBForecaster.__doc__ or ""))
    assert set(NAMES) <= explained


def test_the_command_line_has_one_option_per_setting_with_default_and_help() -> None:
    verb = {"table", "out", "overwrite", "minutes", "threads", "as_json"}
    options = {option.name: option for option in fit_command.params if option.name not in verb}
    assert list(options) == NAMES
    for each in fields(Settings):
        assert isinstance(options[each.name], click.Option)
        assert options[each.name].help == each.metadata["help"]
    with fit_command.make_context("fit", ["table.csv", "--horizon", "6", "--out", "model"]) as context:
        made = forecaster_of({name: value for name, value in context.params.items() if name not in verb})
    assert made.document() == Settings(6).document()
    assert isinstance(made.look_back, Usual)


def test_sktime_shares_the_defaults_of_the_settings() -> None:
    pytest.importorskip("sktime", reason="needs the sktime extra")
    from ibforecast.adapters.sktime import IBForecastForecaster

    parameters = {
        name: parameter.default
        for name, parameter in inspect.signature(IBForecastForecaster.__init__).parameters.items()
        if name in NAMES
    }
    chosen_by_length = {"horizon": None, "look_back": None}
    own = {"horizon", "look_back", "budget", "cycle", "patch_len", "recipe", "irregular", "limits", "whole", "device"}
    assert set(parameters) == own
    assert parameters == {name: getattr(Settings, name, None) for name in parameters} | chosen_by_length


def test_neuralforecast_shares_the_defaults_of_the_settings() -> None:
    pytest.importorskip("neuralforecast", reason="needs the neuralforecast extra")
    from ibforecast.adapters.neuralforecast import IBForecast

    parameters = inspect.signature(IBForecast.__init__).parameters
    for name in ("budget", "patch_len", "recipe"):
        assert parameters[name].default == getattr(Settings, name)


def test_the_repr_of_a_forecaster_shows_the_chosen_settings() -> None:
    assert repr(IBForecaster(HORIZON)) == "IBForecaster(horizon=6; not fitted)"
    assert repr(IBForecaster(HORIZON, past=["wind"])) == "IBForecaster(horizon=6, past=('wind',); not fitted)"
    shown = IBForecaster(HORIZON, zone="Europe/Berlin")._repr_html_()
    assert "zone" in shown
    assert "freq" not in shown


# --- Settings do not change ---


@pytest.mark.parametrize("name", ["horizon", "recipe", "_fitted", "fitted", "anything"])
def test_setting_an_attribute_is_refused_and_changes_nothing(model: IBForecaster, name: str) -> None:
    fixed = r"a forecaster's settings are fixed when it is made"
    before = {each: getattr(model, each) for each in NAMES}
    for forecaster in (model, unfitted()):
        with pytest.raises(UsageError, match=fixed):
            setattr(forecaster, name, 12)
    with pytest.raises(UsageError, match=fixed):
        del model.horizon
    assert {each: getattr(model, each) for each in NAMES} == before


def test_the_remedy_is_another_forecaster(model: IBForecaster) -> None:
    with pytest.raises(UsageError, match=re.escape("build another: model.replace(horizon=12).fit(table)")):
        model.horizon = 12  # type: ignore[misc]
    other = model.replace(horizon=12).fit(table())
    assert other.explain(table()).verify()
    assert (other.horizon, len(other.predict(table()))) == (12, 12)
    assert (model.horizon, len(model.predict(table()))) == (HORIZON, HORIZON)


def test_another_forecaster_is_not_fitted_and_has_the_other_settings(model: IBForecaster) -> None:
    other = model.replace(seed=1)
    assert isinstance(other, IBForecaster)
    assert (other.seed, other.look_back, other.recipe) == (1, LOOK_BACK, "any-budget")
    with pytest.raises(UsageError, match="must be fitted"):
        _ = other.fitted
    assert other != model.replace(seed=1)


def test_settings_are_frozen_and_compare_by_value() -> None:
    settings = Settings(HORIZON, channels=["a", "b"])
    assert settings == Settings(HORIZON, channels=("a", "b"))
    assert hash(settings) == hash(Settings(HORIZON, channels=("a", "b")))
    with pytest.raises(FrozenInstanceError):
        settings.horizon = 12  # type: ignore[misc]


# --- Sealed or choosing ---


def test_a_model_that_is_both_sealed_and_choosing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"a model is either sealed or choosing \(got both\); leave one of them out"):
        IBForecaster(HORIZON, sealed=True, choosing=True)


@pytest.mark.parametrize(("name", "recipe"), [("sealed", "any-budget"), ("choosing", "sealed")])
def test_a_recipe_of_the_other_kind_is_refused(name: str, recipe: str) -> None:
    rule = rf"a {name} model needs a {name} recipe \(got recipe='{recipe}'\); leave the recipe out, use '{name}'"
    with pytest.raises(UsageError, match=rule):
        unfitted(recipe=recipe, **{name: True}).fit(table())


@pytest.mark.parametrize("name", ["sealed", "choosing"])
def test_a_kind_chosen_by_hand_needs_no_contest(name: str) -> None:
    fitted = unfitted(recipe=DEFAULT, **{name: True}).fit(table()).fitted
    assert (fitted.summary.recipe, fitted.summary.contest) == (name, None)
    assert fitted.config.sealed is (name == "sealed")


def test_a_plain_fit_stores_its_contest_and_a_refit_repeats_its_outcome(tmp_path: Path) -> None:
    model = unfitted(recipe=DEFAULT).fit(table())
    model.save(tmp_path / "model")
    summary, loaded = model.fitted.summary, IBForecaster.load(tmp_path / "model")
    assert summary.contest is not None
    assert loaded.fitted.summary.contest == summary.contest
    again = loaded.fit(table()).fitted
    assert again.config == model.fitted.config
    assert again.summary.contest is None


# --- A recipe as an object ---


def test_a_recipe_may_be_an_object() -> None:
    sizes = Sizes(LOOK_BACK, HORIZON, 1, 24)
    recipe = resolve_ours("any-budget", sizes, budget=0.5)
    named, by_object = unfitted().fit(table()), unfitted(recipe=recipe).fit(table())
    assert by_object.fitted.weights_sha256 == named.fitted.weights_sha256
    assert by_object.fitted.summary.recipe_sha256 == named.fitted.summary.recipe_sha256


def test_a_recipe_object_is_adapted_to_the_table_and_the_settings() -> None:
    recipe = resolve_ours("any-budget", Sizes(96, 24, 5, 7))
    fitted = unfitted(recipe=recipe, budget=0.5).fit(table()).fitted
    assert (fitted.config.look_back, fitted.config.horizon, fitted.config.channels) == (LOOK_BACK, HORIZON, 1)
    assert (fitted.config.budget, LOOK_BACK % fitted.config.patch_len) == (0.5, 0)
    assert replace(fitted.config.readout) == recipe.config.readout


def test_a_recipe_for_another_forecaster_is_refused() -> None:
    other = replace(resolve("dense", Sizes(LOOK_BACK, HORIZON, 1, 24)), forecaster="dlinear")
    with pytest.raises(UsageError, match=r"recipe must be for ibforecast \(got 'dense', for dlinear\)"):
        unfitted(recipe=other).fit(table())


def test_a_loaded_model_has_its_recipe_as_an_object(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = IBForecaster.load(tmp_path / "model", device="cpu")
    assert isinstance(loaded.recipe, Recipe)
    assert loaded.recipe.sha256 == model.fitted.summary.recipe_sha256
    assert loaded.channels == ("load",)


HUGE = 10**5000
"""A number that Python does not write out."""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"look_back": 10**9}, "look_back must be at most 1000000 (got 1000000000); try 96"),
        ({"horizon": 10**9}, "horizon must be at most 1000000 (got 1000000000); try 24"),
        ({"cycle": 10**7}, "cycle must be at most 1000000 (got 10000000); try 24"),
        ({"cycle": (24, 10**7)}, "cycle must be at most 1000000 (got 10000000); try 24"),
        ({"seed": 2**64}, "seed must be a number that 64 bits can hold (got 18446744073709551616)"),
        ({"seed": -(2**63) - 1}, "seed must be a number that 64 bits can hold"),
        ({"horizon": 0}, "horizon must be at least 1 (got horizon=0); give a positive whole number"),
        ({"look_back": -1}, "look_back must be at least 1 (got look_back=-1)"),
        ({"patch_len": 0}, "patch_len must be at least 1 (got 0)"),
        *(({"budget": budget}, "budget must lie in (0, 1]") for budget in (0.0, -0.1, 7.0, float("nan"), float("inf"))),
        ({"missing_values": [float("nan")]}, "missing_values must be finite numbers (got nan); leave it out"),
        ({"missing_values": [float("-inf")]}, "missing_values must be finite numbers (got -inf)"),
        *(
            ({name: sign * HUGE}, f"{name} must be a number that 64 bits can hold (got a number of about 5000 digits)")
            for name in ("look_back", "horizon", "cycle", "patch_len", "seed", "epochs")
            for sign in (1, -1)
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_numbers_beyond_all_use_are_refused_when_a_forecaster_is_made(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as refusal:
        IBForecaster(**({"horizon": HORIZON} | settings))
    assert refusal.value.remedy


@pytest.mark.parametrize("seed", [2**64 - 1, -(2**63)])
def test_the_largest_and_smallest_seed_can_be_fitted(seed: int) -> None:
    assert unfitted(seed=seed).fit(table()).fitted.summary.seed == seed


def test_cycles_whose_common_period_is_too_long_are_refused() -> None:
    primes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
    with pytest.raises(UsageError, match="begin again together within 9007199254740992"):
        unfitted(cycle=primes).fit(table())
    with pytest.raises(UsageError, match="at most 1000000 steps in all"):
        unfitted(cycle=(600_000, 500_000)).fit(table())
