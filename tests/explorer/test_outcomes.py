"""The sentences about a what-if: in every state that there can be, they agree with it and with each other."""

import json
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

SOURCES = Path(__file__).parents[2] / "page" / "src"
CHANNELS = 8
ASK = """
import { outcomeOf } from "./panels.js";
let text = "";
for await (const part of process.stdin) text += part;
const explanation = {
  sealed: false,
  patchLen: 4,
  channels: Array.from({ length: %d }, () => ({ values: { forecast: [1] } })),
};
console.log(JSON.stringify(JSON.parse(text).map((changed) => outcomeOf(explanation, changed))));
"""


def whatifs() -> list[dict[str, Any]]:
    """Return every state: what was scrambled and edited, by hand or not, and what it did."""
    states = []
    for scrambled, went_wrong, by_hand, closed, moved, computed, within in product(
        [0, 1, 5], [False, True], [False, True], [0, 1, 2], [0, 1, CHANNELS], [False, True], [False, True]
    ):
        is_same = not (moved or computed or went_wrong)
        if (went_wrong and not scrambled) or (not by_hand and (closed or (not is_same and not went_wrong))):
            continue
        if not scrambled and not by_hand:
            continue
        shift = [{"largest": float(channel < moved)} for channel in range(CHANNELS)]
        states.append(
            {
                "shift": shift,
                "openCount": 6,
                "allowance": 5,
                "withinBudget": within,
                "sameBits": is_same,
                "closedEdits": closed + scrambled if by_hand else scrambled,
                "scrambled": scrambled,
                "scrambleMoved": went_wrong,
                "byHand": by_hand,
                "rerun": None,
            }
        )
    return states


@pytest.fixture(scope="module")
def outcomes() -> list[tuple[dict[str, Any], str]]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the sources of the page run in node")
    states = whatifs()
    command = [node, "--input-type=module", "-e", ASK % CHANNELS]
    done = subprocess.run(command, input=json.dumps(states), cwd=SOURCES, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(zip(states, json.loads(done.stdout), strict=True))


def test_what_is_said_of_a_what_if_agrees_with_it(outcomes: list[tuple[dict[str, Any], str]]) -> None:
    assert len(outcomes) > 100
    for state, text in outcomes:
        moved = sum(bool(one["largest"]) for one in state["shift"])
        says_moved = f"moved the forecast in {moved} of 8" in text or f"The forecast moved in {moved} of 8" in text
        is_described = state["byHand"] and not state["scrambleMoved"]
        assert says_moved == (is_described and moved > 0), text
        assert ("the same, bit for bit" in text) == (is_described and state["sameBits"]), text
        assert ("its limits give the same one" in text) == (is_described and not moved and not state["sameBits"]), text
        assert ("which must not happen" in text) == state["scrambleMoved"], text


def test_no_two_sentences_about_a_what_if_contradict_each_other(outcomes: list[tuple[dict[str, Any], str]]) -> None:
    for _, text in outcomes:
        says_same = "not one bit of the forecast moved" in text or "the same, bit for bit" in text
        says_moved = any(words in text for words in ("forecast moved in", "moved the forecast", "must not happen"))
        assert not (says_same and says_moved), text
        assert "in 0 of" not in text
        assert not any(word in text for word in ("undefined", "null", "NaN", "  ", " ."))
        assert text.endswith(".")
