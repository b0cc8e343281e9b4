"""The search: reproducible, resumable, blind to the test windows, and its recipe is what was tried."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import DataError, IBForecaster, IBForecastError, MissingExtraError, UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.tune import KNOBS, Span, Trial, Tuning, to_toml, tune
from ibforecast.zoo.recipes import OWN, resolve

pytest.importorskip("optuna", reason="needs the tune extra")

TINY = """
[model]
budget = 0.25
[model.gate]
width = 8
[model.readout]
width = 8
[train]
epochs = 3
batch = 64
"""


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    noise = np.random.default_rng(3).normal(size=(240, 2))
    values = np.sin(2 * np.pi * np.arange(240) / 24)[:, None] + 0.3 * noise
    when = pd.date_range("2023-01-01", periods=240, freq="h")
    return pd.DataFrame({"when": when, "load": values[:, 0], "heat": values[:, 1]})


@pytest.fixture(scope="module")
def forecaster(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., IBForecaster]:
    recipe = tmp_path_factory.mktemp("recipes") / "tiny.toml"
    recipe.write_text(TINY)

    def make(**settings: Any) -> IBForecaster:
        return IBForecaster(**{"horizon": 12, "look_back": 48, "recipe": str(recipe), "device": "cpu"} | settings)

    return make


@pytest.fixture(scope="module")
def undisturbed(table: pd.DataFrame, forecaster: Callable[..., IBForecaster]) -> Tuning:
    return tune(table, forecaster(), 8)


def timeless(trials: tuple[Trial, ...]) -> list[Trial]:
    return [replace(trial, seconds=0.0) for trial in trials]


# --- What is found ---


def test_the_first_trial_is_the_recipe_as_it_is(
    undisturbed: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    model = forecaster().fit(table)
    first = undisturbed.trials[0]
    assert first.validation_error == model.fitted.summary.validation_error
    assert first.open_rate == model.evaluate(table, "validation").open_rate
    assert first.knobs["model.readout.width"] == 8
    assert first.knobs["train.learning_rate"] == 1e-3


def test_the_first_trial_goes_by_the_kind_of_the_table(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    recipe = tmp_path / "kinds.toml"
    recipe.write_text(TINY + "[kind.short.model.readout]\nwidth = 16\n")
    for look_back, width in ((24, 16), (48, 8)):  # one cycle, two cycles
        (first,) = tune(table, forecaster(recipe=str(recipe), look_back=look_back), 1).trials
        assert first.knobs["model.readout.width"] == width


def test_the_best_trial_is_the_finished_one_with_the_smallest_error(undisturbed: Tuning) -> None:
    finished = [trial for trial in undisturbed.trials if trial.state == "finished"]
    assert [trial.number for trial in undisturbed.trials] == list(range(1, 9))
    assert undisturbed.best in finished
    assert undisturbed.best.validation_error == min(trial.validation_error or np.inf for trial in finished)
    assert len({str(trial.knobs) for trial in undisturbed.trials}) == 8


def test_the_recipe_that_is_written_is_the_one_that_was_tried(
    undisturbed: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.toml"
    path.write_text(undisturbed.recipe)
    model = forecaster(recipe=str(path)).fit(table)
    assert model.fitted.summary.validation_error == undisturbed.best.validation_error
    assert model.fitted.config.patch_len == undisturbed.patch_len
    assert undisturbed.fit(table).fitted.weights_sha256 == model.fitted.weights_sha256


def test_a_trial_that_promises_nothing_is_pruned(undisturbed: Tuning) -> None:
    pruned = [trial for trial in undisturbed.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.epochs < 3 and trial.number > 4 for trial in pruned)


def test_the_test_windows_cannot_matter(
    undisturbed: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    other = table.copy()
    other.loc[other.index >= 192, ["load", "heat"]] = np.random.default_rng(0).normal(99, 9, (48, 2))
    assert timeless(tune(other, forecaster(), 3).trials) == timeless(undisturbed.trials)[:3]


def test_the_seed_decides_what_is_tried(
    undisturbed: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    assert timeless(tune(table, forecaster(), 3).trials) == timeless(undisturbed.trials)[:3]
    assert tune(table, forecaster(seed=1), 2).trials[1].knobs != undisturbed.trials[1].knobs


def test_the_budget_is_held_unless_budgets_are_given(
    undisturbed: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    assert all("model.budget" not in trial.knobs for trial in undisturbed.trials)
    assert "budget = 0.25" in undisturbed.recipe
    searched = tune(table, forecaster(), 6, budgets=(0.5, 1.0))
    tried = {trial.knobs["model.budget"] for trial in searched.trials}
    assert searched.trials[0].knobs["model.budget"] == 0.25
    assert len(tried) > 1
    assert tried <= {0.25, 0.5, 1.0}
    given = tune(table, forecaster(budget=0.5), 1)
    assert "budget = 0.5" in given.recipe


@pytest.mark.parametrize(("look_back", "patch_len", "allowed"), [(50, None, {5, 10, 25}), (48, 16, {16})])
def test_patches_divide_the_look_back_and_stay_where_they_are_given(
    table: pd.DataFrame,
    forecaster: Callable[..., IBForecaster],
    look_back: int,
    patch_len: int | None,
    allowed: set[int],
) -> None:
    tuning = tune(table, forecaster(look_back=look_back, patch_len=patch_len, epochs=1), 4)
    assert {trial.state for trial in tuning.trials} == {"finished"}
    assert {trial.knobs["model.patch_len"] for trial in tuning.trials} <= allowed
    assert tuning.fit(table).fitted.summary.validation_error == tuning.best.validation_error
    assert {trial.epochs for trial in tuning.trials} == {1}


# --- Stopping and going on ---


def test_a_search_that_is_gone_on_with_tries_what_an_undisturbed_one_tries(
    undisturbed: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    storage = tmp_path / "kept" / "search.log"
    assert len(tune(table, forecaster(), 3, storage=storage).trials) == 3
    heard: list[tuple[int, int]] = []
    resumed = tune(table, forecaster(), 5, storage=storage, on_trial=lambda t, n: heard.append((t.number, n)))
    assert heard == [(4, 5), (5, 5)]
    assert timeless(resumed.trials) == timeless(undisturbed.trials)[:5]
    assert tune(table, forecaster(), 5, storage=storage).trials == resumed.trials


@pytest.mark.parametrize("killed", [1, 3])
def test_a_trial_that_was_stopped_half_way_is_tried_again(
    undisturbed: Tuning,
    table: pd.DataFrame,
    forecaster: Callable[..., IBForecaster],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed: int,
) -> None:
    fit, calls = IBForecaster.fit, list[int]()

    def stop(self: IBForecaster, source: Any, **settings: Any) -> IBForecaster:
        calls.append(1)
        if len(calls) == killed:
            raise KeyboardInterrupt
        return fit(self, source, **settings)

    with monkeypatch.context() as patch:
        patch.setattr(IBForecaster, "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            tune(table, forecaster(), 4, storage=tmp_path / "search.log")
    resumed = tune(table, forecaster(), 4, storage=tmp_path / "search.log")
    assert timeless(resumed.trials) == timeless(undisturbed.trials)[:4]


def test_one_file_keeps_the_searches_of_different_tables_apart(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    storage = tmp_path / "search.log"
    tune(table, forecaster(), 2, storage=storage)
    other = tune(table[["when", "load"]], forecaster(), 1, storage=storage)
    assert len(other.trials) == 1
    assert len(tune(table, forecaster(), 1, storage=storage).trials) == 2


def test_no_trial_is_started_once_the_time_is_up(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    with pytest.raises(IBForecastError, match="must finish a trial"):
        tune(table, forecaster(), 5, timeout=0.0)
    tune(table, forecaster(), 1, storage=tmp_path / "search.log")
    assert len(tune(table, forecaster(), 5, storage=tmp_path / "search.log", timeout=0.0).trials) == 1


# --- What goes wrong ---


def test_a_recipe_that_cannot_be_trained_is_told_and_stops_no_other(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOBS, "train.learning_rate", Span(1e29, 1e30))
    tuning = tune(table, forecaster(), 3)
    assert [trial.state for trial in tuning.trials] == ["finished", "failed", "failed"]
    assert "training must stay finite" in tuning.trials[1].message
    assert tuning.best == tuning.trials[0]


def test_no_trial_of_a_table_with_covariates_is_one_that_cannot_be(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    model = forecaster(past=["heat"], cycle=(24, 48), epochs=1)
    tuning = tune(table, model, 6)
    assert "failed" not in {trial.state for trial in tuning.trials}
    assert tuning.fit(table).fitted.config.past == 1
    assert not {"past", "future", "further_cycles"} & {line.split(" = ")[0] for line in tuning.recipe.splitlines()}


def test_gates_that_are_all_bias_keep_one(table: pd.DataFrame, forecaster: Callable[..., IBForecaster]) -> None:
    tuning = tune(table, forecaster(recipe="static-fixed", epochs=1), 8)
    assert "failed" not in {trial.state for trial in tuning.trials}
    assert {trial.knobs["model.gate.recent"] for trial in tuning.trials} > {2}


def test_a_recipe_does_not_say_what_the_table_must(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    (tmp_path / "odd.toml").write_text(TINY.replace("[model]", "[model]\npast = 1\nfuture = 2\nfurther_cycles = [48]"))
    model = forecaster(recipe=str(tmp_path / "odd.toml"), epochs=1).fit(table)
    assert (model.fitted.config.past, model.fitted.config.future, model.fitted.config.cycles) == (0, 0, (24,))
    assert model.explain(table).verify()


def test_a_table_or_a_setting_that_cannot_be_is_refused(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    cases: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (UsageError, "trials must be at least 1", table, {"trials": 0}),
        (UsageError, "one that ships", table, {"forecaster": forecaster(recipe="dlinear")}),
        (UsageError, "horizon must be at least 1", table, {"forecaster": forecaster(horizon=0)}),
        (DataError, "at least one window", table[:60], {}),
        (DataError, "must be a file that exists", tmp_path / "nowhere.csv", {}),
    ]
    for kind, message, source, settings in cases:
        with pytest.raises(kind, match=message):
            tune(source, **{"forecaster": forecaster(), "trials": 2} | settings)


@pytest.mark.parametrize("content", ["when,load\n2023-01-01,1\n", "hello", "[1]", '{"format": "ibforecast.model"}'])
def test_a_file_of_something_else_is_no_storage_and_is_left_alone(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "precious"
    path.write_text(content)
    with pytest.raises(DataError, match="the storage must be the file of a search"):
        tune(table, forecaster(), 1, storage=path)
    assert path.read_text() == content


def test_optuna_that_is_not_installed_is_asked_for(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"ibforecast\[tune\]"):
        tune(table, forecaster(), 1)


def test_optuna_is_quiet_and_left_as_it_was(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], capfd: pytest.CaptureFixture[str]
) -> None:
    import optuna

    before = optuna.logging.get_verbosity()
    tune(table, forecaster(epochs=1), 1)
    assert optuna.logging.get_verbosity() == before
    assert capfd.readouterr() == ("", "")


# --- Recipes as text ---


@pytest.mark.parametrize("name", OWN.names)
@pytest.mark.parametrize("data", [None, "ETTm1", "Weather"])
def test_a_recipe_that_is_written_reads_back_as_it_was(name: str, data: str | None, tmp_path: Path) -> None:
    sizes = Sizes(96, 96, 7, 24)
    recipe = resolve(name, sizes, data)
    path = tmp_path / "again.toml"
    path.write_text(to_toml(recipe))
    again = resolve(str(path), sizes)
    assert (again.config, again.train, again.sha256) == (recipe.config, recipe.train, recipe.sha256)


def test_a_search_writes_no_temporary_file(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **named: Any) -> None:
        raise AssertionError("a temporary file was made")

    for name in ("mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"):
        monkeypatch.setattr(f"tempfile.{name}", refuse)
    tuning = tune(table, forecaster(), 2)
    assert tuning.fit(table).fitted.summary.validation_error == tuning.best.validation_error
