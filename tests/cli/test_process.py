"""The command in a new process: its output, its exit codes, and that it can be resumed after being killed."""

import gc
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.cli.main import VERBS, run

Shell = Callable[..., Any]


def test_fit_predict_explain_and_verify_in_sequence(desk: Any, shell: Shell, tmp_path: Path) -> None:
    fitted = shell("fit", desk.table, *desk.settings, "--out", "model", "--json")
    assert fitted.code == 0
    assert fitted.document["model"] == "model"
    assert fitted.document["training"]["windows"] == 221
    assert {name: fitted.document[name] for name in ("patch_len", "tokens", "allowance")} == {
        "patch_len": 12,
        "tokens": 12,
        "allowance": 3,
    }
    assert "fitted 3 channels on 221 windows" in fitted.err
    assert "; patches of 12 steps, 12 tokens, at most 3 read\n" in fitted.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]

    forecast = shell("predict", "model", desk.table, "--out", "next.csv", "--json")
    assert forecast.code == 0
    assert forecast.err == "forecast written to next.csv\n"
    rows = pd.DataFrame(forecast.document["forecast"]).astype({"when": "datetime64[us]"})
    written = pd.read_csv(tmp_path / "next.csv", float_precision="round_trip").astype({"when": "datetime64[us]"})
    pd.testing.assert_frame_equal(rows, written, check_exact=True)
    assert rows["when"].tolist() == pd.date_range("2023-01-17 16:00", periods=12, freq="h").tolist()

    explained = shell(
        "explain", "model", desk.table, "--out", "why.json", "--plot", "why.svg", "--tokens", "why.csv", "--json"
    )
    assert explained.code == 0
    assert explained.document["forecast"] == rows[["load", "wind", "heat"]].to_numpy().tolist()
    assert explained.document == json.loads((tmp_path / "why.json").read_text())
    assert (tmp_path / "why.svg").read_bytes().startswith(b"<svg")
    assert len(pd.read_csv(tmp_path / "why.csv")) == 12

    checked = shell("verify", "model", "why.json", "--json")
    assert (checked.code, checked.err) == (0, "")
    assert checked.document["verified"] is True
    assert all(check["passed"] for check in checked.document["checks"])
    (tmp_path / "said.json").write_text(explained.out)
    strictly = shell("verify", "model", "said.json", "--table", desk.table, "--exact", "--json")
    assert (strictly.code, strictly.document["notes"]) == (0, [])

    measured = shell("evaluate", "model", desk.table, "--json")
    assert (measured.code, measured.err) == (0, "")
    assert measured.document["windows"] == 69
    assert measured.document["largest_open_rate"] <= measured.document["budget"] == 0.25


def assert_refused(outcome: Any, code: int, message: str, hint: str) -> None:
    assert outcome.code == code
    assert outcome.out == ""
    error, advice = outcome.err.splitlines()
    assert error.startswith("error: ")
    assert message in error
    assert advice.startswith("hint: ")
    assert hint in advice


def test_an_invalid_setting_exits_with_2(desk: Any, shell: Shell) -> None:
    outcome = shell("fit", desk.table, *desk.settings, "--budget", "1.5", "--out", "model")
    assert_refused(outcome, 2, "budget must lie in (0, 1] (got budget=1.5)", "try 0.2")


def test_an_unreadable_table_exits_with_3(desk: Any, shell: Shell) -> None:
    assert_refused(shell("predict", desk.model, "nowhere.csv"), 3, "must be a file that exists", "check the path")


def test_a_false_explanation_exits_with_4(desk: Any, shell: Shell, tmp_path: Path) -> None:
    explained = ExplainedForecast.from_json(desk.explanation.read_text())
    (tmp_path / "lie.json").write_text(replace(explained, forecast=explained.forecast + 1).to_json())
    outcome = shell("verify", desk.model, "lie.json")
    assert outcome.code == 4
    assert "FAILED replay" in outcome.out
    assert outcome.out.endswith("NOT verified: lie.json\n")
    assert outcome.err == ""


def test_a_file_that_is_not_a_model_exits_with_5(desk: Any, shell: Shell) -> None:
    assert_refused(
        shell("predict", desk.folder, desk.table), 5, "a folder with model.json", "name the folder of a model"
    )


