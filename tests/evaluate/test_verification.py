"""Checking windows one at a time: which ones, how many, and what is a failure."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.verification import broken, scrambled, verify_windows
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

LOOK_BACK, HORIZON, CHANNELS, ROWS, PATCH_LEN = 12, 4, 2, 80, 3
CONFIG = ModelConfig(
    LOOK_BACK,
    HORIZON,
    CHANNELS,
    5,
    patch_len=PATCH_LEN,
    budget=0.5,
    gate=GateConfig(width=4, heads=2),
    readout=ReadoutConfig(width=6),
)


def windows(count: int) -> Windows:
    random = torch.Generator().manual_seed(0)
    values = torch.randn(ROWS, CHANNELS, generator=random)
    observed = torch.rand(ROWS, CHANNELS, generator=random) > 0.02
    values[:, 0] = torch.arange(ROWS)  # so that a window can be identified by its first value
    observed[:, 0] = True
    filled = values.where(observed, torch.zeros(()))
    return Windows(filled, observed, torch.arange(ROWS + HORIZON) % 5, torch.arange(count), LOOK_BACK, HORIZON)


class Noting(IBForecast):
    """A forecaster that records its windows, and gives false forecasts after `lies_after` of them."""

    lies_after = 10**6

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        forecast = super().forward(window, held)
        start = int(window.values[0, 0, 0])
        self.shown = [*getattr(self, "shown", []), (start, len(window.values))]
        return replace(forecast, values=forecast.values + 1e-3) if start > self.lies_after else forecast


def noting() -> Noting:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        return Noting(CONFIG).eval()


@pytest.mark.parametrize(
    ("count", "requested", "checked"), [(60, 7, 7), (60, 60, 60), (60, 1000, 60), (1, 5, 1), (60, 1, 1)]
)
def test_the_requested_number_of_windows_is_checked_or_all_of_them(count: int, requested: int, checked: int) -> None:
    forecaster = noting()
    assert verify_windows(forecaster, windows(count), requested) == (checked, 0)
    starts = [start for start, _ in forecaster.shown[::2]]  # every other window is the noise in between
    assert len(set(starts)) == len(starts) == checked
    assert all(size == 1 for _, size in forecaster.shown)


def test_the_windows_checked_are_evenly_spaced_from_the_first_to_the_last() -> None:
    forecaster = noting()
    verify_windows(forecaster, windows(61), 7)
    assert [start for start, _ in forecaster.shown[::2]] == [0, 10, 20, 30, 40, 50, 60]


class Remembering(IBForecast):
    """A forecaster that adds the last window to the forecast without explaining it."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        self.last = window.values.mean()
        return super().forward(window, held)

    def replay(self, explanation: Explanation) -> Tensor:
        return super().replay(explanation) + self.last


def test_a_forecaster_that_remembers_the_window_is_detected() -> None:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        forecaster = Remembering(CONFIG).eval()
    assert verify_windows(forecaster, windows(61), 7) == (7, 7)


def test_every_window_that_fails_is_counted() -> None:
    forecaster = noting()
    forecaster.lies_after = 40
    assert verify_windows(forecaster, windows(61), 7) == (7, 2)
    assert verify_windows(forecaster, windows(61), 61) == (61, 20)


def test_checking_uses_its_own_generator_and_leaves_the_forecaster_unchanged() -> None:
    forecaster, state = noting(), torch.get_rng_state()
    weights = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    verify_windows(forecaster, windows(30), 5)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in forecaster.state_dict().items())


@torch.no_grad()
def test_scrambling_keeps_the_open_tokens_and_replaces_the_closed_ones() -> None:
    window, _ = windows(20).take(torch.arange(6))
    explanation = noting()(window).explanation
    assert explanation is not None
    again = scrambled(window, explanation, torch.Generator().manual_seed(0))
    assert torch.equal(again.evidence.view(torch.int32), explanation.evidence.view(torch.int32))
    opened = spread(explanation.mask, PATCH_LEN)
    moved = replace(window, values=window.values.where(~opened, window.values + 1))
    elsewhere = scrambled(moved, explanation, torch.Generator().manual_seed(0))
    assert (elsewhere.evidence != explanation.evidence)[opened].all()
    assert not elsewhere.evidence[~opened].any()


@torch.no_grad()
def test_the_noise_is_large_compared_with_the_window() -> None:
    """A soft mask would let the noise through; with every token marked closed it shows at once."""
    window, _ = windows(20).take(torch.arange(6))
    explanation = noting()(window).explanation
    assert explanation is not None
    seen: list[Tensor] = []
    context = replace(explanation.context)
    object.__setattr__(context, "remove", lambda values: (seen.append(values), values)[1])
    scrambled(window, replace(explanation, context=context), torch.Generator().manual_seed(0))
    opened = spread(explanation.mask, PATCH_LEN)
    assert torch.equal(seen[0][opened], window.values[opened])
    assert seen[0][~opened].std() > window.values.abs().max()


@torch.no_grad()
def test_with_gaps_and_constant_channels_an_honest_forecast_still_passes() -> None:
    window, _ = windows(20).take(torch.arange(6))
    window.observed[2, 3:9, 1] = False
    window.values[4] = 0.0
    forecaster = noting()
    assert not broken(forecaster, window, forecaster(window), torch.Generator()).any()


def test_a_nan_forecast_is_never_verified() -> None:
    class Broken(IBForecast):
        def replay(self, explanation: Explanation) -> Tensor:
            return super().replay(explanation) * torch.nan

    assert verify_windows(Broken(CONFIG).eval(), windows(10), 5) == (5, 5)
