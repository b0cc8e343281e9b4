"""The service under load on loopback, beside the bare model in the same run."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from ibforecast import IBForecaster
from ibforecast.checks import window_of
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data.splits import Split
from ibforecast.data.standardiser import Standardiser
from ibforecast.data.tables import Layout
from ibforecast.model.network import IBForecast
from ibforecast.zoo.recipes import resolve
from ibforecast.zoo.saved import FittedModel, TrainingSummary

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 96, 96, 7, 24, 64
CLIENTS = (1, 16, 64)
SECONDS = 5.0
SERVER = """
import sys
from pathlib import Path
from ibforecast.serve.run import serve
from ibforecast.serve.settings import Settings
serve({"model": Path(sys.argv[1])}, "127.0.0.1", 0, Settings(), lambda url: print(url, flush=True))
"""


def serving(device: torch.device) -> dict[str, float]:
    """Throughput and latency of /explain at 1, 16 and 64 clients; one window of the shape of ETTh1 per request.

    Beside it: one call of the network on that window, one `explain(table).to_json()` in this process, and the network
    on batches on all cores. The service computes each window alone, so that its bits do not depend on its neighbours.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "model", _table()
        _save_model(path)
        results = _bare(path, table)
        body = json.dumps({"table": {name: column.tolist() for name, column in table.items()}}).encode()
        with _server(path) as port:
            asyncio.run(_load(port, body, 4, 1.0))
            for clients in CLIENTS:
                taken, errors, seconds = asyncio.run(_load(port, body, clients, SECONDS))
                results |= {
                    f"clients_{clients}_per_second": len(taken) / seconds,
                    f"clients_{clients}_p50_ms": float(np.percentile(taken, 50)) * 1e3,
                    f"clients_{clients}_p99_ms": float(np.percentile(taken, 99)) * 1e3,
                    f"clients_{clients}_errors": float(errors),
                }
    results["p50_above_network_ms"] = results["clients_1_p50_ms"] - results["network_ms"]
    results["p50_above_library_ms"] = results["clients_1_p50_ms"] - results["library_ms"]
    for bare in ("batched", "alone", "library"):
        results[f"clients_64_over_{bare}"] = results["clients_64_per_second"] / results[f"{bare}_per_second"]
    return {name: round(value, 3) for name, value in results.items()}


def _bare(path: Path, table: dict[str, Any]) -> dict[str, float]:
    """The network on one window, the library's own call, and the network on batches; each at its best of threads."""
    model = IBForecaster.load(path, device="cpu")
    given = pa.table(table)
    explained = model.explain(given)
    window = window_of(explained.history, explained.phase, model.fitted.standardiser)
    batch = Window(*(torch.cat([part] * BATCH) for part in (window.values, window.observed, window.phase)))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        network = _median(lambda: model.fitted.network(window), 200)
        library = _median(lambda: model.explain(given).to_json(), 100)
        one_core = _median(lambda: model.fitted.network(batch), 20)
        torch.set_num_threads(max(threads, 2))
        all_cores = _median(lambda: model.fitted.network(batch), 20)
    torch.set_num_threads(threads)
    return {
        "network_ms": network * 1e3,
        "library_ms": library * 1e3,
        "alone_per_second": 1 / network,
        "library_per_second": 1 / library,
        "batched_per_second": BATCH / min(one_core, all_cores),
    }


def _median(call: Callable[[], object], rounds: int) -> float:
    taken = []
    for number in range(rounds + 5):
        begun = time.perf_counter()
        call()
        if number >= 5:
            taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def _table() -> dict[str, Any]:
    random = np.random.default_rng(0)
    times = np.datetime64("2016-07-01T00:00", "m") + np.arange(LOOK_BACK) * np.timedelta64(60, "m")
    values = np.cumsum(random.normal(size=(LOOK_BACK, CHANNELS)), axis=0).round(4)
    return {"time": times.astype(str)} | {f"channel {number}": values[:, number] for number in range(CHANNELS)}


def _save_model(path: Path) -> None:
    """A network as it is before training: as fast as one that is trained."""
    names = tuple(f"channel {number}" for number in range(CHANNELS))
    network = resolve("exact", Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)).build(0).eval()
    assert isinstance(network, IBForecast)
    FittedModel(
        network=network,
        standardiser=Standardiser(np.zeros(CHANNELS), np.ones(CHANNELS)),
        layout=Layout(time="time", channels=names, shape="wide", frequency="1h"),
        origin="2016-07-01T00:00:00.000000",
        split=Split(LOOK_BACK, LOOK_BACK, LOOK_BACK),
        summary=TrainingSummary("exact", "", "", LOOK_BACK, 0, "cpu", 0.0, 0, 0, 0, 0.0),
    ).save(path)


@contextmanager
def _server(path: Path) -> Iterator[int]:
    command = [sys.executable, "-c", SERVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            yield int(url.rpartition(":")[2])
        finally:
            process.terminate()


async def _load(port: int, body: bytes, clients: int, seconds: float) -> tuple[list[float], int, float]:
    """Let clients ask one question after the other; return the seconds each took, the errors, and the time in all."""
    head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    question, begun = f"{head}\r\n\r\n".encode() + body, time.perf_counter()
    taken: list[float] = []
    errors = 0

    async def ask() -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (asked := time.perf_counter()) - begun < seconds:
            writer.write(question)
            told = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(told.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            taken.append(time.perf_counter() - asked)
            errors += not told.startswith(b"http/1.1 200")
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(ask() for _ in range(clients)))
    return taken, errors, time.perf_counter() - begun
