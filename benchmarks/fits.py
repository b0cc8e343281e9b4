"""The time of a fit: by recipe, for a year of hours and of quarter hours, and by threads on a busy machine."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import torch

from ibforecast import IBForecaster
from ibforecast.fitting import recipe_for
from ibforecast.settings import Settings
from ibforecast.train.checkpoint import Epoch

CHANNELS, DAYS, DAY = 5, 365, 86_400
STEPS_A_DAY = {"hours": 24, "quarter_hours": 96}


def fits(device: torch.device) -> dict[str, float]:
    """Measure the seconds of a whole fit by recipe, and their ratio; five channels, a day ahead.

    The second epoch of each stage is timed and multiplied by its number of epochs, for a sealed reader that wins the
    contest; a fit that stops early is faster.
    """
    results: dict[str, float] = {}
    for name, steps in STEPS_A_DAY.items():
        plain, sealed = _seconds(table_of(DAYS * steps, steps), steps, device.type)
        results |= {f"{name}_plain_seconds": plain, f"{name}_sealed_seconds": sealed, f"{name}_ratio": plain / sealed}
    return {name: round(value, 1) for name, value in results.items()}


def table_of(rows: int, steps: int = 96) -> pa.Table:
    """Return a table of five channels with days of `steps` rows, a slow drift and noise."""
    random = np.random.default_rng(0)
    day = 10 * np.sin(2 * np.pi * (np.arange(rows)[:, None] / steps + np.arange(CHANNELS) / CHANNELS))
    values = day + random.normal(0, 0.05, (rows, CHANNELS)).cumsum(axis=0) + random.normal(0, 1, (rows, CHANNELS))
    times = np.datetime64("2023-01-01", "us") + np.arange(rows) * np.timedelta64(DAY // steps, "s")
    return pa.table({f"c{channel}": values[:, channel] for channel in range(CHANNELS)} | {"time": times})


def _seconds(table: pa.Table, steps: int, device: str) -> tuple[float, float]:
    """Return the seconds of a fit with the contest and of one without."""
    ended: list[float] = []

    def record(epoch: int, epochs: int, outcome: Epoch) -> None:
        ended.append(time.perf_counter())

    model = IBForecaster(horizon=steps, epochs=2, device=device).fit(table, on_epoch=record)
    # Two epochs of each: the first stage, the sealed candidate, the choosing candidate, the second stage.
    sealed_epoch, choosing_epoch = ended[1] - ended[0], ended[5] - ended[4]
    whole = recipe_for(Settings(horizon=steps), model.open(table).series).train
    sealed = (whole.epochs + whole.second_epochs) * sealed_epoch
    return sealed + whole.contest.epochs * (sealed_epoch + choosing_epoch), sealed


STEPS = """
import sys, time, torch
from benchmarks.measures import HORIZON, LOOK_BACK, _windows
from benchmarks.sealed import _step
from ibforecast.core.sizes import Sizes
from ibforecast_lab.recipes import resolve
torch.set_num_threads(int(sys.argv[1]))
step = _step(resolve("sealed", Sizes(LOOK_BACK, HORIZON, 5, 24)), _windows(torch.device("cpu"), 5, 24))
taken = []
for _ in range(23):
    begun = time.perf_counter()
    step()
    taken.append(time.perf_counter() - begun)
print(sorted(taken[3:])[10])
"""
"""Print the median seconds of a training step with a number of threads."""


def threads(device: torch.device) -> dict[str, float]:
    """Measure training steps with one thread, and with two whose idle time is spent spinning or waiting.

    By default an idle thread of OpenMP spins. If another program needs its core, the others wait for it: the program
    `ibforecast` sets OMP_WAIT_POLICY=PASSIVE. Milliseconds with and without a busy loop per core, and their ratios to
    one thread; the turns are repeated, and the least counts.
    """
    cases = {"one": (1, ""), "two_spinning": (2, ""), "two_waiting": (2, "PASSIVE")}
    results: dict[str, float] = {}
    for name, loops in (("quiet", 0), ("busy", os.cpu_count() or 1)):
        least = dict.fromkeys(cases, float("inf"))
        with _busy(loops):
            for _ in range(3):
                for case, (count, policy) in cases.items():
                    least[case] = min(least[case], _step_seconds(count, policy))
        results |= {f"{name}_{case}_ms": round(1e3 * seconds, 1) for case, seconds in least.items()}
        results |= {f"{name}_{case}_over_one": round(seconds / least["one"], 2) for case, seconds in least.items()}
    return results


def _step_seconds(count: int, policy: str) -> float:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    own = {"OMP_WAIT_POLICY": policy} if policy else {}
    command = [sys.executable, "-c", STEPS, str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=inherited | own).stdout)


@contextmanager
def _busy(loops: int) -> Iterator[None]:
    """Keep this number of cores busy."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()
