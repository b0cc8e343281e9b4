"""Fit to numbers of every size and shape: a forecast that can be relied on, or a clear refusal, and never a warning.

A case is a kind of model, the sizes of its windows, and a table whose channels are drawn from `KINDS`. Either every
step works: forecasts and intervals are finite and ordered, receipts add up, the document of the explanation verifies,
and the errors are finite. Or a step refuses the table with a `DataError` or a `UsageError` that has a remedy. Warnings
are errors, except that a huge number which repeats may mark missing values.
"""

import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from ibforecast import IBForecaster
from ibforecast.core.errors import DataError, UsageError
from torture.tables import forecaster, save_recipe

Values = np.ndarray
Make = Callable[[np.random.Generator, int], Values]


def _size(draw: np.random.Generator) -> float:
    """Draw a size: mostly one that may be trained on."""
    farthest = 30 if draw.random() < 0.8 else 300
    return float(draw.choice([-1, 1]) * 10.0 ** draw.uniform(-farthest, farthest))


def _noise(draw: np.random.Generator, rows: int) -> Values:
    return np.sin(2 * np.pi * np.arange(rows) / 24) + 0.3 * draw.normal(size=rows)


def _scaled(low: float, high: float) -> Make:
    return lambda draw, rows: 10.0 ** draw.uniform(low, high) * _noise(draw, rows)


def _constant(draw: np.random.Generator, rows: int) -> Values:
    return np.full(rows, _size(draw))


def _outlier(draw: np.random.Generator, rows: int, values: Values) -> Values:
    values[draw.integers(rows)] += _size(draw)
    return values


def _around(draw: np.random.Generator, rows: int) -> Values:
    mean = 10.0 ** draw.uniform(3, 15)
    return mean + mean * 10.0 ** draw.uniform(-17, -6) * _noise(draw, rows)


def _alternating(draw: np.random.Generator, rows: int) -> Values:
    return np.where(np.arange(rows) % draw.integers(2, 9), 1.0, -1.0) * _size(draw)


def _mixed_sizes(draw: np.random.Generator, rows: int) -> Values:
    return np.array([_size(draw) for _ in range(rows)]) if draw.random() < 0.1 else 10.0 ** draw.uniform(-30, 30, rows)


KINDS: dict[str, Make] = {
    "ordinary": _scaled(-2, 4),
    "small": _scaled(-300, -2),
    "large": _scaled(4, 29),
    "larger": _scaled(30, 300),
    "below normal": lambda draw, rows: 5e-324 * draw.integers(-9, 9, rows),
    "zero": lambda draw, rows: np.zeros(rows),
    "negative zero": lambda draw, rows: np.where(draw.random(rows) < 0.5, 0.0, -0.0),
    "constant": _constant,
    "constant with an outlier": lambda draw, rows: _outlier(
        draw,
        rows,
        _constant(draw, rows),
    ),
    "zero with an outlier": lambda draw, rows: _outlier(draw, rows, np.zeros(rows)),
    "a huge outlier": lambda draw, rows: _outlier(draw, rows, _noise(draw, rows)),
    "a huge outlier at the end": lambda draw, rows: np.append(_noise(draw, rows - 1), _size(draw)),
    "around a huge mean": _around,
    "whole numbers near 2**53": lambda draw, rows: 2.0**53 + draw.integers(-3, 3, rows),
    "alternating": _alternating,
    "mixed sizes": _mixed_sizes,
    "rare counts": lambda draw, rows: draw.poisson(0.05, rows).astype(float),
    "a step": lambda draw, rows: np.where(np.arange(rows) < draw.integers(rows), _size(draw), _size(draw)),
    "with gaps": lambda draw, rows: np.where(draw.random(rows) < 0.1, np.nan, 10.0 ** draw.uniform(-30, 30)),
}


@dataclass(frozen=True)
class Sizes:
    """Sizes of windows and table."""

    look_back: int
    horizon: int
    channels: int
    rows: int
    split: tuple[float, float, float] = (0.7, 0.1, 0.2)


USUAL = (Sizes(24, 6, 2, 240), Sizes(24, 1, 1, 240), Sizes(24, 6, 4, 240))
RARE = (Sizes(4000, 1, 1, 4200, (0.96, 0.02, 0.02)), Sizes(24, 2, 862, 120, (0.6, 0.2, 0.2)))
"""A long look-back, and the channels of the widest benchmark."""

TRAINABLE = ("ordinary", "small", "below normal", "zero", "negative zero", "around a huge mean", "rare counts")
"""Kinds that are never refused: of hundreds of channels, one is enough for a refusal."""

