"""The theorems where every quantity can be computed: they hold, can be tight, and fail without their assumptions.

Informations are compared with scikit-learn's and with determinants of joint covariances, errors with least squares on
drawn samples, so that no number is checked against itself.
"""

from collections.abc import Callable, Hashable
from itertools import combinations, product
from math import e, log, log2, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from ibforecast.core.errors import UsageError
from ibforecast_lab.plots.theory import budget_png, rate_png, rate_saving_png
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
from ibforecast_lab.theory.rate_saving import (
    TOY_EXPLANATIONS,
    Joint,
    Outcome,
    assembled,
    rate_saving,
    toy,
    toy_context,
    toy_future,
    toy_remainder,
    toy_windows,
)

modest = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10**6)
NAMES = ("X", "C", "D", "E", "Y")


def by_library(joint: Joint, one: str, other: str, given: str | None = None) -> float:
    """I(one; other | given) in bits, table by table, by scikit-learn."""
    places = {name: joint.names.index(name) for name in joint.names}
    tables: dict[Hashable, dict[tuple[Hashable, Hashable], float]] = {}
    for outcome, p in joint.outcomes.items():
        table = tables.setdefault(outcome[places[given]] if given else None, {})
        cell = (outcome[places[one]], outcome[places[other]])
        table[cell] = table.get(cell, 0.0) + p
    total = 0.0
    for table in tables.values():
        rows, columns = sorted({a for a, _ in table}, key=repr), sorted({b for _, b in table}, key=repr)
        weights = np.array([[table.get((a, b), 0.0) for b in columns] for a in rows])
        counts = np.round(2.0**30 * weights / weights.sum()).astype(np.int64)  # it wants counts
        total += weights.sum() * mutual_info_score(None, None, contingency=counts) / log(2)
    return total


def random_model(seed: int) -> Joint:
    """A model that keeps the paper's assumptions and is otherwise arbitrary."""
    random = np.random.default_rng(seed)

    def simplex(values: list[Hashable]) -> dict[Hashable, float]:
        return dict(zip(values, random.dirichlet(np.full(len(values), 0.5)).tolist(), strict=True))

    pairs = list(toy_windows())
    windows = dict(zip(pairs, random.dirichlet(np.ones(len(pairs))).tolist(), strict=True))
    explained = {(toy_remainder(pair), toy_context(pair)): simplex([0, 1, 2]) for pair in pairs}
    futures = {pair: simplex([0, 1, 3]) for pair in pairs}
    return assembled(windows, toy_context, toy_remainder, lambda d, c: explained[d, c], lambda x: futures[x])


def with_changed(joint: Joint, name: str, told: Callable[..., Hashable]) -> Joint:
    """The same model, one variable replaced by a function of all of them."""
    place, outcomes = joint.names.index(name), dict[Outcome, float]()
    for outcome, p in joint.outcomes.items():
        changed = (*outcome[:place], told(**dict(zip(joint.names, outcome, strict=True))), *outcome[place + 1 :])
        outcomes[changed] = outcomes.get(changed, 0.0) + p
    return Joint(joint.names, outcomes)


def with_coin(joint: Joint, told: Callable[[Outcome, int], Outcome]) -> Joint:
    """The same model and a fair coin of its own, put in somewhere."""
    outcomes = dict[Outcome, float]()
    for (outcome, p), coin in product(joint.outcomes.items(), (0, 1)):
        changed = told(outcome, coin)
        outcomes[changed] = outcomes.get(changed, 0.0) + p / 2
    return Joint(joint.names, outcomes)


# Exact rate saving (thm:rate).


@modest
@given(SEEDS)
def test_informations_are_those_another_library_finds(seed: int) -> None:
    joint = random_model(seed)
    for one, other in combinations(NAMES, 2):
        assert joint.information(one, other) == pytest.approx(by_library(joint, one, other), abs=1e-6)
    for one, other in (("X", "E"), ("D", "E"), ("E", "Y")):
        assert joint.information(one, other, given="C") == pytest.approx(by_library(joint, one, other, "C"), abs=1e-6)


@modest
@given(SEEDS)
def test_what_disclosing_the_context_saves_is_what_the_explanation_tells_of_it(seed: int) -> None:
    told = rate_saving(random_model(seed))
    assert told.saved == pytest.approx(told.context_rate, abs=1e-9)
    assert told.context_rate >= -1e-12


