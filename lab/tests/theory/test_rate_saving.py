"""The rate saving on finite models: it holds, can be tight, and fails without its assumptions.

Mutual information is compared with that of scikit-learn, so that no number is checked against itself.
"""

from collections.abc import Callable, Hashable
from itertools import combinations, product
from math import log, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from ibforecast.core.errors import UsageError
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
    """Return I(one; other | given) in bits: the mean over tables of that of scikit-learn."""
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
        counts = np.round(2.0**30 * weights / weights.sum()).astype(np.int64)  # scikit-learn accepts only counts
        total += weights.sum() * mutual_info_score(None, None, contingency=counts) / log(2)
    return total


def random_model(seed: int) -> Joint:
    """Return a random model that satisfies the paper's assumptions."""
    random = np.random.default_rng(seed)

    def simplex(values: list[Hashable]) -> dict[Hashable, float]:
        return dict(zip(values, random.dirichlet(np.full(len(values), 0.5)).tolist(), strict=True))

    pairs = list(toy_windows())
    windows = dict(zip(pairs, random.dirichlet(np.ones(len(pairs))).tolist(), strict=True))
    explained = {(toy_remainder(pair), toy_context(pair)): simplex([0, 1, 2]) for pair in pairs}
    futures = {pair: simplex([0, 1, 3]) for pair in pairs}
    return assembled(windows, toy_context, toy_remainder, lambda d, c: explained[d, c], lambda x: futures[x])


def with_changed(joint: Joint, name: str, function: Callable[..., Hashable]) -> Joint:
    """Return the model with one variable replaced by a function of all variables."""
    place, outcomes = joint.names.index(name), dict[Outcome, float]()
    for outcome, p in joint.outcomes.items():
        changed = (*outcome[:place], function(**dict(zip(joint.names, outcome, strict=True))), *outcome[place + 1 :])
        outcomes[changed] = outcomes.get(changed, 0.0) + p
    return Joint(joint.names, outcomes)


def with_coin(joint: Joint, function: Callable[[Outcome, int], Outcome]) -> Joint:
    """Return the model with every outcome replaced by a function of it and of an independent fair coin."""
    outcomes = dict[Outcome, float]()
    for (outcome, p), coin in product(joint.outcomes.items(), (0, 1)):
        changed = function(outcome, coin)
        outcomes[changed] = outcomes.get(changed, 0.0) + p / 2
    return Joint(joint.names, outcomes)


# Exact rate saving (thm:rate)


@modest
@given(SEEDS)
def test_mutual_information_equals_that_of_scikit_learn(seed: int) -> None:
    joint = random_model(seed)
    for one, other in combinations(NAMES, 2):
        assert joint.information(one, other) == pytest.approx(by_library(joint, one, other), abs=1e-6)
    for one, other in (("X", "E"), ("D", "E"), ("E", "Y")):
        assert joint.information(one, other, given="C") == pytest.approx(by_library(joint, one, other, "C"), abs=1e-6)


@modest
@given(SEEDS)
def test_disclosing_the_context_saves_exactly_the_context_rate(seed: int) -> None:
    saving = rate_saving(random_model(seed))
    assert saving.saved == pytest.approx(saving.context_rate, abs=1e-9)
    assert saving.context_rate >= -1e-12


@modest
@given(SEEDS)
def test_the_context_rate_is_at_least_the_predictive_information_through_the_context(seed: int) -> None:
    saving = rate_saving(random_model(seed))
    assert saving.context_rate >= saving.routed - 1e-9
    assert saving.context_rate >= saving.least - 1e-9


def test_both_inequalities_can_be_strict_and_both_can_be_tight() -> None:
    loose = rate_saving(random_model(0))
    assert loose.context_rate > loose.routed + 1e-3
    assert loose.context_rate > loose.least + 1e-3
    tight = rate_saving(toy("first value, no frame"))
    assert tight.context_rate == pytest.approx(tight.routed) == pytest.approx(tight.least) == pytest.approx(1)


@pytest.mark.parametrize("explanation", TOY_EXPLANATIONS)
def test_the_bits_of_the_toy_add_up(explanation: str) -> None:
    joint = toy(explanation)
    saving = rate_saving(joint)
    assert saving.rate == pytest.approx(saving.context_rate + saving.conditional_rate, abs=1e-12)
    assert saving.rate == pytest.approx(by_library(joint, "X", "E"), abs=1e-6)
    assert saving.conditional_rate == pytest.approx(by_library(joint, "D", "E", "C"), abs=1e-6)
    assert saving.context_rate == pytest.approx(by_library(joint, "C", "E"), abs=1e-6)


