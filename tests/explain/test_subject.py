"""A predictor at rest: evaluation mode inside the block, its own modes again after it; copies in a held context."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from ibforecast.core.window import Window
from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import Subject, at_rest
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.reading import network_of


def test_the_modes_of_a_predictor_are_restored_even_after_an_error() -> None:
    guest = Guest(nn.Sequential(nn.Dropout(), nn.Linear(2, 2))).train()
    guest.function[1].eval()  # type: ignore[index]
    modes = [module.training for module in guest.modules()]

    def interrupted() -> None:
        with at_rest(guest):
            assert not any(module.training for module in guest.modules())
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        interrupted()
    assert [module.training for module in guest.modules()] == modes
    assert torch.is_grad_enabled()


def test_cudnn_is_off_only_for_recurrent_predictors_and_only_inside_the_block() -> None:
    enabled = torch.backends.cudnn.enabled
    for network, expected in ((nn.LSTM(2, 2), False), (nn.Linear(2, 2), enabled)):
        with at_rest(Guest(network)):
            assert torch.backends.cudnn.enabled is expected
        assert torch.backends.cudnn.enabled is enabled


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("future", [0, 2])
def test_several_copies_of_a_batch_are_forecast_as_each_of_them_is(anchored: bool, future: int) -> None:
    config = ModelConfig(
        12, 4, 3, 6, patch_len=1, budget=0.5, anchored=anchored, future=future, gate=GateConfig(width=4, heads=2),
        readout=ReadoutConfig(width=8),
    )  # fmt: skip
    torch.manual_seed(0)
    network = network_of(config).eval()
    if anchored:
        network.decompose.anchor.blend.fill_(0.3)  # type: ignore[union-attr]
    values, phase = torch.randn(5, 12, 3), torch.arange(16).expand(5, -1) % 6
    window = Window(values, torch.ones(5, 12, 3, dtype=torch.bool), phase, None, torch.randn(5, 16, future))
    with torch.no_grad():
        subject = Subject.of(network, window)
        points = torch.randn(2, 5, 12, 3)
        together = subject.forecast(points)
        apart = [network(replace(window, values=each), subject.held).values for each in points]
    assert torch.allclose(together, torch.stack(apart), atol=1e-6)