@modest
@given(SEEDS)
def test_the_saving_is_at_least_the_predictive_information_that_goes_through_the_context(seed: int) -> None:
    told = rate_saving(random_model(seed))
    assert told.context_rate >= told.routed - 1e-9
    assert told.context_rate >= told.least - 1e-9


def test_both_inequalities_can_be_strict_and_both_can_be_tight() -> None:
    loose = rate_saving(random_model(0))
    assert loose.context_rate > loose.routed + 1e-3
    assert loose.context_rate > loose.least + 1e-3
    tight = rate_saving(toy("first value, no frame"))
    assert tight.context_rate == pytest.approx(tight.routed) == pytest.approx(tight.least) == pytest.approx(1)


@pytest.mark.parametrize("explanation", TOY_EXPLANATIONS)
def test_in_the_toy_the_bits_add_up(explanation: str) -> None:
    joint = toy(explanation)
    told = rate_saving(joint)
    assert told.rate == pytest.approx(told.context_rate + told.conditional_rate, abs=1e-12)
    assert told.rate == pytest.approx(by_library(joint, "X", "E"), abs=1e-6)
    assert told.conditional_rate == pytest.approx(by_library(joint, "D", "E", "C"), abs=1e-6)
    assert told.context_rate == pytest.approx(by_library(joint, "C", "E"), abs=1e-6)


def test_by_hand_a_value_without_a_frame_pays_one_bit_for_the_level() -> None:
    framed, raw = rate_saving(toy("first deviation")), rate_saving(toy("first value, no frame"))
    assert raw.context_rate == pytest.approx(1)
    entropy = (1 - 0.25 * log2(0.25) - 0.75 * log2(0.75)) / 2  # of the first deviation, on average over both levels
    assert raw.conditional_rate == pytest.approx(entropy)
    assert framed.conditional_rate == pytest.approx(raw.conditional_rate)  # given the level they say the same
    assert framed.conditional_relevance == pytest.approx(raw.conditional_relevance)
    assert framed.rate < raw.rate - 0.9


def test_nothing_is_saved_only_where_the_explanation_is_independent_of_the_context() -> None:
    second = assembled(toy_windows(), toy_context, toy_remainder, lambda d, c: {d[1]: 1.0}, toy_future)
    assert rate_saving(second).saved == pytest.approx(0, abs=1e-12)  # the second value deviates alike at both levels
    assert rate_saving(toy("first deviation")).saved > 0.04


def test_the_appendix_has_the_sign_right_and_the_main_text_has_not() -> None:
    """To know all that can be known, an explanation without a frame pays I(𝒞;Y) bits; −I(𝒞;Y) − ε binds nobody."""
    told = rate_saving(toy("whole window, no frame"))
    assert told.shortfall == pytest.approx(0, abs=1e-12)
    assert told.context_rate == pytest.approx(told.context_relevance) == pytest.approx(1)
    printed = -told.context_relevance - told.shortfall
    assert printed < 0 < told.least
    free_rider = assembled(toy_windows(), toy_context, toy_remainder, lambda d, c: {0: 1.0}, toy_future)
    nothing = rate_saving(free_rider)
    assert nothing.context_rate >= nothing.least - 1e-12  # it tells nothing, so it is far from sufficient
    assert nothing.least == pytest.approx(-by_library(free_rider, "D", "Y", "C"), abs=1e-6)


def test_a_context_that_is_no_function_of_the_window_breaks_the_equality() -> None:
    def flipped(outcome: Outcome, coin: int) -> Outcome:
        x, c, d, _, y = outcome
        return x, (c, coin), d, coin, y

    told = rate_saving(with_coin(toy("first deviation"), flipped))
    assert told.saved == pytest.approx(0, abs=1e-12)
    assert told.context_rate == pytest.approx(1)


def test_a_remainder_that_does_not_give_the_window_back_breaks_the_equality() -> None:
    told = rate_saving(with_changed(toy("whole window, no frame"), "D", lambda **named: named["D"][0]))
    assert told.saved == pytest.approx(told.context_rate + 1)  # the second deviation, forgotten, looks like a saving


