"""A predictor at rest: evaluation mode inside the block, and its own modes again after it."""

import pytest
import torch
from torch import nn

from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import at_rest


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
