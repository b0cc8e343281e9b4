"""A small table, a model fitted to it, and two ways to run a command: in this process, and in a new one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.cli.main import run

LOOK_BACK, HORIZON = 48, 12
TINY = """
[model]
budget = 0.25
[model.gate]
width = 16
[model.readout]
width = 16
[train]
epochs = 2
batch = 64
"""


@dataclass(frozen=True)
class Outcome:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Desk:
    """The files that the commands read; no test writes to them."""

    folder: Path
    table: Path
    recipe: Path
    model: Path
    explanation: Path

    @property
    def settings(self) -> list[str]:
        """The settings of `fit` used for the model."""
        return ["--horizon", str(HORIZON), "--look-back", str(LOOK_BACK), "--recipe", str(self.recipe)]


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    made = Desk(folder, folder / "table.csv", folder / "tiny.toml", folder / "model", folder / "why.json")
    hour, noise = np.arange(400), np.random.default_rng(5).normal(size=(400, 3))
    values = (np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * noise) * (20.0, 3.0, 0.5) + (900.0, 40.0, -2.0)
    when = pd.date_range("2023-01-01", periods=400, freq="h")
    pd.DataFrame({"when": when, "load": values[:, 0], "wind": values[:, 1], "heat": values[:, 2]}).to_csv(
        made.table, index=False
    )
    made.recipe.write_text(TINY)
    model = IBForecaster(HORIZON, LOOK_BACK, recipe=str(made.recipe), device="cpu").fit(made.table)
    model.save(made.model)
    made.explanation.write_text(model.explain(made.table).to_json())
    return made


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return a function that runs a command in this process."""

    def invoke(*words: Any) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            run([str(word) for word in words])
        streams = capsys.readouterr()
        return Outcome(stop.value.code, streams.out, streams.err)

    return invoke


@pytest.fixture(scope="session")
def program() -> list[str]:
    return [str(Path(sys.executable).parent / "ibforecast")]


@pytest.fixture(scope="session")
def surroundings() -> dict[str, str]:
    """The environment of a command: one thread, and none of the user's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("IBFORECAST")} | {
        "OMP_NUM_THREADS": "1"
    }


@pytest.fixture
def shell(program: list[str], surroundings: dict[str, str], tmp_path: Path) -> Callable[..., Outcome]:
    """Return a function that runs a command in a new process."""

    def invoke(*words: Any) -> Outcome:
        done = subprocess.run(
            [*program, *map(str, words)], cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=120
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return invoke
