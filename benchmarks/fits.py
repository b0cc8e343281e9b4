"""The time of a fit, for a year of hours and of quarter hours, and its error compared with a longer training."""

import time

import numpy as np
import pyarrow as pa
import torch

from ibforecast import IBForecaster
from ibforecast_lab.experiments.ledger import Cell, Ledger
from ibforecast_lab.experiments.plans import SEEDS
from ibforecast_lab.experiments.run import run

CHANNELS, DAYS, DAY, LAGS = 5, 365, 86_400, 96
COMPARED = (("ETTm1", 96), ("ETTm2", 96), ("tetuan", 24))
STEPS_A_DAY = {"hours": 24, "quarter_hours": 96}


def fits(device: torch.device) -> dict[str, float]:
    """Measure the seconds of a plain fit, of a sealed one, and of LightGBM on the same lags; five channels.

    A fit is for a day ahead. LightGBM is trained through mlforecast, one model for all channels and steps ahead, with
    its usual settings. Both compute with one thread.
    """
    results: dict[str, float] = {}
    for name, steps in STEPS_A_DAY.items():
        table = table_of(DAYS * steps, steps)
        plain, sealed = (_seconds(table, steps, device.type, sealed) for sealed in (False, True))
        trees = _lightgbm_seconds(table)
        results |= {
            f"{name}_plain_seconds": plain,
            f"{name}_sealed_seconds": sealed,
            f"{name}_lightgbm_seconds": trees,
            f"{name}_plain_over_lightgbm": plain / trees,
        }
    return {name: round(value, 1) for name, value in results.items()}


def short(device: torch.device) -> dict[str, float]:
    """Compare test errors of the default with those of the ledger: one seed.

    The record cpu-short.json is of the time when the default of the ledger was trained three times as long.
    """
    ledger, results = Ledger(), {}
    for data, horizon in COMPARED:
        former = [record for seed in SEEDS if (record := ledger.read(Cell(data, horizon, "default", seed)))]
        record = run(Cell(data, horizon, "default", SEEDS[0]), device)
        for error in ("mse", "mae"):
            mean = sum(getattr(one.test, error) for one in former) / len(former)
            results[f"{data}_{horizon}_{error}"] = round(getattr(record.test, error), 4)
            results[f"{data}_{horizon}_{error}_ratio"] = round(getattr(record.test, error) / mean, 4)
        results[f"{data}_{horizon}_seconds"] = record.seconds
    return results


def table_of(rows: int, steps: int = 96) -> pa.Table:
    """Return a table of five channels with days of `steps` rows, a slow drift and noise."""
    random = np.random.default_rng(0)
    day = 10 * np.sin(2 * np.pi * (np.arange(rows)[:, None] / steps + np.arange(CHANNELS) / CHANNELS))
    values = day + random.normal(0, 0.05, (rows, CHANNELS)).cumsum(axis=0) + random.normal(0, 1, (rows, CHANNELS))
    times = np.datetime64("2023-01-01", "us") + np.arange(rows) * np.timedelta64(DAY // steps, "s")
    return pa.table({f"c{channel}": values[:, channel] for channel in range(CHANNELS)} | {"time": times})


def _seconds(table: pa.Table, steps: int, device: str, sealed: bool) -> float:
    """Return the seconds of a whole fit."""
    model = IBForecaster(horizon=steps, device=device, sealed=sealed).fit(table)
    return model.fitted.summary.seconds


def _lightgbm_seconds(table: pa.Table) -> float:
    """Return the seconds in which LightGBM learns from the training rows, with the look-back as lags."""
    from lightgbm import LGBMRegressor
    from mlforecast import MLForecast

    frame = table.slice(0, int(0.7 * table.num_rows)).to_pandas()
    long = frame.melt("time", var_name="unique_id", value_name="y").rename(columns={"time": "ds"})
    model = LGBMRegressor(verbosity=-1, n_jobs=1)
    step = frame["time"].iloc[1] - frame["time"].iloc[0]
    forecaster = MLForecast(models=[model], freq=step, lags=list(range(1, LAGS + 1)), num_threads=1)
    begun = time.perf_counter()
    forecaster.fit(long)
    return time.perf_counter() - begun
