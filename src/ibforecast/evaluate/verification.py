"""Checks of explanations: compute the forecast again from them, and with every closed token scrambled."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.contracts import Accountable
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import closed_to_zero, spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows


def scrambled(window: Window, explanation: Explanation, generator: torch.Generator) -> Explanation:
    """Return the explanation computed with noise in every closed token, with context and mask held."""
    context, mask = explanation.context, explanation.mask
    size = 10 * (window.values.abs().amax() + 1)
    noise = size * torch.randn(window.values.shape, generator=generator).to(window.values)
    values = window.values.where(spread(mask, window.values.shape[1] // mask.shape[1]), noise)
    return replace(explanation, evidence=closed_to_zero(mask, context.remove(values)))


def changed_bits(
    one: Float[Tensor, "batch horizon channel"], other: Float[Tensor, "batch horizon channel"]
) -> Int64[Tensor, " batch"]:
    """Count the bits in which two forecasts of each window differ; a NaN counts as all bits of its value.

    The sign of zero counts as a bit.
    """
    size = one.element_size()
    first, second = (values.detach().cpu().contiguous().numpy().view(f"u{size}") for values in (one, other))
    bits = torch.from_numpy(np.bitwise_count(first ^ second).astype(np.int64))
    return bits.where(~(one.isnan() | other.isnan()).cpu(), 8 * size).sum(dim=(1, 2))


@torch.no_grad()
def replays(
    forecaster: Accountable, window: Window, explanation: Explanation, generator: torch.Generator
) -> tuple[Float[Tensor, "batch horizon channel"], Float[Tensor, "batch horizon channel"]]:
    """Compute the forecast from its explanation, unchanged and with noise in the closed tokens.

    Context and mask are held. The forecaster runs on noise in between, which exposes one that remembers its last input.
    """
    again = forecaster.replay(explanation)
    forecaster(replace(window, values=torch.randn(window.values.shape, generator=generator).to(window.values)))
    return again, forecaster.replay(scrambled(window, explanation, generator))


def broken(
    forecaster: Accountable, window: Window, forecast: Forecast, generator: torch.Generator
) -> Bool[Tensor, " batch"]:
    """Mark the windows whose forecast differs from the replay of its explanation, scrambled or not."""
    assert forecast.explanation is not None
    again, noisy = replays(forecaster, window, forecast.explanation, generator)
    return (changed_bits(again, forecast.values) > 0) | (changed_bits(noisy, forecast.values) > 0)


@torch.no_grad()
def verify_windows(forecaster: Accountable, windows: Windows, count: int, seed: int = 0) -> tuple[int, int]:
    """Check evenly spaced windows one at a time; return how many were checked and how many failed."""
    generator = torch.Generator().manual_seed(seed)
    chosen = evenly_spaced(count, len(windows))
    failed = 0
    for start in windows.starts[chosen.to(windows.starts.device)]:
        window = windows.look_backs(start[None])
        failed += int(broken(forecaster, window, forecaster(window), generator).sum())
    return len(chosen), failed
