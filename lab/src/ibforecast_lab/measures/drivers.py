"""Recovery of planted drivers: by the maps of factors and their loadings, and by the sizes of `Drivers`."""

from itertools import permutations
from math import inf
from typing import Literal

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ibforecast.core.errors import require
from ibforecast.drivers import Drivers
from ibforecast_lab.measures.recovery import areas


def driver_auroc(
    maps: Float[Tensor, "window map patch channel"], support: Bool[Tensor, "window driver patch channel"]
) -> Float64[Tensor, "map driver"]:
    """Return the area under the ROC curve of every map for every driver's support, over the tokens of all windows."""
    guesses, truths = _rows(maps), _rows(support)
    marked = truths.sum(dim=1)
    require(
        bool((marked > 0).all() and (marked < truths.shape[1]).all()),
        "the support of a driver must mark some tokens and not all",
        f"{marked.tolist()} of {truths.shape[1]} tokens",
        "draw more windows",
    )
    pairs = areas(guesses.double().repeat_interleave(len(truths), dim=0), truths.repeat(len(guesses), 1))
    return pairs.auroc.view(len(guesses), len(truths))


def alignment(
    learned: Float[Tensor, "horizon map channel"], loading: Float[Tensor, "horizon driver channel"]
) -> Float64[Tensor, "map driver"]:
    """Return the absolute cosine of every learned loading with every true one; the sign of a state is arbitrary."""
    one, other = _rows(learned).double(), _rows(loading).double()
    lengths = one.norm(dim=1)[:, None] * other.norm(dim=1)
    aligned: Tensor = (one @ other.T).abs() / lengths.clamp(min=1e-300)
    return aligned


def matched(scores: Float[Tensor, "map driver"]) -> tuple[int, ...]:
    """Return the map of each driver: the assignment without repetition that has the largest sum of scores."""
    maps, drivers = scores.shape
    require(maps >= drivers, "there must be a map for every driver", f"{maps} maps, {drivers} drivers", "use more maps")
    best, most = tuple(range(drivers)), -inf
    for order in permutations(range(maps), drivers):
        total = float(scores[list(order), range(drivers)].sum())
        if total > most:
            best, most = order, total
    return best


def _rows(array: Float[Tensor, "some map *rest"] | Bool[Tensor, "some map *rest"]) -> Tensor:
    return array.transpose(0, 1).flatten(1)


def size_maps(
    drivers: Drivers,
    channels: tuple[str, ...],
    look_back: int,
    patch_len: int,
    measure: Literal["size", "read"] = "size",
) -> Float64[Tensor, "forecast patch channel"]:
    """Return the sizes of what moves each channel that is forecast, by patch and source; 0 where nothing is read.

    With the measure "read" they are the shares of windows that read each place.
    """
    forecast, patches = drivers.channels, look_back // patch_len
    sizes = torch.zeros(len(forecast), patches, len(channels), dtype=torch.float64)
    for row in drivers.rows:
        if row.steps_back is not None:
            patch = patches - 1 - row.steps_back // patch_len
            sizes[forecast.index(row.channel), patch, channels.index(row.source)] = getattr(row, measure)
    return sizes


def source_sizes(drivers: Drivers, channels: tuple[str, ...]) -> Float64[Tensor, "forecast channel"]:
    """Return the sizes of what moves each channel that is forecast, by source as a whole; 0 where nothing is read."""
    sizes = torch.zeros(len(drivers.channels), len(channels), dtype=torch.float64)
    for source in drivers.sources():
        if source.source in channels:
            sizes[drivers.channels.index(source.channel), channels.index(source.source)] = source.size
    return sizes


def size_auroc(
    sizes: Float64[Tensor, "forecast patch channel"],
    support: Bool[Tensor, "forecast patch channel"],
    judged: Bool[Tensor, "forecast patch channel"],
) -> Float64[Tensor, " forecast"]:
    """Return the area under the ROC curve of the sizes for the planted support of each channel, over judged places."""
    scored = [
        areas(one[use][None], truth[use][None]).auroc for one, truth, use in zip(sizes, support, judged, strict=True)
    ]
    return torch.cat(scored)
