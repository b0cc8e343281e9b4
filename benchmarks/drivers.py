"""What `drivers` names, where the truth is planted, and for a river: which channels and which lags move a forecast."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool
from torch import Tensor

from ibforecast import IBForecaster
from ibforecast.core import running
from ibforecast.core.calendar import MONDAY, Clock, Frequency
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.verification import Original
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.drivers import Group, Source, drivers_of
from ibforecast.engine import TorchEngine
from ibforecast.model.config import ModelConfig
from ibforecast.zoo.saved import FittedModel, TrainingSummary
from ibforecast.zoo.stages import train_recipe
from ibforecast_lab.data import drivers as planted
from ibforecast_lab.data.catalogue import folders
from ibforecast_lab.data.lags import LagConstants, lagged
from ibforecast_lab.data.resident import resident
from ibforecast_lab.data.suite import SUITE, locate
from ibforecast_lab.measures.drivers import size_auroc, size_maps, source_sizes
from ibforecast_lab.recipes import resolve

RECIPES = ("default", "additive")
WINDOWS = 100
LAG_LOOK_BACK, LAG_HORIZON = 96, 12
RAIN, FLOW = "P_mm", "Q_mm"
FRANCE, FRANCE_WINDOWS = "flow_france19", 20
"""The table of 19 catchments, and its windows: each takes almost a second, because 76 channels are read."""


def drivers(device: torch.device) -> dict[str, float]:
    """Measure the AUROC of sizes over channels and lags for the planted support, and what moves the flow of rivers.

    `lags` is a table in which each target follows one channel at one lag. `events` are the windows of the driver
    benchmark: an event of a source channel, anywhere in the window, moves other channels. There, a channel itself is
    not judged, because it also gives the level. Sealed models read only a fifth of the places, always the same ones, so
    they cannot name every place of an event: no sizes can have a larger AUROC than `events_largest_auroc`. Hence
    `events_read_auroc` judges only places that are read, and `events_channels_auroc` the sizes of sources as wholes.
    """
    results: dict[str, float] = {}
    for recipe in RECIPES:
        for name, measure in (("lags", _lags), ("events", _events), ("wye", _wye), ("france", _france)):
            begun = time.perf_counter()
            measured = measure(recipe) | {"seconds": time.perf_counter() - begun}
            results |= {f"{recipe}_{name}_{key}": round(value, 4) for key, value in measured.items()}
    return results


def _lags(recipe: str) -> dict[str, float]:
    constants = LagConstants()
    times = pd.date_range("2024-01-01", periods=constants.rows, freq="h")
    table = pd.DataFrame(lagged(constants), columns=list(constants.channels)).assign(time=times)
    past = constants.channels[len(constants.source) :]
    model = IBForecaster(LAG_HORIZON, LAG_LOOK_BACK, recipe=recipe, past=past, device="cpu").fit(table)
    patch_len = model.fitted.config.patch_len
    sizes = size_maps(model.drivers(table, windows=WINDOWS), constants.channels, LAG_LOOK_BACK, patch_len)
    support = torch.from_numpy(constants.support(LAG_LOOK_BACK, LAG_HORIZON))
    support = support.unflatten(1, (-1, patch_len)).any(dim=2)
    score = model.evaluate(table)
    return {"mse": score.mse, **_kind(model.fitted.config)} | _scores(sizes, support, torch.ones_like(support))


def _events(recipe: str) -> dict[str, float]:
    constants, (training, validation, test) = planted.DriverConstants(), planted.splits()
    framed = constants.framed
    sizes = Sizes(framed.look_back, framed.horizon, framed.channels, framed.cycle)
    whole = resolve(recipe, sizes)
    parts = [resident(part.window, part.target, part.phase) for part in (training, validation)]
    trained = train_recipe(whole, parts[0], parts[1], 0)
    network = trained.forecaster.eval()
    channels = tuple(f"channel {number}" for number in range(framed.channels))
    fitted = FittedModel(
        network=network,
        standardiser=Standardiser(np.zeros(framed.channels), np.ones(framed.channels)),
        layout=Layout(time="time", channels=channels, shape="wide", frequency="1h"),
        origin=str(MONDAY),
        split=Split(1, 1, 1),
        summary=TrainingSummary(recipe, whole.sha256, "", 0, 0, "cpu", 0.0, 0, 0, 0, 0.0),
    )
    engine, patch_len = TorchEngine(fitted), network.config.patch_len
    measured = drivers_of(engine, _explanations(engine, test.part(0, WINDOWS)))
    maps = size_maps(measured, channels, framed.look_back, patch_len)
    read = size_maps(measured, channels, framed.look_back, patch_len, "read") > 0
    support = _moved(constants)[:, None].expand(-1, maps.shape[1], -1)
    others = ~torch.eye(framed.channels, dtype=torch.bool)[:, None].expand_as(support)
    wholes = source_sizes(measured, channels)[:, None]
    return {
        **_kind(trained.recipe.config),
        "read_share": float(read.double().mean()),
        "channels_auroc": float(size_auroc(wholes, support[:, :1], others[:, :1]).mean()),
        "read_auroc": float(size_auroc(maps, support, others & read).mean()),
        "largest_auroc": float(size_auroc((support & read).double(), support, others).mean()),
    } | _scores(maps, support, others)


def _moved(constants: planted.DriverConstants) -> Bool[Tensor, "forecast channel"]:
    """Mark the channels whose events move each channel."""
    moved = torch.zeros(constants.framed.channels, constants.framed.channels, dtype=torch.bool)
    for source, effect in zip(constants.source, constants.effect, strict=True):
        moved[:, source] |= torch.tensor(effect) != 0
    return moved


def _explanations(engine: TorchEngine, windows: planted.DriverWindows) -> Iterator[ExplainedForecast]:
    """Yield the explanations of generated windows, at times that give each its phase."""
    facts, hour = engine.facts, np.timedelta64(1, "h")
    for values, phase in zip(windows.window, windows.phase.tolist(), strict=True):
        clock = Clock(MONDAY + (phase + np.arange(facts.steps)) * hour, Frequency(3600), origin=MONDAY)
        rows = Original(clock, values.astype(np.float64), None)
        yield ExplainedForecast.of(facts, *running.computed(engine, rows), rows.history, clock)


def _wye(recipe: str) -> dict[str, float]:
    """Measure the shares of rain and of flow itself in what moves the flow of the Wye, a day ahead."""
    path = folders()[0] / "tables" / "flow_wye.csv.gz"
    model = IBForecaster(24, recipe=recipe, device="cpu").fit(path)
    measured = model.drivers(path, windows=WINDOWS, channel=FLOW)
    shares = {source.source: source.share for source in measured.sources()}
    strongest = max((row for row in measured.rows if row.source == RAIN), key=lambda row: row.size)
    return {
        **_kind(model.fitted.config),
        "rain_share": shares[RAIN],
        "flow_share": shares[FLOW],
        "rain_first": float(next(iter(shares)) == RAIN),
        "rain_strongest_steps_back": float(strongest.steps_back or 0),
    }


def _france(recipe: str) -> dict[str, float]:
    """Measure how often rain is what moves the flow of a French catchment most from outside, up to a week ahead.

    Of each flow, the largest source but itself, each as a whole, may be any of 75 channels: flow, rain, temperature or
    evaporation of its own catchment or of another. Shares are means over the flows.
    """
    table = SUITE[FRANCE]
    path = locate(table.name)
    if path is None:
        raise RuntimeError(f"{table.file} must be in the folder tables of IBFORECAST_DATA")
    model = IBForecaster(table.horizons[0], cycle=table.cycle, past=table.past, recipe=recipe, device="cpu").fit(path)
    measured = model.drivers(path, windows=FRANCE_WINDOWS)
    shares: dict[str, float] = defaultdict(float)
    for source in measured.sources():
        shares["own" if source.source == source.channel else source.source[-1]] += source.share / len(measured.channels)
    in_events = [row for row in measured.by("event").rows if row.group == "event"]
    return {
        **_kind(model.fitted.config),
        "flows": float(len(measured.channels)),
        "rain_first": _rain_first(measured.sources()),
        "rain_first_in_events": _rain_first(in_events),
        "flow_share": shares["own"],
        "rain_share": shares["P"],
        "temperature_share": shares["T"],
        "evaporation_share": shares["E"],
        "other_flows_share": shares["Q"],
    }


def _rain_first(sources: Iterable[Source | Group]) -> float:
    """Return the share of flows that rain, of any catchment, moves more than any other source but the flow itself."""
    largest: dict[str, Source | Group] = {}
    for source in sources:
        if source.source != source.channel:
            largest[source.channel] = max(source, largest.get(source.channel, source), key=lambda each: each.size)
    return sum(source.source.endswith("P") for source in largest.values()) / len(largest)


def _kind(config: ModelConfig) -> dict[str, float]:
    """Return which reader won the contest, as numbers."""
    return {"chooses": float(config.chooses), "additive": float(config.readout.kind == "additive")}


def _scores(sizes: Tensor, support: Bool[Tensor, "..."], judged: Bool[Tensor, "..."]) -> dict[str, float]:
    scores = size_auroc(sizes, support, judged)
    return {"auroc": float(scores.mean()), "worst_auroc": float(scores.min())}
