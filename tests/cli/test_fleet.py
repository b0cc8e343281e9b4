"""`ibforecast fleet`: its output and exit codes, and that a killed run can be resumed."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.fleet import Fleet, Here, Outcome
from ibforecast.fleet.fleet import CHECKPOINT

Call = Callable[..., Any]


@pytest.fixture
def meters(desk: Any, tmp_path: Path) -> Path:
    """Four series, one of them too short, as a long table."""
    table = pd.read_csv(desk.table).rename(columns={"when": "ds", "load": "y"})[["ds", "y"]]
    lengths = {"north": 400, "south": 300, "east": 20, "west": 350}
    ids = [name for name, length in lengths.items() for _ in range(length)]
    path = tmp_path / "meters.csv"
    rows = pd.concat([table[-length:] for length in lengths.values()], ignore_index=True)
    rows.assign(unique_id=ids).to_csv(path, index=False)
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one process; tests/fleet/test_workers.py covers several."""
    monkeypatch.setattr("ibforecast.cli.fleet._engine", lambda *words: Here())


@pytest.mark.usefixtures("here")
def test_a_fleet_with_failures_is_fitted_and_forecast_and_exits_with_6(
    desk: Any, call: Call, meters: Path, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet"
    fitted = call("fleet", "fit", meters, *desk.settings, "--out", fleet)
    assert (fitted.code, fitted.out) == (6, f"{fleet / 'fleet.csv'}\n")
    assert fitted.err.startswith("4 series: 3 fitted, 1 failed\nfailed: 'east': the train part must contain")
    assert len(fitted.err.splitlines()) == 3
    assert "as a part of the naive one, worst first: '" in fitted.err.splitlines()[2]
    ratios = pd.read_csv(fleet / "fleet.csv")["ratio"].tolist()
    assert ratios[1:] == sorted(ratios[1:], reverse=True)

    again = call("fleet", "fit", meters, *desk.settings, "--out", fleet, "--json")
    assert again.code == 6
    assert again.document["counts"] == {"kept": 3, "failed": 1}
    assert [row["name"] for row in again.document["series"]] == ["north", "south", "east", "west"]

    next_day = tmp_path / "next.csv"
    forecast = call("fleet", "predict", fleet, meters, "--out", next_day)
    assert (forecast.code, forecast.out) == (6, f"{next_day}\n")
    assert "4 series: 3 forecast, 1 failed\nfailed: 'east': a member must be fitted" in forecast.err
    written = pd.read_csv(next_day)
    assert written.columns.tolist() == ["unique_id", "ds", "IBForecast"]
    assert written["unique_id"].value_counts().to_dict() == {"north": 12, "south": 12, "west": 12}


@pytest.mark.usefixtures("here")
def test_an_interrupt_says_what_is_done_and_how_to_go_on(
    desk: Any, call: Call, meters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(self: Fleet, tables: Any, forecaster: Any, engine: Any, advance: Call) -> None:
        advance(Outcome("north", "fitted", 1.0), 4)
        advance(Outcome("east", "failed", 1.0), 4)
        raise KeyboardInterrupt

    monkeypatch.setattr(Fleet, "fit", fit)
    stopped = call("fleet", "fit", meters, *desk.settings, "--out", tmp_path / "fleet")
    assert stopped.code == 1
    assert stopped.err.strip().endswith(
        "stopped; so far: 1 fitted, 1 failed, of 4 series\nhint: run the same command again to continue"
    )


@pytest.mark.usefixtures("here")
def test_a_stopped_global_fit_says_how_to_go_on(
    desk: Any, call: Call, meters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = False

    def fit(self: Fleet, tables: Any, forecaster: Any, on_epoch: Any, until: Any) -> tuple[Outcome, ...]:
        self.folder.mkdir(exist_ok=True)
        (self.folder / CHECKPOINT).touch()
        if again:
            raise KeyboardInterrupt
        return (Outcome("north", "fitted", 1.0),)

    monkeypatch.setattr(Fleet, "fit_global", fit)
    words = ["fleet", "fit", meters, *desk.settings, "--global", "--out", tmp_path / "fleet"]
    stopped = call(*words)
    assert stopped.code == 0
    assert "stopped before the end; the same command continues\n" in stopped.err
    again = True
    left = call(*words)
    assert left.code == 1
    assert left.err.strip().endswith("stopped\nhint: run the same command again to continue")


@pytest.mark.usefixtures("here")
def test_a_fleet_without_failures_exits_with_0_and_one_json_document(desk: Any, call: Call, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    shutil.copy(desk.table, tmp_path / "tables" / "town.csv")
    outcome = call("fleet", "fit", tmp_path / "tables", *desk.settings, "--out", tmp_path / "fleet", "--json")
    assert (outcome.code, outcome.document["counts"]) == (0, {"fitted": 1})
    row = outcome.document["series"][0]
    assert (row["rows"], row["channels"], row["epochs"], row["message"]) == (400, 3, 2, "")
    single = IBForecaster.load(desk.model)
    assert row["validation_error"] == single.fitted.summary.validation_error
    assert Fleet(tmp_path / "fleet").model("town").fitted.weights_sha256 == single.fitted.weights_sha256
    outcome = call("fleet", "predict", tmp_path / "fleet", tmp_path / "tables", "--out", tmp_path / "next", "--json")
    assert (outcome.code, outcome.document["series"][0]["state"]) == (0, "forecast")
    (part,) = (tmp_path / "next").iterdir()
    assert pd.read_parquet(part).columns.tolist() == ["unique_id", "when", "channel", "IBForecast"]


@pytest.mark.usefixtures("here")
def test_if_every_series_failed_no_output_file_is_reported(desk: Any, call: Call, meters: Path, tmp_path: Path) -> None:
    fleet, out = tmp_path / "fleet", tmp_path / "next.csv"
    call("fleet", "fit", meters, *desk.settings, "--epochs", 1, "--out", fleet)
    words = ["fleet", "predict", fleet, meters, "--at", "1999-01-01", "--out", out]
    shown = call(*words)
    assert (shown.code, shown.out, out.exists()) == (6, "", False)
    assert shown.err.startswith("4 series: 4 failed\n")
    assert call(*words, "--json").document["out"] is None


@pytest.mark.usefixtures("here")
def test_only_the_first_failures_are_printed(desk: Any, call: Call, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    for number in range(13):
        (tmp_path / "tables" / f"{number}.csv").write_text("nothing")
    outcome = call("fleet", "fit", tmp_path / "tables", *desk.settings, "--out", tmp_path / "fleet")
    assert outcome.code == 6
    assert outcome.err.count("\nfailed: ") == 10
    assert outcome.err.endswith("and 3 more\n")


def test_invalid_arguments_exit_with_the_code_of_their_kind(
    desk: Any, call: Call, meters: Path, tmp_path: Path
) -> None:
    out = ["--out", tmp_path / "fleet"]
    assert call("fleet", "fit", meters, *desk.settings, *out, "--recipe", "dlinear").code == 2
    assert call("fleet", "fit", meters, *desk.settings, *out, "--jobs", "-1").code == 2
    assert call("fleet", "fit", meters, *desk.settings, *out, "--jobs", "0").code == 2
    assert call("fleet", "fit", meters, *desk.settings, "--out", meters / "fleet").code == 2
    assert call("fleet", "fit", meters, *desk.settings, "--out", meters).code == 2
    assert call("fleet", "predict", tmp_path, meters, *out, "--gpus-per-series", "1").code == 2
    refused = call("fleet", "fit", meters, *desk.settings, *out, "--global", "--engine", "ray", "--jobs", "2")
    assert refused.code == 2
    assert "(got --engine, --jobs)" in refused.err
    assert call("fleet", "fit", desk.table, *desk.settings, *out).code == 3
    assert call("fleet", "predict", tmp_path, meters, *out).code == 5
    assert not (tmp_path / "fleet").exists()
    for verb in ("fit", "predict"):
        assert f"ibforecast fleet {verb} " in call("fleet", verb, "--help").out


def test_a_killed_fleet_resumes_with_the_same_command_and_leaves_no_process(
    desk: Any, program: list[str], surroundings: dict[str, str], shell: Call, tmp_path: Path
) -> None:
    table = pd.read_csv(desk.table).rename(columns={"when": "ds", "load": "y"})[["ds", "y"]]
    table = pd.concat([table] * 12, ignore_index=True).assign(unique_id=[n for n in range(12) for _ in range(400)])
    table.to_csv(tmp_path / "meters.csv", index=False)
    recipe = tmp_path / "longer.toml"
    recipe.write_text(desk.recipe.read_text().replace("epochs = 2", "epochs = 10"))
    words = ["fleet", "fit", "meters.csv", *desk.settings, "--recipe", str(recipe), "--out", "fleet", "--jobs", "1"]
    process = subprocess.Popen(
        [*program, *words], cwd=tmp_path, env=surroundings, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while len(list((tmp_path / "fleet" / "members").glob("*/member.json"))) < 2:
        assert process.poll() is None, "it was over before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    finished = {path.parent.name: path.stat().st_mtime_ns for path in tmp_path.glob("fleet/members/*/member.json")}
    assert 2 <= len(finished) < 12
    until = time.monotonic() + 60
    while group_lives(process.pid):
        assert time.monotonic() < until, "its processes must end with it"
        time.sleep(0.05)

    resumed = shell(*words, "--json")
    assert resumed.code == 0
    assert resumed.document["counts"] == {"kept": len(finished), "fitted": 12 - len(finished)}
    for folder, written in finished.items():
        assert (tmp_path / "fleet" / "members" / folder / "member.json").stat().st_mtime_ns == written
    hashes = {json.loads(path.read_text())["weights"]["sha256"] for path in tmp_path.glob("fleet/members/*/model.json")}
    assert len(hashes) == 1, "the same series twelve times"


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
