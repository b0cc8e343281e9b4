"""Unread values may be replaced by anything: no bit of a sealed model's forecast or explanation moves."""

import pytest
import torch

from ibforecast.model.reading import SealedForecast
from torture import scrambled


def test_no_bit_moves_when_unread_values_are_replaced() -> None:
    found = scrambled.scrambled(0.0, 0, aim=10_000)
    assert found["changed"] == 0
    assert found["windows"] > 5_000


def test_a_model_that_reads_more_than_it_says_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, forward = scrambled._model("sealed"), SealedForecast.forward

    def peeking(network: SealedForecast, window: object, *held: object) -> object:
        forecast = forward(network, window, *held)  # type: ignore[arg-type]
        peek = torch.nan_to_num(window.values).sum(dim=(1, 2))[:, None, None] * 1e-6  # type: ignore[attr-defined]
        return type(forecast)(forecast.values + peek, forecast.explanation)

    monkeypatch.setattr(SealedForecast, "forward", peeking)
    monkeypatch.setattr(scrambled, "MODELS", {"sealed": {}})
    monkeypatch.setattr(scrambled, "_model", lambda name: model)
    assert scrambled.scrambled(0.0, 0, aim=1)["broken"]
