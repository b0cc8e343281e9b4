"""A fit and its error next to those of other libraries: a year of quarter hours of ETTm1, five channels, a day ahead.

Every library trains in its own process, on one thread, on the first 70 % of the rows, with a look-back of 96. Ours
selects its epoch on the next 10 %; the others have none to select. The networks of other libraries take `STEPS` steps
with the libraries' usual settings, and so has LightGBM. Errors are those of the same windows of the last 20 %, in
standard deviations of the training rows.

Needs ETTm1.csv in the folder of IBFORECAST_DATA, and `pip install -c constraints.txt 'ibforecast[bench]'`. A library
that is not installed is left out.
"""

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64

from benchmarks.ecosystem import QUIET
from ibforecast import IBForecaster
from ibforecast.use import Desk
from ibforecast_lab.data import catalogue

DATA, CHANNELS, ROWS, LOOK_BACK, HORIZON = "ETTm1", 5, 365 * 96, 96, 96
TRAINED, TESTED = int(0.7 * ROWS), int(0.8 * ROWS)
EVERY, STEPS, BATCH = 24, 1000, 128
"""Steps between two test windows, steps of training, and windows of all channels in a step (Darts)."""

ORIGINS = range(TESTED, ROWS - HORIZON + 1, EVERY)
"""The first rows that are forecast."""

Histories = Float64[np.ndarray, "origin look_back channel"]
Forecasts = Float64[np.ndarray, "origin horizon channel"]
Fitted = Callable[[pd.DataFrame], Callable[[Histories], Forecasts]]
"""A fit to a table of training rows gives a function that forecasts from histories."""


def neighbours(device: torch.device) -> dict[str, float]:
    """Measure processor and wall seconds of a fit and its errors for each library, and our time as a ratio."""
    results: dict[str, float] = {}
    for name in LIBRARIES:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.neighbours", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            results |= {f"{name}_{key}": value for key, value in json.loads(done.stdout.splitlines()[-1]).items()}
            print(name, done.stdout.splitlines()[-1], flush=True)
    ours = results["ibforecast_processor_seconds"]
    return results | {
        f"ibforecast_over_{name}": round(ours / results[f"{name}_processor_seconds"], 2)
        for name in LIBRARIES
        if name != "ibforecast" and f"{name}_processor_seconds" in results
    }


def measure(name: str) -> dict[str, float]:
    """Fit one library in this process and forecast all test windows."""
    table = _table()
    values = table.iloc[:, 1:].to_numpy(copy=True)  # the table is changed below
    mean, spread = values[:TRAINED].mean(axis=0), values[:TRAINED].std(axis=0)
    if name != "ibforecast":  # ours standardises by itself
        table.iloc[:, 1:] = (values - mean) / spread
    begun, wall = time.process_time(), time.perf_counter()
    forecast = LIBRARIES[name](table if name == "ibforecast" else table[:TRAINED])
    taken, waited = time.process_time() - begun, time.perf_counter() - wall
    steps = np.array(ORIGINS)[:, None]
    histories = table.iloc[:, 1:].to_numpy()[steps + np.arange(-LOOK_BACK, 0)]
    truth = ((values - mean) / spread)[steps + np.arange(HORIZON)]
    error = forecast(histories) - truth
    return {
        "processor_seconds": round(taken, 1),
        "wall_seconds": round(waited, 1),
        "mse": round(float(np.mean(error**2)), 4),
        "mae": round(float(np.mean(np.abs(error))), 4),
    }


def _table() -> pd.DataFrame:
    series = catalogue.load(DATA)
    table = pd.DataFrame(series.values[:ROWS, :CHANNELS], columns=list(series.channels[:CHANNELS]))
    table.insert(0, "date", series.clock.stamps[:ROWS])
    return table


def _ibforecast(table: pd.DataFrame) -> Callable[[Histories], Forecasts]:
    model = IBForecaster(HORIZON, LOOK_BACK, device="cpu").fit(table)

    def forecast(histories: Histories) -> Forecasts:
        windows = Desk(model.fitted).windows_at(model.open(table).series, np.array(ORIGINS) - LOOK_BACK)
        with torch.no_grad():
            ahead: torch.Tensor = model.fitted.network(windows.look_backs(windows.starts)).values
        return ahead.double().numpy()

    return forecast


