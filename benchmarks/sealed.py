"""Sealed models: a million windows with every unread value scrambled, and the speed of forecasts and of training."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from math import ceil
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.measures import HORIZON, LOOK_BACK, SHAPES, _least_seconds, _windows
from ibforecast import IBForecaster
from ibforecast.core.explanation import Forecast
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import SealedForecast
from ibforecast.train.step import Step
from ibforecast.zoo.recipes import Recipe
from ibforecast_lab.data.catalogue import folders
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import parts_of
from ibforecast_lab.measures.unread import KINDS, reactions
from ibforecast_lab.recipes import resolve

RECIPE, GATED = "sealed", "steady"
TABLES = {"ETTh1.csv.gz": 96, "tables/metro_i94.csv.gz": 24}
"""Files in the folder of IBFORECAST_DATA and their horizons: a table without gaps, and one with many."""

COUNT, BATCH, EPOCHS = ceil(1_000_000 / len(TABLES) / len(KINDS)), 512, 3
"""Windows of each table. Each is scrambled in every way, which gives a million."""

SIZES, AT_ONCE = {1: 800, 64: 60, 1024: 8, 10_000: 2}, 1024
"""Windows per call, how often each call is timed, and the most windows that are computed at a time."""

TRAINED, STEPS = ("ETTh1", "ETTm1"), 12


def scrambled(device: torch.device) -> dict[str, float]:
    """Replace every unread value of a million windows and run the whole model again, with nothing held.

    Models of two tables are trained for a few epochs. Windows of all their rows are scrambled in every way of
    `ibforecast_lab.measures.unread`, in batches; a batch is compared with a batch of the same windows. No bit of mask,
    context, evidence, probabilities or forecast may change.
    """
    begun = time.perf_counter()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        changed = dict(zip(TABLES, pool.map(partial(_changed, device.type), TABLES), strict=True))
    if any(sum(kinds.values()) for kinds in changed.values()):
        raise RuntimeError(f"a sealed model reacted to values that it did not read: {changed}")
    windows = len(changed) * len(KINDS) * COUNT
    return {"windows": windows, "changed": 0, "kinds": len(KINDS), "seconds": round(time.perf_counter() - begun, 1)}


def _changed(device: str, file: str) -> dict[str, int]:
    """Train a model of a table, and count the windows that react to each kind of scrambling."""
    torch.set_num_threads(1)
    path, random = folders()[0] / file, torch.Generator().manual_seed(0)
    model = IBForecaster(TABLES[file], recipe=RECIPE, epochs=EPOCHS, device=device).fit(path)
    windows = _shuffled(model, path, random).to(torch.device(device))
    reacted = reactions(model.fitted.network.to(device), windows, random, BATCH)
    return {kind: int(reaction.anything.sum()) for kind, reaction in reacted.items()}


def _shuffled(model: IBForecaster, path: Path, random: torch.Generator) -> Windows:
    """Return `COUNT` windows of all rows of a table in random order; the rows are used again if they are too few."""
    fitted, series = model.fitted, model.open(path).series
    config = fitted.network.config
    starts = range(series.rows - config.look_back - config.horizon + 1)
    order = torch.cat([torch.randperm(len(starts), generator=random) for _ in range(ceil(COUNT / len(starts)))])
    shuffled = order[:COUNT].numpy()
    return Windows.of(series, fitted.standardiser, config.period, shuffled, config.look_back, config.horizon)


class _Plain(IBForecast):
    """The readout without a mask: all deviations from level and scale, and no explanation."""

    def forward(self, window: Window, held: None = None) -> Forecast:
        context, deviation = self.decompose(window)
        return Forecast(context.restore(self.readout(deviation, torch.ones_like(deviation), context)), None)


def sealed_forecast(device: torch.device) -> dict[str, float]:
    """Processor time of a forecast with its explanation under `sealed`, over that of the same readout without a mask.

    The latter reads every deviation from the level and scale of the model with gates open. One window, 64, 1024 and
    10,000, in the shapes of three data sets, on one core.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results = {}
    for name, (count, cycle) in SHAPES.items():
        windows, sizes = _windows(torch.device("cpu"), count, cycle), Sizes(LOOK_BACK, HORIZON, count, cycle)
        networks = _pair(resolve(RECIPE, sizes).config, resolve("dense", sizes).config)
        for batch, rounds in SIZES.items():
            starts = windows.starts.repeat(2)[:batch].split(AT_ONCE)  # there are fewer than 10,000
            parts = [windows.look_backs(some) for some in starts]
            with torch.no_grad():
                explained, plain = _least_seconds([partial(_all_of, network, parts) for network in networks], rounds)
            results[f"{name}_{batch}_ms"] = round(explained * 1e3, 3)
            results[f"{name}_{batch}_over_plain_readout"] = round(explained / plain, 2)
    torch.set_num_threads(threads)
    return results


def _all_of(network: IBForecast, parts: list[Window]) -> None:
    for window in parts:
        network(window)


def _pair(sealed: ModelConfig, dense: ModelConfig) -> tuple[IBForecast, IBForecast]:
    """Return a sealed network and one that reads everything, with the same readout in memory."""
    torch.manual_seed(0)
    networks = SealedForecast(sealed).eval(), _Plain(replace(sealed, sealed=False, frame=dense.frame)).eval()
    networks[1].readout = networks[0].readout  # the same weights, so that both meet the same caches
    return networks


def sealed_training(device: torch.device) -> dict[str, float]:
    """Processor seconds of an epoch under `sealed` and under `steady`, and how many times as fast the former is.

    Also for all the epochs that each recipe plans, of which it takes fewer if it stops early. Single steps are timed in
    turns, on one core; the fastest step of each counts.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results: dict[str, float] = {}
    for data in TRAINED:
        windows = parts_of(Cell(data, HORIZON, RECIPE, 0), torch.device("cpu"), with_calendar=False).training
        recipes = {name: resolve(name, Sizes(LOOK_BACK, HORIZON, *SHAPES[data])) for name in (RECIPE, GATED)}
        seconds = _least_seconds([_step(recipe, windows) for recipe in recipes.values()], STEPS)
        epochs = [
            taken * (len(windows) // recipe.train.batch_of(len(windows)))
            for taken, recipe in zip(seconds, recipes.values(), strict=True)
        ]
        results |= {f"{data}_{name}_seconds": round(taken, 2) for name, taken in zip(recipes, epochs, strict=True)}
        planned = [recipe.train.epochs * taken for taken, recipe in zip(epochs, recipes.values(), strict=True)]
        results[f"{data}_times_as_fast"] = round(epochs[1] / epochs[0], 2)
        results[f"{data}_whole_fit_times_as_fast"] = round(planned[1] / planned[0], 2)
    torch.set_num_threads(threads)
    return results


def _step(recipe: Recipe, windows: Windows) -> Callable[[], None]:
    """Return a call that takes one training step."""
    torch.manual_seed(0)
    batch = recipe.train.batch_of(len(windows))
    share = recipe.train.kept_share(len(windows) // batch)
    step = Step(recipe.build(0).train(), windows, batch, torch.Generator().manual_seed(0), share)
    step.set_pace(recipe.train.learning_rate, 0.0)
    return partial(step.run, windows.starts[torch.randperm(len(windows))[:batch]])
