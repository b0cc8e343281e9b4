"""Every verb: its help, its options, its two streams and its errors."""

import errno
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from ibforecast import Evaluation, ExplainedForecast, IBForecaster
from ibforecast.cli import fit
from ibforecast.cli.main import LAB_VERBS, VERBS, run
from ibforecast.use import ChannelEvaluation
from ibforecast.zoo.stages import NoContest

Call = Callable[..., Any]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_examples(call: Call, verb: str) -> None:
    outcome = call(verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line for line in outcome.out.splitlines() if line.strip().startswith(f"ibforecast {verb}")]
    assert "json" in outcome.out


def test_the_help_of_the_command_names_every_verb_and_exit_code(call: Call) -> None:
    text = call("--help").out
    assert all(f"\n  {verb} " in text for verb in VERBS)
    assert all(f"{code} " in text for code in range(6))


# --- Output ---


def test_a_forecast_without_a_file_is_csv_on_stdout(desk: Any, call: Call) -> None:
    outcome = call("predict", desk.model, desk.table, "--at", "2023-01-10 10:00")
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "")
    assert lines[0] == "when,load,wind,heat"
    assert len(lines) == 13
    assert lines[1].startswith("2023-01-10 11:00")


@pytest.mark.parametrize("name", ["next.csv", "next.csv.gz", "next.parquet"])
def test_the_suffix_determines_the_format_of_a_forecast(desk: Any, call: Call, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    outcome = call("predict", desk.model, desk.table, "--out", path)
    assert (outcome.code, outcome.out) == (0, f"{path}\n")
    exactly: dict[str, Any] = {"float_precision": "round_trip"}
    written = pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path, **exactly)
    expected = IBForecaster.load(desk.model).predict(desk.table)
    pd.testing.assert_frame_equal(
        written[["load", "wind", "heat"]], expected[["load", "wind", "heat"]], check_exact=True
    )


def test_an_explanation_is_printed_in_words(desk: Any, call: Call) -> None:
    outcome = call("explain", desk.model, desk.table)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.rstrip() == IBForecaster.load(desk.model).explain(desk.table).in_words()


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "MODEL", "TABLE"),
        ("explain", "MODEL", "TABLE"),
        ("verify", "MODEL", "EXPLANATION"),
        ("evaluate", "MODEL", "TABLE", "--split", "validation"),
    ],
    ids=lambda words: words[0],
)
def test_with_json_stdout_is_one_document(desk: Any, call: Call, words: tuple[str, ...]) -> None:
    places = {"MODEL": desk.model, "TABLE": desk.table, "EXPLANATION": desk.explanation}
    outcome = call(*(places.get(word, word) for word in words), "--json")
    assert (outcome.code, outcome.err) == (0, "")
    json.loads(outcome.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_the_errors_of_model_and_naive_forecast_are_one_line_each_and_one_for_each_channel(
    desk: Any, call: Call
) -> None:
    outcome = call("evaluate", desk.model, desk.table, "--split", "all")
    assert (outcome.code, outcome.err) == (0, "")
    measures, naive, head, *channels = outcome.out.splitlines()
    assert measures.startswith("341 windows (all): MSE ")
    result = IBForecaster.load(desk.model).evaluate(desk.table, "all")
    assert naive.startswith(f"repeating the last 24 steps: MSE {result.naive_mse:.4f}, MAE {result.naive_mae:.4f}")
    assert head.endswith("the worst first:")
    assert sorted(line.split()[0] for line in channels) == sorted(row.channel for row in result.channels)
    assert call("evaluate", desk.model, desk.table, "--split", "all", "--json").document == json.loads(
        json.dumps(asdict(result))
    )


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ((26_224_321.0, 34_800_000.0), "MAE 26,224,321, 75% of repeating the last value, 34,800,000"),
        ((1234.5, 12_345.6), "MAE 1234, 10% of repeating the last value, 12,346"),
        ((0.0123456, 2e20), "MAE 0.01235, 0% of repeating the last value, 2e+20"),
    ],
)
def test_errors_in_units_are_written_out(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, errors: tuple[float, float], words: str
) -> None:
    channels = (ChannelEvaluation("load", errors[0], errors[0], errors[1], errors[1], 1),)
    result = Evaluation("test", 69, 0.3, 0.5, 0.2, 0.25, 0.25, 0.4, 0.5, 24, channels=channels)
    monkeypatch.setattr("ibforecast.forecaster.IBForecaster.evaluate", lambda *arguments, **settings: result)
    assert call("evaluate", desk.model, desk.table).out.splitlines()[-1] == f"  load  {words}"


