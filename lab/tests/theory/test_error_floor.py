"""The error floor on Gaussian models: it holds, can be attained, and fails without its assumptions.

Relevance is compared with determinants of joint covariances, errors with least squares on samples, so that no number is
checked against itself.
"""

from itertools import combinations
from math import e, log, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibforecast.core.errors import UsageError
from ibforecast_lab.theory.error_floor import (
    LinearGaussian,
    budget_curve,
    echo_model,
    error_floor,
    floor_at_rate,
    noisy_disclosure,
    quantised_disclosure,
    rate_curve,
)

modest = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10**6)


def random_gaussian(seed: int, tokens: int = 5, horizon: int = 3) -> LinearGaussian:
    random = np.random.default_rng(seed)

    def covariance(size: int) -> np.ndarray:
        root = random.normal(size=(size, size + 1))
        return np.asarray(root @ root.T + 0.1 * np.eye(size))

    return LinearGaussian(covariance(tokens), random.normal(size=(horizon, tokens)), covariance(horizon))


def selections(tokens: int) -> list[tuple[int, ...]]:
    return [opened for size in range(tokens + 1) for opened in combinations(range(tokens), size)]


@modest
@given(SEEDS)
def test_no_selection_of_tokens_has_an_error_below_its_floor(seed: int) -> None:
    model = random_gaussian(seed)
    for opened in selections(5):
        assert model.floor(opened) <= model.attained(opened) * (1 + 1e-9)


@modest
@given(SEEDS)
def test_relevance_equals_that_of_determinants_of_joint_covariances(seed: int) -> None:
    model = random_gaussian(seed)
    cross = model.weights @ model.tokens
    for opened in selections(5):
        read = list(opened)
        joint = np.block([[model.tokens[np.ix_(read, read)], cross[:, read].T], [cross[:, read], model.future]])
        parts = [np.linalg.slogdet(part)[1] for part in (model.tokens[np.ix_(read, read)], model.future, joint)]
        assert model.relevance(opened) == pytest.approx((parts[0] + parts[1] - parts[2]) / 2, abs=1e-8)


