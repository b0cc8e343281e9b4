"""ibforecast audit: a gate for builds. It exits with 0 if the model passes, and otherwise with 4 and the reason."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from torch import Tensor

from ibforecast import IBForecaster
from ibforecast.audit import FILE, saved_audit
from ibforecast.core.explanation import Explanation
from ibforecast.model.network import IBForecast
from ibforecast.model.stage2_score import GateNetwork

Call = Callable[..., Any]


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a gate that always opens the same tokens, so that the score is 1."""
    forward = GateNetwork.forward
    monkeypatch.setattr(GateNetwork, "forward", lambda self, deviation: forward(self, 0 * deviation))


@pytest.fixture
def fickle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a gate that opens the smallest deviations: given only its evidence, it opens all the other tokens."""

    def quietest(self: GateNetwork, deviation: Tensor) -> Tensor:
        batch, look_back, channel = deviation.shape
        return -deviation.abs().reshape(batch, look_back // 12, 12, channel).mean(dim=2)

    monkeypatch.setattr(GateNetwork, "forward", quietest)


@pytest.fixture
def peeking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a replay that adds a millionth of the window that the network saw last."""
    seen: list[Tensor] = []
    forward, replay = IBForecast.forward, IBForecast.replay

    def remember(self: IBForecast, window: Any, held: Any = None) -> Any:
        seen[:] = [window.values]
        return forward(self, window, held)

    def peek(self: IBForecast, explanation: Explanation) -> Tensor:
        return replay(self, explanation) + 1e-6 * seen[0].mean(dim=(1, 2), keepdim=True)

    monkeypatch.setattr(IBForecast, "forward", remember)
    monkeypatch.setattr(IBForecast, "replay", peek)


@pytest.mark.usefixtures("steady")
def test_a_model_above_the_bar_exits_with_0_and_prints_the_results(desk: Any, call: Call) -> None:
    outcome = call("audit", desk.model, desk.table)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("Audit of 69 of 69 windows (test): ")
    assert lines[-2].startswith("note: the mask is the same in every window")
    assert lines[-1] == f"passed, with a bar of 0.9: {desk.model}"


def test_the_text_equals_that_of_the_model(desk: Any, call: Call) -> None:
    outcome = call("audit", desk.model, desk.table, "--min-fidelity", "0", "--windows", "20", "--split", "all")
    expected = IBForecaster.load(desk.model).audit(desk.table, "all", 20).in_words()
    assert outcome.out.startswith(expected)
    assert "Audit of 20 of 341 windows (all)" in expected


@pytest.mark.usefixtures("fickle")
def test_a_model_with_a_broken_gate_exits_with_4_and_the_reason(desk: Any, call: Call) -> None:
    outcome = call("audit", desk.model, desk.table, "--min-fidelity", "0.5")
    assert outcome.code == 4
    assert outcome.out.endswith(f"\nNOT passed, with a bar of 0.5: {desk.model}\n")
    error, hint = outcome.err.splitlines()
    assert error.startswith("error: fidelity must be at least 0.5 (got ")
    assert hint.startswith("hint: given only its evidence the gate opens something else: fit with the recipe sealed")


@pytest.mark.usefixtures("peeking")
def test_a_changed_bit_exits_with_4_at_any_bar(desk: Any, call: Call) -> None:
    outcome = call("audit", desk.model, desk.table, "--min-fidelity", "0", "--json")
    assert outcome.code == 4
    assert outcome.document["passed"] is False
    assert outcome.document["audit"]["scramble_bits"] > 0
    assert outcome.document["shortfalls"][-1]["rule"] == "no bit of a forecast may change, context and mask held"
    assert "error: no bit of a forecast may change, context and mask held (got " in outcome.err
    assert "hint: do not rely on these explanations" in outcome.err


@pytest.mark.parametrize("gate", ["steady", "fickle"])
def test_json_output_is_one_document_for_either_verdict(
    desk: Any, call: Call, gate: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(gate)
    outcome = call("audit", desk.model, desk.table, "--json")
    document = json.loads(outcome.out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert outcome.code == (0 if gate == "steady" else 4)
    assert document["passed"] is (gate == "steady")
    assert bool(document["shortfalls"]) is bool(outcome.err) is (gate == "fickle")
    fidelity = document["audit"]["fidelity"]
    assert document["score"] == fidelity["clipped_comprehensiveness"] - fidelity["sufficiency"]


@pytest.mark.parametrize("gate", ["steady", "fickle"])
def test_an_audit_is_saved_in_the_models_folder_for_either_verdict(
    desk: Any, call: Call, tmp_path: Path, gate: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(gate)
    folder = tmp_path / "model"
    shutil.copytree(desk.model, folder)
    outcome = call("audit", folder, desk.table, "--save", "--json")
    assert outcome.err.startswith(f"audit written to {folder / FILE}\n")
    written = json.loads((folder / FILE).read_text())
    assert (written.pop("format"), written.pop("version")) == ("ibforecast.audit", 1)
    assert written.pop("sha256")
    assert written == outcome.document
    saved = saved_audit(folder, IBForecaster.load(folder).fitted.weights_sha256)
    assert saved is not None
    assert saved.passed(0.9) is (gate == "steady")


def test_nothing_is_saved_without_the_option(desk: Any, call: Call) -> None:
    call("audit", desk.model, desk.table, "--windows", "2")
    assert not (desk.model / FILE).exists()


def refused(outcome: Any, code: int, *words: str) -> bool:
    assert (outcome.code, outcome.out) == (code, ""), outcome.err
    assert [line.split(":")[0] for line in outcome.err.splitlines()] == ["error", "hint"]
    assert all(word in outcome.err for word in words), outcome.err
    return True


def test_invalid_arguments_and_tables_are_refused(desk: Any, call: Call, tmp_path: Path) -> None:
    table = pd.read_csv(desk.table)
    table[:60].to_csv(tmp_path / "short.csv", index=False)
    table.assign(wind=float("nan")).to_csv(tmp_path / "gaps.csv", index=False)
    bar = call("audit", desk.model, "nowhere.csv", "--min-fidelity", "90")
    assert refused(bar, 2, "min_fidelity must lie in [0, 1] (got min_fidelity=90.0)", "try 0.9")
    assert refused(call("audit", desk.model, desk.table, "--windows", "1"), 2, "second window", "try 1024")
    assert refused(call("audit", desk.model, desk.table, "--split", "later"), 2, "'later', which is not one of")
    assert refused(call("audit", desk.model, tmp_path / "short.csv"), 2, "the table the model was fitted on")
    assert refused(
        call("audit", desk.model, tmp_path / "short.csv", "--split", "all"), 3, "at least 2 windows", "got 1"
    )
    assert refused(call("audit", desk.model, tmp_path / "gaps.csv", "--split", "all"), 3, "got none of 341")
    assert refused(call("audit", desk.folder, desk.table), 5, "a folder with model.json")