@pytest.mark.parametrize(
    ("errors", "cycle", "line"),
    [
        ((0.4, 0.5), 24, "repeating the last 24 steps: MSE 0.4000, MAE 0.5000"),
        ((0.4, 0.4), 24, "repeating the last 24 steps: MSE 0.4000, MAE 0.4000; the model is worse in MAE"),
        ((0.2, 0.4), 1, "repeating the last value: MSE 0.2000, MAE 0.4000; the model is worse in MSE and MAE"),
    ],
)
def test_a_model_worse_than_the_naive_forecast_is_reported(
    desk: Any,
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    errors: tuple[float, float],
    cycle: int,
    line: str,
) -> None:
    result = Evaluation("test", 69, 0.3, 0.5, 0.2, 0.25, 0.25, *errors, cycle)
    monkeypatch.setattr("ibforecast.forecaster.IBForecaster.evaluate", lambda *arguments, **settings: result)
    assert call("evaluate", desk.model, desk.table).out.splitlines()[1] == line


def test_verify_prints_every_check(desk: Any, call: Call) -> None:
    outcome = call("verify", desk.model, desk.explanation)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count("ok ") == 8
    assert outcome.out.count("note ") == 1
    assert outcome.out.endswith(f"\nverified: {desk.explanation}\n")
    document = call("verify", desk.model, desk.explanation, "--json").document
    assert (document["verified"], len(document["checks"]), len(document["notes"])) == (True, 8, 1)


def test_verify_compares_with_the_table_and_the_key(desk: Any, call: Call, tmp_path: Path) -> None:
    words, signed = ["verify", desk.model], tmp_path / "signed.json"
    exactly = call(*words, desk.explanation, "--table", desk.table, "--exact")
    assert (exactly.code, exactly.out.count("ok "), exactly.out.count("note ")) == (0, 9, 0)
    other = pd.read_csv(desk.table)
    other.loc[390, "load"] += 1
    other.to_csv(tmp_path / "other.csv", index=False)
    differs = call(*words, desk.explanation, "--table", tmp_path / "other.csv")
    assert differs.code == 4
    assert "FAILED table: not the table's: history" in differs.out
    assert call("sign", "--new-key", tmp_path / "issuer").code == call("sign", "--new-key", tmp_path / "else").code == 0
    assert call("sign", desk.explanation, "--key", tmp_path / "issuer.pem", "--out", signed).code == 0
    assert call(*words, signed, "--key", tmp_path / "issuer.pub.pem").code == 0
    assert call(*words, signed, "--key", tmp_path / "else.pub.pem").code == 4
    assert call(*words, desk.explanation, "--key", tmp_path / "issuer.pub.pem").code == 4
    assert "which was not checked" in call(*words, signed).out
    assert refused(call(*words, signed, "--key", desk.table), 3, "a public key must be an Ed25519 key in PEM")


# --- Fit ---


def test_every_setting_of_fit_reaches_the_model(desk: Any, call: Call, tmp_path: Path) -> None:
    long = pd.read_csv(desk.table).melt("when", var_name="meter", value_name="kw")
    long["when"] = pd.to_datetime(long["when"]).dt.strftime("%Y-%m-%d %H:%M")
    long.drop(index=[5]).to_csv(tmp_path / "long.csv", index=False)
    settings = {
        "--budget": 0.5,
        "--cycle": 12,
        "--patch-len": 8,
        "--time": "when",
        "--channels": "heat, load",
        "--id": "meter",
        "--target": "kw",
        "--freq": "1h",
        "--zone": "Asia/Kolkata",
        "--irregular": "fill",
        "--missing-value": -9999,
        "--split": "0.6,0.2,0.2",
        "--epochs": 1,
        "--seed": 3,
        "--device": "cpu",
    }
    options = [word for pair in settings.items() for word in pair]
    outcome = call("fit", tmp_path / "long.csv", *desk.settings, *options, "--out", tmp_path / "model")
    assert (outcome.code, outcome.out) == (0, f"{tmp_path / 'model'}\n")
    fitted = IBForecaster.load(tmp_path / "model").fitted
    config, layout = fitted.config, fitted.layout
    assert (config.budget, config.cycle, config.patch_len) == (0.5, 12, 8)
    assert (config.look_back, config.horizon) == (48, 12)
    assert (layout.channels, layout.time, layout.id, layout.target) == (("heat", "load"), "when", "meter", "kw")
    assert (layout.zone, layout.irregular, layout.missing_values) == ("Asia/Kolkata", "fill", (-9999.0,))
    assert (fitted.split.train_end, fitted.split.validation_end) == (240, 320)
    assert (fitted.summary.seed, fitted.summary.recipe, fitted.summary.epochs) == (3, "tiny", 1)


