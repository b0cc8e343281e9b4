"""Are planted drivers told apart? Which map finds which driver, and whether it moves what that driver moves."""

from itertools import permutations
from math import inf

from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ibforecast.core.errors import require
from ibforecast_lab.measures.recovery import areas


def found(
    maps: Float[Tensor, "window map patch channel"], support: Bool[Tensor, "window driver patch channel"]
) -> Float64[Tensor, "map driver"]:
    """Area under the ROC curve of every map as a guess at every driver's support, over all tokens of all windows."""
    guesses, truths = _rows(maps), _rows(support)
    marked = truths.sum(dim=1)
    require(
        bool((marked > 0).all() and (marked < truths.shape[1]).all()),
        "a driver must show somewhere and not everywhere",
        f"{marked.tolist()} of {truths.shape[1]} tokens",
        "draw more windows",
    )
    pairs = areas(guesses.double().repeat_interleave(len(truths), dim=0), truths.repeat(len(guesses), 1))
    return pairs.auroc.view(len(guesses), len(truths))


def alignment(
    learned: Float[Tensor, "horizon map channel"], loading: Float[Tensor, "horizon driver channel"]
) -> Float64[Tensor, "map driver"]:
    """Cosine of every learned loading with every true one, without its sign: a state may be learned upside down."""
    one, other = _rows(learned).double(), _rows(loading).double()
    lengths = one.norm(dim=1)[:, None] * other.norm(dim=1)
    aligned: Tensor = (one @ other.T).abs() / lengths.clamp(min=1e-300)
    return aligned


def matched(scores: Float[Tensor, "map driver"]) -> tuple[int, ...]:
    """The map of each driver, no map twice, for which the scores sum to most."""
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
