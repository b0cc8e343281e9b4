"""The service under load on loopback, next to the bare model in the same run."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import uvloop

from ibforecast import IBForecaster
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Window
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.engine import TorchEngine
from ibforecast.model.network import IBForecast
from ibforecast.serve.arrow import STREAM
from ibforecast.zoo.saved import FittedModel, TrainingSummary
from ibforecast_lab.recipes import resolve

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 96, 96, 7, 24, 64
CLIENTS = (1, 16, 64)
SECONDS, ROUNDS, MANY = 2.0, 6, 64
SERVER = """
import sys
from pathlib import Path
from ibforecast.serve.run import serve
from ibforecast.serve.settings import Settings
settings = Settings(workers=int(sys.argv[3]) if len(sys.argv) > 3 else 1)
serve({"model": Path(sys.argv[1])}, "127.0.0.1", 0, settings, lambda url: print(url, flush=True))
"""
CONSTANT = """
from ibforecast.serve.service import Service

async def explain(service, request, form):
    return "model", [bytes(int(sys.argv[2]))]

Service.explain = explain
"""
"""The same service without its computation: the cost of HTTP, guard and route."""

BARE = """
import socket, sys, uvicorn

async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    length = [(b"content-length", sys.argv[2].encode())]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": bytes(int(sys.argv[2]))})

listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
uvicorn.Server(config).run(sockets=[listener])
"""
"""A server that answers every request with a body of that size: the limit of HTTP in Python on this machine."""


def serving(device: torch.device) -> dict[str, float]:
    """Measure throughput and latency of /explain at 1, 16 and 64 clients, with one window of ETTh1's shape per request.

    For comparison: one call of the network on that window, one `explain(table).to_json()` in this process, and the
    network on batches on all cores. Two upper limits: the service with a constant answer of the same size (`constant`),
    and the simplest server that sends one (`http`). `lean_1` and `lean_2` are 64 clients that send and get Arrow, from
    a service of one and of two processes, `forecast_1` and `forecast_2` the same without explanations, and `many_2` are
    8 clients that request 64 forecasts from one table each time. The clients share the cores; `client_ms` is their time
    per request. All of this is measured in turns, `ROUNDS` times; the best of each number is reported, and the sum of
    errors. `p99_over_p50` is the ratio within a turn, and the median over turns: the best ones of two numbers may be
    of different turns.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "model", _table()
        save_model(path)
        body = json.dumps({"table": {name: column.tolist() for name, column in table.items()}}).encode()
        size = len(IBForecaster.load(path, device="cpu").explain(pa.table(table)).to_json())
        with (
            server(SERVER, path) as port,
            server(CONSTANT + SERVER, path, size) as constant,
            server(BARE, path, size) as http,
            server(SERVER, path, size, 2) as two,
        ):
            plain, lean, forecast = _request(body), _lean_request(table, "explain"), _lean_request(table, "forecast")
            longer = _table(LOOK_BACK + MANY - 1)
            many = _lean_request(longer, "forecast", longer["time"][LOOK_BACK - 1 :].tolist())
            _load(port, plain, max(CLIENTS), 3.0)
            _load(two, forecast, max(CLIENTS), 3.0)
            others = {
                "constant": (constant, plain, max(CLIENTS)),
                "http": (http, plain, max(CLIENTS)),
                "lean_1": (port, lean, max(CLIENTS)),
                "lean_2": (two, lean, max(CLIENTS)),
                "forecast_1": (port, forecast, max(CLIENTS)),
                "forecast_2": (two, forecast, max(CLIENTS)),
                "many_2": (two, many, 8),
            }
            rounds = [_round(path, table, plain, port, others) for _ in range(ROUNDS)]
    results = {name: _summary(name, [one[name] for one in rounds]) for name in rounds[0]}
    results["p50_above_network_ms"] = results["clients_1_p50_ms"] - results["network_ms"]
    results["p50_above_library_ms"] = results["clients_1_p50_ms"] - results["library_ms"]
    results["many_2_windows_per_second"] = MANY * results["many_2_per_second"]
    results["many_2_over_batched"] = results["many_2_windows_per_second"] / results["batched_per_second"]
    for lean in ("lean_1", "lean_2", "forecast_1", "forecast_2"):
        results[f"{lean}_over_batched"] = results[f"{lean}_per_second"] / results["batched_per_second"]
    for bare in ("batched", "alone", "library", "constant", "http"):
        results[f"clients_64_over_{bare}"] = results["clients_64_per_second"] / results[f"{bare}_per_second"]
    return {name: round(value, 3) for name, value in results.items()}


def _round(
    path: Path, table: dict[str, Any], request: bytes, port: int, others: dict[str, tuple[int, bytes, int]]
) -> dict[str, float]:
    """Measure everything once."""
    results = _bare(path, table)
    for clients in CLIENTS:
        results |= {f"clients_{clients}_{name}": value for name, value in _load(port, request, clients).items()}
    for name, (other, sent, clients) in others.items():
        results |= {f"{name}_{key}": value for key, value in _load(other, sent, clients).items()}
    p99 = {name: value for name, value in results.items() if name.endswith("_p99_ms")}
    tails = {name.removesuffix("_ms"): value / results[name.replace("p99", "p50")] for name, value in p99.items()}
    return results | {f"{name}_over_p50": ratio for name, ratio in tails.items()}


