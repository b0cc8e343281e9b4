"""Errors per window, compared with plain NumPy; no window is shuffled or dropped."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.contracts import Forecaster, Loss
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import Accuracy, absolute_error, accuracy, squared_error
from ibforecast.evaluate.naive import naive_errors
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

LOOK_BACK, HORIZON, CHANNELS, ROWS = 12, 5, 3, 60
STARTS = range(3, 40)


def windows(starts: range = STARTS, missing: float = 0.15) -> Windows:
    random = torch.Generator().manual_seed(0)
    values = torch.randn(ROWS, CHANNELS, generator=random)
    observed = torch.rand(ROWS, CHANNELS, generator=random) >= missing
    phase = torch.arange(ROWS + HORIZON) % 4
    filled = values.where(observed, torch.zeros(()))
    return Windows(filled, observed, phase, torch.tensor(starts), LOOK_BACK, HORIZON)


class Repeating(Forecaster):
    """A forecaster that repeats the last value, and records the batch sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.sizes: list[int] = []

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        self.sizes.append(len(window.values))
        return Forecast(window.values[:, -1:].expand(-1, HORIZON, -1).contiguous())

    def context(self, window: Window) -> Context:
        raise AssertionError("measuring errors needs no context")

    def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
        raise AssertionError("measuring is not training")


def by_hand(data: Windows) -> tuple[list[float], list[float]]:
    values, observed = data.values.double().numpy(), data.observed.numpy()
    squared, absolute = [], []
    for start in data.starts.tolist():
        now = start + LOOK_BACK
        errors = [
            values[now - 1, c] - values[now + h, c]
            for h in range(HORIZON)
            for c in range(CHANNELS)
            if observed[now + h, c]
        ]
        squared.append(float(np.mean(np.square(errors))))
        absolute.append(float(np.mean(np.abs(errors))))
    return squared, absolute


@pytest.mark.parametrize("missing", [0.0, 0.15, 0.5])
def test_errors_are_means_over_the_observed_values_of_each_window(missing: float) -> None:
    data = windows(missing=missing)
    measured = accuracy(Repeating(), data)
    squared, absolute = by_hand(data)
    np.testing.assert_allclose(measured.squared_error.numpy(), squared, rtol=1e-5)
    np.testing.assert_allclose(measured.absolute_error.numpy(), absolute, rtol=1e-5)


def test_no_more_windows_than_a_batch_are_gathered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gathered: list[int] = []
    take = Windows.take

    def counted(self: Windows, starts: Tensor) -> tuple[Window, Target]:
        gathered.append(len(starts))
        return take(self, starts)

    monkeypatch.setattr(Windows, "take", counted)
    measured = accuracy(Repeating(), windows(), batch=8)
    naive = naive_errors(windows(), cycle=4, batch=8)
    assert gathered == 2 * [8, 8, 8, 8, 5]
    # One array for all batches: the memory of a batch could not be used again next to its own small results.
    parts = (measured.squared_error, measured.absolute_error, measured.open_rate)
    assert len({part.untyped_storage().data_ptr() for part in parts}) == 1
    assert len({part.untyped_storage().data_ptr() for part in naive}) == 1


@pytest.mark.parametrize("batch", [1, 10, 37, 36, 1024])
def test_every_window_is_measured_once_and_in_order_at_any_batch_size(batch: int) -> None:
    forecaster, data = Repeating(), windows()
    measured = accuracy(forecaster, data, batch)
    assert sum(forecaster.sizes) == len(STARTS) == len(measured.squared_error) == len(measured.open_rate)
    assert max(forecaster.sizes) <= batch
    np.testing.assert_allclose(measured.squared_error.numpy(), by_hand(data)[0], rtol=1e-5)


def test_every_window_has_the_same_weight_regardless_of_its_gaps() -> None:
    data = windows(missing=0.5)
    measured = accuracy(Repeating(), data, batch=7)
    squared, absolute = by_hand(data)
    assert measured.mse == pytest.approx(np.mean(squared), rel=1e-6)
    assert measured.mae == pytest.approx(np.mean(absolute), rel=1e-6)
    pooled = [error for error, count in zip(squared, observed_counts(data), strict=True) for _ in range(count)]
    assert measured.mse != pytest.approx(np.mean(pooled), rel=1e-3)


