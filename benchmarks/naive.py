"""Whether a plain fit is worse than a naive forecast: every channel of the ten tables, and 400 generated series."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from math import isfinite

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from ibforecast import IBForecaster
from ibforecast.core.files import to_json, write_atomically
from ibforecast_lab.data.catalogue import cache_folder
from ibforecast_lab.data.suite import KNOWN, SUITE, locate
from ibforecast_lab.experiments.run import commit

SERIES, TOGETHER, ROWS, HORIZON = 400, 8, 2000, 24
PART = SERIES, tuple(name for name in SUITE if name != "eia_demand")
"""The series and tables of a shorter run: without the table whose fit takes longest."""

TOLERATED = 0.02
"""By how much the MAE of a channel may exceed that of its best naive forecast."""

Rows = Float64[np.ndarray, " row"]
Errors = dict[str, list[tuple[str, float, float]]]
"""Of each split: channels, their mean absolute errors, and those of their best naive forecasts."""

Kind = Callable[[np.random.Generator, Float64[np.ndarray, " row"]], Rows]

KINDS: dict[str, Kind] = {
    "walk": lambda random, hour: random.normal(size=len(hour)).cumsum(),
    "drift": lambda random, hour: 0.02 * hour + random.normal(size=len(hour)).cumsum() / 5,
    "smooth": lambda random, hour: _smoothed(random.normal(size=len(hour)), 48),
    "day": lambda random, hour: 5 * _wave(hour, 24) + random.normal(size=len(hour)),
    "week": lambda random, hour: 3 * _wave(hour, 24) + 4.0 * (hour % 168 < 120) + random.normal(size=len(hour)),
    "growing": lambda random, hour: (
        np.exp(hour / len(hour)) * (3 + _wave(hour, 24)) + random.normal(size=len(hour)) / 4
    ),
    "counts": lambda random, hour: random.poisson(np.maximum(4 * _wave(hour, 24), 0.0)).astype(np.float64),
    "rare": lambda random, hour: random.exponential(5.0, len(hour)) * (random.random(len(hour)) < 0.02),
    "stairs": lambda random, hour: np.repeat(random.normal(size=len(hour) // 100 + 1), 100)[: len(hour)],
    "switch": lambda random, hour: (_smoothed(random.normal(size=len(hour)), 24) > 0).astype(np.float64),
}


def naive(device: torch.device, series: int = SERIES, tables: Collection[str] = tuple(SUITE)) -> dict[str, float]:
    """Compare MAEs on validation windows, on which anchors were chosen, and on test windows, which nothing has seen.

    For the generated series and the tables together, for each kind of series, and for each table: the number of
    channels whose error is larger than that of the best naive forecast by more than is tolerated, the largest ratio of
    the two errors, and the geometric mean of the ratios. A run that was stopped continues if it is of the same commit.
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    for part, name, fitted in _parts(device, series, tables):
        for split, rows in _kept(name, fitted).items():
            for channel, own, best in rows:
                ratio = _ratio(own, best)
                # Names of generated series are those of their kinds, with numbers.
                for group in (part, channel.split("_")[0] if part == "generated" else name):
                    ratios[f"{group}_{split}"].append(ratio)
                if ratio > 1 + TOLERATED:
                    print(f"{name}, {split}: {channel} {own:.4g}, naive {best:.4g}: {ratio - 1:+.1%}", flush=True)
    results: dict[str, float] = {}
    for group, each in ratios.items():
        results |= {
            f"{group}_channels": float(len(each)),
            f"{group}_worse": float(sum(ratio > 1 + TOLERATED for ratio in each)),
            f"{group}_worst": round(max(each), 4),
            f"{group}_mean": round(float(np.exp(np.mean(np.log(np.maximum(each, 1e-3))))), 4),
        }
    return results


def naive_part(device: torch.device) -> dict[str, float]:
    """Compare as `naive` does, for all but one of the tables."""
    return naive(device, *PART)


def _parts(
    device: torch.device, series: int, tables: Collection[str]
) -> Iterator[tuple[str, str, Callable[[], Errors]]]:
    """Yield the part and the name of every table, and what fits a model to it and measures this model."""
    random, names = np.random.default_rng(21), list(KINDS)
    hour = np.arange(ROWS, dtype=np.float64)
    for first in range(0, series, TOGETHER):
        kinds = [names[number % len(names)] for number in range(first, first + TOGETHER)]
        columns = {f"{kind}_{number}": KINDS[kind](random, hour) for number, kind in enumerate(kinds)}
        table = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=ROWS, freq="h"), **columns})
        yield "generated", f"generated_{first}", partial(_measured, table, HORIZON, device)
    for name, facts in SUITE.items():
        path = locate(name)
        if path is not None and name in tables and not name.endswith(KNOWN):
            yield "tables", name, partial(_measured, path, facts.horizons[0], device)


def _measured(table: object, horizon: int, device: torch.device) -> Errors:
    """Fit a model as `fit` does, and return its errors and the best naive ones, of each channel that has values."""
    model, errors = IBForecaster(horizon, device=device.type).fit(table), {}
    for split in ("validation", "test"):
        rows = model.evaluate(table, split).channels
        errors[split] = [(row.channel, row.mae, row.naive_mae) for row in rows if isfinite(row.mae)]
    return errors


def _kept(name: str, measured: Callable[[], Errors]) -> Errors:
    """Return the errors of a table, measured now or by a run of the same commit that was stopped."""
    path = cache_folder() / "naive" / commit() / f"{name}.json"
    if not path.exists():
        errors = measured()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, to_json(errors))
    kept: Errors = json.loads(path.read_text("utf8"))
    return kept


def _ratio(own: float, other: float) -> float:
    """Return the ratio of two errors; 1 if both are zero, and 2 if only the naive one is."""
    return own / other if other else 1.0 + float(own > 0)


def _wave(hour: Rows, cycle: int) -> Rows:
    return np.asarray(np.sin(2 * np.pi * hour / cycle))


def _smoothed(values: Rows, length: int) -> Rows:
    return np.asarray(np.convolve(values, np.hanning(length), mode="same"))
