"""The time of a fit: a year of hours and a year of quarter hours, with the default recipe and with `sealed`."""

import time

import numpy as np
import pandas as pd
import torch

from ibforecast import IBForecaster
from ibforecast.fitting import recipe_for
from ibforecast.settings import Settings
from ibforecast.train.checkpoint import Epoch
from ibforecast.zoo.recipes import DEFAULT

CHANNELS, DAYS = 5, 365
STEPS_A_DAY = {"hours": 24, "quarter_hours": 96}


def fits(device: torch.device) -> dict[str, float]:
    """Measure the seconds of a whole fit by recipe, and their ratio; five channels, a day ahead.

    The second epoch of each stage is timed and multiplied by the number of epochs; a fit that stops early is faster.
    """
    results: dict[str, float] = {}
    for name, steps in STEPS_A_DAY.items():
        table = _year(steps)
        default, sealed = (_seconds(table, steps, recipe, device.type) for recipe in (DEFAULT, "sealed"))
        results |= {
            f"{name}_default_seconds": default,
            f"{name}_sealed_seconds": sealed,
            f"{name}_ratio": default / sealed,
        }
    return {name: round(value, 1) for name, value in results.items()}


def _year(steps: int) -> pd.DataFrame:
    random, rows = np.random.default_rng(0), DAYS * steps
    day = 10 * np.sin(2 * np.pi * (np.arange(rows)[:, None] / steps + np.arange(CHANNELS) / CHANNELS))
    values = day + random.normal(0, 0.05, (rows, CHANNELS)).cumsum(axis=0) + random.normal(0, 1, (rows, CHANNELS))
    times = pd.date_range("2023-01-01", periods=rows, freq=pd.Timedelta(days=1) / steps)
    return pd.DataFrame(values, columns=[f"c{channel}" for channel in range(CHANNELS)]).assign(time=times)


def _seconds(table: pd.DataFrame, steps: int, recipe: str, device: str) -> float:
    ended: list[float] = []

    def record(epoch: int, epochs: int, outcome: Epoch) -> None:
        ended.append(time.perf_counter())

    model = IBForecaster(horizon=steps, recipe=recipe, epochs=2, device=device).fit(table, on_epoch=record)
    whole = recipe_for(Settings(horizon=steps, recipe=recipe), model.open(table).series)
    contest = [whole.train.contest.epochs] * 2 if whole.train.contest_margin else []
    stages = (whole.train.epochs, *contest, whole.train.second_epochs)
    return sum((ended[2 * n + 1] - ended[2 * n]) * epochs for n, epochs in enumerate(stages))
