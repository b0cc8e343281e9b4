"""The demo, end to end: a forecast, its picture and its verified explanation."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ibforecast import ExplainedForecast

PROGRAM = Path(sys.executable).parent / "ibforecast"


def ibforecast(*words: Any) -> Any:
    """Run a command, which must succeed, and return the document it prints."""
    command, environment = [PROGRAM, *map(str, words), "--json"], os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.xdist_group("pages")
def test_the_demo_ends_with_a_picture_and_a_verifiable_explanation(demo: Path) -> None:
    document = json.loads(demo.with_suffix(".json").read_text())
    picture, page, explanation = (Path(document[name]) for name in ("picture", "page", "explanation"))
    assert document["verified"] is True
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert b"<html" in page.read_bytes()[:500].lower()
    assert (Path(document["model"]) / "model.json").is_file()
    assert 0 < document["mse"] < 1, "in standardised units the training mean alone errs by about 1"

    explained = ExplainedForecast.from_json(explanation.read_text())
    assert 0 < explained.open_rate <= explained.budget == 0.2
    assert (explained.look_back, explained.horizon) == (96, 24)

    again = ibforecast("verify", document["model"], explanation)
    assert again["verified"] is True
    measured = ibforecast("evaluate", document["model"], demo / "town.csv")
    assert measured["mse"] == pytest.approx(document["mse"])
    assert measured["largest_open_rate"] <= 0.2
