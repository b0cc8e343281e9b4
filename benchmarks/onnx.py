"""The ONNX file next to the network it was exported from, in the same run."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.measures import CHANNELS, CYCLE, HORIZON, LOOK_BACK, _interleaved, _windows
from ibforecast.adapters.onnx import OnnxForecaster
from ibforecast.adapters.onnx_export import export
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Window
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.model.network import IBForecast
from ibforecast.zoo.saved import FittedModel, TrainingSummary
from ibforecast_lab.recipes import resolve

FRESH = {
    "torch": "from ibforecast import IBForecaster; IBForecaster.load(sys.argv[1] + '/model', device='cpu')",
    "onnx": "from ibforecast.adapters.onnx import OnnxForecaster; OnnxForecaster(sys.argv[1] + '/model.onnx')",
}


def exported(device: torch.device) -> dict[str, float]:
    """Measure the latency of one window and of 64 with one thread, file sizes, and the time to load in a new process.

    The latency includes the explanation. The shape is ETTh1's; weights and windows are random. `masks_apart` is how
    many of `windows` windows have a different mask.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            fitted = _fitted()
            fitted.save(Path(folder) / "model")
            export(fitted, Path(folder) / "model.onnx")
            runner = OnnxForecaster(Path(folder) / "model.onnx")
            return (
                _latency(fitted.network, runner, 1)
                | _latency(fitted.network, runner, 64)
                | {
                    **_agreement(fitted.network, runner),
                    "onnx_bytes": float((Path(folder) / "model.onnx").stat().st_size),
                    "weights_bytes": float(len(fitted.weights)),
                    **{f"{name}_load_seconds": _seconds_to_load(program, folder) for name, program in FRESH.items()},
                }
            )
    finally:
        torch.set_num_threads(threads)


def _latency(network: IBForecast, runner: OnnxForecaster, batch: int) -> dict[str, float]:
    window = _some(batch)
    arrays = (window.values.numpy(), window.observed.numpy(), window.phase.numpy())
    with torch.no_grad():
        torch_s, onnx_s = _interleaved(
            lambda: network(window).explanation, lambda: runner.run_batch(*arrays), rounds=300
        )
    return {
        f"torch_ms_batch_{batch}": torch_s * 1e3,
        f"onnx_ms_batch_{batch}": onnx_s * 1e3,
        f"onnx_over_torch_batch_{batch}": onnx_s / torch_s,
    }


@torch.no_grad()
def _agreement(network: IBForecast, runner: OnnxForecaster) -> dict[str, float]:
    window = _some(2000)
    forecast = network(window)
    explanation, values = runner.run_batch(window.values.numpy(), window.observed.numpy(), window.phase.numpy())
    assert forecast.explanation is not None
    apart = (explanation.mask != forecast.explanation.mask.numpy()).any(axis=(1, 2))
    off = np.abs(values - forecast.values.numpy())[~apart]
    return {"windows": float(len(apart)), "masks_apart": float(apart.sum()), "largest_difference": float(off.max())}


def _some(count: int) -> Window:
    windows = _windows(torch.device("cpu"))
    return windows.look_backs(windows.starts[:: len(windows) // count][:count])


def _fitted() -> FittedModel:
    torch.manual_seed(0)
    names = tuple(f"channel {number}" for number in range(CHANNELS))
    return FittedModel(
        network=IBForecast(resolve("choosing", Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)).config).eval(),
        standardiser=Standardiser(np.zeros(CHANNELS), np.ones(CHANNELS)),
        layout=Layout(time="date", channels=names, shape="wide", frequency="1h"),
        origin="2016-07-01T00:00:00.000000",
        split=Split(8640, 8640, 8640),
        summary=TrainingSummary("choosing", "", "", 8640, 0, "cpu", 0.0, 1, 1, 1, 1.0),
    )


def _seconds_to_load(program: str, folder: str) -> float:
    timed = f"import sys, time; t = time.perf_counter(); {program}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", timed, folder]
    return float(
        np.median([float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5)])
    )
