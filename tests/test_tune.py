"""The search is reproducible and resumable, ignores the test windows, and returns a recipe it tried."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import DataError, IBForecaster, IBForecastError, MissingExtraError, UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.tune import KNOBS, Span, Trial, Tuning, to_toml, tune
from ibforecast.zoo.recipes import DEFAULT, OWN, resolve

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
def uninterrupted(table: pd.DataFrame, forecaster: Callable[..., IBForecaster]) -> Tuning:
    return tune(table, forecaster(), 8)


def without_times(trials: tuple[Trial, ...]) -> list[Trial]:
    return [replace(trial, seconds=0.0) for trial in trials]


# --- Trials ---


def test_the_first_trial_is_the_unchanged_recipe(
    uninterrupted: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    model = forecaster().fit(table)
    first = uninterrupted.trials[0]
    assert first.validation_error == model.fitted.summary.validation_error
    assert first.open_rate == model.evaluate(table, "validation").open_rate
    assert first.knobs["model.readout.width"] == 8
    assert first.knobs["train.learning_rate"] == 1e-3


def test_the_first_trial_depends_on_the_kind_of_the_table(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    recipe = tmp_path / "kinds.toml"
    recipe.write_text(TINY + "[kind.short.model.readout]\nwidth = 16\n")
    for look_back, width in ((24, 16), (48, 8)):  # one cycle, two cycles
        (first,) = tune(table, forecaster(recipe=str(recipe), look_back=look_back), 1).trials
        assert first.knobs["model.readout.width"] == width


def test_the_best_trial_is_the_finished_one_with_the_smallest_error(uninterrupted: Tuning) -> None:
    finished = [trial for trial in uninterrupted.trials if trial.state == "finished"]
    assert [trial.number for trial in uninterrupted.trials] == list(range(1, 9))
    assert uninterrupted.best in finished
    assert uninterrupted.best.validation_error == min(trial.validation_error or np.inf for trial in finished)
    assert len({str(trial.knobs) for trial in uninterrupted.trials}) == 8


def test_the_returned_recipe_is_that_of_the_best_trial(
    uninterrupted: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    path = tmp_path / "tuned.toml"
    path.write_text(uninterrupted.recipe)
    model = forecaster(recipe=str(path)).fit(table)
    assert model.fitted.summary.validation_error == uninterrupted.best.validation_error
    assert model.fitted.config.patch_len == uninterrupted.patch_len
    assert uninterrupted.fit(table).fitted.weights_sha256 == model.fitted.weights_sha256


def test_a_poor_trial_is_pruned(uninterrupted: Tuning) -> None:
    pruned = [trial for trial in uninterrupted.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.epochs < 3 and trial.number > 4 for trial in pruned)


def test_the_test_windows_do_not_matter(
    uninterrupted: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    other = table.copy()
    other.loc[other.index >= 192, ["load", "heat"]] = np.random.default_rng(0).normal(99, 9, (48, 2))
    assert without_times(tune(other, forecaster(), 3).trials) == without_times(uninterrupted.trials)[:3]


def test_the_seed_determines_the_trials(
    uninterrupted: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    assert without_times(tune(table, forecaster(), 3).trials) == without_times(uninterrupted.trials)[:3]
    assert tune(table, forecaster(seed=1), 2).trials[1].knobs != uninterrupted.trials[1].knobs


def test_the_budget_is_fixed_unless_budgets_are_passed(
    uninterrupted: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    assert all("model.budget" not in trial.knobs for trial in uninterrupted.trials)
    assert "budget = 0.25" in uninterrupted.recipe
    searched = tune(table, forecaster(), 6, budgets=(0.5, 1.0))
    tried = {trial.knobs["model.budget"] for trial in searched.trials}
    assert searched.trials[0].knobs["model.budget"] == 0.25
    assert len(tried) > 1
    assert tried <= {0.25, 0.5, 1.0}
    fixed = tune(table, forecaster(budget=0.5), 1)
    assert "budget = 0.5" in fixed.recipe


@pytest.mark.parametrize(("look_back", "patch_len", "allowed"), [(50, None, {5, 10, 25}), (48, 16, {16})])
def test_patch_lengths_divide_the_look_back_and_a_set_one_is_kept(
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


# --- Stop and continue ---


def test_a_resumed_search_makes_the_trials_of_an_uninterrupted_one(
    uninterrupted: Tuning, table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    storage = tmp_path / "kept" / "search.log"
    assert len(tune(table, forecaster(), 3, storage=storage).trials) == 3
    reported: list[tuple[int, int]] = []
    resumed = tune(table, forecaster(), 5, storage=storage, on_trial=lambda t, n: reported.append((t.number, n)))
    assert reported == [(4, 5), (5, 5)]
    assert without_times(resumed.trials) == without_times(uninterrupted.trials)[:5]
    assert tune(table, forecaster(), 5, storage=storage).trials == resumed.trials


@pytest.mark.parametrize("killed", [1, 3])
def test_an_interrupted_trial_is_tried_again(
    uninterrupted: Tuning,
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
    assert without_times(resumed.trials) == without_times(uninterrupted.trials)[:4]


def test_one_file_can_contain_searches_of_different_tables(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    storage = tmp_path / "search.log"
    tune(table, forecaster(), 2, storage=storage)
    other = tune(table[["when", "load"]], forecaster(), 1, storage=storage)
    assert len(other.trials) == 1
    assert len(tune(table, forecaster(), 1, storage=storage).trials) == 2


def test_no_trial_starts_after_the_timeout(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    with pytest.raises(IBForecastError, match="must finish a trial"):
        tune(table, forecaster(), 5, timeout=0.0)
    tune(table, forecaster(), 1, storage=tmp_path / "search.log")
    assert len(tune(table, forecaster(), 5, storage=tmp_path / "search.log", timeout=0.0).trials) == 1


# --- Failures ---


def test_a_trial_that_fails_is_recorded_and_the_search_continues(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOBS, "train.learning_rate", Span(1e29, 1e30))
    tuning = tune(table, forecaster(), 3)
    assert [trial.state for trial in tuning.trials] == ["finished", "failed", "failed"]
    assert "training must stay finite" in tuning.trials[1].message
    assert tuning.best == tuning.trials[0]


def test_no_trial_of_a_table_with_covariates_is_invalid(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    model = forecaster(past=["heat"], cycle=(24, 48), epochs=1)
    tuning = tune(table, model, 6)
    assert "failed" not in {trial.state for trial in tuning.trials}
    assert tuning.fit(table).fitted.config.past == 1
    assert not {"past", "future", "further_cycles"} & {line.split(" = ")[0] for line in tuning.recipe.splitlines()}


def test_gates_that_need_a_bias_keep_it(table: pd.DataFrame, forecaster: Callable[..., IBForecaster]) -> None:
    tuning = tune(table, forecaster(recipe="static-fixed", epochs=1), 8)
    assert "failed" not in {trial.state for trial in tuning.trials}
    assert {trial.knobs["model.gate.recent"] for trial in tuning.trials} > {2}


def test_a_sealed_recipe_stays_sealed_and_has_no_knob_without_effect(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    tuning = tune(table, forecaster(recipe="sealed", epochs=1, sealed=True), 3)
    assert [trial.state for trial in tuning.trials] == ["finished"] * 3
    assert all("model.objective.consistency_weight" not in trial.knobs for trial in tuning.trials)
    assert tuning.trials[0].knobs["model.patch_len"] == 1
    assert tuning.fit(table).fitted.config.sealed


def test_a_trial_of_the_default_is_a_contest_and_has_the_error_of_its_winner(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster]
) -> None:
    tuning = tune(table, forecaster(recipe=DEFAULT, epochs=1), 3)
    assert [trial.state for trial in tuning.trials] == ["finished"] * 3
    assert all("model.objective.consistency_weight" not in trial.knobs for trial in tuning.trials)
    first = forecaster(recipe=DEFAULT, epochs=1).fit(table).fitted.summary
    assert first.contest is not None
    assert tuning.trials[0].validation_error == first.validation_error
    assert tuning.fit(table).fitted.summary.validation_error == tuning.best.validation_error


def test_settings_of_the_table_in_a_recipe_are_ignored(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    (tmp_path / "odd.toml").write_text(TINY.replace("[model]", "[model]\npast = 1\nfuture = 2\nfurther_cycles = [48]"))
    model = forecaster(recipe=str(tmp_path / "odd.toml"), epochs=1).fit(table)
    assert (model.fitted.config.past, model.fitted.config.future, model.fitted.config.cycles) == (0, 0, (24,))
    assert model.explain(table).verify()


def test_an_invalid_table_or_setting_is_refused(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    cases: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (UsageError, "trials must be at least 1", table, {"trials": 0}),
        (UsageError, "one that ships", table, {"forecaster": forecaster(recipe="dlinear")}),
        (DataError, "at least one window", table[:60], {}),
        (DataError, "must be a file that exists", tmp_path / "nowhere.csv", {}),
    ]
    for kind, message, source, settings in cases:
        with pytest.raises(kind, match=message):
            tune(source, **{"forecaster": forecaster(), "trials": 2} | settings)


@pytest.mark.parametrize("failing", [3, 9])
def test_half_a_line_that_a_full_disk_leaves_is_removed(
    failing: int, table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    """The search goes on writing, that it failed, and would join it to the half line."""
    expected = tune(table, forecaster(), 2, storage=tmp_path / "undisturbed.log")
    from optuna.storages.journal import JournalFileBackend

    written, path = JournalFileBackend.append_logs, tmp_path / "search.log"
    calls: list[int] = []

    def append(backend: Any, logs: list[dict[str, Any]]) -> None:
        calls.append(len(logs))
        if len(calls) == failing:
            with path.open("ab") as file:
                file.write(b'{"op_code": 5, "worker')
            raise OSError(errno.ENOSPC, "No space left on device")
        written(backend, logs)

    with pytest.MonkeyPatch.context() as patch, suppress(OSError):
        patch.setattr(JournalFileBackend, "append_logs", append)
        tune(table, forecaster(), 2, storage=path)
    assert len(calls) >= failing
    assert path.read_bytes().endswith(b"\n")
    again = tune(table, forecaster(), 2, storage=path)
    assert again.recipe == expected.recipe
    assert [trial.validation_error for trial in again.trials] == [trial.validation_error for trial in expected.trials]


@pytest.mark.parametrize("cut", [1, 40, 10**9], ids=["the end of a line", "half a line", "all but the first letters"])
def test_a_search_whose_file_ends_in_half_a_line_continues_to_the_same_result(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "search.log"
    whole = tune(table, forecaster(), 2, storage=path)
    content = path.read_bytes()
    path.write_bytes(content[: max(7, len(content) - cut)])
    again = tune(table, forecaster(), 2, storage=path)
    assert again.recipe == whole.recipe
    assert [trial.validation_error for trial in again.trials] == [trial.validation_error for trial in whole.trials]


@pytest.mark.skipif(os.name != "posix", reason="needs flock")
def test_two_searches_cannot_use_one_file_at_the_same_time(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    path, refused = tmp_path / "search.log", list[str]()

    def intrude(trial: object, trials: int) -> None:
        with pytest.raises(UsageError) as error:
            tune(table, forecaster(), 2, storage=path)
        refused.append(str(error.value))

    assert len(tune(table, forecaster(), 2, storage=path, on_trial=intrude).trials) == 2
    assert ["one search at a time" in message for message in refused] == [True, True]


@pytest.mark.parametrize("content", ["when,load\n2023-01-01,1\n", "hello", "[1]", '{"format": "ibforecast.model"}'])
def test_a_file_that_is_not_a_search_is_refused_and_left_unchanged(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], tmp_path: Path, content: str
) -> None:
    path = tmp_path / "precious"
    path.write_text(content)
    with pytest.raises(DataError, match="the storage must be the file of a search"):
        tune(table, forecaster(), 1, storage=path)
    assert path.read_text() == content


def test_a_missing_optuna_is_refused_with_the_install_command(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"ibforecast\[tune\]"):
        tune(table, forecaster(), 1)


def test_optuna_is_quiet_and_its_logging_is_left_unchanged(
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
def test_a_written_recipe_reads_back_unchanged(name: str, data: str | None, tmp_path: Path) -> None:
    sizes = Sizes(96, 96, 7, 24)
    recipe = resolve(name, sizes, data)
    path = tmp_path / "again.toml"
    path.write_text(to_toml(recipe))
    again = resolve(str(path), sizes)
    assert (again.config, again.train, again.sha256) == (recipe.config, recipe.train, recipe.sha256)


def test_a_search_writes_no_temporary_file(
    table: pd.DataFrame, forecaster: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **settings: Any) -> None:
        raise AssertionError("a temporary file was made")

    for name in ("mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory", "TemporaryFile"):
        monkeypatch.setattr(f"tempfile.{name}", refuse)
    tuning = tune(table, forecaster(), 2)
    assert tuning.fit(table).fitted.summary.validation_error == tuning.best.validation_error
