"""Whether a plain fit is worse than a naive forecast: every channel of the ten tables, and 400 generated series."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from ibforecast import Evaluation, IBForecaster
from ibforecast_lab.data.suite import KNOWN, SUITE, locate

SERIES, TOGETHER, ROWS, HORIZON = 400, 8, 2000, 24
TOLERATED = 0.02
"""By how much the MAE of a channel may exceed that of its best naive forecast."""

Rows = Float64[np.ndarray, " row"]
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


def naive(device: torch.device) -> dict[str, float]:
    """Compare MAEs on validation windows, on which anchors were chosen, and on test windows, which nothing has seen."""
    results: dict[str, float] = {}
    for part, fitted in (("generated", _generated(device)), ("tables", _tables(device))):
        ratios: dict[str, list[float]] = {"validation": [], "test": []}
        for split, evaluation in fitted:
            ratios[split] += [_ratio(row.mae, row.naive_mae) for row in evaluation.channels]
        for split, each in ratios.items():
            results |= {
                f"{part}_{split}_channels": float(len(each)),
                f"{part}_{split}_worse": float(sum(ratio > 1 + TOLERATED for ratio in each)),
                f"{part}_{split}_worst": max(each, default=0.0),
                f"{part}_{split}_mean": float(np.exp(np.mean(np.log(np.maximum(each, 1e-3))))) if each else 0.0,
            }
    return results


def _generated(device: torch.device) -> Iterator[tuple[str, Evaluation]]:
    random, names = np.random.default_rng(21), list(KINDS)
    hour = np.arange(ROWS, dtype=np.float64)
    for first in range(0, SERIES, TOGETHER):
        kinds = [names[number % len(names)] for number in range(first, first + TOGETHER)]
        columns = {f"{kind}_{number}": KINDS[kind](random, hour) for number, kind in enumerate(kinds)}
        table = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=ROWS, freq="h"), **columns})
        yield from _evaluated(IBForecaster(HORIZON, device=device.type).fit(table), table)


def _tables(device: torch.device) -> Iterator[tuple[str, Evaluation]]:
    for name, facts in SUITE.items():
        path = locate(name)
        if path is not None and not name.endswith(KNOWN):
            yield from _evaluated(IBForecaster(facts.horizons[0], device=device.type).fit(path), path)


def _evaluated(model: IBForecaster, table: object) -> Iterator[tuple[str, Evaluation]]:
    for split in ("validation", "test"):
        yield split, model.evaluate(table, split)


def _ratio(own: float, other: float) -> float:
    """Return the ratio of two errors; 1 if both are zero, and 2 if only the naive one is."""
    return own / other if other else 1.0 + float(own > 0)


def _wave(hour: Rows, cycle: int) -> Rows:
    return np.asarray(np.sin(2 * np.pi * hour / cycle))


def _smoothed(values: Rows, length: int) -> Rows:
    return np.asarray(np.convolve(values, np.hanning(length), mode="same"))
