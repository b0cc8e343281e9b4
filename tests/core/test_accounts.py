"""Receipts in words: numbers add up, and zero has no sign."""

import re
from dataclasses import replace
from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from tests.core.samples import HORIZON, PATCH_LEN, SOME, sample

from ibforecast.core import words
from ibforecast.core.errors import UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.limits import Limits
from ibforecast.core.receipt import FINE, Receipt, adding_up, decimals_of, places, rounded
from ibforecast.plots.waterfall import waterfall_of

TINY = -0.0004


def with_receipt(amount: float, total: float) -> ExplainedForecast:
    """Return an explanation whose forecast of alpha is `total`, with these amounts read, known ahead and unread."""
    plain = sample(covariates=1)
    forecast = plain.forecast.copy()
    forecast[:, 0] = total
    decimals = decimals_of(float(plain.units.std[0]), FINE)
    opened = int(np.sum(SOME))
    calendar, *amounts = adding_up([total - amount * (opened + 2), *[amount] * (opened + 2)], total, decimals)
    receipt = Receipt(
        "alpha", "mean", rounded(total, decimals), calendar, tuple(amounts[:opened]), (amounts[-2],), amounts[-1]
    )
    return sample(covariates=1, forecast=forecast, history=np.full_like(plain.history, TINY), receipts=(receipt,))


@pytest.mark.parametrize("total", [12.3, TINY, -TINY])
def test_zero_has_no_sign(total: float) -> None:
    text = with_receipt(TINY, total).in_words("alpha")
    assert "known ahead: holiday 0.00" in text.lower()
    assert "or the level: 0.00." in text
    assert "(0.00 at " in text
    assert not re.search(r"[-+]0\.00\b", text)


@pytest.mark.parametrize("amount", [TINY, 0.004, -0.006, 0.5])
def test_printed_amounts_add_up_to_the_printed_forecast(amount: float) -> None:
    head, *lines = with_receipt(amount, 12.3).in_words("alpha").splitlines()
    total = re.search(r": (-?\d+\.\d\d)", head)
    amounts = [re.search(r"(?:: |holiday )([-+]?\d+\.\d\d)(?=[ ,.])", line) for line in lines]
    assert total is not None
    assert sum(Decimal(each[1]) for each in amounts if each is not None) == Decimal(total[1])


APART = [[1, 0, 1], [0, 1, 0], [1, 0, 1], [0, 1, 0]]
"""Six places that were read, none next to another."""


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("mask", [SOME, APART, np.zeros((4, 3)), [[1, 0, 0], *[[0, 0, 0]] * 3]])
@pytest.mark.parametrize("largest", [0, -1])
def test_eight_lines_name_the_place_that_moved_most_whatever_else_is_said(
    sealed: bool, mask: list[list[int]], largest: int
) -> None:
    for covariates, limited, anchors, error in product([0, 1, 3], [True, False], [0, 1, 2], [None, 0.25]):
        blend = np.zeros((3, 3), dtype=np.float32)
        blend[:anchors] = 0.25
        floor = np.full(3, 20.0 if limited else -np.inf)
        plain = sample(
            mask,
            covariates=covariates,
            sealed=sealed,
            forecast=np.full((HORIZON, 3), 20.0),
            unlimited=np.full((HORIZON, 3), 12.0 if limited else 20.0),
            limits=Limits(floor, np.full(3, np.inf), np.zeros(3, dtype=bool)),
            blend=blend if anchors else None,
            anchor=np.zeros((HORIZON, 3), dtype=np.float32) if anchors else None,
        )
        opened = places(plain)
        read = [0.5 + number / 8 for number in range(len(opened))]
        if read:
            read[largest] = -70.0
        amounts = [*read, *[1.5] * covariates, *[-2.5] * (not sealed), *[8.0] * limited]
        decimals = decimals_of(float(plain.units.std[0]), FINE)
        calendar, *rest = adding_up([20.0 - sum(amounts), *amounts], 20.0, decimals)
        of_read, known = rest[: len(read)], rest[len(read) : len(read) + covariates]
        receipt = Receipt(
            "alpha",
            "mean",
            20.0,
            calendar,
            tuple(of_read),
            tuple(known),
            None if sealed else -2.5,
            8.0 if limited else None,
            error,
        )
        text = replace(plain, receipts=(receipt,)).in_words("alpha")
        assert len(text.splitlines()) <= 8
        assert text.count("Anchor: ") == anchors
        assert ("Limit: " in text, "are estimates" in text, "Known ahead: " in text) == (
            limited,
            error is not None,
            covariates > 0,
        )
        assert ("Unread values" in text) == ("No value that was not read" not in text) == (not sealed)
        if read:
            patch, column = opened[largest]
            moments = plain.moments[patch * PATCH_LEN], plain.moments[(patch + 1) * PATCH_LEN - 1]
            if mask is APART:
                assert f"\n{plain.channels[column]} {words.span_between(*moments)}: -70.0" in text
            assert re.search(r"^(alpha|beta|gamma) 2020.*: -(70|6\d)\.\d+ \(", text, re.MULTILINE)


