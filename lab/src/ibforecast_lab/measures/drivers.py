"""Separation of planted drivers: which map recovers which driver, and whether its loading is that driver's."""

from itertools import permutations
from math import inf

from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ibforecast.core.errors import require
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
