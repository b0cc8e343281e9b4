"""Kill nodes, processes and the command itself while a fleet is fitted and forecast, and continue it.

A local Ray cluster of two nodes fits a fleet and loses one node; then it forecasts thousands of short series with a
global fleet, loses a node and, with the rest in progress, the command; the same command again completes the forecast.
Local processes do the same work and lose one of them. Nothing may be lost or doubled, and every number must be that of
a run in one process. Run as a script, this file is such a command.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from ibforecast.core.workers import HERE, Item, Processes, Ray, Result, Workers
from ibforecast.fleet import Fleet
from torture.kills import model_outcome
from torture.tables import forecaster, save_recipe

SERIES = 10_000
"""The number of series to forecast if there is a minute or more; in less time a part of them."""

MEMBERS, KNOWN, ROWS = 16, 100, 48
"""Series with a model of their own; series that the global fleet has seen; rows of a short series."""

COMPARED = 200
"""How many of the forecasts are compared with those of one process."""

STORE = 100_000_000
"""Bytes of the object store of a node; Ray accepts no less than 75 MB."""

LIMIT = 1800
"""Seconds after which a command counts as hanging."""


@dataclass(frozen=True)
class Noted(Workers):
    """Workers that note every start of an item in a file: how often, and in which process."""

    workers: Workers
    file: Path

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Iterator[tuple[Item, Result | None, str]]:
        """Yield the items as they are done."""
        return self.workers.run(items, partial(_noted, work=work, file=str(self.file)))


def _noted(item: Any, work: Callable[[Any], Any], file: str) -> Any:
    name = getattr(item, "name", None) or item.member.name
    with Path(file).open("ab", buffering=0) as notes:  # one write: lines of several processes do not mix
        notes.write(f"{name} {os.getpid()}\n".encode())
    return work(item)


def distributed(minutes: float, seed: int) -> dict[str, Any]:
    """Fit and forecast on two nodes and in two processes, and kill some of them."""
    path = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ |= {"PYTHONPATH": os.pathsep.join(filter(None, path)), "RAY_USAGE_STATS_ENABLED": "0"}
    count, dice = max(60, round(SERIES * min(minutes, 1.0))), random.Random(seed)
    figures, broken = dict[str, Any](), list[str]()
    with TemporaryDirectory() as place:
        folder = Path(place)
        _prepare(folder, count, seed)
        with _cluster() as cluster, _memory() as memory:
            for name, attack in (("fit_on_ray", _fit_on_ray), ("forecast_on_ray", _forecast_on_ray)):
                figures[name], found = attack(folder, cluster, dice)
                broken += [f"{name}: {line}" for line in found]
        figures["peak_memory_on_ray_mb"] = memory[0]
        with _memory() as memory:
            figures["forecast_in_processes"], found = _forecast_in_processes(folder, dice)
            broken += [f"forecast_in_processes: {line}" for line in found]
        figures["peak_memory_in_processes_mb"] = memory[0]
        broken += _others(folder)
    return {"series": count, "seen_in_training": KNOWN, **figures, "broken": broken}


# --- the work ---


def _prepare(folder: Path, count: int, seed: int) -> None:
    """Write the tables, and fit the fleets that nothing disturbs."""
    save_recipe(folder / "recipe.toml", "sealed", epochs=1)
    parquet.write_table(_series(MEMBERS, 160, seed), folder / "members.parquet")
    parquet.write_table(_series(count, ROWS, seed), folder / "short.parquet")
    known = _series(count, ROWS, seed).slice(0, KNOWN * ROWS)
    settings = forecaster(folder / "recipe.toml")
    Fleet(folder / "undisturbed").fit(folder / "members.parquet", settings)
    Fleet(folder / "global").fit_global(known, settings)


def _series(count: int, rows: int, seed: int) -> pa.Table:
    """Make a long table of hourly series with a daily cycle, each at its own level."""
    draw, step = np.random.default_rng(seed), np.arange(rows)
    values = 10 * np.sin(2 * np.pi * step / 24) + 3 * draw.normal(size=(count, rows)) + np.arange(count)[:, None]
    times = np.datetime64("2024-01-01T00:00", "us") + step * np.timedelta64(1, "h")
    names = np.repeat([f"series {number}" for number in range(count)], rows)
    return pa.table({"unique_id": names, "ds": np.tile(times, count), "y": values.ravel()})


def command(folder: Path, what: str, where: str, notes: str) -> None:
    """Do what `ibforecast fleet fit` and `fleet predict` do, with notes of every start."""
    engine = Noted(Processes(2) if where == "processes" else Ray(where), folder / notes)
    if what == "fit":
        outcomes = Fleet(folder / "fleet").fit(folder / "members.parquet", forecaster(folder / "recipe.toml"), engine)
    else:
        checkpoint, out = folder / f".{what}.checkpoint", folder / f"{what}.parquet"
        forecasts = Fleet(folder / "global").predict(folder / "short.parquet", engine=engine, checkpoint=checkpoint)
        forecasts.save(out)
        checkpoint.unlink()
        outcomes = forecasts.outcomes
    states = Counter(outcome.state for outcome in outcomes)
    failed = [f"{outcome.name}: {outcome.message}" for outcome in outcomes if outcome.state == "failed"]
    print(json.dumps({"states": states, "failed": failed[:3]}), flush=True)


def _fit_on_ray(folder: Path, cluster: Any, dice: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Fit a fleet, kill a node in the middle, and run the same command again."""
    begun, lost = time.perf_counter(), _added(cluster)
    process = _started(folder, "fit", cluster.address, "fit.notes")
    _until(process, folder / "fit.notes", dice.randrange(MEMBERS // 4, MEMBERS // 2))
    _kill_node(lost)
    first = _ended(process)
    second = _ended(_started(folder, "fit", cluster.address, "fit again.notes"))
    broken = [f"not reported: {first}"] * (sum(first["states"].values()) != MEMBERS)
    kept = first["states"].get("fitted", 0)
    if second["states"] != {name: number for name, number in (("kept", kept), ("fitted", MEMBERS - kept)) if number}:
        broken.append(f"the same command again: {second}")
    members, expected = folder / "fleet" / "members", folder / "undisturbed" / "members"
    if _names(members) != _names(expected):
        broken.append(f"other files: {sorted(set(_names(members)) ^ set(_names(expected)))[:5]}")
    else:
        other = [each.name for each in members.iterdir() if model_outcome(each) != model_outcome(expected / each.name)]
        broken += [f"other models: {other}"] * bool(other)
    starts = _starts(folder / "fit.notes")
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "members": MEMBERS,
        "first": first["states"],
        "again": second["states"],
        "repeated": starts.total() - len(starts),
    }, broken


def _forecast_on_ray(folder: Path, cluster: Any, dice: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Forecast all series, kill a node in the middle, later the command, and run the same command again."""
    count = _count(folder)
    begun, lost = time.perf_counter(), _added(cluster)
    process = _started(folder, "forecast", cluster.address, "ray.notes")
    _until(process, folder / "ray.notes", dice.randrange(count // 4, count // 3))
    _kill_node(lost)
    _until(process, folder / "ray.notes", dice.randrange(count // 2, 2 * count // 3))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    killed_after, in_first = time.perf_counter() - begun, _starts(folder / "ray.notes")
    _added(cluster)
    second = _ended(_started(folder, "forecast", cluster.address, "ray again.notes"))
    starts = in_first + _starts(folder / "ray again.notes")
    broken = _flaws(folder, "forecast", second)
    kept = second["states"].get("kept", 0)
    broken += ["nothing was kept"] * (not kept)
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "seconds_until_killed": round(killed_after, 1),
        "kept": kept,
        "forecast_again": second["states"].get("forecast", 0),
        "repeated": starts.total() - len(starts),
    }, broken


def _forecast_in_processes(folder: Path, dice: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Forecast all series in two processes, and kill one of them in the middle."""
    count, begun = _count(folder), time.perf_counter()
    process = _started(folder, "local", "processes", "processes.notes")
    _until(process, folder / "processes.notes", dice.randrange(count // 4, count // 2))
    worker = int((folder / "processes.notes").read_text().splitlines()[-1].rpartition(" ")[2])
    os.kill(worker, signal.SIGKILL)
    outcome, starts = _ended(process), _starts(folder / "processes.notes")
    processes = _processes(folder / "processes.notes")
    unharmed = ["no other process took over"] * (len(processes) <= 2)  # the two that it began with
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "forecast": outcome["states"].get("forecast", 0),
        "repeated": starts.total() - len(starts),
        "processes": len(processes),
    }, _flaws(folder, "local", outcome) + unharmed


# --- what must be true ---


def _flaws(folder: Path, name: str, outcome: dict[str, Any]) -> list[str]:
    """Return what is wrong with a forecast: series that are missing, doubled or failed, and files that were left."""
    count, forecasts = _count(folder), parquet.read_table(folder / f"{name}.parquet")
    rows = Counter(forecasts["unique_id"].to_pylist())
    steps = set(rows.values())
    broken = [f"{count - len(rows)} series are missing"] * (len(rows) != count)
    broken += [f"series with {steps} rows"] * (len(steps) != 1)
    broken += [f"failed: {outcome['failed']}"] * bool(outcome["failed"])
    left = [path.name for path in folder.glob(f".{name}*")]
    return broken + [f"left: {left}"] * bool(left)


def _others(folder: Path) -> list[str]:
    """Return how the forecasts of nodes and processes differ from each other, and from some of one process."""
    ray, local = (parquet.read_table(folder / f"{name}.parquet") for name in ("forecast", "local"))
    broken = [] if ray.equals(local) else ["nodes and processes gave other forecasts"]
    some = parquet.read_table(folder / "short.parquet").slice((KNOWN - COMPARED // 2) * ROWS, COMPARED * ROWS)
    here = Fleet(folder / "global").predict(some, engine=HERE).table()
    wanted = set(here["unique_id"])
    found = local.to_pandas()
    found = found[found["unique_id"].isin(wanted)].reset_index(drop=True)
    return broken + ["one process gives other forecasts"] * (not found.equals(here))


def _names(members: Path) -> list[str]:
    return sorted(str(path.relative_to(members)) for path in members.rglob("*"))


def _count(folder: Path) -> int:
    return parquet.read_metadata(folder / "short.parquet").num_rows // ROWS


def _starts(file: Path) -> Counter[str]:
    """Return how often each item was started."""
    return Counter(line.rpartition(" ")[0] for line in file.read_text().splitlines())


def _processes(file: Path) -> set[str]:
    """Return the numbers of the processes that started items."""
    return {line.rpartition(" ")[2] for line in file.read_text().splitlines()}


# --- processes and nodes ---


def _started(folder: Path, *words: str) -> subprocess.Popen[str]:
    with (folder / "errors").open("a") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "torture.distributed", str(folder), *words],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=Path(__file__).parents[1],
        )


def _until(process: subprocess.Popen[str], notes: Path, count: int) -> None:
    """Wait until a command has started a number of items."""
    deadline = time.monotonic() + LIMIT
    while not notes.exists() or notes.read_bytes().count(b"\n") < count:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise RuntimeError(f"the command ended, or hangs, before it had started {count} items")
        time.sleep(0.05)


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what a command printed in the end."""
    try:
        said, _ = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    if process.returncode:
        raise RuntimeError(f"the command ended with code {process.returncode}")
    result: dict[str, Any] = json.loads(said.splitlines()[-1])
    return result


def _node() -> dict[str, Any]:
    return {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}


@contextmanager
def _cluster() -> Iterator[Any]:
    """Yield a cluster of one node on this machine; it is stopped in the end."""
    from ray.cluster_utils import Cluster

    cluster = _patiently(lambda: Cluster(initialize_head=True, head_node_args=_node()))
    try:
        yield cluster
    finally:
        cluster.shutdown()


def _added(cluster: Any) -> Any:
    return _patiently(lambda: cluster.add_node(**_node()))


def _patiently(start: Callable[[], Any]) -> Any:
    """Start a node; again if it took more than Ray's half a minute, as on a busy machine."""
    for _ in range(4):
        try:
            return start()
        except Exception as error:
            if "timed out during startup" not in str(error):
                raise
    return start()


def _kill_node(node: Any) -> None:
    """Kill the daemon of a node and everything that it has started, at once."""
    (daemon,) = node.all_processes["raylet"]
    for process in [daemon.process.pid, *_descendants(daemon.process.pid)]:
        os.kill(process, signal.SIGKILL)


def _descendants(process: int) -> list[int]:
    """Return the processes that a process started, and that these started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found, waiting = list[int](), [process]
    while waiting:
        following = children.get(waiting.pop(), [])
        found += following
        waiting += following
    return found


@contextmanager
def _memory() -> Iterator[list[int]]:
    """Yield a list whose only number becomes the largest memory of this process and all below it, in megabytes.

    A page that several processes share is divided among them.
    """
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(2.0):
            peak[0] = max(peak[0], sum(map(_megabytes, [os.getpid(), *_descendants(os.getpid())])))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def _megabytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("Pss:")), 0)


def _main(words: Sequence[str]) -> None:
    # Imported by its name, so that workers find its functions there.
    from torture.distributed import command

    folder, what, where, notes = words
    command(Path(folder), what, where, notes)


if __name__ == "__main__":
    _main(sys.argv[1:])
