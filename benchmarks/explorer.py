"""The explorer in a browser: the time to the first picture, and from a turned gate to the new forecast."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
from playwright.sync_api import Browser, sync_playwright

from benchmarks.serving import CHANNELS, SERVER, save_model, server

ROWS, VISITS, TURNS = 2000, 7, 15


def explorer(device: torch.device) -> dict[str, float]:
    """Return medians of the page's own measurements, for a model of ETTh1's size on the CPU; empty without Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("explorer: left out, because there is no chromium; run: apt-get install chromium")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "model")
        with server(SERVER, Path(folder) / "model") as port, sync_playwright() as driver:
            home = f"http://127.0.0.1:{port}"
            kept = httpx.post(f"{home}/tables?name=table.csv", content=_table()).json()["table"]["id"]
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            return _measured(browser, f"{home}/#model=model&table={kept}&at=2016-08-20 11:00")


def _measured(browser: Browser, view: str) -> dict[str, float]:
    pictures, turns = [], []
    for _ in range(VISITS):
        context = browser.new_context()
        page = context.new_page()
        page.goto(view)
        pictures += _entries(page, "first picture", 1)
        if len(pictures) == VISITS:
            for turn in range(TURNS):
                page.locator("#gates .cell").nth(turn).click()
                turns = _entries(page, "what-if", turn + 1)
        context.close()
    return {
        "first_picture_ms": float(np.median(pictures)),
        "first_picture_most_ms": max(pictures),
        "what_if_ms": float(np.median(turns)),
        "what_if_most_ms": max(turns),
    }


def _entries(page: Any, name: str, at_least: int) -> list[float]:
    """Return the durations that the page measured under a name, once there are `at_least` of them."""
    entries = f"performance.getEntriesByName('{name}')"
    page.wait_for_function(f"least => {entries}.length >= least", arg=at_least)
    durations: list[float] = page.evaluate(f"{entries}.map(entry => entry.duration)")
    return durations


def _table() -> str:
    random = np.random.default_rng(0)
    times = np.datetime64("2016-07-01T00:00", "m") + np.arange(ROWS) * np.timedelta64(60, "m")
    values = np.cumsum(random.normal(size=(ROWS, CHANNELS)), axis=0).round(4)
    head = ",".join(["time", *(f"channel {number}" for number in range(CHANNELS))])
    lines = (f"{time},{','.join(map(str, row))}" for time, row in zip(times.astype(str), values, strict=True))
    return "\n".join([head, *lines]) + "\n"