def test_an_explanation_that_peeks_at_the_future_needs_no_context() -> None:
    def peeking(outcome: Outcome, coin: int) -> Outcome:
        x, c, d, _, _ = outcome
        return x, c, d, coin, (c, coin)

    joint = with_coin(toy("first deviation"), peeking)
    told = rate_saving(joint)
    assert told.shortfall == pytest.approx(0, abs=1e-12)
    assert told.context_rate == pytest.approx(0, abs=1e-12)
    assert told.context_rate < told.least - 0.9
    assert joint.information("E", "Y", given="C") > joint.information("D", "Y", given="C") + 0.9


# The lemma: the remainder knows all that an explanation can, more tokens never less, and the future in its frame is
# as good as the future.


@modest
@given(SEEDS)
def test_no_explanation_knows_more_than_the_remainder(seed: int) -> None:
    joint = random_model(seed)
    assert joint.information("E", "Y", given="C") <= joint.information("D", "Y", given="C") + 1e-9
    assert joint.information("E", "Y", given=("D", "C")) == pytest.approx(0, abs=1e-9)


@modest
@given(SEEDS)
def test_a_larger_selection_is_never_less_relevant_and_a_frame_on_the_future_changes_nothing(seed: int) -> None:
    joint = random_model(seed)
    shown = [
        with_changed(joint, "E", lambda chosen=chosen, **named: tuple(named["D"][place] for place in chosen))
        for chosen in ((), (0,), (0, 1))
    ]
    relevance = [each.information("E", "Y", given="C") for each in shown]
    assert relevance[0] == pytest.approx(0, abs=1e-9)
    assert relevance == sorted(relevance)
    framed = with_changed(joint, "Y", lambda **named: named["Y"] - named["C"])
    assert framed.information("E", "Y", given="C") == pytest.approx(joint.information("E", "Y", given="C"), abs=1e-9)


def test_probabilities_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(UsageError, match="add up to 1"):
        Joint(("X",), {(0,): 0.5, (1,): 0.4})
    with pytest.raises(UsageError, match="negative"):
        Joint(("X",), {(0,): 1.5, (1,): -0.5})


# The error floor (thm:tradeoff).


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
def test_no_selection_of_tokens_gets_below_its_floor(seed: int) -> None:
    model = random_gaussian(seed)
    for opened in selections(5):
        assert model.floor(opened) <= model.attained(opened) * (1 + 1e-9)


@modest
@given(SEEDS)
def test_relevance_is_what_determinants_of_joint_covariances_say(seed: int) -> None:
    model = random_gaussian(seed)
    cross = model.weights @ model.tokens
    for opened in selections(5):
        read = list(opened)
        joint = np.block([[model.tokens[np.ix_(read, read)], cross[:, read].T], [cross[:, read], model.future]])
        parts = [np.linalg.slogdet(part)[1] for part in (model.tokens[np.ix_(read, read)], model.future, joint)]
        assert model.relevance(opened) == pytest.approx((parts[0] + parts[1] - parts[2]) / 2, abs=1e-8)


