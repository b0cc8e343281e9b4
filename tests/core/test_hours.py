"""Times of the day at which an empty cell means 0: how they are written, and which moments they cover."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from ibforecast.core.errors import UsageError
from ibforecast.core.hours import MINUTES_OF_DAY, covered, filled, minutes_of

DAY = np.datetime64("2024-03-01", "us") + np.arange(MINUTES_OF_DAY) * np.timedelta64(1, "m")


def written(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


@given(some.integers(0, MINUTES_OF_DAY - 1), some.integers(0, MINUTES_OF_DAY - 1))
def test_a_span_covers_every_minute_from_its_first_to_its_last_one_also_beyond_midnight(first: int, last: int) -> None:
    span = f"{written(first)}..{written(last)}"
    assert minutes_of(span) == (first, last)
    count = (last - first) % MINUTES_OF_DAY + 1
    assert set(np.flatnonzero(covered([span], DAY))) == {(first + step) % MINUTES_OF_DAY for step in range(count)}


def test_a_single_time_covers_its_minute_and_several_spans_are_joined() -> None:
    assert np.flatnonzero(covered(["03:00", "23:59..00:01"], DAY)).tolist() == [0, 1, 180, 1439]
    assert not covered([], DAY).any()


def test_only_missing_values_at_these_times_become_zero() -> None:
    values = np.array([[np.nan, 1.0], [2.0, np.nan], [np.nan, np.nan]])
    assert np.array_equal(
        filled(values, DAY[:3], ["00:00..00:01"]), [[0.0, 1.0], [2.0, 0.0], [np.nan, np.nan]], equal_nan=True
    )
    assert filled(values, DAY[:3], []) is values


@pytest.mark.parametrize("text", ["night", "24:00", "5:00", "22:00-05:00", "22:00..", "22..5", "", "00:00..00:60"])
def test_another_spelling_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"write 22:00\.\.05:30"):
        minutes_of(text)
