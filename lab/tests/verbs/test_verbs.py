"""The verbs of the laboratory: help, options, and errors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibforecast.cli.main import LAB_VERBS

Call = Callable[..., Any]


@pytest.mark.parametrize("verb", LAB_VERBS)
def test_the_help_of_every_verb_has_examples(call: Call, verb: str) -> None:
    outcome = call(verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line for line in outcome.out.splitlines() if line.strip().startswith(f"ibforecast {verb}")]


def test_the_help_of_the_command_names_every_verb(call: Call) -> None:
    assert all(f"\n  {verb} " in call("--help").out for verb in LAB_VERBS)


@pytest.mark.parametrize("jobs", ["0", "-2", "many"])
def test_reproducing_needs_at_least_one_job(call: Call, jobs: str, tmp_path: Path) -> None:
    outcome = call("reproduce", "accuracy", "--jobs", jobs)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--jobs" in outcome.err
    assert "--help" in outcome.err


def test_stacked_cells_are_run_on_this_machine(call: Call) -> None:
    outcome = call("reproduce", "accuracy", "--stacked", "--engine", "ray")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--stacked" in outcome.err


def test_several_labels_are_one_run(call: Call, tmp_path: Path) -> None:
    ledger = ("--ledger", str(tmp_path / "ledger.jsonl.zst"))
    counts = []
    for labels in (["fev"], ["look_back"], ["fev", "look_back", "fev"]):
        outcome = call("reproduce", *labels, "--minutes", "1e-9", "--json", *ledger)
        document = json.loads(outcome.out)
        assert (outcome.code, document["run"], document["left"]) == (0, 0, document["cells"])
        counts.append(document["cells"])
    assert counts[2] == counts[0] + counts[1]
