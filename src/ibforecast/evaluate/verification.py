"""Is the explanation the truth? Compute the forecast again from it, and scramble everything it says was not read."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ibforecast.core.contracts import Accountable
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import closed_to_zero, spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.chosen import evenly_spaced


def scrambled(window: Window, explanation: Explanation, generator: torch.Generator) -> Explanation:
    """What the explanation would be had every closed token held noise, with context and mask held."""
    context, mask = explanation.context, explanation.mask
    size = 10 * (window.values.abs().amax() + 1)
    noise = size * torch.randn(window.values.shape, generator=generator).to(window.values)
    values = window.values.where(spread(mask, window.values.shape[1] // mask.shape[1]), noise)
    return replace(explanation, evidence=closed_to_zero(mask, context.remove(values)))


def bits_changed(
    one: Float[Tensor, "batch horizon channel"], other: Float[Tensor, "batch horizon channel"]
) -> Bool[Tensor, "batch horizon channel"]:
    """Mark the values that differ by as much as a bit; NaN equals nothing, the sign of zero counts."""
    return (one.view(torch.int32) != other.view(torch.int32)) | one.isnan() | other.isnan()


@torch.no_grad()
def broken(
    forecaster: Accountable, window: Window, forecast: Forecast, generator: torch.Generator
) -> Bool[Tensor, " batch"]:
    """Mark the windows whose forecast is not what its explanation gives, scrambled closed tokens or not."""
    assert forecast.explanation is not None
    # Another window first, so that a forecaster that remembers the last one it saw is found out.
    forecaster(replace(window, values=torch.randn(window.values.shape, generator=generator).to(window.values)))
    again = forecaster.replay(forecast.explanation)
    noisy = forecaster.replay(scrambled(window, forecast.explanation, generator))
    changed = bits_changed(again, forecast.values) | bits_changed(noisy, forecast.values)
    return changed.flatten(1).any(dim=1)


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
