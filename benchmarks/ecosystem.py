"""Our model next to models of neuralforecast and Darts on ETTh1, each in its own process, one after the other.

Needs ETTh1.csv in the folder of IBFORECAST_DATA, and `pip install -c constraints.txt 'ibforecast[bench]' captum`.
A library that is not installed is left out, and the reason is printed on stderr.
"""

import json
import logging
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.measures import BATCH, CYCLE, HORIZON, LOOK_BACK
from ibforecast import IBForecaster, IBForecastError
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.windows import Windows
from ibforecast.train.step import Step
from ibforecast_lab.data import catalogue
from ibforecast_lab.recipes import resolve

ROWS = 12 * 30 * 24
"""The training part of ETTh1."""

WARM_UP, CHUNK = 8, 8
STEPS = WARM_UP + 3 * CHUNK
QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}


@dataclass(frozen=True)
class Contender:
    """A model after a short training: its training speed, its size, and the calls to time."""

    windows_per_second: float
    parameters: int
    predict: Callable[[], object]
    explain: Callable[[], object] | None
    """Explains all forecast values of one window with the library's own explainer; None if it has none."""


def ecosystem(device: torch.device) -> dict[str, float]:
    """Measure training throughput, latency of a window's forecast and of its explanation, and peak memory, on the CPU.

    Look-back and horizon are 96; a step takes 256 windows of all 7 channels. The timed calls are the library's own, on
    a table of 96 rows: `predict`, and `explain` or what is closest to it. Times are processor times of one thread, so
    they do not grow on a busy machine. Memory is that of the whole process.
    """
    results: dict[str, float] = {}
    for name in CONTENDERS:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.ecosystem", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            results |= {f"{name}_{key}": value for key, value in json.loads(done.stdout.splitlines()[-1]).items()}
    return results


def measure(name: str) -> dict[str, float]:
    """Train, forecast and explain with one contender, in this process."""
    contender = CONTENDERS[name](_table())
    results = {
        "parameters": float(contender.parameters),
        "windows_per_second": contender.windows_per_second,
        "predict_ms": _median(contender.predict, 20) * 1e3,
    }
    if contender.explain:
        begun = time.process_time()
        contender.explain()
        first = time.process_time() - begun
        results["explain_ms"] = (first if first > 2 else _median(contender.explain, 20)) * 1e3
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return results | {"peak_mb": peak / 1024 if sys.platform != "darwin" else peak / 2**20}


def _table() -> pd.DataFrame:
    series = catalogue.load("ETTh1")
    table = pd.DataFrame(series.values[:ROWS], columns=list(series.channels))
    table.insert(0, "date", series.clock.stamps[:ROWS])
    return table


def _median(call: Callable[[], object], rounds: int) -> float:
    taken = []
    for number in range(rounds + 3):
        begun = time.process_time()
        call()
        if number >= 3:
            taken.append(time.process_time() - begun)
    return float(np.median(taken))


# --- ibforecast ---


def _ibforecast(table: pd.DataFrame) -> Contender:
    model = IBForecaster(HORIZON, LOOK_BACK, epochs=1, device="cpu").fit(table.tail(1000))
    series, last = model.open(table).series, table.tail(LOOK_BACK)
    sizes = Sizes(LOOK_BACK, HORIZON, len(series.channels), CYCLE)
    starts = range(ROWS - LOOK_BACK - HORIZON + 1)
    units = Standardiser.of(series.values, series.channels)
    windows = Windows.of(series, units, CYCLE, starts, LOOK_BACK, HORIZON)
    forecaster = resolve("choosing", sizes).build(0).train()
    step = Step(forecaster, windows, BATCH, torch.Generator().manual_seed(0))
    step.set_pace(1e-3, 0.0)
    ends = []
    for _ in range(STEPS):
        step.run(windows.starts[torch.randperm(len(windows))[:BATCH]])
        ends.append(time.process_time())
    return Contender(
        _windows_per_second(ends), _size(forecaster), lambda: model.predict(last), lambda: model.explain(last)
    )


# --- neuralforecast ---