@pytest.mark.parametrize("opened", [(), (1,), (7,), (1, 7), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_the_best_error_equals_that_of_least_squares_on_samples(opened: tuple[int, ...]) -> None:
    model, random, count = echo_model(), np.random.default_rng(0), 40_000
    tokens = random.multivariate_normal(np.zeros(8), model.tokens, count)
    future = tokens @ model.weights.T + random.multivariate_normal(np.zeros(4), model.noise, count)
    half = count // 2
    read = np.column_stack([np.ones(count), tokens[:, list(opened)]])
    fitted = np.linalg.lstsq(read[:half], future[:half], rcond=None)[0]
    error = float(((future[half:] - read[half:] @ fitted) ** 2).sum(axis=1).mean())
    assert error == pytest.approx(model.attained(opened), rel=0.03)
    assert error > model.floor(opened)


def test_the_floor_is_attained_if_the_remaining_covariance_is_isotropic() -> None:
    random = np.random.default_rng(1)
    model = LinearGaussian(np.eye(3), random.normal(size=(4, 3)), 0.3 * np.eye(4))
    assert model.floor((0, 1, 2)) == pytest.approx(model.attained((0, 1, 2))) == pytest.approx(4 * 0.3)
    assert model.floor((0,)) < model.attained((0,)) - 0.1


@modest
@given(SEEDS)
def test_the_larger_of_nested_selections_has_the_smaller_error_and_floor(seed: int) -> None:
    model = random_gaussian(seed)
    for larger in selections(5):
        for left_out in larger:
            smaller = tuple(token for token in larger if token != left_out)
            assert model.attained(larger) <= model.attained(smaller) * (1 + 1e-9)
            assert model.floor(larger) <= model.floor(smaller) * (1 + 1e-9)


def test_the_best_error_never_grows_with_the_budget() -> None:
    curve = budget_curve(echo_model())
    for errors in (curve.floor, curve.attained, curve.newest):
        assert (np.diff(errors) <= 1e-12).all()
    assert (curve.floor <= curve.attained).all()
    assert (curve.attained <= curve.newest + 1e-12).all()
    for size, error in zip(curve.selections, curve.errors, strict=True):
        assert error >= curve.attained[size] - 1e-12


def test_a_larger_selection_that_is_not_nested_may_be_worse() -> None:
    """Part 2 is about nested selections and the best one: a selection is not better because it is larger."""
    model = echo_model()
    assert model.attained((0, 2, 3, 4, 5, 6)) > model.attained((1, 7)) + 0.5


def test_a_forecaster_that_reads_more_than_its_explanation_can_get_below_the_floor() -> None:
    """The bound is for Ŷ = g(E; 𝒞), so a forecaster that breaks this contract can break the bound."""
    model = echo_model()
    assert model.attained(tuple(range(8))) < model.floor((3,))


def test_a_uniform_future_stays_above_the_floor() -> None:
    """Uniform on a known interval of width w: h = log w, the error is w²/12, and the floor is 0.70 times that."""
    width = 2.5
    assert error_floor(log(width), 0.0, 1) == pytest.approx(width**2 / 12 * 12 / (2 * pi * e))
    assert 12 / (2 * pi * e) == pytest.approx(0.703, abs=1e-3)


@modest
@given(st.floats(0.05, 0.99), st.floats(0.01, 20.0))
def test_a_token_with_noise_attains_the_floor_of_its_rate(correlation: float, noise: float) -> None:
    rate, error = noisy_disclosure(correlation, noise)
    assert error == pytest.approx(floor_at_rate(correlation, rate), rel=1e-9)
    # The same from the joint covariance of (token with noise, token, future).
    joint = np.array([[1 + noise, 1, correlation], [1, 1, correlation], [correlation, correlation, 1]])
    assert error == pytest.approx(1 - joint[0, 2] ** 2 / joint[0, 0])
    assert rate == pytest.approx(-0.5 * log(1 - joint[0, 1] ** 2 / (joint[0, 0] * joint[1, 1])), rel=1e-6)


@modest
@given(st.floats(0.05, 0.99), st.integers(2, 40))
def test_cells_stay_above_the_floor_of_their_rate(correlation: float, cells: int) -> None:
    rate, error = quantised_disclosure(correlation, cells)
    assert rate == pytest.approx(log(cells))
    assert error > floor_at_rate(correlation, rate)
    assert error > 1 - correlation**2


def test_the_error_of_cells_equals_that_of_samples() -> None:
    random, cells, correlation = np.random.default_rng(0), 4, 0.8
    token = random.normal(size=200_000)
    future = correlation * token + np.sqrt(1 - correlation**2) * random.normal(size=len(token))
    cell = np.searchsorted(np.quantile(token, np.arange(1, cells) / cells), token)
    means = np.array([future[cell == which].mean() for which in range(cells)])
    assert ((future - means[cell]) ** 2).mean() == pytest.approx(quantised_disclosure(correlation, cells)[1], rel=0.01)


def test_more_bits_lower_the_floor_to_the_error_of_the_whole_token() -> None:
    curve = rate_curve(0.8, most_bits=8.0)
    assert curve.floor[0] == pytest.approx(1)
    assert (np.diff(curve.floor) < 0).all()
    assert curve.floor[-1] == pytest.approx(1 - 0.8**2, abs=1e-4)


def test_invalid_models_are_refused() -> None:
    with pytest.raises(UsageError, match="positive definite"):
        LinearGaussian(np.ones((2, 2)), np.ones((1, 2)), np.eye(1))
    with pytest.raises(UsageError, match="up to 12"):
        budget_curve(LinearGaussian(np.eye(13), np.ones((1, 13)), np.eye(1)))
