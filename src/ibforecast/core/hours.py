"""Times of the day at which an empty cell of a table means 0, such as the night of a shop.

They are written as "22:00..05:30", both ends included, also beyond midnight, or as one time, "03:00". A time is that of
the wall clock.
"""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast.core.errors import UsageError

MINUTES_OF_DAY = 1440
SPAN = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?:\.\.([01][0-9]|2[0-3]):([0-5][0-9]))?")


def minutes_of(text: str) -> tuple[int, int]:
    """Return the first and the last minute of the day of a span; refuse another spelling."""
    match = SPAN.fullmatch(text)
    if match is None:
        raise UsageError(
            "zero_at must have times of the day", f"{text!r:.80}", "write 22:00..05:30, or 03:00 for a single one"
        )
    first = 60 * int(match[1]) + int(match[2])
    return first, first if match[3] is None else 60 * int(match[3]) + int(match[4])


def minutes(wall: Shaped[np.ndarray, " row"]) -> Int64[np.ndarray, " row"]:
    """Return the minute of the day of local moments."""
    return np.asarray((wall - wall.astype("datetime64[D]")) // np.timedelta64(1, "m"), dtype=np.int64)


def covered(spans: Sequence[str], wall: Shaped[np.ndarray, " row"]) -> Bool[np.ndarray, " row"]:
    """Return which of these local moments are in one of the spans."""
    minute, inside = minutes(wall), np.zeros(len(wall), dtype=bool)
    for first, last in map(minutes_of, spans):
        later, earlier = minute >= first, minute <= last
        inside |= (later & earlier) if first <= last else (later | earlier)
    return inside


def filled(
    values: Float64[np.ndarray, "row channel"], wall: Shaped[np.ndarray, " row"], spans: Sequence[str]
) -> Float64[np.ndarray, "row channel"]:
    """Return values with 0 instead of a missing one at the times of the spans."""
    return np.where(np.isnan(values) & covered(spans, wall)[:, None], 0.0, values) if spans else values
