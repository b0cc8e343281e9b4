"""Errors of windows through other masks: the most usual mask, and windows read through a given one."""

import pytest
import torch

from ibforecast.core.contracts import Accountable
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import squared_error
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast_lab.measures.choice import errors_through, masks_of, usual_mask

LOOK_BACK, HORIZON, CHANNELS, CYCLE, ROWS = 12, 4, 2, 5, 40
COUNT = ROWS - LOOK_BACK - HORIZON + 1


@pytest.fixture
def forecaster() -> Accountable:
    gate, readout = GateConfig(width=4, heads=2), ReadoutConfig(width=6)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return IBForecast(
            ModelConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, patch_len=3, budget=0.5, gate=gate, readout=readout)
        ).eval()


def windows(missing: slice = slice(0)) -> Windows:
    values = torch.randn(ROWS, CHANNELS, generator=torch.Generator().manual_seed(0)).cumsum(0)
    observed = torch.ones_like(values, dtype=torch.bool)
    observed[missing] = False
    return Windows(values, observed, torch.arange(ROWS) % CYCLE, torch.arange(COUNT), LOOK_BACK, HORIZON)


def test_the_usual_mask_has_the_tokens_that_are_open_most_often_and_of_equals_the_earlier() -> None:
    masks = torch.tensor([[[1, 0], [1, 1]], [[0, 0], [1, 1]], [[1, 0], [0, 0]]], dtype=torch.bool)
    assert usual_mask(masks, 1).tolist() == [[True, False], [False, False]]
    assert usual_mask(masks, 3).tolist() == [[True, False], [True, True]]


@torch.no_grad()
def test_a_window_read_through_its_own_mask_has_its_own_error(forecaster: Accountable) -> None:
    window, target = windows().take(torch.arange(COUNT))
    expected = squared_error(forecaster(window).values, target)
    torch.testing.assert_close(errors_through(forecaster, windows(), masks_of(forecaster, windows())), expected)
    nothing = torch.zeros_like(masks_of(forecaster, windows()))
    assert not torch.allclose(errors_through(forecaster, windows(), nothing), expected)


def test_a_missing_token_stays_closed_under_every_mask(forecaster: Accountable) -> None:
    gap = windows(missing=slice(0, LOOK_BACK)).at(range(1))
    everything = torch.ones_like(masks_of(forecaster, gap))
    error = errors_through(forecaster, gap, everything)
    assert error.isfinite().all()
    assert torch.equal(error, errors_through(forecaster, gap, ~everything))
