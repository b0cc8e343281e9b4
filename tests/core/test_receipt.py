"""Receipts as plain data: rounding that adds up, the choice of decimals, and the rules for a valid receipt."""

from decimal import Decimal
from math import fsum

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ibforecast.core.receipt import Receipt, adding_up, decimals_of, rounded, shown

AMOUNTS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40)


@given(AMOUNTS, st.integers(0, 6))
def test_rounded_amounts_add_up_to_the_rounded_total(amounts: list[float], decimals: int) -> None:
    total = fsum(amounts)
    printed = adding_up(amounts, total, decimals)
    assert sum(Decimal(repr(amount)) for amount in printed) == Decimal(repr(rounded(total, decimals)))


@given(AMOUNTS, st.integers(0, 6))
def test_rounding_moves_an_amount_by_at_most_one_unit(amounts: list[float], decimals: int) -> None:
    printed = adding_up(amounts, fsum(amounts), decimals)
    unit = 10.0**-decimals
    # One more unit for the first amount, which takes what single remainders cannot.
    assert abs(printed[0] - amounts[0]) <= 2 * unit + 1e-9
    assert all(abs(one - other) <= unit + 1e-9 for one, other in zip(printed[1:], amounts[1:], strict=True))


def test_amounts_that_rounding_changed_most_take_the_difference() -> None:
    assert adding_up([0.26, 0.27, 0.47], 1.0, 1) == [0.2, 0.3, 0.5]
    assert adding_up([-0.26, -0.27, -0.47], -1.0, 1) == [-0.2, -0.3, -0.5]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.integers(0, 6))
def test_a_kept_amount_is_only_rounded_and_all_still_add_up(amounts: list[float], decimals: int) -> None:
    total = fsum(amounts)
    printed = adding_up(amounts, total, decimals, kept=1)
    nearest = Decimal(int(np.rint(amounts[0] * 10.0**decimals))).scaleb(-decimals)
    assert Decimal(repr(printed[0])) == nearest
    assert sum(Decimal(repr(amount)) for amount in printed) == Decimal(repr(rounded(total, decimals)))


@pytest.mark.parametrize("small", [0.04, -0.04])
def test_an_amount_too_small_to_be_shown_is_zero_in_every_sum(small: float) -> None:
    for others in ([10.03, 2.02], [10.02, -2.03], [10.06, 2.01], [10.02, 2.08, -3.03], [9.98, -2.02, 3.03]):
        *_, last = adding_up([*others, small], fsum([*others, small]), 1)
        assert str(last) == "0.0"


@given(AMOUNTS, st.integers(0, 6))
def test_rounding_keeps_the_sign_of_an_amount(amounts: list[float], decimals: int) -> None:
    for one, other in zip(adding_up(amounts, fsum(amounts), decimals)[1:], amounts[1:], strict=True):
        assert one * other >= 0


@pytest.mark.parametrize("value", [-0.0, 0.0, -0.004, 0.004])
def test_zero_is_shown_without_a_sign(value: float) -> None:
    assert (shown(value, 2), shown(value, 2, "+")) == ("0.00", "0.00")


def test_positive_numbers_are_shown_with_a_sign_on_request() -> None:
    assert (shown(1.5, 1), shown(1.5, 1, "+"), shown(-1.5, 1, "+")) == ("1.5", "+1.5", "-1.5")


@pytest.mark.parametrize(("std", "decimals"), [(5.2, 4), (0.052, 6), (520.0, 2), (5e7, 0)])
def test_decimals_follow_the_spread_of_a_channel(std: float, decimals: int) -> None:
    assert decimals_of(std, 4) == decimals


def test_a_receipt_that_misses_the_forecast_by_one_unit_does_not_add_up() -> None:
    receipt = Receipt("load", "mean", 10.3, 7.1, (3.0, 0.2))
    assert receipt.adds_up
    assert not Receipt("load", "mean", 10.3, 7.1, (3.0, 0.1)).adds_up
    assert not Receipt("load", "mean", 10.3, 7.1, (3.0, 0.2), unread=0.1).adds_up


@given(
    amounts=st.lists(st.floats(-100, 100), min_size=2, max_size=12),
    decimals=st.integers(0, 3),
    rest=st.integers(0, 1),
)
@example(amounts=[0.0, 1.15], decimals=1, rest=0)  # the float is below 1.15, and ten times it is exactly 11.5
def test_a_rest_takes_what_rounding_leaves_and_all_others_are_only_rounded(
    amounts: list[float], decimals: int, rest: int
) -> None:
    total = fsum(amounts)
    printed = adding_up(amounts, total, decimals, kept=1, rest=rest)
    assert round(fsum(printed), decimals) == rounded(total, decimals)
    others = [(one, other) for place, (one, other) in enumerate(zip(printed, amounts, strict=True)) if place != rest]
    assert [one for one, _ in others] == [pytest.approx(rounded(other, decimals)) for _, other in others]