def observed_counts(data: Windows) -> list[int]:
    return [int(data.observed[start + LOOK_BACK : start + LOOK_BACK + HORIZON].sum()) for start in data.starts.tolist()]


def test_without_gaps_the_error_is_the_plain_mean() -> None:
    data = windows(missing=0.0)
    measured, errors = accuracy(Repeating(), data, batch=7), []
    for window, target in data.batches(5):
        errors.append((window.values[:, -1:] - target.values).double())
    assert measured.mse == pytest.approx(float((torch.cat(errors) ** 2).mean()), rel=1e-6)
    assert measured.mae == pytest.approx(float(torch.cat(errors).abs().mean()), rel=1e-6)


def test_values_in_a_gap_of_the_target_do_not_count() -> None:
    forecast = torch.randn(4, HORIZON, CHANNELS, generator=torch.Generator().manual_seed(1))
    observed = torch.rand(forecast.shape, generator=torch.Generator().manual_seed(2)) > 0.3
    one, other = (
        Target(torch.zeros(forecast.shape).where(observed, torch.tensor(filling)), observed) for filling in (0.0, 1e6)
    )
    assert torch.equal(squared_error(forecast, one), squared_error(forecast, other))
    assert torch.equal(absolute_error(forecast, one), absolute_error(forecast, other))
    assert squared_error(forecast, one).dtype == torch.float64


def test_a_huge_value_in_a_gap_of_the_target_does_not_count() -> None:
    observed = torch.ones(1, HORIZON, CHANNELS, dtype=torch.bool)
    observed[0, 0, 0] = False
    target = Target(torch.zeros(1, HORIZON, CHANNELS).where(observed, torch.tensor(1e30)), observed)
    assert squared_error(torch.ones(1, HORIZON, CHANNELS), target).item() == 1


def test_a_forecaster_without_explanations_has_an_open_rate_of_one() -> None:
    assert (accuracy(Repeating(), windows()).open_rate == 1).all()


def network(budget: float = 0.4) -> IBForecast:
    config = ModelConfig(
        LOOK_BACK,
        HORIZON,
        CHANNELS,
        4,
        patch_len=3,
        budget=budget,
        gate=GateConfig(width=4, heads=2),
        readout=ReadoutConfig(width=6),
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        return IBForecast(config).eval()


@torch.no_grad()
def test_the_open_rate_is_that_of_each_windows_mask() -> None:
    data, forecaster = windows(missing=0.15), network(budget=0.6)
    measured = accuracy(forecaster, data, batch=8)
    for place, start in enumerate(data.starts):
        explanation = forecaster(data.look_backs(start[None])).explanation
        assert measured.open_rate[place] == explanation.mask.double().mean()
    assert len(set(measured.open_rate.tolist())) > 1


def test_a_window_that_uses_its_whole_budget_does_not_exceed_it() -> None:
    config = ModelConfig(15, HORIZON, CHANNELS, 4, patch_len=3, budget=0.2, gate=GateConfig(width=4, heads=2))
    values = torch.randn(2, 15, CHANNELS, generator=torch.Generator().manual_seed(4))
    phase = torch.zeros(2, 20, dtype=torch.int64)
    explanation = (
        IBForecast(config).eval()(Window(values, torch.ones_like(values, dtype=torch.bool), phase)).explanation
    )
    assert explanation.open_count.tolist() == [3, 3]
    assert max(explanation.open_rate.tolist()) <= 0.2


def test_measuring_leaves_forecaster_and_generator_unchanged() -> None:
    forecaster, state = network(), torch.get_rng_state()
    weights = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    accuracy(forecaster, windows())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in forecaster.state_dict().items())
    assert all(parameter.grad is None for parameter in forecaster.parameters())


def test_means_are_over_windows() -> None:
    measured = Accuracy(torch.tensor([1.0, 2.0, 6.0]).double(), torch.tensor([1.0, 1.0, 4.0]).double(), torch.ones(3))
    assert (measured.mse, measured.mae) == (3.0, 2.0)