def _lightgbm(table: pd.DataFrame) -> Callable[[Histories], Forecasts]:
    """Train one model for all channels on the lags; its forecasts of one step are its lags of the next."""
    from lightgbm import LGBMRegressor
    from mlforecast import MLForecast

    model = MLForecast({"trees": LGBMRegressor(verbosity=-1, n_jobs=1)}, "15min", range(1, LOOK_BACK + 1))
    model.fit(_tall(table))
    names = [int(name.removeprefix("lag")) for name in model.ts.features_order_]

    def forecast(histories: Histories) -> Forecasts:
        steps = histories.transpose(0, 2, 1).reshape(-1, LOOK_BACK)
        for _ in range(HORIZON):
            ahead = model.models_["trees"].booster_.predict(np.stack([steps[:, -lag] for lag in names], axis=1))
            steps = np.concatenate([steps, ahead[:, None]], axis=1)
        return steps[:, LOOK_BACK:].reshape(len(histories), CHANNELS, HORIZON).transpose(0, 2, 1)

    return forecast


def _neuralforecast(name: str) -> Fitted:
    def fitted(table: pd.DataFrame) -> Callable[[Histories], Forecasts]:
        from neuralforecast import NeuralForecast, models

        model = getattr(models, name)(h=HORIZON, input_size=LOOK_BACK, max_steps=STEPS, **QUIET)
        library = NeuralForecast(models=[model], freq="15min")
        library.fit(_tall(table))

        def forecast(histories: Histories) -> Forecasts:
            # Every window of every channel is a series of its own, because a series is forecast from its end only.
            parts = histories.transpose(0, 2, 1).reshape(-1, LOOK_BACK)
            times = pd.date_range("2020-01-01", periods=LOOK_BACK, freq="15min")
            tall = pd.DataFrame(
                {
                    "unique_id": np.repeat(np.arange(len(parts)), LOOK_BACK),
                    "ds": np.tile(times, len(parts)),
                    "y": parts.ravel(),
                }
            )
            ahead = library.predict(tall).sort_values(["unique_id", "ds"])[name].to_numpy()
            return ahead.reshape(len(histories), CHANNELS, HORIZON).transpose(0, 2, 1)

        return forecast

    return fitted


def _darts(table: pd.DataFrame) -> Callable[[Histories], Forecasts]:
    from darts import TimeSeries
    from darts.models import TiDEModel

    model = TiDEModel(
        input_chunk_length=LOOK_BACK,
        output_chunk_length=HORIZON,
        batch_size=BATCH,
        n_epochs=1 + STEPS * BATCH // TRAINED,
        pl_trainer_kwargs={**QUIET, "max_steps": STEPS},
    )
    model.fit(TimeSeries.from_dataframe(table, "date").astype(np.float32))

    def forecast(histories: Histories) -> Forecasts:
        series = [TimeSeries.from_values(history.astype(np.float32)) for history in histories]
        return np.stack([ahead.values() for ahead in model.predict(HORIZON, series=series, verbose=False)])

    return forecast


def _tall(table: pd.DataFrame) -> pd.DataFrame:
    return table.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


LIBRARIES: dict[str, Fitted] = {
    "ibforecast": _ibforecast,
    "mlforecast_lightgbm": _lightgbm,
    "neuralforecast_dlinear": _neuralforecast("DLinear"),
    "neuralforecast_nhits": _neuralforecast("NHITS"),
    "darts_tide": _darts,
}


def _main() -> Any:
    import logging

    for logger in ("pytorch_lightning", "lightning_fabric", "lightning.pytorch", "lightning.fabric", "darts"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    return json.dumps(measure(sys.argv[1]))


if __name__ == "__main__":
    try:
        print(_main())
    except ImportError as reason:
        sys.exit(f"{sys.argv[1]} is left out: {reason}; run: pip install -c constraints.txt -e '.[bench]'")