def test_names_may_be_separated_by_commas_or_given_one_by_one() -> None:
    options = ["--horizon", "12", "--past", "wind, rain", "--past", "snow", "--out", "model"]
    settings = fit.command.make_context("fit", ["load.csv", *options]).params
    assert (settings["past"], settings["future"], settings["channels"]) == (["wind", "rain", "snow"], [], [])


def test_an_existing_model_is_replaced_only_with_overwrite(desk: Any, call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(desk.model, folder)
    words = ["fit", desk.table, *desk.settings, "--seed", "1", "--out", folder]
    outcome = call(*words)
    assert outcome.code == 2
    assert "must be new" in outcome.err
    assert "--overwrite" in outcome.err
    assert (folder / "model.json").read_bytes() == (desk.model / "model.json").read_bytes()
    assert call(*words, "--overwrite").code == 0
    assert IBForecaster.load(folder).fitted.summary.seed == 1
    assert names_in(tmp_path) == ["model"]


def test_a_folder_that_is_not_a_model_is_never_replaced(desk: Any, call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "dear.txt").write_text("do not lose me")
    outcome = call("fit", desk.table, *desk.settings, "--out", folder, "--overwrite")
    assert outcome.code == 2
    assert names_in(folder) == ["dear.txt"]
    assert names_in(tmp_path) == ["letters"], "it must be refused before the work"


@pytest.mark.parametrize(("look_back", "chosen", "better"), [(47, 1, 48), (44, 11, 48), (50, 10, 48)])
def test_a_look_back_that_needs_unusual_patches_is_reported_with_a_better_one(
    desk: Any, call: Call, tmp_path: Path, look_back: int, chosen: int, better: int
) -> None:
    words = [*desk.settings, "--look-back", look_back, "--epochs", 1]
    outcome = call("fit", desk.table, *words, "--out", tmp_path / "model")
    assert outcome.code == 0
    assert f"patches of {chosen} step{'s' if chosen > 1 else ''}, {3 * look_back // chosen} tokens" in outcome.err
    assert f"patches of 12 steps do not divide a look-back of {look_back}: --look-back {better}" in outcome.err
    explicit = call("fit", desk.table, *words, "--patch-len", chosen, "--out", tmp_path / "explicit")
    assert explicit.code == 0
    # After one epoch a naive forecast is better in some channels.
    assert [line.split()[0] for line in explicit.err.splitlines()] == ["epoch", "fitted", "worse"]


def test_a_failed_fit_leaves_no_model(desk: Any, call: Call, tmp_path: Path) -> None:
    recipe = tmp_path / "wild.toml"
    recipe.write_text(desk.recipe.read_text() + "learning_rate = 1e30\n")
    outcome = call("fit", desk.table, *desk.settings, "--recipe", recipe, "--out", tmp_path / "model")
    assert outcome.code == 1
    assert "training must stay finite" in outcome.err
    assert "hint: lower the learning rate" in outcome.err
    assert names_in(tmp_path) == ["wild.toml"]


def test_a_damaged_checkpoint_is_refused_by_name(desk: Any, call: Call, tmp_path: Path) -> None:
    (tmp_path / ".model.checkpoint").write_bytes(b"half a")
    outcome = call("fit", desk.table, *desk.settings, "--out", tmp_path / "model")
    assert outcome.code == 5
    assert ".model.checkpoint" in outcome.err
    assert "hint: delete it to start again" in outcome.err


# --- Errors ---


def refused(outcome: Any, code: int, *words: str) -> bool:
    """Check that a command ended with a code and printed only an error and a hint, which contain these words."""
    lines = outcome.err.splitlines()
    starts = [line.split(":")[0] for line in lines]
    assert outcome.code == code, outcome.err
    assert outcome.out == ""
    assert starts == ["error", "hint"], outcome.err
    assert all(word in outcome.err for word in words), outcome.err
    return True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--horizon", "0"], ["horizon must be at least 1 (got horizon=0)"]),
        (["--horizon", "many"], ["'many', which is not a valid integer", "see ibforecast fit --help"]),
        (["--cycle", "0"], ["cycle must be a positive number of steps", "try 24"]),
        (["--cycle", "daily"], ["'daily', which is neither a number of steps nor 'auto'", "see ibforecast fit --help"]),
        (["--cycle", "²"], ["neither a number of steps nor 'auto'"]),
        (["--cycle", "２４"], ["neither a number of steps nor 'auto'"]),
        (["--cycle", "1" * 5000], ["neither a number of steps nor 'auto'"]),
        (["--cycle", "10000000"], ["cycle must be at most 1000000 (got 10000000)", "try 24"]),
        (["--seed", str(2**64)], ["seed must be a number that 64 bits can hold"]),
        (["--missing-value", "nan"], ["missing_values must be finite numbers (got nan)"]),
        (["--split", "0.5,0.5"], ["split must be three numbers (got '0.5,0.5')", "try 0.7,0.1,0.2"]),
        (["--split", "a,b,c"], ["split must be three numbers (got 'a,b,c')"]),
        (["--split", "0.9,0.9,0.9"], ["three fractions that add up to 1"]),
        (["--split", "nan,0.1,0.2"], ["three fractions that add up to 1"]),
        (["--epochs", "0"], ["epochs must be at least 1 (got 0)", "give a positive number"]),
        (["--recipe", "seeled"], ["recipe must be one that ships", "did you mean 'sealed'?"]),
        (["--recipe", "dlinear"], ["one that ships", "choose among"]),
        (["--device", "abacus"], ["device must be", "try"]),
        (["--irregular", "ignore"], ["'ignore', which is not one of", "see ibforecast fit --help"]),
        (["--patch-len", "7"], ["patch_len must divide look_back (got patch_len=7, look_back=48)", "try 4, 6, 8"]),
        (["--zone", "Mars/Olympus"], ["IANA list", "try 'Europe/Berlin'"]),
        (["--colour", "red"], ["an option must be one of ibforecast fit (got --colour)", "see ibforecast fit --help"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_an_invalid_setting_of_fit_is_a_usage_error(
    desk: Any, call: Call, tmp_path: Path, options: list[str], words: list[str]
) -> None:
    outcome = call("fit", desk.table, *desk.settings, "--out", tmp_path / "model", *options)
    assert refused(outcome, 2, *words)
    assert names_in(tmp_path) == []


def test_an_invalid_command_line_is_a_usage_error(desk: Any, call: Call) -> None:
    assert refused(call("forecast"), 2, "a verb must be one that exists (got 'forecast')", "see ibforecast --help")
    assert refused(call("fit", desk.table), 2, "ibforecast fit must have --horizon", "see ibforecast fit --help")
    assert refused(call("predict"), 2, "ibforecast predict must have MODEL", "--help")
    assert refused(
        call("evaluate", desk.model, desk.table, "--split", "tomorrow"), 2, "'tomorrow', which is not one of"
    )


def test_the_command_without_arguments_prints_the_help_and_ends_with_2(call: Call) -> None:
    outcome = call()
    assert outcome.code == 2
    assert all(f"\n  {verb} " in outcome.err for verb in VERBS)
    assert outcome.out == ""


def test_unusable_data_end_with_3(desk: Any, call: Call, tmp_path: Path) -> None:
    table = pd.read_csv(desk.table)
    table.rename(columns={"wind": "winds"}).to_csv(tmp_path / "renamed.csv", index=False)
    table[:20].to_csv(tmp_path / "short.csv", index=False)
    table.drop(index=[100]).to_csv(tmp_path / "gap.csv", index=False)
    assert refused(
        call("predict", desk.model, tmp_path / "renamed.csv"), 3, "'wind' must be in", "did you mean 'winds'"
    )
    assert refused(call("predict", desk.model, tmp_path / "short.csv"), 3, "look_back = 48 rows before it (got 20)")
    assert refused(
        call("explain", desk.model, tmp_path / "gap.csv"), 3, "even steps", "irregular='fill' (fit --irregular fill)"
    )
    assert refused(call("explain", desk.model, desk.table, "--at", "2031-01-01"), 3, "the nearest is 2023-01-17 15:00")
    fit = call("fit", tmp_path / "short.csv", *desk.settings, "--out", tmp_path / "model")
    assert refused(fit, 3, "the train part must contain at least one window", "give a longer table")
    assert not (tmp_path / "model").exists()


def test_a_part_of_another_table_cannot_be_evaluated(desk: Any, call: Call, tmp_path: Path) -> None:
    pd.read_csv(desk.table)[10:].to_csv(tmp_path / "other.csv", index=False)
    outcome = call("evaluate", desk.model, tmp_path / "other.csv")
    assert refused(outcome, 2, "must come from the table the model was fitted on", "all")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["valid JSON"]),
        (b"\xff\xfe\x00\x80", ["valid JSON"]),
        (b'{"format": "ibforecast.model"}', ["must have the format 'ibforecast.explanation'"]),
        (b'{"format": "ibforecast.explanation", "version": 99}', ["up to version 1 (got version 99)"]),
    ],
    ids=["empty", "not text", "something else", "newer"],
)
def test_an_invalid_explanation_file_ends_with_3(
    desk: Any, call: Call, tmp_path: Path, content: bytes, words: list[str]
) -> None:
    (tmp_path / "why.json").write_bytes(content)
    assert refused(call("verify", desk.model, tmp_path / "why.json"), 3, *words)


