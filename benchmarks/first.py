"""The way from a table never seen to a verified receipt, through the command line: how long each step takes."""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import torch

from ibforecast.data.sources import write

DAYS, QUARTERS, SENSORS = 365, 96, 8


def first(device: torch.device) -> dict[str, float]:
    """Measure check, fit, explain and verify of a year of quarter hours: ten channels, one a flag and one a count.

    Each is a new process on a processor, so its time includes that of Python and PyTorch. The fit is the one that check
    prints, with all of its advice. Seconds are those that a person waits; processor seconds leave out other programs.
    """
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        write(table_of(DAYS), table)
        return walk(table, ("--device", "cpu"))


def table_of(days: int) -> pa.Table:
    """Return quarter hours of sensors with a day and a week, a door that is open or not, and visitors; with gaps."""
    random, rows = np.random.default_rng(20), days * QUARTERS
    step = np.arange(rows)
    day, weekend = 2 * np.pi * step / QUARTERS, step // QUARTERS % 7 >= 5
    columns: dict[str, np.ndarray] = {}
    for number in range(SENSORS):
        drift = random.normal(0, 0.03, rows).cumsum()
        wave = (8 + number) * np.sin(day + number) - 4 * weekend
        columns[f"sensor_{number}"] = (50 + wave + drift + random.normal(0, 1, rows)).round(2)
        for start in random.integers(0, rows - QUARTERS, 12):  # an outage of up to half a day
            columns[f"sensor_{number}"][start : start + int(random.integers(1, QUARTERS // 2))] = np.nan
    opened = ~weekend & (np.abs(step % QUARTERS - 52) < 20)
    columns["door_open"] = opened.astype(float)
    columns["visitors"] = random.poisson(np.where(opened, 6 + 4 * np.sin(day - 2), 0.1).clip(0)).astype(float)
    times = np.datetime64("2024-01-01", "us") + step * np.timedelta64(15, "m")
    return pa.table({"time": times} | columns)


def walk(table: Path, options: Sequence[str] = ()) -> dict[str, float]:
    """Check a table, fit as check advises with further options, explain and verify; return the seconds of each."""
    folder, results = table.parent, dict[str, float]()
    model, why = str(folder / "model"), str(folder / "why.json")
    printed = _timed(results, "check", (str(table), *options))
    verb, *words = shlex.split(printed.rpartition("next: ibforecast ")[2])
    assert verb == "fit"
    words[-1] = model  # the folder after --out
    _timed(results, "fit", words)
    _timed(results, "explain", (model, str(table), "--out", why))
    verdict = json.loads(_timed(results, "verify", (model, why, "--table", str(table), "--json")))
    results["seconds"] = round(sum(value for name, value in results.items() if name.endswith("_wait_seconds")), 1)
    receipts = next(check for check in verdict["checks"] if check["name"] == "receipts")
    return results | {"verified": int(verdict["verified"]), "receipts_verified": int(receipts["passed"])}


def _timed(results: dict[str, float], verb: str, words: Sequence[str]) -> str:
    """Run a verb in a new process, store its seconds, and return what it printed."""
    before, begun = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "ibforecast", verb, *words], capture_output=True, text=True, check=True
    )
    waited, after = time.perf_counter() - begun, getrusage(RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    results |= {f"{verb}_wait_seconds": round(waited, 1), f"{verb}_processor_seconds": round(used, 1)}
    return done.stdout
