"""How soon a command answers, how much memory a long table needs, and what a document costs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import log10
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

import torch
from pyarrow import parquet

from benchmarks.fits import table_of
from benchmarks.measures import _least_seconds
from ibforecast import IBForecaster
from ibforecast.data.sources import write

ROUNDS, TRAINED, HORIZON = 7, 4000, 24
LENGTHS = (100_000, 1_000_000)
"""Rows of the tables whose memory is measured; five channels."""

PEAK = """
import sys
from pathlib import Path
from ibforecast import IBForecaster
model = IBForecaster.load(sys.argv[1], "cpu")
def most_used(table):
    model.predict(table) if sys.argv[2] == "predict" else model.evaluate(table, "all")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(most_used(sys.argv[3]), most_used(sys.argv[4]))
"""
"""Print the peak memory in KiB for a short table, which needs all libraries, and then for a long one.

Not `getrusage`, whose peak includes that of the process that started this one.
"""


@contextmanager
def _desk() -> Iterator[tuple[Path, Path]]:
    """Make a folder with a short table and a small sealed model of it."""
    with TemporaryDirectory() as folder:
        table, model = Path(folder) / "table.csv", Path(folder) / "model"
        write(table_of(TRAINED), table)
        IBForecaster(HORIZON, recipe="sealed", epochs=1, device="cpu").fit(table).save(model)
        yield table, model


def start(device: torch.device) -> dict[str, float]:
    """Measure the processor seconds of new processes, and their ratio to `import torch`: the least of several turns."""
    with _desk() as (table, model):
        verb = "import sys; from ibforecast.cli.main import run; run(sys.argv[1:])"
        programs = {
            "torch": ["import torch"],
            "library": ["from ibforecast import IBForecaster"],
            "help": [verb, "--help"],
            "fit_help": [verb, "fit", "--help"],
            "predict": [verb, "predict", str(model), str(table)],
            "explain": [verb, "explain", str(model), str(table), "--json"],
        }
        least = dict.fromkeys(programs, float("inf"))
        for _ in range(ROUNDS):
            for name, words in programs.items():
                least[name] = min(least[name], _processor_seconds([sys.executable, "-c", *words]))
    results = {f"{name}_seconds": round(seconds, 3) for name, seconds in least.items()}
    results |= {f"{name}_over_torch": round(seconds / least["torch"], 2) for name, seconds in least.items()}
    return results | {"library_seconds_beyond_torch": round(least["library"] - least["torch"], 3)}


def _processor_seconds(command: list[str]) -> float:
    # An installed package has its bytecode: the first turn writes it, even where the environment forbids that.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def memory(device: torch.device) -> dict[str, float]:
    """Measure the peak memory of predicting and of evaluating all of a long table, beyond that of a short one.

    Per row it is the growth between the two lengths; the exponent is that of the whole in the number of rows.
    """
    results: dict[str, float] = {}
    with _desk() as (short, model):
        for verb in ("predict", "evaluate"):
            peaks = []
            for rows in LENGTHS:
                long = short.with_name("long.parquet")
                parquet.write_table(table_of(rows), long)
                command = [sys.executable, "-c", PEAK, str(model), verb, str(short), str(long)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                before, after = (1024 * int(kibibytes) for kibibytes in done.stdout.split())
                peaks.append(after - before)
                results[f"{verb}_{rows}_megabytes"] = round(peaks[-1] / 1e6, 1)
            results[f"{verb}_bytes_per_row"] = round((peaks[1] - peaks[0]) / (LENGTHS[1] - LENGTHS[0]), 1)
            results[f"{verb}_exponent"] = round(log10(peaks[1] / peaks[0]) / log10(LENGTHS[1] / LENGTHS[0]), 2)
    return results


def document(device: torch.device) -> dict[str, float]:
    """Measure the processor time of one forecast, with its explanation, and with its document, on an opened table."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with _desk() as (path, folder):
        model = IBForecaster.load(folder, "cpu")
        table = model.open(path)
        calls: dict[str, Callable[[], object]] = {
            "forecast": partial(model.predict, table),
            "explained": partial(model.explain, table),
            "document": lambda: model.explain(table).to_json(),
        }
        least = dict(zip(calls, _least_seconds(list(calls.values()), 400), strict=True))
    torch.set_num_threads(threads)
    results = {f"{name}_ms": round(1e3 * seconds, 3) for name, seconds in least.items()}
    return results | {f"{name}_over_forecast": round(least[name] / least["forecast"], 2) for name in calls}
