"""Numbers of every size give a forecast or a refusal; `make torture` draws more of them."""

import numpy as np
import pytest
from torture.numerics import numerics

from ibforecast import IBForecaster

QUICK = ("below normal", "zero with an outlier", "whole numbers near 2**53", "larger")


def test_numbers_of_every_size_are_forecast_or_refused() -> None:
    found = numerics(9.0, 0, most=len(QUICK), rare=(), kinds=QUICK)
    assert found["broken"] == []
    assert found["refused"]
    assert found["forecast"]


def test_a_warning_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IBForecaster, "evaluate", lambda model, rows: np.log(np.zeros(1)))
    (broken,) = numerics(9.0, 0, most=1, rare=(), kinds=("large",))["broken"]
    assert "RuntimeWarning: divide by zero" in broken
