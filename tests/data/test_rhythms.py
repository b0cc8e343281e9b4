"""Cycles found in values: known ones in generated data, and none in noise."""

from collections.abc import Callable

import numpy as np
import pytest

from ibforecast.core.calendar import Frequency
from ibforecast.data.rhythms import FALSE_ALARMS, cycles_in, natural_lengths, rhythms_of

DAY_AND_WEEK = (24, 168)
Make = Callable[[np.random.Generator, int], np.ndarray]


def found(values: np.ndarray, natural: tuple[int, ...] = DAY_AND_WEEK) -> set[int]:
    return set(cycles_in(values, natural, FALSE_ALARMS))


def with_memory(random: np.random.Generator, rows: int) -> np.ndarray:
    """Return a process with a memory of a few steps."""
    values = random.normal(size=rows)
    for row in range(1, rows):
        values[row] += 0.8 * values[row - 1]
    return values


NOISE: dict[str, Make] = {
    "white": lambda random, rows: random.normal(size=rows),
    "walk": lambda random, rows: random.normal(size=rows).cumsum(),
    "smooth walk": lambda random, rows: random.normal(size=rows).cumsum().cumsum(),
    "memory": with_memory,
    "heavy tails": lambda random, rows: random.standard_t(1.5, size=rows),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("rows", [100, 600])
def test_at_most_one_series_of_noise_in_a_hundred_has_a_cycle(kind: str, rows: int) -> None:
    alarms = sum(bool(found(NOISE[kind](np.random.default_rng(seed), rows))) for seed in range(60))
    # Three of sixty is what one in a hundred exceeds with a chance of 1 in 300.
    assert alarms <= 3


@pytest.mark.parametrize("length", [7, 24, 25, 37])
@pytest.mark.parametrize("noise", [0.1, 0.7])
def test_a_sine_in_noise_and_drift_is_found_with_its_length(length: int, noise: float) -> None:
    random, row = np.random.default_rng(length), np.arange(3000)
    drift = 0.05 * random.normal(size=len(row)).cumsum()
    assert found(np.sin(2 * np.pi * row / length) + noise * random.normal(size=len(row)) + drift) == {length}


def test_a_week_is_found_next_to_a_day_and_not_in_a_day_that_changes_over_the_year() -> None:
    random, hour = np.random.default_rng(1), np.arange(5000)
    day, noise = np.sin(2 * np.pi * hour / 24), 0.3 * random.normal(size=len(hour))
    weekend = (hour // 24) % 7 >= 5
    assert found(day - weekend + noise) == {24, 168}
    assert found(day * (1 + 0.8 * np.sin(2 * np.pi * hour / 5000)) + noise) == {24}


def test_a_weak_cycle_of_one_channel_is_left_out_next_to_a_natural_one_of_more() -> None:
    random, hour = np.random.default_rng(4), np.arange(3000)
    days = np.sin(2 * np.pi * hour[:, None] / 24) + 0.3 * random.normal(size=(3000, 2))
    other, noise = np.sin(2 * np.pi * hour / 37), random.normal(size=3000)
    for size, lengths in ((0.65, {24}), (2.0, {24, 37})):
        values = np.column_stack([days, size * other + noise])
        alone = rhythms_of(values[:, 2:], Frequency(3600))
        assert [each.length for each in alone] == [37]
        assert {each.length for each in rhythms_of(values, Frequency(3600))} == lengths


def test_a_hundred_days_and_ten_years_of_months_are_enough() -> None:
    random, row = np.random.default_rng(2), np.arange(120)
    assert found(5.0 * (row % 7 > 4) + random.normal(size=120), (7,)) == {7}
    assert found(10 * np.sin(2 * np.pi * row / 12) + 0.5 * row + 2 * random.normal(size=120), (12,)) == {12}


def test_gaps_and_outliers_do_not_hide_a_cycle() -> None:
    random, hour = np.random.default_rng(3), np.arange(3000)
    values = np.sin(2 * np.pi * hour / 24) + 0.3 * random.normal(size=3000)
    values[random.choice(3000, 900, replace=False)] = np.nan
    values[[500, 1700]] = 1e6
    assert found(values) == {24}


def test_values_whose_squares_are_infinite_have_no_cycle() -> None:
    with np.errstate(all="ignore"):
        assert found(np.tile([1e200, -1e200, 3e199], 100), natural=()) == set()


@pytest.mark.parametrize("values", [np.full(500, np.nan), np.zeros(500), np.arange(8.0)], ids=["empty", "zero", "few"])
def test_a_channel_without_content_has_no_cycle(values: np.ndarray) -> None:
    assert found(values) == set()


@pytest.mark.parametrize(
    ("step", "lengths"),
    [("h", (24, 168)), ("15min", (96, 672)), ("d", (7, 365)), ("W", (52,)), ("MS", (12,)), ("QS", (4,)), ("7h", (24,))],
)
def test_natural_lengths_follow_the_step(step: str, lengths: tuple[int, ...]) -> None:
    assert natural_lengths(Frequency.parse(step)) == lengths
