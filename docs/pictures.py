"""The pictures of the documentation: `make pictures` draws all of them into docs/images.

docs/images/pictures.json has two fingerprints of each picture: of its file, and of its source, which is the data that
it was drawn from. A test computes the sources again, so that a picture that is out of date is noticed.
"""

import argparse
import json
import platform
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from ibforecast import ExplainedForecast, IBForecaster, demo_table
from ibforecast.plots.scene import scene_of
from ibforecast_lab.experiments.figures import overview
from ibforecast_lab.plots.growth import growth_png
from ibforecast_lab.plots.overview import draw
from ibforecast_lab.plots.theory import budget_png, rate_png, rate_saving_png
from ibforecast_lab.theory.error_floor import budget_curve, echo_model, rate_curve
from ibforecast_lab.theory.rate_saving import TOY_EXPLANATIONS, rate_saving, toy

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
FINGERPRINTS = IMAGES / "pictures.json"
EXPLORER = ROOT / "src" / "ibforecast" / "plots" / "explorer"

MOVED = "solar_kw"
"""The channel whose drivers are drawn."""

MOMENT, HOLIDAY = "2023-10-20 06:00", "2023-12-20 08:00"
EVENT = "wind_kw, 2023-10-17 19:00"
"""The gate that the what-if closes, as the explorer names it."""


@dataclass(frozen=True)
class Picture:
    """A file of docs/images: what it is drawn from, and how. A `fitted` one depends on a model fitted here."""

    name: str
    source: Any
    draw: Callable[[Path], object]
    fitted: bool = True

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the source."""
        return sha256(json.dumps(self.source, sort_keys=True).encode()).hexdigest()


def machine() -> str:
    """Name what the last digits of a fitted model depend on: the processor and the version of PyTorch."""
    names = re.findall(r"model name\s*: (.+)", _text(Path("/proc/cpuinfo")))
    return f"{names[0] if names else platform.processor() or platform.machine()}, torch {torch.__version__}"


def fit_demo() -> IBForecaster:
    """Fit the model of the demo, of README.md and of docs/index.md."""
    torch.set_num_threads(1)
    return IBForecaster(horizon=24, device="cpu").fit(pa.table(demo_table().columns()))


def fit_covariates() -> ExplainedForecast:
    """Run the first code of docs/covariates.md and explain a moment before a holiday."""
    torch.set_num_threads(1)
    block = re.search(r"^```python\n(.*?)^```$", _text(ROOT / "docs" / "covariates.md"), re.MULTILINE | re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    explained: ExplainedForecast = names["model"].explain(names["table"], at=HOLIDAY)
    return explained


def from_demo(model: IBForecaster) -> list[Picture]:
    """Return the pictures of the demo: the explanation, what moves a channel, and three views of the explorer."""
    table = pa.table(demo_table().columns())
    explained = model.explain(table, at=MOMENT)
    by_month = model.drivers(table, "all", channel=MOVED).by("month")
    scene, page = _scene(explained), _bundle()
    views = {
        "explorer-light.png": "one forecast",
        "explorer-whatif.png": "one forecast, a gate closed",
        "explorer-table.png": "the whole table",
    }
    return [
        Picture("why.png", scene, explained.plot),
        Picture("drivers-by-month.png", _rounded(by_month.rows), by_month.plot),
        *(
            Picture(name, [view, scene, page, model.fitted.weights_sha256], _photographer(model, name))
            for name, view in views.items()
        ),
    ]


def from_covariates(explained: ExplainedForecast) -> list[Picture]:
    """Return the picture of a forecast with covariates."""
    return [Picture("covariates.png", _scene(explained), explained.plot)]


def from_stages() -> list[Picture]:
    """Return the picture of the four stages, from the small model that is fitted for it."""
    torch.set_num_threads(1)
    shown = overview.overview_of(overview.fitted())
    return [Picture("overview.png", _rounded(shown), lambda path: path.write_bytes(draw(shown, "png")))]


def from_theory_and_benchmarks() -> list[Picture]:
    """Return the pictures that need no fitted model: those of the theorems, and of the benchmarks."""
    explanations = {name: rate_saving(toy(name)) for name in TOY_EXPLANATIONS}
    budget, rates = budget_curve(echo_model()), [rate_curve(correlation) for correlation in (0.5, 0.8, 0.95)]
    growth = json.loads(_text(ROOT / "results" / "bench" / "cpu-growth.json"))["measures"]["growth"]
    drawn: dict[str, tuple[Any, Callable[[], bytes]]] = {
        "theory-rate-saving.png": (explanations, lambda: rate_saving_png(explanations)),
        "theory-budget.png": (budget, lambda: budget_png(budget)),
        "theory-rate.png": (rates, lambda: rate_png(rates)),
        "growth.png": (growth, lambda: growth_png(growth)),
    }
    return [
        Picture(name, _rounded(source), lambda path, png=png: path.write_bytes(png()), fitted=False)
        for name, (source, png) in drawn.items()
    ]


def main() -> None:
    """Draw every picture and write its fingerprints; screenshots are skipped if there is no browser."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the documentation.")
    parser.add_argument("--only", nargs="*", help="names of pictures; default: all")
    only = parser.parse_args().only
    kept = json.loads(_text(FINGERPRINTS) or "{}").get("pictures", {})
    every = [*from_theory_and_benchmarks()]
    if only is None or any(name not in {picture.name for picture in every} for name in only):
        every += [*from_stages()]
    if only is None or any(name not in {picture.name for picture in every} for name in only):
        every += [*from_demo(fit_demo()), *from_covariates(fit_covariates())]
    for picture in every:
        if only is not None and picture.name not in only:
            continue
        try:
            picture.draw(IMAGES / picture.name)
        except NoBrowserError as error:
            print(f"{picture.name}: skipped, {error}")
            continue
        file = sha256((IMAGES / picture.name).read_bytes()).hexdigest()
        kept[picture.name] = {"file": file, "source": picture.fingerprint, "fitted": picture.fitted}
        print(picture.name)
    document = {"machine": machine(), "pictures": dict(sorted(kept.items()))}
    FINGERPRINTS.write_text(json.dumps(document, indent=1) + "\n", "utf8")