def _neuralforecast(build: Callable[..., Any], univariate: bool = False, **settings: Any) -> Any:
    def contender(table: pd.DataFrame) -> Contender:
        from neuralforecast import NeuralForecast

        from ibforecast.adapters import neuralforecast as ours

        channels = len(table.columns) - 1
        tall = table.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
        tall = ours.with_phase(tall, CYCLE)
        model = build()(
            h=HORIZON,
            input_size=LOOK_BACK,
            max_steps=STEPS,
            val_check_steps=STEPS,
            windows_batch_size=BATCH * (channels if univariate else 1),
            callbacks=[_pace()],
            **({} if univariate else {"n_series": channels}),
            **settings,
            **QUIET,
        )
        nf = NeuralForecast(models=[model], freq="h")
        nf.fit(tall)
        (pace,) = nf.models[0].trainer_kwargs.pop("callbacks")
        last = tall.groupby("unique_id").tail(LOOK_BACK)

        def explain() -> object:
            if isinstance(nf.models[0], ours.IBForecast):
                return ours.explain(nf, last)
            return nf.explain(df=last, explainer="IntegratedGradients", verbose=False)

        return Contender(_windows_per_second(pace.ends), _size(nf.models[0]), lambda: nf.predict(last), explain)

    return contender


def _from_neuralforecast(name: str) -> Any:
    from neuralforecast import models

    return getattr(models, name)


def _own_in_neuralforecast() -> Any:
    from ibforecast.adapters.neuralforecast import IBForecast

    return IBForecast


# --- Darts ---


def _darts(name: str, explainer: str | None = None, **settings: Any) -> Any:
    def contender(table: pd.DataFrame) -> Contender:
        from darts import TimeSeries, explainability, models

        pace = _pace()
        series = TimeSeries.from_dataframe(table, "date").astype(np.float32)
        model = getattr(models, name)(
            input_chunk_length=LOOK_BACK,
            output_chunk_length=HORIZON,
            batch_size=BATCH,
            n_epochs=1,
            likelihood=None,
            loss_fn=torch.nn.MSELoss(),
            pl_trainer_kwargs={**QUIET, "callbacks": [pace], "max_steps": STEPS},
            **settings,
        )
        model.fit(series)
        last = series[-LOOK_BACK:]

        def explain() -> object:
            assert explainer is not None
            return getattr(explainability, explainer)(model, background_series=last).explain()

        return Contender(
            _windows_per_second(pace.ends),
            _size(model.model),
            lambda: model.predict(HORIZON, series=last, verbose=False),
            explain if explainer else None,
        )

    return contender


CONTENDERS: dict[str, Callable[[pd.DataFrame], Contender]] = {
    "ibforecast": _ibforecast,
    "neuralforecast_ibforecast": _neuralforecast(_own_in_neuralforecast, cycle=CYCLE),
    "neuralforecast_itransformer": _neuralforecast(
        lambda: _from_neuralforecast("iTransformer"),
        hidden_size=192,
        n_heads=4,
        d_ff=384,
        use_norm=False,  # with it, neuralforecast 3.3 cannot explain: an in-place operation stops the gradients
    ),
    "neuralforecast_tsmixer": _neuralforecast(lambda: _from_neuralforecast("TSMixer")),
    "neuralforecast_dlinear": _neuralforecast(lambda: _from_neuralforecast("DLinear"), univariate=True),
    "darts_tft": _darts("TFTModel", "TFTExplainer", hidden_size=64, add_relative_index=True),
    "darts_tsmixer": _darts("TSMixerModel", hidden_size=256, ff_size=256),
    "darts_dlinear": _darts("DLinearModel"),
}
"""Our model by itself and in neuralforecast, then others: one of about its size in each library, and small ones."""


def _pace() -> Any:
    """Return a Lightning callback that records the time at the end of each step."""
    from pytorch_lightning import Callback

    class Pace(Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_train_batch_end(self, *arguments: Any) -> None:
            self.ends.append(time.process_time())

    return Pace()


def _windows_per_second(ends: list[float]) -> float:
    """Return the best of three runs of eight steps, after eight steps to warm up."""
    marks = ends[WARM_UP - 1 :: CHUNK]
    return BATCH * CHUNK / min(after - before for before, after in pairwise(marks))


def _size(network: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def _main() -> Iterator[str]:
    for logger in ("pytorch_lightning", "lightning_fabric", "lightning.pytorch", "lightning.fabric", "darts"):
        logging.getLogger(logger).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    yield json.dumps(measure(sys.argv[1]))


if __name__ == "__main__":
    try:
        print(*_main())
    except IBForecastError as reason:
        sys.exit(f"{sys.argv[1]} is left out: {reason}")
    except ImportError as reason:
        sys.exit(f"{sys.argv[1]} is left out: {reason}; run: pip install -c constraints.txt -e '.[bench]' captum")
