"""Measures of training, explaining, importing, and growth with the number of channels."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast.model.network import IBForecast
from ibforecast.train.step import Step
from ibforecast_lab.recipes import resolve

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 96, 96, 7, 24, 256
SHAPES = {"ETTh1": (7, 24), "ETTm1": (7, 96), "Weather": (21, 144)}
"""Channels and cycle of three data sets."""

Measure = Callable[[torch.device], dict[str, float]]


def training(device: torch.device) -> dict[str, float]:
    """Measure windows per second of a training step on series of ETTh1's shape, also relative to the dense model."""
    windows, sizes = _windows(device), Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)
    rates = {name: _windows_per_second(name, device, windows, sizes) for name in ("dense", "paper", "choosing")}
    return {f"{name}_windows_per_second": rate for name, rate in rates.items()} | {
        f"{name}_over_dense": rates[name] / rates["dense"] for name in ("paper", "choosing")
    }


def explanation(device: torch.device) -> dict[str, float]:
    """Measure the time of one window's forecast with its explanation, and with all gates open, on the CPU."""
    windows = _windows(torch.device("cpu"))
    window = windows.look_backs(windows.starts[:1])
    sizes = Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)
    torch.manual_seed(0)
    gated = IBForecast(resolve("choosing", sizes).config).eval()
    opened = IBForecast(resolve("dense", sizes, frame="weighted", gate={"kind": "open", "recent": 2}).config).eval()
    with torch.no_grad():
        explained, plain = _interleaved(lambda: gated(window).explanation, lambda: opened(window).values, rounds=300)
    return {"explained_ms": explained * 1e3, "open_gates_ms": plain * 1e3, "ratio": explained / plain}


def gate_network(device: torch.device) -> dict[str, float]:
    """Processor time of a forecast with its explanation under `steady`, as ratios.

    To the same network with every gate open, which still computes its gate network, and to the same network without a
    gate network, whose mask is the same for every window. One window and 64, in the shapes of three data sets.
    """
    torch.set_num_threads(1)
    results = {}
    for name, (count, cycle) in SHAPES.items():
        windows, sizes = _windows(torch.device("cpu"), count, cycle), Sizes(LOOK_BACK, HORIZON, count, cycle)
        torch.manual_seed(0)
        networks = [
            IBForecast(resolve("steady", sizes, budget=budget, gate=gate).config).eval()
            for budget, gate in ((None, None), (1.0, {"kind": "open"}), (None, {"attention": "none"}))
        ]
        for batch in (1, 64):
            window = windows.look_backs(windows.starts[:batch])
            with torch.no_grad():
                gated, opened, fixed = _least_seconds(
                    [partial(network, window) for network in networks], 400 if batch == 1 else 10
                )
            results[f"{name}_{batch}_over_open_gates"] = round(gated / opened, 2)
            results[f"{name}_{batch}_over_no_gate_network"] = round(gated / fixed, 2)
    return results


def importing(device: torch.device) -> dict[str, float]:
    """Measure the seconds of `from ibforecast import IBForecaster` after `import torch`, in new processes."""
    timed = "t = time.perf_counter(); from ibforecast import IBForecaster; print(time.perf_counter() - t)"
    program = f"import time, torch; {timed}"
    taken = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    return {"seconds_beyond_torch": float(np.median(taken))}


def channels(device: torch.device) -> dict[str, float]:
    """Measure seconds and, on a GPU, peak bytes of a training step on generated tables of 137, 321 and 862 channels.

    Both should grow in proportion to the channels: the last numbers are their growth divided by that of the channels.
    """
    seconds, memory = {}, {}
    for count in (137, 321, 862):
        windows = _windows(device, count)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        rate = _windows_per_second(
            "choosing", device, windows, Sizes(LOOK_BACK, HORIZON, count, 168), batch=16, steps=1
        )
        seconds[count] = 16 / rate
        if device.type == "cuda":
            memory[count] = float(torch.cuda.max_memory_allocated(device))
    result = {f"step_seconds_{count}": value for count, value in seconds.items()}
    result |= {f"peak_bytes_{count}": value for count, value in memory.items()}
    for name, measured in (("time", seconds), ("memory", memory)):
        if measured:
            result[f"{name}_growth_over_channels"] = measured[862] / measured[137] / (862 / 137)
    return result


MEASURES: dict[str, Measure] = {
    "training": training,
    "explanation": explanation,
    "gate_network": gate_network,
    "importing": importing,
    "channels": channels,
}


def _windows(device: torch.device, channels: int = CHANNELS, cycle: int = CYCLE, look_back: int = LOOK_BACK) -> Windows:
    random = np.random.default_rng(0)
    values = np.cumsum(random.normal(size=(8640, channels)), axis=0)
    stamps = np.datetime64("2016-07-01", "us") + np.arange(len(values)) * np.timedelta64(1, "h")
    names = tuple(f"channel {number}" for number in range(channels))
    series = Series(values, names, Clock(stamps, Frequency(3600)))
    starts = range(len(values) - look_back - HORIZON + 1)
    return Windows.of(series, Standardiser.of(values, names), cycle, starts, look_back, HORIZON).to(device)


def _windows_per_second(
    recipe: str, device: torch.device, windows: Windows, sizes: Sizes, batch: int = BATCH, steps: int = 8
) -> float:
    forecaster = resolve(recipe, sizes).build(0).to(device).train()
    step = Step(forecaster, windows, batch, torch.Generator(device).manual_seed(0))
    step.set_pace(1e-3, 0.0)
    batches = [windows.starts[torch.randperm(len(windows))[:batch].to(device)] for _ in range(8)]

    def run(count: int) -> float:
        begun = time.perf_counter()
        for number in range(count):
            step.run(batches[number % len(batches)])
        step.means()  # waits for the device
        return time.perf_counter() - begun

    count = 50 * steps if device.type == "cuda" else steps
    run(count)
    return batch * count / min(run(count) for _ in range(3))


def _least_seconds(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Least processor seconds of each call, taken in turns: other programs on the machine can only add to them."""
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            begun = time.thread_time()
            call()
            least[place] = min(least[place], time.thread_time() - begun)
    return least


def _interleaved(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the median seconds of two calls, run in turns so that both meet the same load of the machine."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 20):
        for call, taken in zip((one, other), times, strict=True):
            begun = time.perf_counter()
            call()
            if number >= 20:
                taken.append(time.perf_counter() - begun)
    return float(np.median(times[0])), float(np.median(times[1]))