def test_an_unwritable_output_path_exits_with_2(desk: Any, shell: Shell) -> None:
    outcome = shell("explain", desk.model, desk.table, "--out", desk.table / "why.json")
    assert_refused(outcome, 2, f"{desk.table / 'why.json'}: Not a directory", "choose another")


def test_with_json_an_error_is_one_json_document(desk: Any, shell: Shell) -> None:
    outcome = shell("predict", desk.model, "nowhere.csv", "--json")
    assert outcome.code == 3
    assert outcome.document == {
        "error": "a table must be a file that exists (got 'nowhere.csv')",
        "hint": "check the path",
        "rule": "a table must be a file that exists",
        "got": "'nowhere.csv'",
        "exit_code": 3,
    }


def test_a_killed_fit_resumes_with_the_same_command_to_the_same_weights(
    desk: Any, program: list[str], surroundings: dict[str, str], shell: Shell, tmp_path: Path
) -> None:
    recipe = tmp_path / "longer.toml"
    recipe.write_text(desk.recipe.read_text().replace("epochs = 2", "epochs = 60"))
    words = ["fit", str(desk.table), *desk.settings, "--recipe", str(recipe), "--out", "model"]
    checkpoint = tmp_path / ".model.checkpoint"
    process = subprocess.Popen([*program, *words], cwd=tmp_path, env=surroundings, stderr=subprocess.DEVNULL)
    while not checkpoint.exists():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert checkpoint.exists()
    assert not (tmp_path / "model").exists()

    assert shell(*words).code == 0
    assert not checkpoint.exists()
    undisturbed = IBForecaster(12, 48, recipe=str(recipe), device="cpu").fit(desk.table)
    assert IBForecaster.load(tmp_path / "model").fitted.weights_sha256 == undisturbed.fitted.weights_sha256


@pytest.mark.parametrize("words", [["--version"], ["fit", "--help"]], ids=" ".join)
def test_help_and_version_exit_with_0(shell: Shell, words: list[str]) -> None:
    outcome = shell(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert "ibforecast" in outcome.out


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)], ids=" ".join)
def test_help_imports_no_library_for_computing(words: list[str]) -> None:
    slow = {"torch", "pyarrow", "narwhals", "numpy", "pandas", "jaxtyping", "safetensors", "matplotlib", "sympy"}
    script = f"""
import sys
from ibforecast.cli.main import run
try:
    run({words!r})
except SystemExit as ended:
    print(ended.code, sorted({slow!r} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n0 []\n")


def test_a_command_restores_how_often_python_collects_garbage(capsys: pytest.CaptureFixture[str]) -> None:
    usual = gc.get_threshold()
    with pytest.raises(SystemExit):
        run(["--version"])
    assert gc.get_threshold() == usual


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """A working folder with a file for every module that a command might import; each file notes that it was run."""
    folder = tmp_path / "decoys"
    folder.mkdir()
    for name in {"ibforecast", "torch", "numpy", "pyarrow", "click", "uvicorn", *sys.stdlib_module_names}:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write(__name__ + ' ')\nraise SystemExit(99)\n"
        )
    return folder


@pytest.mark.skipif(not Path(sys.executable).with_name("ibforecast").exists(), reason="needs the installed command")
@pytest.mark.parametrize(
    "words",
    [
        ["predict", "nowhere", "table.csv"],
        ["fleet", "fit", "tables", "--horizon", "12", "--epochs", "1", "--jobs", "2", "--out", "fleet"],
        ["serve", "model", "--port", "0", "--workers", "2"],
    ],
    ids=["one process", "processes of a fleet", "processes of a service"],
)
def test_nothing_is_imported_from_the_working_folder(
    words: list[str], desk: Any, decoys: Path, program: list[str], surroundings: dict[str, str]
) -> None:
    (decoys / "tables").mkdir()
    shutil.copy(desk.table, decoys / "tables" / "one.csv")
    shutil.copytree(desk.model, decoys / "model")
    process = subprocess.Popen([*program, *words], cwd=decoys, env=surroundings, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    if words[0] == "serve":  # once it prints its address, all of its processes have started
        assert "http" in process.stderr.readline()
        process.terminate()
    said = process.communicate()[1]
    assert not (decoys.parent / "imported").exists(), (decoys.parent / "imported").read_text()
    assert process.returncode == {"predict": 5, "fleet": 0, "serve": 0}[words[0]], said
