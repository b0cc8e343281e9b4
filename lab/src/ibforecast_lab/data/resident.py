"""Store independent windows, such as generated ones, as windows of one series in memory."""

import numpy as np
import torch
from jaxtyping import Float32, Int64

from ibforecast.data.windows import Windows


def resident(
    window: Float32[np.ndarray, "window look_back channel"],
    target: Float32[np.ndarray, "window horizon channel"],
    phase: Int64[np.ndarray, " window"],
) -> Windows:
    """Concatenate windows and their targets into one series, with one start each; no value is standardised.

    `phase` is the phase of each window's first step. It continues from there without wrapping, because readers take
    it modulo the cycle. NaN means missing.
    """
    count, look_back, horizon = len(window), window.shape[1], target.shape[1]
    steps = look_back + horizon
    values = torch.from_numpy(np.concatenate([window, target], axis=1)).flatten(0, 1)
    return Windows(
        values=values.nan_to_num(0.0),
        observed=~values.isnan(),
        phase=torch.from_numpy(phase[:, None] + np.arange(steps)).flatten(),
        starts=torch.arange(count) * steps,
        look_back=look_back,
        horizon=horizon,
    )
