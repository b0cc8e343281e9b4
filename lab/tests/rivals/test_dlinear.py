import pytest
import torch
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.dlinear import DLinear, DLinearConfig, moving_average


def window_of(values: Tensor, horizon: int = 12) -> Window:
    batch, look_back, _ = values.shape
    phase = torch.arange(look_back + horizon).expand(batch, -1) % 24
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


@pytest.fixture
def model() -> DLinear:
    torch.manual_seed(0)
    return DLinear(DLinearConfig(look_back=48, horizon=12, channels=3, cycle=24)).eval()


@torch.no_grad()
def test_a_forecast_is_the_effective_weights_times_the_window_plus_the_bias(model: DLinear) -> None:
    window = window_of(torch.randn(5, 48, 3))
    bias = model.trend.bias + model.remainder.bias
    closed = torch.einsum("ht,btc->bhc", model.effective_weights(), window.values) + bias[:, None]
    assert torch.allclose(model(window).values, closed, atol=1e-5)


@torch.no_grad()
def test_importance_is_the_mean_shift_from_replacing_one_value_by_the_mean(model: DLinear) -> None:
    window = window_of(torch.randn(2, 48, 3))
    importance, full = model.importance(window), model(window).values
    for t, c in [(0, 0), (17, 1), (47, 2)]:
        deleted = window.values.clone()
        deleted[:, t, c] = window.values[:, :, c].mean(dim=1)
        shift = (full - model(window_of(deleted)).values)[..., c].abs().mean(dim=1)
        assert torch.allclose(importance[:, t, c], shift, atol=1e-5)


@torch.no_grad()
def test_a_missing_value_has_an_importance_of_zero(model: DLinear) -> None:
    window = window_of(torch.randn(2, 48, 3))
    window.observed[:, 10:20, 1] = False
    importance = model.importance(window)
    assert importance[:, 10:20, 1].max() < 1e-6
    assert importance[:, :10].min() > 0


@pytest.mark.parametrize("kernel", [1, 5, 25])
def test_the_moving_average_repeats_the_first_and_last_values(kernel: int) -> None:
    values = torch.randn(48, dtype=torch.float64)
    half = kernel // 2
    naive = [sum(float(values[min(max(t + lag, 0), 47)]) for lag in range(-half, half + 1)) / kernel for t in range(48)]
    assert torch.allclose(moving_average(48, kernel).double() @ values, torch.tensor(naive).double(), atol=1e-5)


def test_all_channels_share_the_maps(model: DLinear) -> None:
    assert sum(parameter.numel() for parameter in model.parameters()) == 2 * (48 * 12 + 12)


def test_an_even_kernel_is_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="kernel must be odd \\(got kernel=24\\); try 25"):
        DLinearConfig(look_back=48, horizon=12, channels=3, cycle=24, kernel=24)


def test_an_empty_look_back_is_refused() -> None:
    with pytest.raises(UsageError, match="look_back must be at least 1"):
        DLinearConfig(look_back=0, horizon=12, channels=3, cycle=24)
