"""`ibforecast tune`: its output and files, and that a killed search can be resumed."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibforecast import IBForecaster

pytest.importorskip("optuna", reason="needs the tune extra")

Call = Callable[..., Any]


def test_the_best_recipe_is_printed_written_and_fitted(desk: Any, call: Call, tmp_path: Path) -> None:
    best, model = tmp_path / "best.toml", tmp_path / "model"
    words = ["tune", desk.table, *desk.settings, "--trials", "3", "--storage", tmp_path / "search.log", "--best", best]
    shown = call(*words)
    assert shown.code == 0
    head, *rows = shown.out.splitlines()
    assert head.split()[:6] == ["trial", "state", "error", "read", "epochs", "patch_len"]
    assert len(rows) == 3
    assert sum(row.strip().startswith("*") for row in rows) == 1
    assert shown.err.startswith(f"best recipe written to {best}")

    outcome = call(*words, "--out", model, "--overwrite", "--json")
    assert outcome.code == 0
    assert len(outcome.document["trials"]) == 3
    error = outcome.document["best"]["validation_error"]
    assert IBForecaster.load(model).fitted.summary.validation_error == error
    again = call("fit", desk.table, *desk.settings, "--recipe", best, "--out", tmp_path / "again", "--json")
    assert again.document["training"]["validation_error"] == error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trials", "0"], "trials must be at least 1"),
        (["--budgets", "a,b"], "budgets must be numbers"),
        (["--budgets", "0.5,7"], "budgets must lie in (0, 1] (got (0.5, 7.0))"),
        (["--best", "best.txt"], "must end in .toml"),
        (["--recipe", "dlinear"], "one that ships"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_invalid_setting_is_a_usage_error(
    desk: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = call("tune", desk.table, *desk.settings, "--trials", "9", *options)
    assert outcome.code == 2
    assert words in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_the_suggested_command_runs_as_printed(desk: Any, call: Call, tmp_path: Path) -> None:
    best = tmp_path / "my best.toml"
    outcome = call("tune", desk.table, *desk.settings, "--epochs", 1, "--trials", 1, "--best", best)
    assert outcome.code == 0
    assert f"fit it with --recipe '{best}'\n" in outcome.err


@pytest.mark.parametrize("option", ["--best", "--storage", "--out"])
def test_an_unwritable_output_path_is_refused_before_the_search(desk: Any, call: Call, option: str) -> None:
    outcome = call("tune", desk.table, *desk.settings, "--trials", 1, option, desk.table / "best.toml")
    assert outcome.code == 2
    assert "can be read and written" in outcome.err


def test_an_existing_model_is_not_replaced(desk: Any, call: Call, tmp_path: Path) -> None:
    outcome = call("tune", desk.table, *desk.settings, "--best", tmp_path / "best.toml", "--out", desk.model)
    assert outcome.code == 2
    assert "must be new" in outcome.err


def test_an_existing_recipe_is_replaced_only_with_overwrite(desk: Any, call: Call, tmp_path: Path) -> None:
    best = tmp_path / "best.toml"
    best.write_text("by hand")
    words = ["tune", desk.table, *desk.settings, "--epochs", 1, "--trials", 1, "--best", best]
    refused = call(*words)
    assert refused.code == 2
    assert f"the recipe's file must be new (got {best}, which exists)" in refused.err
    assert "add --overwrite" in refused.err
    assert best.read_text() == "by hand"
    assert call(*words, "--overwrite").code == 0
    assert "[model]" in best.read_text()


def test_with_overwrite_only_the_model_and_its_recipe_are_replaced(desk: Any, call: Call, tmp_path: Path) -> None:
    model, letters = tmp_path / "model", tmp_path / "letters"
    shutil.copytree(desk.model, model)
    letters.mkdir()
    words = ["tune", desk.table, *desk.settings, "--epochs", 1, "--trials", 1, "--best", tmp_path / "best.toml"]
    refused = call(*words, "--out", letters, "--overwrite")
    assert refused.code == 2
    assert "only a model may be overwritten" in refused.err
    assert call(*words, "--seed", 1, "--out", model, "--overwrite").code == 0
    assert IBForecaster.load(model).fitted.summary.seed == 1


def test_a_killed_search_resumes_with_the_same_command_to_the_same_result(
    desk: Any,
    program: list[str],
    surroundings: dict[str, str],
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = tmp_path / "longer.toml"
    recipe.write_text(desk.recipe.read_text().replace("epochs = 2", "epochs = 8"))
    words = ["tune", str(desk.table), *desk.settings, "--recipe", str(recipe), "--trials", "5"]
    storage = tmp_path / "search.log"
    process = subprocess.Popen(
        [*program, *words, "--storage", str(storage)], cwd=tmp_path, env=surroundings, stderr=subprocess.DEVNULL
    )
    while not storage.exists() or storage.read_text().count('"seconds"') < 2:
        assert process.poll() is None, "it was over before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "tuned.toml").exists()

    monkeypatch.chdir(tmp_path)
    resumed = call(*words, "--storage", storage, "--json").document
    undisturbed = call(*words, "--overwrite", "--json").document
    for document in (resumed, undisturbed):
        for trial in (document["best"], *document["trials"]):
            del trial["seconds"]
    assert resumed == undisturbed
