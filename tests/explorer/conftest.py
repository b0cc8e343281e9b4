"""Five small models behind a real server, and a real browser."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster

LOOK_BACK, HORIZON, ROWS = 48, 12, 400
RECIPE = """
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
    """Tables and models by name; no test writes to them."""

    folder: Path

    def table(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def model(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True)
class Place:
    """A running service: its address, models and tables."""

    url: str
    desk: Desk

    def at(self, moment: str = "2023-01-15 11:00", model: str = "town", **more: Any) -> str:
        """Return the address of a view."""
        table = self.tables[model]
        words = {"model": model, "table": table, "at": moment} | more
        return f"{self.url}/#" + "&".join(f"{name}={value}" for name, value in words.items())

    tables: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    made = Desk(tmp_path_factory.mktemp("explorer"))
    _write_table(made.table("town"), ("load", "wind", "heat"), gap=True)
    _write_table(made.table("fifty"), tuple(f"meter_{number:02}" for number in range(50)), gap=False)
    for name, table, gate in (("town", "town", ""), ("dial", "town", "any_budget = true"), ("fifty", "fifty", "")):
        recipe = made.folder / f"{name}.toml"
        recipe.write_text(RECIPE.format(gate=gate))
        model = IBForecaster(HORIZON, LOOK_BACK, recipe=str(recipe), device="cpu")
        model.fit(made.table(table)).save(made.model(name))
    _make_driven(made)
    _make_sealed(made)
    return made


def _make_driven(desk: Desk) -> None:
    """Fit a model with two cycles, a forecast channel, a past channel and a covariate."""
    _write_table(desk.table("driven"), ("load", "wind", "price"), gap=False)
    recipe = desk.folder / "driven.toml"
    recipe.write_text(RECIPE.format(gate="").replace("[train]", "cross_channel = true\n[train]"))
    model = IBForecaster(
        HORIZON, LOOK_BACK, cycle=(24, 168), recipe=str(recipe), device="cpu", past=["wind"], future=["price"]
    )
    model.fit(desk.table("driven")).save(desk.model("driven"))


def _make_sealed(desk: Desk) -> None:
    """Fit a sealed model with patches of one step, more than any other model here has."""
    recipe = desk.folder / "sealed.toml"
    recipe.write_text(
        RECIPE.format(gate='attention = "none"\nrecent = 3\nevery = 8').replace(
            "[model]", '[model]\npatch_len = 1\nsealed = true\nframe = "seasonal"', 1
        )
    )
    model = IBForecaster(HORIZON, 2 * LOOK_BACK, cycle=24, recipe=str(recipe), device="cpu")
    model.fit(desk.table("town")).save(desk.model("sealed"))


def _write_table(path: Path, channels: tuple[str, ...], gap: bool) -> None:
    hour, random = np.arange(ROWS), np.random.default_rng(5)
    wave = np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * random.normal(size=(ROWS, len(channels)))
    values = wave * random.uniform(0.5, 20, len(channels)) + random.uniform(-50, 900, len(channels))
    if gap:
        values[350:353, 1] = np.nan
    when = pd.date_range("2023-01-01", periods=ROWS, freq="h").strftime("%Y-%m-%d %H:%M")
    pd.DataFrame({"when": when} | dict(zip(channels, values.T, strict=True))).to_csv(path, index=False)


@pytest.fixture(scope="module")
def serve(desk: Desk) -> Callable[..., Any]:
    """Return a context manager that runs a service on a free port."""
    uvicorn = pytest.importorskip("uvicorn", reason="the explorer's tests need the serve extra")
    pytest.importorskip("fastapi", reason="the explorer's tests need the serve extra")
    from ibforecast.serve.app import create_app
    from ibforecast.serve.service import Service
    from ibforecast.serve.settings import Settings

    @contextmanager
    def running(*names: str, opened: Sequence[Path] = (), **settings: Any) -> Iterator[Place]:
        service = Service({name: desk.model(name) for name in names}, Settings(**settings), opened)
        server = uvicorn.Server(uvicorn.Config(create_app(service), port=0, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.005)
            yield Place(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", desk)
        finally:
            server.should_exit = True
            thread.join(30)
            service.close()
            assert not thread.is_alive()

    return running


@pytest.fixture(scope="module")
def place(serve: Callable[..., Any]) -> Iterator[Place]:
    """A service with all models and their tables uploaded."""
    httpx = pytest.importorskip("httpx", reason="the explorer's tests need httpx")
    with serve("town", "dial", "fifty", "driven", "sealed") as running:
        for table, models in (("town", ("town", "dial", "sealed")), ("fifty", ("fifty",)), ("driven", ("driven",))):
            content = running.desk.table(table).read_bytes()
            stored = httpx.post(f"{running.url}/tables?name={table}.csv", content=content).json()["table"]["id"]
            running.tables.update(dict.fromkeys(models, stored))
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium. One per module, not per session: while it runs, no other event loop can run here."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the explorer's tests need playwright (dev extra)")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("the explorer's tests need chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def view(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page; at the end no page may have logged an error or requested another site."""
    troubles, contexts = [], []

    def look(url: str, width: int = 1280, height: int = 900, ready: str = ".badge.verified", **more: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda line: troubles.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda sent: None if _is_own(sent.url, url) else troubles.append(f"requested {sent.url}"))
        page.goto(url)
        page.wait_for_selector(ready)
        page.troubles = troubles
        return page

    yield look
    for context in contexts:
        context.close()
    assert troubles == []


def _is_own(requested: str, url: str) -> bool:
    page = url.partition("#")[0].rstrip("/")
    return requested.startswith(("data:", "blob:")) or requested.partition("#")[0].startswith(page)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., int]:
    """Return a function that runs the command in this process and returns its exit code."""
    from ibforecast.cli.main import run

    def ran(*words: Any) -> int:
        with pytest.raises(SystemExit) as stop:
            run([str(word) for word in words])
        capsys.readouterr()
        return int(stop.value.code or 0)

    return ran
