"""The choice of an anchor: naive forecasts that are blended into those of a trained network.

For each channel, every naive forecast of `core.anchors`, from what the network read, is tried with the shares SHARES
on validation windows. The best one is kept if it makes the mean absolute error smaller by more than the margin. A
channel may still be forecast worse than naively, because a naive forecast is tried only from values that the network
reads: a network that does not read the newest value cannot repeat it, nor a day or week that is not in its look-back.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from ibforecast.data.windows import Windows
from ibforecast.model.network import IBForecast

SHARES = (0.25, 0.5, 0.75, 1.0)
BATCH = 512


def anchored(network: IBForecast, validation: Windows, margin: float) -> IBForecast:
    """Return the network with the anchor that is best on these windows; the network itself if none is by the margin."""
    if not len(validation):
        return network
    with torch.random.fork_rng([]):
        other = type(network)(replace(network.config, anchored=True))
    other.load_state_dict({**other.state_dict(), **network.state_dict()})
    other.to(validation.values.device).train(network.training)
    assert other.decompose.anchor is not None
    blend = other.decompose.anchor.blend
    own, blended = _errors(network, other, blend, validation)
    best = blended.flatten(0, 1).argmin(dim=0)
    smallest = blended.flatten(0, 1).gather(0, best[None])[0]
    chosen = smallest < (1 - margin) * own  # never in an empty channel, whose errors are not numbers
    blend.zero_()
    for channel in chosen.nonzero().flatten().tolist():
        anchor, share = divmod(int(best[channel]), len(SHARES))
        blend[anchor, channel] = SHARES[share]
    return other if bool(chosen.any()) else network


@torch.no_grad()
def _errors(
    network: IBForecast, other: IBForecast, blend: Float[Tensor, "anchors channel"], windows: Windows
) -> tuple[Float64[Tensor, " channel"], Float64[Tensor, "anchors share channel"]]:
    """Return the mean absolute error of each channel, and those with each share of each naive forecast.

    `other` is the network with an anchor, whose shares are `blend`; they are changed.
    """
    network.eval()
    own = torch.zeros(blend.shape[1], dtype=torch.float64, device=blend.device)
    seen, blended = torch.zeros_like(own), own.new_zeros(len(blend), len(SHARES), len(own))
    for window, target in windows.batches(windows.at_once(BATCH)):
        forecast = network(window)
        assert forecast.explanation is not None
        misses = (forecast.values - target.values).where(target.observed, 0.0)
        own += misses.abs().double().sum(dim=(0, 1))
        seen += target.observed.sum(dim=(0, 1))
        for anchor in range(len(blend)):
            blend.zero_()[anchor] = 1.0
            context, _ = other.decompose(other.seen(window, forecast.explanation.mask))
            full = context.restore(torch.zeros_like(forecast.values))
            for place, share in enumerate(SHARES):
                moved = share * (full - forecast.values).where(target.observed, 0.0)
                blended[anchor, place] += (misses + moved).abs().double().sum(dim=(0, 1))
    return (own / seen).cpu(), (blended / seen).cpu()