def test_places_that_add_nothing_are_not_named() -> None:
    plain = sample(APART, sealed=True, forecast=np.full((HORIZON, 3), 20.0))
    read = [-3.0, TINY, TINY, 2.0, TINY, TINY]
    decimals = decimals_of(float(plain.units.std[0]), FINE)
    calendar, *amounts = adding_up([20.0 - sum(read), *read], 20.0, decimals)
    receipts = (
        Receipt("alpha", "mean", 20.0, calendar, tuple(amounts)),
        Receipt("beta", "mean", 20.0, 20.0, (0.0,) * 6),
    )
    made = replace(plain, receipts=receipts)
    columns = [plain.channels[column] for _, column in places(plain)]
    lines = made.in_words("alpha").splitlines()[2:]
    assert [line.split(" ")[0] for line in lines] == [columns[0], columns[3], "4", "No"]
    assert lines[2] == "4 other tokens together: 0.00."
    # If all amounts are 0, the first place is named.
    assert "5 other tokens together: 0.00." in made.in_words("beta")


@pytest.mark.parametrize(("error", "text"), [(161.4, "160"), (0.0899, "0.09"), (1.16, "1.2")])
def test_a_standard_error_has_two_digits(error: float, text: str) -> None:
    made = sample(sealed=True, forecast=np.full((HORIZON, 3), 20.0))
    receipt = Receipt("alpha", "mean", 20.0, 20.0, (0.0,) * int(np.sum(SOME)), error=error)
    assert f"a standard error of at most {text};" in replace(made, receipts=(receipt,)).in_words("alpha")


def test_a_place_that_moved_the_forecast_the_other_way_is_not_the_event_of_its_run() -> None:
    history = np.full((4 * PATCH_LEN, 3), 10.0)
    history[PATCH_LEN + 1, 0], history[1, 0] = 60.0, -90.0
    plain = sample([[1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]], history=history)
    plain = replace(plain, forecast=np.full((HORIZON, 3), 20.0))
    receipt = Receipt("alpha", "mean", 20.0, 18.0, (-1.0, 3.0), unread=0.0)
    place = replace(plain, receipts=(receipt,)).in_words("alpha").splitlines()[2]
    assert place.startswith("alpha 2020-01-01 00:00 to 07:00: +2.0")
    assert "(60.00 at 05:00, profile " in place
    turned = replace(receipt, read=(-3.0, 1.0), calendar=22.0)
    assert "(-90.00 at 01:00, profile " in replace(plain, receipts=(turned,)).in_words("alpha").splitlines()[2]


def test_words_without_the_model_need_the_receipts_of_all_channels() -> None:
    plain = sample(sealed=True, forecast=np.full((HORIZON, 3), 20.0))
    one = Receipt("alpha", 2, 20.0, 20.0, (0.0,) * int(np.sum(SOME)))
    made = replace(plain, receipts=(one,))
    assert made.in_words() == plain.in_words()
    assert made.in_words("alpha", 2).startswith("alpha, 2020-01-01 17:00: 20.0")
    with pytest.raises(UsageError, match=r"needs the model .*or the receipts of its document \('alpha', 2\)"):
        made.in_words("alpha")
    with pytest.raises(UsageError, match=r"or the receipts of its document \(it has none\)"):
        plain.in_words("beta")


def test_full_words_are_of_every_channel_and_step() -> None:
    for arguments in (("alpha",), (None, 2)):
        with pytest.raises(UsageError, match="full words describe every channel and step"):
            sample().in_words(*arguments, full=True)


def test_words_and_picture_name_the_same_amount_for_a_place_and_their_rest_takes_the_residue() -> None:
    plain = sample(APART, sealed=True, forecast=np.full((HORIZON, 3), 20.0))
    read = [-3.004, 2.006, 1.0049, 0.004, 0.0044, 0.0041]
    decimals = decimals_of(float(plain.units.std[0]), FINE)
    calendar, *amounts = adding_up([20.0 - sum(read), *read], 20.0, decimals)
    made = replace(plain, receipts=(Receipt("alpha", "mean", 20.0, calendar, tuple(amounts)),))
    lines = made.in_words("alpha").splitlines()
    by_place = dict(re.findall(r"^(\w+ 2020[^:]*(?::\d\d[^:]*)*): ([-+]\d+\.\d\d) \(", "\n".join(lines), re.MULTILINE))
    bars = waterfall_of(made, made.receipts[0]).bars
    in_picture = {bar.text.replace(",", ""): bar.number.replace("−", "-") for bar in bars if bar.part == "read"}
    assert sorted(by_place.values()) == sorted(in_picture.values()) == ["+1.00", "+2.01", "-3.00"]
    for numbers in (
        [re.search(r": ([-+]?\d+\.\d\d)", line) for line in lines[1:-1]],
        [re.search(r"([-+]?\d+\.\d\d)", bar.number.replace("−", "-")) for bar in bars[:-1]],
    ):
        assert sum(Decimal(number[1]) for number in numbers if number) == Decimal("20.00")


def test_a_limit_that_changes_nothing_that_is_printed_is_not_named_in_one_line_of_several_channels() -> None:
    limits = Limits(np.zeros(3), np.full(3, np.inf), np.zeros(3, dtype=bool))
    forecast = np.full((HORIZON, 3), 20.0)
    plain = sample(APART, sealed=True, forecast=forecast, unlimited=forecast, limits=limits)
    own = [
        Receipt(name, "mean", 20.0, 20.0 - limit, (0.0,) * 6, limit=limit)
        for name, limit in zip(plain.channels, (0.0, 0.0003, 1.5), strict=True)
    ]
    lines = replace(plain, receipts=tuple(own)).in_words().splitlines()[1:4]
    assert [line.partition(", limit ")[2] for line in lines] == ["", "", "+1.50."]


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.1984, "19.8 %"),
        (0.0, "0 %"),
        (1.57e-16, "under 0.001 %"),
        (-1e-16, "0 %"),
        (12.346, "1235 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_are_printed_without_exponents(fraction: float, text: str) -> None:
    assert words.percent(fraction) == text
