import pytest
import torch
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast_lab.rivals.tft import TFT, GatedResidual, SharedValueAttention, TFTConfig


def window_of(values: Tensor, horizon: int = 6) -> Window:
    batch, look_back, _ = values.shape
    phase = torch.arange(look_back + horizon).expand(batch, -1) % 24
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


@pytest.fixture
def model() -> TFT:
    torch.manual_seed(0)
    return TFT(TFTConfig(look_back=24, horizon=6, channels=3, cycle=24, width=8, heads=2)).eval()


@torch.no_grad()
def test_importance_sums_to_one(model: TFT) -> None:
    importance = model.importance(window_of(torch.randn(4, 24, 3)))
    assert (importance >= 0).all()
    assert torch.allclose(importance.sum(dim=(1, 2)), torch.ones(4), atol=1e-5)


@torch.no_grad()
def test_variable_selection_equals_one_network_per_channel(model: TFT) -> None:
    values = torch.randn(2, 24, 3)
    selected, weights = model.select(values)
    embedded = [
        values[..., c, None] * model.select.embed.weight[c, 0] + model.select.embed.bias[c, 0] for c in range(3)
    ]
    mixed = torch.zeros_like(selected)
    for c in range(3):
        single = GatedResidual(8, 8, 8, 0.0)
        own = {
            name.replace("gain", "weight").replace("shift", "bias"): tensor[c].T.squeeze(-1)
            for name, tensor in model.select.refine.state_dict().items()
        }
        single.load_state_dict(own)
        mixed += weights[..., c, None] * single(embedded[c])
    expected = torch.softmax(model.select.weigh(torch.cat(embedded, dim=-1)), dim=-1)
    assert torch.allclose(weights, expected, atol=1e-5)
    assert torch.allclose(selected, mixed, atol=1e-5)


@torch.no_grad()
def test_future_steps_attend_to_no_later_step() -> None:
    torch.manual_seed(0)
    attention = SharedValueAttention(8, 2)
    _, weights = attention(torch.randn(2, 10, 8), horizon=4)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 4))
    for step in range(4):
        assert (weights[:, step, : 6 + step + 1] > 0).all()
        assert (weights[:, step, 6 + step + 1 :] == 0).all()


@torch.no_grad()
def test_every_channel_affects_every_other(model: TFT) -> None:
    values = torch.randn(1, 24, 3)
    changed = values.clone()
    changed[..., 2] = torch.randn(24)
    moved = (model(window_of(values)).values - model(window_of(changed)).values).abs().amax(dim=(0, 1))
    assert (moved > 0).all()


def test_gradients_reach_the_window_in_evaluation_mode(model: TFT) -> None:
    values = torch.randn(1, 24, 3, requires_grad=True)
    model(window_of(values)).values.square().sum().backward()
    assert values.grad is not None
    assert (values.grad.abs().sum(dim=1) > 0).all()


def test_only_recurrent_layers_stay_in_training_mode(model: TFT) -> None:
    assert {name for name, module in model.named_modules() if module.training} == {"encoder", "decoder"}
    assert all(module.training for module in model.train().modules())


@pytest.mark.parametrize(("setting", "value"), [("heads", 3), ("dropout", -0.1), ("width", 0)])
def test_invalid_settings_are_refused(setting: str, value: float) -> None:
    settings = {"width": 8, "heads": 2} | {setting: value}
    with pytest.raises(UsageError, match=setting):
        TFTConfig(look_back=24, horizon=6, channels=3, cycle=24, **settings)
