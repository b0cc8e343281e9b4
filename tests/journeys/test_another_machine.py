"""Explanations and receipts that were computed with other instructions of the processor are true here as well."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.anchors import halve_anchor

from ibforecast import IBForecaster
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.verification import ROUNDED

ROWS, LOOK_BACK, HORIZON = 420, 48, 12
KINDS: dict[str, dict[str, Any]] = {
    "sealed": {"sealed": True},
    "choosing": {"choosing": True},
    "additive": {"recipe": "additive"},
}
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
"""What makes PyTorch and the libraries below it use only the oldest instructions."""

OUTLIER = -3
"""The row with a value that is two thousand standard deviations from the mean."""


def table() -> pd.DataFrame:
    """Make three channels with a daily cycle around very different means."""
    hour, random = np.arange(ROWS), np.random.default_rng(5)
    values = np.sin(2 * np.pi * hour / 24)[:, None] + 0.4 * random.normal(size=(ROWS, 3))
    values = values * (20.0, 3.0, 0.005) + (900.0, 4e5, -2.0)
    times = pd.date_range("2023-01-01", periods=ROWS, freq="h")
    return pd.DataFrame({"when": times} | dict(zip(("load", "wind", "heat"), values.T, strict=True)))


def with_outlier() -> pd.DataFrame:
    rows = table()
    rows.loc[rows.index[OUTLIER], "heat"] = 10.0
    return rows


def explanations(model: IBForecaster) -> list[ExplainedForecast]:
    """Explain a few ordinary windows and one with an outlier, each with the receipts of two numbers."""
    rows = table()
    windows = [(rows, rows["when"][row]) for row in range(80, ROWS - HORIZON, 60)] + [(with_outlier(), None)]
    made = [model.explain(*window) for window in windows]
    return [
        replace(one, receipts=tuple(one.itemised(name, step) for name in one.channels for step in ("mean", 2)))
        for one in made
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_explanations_computed_with_other_instructions_are_verified(kind: str, tmp_path: Path) -> None:
    settings = {"budget": 0.25, "epochs": 1, "device": "cpu", **KINDS[kind]}
    model = halve_anchor(IBForecaster(HORIZON, LOOK_BACK, **settings).fit(table()))
    model.save(tmp_path / "model")
    subprocess.run(
        [sys.executable, "-m", "tests.journeys.test_another_machine", tmp_path], check=True, env=os.environ | PLAIN
    )
    documents = sorted(tmp_path.glob("*.json"))
    assert len(documents) == len(explanations(model))
    for document in documents:
        rows = with_outlier() if document == documents[-1] else table()
        verification = model.verify(document.read_text(), rows)
        assert verification, str(verification)
        exactly = model.verify(document.read_text(), rows, exact=True)
        assert bool(exactly) or ROUNDED in verification.notes or "last digit differs" in str(verification)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for number, explained in enumerate(explanations(IBForecaster.load(folder / "model"))):
        (folder / f"{number:03}.json").write_text(explained.to_json())
