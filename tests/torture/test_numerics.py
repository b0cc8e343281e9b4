"""Numbers of every size give a forecast or a refusal; `make torture` draws more of them."""

import numpy as np
import pytest
from torture.numerics import KINDS, Sizes, _table, _tried, numerics

from ibforecast import IBForecaster

QUICK = ("below normal", "zero with an outlier", "whole numbers near 2**53", "larger")


def test_numbers_of_every_size_are_forecast_or_refused() -> None:
    found = numerics(9.0, 0, most=len(QUICK), rare=(), kinds=QUICK)
    assert found["broken"] == []
    assert found["refused"]
    assert found["forecast"]


def test_amounts_many_times_as_large_as_a_spread_of_twenty_digits_add_up() -> None:
    sizes = Sizes(24, 6, 4, 240, (0.7, 0.1, 0.2))
    assert not _tried("additive", sizes, _table(sizes, tuple(KINDS), 2301080189)[1])


def test_a_warning_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IBForecaster, "evaluate", lambda model, rows: np.log(np.zeros(1)))
    (broken,) = numerics(9.0, 0, most=1, rare=(), kinds=("large",))["broken"]
    assert "RuntimeWarning: divide by zero" in broken
