"""The choice of an anchor: naive forecasts that are blended into those of a trained network.

For each channel, every naive forecast of `core.anchors`, from what the network read, is tried with the shares SHARES
on validation windows. The best one is kept if it makes the mean absolute error smaller by more than the margin. A
channel may still be forecast worse than naively, because a naive forecast is tried only from values that the network
reads: it cannot repeat a day of which it reads a fifth, nor a week that is longer than its look-back.

`steadied` gives such a channel a second choice: medians of the training rows. They are numbers of the model, so even a
week that is longer than the look-back can be repeated.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from ibforecast.core.anchors import anchor_names, median_cycles
from ibforecast.core.context import effect
from ibforecast.data.windows import Windows
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage1_decompose import Anchor

SHARES = (0.25, 0.5, 0.75, 1.0)
BATCH = 512


def anchored(network: IBForecast, validation: Windows, margin: float) -> IBForecast:
    """Return the network with the anchor that is best on these windows; the network itself if none is by the margin."""
    columns = torch.ones(network.config.channels, dtype=torch.bool, device=validation.values.device)
    other = grown(network)
    return _better(network, other, range(len(_anchor(other).blend)), validation, columns, margin)


def steadied(
    network: IBForecast,
    validation: Windows,
    trained: int,
    columns: Bool[Tensor, " channel"],
    longer: Sequence[int],
    margin: float,
) -> IBForecast:
    """Return the network with medians of training blended into some channels; itself if none is better by the margin.

    They are those of the first `trained` rows. Medians over the network's cycles are tried first, and then those over
    each `longer` cycle, next to what is best until then. The phases of the windows must be modulo the longest of them.
    """
    for added in ((), *((length,) for length in longer)):
        other = grown(network, medians=True, added_cycles=(*network.config.added_cycles, *added))
        table = _anchor(other).medians
        assert table is not None
        table[:, columns] = training_medians(other, validation, trained, columns)
        tried = _rows(network.config, other.config)
        fresh = [row for row in range(len(_anchor(other).blend)) if row not in tried]
        network = _better(network, other, fresh, validation, columns, margin)
    return network


@torch.no_grad()
def training_medians(
    network: IBForecast, windows: Windows, trained: int, columns: Bool[Tensor, " channel"]
) -> Float[Tensor, "phase column"]:
    """Return the medians of some channels in the first `trained` rows at each phase of the network's cycles.

    Effects of covariates known ahead are taken out. A phase without a value has the median of all rows, and a channel
    without any value 0, its mean in training.
    """
    values, phase = windows.values[:trained], windows.phase[:trained]
    if network.decompose.response is not None:
        assert windows.known is not None
        response = pad(network.decompose.response, (0, network.config.past))
        values = values - effect(windows.known[:trained], response, phase).sum(-2)
    values = values.masked_fill(~windows.observed[:trained], torch.nan)[:, columns]
    medians = torch.cat([_medians(values, phase % cycle, cycle) for cycle in median_cycles(network.config.cycles)])
    return medians.where(~medians.isnan(), _median(values)).nan_to_num(0.0)


def _medians(
    values: Float[Tensor, "row channel"], phase: Int[Tensor, " row"], cycle: int
) -> Float[Tensor, "cycle channel"]:
    """Return the median at each phase; NaN where there is no value."""
    counts: list[int] = torch.bincount(phase, minlength=cycle).tolist()
    return torch.stack([_median(part) for part in torch.split(values[phase.argsort(stable=True)], counts)])


def _median(values: Float[Tensor, "row channel"]) -> Float[Tensor, " channel"]:
    """Return the median of each channel, the mean of both middle values if there are two; NaN if there is no value."""
    if not len(values):
        return values.new_full((values.shape[1],), torch.nan)
    return (values.nanmedian(dim=0).values - (-values).nanmedian(dim=0).values) / 2


def grown(network: IBForecast, **changes: Any) -> IBForecast:
    """Return the network with room for naive forecasts: new ones have no shares, so that it forecasts the same.

    `changes` are those of its configuration. Tables of phases end with zeros for cycles that are added.
    """
    config = replace(network.config, anchored=True, **changes)
    with torch.random.fork_rng([]):
        other = type(network)(config)
    state = other.state_dict()
    for name, tensor in network.state_dict().items():
        missing = state[name].shape[:1].numel() - tensor.shape[:1].numel()
        state[name] = torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])]) if missing else tensor
    other.load_state_dict(state)
    if network.decompose.anchor is not None:
        _anchor(other).blend.zero_()[_rows(network.config, config)] = network.decompose.anchor.blend
    return other.to(network.gate.allowance.device).train(network.training)


def _rows(config: ModelConfig, other: ModelConfig) -> list[int]:
    """Return which rows of another network's shares have the naive forecasts of this one."""
    names, more = (anchor_names(each.cycles, each.look_back, each.medians) for each in (config, other))
    return [more.index(name) for name in names]


def _anchor(network: IBForecast) -> Anchor:
    anchor = network.decompose.anchor
    assert anchor is not None
    return anchor


def _better(
    network: IBForecast,
    other: IBForecast,
    rows: Sequence[int],
    validation: Windows,
    columns: Bool[Tensor, " channel"],
    margin: float,
) -> IBForecast:
    """Return the other network with the best blends of some channels; the network itself if none is by the margin.

    The other one is the same network with naive forecasts to blend in; those in some `rows` of its shares are tried.
    """
    if not len(validation):
        return network
    blend = _anchor(other).blend
    kept = blend.clone()  # the shares change while errors are measured
    own, blended = _errors(network, other, rows, validation)
    blend.copy_(kept)
    best = blended.flatten(0, 1).argmin(dim=0)
    smallest = blended.flatten(0, 1).gather(0, best[None])[0]
    chosen = columns.cpu() & (smallest < (1 - margin) * own)  # never in an empty channel, whose errors are not numbers
    for channel in chosen.nonzero().flatten().tolist():
        number, place = divmod(int(best[channel]), len(SHARES))
        blend[:, channel] *= 1 - SHARES[place]
        blend[rows[number], channel] += SHARES[place]
    return other if bool(chosen.any()) else network


@torch.no_grad()
def _errors(
    network: IBForecast, other: IBForecast, rows: Sequence[int], windows: Windows
) -> tuple[Float64[Tensor, " channel"], Float64[Tensor, "row share channel"]]:
    """Return the mean absolute error of each channel, and its error with each share of each naive forecast.

    `other` is the network with naive forecasts to blend in, and `rows` are the rows of their shares. Its shares change.
    """
    blend = _anchor(other).blend
    network.eval()
    own = torch.zeros(blend.shape[1], dtype=torch.float64, device=blend.device)
    seen, blended = torch.zeros_like(own), own.new_zeros(len(rows), len(SHARES), len(own))
    for window, target in windows.batches(windows.at_once(BATCH)):
        forecast = network(window)
        assert forecast.explanation is not None
        misses = (forecast.values - target.values).where(target.observed, 0.0)
        own += misses.abs().double().sum(dim=(0, 1))
        seen += target.observed.sum(dim=(0, 1))
        for number, row in enumerate(rows):
            blend.zero_()[row] = 1.0
            context, _ = other.decompose(other.seen(window, forecast.explanation.mask))
            full = context.restore(torch.zeros_like(forecast.values))
            for place, share in enumerate(SHARES):
                moved = share * (full - forecast.values).where(target.observed, 0.0)
                blended[number, place] += (misses + moved).abs().double().sum(dim=(0, 1))
    return (own / seen).cpu(), (blended / seen).cpu()
