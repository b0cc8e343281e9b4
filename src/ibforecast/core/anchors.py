"""The naive forecasts that an anchor may blend into a forecast, in the order of the rows of `Context.blend`.

The first are weighted sums of values that were read. The last ones, which few models have, are medians of training: of
all training rows, and of those at the same phase of each cycle. They are numbers of the model.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

NEWEST = "repeats the newest value that was read"
LINE = "continues the straight line through the oldest and the newest value that were read"
MEDIAN = "stays at the median of training"


def repeatable(cycles: Sequence[int], look_back: int) -> tuple[int, ...]:
    """Return the cycles that fit into the look-back and are longer than a step, the shortest first."""
    return tuple(sorted(cycle for cycle in cycles if 1 < cycle <= look_back))


def median_cycles(cycles: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of steps after which medians of training repeat: one, and the cycles."""
    return (1, *(cycle for cycle in cycles if cycle > 1))


def anchor_names(cycles: Sequence[int], look_back: int, medians: bool = False) -> tuple[str, ...]:
    """Return the name of each naive forecast: how it continues what was read, or which `medians` it repeats."""
    names = [f"repeats the last {cycle} steps, as far as they were read" for cycle in repeatable(cycles, look_back)]
    if medians:
        names += [
            MEDIAN,
            *(f"repeats the medians of training over {cycle} steps" for cycle in median_cycles(cycles)[1:]),
        ]
    return (NEWEST, LINE, *names)


def in_words(
    blend: Float[np.ndarray, "anchors channel"], cycles: Sequence[int], look_back: int, column: int
) -> Iterator[str]:
    """Yield, for each naive forecast in that of a channel, its share and its name."""
    names = anchor_names(cycles, look_back, medians=True)
    for name, share in zip(names, blend[:, column].tolist(), strict=False):  # medians of training, if any, are last
        if share:
            yield f"{share:.0%} {name}"
