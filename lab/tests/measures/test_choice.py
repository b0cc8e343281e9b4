"""Errors of windows through other masks: the most usual mask, and windows read through a given one."""

from dataclasses import replace

import pytest
import torch

from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import squared_error
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import SealedForecast, network_of
from ibforecast_lab.measures.choice import (
    block_means,
    blocks_of,
    errors_through,
    masks_of,
    read_through,
    usual_mask,
)

LOOK_BACK, HORIZON, CHANNELS, CYCLE, ROWS = 12, 4, 2, 5, 40
COUNT = ROWS - LOOK_BACK - HORIZON + 1


@pytest.fixture(params=["gates", "sealed"])
def forecaster(request: pytest.FixtureRequest) -> IBForecast:
    sealed = request.param == "sealed"
    gate, readout = GateConfig(width=4, heads=2, attention="none" if sealed else "auto"), ReadoutConfig(width=6)
    config = ModelConfig(
        LOOK_BACK, HORIZON, CHANNELS, CYCLE, patch_len=3, budget=0.5, sealed=sealed, gate=gate, readout=readout
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return network_of(config).eval()


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
def test_a_window_read_through_its_own_mask_has_its_own_error(forecaster: IBForecast) -> None:
    window, target = windows().take(torch.arange(COUNT))
    expected = squared_error(forecaster(window).values, target)
    torch.testing.assert_close(errors_through(forecaster, windows(), masks_of(forecaster, windows())), expected)
    nothing = torch.zeros_like(masks_of(forecaster, windows()))
    assert not torch.allclose(errors_through(forecaster, windows(), nothing), expected)


def test_a_missing_token_stays_closed_under_every_mask(forecaster: IBForecast) -> None:
    gap = windows(missing=slice(0, LOOK_BACK)).at(range(1))
    everything = torch.ones_like(masks_of(forecaster, gap))
    error = errors_through(forecaster, gap, everything)
    assert error.isfinite().all()
    assert torch.equal(error, errors_through(forecaster, gap, ~everything))


@torch.no_grad()
def test_a_window_read_through_its_own_mask_has_its_own_explanation(forecaster: IBForecast) -> None:
    window, _ = windows(missing=slice(8, 9)).take(torch.arange(COUNT))
    own = forecaster.read(window)
    through = read_through(forecaster, window, own.mask)
    for (row, array), (_, same) in zip(own.arrays(), through.arrays(), strict=True):
        assert row.name == "probability" or torch.equal(array, same), row.name


@torch.no_grad()
def test_another_mask_changes_level_and_scale_only_of_a_model_that_takes_them_from_what_it_reads(
    forecaster: IBForecast,
) -> None:
    window, _ = windows().take(torch.arange(COUNT))
    own, sealed = forecaster.read(window), isinstance(forecaster, SealedForecast)
    through = read_through(forecaster, window, ~own.mask)
    assert torch.equal(own.context.level, through.context.level) == (not sealed)
    values = window.values.where(through.mask.repeat_interleave(3, dim=1), 1e6)
    scrambled = read_through(forecaster, replace(window, values=values), ~own.mask)
    assert torch.equal(forecaster.replay(through), forecaster.replay(scrambled)) == sealed


def test_windows_that_start_within_the_same_steps_share_a_block() -> None:
    assert blocks_of(windows().at(range(7, 15)), 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert blocks_of(windows().at(range(0, 20, 5)), 2).tolist() == [0, 1, 2, 3]


def test_the_error_of_a_block_is_the_mean_over_its_windows() -> None:
    errors = torch.tensor([1.0, 2.0, 6.0, 5.0], dtype=torch.float64)
    assert block_means(errors, torch.tensor([0, 0, 0, 1])).tolist() == [3.0, 5.0]