@pytest.mark.parametrize("opened", [(), (1,), (7,), (1, 7), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_the_best_error_is_that_of_least_squares_on_drawn_samples(opened: tuple[int, ...]) -> None:
    model, random, count = echo_model(), np.random.default_rng(0), 40_000
    tokens = random.multivariate_normal(np.zeros(8), model.tokens, count)
    future = tokens @ model.weights.T + random.multivariate_normal(np.zeros(4), model.noise, count)
    half = count // 2
    read = np.column_stack([np.ones(count), tokens[:, list(opened)]])
    fitted = np.linalg.lstsq(read[:half], future[:half], rcond=None)[0]
    error = float(((future[half:] - read[half:] @ fitted) ** 2).sum(axis=1).mean())
    assert error == pytest.approx(model.attained(opened), rel=0.03)
    assert error > model.floor(opened)


def test_the_floor_is_attained_where_what_is_left_is_the_same_in_every_direction() -> None:
    random = np.random.default_rng(1)
    model = LinearGaussian(np.eye(3), random.normal(size=(4, 3)), 0.3 * np.eye(4))
    assert model.floor((0, 1, 2)) == pytest.approx(model.attained((0, 1, 2))) == pytest.approx(4 * 0.3)
    assert model.floor((0,)) < model.attained((0,)) - 0.1


@modest
@given(SEEDS)
def test_of_nested_selections_the_larger_has_the_smaller_error_and_the_lower_floor(seed: int) -> None:
    model = random_gaussian(seed)
    for larger in selections(5):
        for left_out in larger:
            smaller = tuple(token for token in larger if token != left_out)
            assert model.attained(larger) <= model.attained(smaller) * (1 + 1e-9)
            assert model.floor(larger) <= model.floor(smaller) * (1 + 1e-9)


def test_as_the_budget_grows_the_best_error_never_does() -> None:
    curve = budget_curve(echo_model())
    for errors in (curve.floor, curve.attained, curve.newest):
        assert (np.diff(errors) <= 1e-12).all()
    assert (curve.floor <= curve.attained).all()
    assert (curve.attained <= curve.newest + 1e-12).all()
    for size, error in zip(curve.selections, curve.errors, strict=True):
        assert error >= curve.attained[size] - 1e-12


def test_a_selection_that_is_larger_but_another_may_be_worse() -> None:
    """Part 2 speaks of nested selections and of the best one: reading more is no merit in itself."""
    model = echo_model()
    assert model.attained((0, 2, 3, 4, 5, 6)) > model.attained((1, 7)) + 0.5


def test_a_forecaster_that_reads_beyond_its_explanation_gets_below_the_floor() -> None:
    """The bound is for Ŷ = g(E; 𝒞): breaking the contract is how to break it."""
    model = echo_model()
    assert model.attained(tuple(range(8))) < model.floor((3,))


def test_futures_that_are_not_gaussian_stay_above_the_floor() -> None:
    """Uniform on an interval whose place is known: h = log w, error w²/12, and the floor is 0.70 of it."""
    width = 2.5
    assert error_floor(log(width), 0.0, 1) == pytest.approx(width**2 / 12 * 12 / (2 * pi * e))
    assert 12 / (2 * pi * e) == pytest.approx(0.703, abs=1e-3)


@modest
@given(st.floats(0.05, 0.99), st.floats(0.01, 20.0))
def test_noise_on_a_token_attains_the_floor_of_its_rate(correlation: float, noise: float) -> None:
    rate, error = noisy_disclosure(correlation, noise)
    assert error == pytest.approx(floor_at_rate(correlation, rate), rel=1e-9)
    # The same once more from the joint covariance of (token with noise, token, future).
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


def test_the_error_of_cells_is_that_of_drawn_samples() -> None:
    random, cells, correlation = np.random.default_rng(0), 4, 0.8
    token = random.normal(size=200_000)
    future = correlation * token + np.sqrt(1 - correlation**2) * random.normal(size=len(token))
    cell = np.searchsorted(np.quantile(token, np.arange(1, cells) / cells), token)
    means = np.array([future[cell == which].mean() for which in range(cells)])
    assert ((future - means[cell]) ** 2).mean() == pytest.approx(quantised_disclosure(correlation, cells)[1], rel=0.01)


def test_more_bits_lower_the_floor_down_to_what_the_token_cannot_tell() -> None:
    curve = rate_curve(0.8, most_bits=8.0)
    assert curve.floor[0] == pytest.approx(1)
    assert (np.diff(curve.floor) < 0).all()
    assert curve.floor[-1] == pytest.approx(1 - 0.8**2, abs=1e-4)


def test_models_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="positive definite"):
        LinearGaussian(np.ones((2, 2)), np.ones((1, 2)), np.eye(1))
    with pytest.raises(UsageError, match="up to 12"):
        budget_curve(LinearGaussian(np.eye(13), np.ones((1, 13)), np.eye(1)))


def test_the_pictures_are_drawn_and_the_same_every_time() -> None:
    explanations = {name: rate_saving(toy(name)) for name in TOY_EXPLANATIONS}
    for picture in (
        lambda: rate_saving_png(explanations),
        lambda: budget_png(budget_curve(echo_model(5, 2))),
        lambda: rate_png([rate_curve(0.5), rate_curve(0.9)]),
    ):
        drawn = picture()
        assert drawn.startswith(b"\x89PNG")
        assert drawn == picture()