MODELS = ("sealed", "choosing", "default", "additive", "any-budget")


def numerics(
    minutes: float, seed: int, most: int | None = None, rare: Iterable[Sizes] = RARE, kinds: Iterable[str] = KINDS
) -> dict[str, Any]:
    """Draw cases: first every kind of numbers on its own, and the rare sizes among them, then kinds together."""
    deadline, names = time.monotonic() + 60 * minutes, tuple(kinds)
    forecast, refused, broken = Counter[str](), Counter[str](), list[str]()
    dice = random.Random(seed)
    single: list[tuple[Sizes, tuple[str, ...]]] = [(dice.choice(USUAL), (name,)) for name in names]
    first = dice.sample(single, len(single))
    first[3:3] = [(sizes, TRAINABLE) for sizes in rare]
    count = refusals = 0
    while count != most and (time.monotonic() < deadline or not count):
        sizes, drawn = first[count] if count < len(first) else (dice.choice(USUAL), names)
        count += 1
        model, number = dice.choice(MODELS), dice.getrandbits(32)
        chosen, rows = _table(sizes, drawn, number)
        words = f"{model}, {sizes}, {', '.join(dict.fromkeys(chosen))}, seed {number}"
        try:
            outcome = _tried(model, sizes, rows)
        except Exception as error:
            broken.append(f"{words}: {type(error).__name__}: {error}")
            continue
        refusals += outcome
        (refused if outcome else forecast).update(sorted({*chosen}))
    return {
        "cases": count,
        "refused_cases": refusals,
        "forecast": dict(sorted(forecast.items())),
        "refused": dict(sorted(refused.items())),
        "broken": broken,
    }


def _table(sizes: Sizes, names: tuple[str, ...], seed: int) -> tuple[list[str], pa.Table]:
    draw = np.random.default_rng(seed)
    chosen = [str(draw.choice(names)) for _ in range(sizes.channels)]
    with np.errstate(over="ignore"):
        columns = [KINDS[name](draw, sizes.rows) for name in chosen]
    times = np.datetime64("2024-01-01T00:00", "us") + np.arange(sizes.rows) * np.timedelta64(1, "h")
    return chosen, pa.table({"time": times} | {f"c{at}": values for at, values in enumerate(columns)})


def _tried(model: str, sizes: Sizes, rows: pa.Table) -> bool:
    """Do everything with a table that a user would; return whether a step refused it."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "a number must be a value, not a mark")  # which is said of huge steps
        recipe = save_recipe(Path(folder) / "recipe.toml", model, epochs=1)
        unfitted = forecaster(recipe, horizon=sizes.horizon, look_back=sizes.look_back, split=sizes.split)
        try:
            fitted = unfitted.fit(rows)
            _check_forecast(fitted, rows)
            _check_explanation(fitted, rows)
            measured = fitted.evaluate(rows)
            require(np.isfinite([measured.mse, measured.mae]).all(), f"errors of {measured.mse} and {measured.mae}")
        except (DataError, UsageError) as error:
            require(bool(error.rule and error.got and error.remedy), f"a refusal without a remedy: {error}")
            return True
    return False


def _check_forecast(fitted: IBForecaster, rows: pa.Table) -> None:
    forecast = fitted.predict(rows, level=[50, 90])
    for name in fitted.fitted.targets:
        edges = ("-lo-90", "-lo-50", "-hi-50", "-hi-90")
        column, *ends = (forecast[f"{name}{each}"].to_numpy() for each in ("", *edges))
        require(np.isfinite([column, *ends]).all(), f"a forecast or an interval of {name} that is not finite")
        require((np.diff(ends, axis=0) >= 0).all(), f"intervals of {name} that are not in their order")


def _check_explanation(fitted: IBForecaster, rows: pa.Table) -> None:
    why, channels = fitted.explain(rows), list(fitted.fitted.targets[:2])
    for step in ("mean", 1):
        for channel in channels:
            require(why.itemised(channel, step).adds_up, f"a receipt of {channel} that does not add up")
    verdict = fitted.verify(why.with_receipts(channels).to_json(), rows)
    require(bool(verdict), f"not verified:\n{verdict}")
    require(bool(why.in_words(channels[0])), "no words")


class FlawError(Exception):
    """A promise that was broken."""


def require(holds: bool, flaw: str) -> None:
    """Raise FlawError unless something holds."""
    if not holds:
        raise FlawError(flaw)
