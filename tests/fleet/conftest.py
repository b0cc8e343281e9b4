"""Small series, and a forecaster that is fitted to one in a tenth of a second."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster

TINY = """
[model]
budget = 0.25
[model.gate]
width = 8
[model.readout]
width = 8
[train]
epochs = 1
batch = 64
"""


@pytest.fixture(scope="session")
def series() -> Callable[..., Any]:
    """Return a function that makes an hourly table of one channel or several."""

    def make(seed: int, rows: int = 200, channels: tuple[str, ...] = ("y",)) -> pd.DataFrame:
        noise = np.random.default_rng(seed).normal(size=(rows, len(channels)))
        values = 10 * seed + np.sin(2 * np.pi * np.arange(rows) / 24)[:, None] + 0.3 * noise
        when = pd.date_range("2023-01-01", periods=rows, freq="h")
        return pd.DataFrame({"ds": when} | dict(zip(channels, values.T, strict=True)))

    return make


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def forecaster(recipe: Path) -> Callable[..., IBForecaster]:
    """Return a function that makes an unfitted forecaster with the test's settings."""

    def make(**settings: Any) -> IBForecaster:
        return IBForecaster(**{"horizon": 12, "look_back": 48, "recipe": str(recipe), "device": "cpu"} | settings)

    return make
