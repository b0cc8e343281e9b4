"""The seasonal naive forecast, compared with loops; a periodic series is forecast without error."""

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Window
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast.evaluate.naive import longest_repeatable, naive_errors, repeated, seasonal_mean

LOOK_BACK, HORIZON, CHANNELS, ROWS = 12, 7, 3, 80
CYCLES = [1, 4, 5, 12]


def windows(values: torch.Tensor, missing: float = 0.0, past: int = 0) -> Windows:
    observed = torch.rand(values.shape, generator=torch.Generator().manual_seed(2)) >= missing
    starts = torch.arange(len(values) - LOOK_BACK - HORIZON + 1)
    phase = torch.zeros(len(values) + HORIZON, dtype=torch.int64)
    filled = values.where(observed, torch.tensor(1e6))
    return Windows(filled, observed, phase, starts, LOOK_BACK, HORIZON, past=past).usable()


def noise() -> torch.Tensor:
    return torch.randn(ROWS, CHANNELS, generator=torch.Generator().manual_seed(1))


def reference(values: np.ndarray, observed: np.ndarray, start: int, row: int, channel: int, cycle: int) -> float:
    """Go back from a row of the target cycle by cycle, or step by step if that finds no value."""
    now = start + LOOK_BACK
    whole = [back for back in range(row - cycle, start - 1, -cycle) if back < now]
    for back in (*whole, *range(now - 1, start - 1, -1)):
        if observed[back, channel]:
            return float(values[back, channel])
    raise AssertionError("a usable window has a value in every channel")


def by_hand(data: Windows, cycle: int) -> tuple[list[float], list[float]]:
    values, observed = data.values.double().numpy(), data.observed.numpy()
    squared, absolute = [], []
    for start in data.starts.tolist():
        now = start + LOOK_BACK
        errors = [
            values[row, channel] - reference(values, observed, start, row, channel, cycle)
            for row in range(now, now + HORIZON)
            for channel in range(CHANNELS - data.past)
            if observed[row, channel]
        ]
        squared.append(float(np.mean(np.square(errors))))
        absolute.append(float(np.mean(np.abs(errors))))
    return squared, absolute


@pytest.mark.parametrize("past", [0, 1])
@pytest.mark.parametrize("missing", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("cycle", CYCLES)
def test_errors_equal_those_computed_with_loops(cycle: int, missing: float, past: int) -> None:
    data = windows(noise(), missing, past)
    squared, absolute = by_hand(data, cycle)
    errors = naive_errors(data, cycle, batch=11)
    assert len(squared) == len(data) > 10
    np.testing.assert_allclose(errors[0].numpy(), squared, rtol=1e-5)
    np.testing.assert_allclose(errors[1].numpy(), absolute, rtol=1e-5)


@pytest.mark.parametrize("cycle", CYCLES)
def test_a_perfectly_periodic_series_is_repeated_without_error(cycle: int) -> None:
    squared, absolute = naive_errors(windows(noise()[torch.arange(ROWS) % cycle]), cycle)
    assert len(squared) == ROWS - LOOK_BACK - HORIZON + 1
    assert not squared.any()
    assert not absolute.any()


def test_a_gap_in_the_last_cycle_of_a_periodic_series_causes_no_error() -> None:
    data = windows(noise()[torch.arange(ROWS) % 4])
    window, target = data.take(data.starts[:1])
    observed = window.observed.clone()
    observed[:, -4:] = False
    gap = Window(window.values.where(observed, torch.tensor(1e6)), observed, window.phase)
    assert torch.equal(repeated(gap, 4, HORIZON), target.values)


@pytest.mark.parametrize("cycle", CYCLES)
def test_values_in_a_gap_of_the_look_back_are_never_repeated(cycle: int) -> None:
    for window, _ in windows(noise(), 0.5).batches(1024):
        assert repeated(window, cycle, HORIZON).abs().max() < 1e3


def test_the_longest_cycle_that_fits_is_repeated_otherwise_the_last_value() -> None:
    assert longest_repeatable((24,), 96) == longest_repeatable((24, 168), 96) == longest_repeatable((24,), 24) == 24
    assert longest_repeatable((24, 168), 168) == longest_repeatable((168, 24), 336) == 168
    assert longest_repeatable((24, 168), 12) == 1


def test_a_channel_without_any_value_is_forecast_as_zero() -> None:
    data = windows(noise())
    window, _ = data.take(data.starts[:2])
    observed = window.observed.clone()
    observed[0, :, 1] = False
    empty = Window(window.values.where(observed, torch.tensor(1e6)), observed, window.phase)
    forecast, whole = repeated(empty, 4, HORIZON), repeated(window, 4, HORIZON)
    assert not forecast[0, :, 1].any()
    assert torch.equal(forecast[1], whole[1])
    assert torch.equal(forecast[0][:, [0, 2]], whole[0][:, [0, 2]])


def test_a_seasonal_mean_is_that_of_the_training_rows_at_the_same_phase() -> None:
    random, rows, cycle, trained = np.random.default_rng(3), 120, 6, 70
    values = random.normal(size=(rows, 2)) + np.sin(np.arange(rows) / cycle * 2 * np.pi)[:, None]
    values[[3, 40, 90], 0] = np.nan
    stamps = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "h")
    series = Series(values, ("a", "b"), Clock(stamps, Frequency(3600)))
    standardiser = Standardiser.of(values[:trained], series.channels)
    windows = Windows.of(series, standardiser, 24, range(70, 100), 12, 5)
    measured = seasonal_mean(windows, torch.from_numpy(series.clock.phase(0, rows + 5, cycle)), cycle, trained)
    plain = standardiser.standardise(values)
    means = np.array([np.nanmean(plain[:trained][np.arange(trained) % cycle == each], axis=0) for each in range(cycle)])
    gaps = [
        plain[start + 12 : start + 17] - means[np.arange(start + 12, start + 17) % cycle] for start in range(70, 100)
    ]
    assert measured.cycle == cycle
    assert measured.mse == pytest.approx(np.mean([np.nanmean(gap**2) for gap in gaps]), rel=1e-5)
    assert measured.mae == pytest.approx(np.mean([np.nanmean(np.abs(gap)) for gap in gaps]), rel=1e-5)
