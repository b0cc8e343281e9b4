"""Errors without the last, incomplete batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from ibforecast.evaluate.accuracy import Accuracy
from ibforecast_lab.measures.dropped import BATCHES, MEASURE, dropped_batches, kept


@given(st.integers(0, 70), st.integers(1, 40))
def test_the_kept_windows_are_those_of_a_loader_that_drops_the_last_batch(windows: int, batch: int) -> None:
    errors = torch.arange(float(windows))
    loaded = list(DataLoader(errors, batch, drop_last=True)) if windows else []  # type: ignore[arg-type]
    assert kept(errors, batch).tolist() == [float(value) for part in loaded for value in part]


def test_each_batch_that_leaves_windows_has_its_own_errors() -> None:
    errors = torch.arange(300.0, dtype=torch.float64)
    rows = list(dropped_batches(Accuracy(errors, 2 * errors, torch.ones(300))))
    assert [(row["batch"], row["windows"]) for row in rows] == [(32, 288), (128, 256), (256, 256)]
    assert {row["measure"] for row in rows} == {MEASURE}
    for row in rows:
        assert row["mse"] == pytest.approx((row["windows"] - 1) / 2)
        assert row["mae"] == 2 * row["mse"]
    assert BATCHES[-1] > 300
