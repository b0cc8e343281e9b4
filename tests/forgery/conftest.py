"""Seven kinds of models, each with a true explanation, and the four ways to verify an explanation (doors)."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click.testing
import httpx
import numpy as np
import pandas as pd
import pytest
from jaxtyping import TypeCheckError
from tests.anchors import halve_anchor
from tests.forgery.forgeries import Case, Scene

from ibforecast import IBForecaster
from ibforecast.adapters.onnx import OnnxForecaster
from ibforecast.cli.main import main
from ibforecast.core.errors import IBForecastError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.engine import TorchEngine
from ibforecast.serve.app import create_app
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings

REFUSED = (IBForecastError, TypeCheckError)
"""In tests the type checker refuses some shapes before the library does; `test_process.py` runs without it."""

ROWS, LOOK_BACK, HORIZON, PATCH_LEN = 420, 48, 12, 6
AT_ROW = ROWS - HORIZON - 3

KINDS: dict[str, dict[str, Any]] = {
    "default": {"zone": "Europe/Berlin"},
    "fixed mask": {"recipe": "static-fixed"},
    "any budget": {"recipe": "any-budget"},
    "covariates": {"past": ["wind"], "future": ["holiday"]},
    "several cycles": {"cycle": (24, 168)},
    "by row": {"irregular": "by_row"},
    "choosing": {"choosing": True},
}


def table(kind: str) -> pd.DataFrame:
    """Make three channels with a daily cycle, gaps in the second, and the columns that a kind of model needs."""
    hour, random = np.arange(ROWS), np.random.default_rng(5)
    values = np.sin(2 * np.pi * hour / 24)[:, None] + 0.4 * random.normal(size=(ROWS, 3))
    values = values * (20.0, 3.0, 0.5) + (900.0, 40.0, -2.0)
    values[[AT_ROW - LOOK_BACK + 8, ROWS - 4], 1] = np.nan
    times = pd.date_range("2023-10-20", periods=ROWS, freq="h", tz="Europe/Berlin" if kind == "default" else None)
    columns = {"when": times} | dict(zip(("load", "wind", "heat"), values.T, strict=True))
    if kind == "covariates":
        columns["holiday"] = (hour // 24 % 6 == 0).astype(float)
        columns["wind"] = np.nan_to_num(columns["wind"], nan=40.0)
    return pd.DataFrame(columns)


def fitted(kind: str) -> IBForecaster:
    """Fit a model of a kind for one epoch, and halve its anchor, which may otherwise be the whole forecast."""
    settings = {"patch_len": PATCH_LEN, "epochs": 1, "device": "cpu", **KINDS[kind]}
    return halve_anchor(IBForecaster(HORIZON, LOOK_BACK, 0.25, **settings).fit(table(kind)))


@pytest.fixture(scope="session")
def other_weights() -> str:
    """The weights fingerprint of a model that made none of the explanations."""
    settings = {"patch_len": PATCH_LEN, "epochs": 1, "seed": 9, "device": "cpu"}
    other = IBForecaster(HORIZON, LOOK_BACK, 0.25, recipe="static-fixed", **settings)
    return other.fit(table("fixed mask")).fitted.weights_sha256


@pytest.fixture(scope="session", params=[pytest.param(kind, marks=pytest.mark.xdist_group(kind)) for kind in KINDS])
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, other_weights: str
) -> Iterator[Case]:
    """A fitted model of each kind; all its tests run in one worker, so that it is fitted and exported once."""
    kind, rows = request.param, table(request.param)
    model = fitted(kind)
    folder = tmp_path_factory.mktemp("forgery")
    model.save(folder / "model")
    model.to_onnx(folder / "model.onnx")
    explained = model.explain(rows, rows["when"][AT_ROW])
    service = Service({"model": folder / "model"}, Settings())
    doors = {
        "python": _python(model, rows),
        "cli": _cli(folder, rows),
        "onnx": _onnx(OnnxForecaster(folder / "model.onnx"), rows, explained),
        "service": _service(create_app(service), rows),
    }
    strictly = _python(model, rows, exact=True)
    scene = Scene(explained, TorchEngine(model.fitted), other_weights)
    yield Case(kind, folder, scene, rows, doors, lambda text: strictly(text, True))
    service.close()


def _python(model: IBForecaster, rows: pd.DataFrame, exact: bool = False) -> Callable[[str, bool], bool]:
    source = model.open(rows)

    def passes(text: str, with_table: bool) -> bool:
        try:
            return bool(model.verify(text, source if with_table else None, exact=exact))
        except REFUSED:
            return False

    return passes


def _cli(folder: Path, rows: pd.DataFrame) -> Callable[[str, bool], bool]:
    rows.to_parquet(folder / "table.parquet")
    runner = click.testing.CliRunner()

    def passes(text: str, with_table: bool) -> bool:
        (folder / "why.json").write_text(text, "utf8", "surrogatepass")
        words = ["verify", str(folder / "model"), str(folder / "why.json")]
        words += ["--table", str(folder / "table.parquet")] if with_table else []
        outcome = runner.invoke(main, words)
        if outcome.exception is not None and not isinstance(outcome.exception, (*REFUSED, SystemExit)):
            raise outcome.exception
        return outcome.exit_code == 0

    return passes


def _onnx(model: OnnxForecaster, rows: pd.DataFrame, explained: ExplainedForecast) -> Callable[[str, bool], bool]:
    last = AT_ROW + 1
    history = rows[list(explained.channels)].to_numpy()[:last]
    times = [moment.isoformat() for moment in rows["when"]][:last]
    known = rows[list(explained.covariates)].to_numpy()[: last + HORIZON] if explained.covariates else None
    truth = rows[list(explained.channels)].to_numpy()[last : last + HORIZON]

    def passes(text: str, with_table: bool) -> bool:
        originals = {"history": history, "times": times, "known": known, "truth": truth} if with_table else {}
        try:
            return bool(model.verify(text, **originals))
        except REFUSED:
            return False

    return passes


def _service(app: Any, rows: pd.DataFrame) -> Callable[[str, bool], bool]:
    plain = rows.assign(when=rows["when"].map(lambda moment: moment.isoformat(sep=" ")))
    columns = {name: [None if cell != cell else cell for cell in plain[name]] for name in plain}

    async def post(bodies: list[bytes]) -> list[httpx.Response]:
        transport, headers = httpx.ASGITransport(app), {"content-type": "application/json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            return [await client.post("/verify", content=body) for body in bodies]

    def passes(text: str, with_table: bool) -> bool:
        table = {"table": columns} if with_table else {}
        rest = json.dumps(table)[1:-1]
        # The document may be sent as text or as an object.
        asis = f'{{"explanation": {text}{", " + rest if rest else ""}}}'
        answers = asyncio.run(
            post([json.dumps({"explanation": text, **table}).encode(), asis.encode("utf-8", "surrogatepass")])
        )
        assert all(answer.status_code in (200, 422) for answer in answers), [answer.text[:300] for answer in answers]
        return any(answer.status_code == 200 and answer.json()["verified"] for answer in answers)

    return passes
