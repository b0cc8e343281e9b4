"""Replace every value that a sealed model does not read, by anything, and run it again: no bit may change."""

import random
import time
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from ibforecast import IBForecaster
from ibforecast.data.windows import Windows
from ibforecast_lab.measures.unread import KINDS, reactions
from torture.tables import forecaster, save_recipe, table

AIM = 1_000_000
ROWS, BATCH = 1_000, 512
MODELS: dict[str, dict[str, Any]] = {
    "sealed": {"extends": "sealed"},
    "patches": {"extends": "sealed", "patch_len": 4},
    "additive": {"extends": "additive"},
    "all gates": {"extends": "sealed", "budget": 1.0},
    "one value": {"extends": "sealed", "budget": 0.03},
    "past": {"extends": "sealed", "past": ["sun"]},
}
"""Kinds of sealed models: long tokens, a readout that is a sum, budgets at both ends, a channel that is only read."""


def scrambled(minutes: float, seed: int, aim: int = AIM) -> dict[str, Any]:
    """Scramble windows of several kinds of models, in every way of `ibforecast_lab.measures.unread`."""
    dice, until = random.Random(seed), time.monotonic() + 60 * minutes
    windows, changed = Counter[str](), Counter[str]()
    while windows.total() < aim and (time.monotonic() < until or not windows):
        name = list(MODELS)[len(windows) % len(MODELS)] if len(windows) < len(MODELS) else dice.choice(list(MODELS))
        draw = torch.Generator().manual_seed(dice.getrandbits(32))
        model = _model(name)
        reacted = reactions(model.fitted.network, _windows(model, dice.getrandbits(32)), draw, BATCH)
        for kind, reaction in reacted.items():
            windows[name] += len(reaction.anything)
            changed[f"{name}, {kind}"] += int(reaction.anything.sum())
    moved = {kind: count for kind, count in changed.items() if count}
    return {
        "windows": windows.total(),
        "windows_by_model": dict(windows),
        "kinds": len(KINDS),
        "changed": sum(moved.values()),
        "broken": [f"{count} windows changed: {kind}" for kind, count in moved.items()],
    }


@cache
def _model(name: str) -> IBForecaster:
    settings = dict(MODELS[name])
    with TemporaryDirectory() as folder:
        recipe = save_recipe(Path(folder) / "recipe.toml", settings.pop("extends"), epochs=1)
        return forecaster(recipe, **settings).fit(_table(0))


def _table(seed: int) -> pa.Table:
    """Make a table of three channels with gaps, single ones and long ones."""
    rows, draw = table(seed % 50, ROWS, ("load", "wind", "sun")), np.random.default_rng(seed)
    for at in (1, 2, 3):
        values = rows.column(at).to_numpy(zero_copy_only=False).copy()
        values[draw.random(ROWS) < 0.02] = np.nan
        values[500:540] = np.nan
        rows = rows.set_column(at, rows.column_names[at], pa.array(values))
    return rows


def _windows(model: IBForecaster, seed: int) -> Windows:
    fitted, series = model.fitted, model.open(_table(seed)).series
    config = fitted.config
    starts = np.arange(series.rows - config.look_back - config.horizon + 1)
    return Windows.of(series, fitted.standardiser, config.period, starts, config.look_back, config.horizon)
