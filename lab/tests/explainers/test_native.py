"""The native explanation: the model's own map, and an error if it has none."""

from collections.abc import Callable

import pytest
import torch

from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.explain.guest import Guest
from ibforecast.model.network import IBForecast
from ibforecast_lab.explainers.native import Native

Make = Callable[..., IBForecast]
Explain = Callable[..., Importance]


def test_the_native_explanation_is_the_models_own(make_model: Make, explain: Explain, window: Window) -> None:
    model = make_model()
    importance = explain(Native(), model, window)
    with torch.no_grad():
        probability = model(window).explanation.probability
    assert torch.equal(importance.values, spread(probability, 12) * window.observed)
    assert (importance.forwards, importance.backwards) == (1, 0)


def test_a_model_without_a_native_explanation_is_refused_by_name(explain: Explain, window: Window) -> None:
    with pytest.raises(UsageError, match=r"explains itself \(got Guest\); use .*occlusion"):
        explain(Native(), Guest(lambda values: values), window)