def _summary(name: str, values: list[float]) -> float:
    """Return one number for several measurements: the best, the sum of errors, or the median of p99 over p50."""
    if name.endswith("_over_p50"):
        return float(np.median(values))
    return (max if name.endswith("per_second") else sum if name.endswith("errors") else min)(values)


def _bare(path: Path, table: dict[str, Any]) -> dict[str, float]:
    """Measure the network on one window, the library's own call, and the network on batches, without HTTP."""
    model = IBForecaster.load(path, device="cpu")
    rows = pa.table(table)
    explained = model.explain(rows)
    window = TorchEngine(model.fitted).window(explained.history, explained.phase, None)
    batch = Window(*(torch.cat([part] * BATCH) for part in (window.values, window.observed, window.phase)))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        network = _median(lambda: model.fitted.network(window), 200)
        library = _median(lambda: model.explain(rows).to_json(), 100)
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


def _table(rows: int = LOOK_BACK) -> dict[str, Any]:
    random = np.random.default_rng(0)
    times = np.datetime64("2016-07-01T00:00", "m") + np.arange(rows) * np.timedelta64(60, "m")
    values = np.cumsum(random.normal(size=(rows, CHANNELS)), axis=0).round(4)
    return {"time": times.astype(str)} | {f"channel {number}": values[:, number] for number in range(CHANNELS)}


def save_model(path: Path) -> None:
    """Save a model with an untrained network, which is as fast as a trained one."""
    names = tuple(f"channel {number}" for number in range(CHANNELS))
    network = resolve("sealed", Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)).build(0).eval()
    assert isinstance(network, IBForecast)
    FittedModel(
        network=network,
        standardiser=Standardiser(np.zeros(CHANNELS), np.ones(CHANNELS)),
        layout=Layout(time="time", channels=names, shape="wide", frequency="1h"),
        origin="2016-07-01T00:00:00.000000",
        split=Split(LOOK_BACK, LOOK_BACK, LOOK_BACK),
        summary=TrainingSummary("sealed", "", "", LOOK_BACK, 0, "cpu", 0.0, 0, 0, 0, 0.0),
    ).save(path)


@contextmanager
def server(program: str, *arguments: object) -> Iterator[int]:
    """Run a program that prints its address, while the context lasts; yield its port."""
    command = [sys.executable, "-c", f"import sys\n{program}", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        try:
            yield int(url.rpartition(":")[2])
        finally:
            process.terminate()


class _Client(asyncio.Protocol):
    """Sends one request after the other until a time, and records how long each took."""

    def __init__(self, request: bytes, until: float, over: Callable[[], None]) -> None:
        self._request, self._until, self._over = request, until, over
        self._head, self._left, self._sent = b"", 0, 0.0
        self.taken: list[float] = []
        self.errors = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        if not self._left:
            self._head, end, body = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                return
            head = self._head.lower()
            self._left = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            self.errors += not head.startswith(b"http/1.1 200")
            self._head, data = b"", body
        self._left -= len(data)
        if not self._left:
            self.taken.append(time.perf_counter() - self._sent)
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._over()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        if self._sent < self._until:
            self._transport.write(self._request)
        else:
            self._transport.close()


def _request(body: bytes, path: str = "/explain", kind: str = "application/json") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body


def _lean_request(table: dict[str, Any], route: str, moments: Sequence[str] = ()) -> bytes:
    """Return the request for lean forecasts or explanations of a table, as Arrow in both directions."""
    rows, sink = pa.table(table), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    query = "".join(f"&at={moment}" for moment in moments)
    return _request(bytes(sink.getvalue()), f"/{route}?form=arrow{query}", STREAM)


def _load(port: int, request: bytes, clients: int, seconds: float = SECONDS) -> dict[str, float]:
    """Let clients send requests for some seconds; all run in one loop and send the same bytes."""

    async def send_all() -> list[_Client]:
        loop, until = asyncio.get_running_loop(), time.perf_counter() + seconds
        ends = [loop.create_future() for _ in range(clients)]
        connected = [
            await loop.create_connection(
                lambda end=end: _Client(request, until, lambda: end.set_result(None)), "127.0.0.1", port
            )
            for end in ends
        ]
        await asyncio.gather(*ends)
        return [client for _, client in connected]

    begun, busy = time.perf_counter(), time.process_time()
    done = uvloop.run(send_all())
    elapsed, busy = time.perf_counter() - begun, time.process_time() - busy
    taken = [seconds for client in done for seconds in client.taken]
    return {
        "per_second": len(taken) / elapsed,
        "p50_ms": float(np.percentile(taken, 50)) * 1e3,
        "p99_ms": float(np.percentile(taken, 99)) * 1e3,
        "errors": float(sum(client.errors for client in done)),
        "client_ms": busy / len(taken) * 1e3,
    }