class NoBrowserError(Exception):
    """A screenshot needs playwright and Chromium."""


def _photographer(model: IBForecaster, name: str) -> Callable[[Path], None]:
    def photograph(path: Path) -> None:
        with _explorer(model) as home, _browser() as browser:
            height = {"explorer-table.png": 1310}.get(name, 982)
            context = browser.new_context(viewport={"width": 1280, "height": height}, device_scale_factor=1.5)
            page = context.new_page()
            page.goto(f"{home}/#model=town&table=demo&at={MOMENT}")
            page.wait_for_selector(".badge.verified")
            page.wait_for_selector("#receipt-table:not([hidden])")
            if name == "explorer-whatif.png":
                page.locator(f'#gates .cell[aria-label*="{EVENT}"]').click()
                page.wait_for_selector("body.with-whatif")
            if name == "explorer-table.png":
                page.get_by_text("Whole table").click()
                page.locator("#sources tr").first.wait_for()
            page.wait_for_timeout(1000)  # transitions of colours end
            page.mouse.move(0, 0)
            page.screenshot(path=path)
        _make_smaller(path)

    return photograph


@contextmanager
def _explorer(model: IBForecaster) -> Iterator[str]:
    """Run the service with the demo's model, named town, for as long as the context lasts."""
    import uvicorn

    from ibforecast.serve.app import create_app
    from ibforecast.serve.service import Service
    from ibforecast.serve.settings import Settings

    with TemporaryDirectory() as folder, socket.socket() as listener:
        model.save(Path(folder) / "town")
        service = Service({"town": Path(folder) / "town"}, Settings())
        server = uvicorn.Server(uvicorn.Config(create_app(service), log_level="critical", lifespan="off"))
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
            service.close()


@contextmanager
def _browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise NoBrowserError("playwright is not installed: pip install playwright") from error
    chromium = shutil.which("chromium")
    if chromium is None:
        raise NoBrowserError("there is no Chromium: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def _make_smaller(path: Path) -> None:
    """Reduce a screenshot to 256 colours: it has few, and the file is a third as large."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def _scene(explained: ExplainedForecast) -> Any:
    return _rounded(scene_of(explained).document())


def _bundle() -> dict[str, str]:
    files = sorted(path for path in EXPLORER.rglob("*") if path.is_file() and path.suffix != ".py")
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in files if "__pycache__" not in path.parts}


def _rounded(source: Any) -> Any:
    """Return nested data as plain JSON, with six significant digits: a picture shows no more."""
    if hasattr(source, "__dataclass_fields__"):
        return _rounded(asdict(source))
    if isinstance(source, dict):
        return {str(name): _rounded(value) for name, value in source.items()}
    if isinstance(source, list | tuple):
        return [_rounded(value) for value in source]
    if isinstance(source, np.ndarray | torch.Tensor):
        return _rounded(source.tolist())
    if isinstance(source, np.generic):
        return _rounded(source.item())
    return float(f"{source:.6g}") if isinstance(source, float) else source


def _text(path: Path) -> str:
    return path.read_text("utf8") if path.is_file() else ""


if __name__ == "__main__":
    main()
