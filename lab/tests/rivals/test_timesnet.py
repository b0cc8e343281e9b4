import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.timesnet import Inception, TimesBlock, TimesNet, TimesNetConfig, amplitudes, fold, unfold

LOOK_BACK, HORIZON, CHANNELS = 24, 24, 3
SIZES = TimesNetConfig(LOOK_BACK, HORIZON, CHANNELS, 24, width=4, hidden=6, top=3, kernels=3)


def window(batch: int = 3) -> Window:
    values, steps = torch.randn(batch, LOOK_BACK, CHANNELS), LOOK_BACK + HORIZON
    observed, phase = torch.ones_like(values, dtype=torch.bool), torch.zeros(batch, steps, dtype=torch.int64)
    return Window(values, observed, phase, torch.rand(batch, steps, 4) - 0.5)


def sine(period: int, steps: int = 48) -> torch.Tensor:
    return torch.sin(2 * math.pi * torch.arange(steps) / period)[None, :, None].expand(1, steps, 2)


@settings(deadline=None, max_examples=30)
@given(steps=st.integers(1, 40), period=st.integers(1, 45))
def test_unfold_is_the_inverse_of_fold(steps: int, period: int) -> None:
    hidden = torch.randn(2, steps, 3)
    grid = fold(hidden, period)
    assert grid.shape == (2, 3, math.ceil(steps / period), period)
    assert torch.equal(unfold(grid, steps), hidden)


def test_a_row_of_the_folded_grid_is_one_period_and_padding_is_zero() -> None:
    grid = fold(torch.arange(1.0, 8.0)[None, :, None], 3)[0, 0]
    assert grid.tolist() == [[1, 2, 3], [4, 5, 6], [7, 0, 0]]


@pytest.mark.parametrize("period", [2, 4, 6, 12, 16, 24, 48])
def test_the_strongest_frequency_of_a_sine_is_its_own(period: int) -> None:
    hidden = sine(period) if period > 2 else torch.tensor([1.0, -1.0]).repeat(24)[None, :, None]
    assert 48 // (int(amplitudes(hidden).argmax()) + 1) == period


def test_a_large_level_is_not_a_frequency() -> None:
    assert int(amplitudes(sine(12) + 1000).argmax()) + 1 == 48 // 12


def test_in_use_the_periods_are_those_of_training_for_every_window() -> None:
    block = TimesBlock(48, 2, 3, top=1, kernels=1).train()
    for _ in range(3):
        block(torch.cat([3 * sine(12), sine(6), sine(6)]))
    assert int(block.mean_amplitude.argmax()) + 1 == 48 // 12
    before = block.mean_amplitude.clone()
    block.eval()
    other = sine(6)
    expected = other + unfold(block.convolve(fold(other, 12)), 48)
    torch.testing.assert_close(block(other), expected)
    assert torch.equal(block.mean_amplitude, before)


def test_an_inception_equals_the_mean_of_its_parallel_convolutions() -> None:
    inception, grid = Inception(3, 5, 4), torch.randn(2, 3, 7, 6)
    parallel = [functional.conv2d(grid, weight, padding=n) for n, weight in enumerate(inception.weights)]
    expected = torch.stack(parallel).mean(0) + inception.bias[None, :, None, None]
    torch.testing.assert_close(inception(grid), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_a_block_adds_the_sum_over_its_periods_weighted_by_each_sequences_amplitudes(training: bool) -> None:
    block, hidden = TimesBlock(20, 4, 6, top=3, kernels=3).train(training), torch.randn(3, 20, 4)
    block.mean_amplitude.copy_(torch.rand(10))
    amplitude = torch.fft.rfft(hidden, dim=1).abs().mean(2)
    frequencies = (amplitude.mean(0)[1:] if training else block.mean_amplitude).topk(3).indices + 1
    expected = hidden.clone()
    for n in range(3):
        weights = amplitude[n, frequencies].softmax(0)
        for frequency, weight in zip(frequencies.tolist(), weights, strict=True):
            grid = fold(hidden[n : n + 1], 20 // frequency)
            expected[n] += weight * unfold(block.convolve(grid), 20)[0]
    torch.testing.assert_close(block(hidden), expected, rtol=1e-4, atol=1e-5)


def test_in_use_a_forecast_does_not_depend_on_the_rest_of_the_batch() -> None:
    model, batch = TimesNet(SIZES).eval(), window(batch=5)
    assert batch.calendar is not None
    alone = Window(batch.values[2:3], batch.observed[2:3], batch.phase[2:3], batch.calendar[2:3])
    torch.testing.assert_close(model(batch).values[2:3], model(alone).values, rtol=1e-4, atol=1e-5)


def test_all_blocks_share_one_norm_and_the_network_cannot_be_captured() -> None:
    model = TimesNet(SIZES)
    assert sum(isinstance(part, torch.nn.LayerNorm) for part in model.modules()) == 1
    assert not model.capturable


def test_without_the_calendar_setting_no_calendar_is_needed_or_read() -> None:
    model, batch = TimesNet(replace(SIZES, calendar=False)).eval(), window()
    assert not model.reads_calendar
    assert torch.equal(model(batch).values, model(replace(batch, calendar=None)).values)


def test_a_window_without_a_calendar_is_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match="set calendar = false"):
        TimesNet(SIZES)(replace(window(), calendar=None))


def test_more_periods_than_frequencies_are_refused() -> None:
    with pytest.raises(UsageError, match=r"top must not exceed .* \(got top=30, 24 frequencies\); try 24 or less"):
        replace(SIZES, top=30)