def test_a_value_without_a_frame_pays_one_bit_for_the_level() -> None:
    framed, raw = rate_saving(toy("first deviation")), rate_saving(toy("first value, no frame"))
    assert raw.context_rate == pytest.approx(1)
    entropy = (1 - 0.25 * log2(0.25) - 0.75 * log2(0.75)) / 2  # of the first deviation, on average over both levels
    assert raw.conditional_rate == pytest.approx(entropy)
    assert framed.conditional_rate == pytest.approx(raw.conditional_rate)  # given the level they disclose the same
    assert framed.conditional_relevance == pytest.approx(raw.conditional_relevance)
    assert framed.rate < raw.rate - 0.9


def test_nothing_is_saved_if_the_explanation_is_independent_of_the_context() -> None:
    second = assembled(toy_windows(), toy_context, toy_remainder, lambda d, c: {d[1]: 1.0}, toy_future)
    assert rate_saving(second).saved == pytest.approx(0, abs=1e-12)  # the second value deviates alike at both levels
    assert rate_saving(toy("first deviation")).saved > 0.04


def test_the_sign_of_the_bound_is_right_in_the_appendix_and_wrong_in_the_main_text() -> None:
    """A sufficient explanation without a frame pays I(𝒞;Y) bits; −I(𝒞;Y) − ε is negative and bounds nothing."""
    saving = rate_saving(toy("whole window, no frame"))
    assert saving.shortfall == pytest.approx(0, abs=1e-12)
    assert saving.context_rate == pytest.approx(saving.context_relevance) == pytest.approx(1)
    printed = -saving.context_relevance - saving.shortfall
    assert printed < 0 < saving.least
    constant = assembled(toy_windows(), toy_context, toy_remainder, lambda d, c: {0: 1.0}, toy_future)
    nothing = rate_saving(constant)
    assert nothing.context_rate >= nothing.least - 1e-12  # it discloses nothing, so it is far from sufficient
    assert nothing.least == pytest.approx(-by_library(constant, "D", "Y", "C"), abs=1e-6)


def test_the_equality_fails_if_the_context_is_not_a_function_of_the_window() -> None:
    def flipped(outcome: Outcome, coin: int) -> Outcome:
        x, c, d, _, y = outcome
        return x, (c, coin), d, coin, y

    saving = rate_saving(with_coin(toy("first deviation"), flipped))
    assert saving.saved == pytest.approx(0, abs=1e-12)
    assert saving.context_rate == pytest.approx(1)


def test_the_equality_fails_if_the_remainder_does_not_determine_the_window() -> None:
    saving = rate_saving(with_changed(toy("whole window, no frame"), "D", lambda **named: named["D"][0]))
    assert saving.saved == pytest.approx(saving.context_rate + 1)  # the missing second deviation looks like a saving


def test_an_explanation_that_reads_the_future_breaks_the_bound() -> None:
    def reading_ahead(outcome: Outcome, coin: int) -> Outcome:
        x, c, d, _, _ = outcome
        return x, c, d, coin, (c, coin)

    joint = with_coin(toy("first deviation"), reading_ahead)
    saving = rate_saving(joint)
    assert saving.shortfall == pytest.approx(0, abs=1e-12)
    assert saving.context_rate == pytest.approx(0, abs=1e-12)
    assert saving.context_rate < saving.least - 0.9
    assert joint.information("E", "Y", given="C") > joint.information("D", "Y", given="C") + 0.9


# The lemma: no explanation is more relevant than the remainder, more tokens are never less relevant, and framing the
# future changes nothing.


@modest
@given(SEEDS)
def test_no_explanation_is_more_relevant_than_the_remainder(seed: int) -> None:
    joint = random_model(seed)
    assert joint.information("E", "Y", given="C") <= joint.information("D", "Y", given="C") + 1e-9
    assert joint.information("E", "Y", given=("D", "C")) == pytest.approx(0, abs=1e-9)


@modest
@given(SEEDS)
def test_a_larger_selection_is_never_less_relevant_and_framing_the_future_changes_nothing(seed: int) -> None:
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
