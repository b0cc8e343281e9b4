"""Two small models, a service with them, and two ways to call it: in this process, and over a real port."""

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
import uvicorn

from ibforecast import IBForecaster
from ibforecast.serve.app import create_app
from ibforecast.serve.run import configured
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings

LOOK_BACK, HORIZON, ROWS = 48, 12, 400
CHANNELS = ("load", "wind", "heat")
TINY = """
[model]
budget = 0.25
[model.gate]
width = 16
{gate}
[model.readout]
width = 16
[train]
epochs = 1
batch = 64
"""


@dataclass(frozen=True)
class Desk:
    """The tables and models of the tests; no test writes to them."""

    table: Path
    town: Path
    dial: Path

    @property
    def frame(self) -> pd.DataFrame:
        return pd.read_csv(self.table, float_precision="round_trip")

    def columns(self, rows: int = ROWS) -> dict[str, list[Any]]:
        """Return the table as columns of lists, with null for missing values."""
        frame = self.frame[:rows]
        return {
            name: [None if isinstance(cell, float) and np.isnan(cell) else cell for cell in column.tolist()]
            for name, column in frame.items()
        }

    def model(self) -> IBForecaster:
        return IBForecaster.load(self.town, device="cpu")


@dataclass(frozen=True)
class Client:
    """A client of an ASGI application; each call runs its own event loop."""

    app: Any
    base: str = "http://localhost"

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.together((method, path, options))[0]

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", path, **options)

    def post(self, path: str, document: Any = None, **options: Any) -> httpx.Response:
        return self.ask("POST", path, **({"json": document} | options if document is not None else options))

    def together(self, *questions: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send several requests at the same time."""

        async def all_of_them() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=self.base, timeout=60) as client:
                requests = (client.request(method, path, **options) for method, path, options in questions)
                return await asyncio.gather(*requests)

        return asyncio.run(all_of_them())


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("serve")
    made = Desk(folder / "table.csv", folder / "town", folder / "dial")
    hour, noise = np.arange(ROWS), np.random.default_rng(5).normal(size=(ROWS, 3))
    values = (np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * noise) * (20.0, 3.0, 0.5) + (900.0, 40.0, -2.0)
    values[350:353, 1] = np.nan
    when = pd.date_range("2023-01-01", periods=ROWS, freq="h").strftime("%Y-%m-%d %H:%M")
    pd.DataFrame({"when": when} | dict(zip(CHANNELS, values.T, strict=True))).to_csv(made.table, index=False)
    for path, gate in ((made.town, ""), (made.dial, "any_budget = true")):
        recipe = folder / f"{path.name}.toml"
        recipe.write_text(TINY.format(gate=gate))
        IBForecaster(HORIZON, LOOK_BACK, recipe=str(recipe), device="cpu").fit(made.table).save(path)
    return made


@pytest.fixture
def make(desk: Desk) -> Iterator[Callable[..., Service]]:
    """Return a function that builds services with the given settings; they are closed after the test."""
    made: list[Service] = []

    def build(paths: dict[str, Path] | None = None, **limits: Any) -> Service:
        made.append(Service(paths or {"town": desk.town}, replace(Settings(), **limits)))
        return made[-1]

    yield build
    for service in made:
        service.close()


@pytest.fixture(scope="session")
def service(desk: Desk) -> Iterator[Service]:
    """A service of one model with the default limits, for tests that do not change it."""
    built = Service({"town": desk.town}, Settings())
    yield built
    built.close()


@pytest.fixture(scope="session")
def client(service: Service) -> Client:
    return Client(create_app(service))


@pytest.fixture(scope="session")
def both(desk: Desk) -> Iterator[Client]:
    """A service of two models."""
    built = Service({"town": desk.town, "dial": desk.dial}, Settings())
    yield Client(create_app(built))
    built.close()


@pytest.fixture(scope="session")
def over() -> Callable[[Service], Client]:
    """Return a function that makes a client of a service."""
    return lambda service: Client(create_app(service))


@pytest.fixture(scope="session")
def listen() -> Any:
    """Return a context manager that runs a real server."""
    return listening


@pytest.fixture(scope="session")
def slow_down() -> Callable[[Service, float], None]:
    """Return a function that slows down every window of a service."""
    return slowed


@pytest.fixture(scope="session")
def command() -> Any:
    """Return a context manager that runs `ibforecast serve` in a new process."""
    return commanded


@contextmanager
def listening(service: Service) -> Iterator[tuple[uvicorn.Server, str]]:
    """Run a real server on a free port, in a thread, and stop it at the end."""
    config = configured(create_app(service), service.settings, port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield server, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def slowed(service: Service, seconds: float) -> None:
    for model, name in product(service.models, ("task", "forecast")):
        task_of = getattr(model, name)

        def slowly(*arguments: Any, task_of: Any = task_of, **options: Any) -> Callable[[], Any]:
            task = task_of(*arguments, **options)

            def compute() -> Any:
                time.sleep(seconds)
                return task()

            return compute

        object.__setattr__(model, name, slowly)


@contextmanager
def commanded(*words: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `ibforecast serve` in a new process, and yield once it prints its address."""
    programme = "from ibforecast.cli.serve import command; command()"
    process = subprocess.Popen(
        [sys.executable, "-c", programme, *words, "--port", "0"],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        answered = process.stderr.readline()
        match = re.fullmatch(r"serving (.+) at (http://.+)\n", answered)
        assert match, answered + process.stderr.read()
        yield process, match[2]
    finally:
        process.kill()
        process.communicate()
