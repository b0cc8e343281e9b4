"""Receipts in words: numbers add up, and zero has no sign."""

import re
from decimal import Decimal

import numpy as np
import pytest
from tests.core.samples import SOME, sample

from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import FINE, Receipt, adding_up, decimals_of, rounded

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
    assert "level computed: 0.00." in text
    assert "(0.00 at " in text
    assert not re.search(r"[-+]0\.00\b", text)


@pytest.mark.parametrize("amount", [TINY, 0.004, -0.006, 0.5])
def test_printed_amounts_add_up_to_the_printed_forecast(amount: float) -> None:
    head, *lines = with_receipt(amount, 12.3).in_words("alpha").splitlines()
    total = re.search(r": (-?\d+\.\d\d)", head)
    amounts = [re.search(r"(?:: |holiday )([-+]?\d+\.\d\d)(?=[ ,.])", line) for line in lines]
    assert total is not None
    assert sum(Decimal(each[1]) for each in amounts if each is not None) == Decimal(total[1])
