"""Where the time of a fit goes, by torch.profiler: the parts of a training step and its largest operations."""

from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.measures import CHANNELS, CYCLE, HORIZON, LOOK_BACK, _windows
from ibforecast.core.sizes import Sizes
from ibforecast.train.step import Step
from ibforecast_lab.recipes import resolve

RECIPES, STEPS, BATCH, LARGEST = ("sealed", "choosing"), 12, 128, 8
PARTS = ("decompose", "score", "gate.sample", "readout", "backward", "optimiser")


def profiled(device: torch.device) -> dict[str, float]:
    """Profile training steps in the shape of ETTh1: shares of the time of a step, by part and by operation.

    The forward parts are those of the network; what is left is cutting windows, the loss and the averages of weights.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    results: dict[str, float] = {}
    for name in RECIPES:
        results |= {f"{name}_{key}": round(share, 3) for key, share in _shares(name, device).items()}
    torch.set_num_threads(threads)
    return results


def _shares(name: str, device: torch.device) -> dict[str, float]:
    windows = _windows(device)
    recipe = resolve(name, Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE))
    forecaster = recipe.build(0).to(device).train()
    # A captured graph would be one operation, so that on CUDA the same step is profiled as it was recorded.
    forecaster.capturable = False
    generator = torch.Generator(device).manual_seed(0)
    step = Step(forecaster, windows, BATCH, generator, 0.5, recipe.train.bfloat16)
    _mark("decompose", forecaster.decompose, "context")
    _mark("score", forecaster.score, "forward")
    _mark("gate.sample", forecaster.gate, "sample")
    _mark("readout", forecaster.readout, "forward")
    _mark("optimiser", step.optimiser, "step")
    backward = torch.Tensor.backward

    def marked(tensor: torch.Tensor) -> None:
        with record_function("backward"):
            backward(tensor)

    step.set_pace(1e-3, 0.5)
    starts = windows.starts[:: len(windows) // BATCH][:BATCH]
    step.run(starts)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    torch.Tensor.backward = marked  # type: ignore[method-assign,assignment]
    try:
        with profile(activities=activities) as taken, record_function("whole"):
            for _ in range(STEPS):
                step.run(starts)
            step.means()  # waits for the device
    finally:
        torch.Tensor.backward = backward  # type: ignore[method-assign]
    rows = {row.key: row for row in taken.key_averages()}
    whole = rows["whole"].cpu_time_total
    shares = {part.replace(".", "_"): rows[part].cpu_time_total / whole for part in PARTS if part in rows}
    own = Counter({key: row.self_cpu_time_total / whole for key, row in rows.items() if key.startswith("aten::")})
    shares["other"] = 1 - sum(shares.values())
    shares |= {key.replace("::", "_"): share for key, share in own.most_common(LARGEST)}
    return {**shares, "step_ms": whole / STEPS / 1e3}


def _mark(part: str, owner: object, method: str) -> None:
    """Let the profiler name every call of a method."""
    call = getattr(owner, method)

    def marked(*arguments: object, **options: object) -> object:
        with record_function(part):
            return call(*arguments, **options)

    setattr(owner, method, marked)
