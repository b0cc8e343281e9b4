"""How the cost grows with rows, channels, look-back and patches: processor seconds of one thread, and exponents.

An exponent is the slope of the logarithm of the time over that of the size: fitted through all sizes, and between the
two largest, where constant costs matter least.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from benchmarks.fits import table_of
from benchmarks.measures import HORIZON, LOOK_BACK, _windows
from ibforecast import IBForecaster
from ibforecast.core.sizes import Sizes
from ibforecast.train.step import Step
from ibforecast.zoo.recipes import Recipe
from ibforecast_lab.recipes import resolve

RECIPES = ("sealed", "choosing")
ROWS = {
    "read": (10_000, 100_000, 1_000_000, 10_000_000),
    "predict": (10_000, 100_000, 1_000_000, 10_000_000),
    "evaluate": (10_000, 100_000, 1_000_000),
    "fit": (10_000, 100_000, 1_000_000),
}
"""Rows of a table with one channel, for each verb; `predict` and `evaluate` have it open."""

CHANNELS, LOOK_BACKS, PATCHES = (1, 7, 21, 76, 321, 862), (96, 192, 384, 720, 1440), (8, 16, 32, 48, 96)
BATCH, CYCLE, WIDE, ENOUGH, ROUNDS = 32, 24, 7, 1.0, 3
EPOCHS, TRAINED, DAY = 2, 4000, 24

Times = dict[int, float]


def growth(device: torch.device) -> dict[str, float]:
    """Measure seconds and exponents by axis and kind of work: AXIS_WORK_SIZE and AXIS_WORK_exponent."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results: dict[str, float] = {}
    for work, times in (*_over_rows(), *_over_shapes()):
        results |= {f"{work}_{size}": float(f"{seconds:.4g}") for size, seconds in times.items()}
        results |= {f"{work}_exponent": _slope(times), f"{work}_last_exponent": _slope(dict(list(times.items())[-2:]))}
        print(work, times, results[f"{work}_exponent"], results[f"{work}_last_exponent"], flush=True)
    torch.set_num_threads(threads)
    return results


def _over_rows() -> Iterator[tuple[str, Times]]:
    """Yield the times of reading, forecasting, evaluating and fitting tables of different lengths."""
    with TemporaryDirectory() as folder:
        paths = {rows: Path(folder) / f"{rows}.parquet" for rows in ROWS["read"]}
        for rows, path in paths.items():
            parquet.write_table(_table(rows), path)
        model = IBForecaster(DAY, recipe="sealed", epochs=1, device="cpu").fit(_table(TRAINED))
        yield "rows_read", {rows: _seconds(partial(model.open, paths[rows])) for rows in ROWS["read"]}
        opened = {rows: model.open(path) for rows, path in paths.items()}
        yield "rows_predict", {rows: _seconds(partial(model.predict, opened[rows])) for rows in ROWS["predict"]}
        yield (
            "rows_evaluate",
            {rows: _seconds(partial(model.evaluate, opened[rows], "all")) for rows in ROWS["evaluate"]},
        )
        del opened
        plain = IBForecaster(DAY, recipe="sealed", epochs=EPOCHS, device="cpu")
        yield "rows_fit", {rows: _seconds(partial(plain.fit, paths[rows])) for rows in ROWS["fit"]}


def _over_shapes() -> Iterator[tuple[str, Times]]:
    """Yield the times of a training step and of a forecast with its explanation, by channels, look-back and patches."""
    for name in RECIPES:
        shapes = {
            "channels": {count: resolve(name, Sizes(LOOK_BACK, HORIZON, count, CYCLE)) for count in CHANNELS},
            "look_back": {steps: resolve(name, Sizes(steps, HORIZON, WIDE, CYCLE)) for steps in LOOK_BACKS},
            "patches": {
                count: resolve(name, Sizes(LOOK_BACK, HORIZON, WIDE, CYCLE), patch_len=LOOK_BACK // count)
                for count in PATCHES
            },
        }
        for axis, recipes in shapes.items():
            both = {size: _step_and_forecast(recipe) for size, recipe in recipes.items()}
            yield f"{axis}_{name}_step", {size: step for size, (step, _) in both.items()}
            yield f"{axis}_{name}_forecast", {size: forecast for size, (_, forecast) in both.items()}


def _step_and_forecast(recipe: Recipe) -> tuple[float, float]:
    """Return the seconds of a training step and of an explained forecast, of one batch."""
    config = recipe.config
    windows = _windows(torch.device("cpu"), config.channels, CYCLE, config.look_back)
    forecaster, starts = recipe.build(0), windows.starts[:: len(windows) // BATCH][:BATCH]
    step = Step(forecaster.train(), windows, BATCH, torch.Generator().manual_seed(0), 0.5, recipe.train.bfloat16)
    step.set_pace(1e-3, 0.5)
    trained = _seconds(partial(step.run, starts))
    forecaster.eval()
    with torch.no_grad():
        return trained, _seconds(partial(forecaster, windows.look_backs(starts)))


def _seconds(call: Callable[[], object]) -> float:
    """Return the least processor seconds of some calls; one that takes long is made once."""
    least = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        call()
        least = min(least, time.process_time() - begun)
        if least > ENOUGH:
            break
    return least


def _slope(times: Times) -> float:
    sizes, seconds = np.log(list(times)), np.log(list(times.values()))
    return round(float(np.polyfit(sizes, seconds, 1)[0]), 2)


def _table(rows: int) -> pa.Table:
    return table_of(rows, DAY).select(["time", "c0"])
