"""The naive forecasts that an anchor may blend into a forecast, in the order of the rows of `Context.blend`."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

NEWEST = "repeats the newest value that was read"
LINE = "continues the straight line through the oldest and the newest value that were read"


def repeatable(cycles: Sequence[int], look_back: int) -> tuple[int, ...]:
    """Return the cycles that fit into the look-back and are longer than a step, the shortest first."""
    return tuple(sorted(cycle for cycle in cycles if 1 < cycle <= look_back))


def anchor_names(cycles: Sequence[int], look_back: int) -> tuple[str, ...]:
    """Return the name of each naive forecast: how it continues what was read."""
    return (
        NEWEST,
        LINE,
        *(f"repeats the last {cycle} steps, as far as they were read" for cycle in repeatable(cycles, look_back)),
    )


def in_words(
    blend: Float[np.ndarray, "anchors channel"], cycles: Sequence[int], look_back: int, column: int
) -> Iterator[str]:
    """Yield, for each naive forecast in that of a channel, its share and its name."""
    for name, share in zip(anchor_names(cycles, look_back), blend[:, column].tolist(), strict=True):
        if share:
            yield f"{share:.0%} {name}"
