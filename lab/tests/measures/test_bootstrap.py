"""The paired bootstrap: exact cases, invariances, and how often its intervals contain the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core.errors import UsageError
from ibforecast_lab.measures.bootstrap import FEWEST_RUNS, Difference, paired

DRAWS = 100
runs, seeds = st.integers(1, 7), st.integers(0, 2**32 - 1)
errors = st.lists(st.floats(0.01, 100), min_size=7 * FEWEST_RUNS, max_size=60).map(np.array)


@given(errors, runs, seeds)
def test_equal_errors_differ_by_exactly_zero(error: np.ndarray, run: int, seed: int) -> None:
    difference = paired(error, error.copy(), np.arange(1, len(error) + 1), DRAWS, seed, run)
    assert difference == Difference(0.0, 0.0, 0.0)
    assert difference.verdict == "level"


@given(errors, st.floats(0.1, 10), runs, seeds)
def test_a_constant_ratio_has_an_interval_of_no_width(error: np.ndarray, ratio: float, run: int, seed: int) -> None:
    difference = paired(ratio * error, error, np.ones(len(error)), DRAWS, seed, run)
    assert [difference.value, difference.low, difference.high] == pytest.approx([ratio - 1] * 3, abs=1e-9)


@given(errors, runs, seeds)
def test_units_do_not_matter_and_the_same_seed_gives_the_same_interval(error: np.ndarray, run: int, seed: int) -> None:
    other, weights = error[::-1].copy(), np.ones(len(error))
    first = paired(error, other, weights, DRAWS, seed, run)
    assert paired(error, other, weights, DRAWS, seed, run) == first
    assert vars(paired(4 * error, 4 * other, 2 * weights, DRAWS, seed, run)) == pytest.approx(vars(first), abs=1e-9)


def test_a_block_weighs_as_much_as_it_has_windows() -> None:
    error, other, weights = np.array([1.0, 4, 1, 1]), np.array([1.0, 2, 1, 1]), np.array([3, 1, 2, 2])
    assert paired(error, other, weights, DRAWS, run=1).value == pytest.approx((3 + 4 + 2 + 2) / (3 + 2 + 2 + 2) - 1)


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


def coverage(run: int, shared: bool, tables: int = 300, blocks: int = 200, truth: float = -0.05) -> float:
    """Return how often the interval contains the truth; `shared` noise is half that of the block before."""
    random, covered = np.random.default_rng(2024), 0
    for seed in range(tables):
        other, noise = random.lognormal(0, 0.5, blocks), random.normal(0, 0.2, blocks + 1)
        noise = (noise[1:] + noise[:-1]) / 2 if shared else noise[1:]
        difference = paired((1 + truth + noise) * other, other, random.integers(20, 25, blocks), 300, seed, run)
        covered += difference.low <= truth <= difference.high
    return covered / tables


@pytest.mark.parametrize(("run", "shared"), [(1, False), (7, False), (7, True)])
def test_intervals_contain_the_true_difference_about_as_often_as_they_say(run: int, shared: bool) -> None:
    assert coverage(run, shared) == pytest.approx(0.95, abs=0.035)


def test_without_runs_the_intervals_are_too_short_if_neighbours_share_their_noise() -> None:
    assert coverage(run=1, shared=True) < 0.88


def test_too_few_blocks_are_refused() -> None:
    with pytest.raises(UsageError, match=r"runs of 7 needs at least 28 blocks \(got 27\)"):
        paired(np.ones(27), np.ones(27), np.ones(27))
