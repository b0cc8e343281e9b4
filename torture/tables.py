"""Small tables, recipes and models that the attacks share."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from ibforecast import IBForecaster
from ibforecast.data.tables import write

HORIZON, LOOK_BACK, ROWS = 6, 24, 160
NAMES = ("load", "wind")

RECIPE = """
extends = "{extends}"
[model.readout]
width = 8
[train]
epochs = {epochs}
batch = 32
most_steps = 2
fewest_steps = 1
anchor_margin = 0.0
"""


def table(seed: int = 0, rows: int = ROWS, names: tuple[str, ...] = NAMES) -> pa.Table:
    """Make an hourly table with a daily cycle."""
    random = np.random.default_rng(seed)
    step = np.arange(rows)
    values = np.sin(2 * np.pi * step / 24)[:, None] + 0.3 * random.normal(size=(rows, len(names)))
    times = np.datetime64("2024-01-01T00:00", "us") + step * np.timedelta64(1, "h")
    return pa.table({"time": times} | {name: 100 * (seed + 1) + 10 * values[:, at] for at, name in enumerate(names)})


def save_table(path: Path, seed: int = 0, rows: int = ROWS, names: tuple[str, ...] = NAMES) -> Path:
    """Write such a table to a file."""
    write(table(seed, rows, names), path)
    return path


def save_recipe(path: Path, extends: str = "default", epochs: int = 2, further: str = "") -> Path:
    """Write a recipe that trains in a tenth of a second."""
    path.write_text(RECIPE.format(extends=extends, epochs=epochs) + further)
    return path


def forecaster(recipe: Path, **settings: object) -> IBForecaster:
    """Return an unfitted forecaster with such a recipe."""
    return IBForecaster(
        **{"horizon": HORIZON, "look_back": LOOK_BACK, "recipe": str(recipe), "device": "cpu"} | settings
    )
