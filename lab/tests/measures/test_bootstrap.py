"""The paired bootstrap: exact cases, invariances, and how often its intervals contain the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core.errors import UsageError
from ibforecast_lab.measures.bootstrap import Difference, paired

DRAWS = 200
errors = st.lists(st.floats(0.01, 100), min_size=2, max_size=30).map(np.array)
seeds = st.integers(0, 2**32 - 1)


@given(errors, seeds)
def test_equal_errors_differ_by_exactly_zero(error: np.ndarray, seed: int) -> None:
    difference = paired(error, error.copy(), np.arange(1, len(error) + 1), DRAWS, seed)
    assert difference == Difference(0.0, 0.0, 0.0)
    assert difference.verdict == "level"


@given(errors, st.floats(0.1, 10), seeds)
def test_a_constant_ratio_has_an_interval_of_no_width(error: np.ndarray, ratio: float, seed: int) -> None:
    difference = paired(ratio * error, error, np.ones(len(error)), DRAWS, seed)
    assert [difference.value, difference.low, difference.high] == pytest.approx([ratio - 1] * 3, abs=1e-9)


@given(errors, seeds)
def test_units_do_not_matter_and_the_same_seed_gives_the_same_interval(error: np.ndarray, seed: int) -> None:
    other, weights = error[::-1].copy(), np.ones(len(error))
    first = paired(error, other, weights, DRAWS, seed)
    assert paired(error, other, weights, DRAWS, seed) == first
    assert vars(paired(4 * error, 4 * other, 2 * weights, DRAWS, seed)) == pytest.approx(vars(first), abs=1e-9)


def test_a_block_weighs_as_much_as_it_has_windows() -> None:
    difference = paired(np.array([1.0, 4.0]), np.array([1.0, 2.0]), np.array([3, 1]), DRAWS)
    assert difference.value == pytest.approx((3 * 1 + 4) / (3 * 1 + 2) - 1)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.2, -0.1, "ahead"), (-0.1, 0.1, "level"), (-0.1, 0.0, "level"), (0.0, 0.1, "level"), (0.1, 0.2, "behind")],
)
def test_a_lead_needs_an_interval_without_zero(low: float, high: float, verdict: str) -> None:
    assert Difference((low + high) / 2, low, high).verdict == verdict


def test_blocks_that_are_hard_for_both_do_not_widen_the_interval() -> None:
    random = np.random.default_rng(0)
    error, weights = random.lognormal(0, 1, 100), np.ones(100)
    noisy = 1.02 * error * random.normal(1, 0.01, 100)
    together = paired(noisy, error, weights, 1000)
    apart = paired(random.permutation(noisy), error, weights, 1000)
    assert together.verdict == "behind"
    assert together.high - together.low < (apart.high - apart.low) / 10


def test_intervals_contain_the_true_difference_about_as_often_as_they_say() -> None:
    random = np.random.default_rng(2024)
    truth, tables, blocks, covered = -0.05, 400, 80, 0
    for seed in range(tables):
        other = random.lognormal(0, 0.5, blocks)
        error = (1 + truth) * other * random.lognormal(-0.02, 0.2, blocks)  # a factor with mean 1
        difference = paired(error, other, random.integers(20, 25, blocks), 400, seed)
        covered += difference.low <= truth <= difference.high
    assert covered / tables == pytest.approx(0.95, abs=0.03)


def test_one_block_is_refused() -> None:
    with pytest.raises(UsageError, match="a bootstrap needs several blocks"):
        paired(np.ones(1), np.ones(1), np.ones(1))