def test_a_missing_explanation_file_ends_with_3(desk: Any, call: Call, tmp_path: Path) -> None:
    assert refused(call("verify", desk.model, tmp_path / "why.json"), 3, "must be a file", "check the path")


@pytest.mark.parametrize("verb", ["predict", "explain", "evaluate", "verify"])
def test_a_changed_model_file_ends_with_5(desk: Any, call: Call, tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(desk.model, folder)
    document = folder / "model.json"
    assert '"budget":0.25' in document.read_text()
    document.write_text(document.read_text().replace('"budget":0.25', '"budget":0.5'))
    last = desk.explanation if verb == "verify" else desk.table
    assert refused(call(verb, folder, last), 5, "must match its fingerprint", "model.json")
    (folder / "model.json").write_bytes((desk.model / "model.json").read_bytes())
    weights = folder / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert refused(call(verb, folder, last), 5, "weights.safetensors must have", "it was cut off")


def test_a_false_explanation_gives_one_document_and_ends_with_4(desk: Any, call: Call, tmp_path: Path) -> None:
    explained = ExplainedForecast.from_json(desk.explanation.read_text())
    sealed = replace(explained, forecast=explained.forecast + 1).to_json()
    edited = json.loads(desk.explanation.read_text())
    edited["forecast"][0][0] += 1.0
    for lie, expected in ((sealed, ["replay", "scramble", "rerun"]), (json.dumps(edited), ["document"])):
        (tmp_path / "lie.json").write_text(lie)
        outcome = call("verify", desk.model, tmp_path / "lie.json", "--json")
        assert outcome.code == 4
        assert outcome.document["verified"] is False
        assert [check["name"] for check in outcome.document["checks"] if not check["passed"]] == expected


@pytest.mark.parametrize(
    "options",
    [
        ["--plot", "why.bmp"],
        ["--plot", "why.svg", "--plot", "why.bmp"],
        ["--tokens", "why.xlsx"],
        ["--plot", "why.svg", "--tokens", "why.xlsx"],
    ],
    ids=" ".join,
)
def test_nothing_is_written_if_one_of_the_files_has_a_wrong_suffix(
    desk: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refused(call("explain", desk.model, desk.table, "--out", "why.json", *options), 2, "must end in")
    assert names_in(tmp_path) == []


def test_a_forecast_file_with_a_wrong_suffix_is_refused(desk: Any, call: Call, tmp_path: Path) -> None:
    assert refused(call("predict", desk.model, desk.table, "--out", tmp_path / "next.xlsx"), 2, "must end in .csv")
    assert names_in(tmp_path) == []


def test_with_json_a_usage_error_is_a_document(call: Call) -> None:
    outcome = call("predict", "--json")
    assert outcome.code == 2
    rule = "ibforecast predict must have MODEL"
    hint = "add it; see ibforecast predict --help"
    expected = {"error": f"{rule} (got none)", "hint": hint, "rule": rule, "got": "none", "exit_code": 2}
    assert outcome.document == expected


def failing(error: Exception) -> Callable[..., None]:
    def fail(*arguments: Any, **settings: Any) -> None:
        raise error

    return fail


def test_an_unexpected_error_ends_with_1_and_without_traceback(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibforecast.forecaster.IBForecaster.predict", failing(RuntimeError("the moon")))
    outcome = call("predict", desk.model, desk.table)
    assert refused(outcome, 1, "unexpected RuntimeError: the moon", "IBFORECAST_DEBUG=1", "report it")


def test_the_debug_variable_shows_the_traceback(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IBFORECAST_DEBUG", "1")
    monkeypatch.setattr("ibforecast.forecaster.IBForecaster.predict", failing(RuntimeError("the moon")))
    with pytest.raises(RuntimeError, match="the moon"):
        run(["predict", str(desk.model), str(desk.table)])


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/etc/next.csv"), "/etc/next.csv: Permission denied"),
        (FileExistsError(errno.EEXIST, "File exists", "next"), "next: File exists"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk: No space left on device"),
        (OSError(errno.EFBIG, "File too large"), "the disk: File too large"),
        (OSError(errno.EIO, "Input/output error"), "the disk: Input/output error"),
        (shutil.Error([("a", "copy of a", "No space left on device")]), "copy of a: No space left on device"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failed_write_is_not_reported_as_a_bug(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, error: OSError, words: str
) -> None:
    monkeypatch.setattr("ibforecast.data.tables.write", failing(error))
    outcome = call("predict", desk.model, desk.table, "--out", "next.csv")
    assert refused(outcome, 1, f"can be read and written (got {words})", "its permissions and the free space")
    assert "report it" not in outcome.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a file that is always full")
@pytest.mark.parametrize("further", [(), ("--json",)], ids=["text", "json"])
def test_a_full_stdout_is_reported_on_stderr(further: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "ibforecast", "recipe", "sealed", *further]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: a path must be one that can be read and written (got the disk: No space")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "TABLE", "--horizon", "12", "--out"),
        ("predict", "MODEL", "TABLE", "--out"),
        ("explain", "MODEL", "TABLE", "--out"),
        ("explain", "MODEL", "TABLE", "--plot"),
        ("explain", "MODEL", "TABLE", "--tokens"),
        ("report", "MODEL", "TABLE", "--out"),
        ("backtest", "MODEL", "TABLE", "--out"),
    ],
    ids=" ".join,
)
def test_an_unwritable_path_is_refused_before_the_work(
    desk: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    for method in ("fit", "predict", "explain", "cross_validation"):
        monkeypatch.setattr(IBForecaster, method, failing(AssertionError("too late")))
    suffix = {"--plot": ".png", "--tokens": ".csv"}.get(words[-1], {"report": ".html"}.get(words[0], ".csv"))
    command = [{"MODEL": desk.model, "TABLE": desk.table}.get(word, word) for word in words]
    assert refused(call(*command, desk.table / f"new{suffix}"), 2, f"new{suffix}: Not a directory", "choose another")
    monkeypatch.setattr("tempfile.TemporaryFile", failing(PermissionError(errno.EACCES, "Permission denied")))
    path = tmp_path / ("not/there" if words[0] == "fit" else "") / f"new{suffix}"
    assert refused(call(*command, path), 2, f"(got {path}: Permission denied)", "check its permissions")
    assert names_in(tmp_path) == []


def test_a_file_does_not_replace_a_folder(desk: Any, call: Call, tmp_path: Path) -> None:
    (tmp_path / "next.csv").mkdir()
    outcome = call("predict", desk.model, desk.table, "--out", tmp_path / "next.csv")
    assert refused(outcome, 2, "must not take the place of a folder", "choose another")


def test_known_is_refused_for_a_model_without_future_covariates(desk: Any, call: Call, tmp_path: Path) -> None:
    outcome = call("explain", desk.model, desk.table, "--known", tmp_path / "known.csv")
    assert refused(outcome, 2, "--known needs a model with future covariates", "drop --known")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("verb", LAB_VERBS)
def test_a_laboratory_verb_without_the_laboratory_prints_the_install_command(
    call: Call, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr("ibforecast.cli.main._added", EntryPoints)
    outcome = call(verb)
    assert (outcome.code, outcome.out) == (2, "")
    assert "pip install . ./lab" in outcome.err


def test_an_interrupt_prints_no_traceback(desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: Any, **settings: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ibforecast.forecaster.IBForecaster.predict", stop)
    outcome = call("predict", desk.model, desk.table)
    assert (outcome.code, outcome.out, outcome.err.strip()) == (1, "", "error: stopped")


def test_a_plain_fit_prints_the_outcome_of_its_contest(desk: Any, call: Call, tmp_path: Path) -> None:
    words = ("--horizon", 12, "--look-back", 48, "--epochs", 1, "--device", "cpu")
    plain = call("fit", desk.table, *words, "--out", tmp_path / "plain", "--json")
    contest = IBForecaster.load(tmp_path / "plain").fitted.summary.contest
    assert contest is not None
    assert str(contest) in plain.err.splitlines()
    assert plain.document["training"]["contest"] == asdict(contest)
    choosing = call("fit", desk.table, *words, "--choosing", "--out", tmp_path / "choosing", "--json")
    assert choosing.document["training"]["contest"] is None
    assert not IBForecaster.load(tmp_path / "choosing").fitted.config.sealed
    assert names_in(tmp_path) == ["choosing", "plain"]


def test_a_fit_without_time_for_a_contest_says_so(desk: Any, call: Call, tmp_path: Path) -> None:
    words = ("--horizon", 12, "--look-back", 48, "--device", "cpu", "--minutes", 0.001)
    limited = call("fit", desk.table, *words, "--out", tmp_path / "limited", "--json")
    line = "sealed by rule: there was no contest, because the time limit was too short for one"
    assert line in limited.err.splitlines()
    assert limited.document["training"]["no_contest"] == {"reason": "no time"}
    assert IBForecaster.load(tmp_path / "limited").fitted.summary.no_contest == NoContest("no time")


def test_a_fit_computes_with_the_threads_it_is_given(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[int] = []

    @contextmanager
    def watching(shown: bool) -> Iterator[Callable[..., None]]:
        assert shown
        yield lambda *arguments: seen.append(torch.get_num_threads())

    monkeypatch.setattr("ibforecast.cli.fit.epochs_bar", watching)
    before = torch.get_num_threads()
    words = ("fit", desk.table, *desk.settings)
    assert call(*words, "--out", tmp_path / "usual").code == 0
    assert call(*words, "--threads", before + 1, "--out", tmp_path / "more").code == 0
    assert seen == [1, 1, before + 1, before + 1]
    assert torch.get_num_threads() == before
    assert refused(call(*words, "--threads", 10**5, "--out", tmp_path / "none"), 2, "threads must be from 1 to 1024")
    assert refused(call(*words, "--threads", 0, "--out", tmp_path / "none"), 2, "0, which is not in the range")


def test_a_fit_names_values_that_harm_it_before_its_first_epoch(desk: Any, call: Call, tmp_path: Path) -> None:
    rows = pd.read_csv(desk.table).assign(flat=1.0)
    rows["wind"] = rows["wind"].where(rows.index % 24 > 4)
    rows.loc[100, "load"] = 1e6
    rows.to_csv(tmp_path / "odd.csv", index=False)
    outcome = call("fit", tmp_path / "odd.csv", *desk.settings, "--epochs", "1", "--out", tmp_path / "model")
    lines = outcome.err.splitlines()
    assert outcome.code == 0
    assert lines[0] == "warning: constant channels: one value in at least 99.5% of the rows of flat"
    assert lines[1].startswith("warning: outliers: 1 value makes up 100% of the variance of 'load'")
    assert lines[2] == "warning: ibforecast check says what to do"
    assert lines[3].startswith("epoch 1 of at most 1")


def test_a_fit_that_needs_much_is_announced_before_its_first_epoch(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("fit", desk.table, *desk.settings, "--device", "cpu")
    assert "on one thread" not in call(*words, "--out", tmp_path / "small").err
    monkeypatch.setattr("ibforecast.zoo.cost.LONG_SECONDS", 0.0)
    first = r"3 channels: about \d+ s on one thread and 0\.5 GB of memory"
    usual, limited = (
        call(*words, *more, "--out", tmp_path / name).err.splitlines()
        for name, more in (("usual", ()), ("limited", ("--minutes", 1)))
    )
    assert re.fullmatch(f"{first}; --minutes limits the time", usual[0])
    assert usual[1].startswith("epoch 1 of at most 2")
    assert re.fullmatch(first, limited[0])


def test_an_interrupted_fit_prints_how_to_continue(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def stopping(shown: bool) -> Iterator[Callable[..., None]]:
        def stop(*arguments: Any) -> None:
            raise KeyboardInterrupt

        yield stop

    words = ("fit", desk.table, *desk.settings, "--out", tmp_path / "model")
    with monkeypatch.context() as patched:
        patched.setattr("ibforecast.cli.fit.epochs_bar", stopping)
        assert refused(call(*words), 1, "stopped", "run the same command again")
    assert names_in(tmp_path) == [".model.checkpoint"]
    assert call(*words).code == 0
    assert names_in(tmp_path) == ["model"]


def test_a_fit_without_a_terminal_prints_a_line_after_every_epoch(desk: Any, call: Call, tmp_path: Path) -> None:
    outcome = call("fit", desk.table, *desk.settings, "--out", tmp_path / "model")
    pattern = r"epoch {} of at most 2: validation error \d+\.\d{{4}}, \d+% of the naive one; at most \d+ s left"
    lines = outcome.err.splitlines()
    assert [bool(re.fullmatch(pattern.format(number), line)) for number, line in enumerate(lines[:2], 1)] == [True] * 2


def test_ctrl_c_saves_the_best_model_so_far_and_the_same_command_continues(
    desk: Any, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ("fit", desk.table, *desk.settings, "--out", tmp_path / "model")

    @contextmanager
    def pressing(shown: bool) -> Iterator[Callable[..., None]]:
        def press(*arguments: Any) -> None:
            signal.raise_signal(signal.SIGINT)

        yield press

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(signal, "default_int_handler", before)  # the test runner's own handler is replaced as well
    with monkeypatch.context() as patched:
        patched.setattr("ibforecast.cli.fit.epochs_bar", pressing)
        outcome = call(*words)
    assert outcome.code == 0
    assert "the best model so far will be saved" in outcome.err
    assert "the same command with --overwrite continues" in outcome.err
    assert signal.getsignal(signal.SIGINT) is before
    assert names_in(tmp_path) == [".model.checkpoint", "model"]
    first = IBForecaster.load(tmp_path / "model").fitted
    assert (first.summary.epochs, first.summary.stopped) == (1, True)
    assert call(*words, "--overwrite").code == 0
    assert names_in(tmp_path) == ["model"]
    whole = IBForecaster.load(tmp_path / "model").fitted
    assert (whole.summary.epochs, whole.summary.stopped) == (2, False)
    undisturbed = call(*words[:-1], tmp_path / "other")
    assert undisturbed.code == 0
    assert IBForecaster.load(tmp_path / "other").fitted.weights_sha256 == whole.weights_sha256


@pytest.mark.filterwarnings("default:a number must be a value")
def test_a_warning_is_one_line_and_the_work_continues(desk: Any, call: Call, tmp_path: Path) -> None:
    table = pd.read_csv(desk.table)
    table.loc[3, "load"] = -9999.0
    table.to_csv(tmp_path / "marked.csv", index=False)
    outcome = call("predict", desk.model, tmp_path / "marked.csv")
    assert outcome.code == 0
    assert outcome.err.startswith("warning: a number must be a value, not a mark")
    assert "-9999 in 'load'" in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_mean_of_the_training_rows_is_a_yardstick_of_the_training_table_only(desk: Any, call: Call) -> None:
    lines = call("evaluate", desk.model, desk.table).out.splitlines()
    result = IBForecaster.load(desk.model).evaluate(desk.table)
    assert result.seasonal_mae is not None
    text = f"mean of the training rows by phase of {result.seasonal_cycle} steps: MSE {result.seasonal_mse:.4f}, "
    assert lines[2].startswith(f"{text}MAE {result.seasonal_mae:.4f}")
    elsewhere = IBForecaster.load(desk.model).evaluate(desk.table, "all")
    assert (elsewhere.seasonal_mse, elsewhere.seasonal_mae, elsewhere.seasonal_cycle) == (None, None, None)
