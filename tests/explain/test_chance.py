"""Chance: uniform grades that need no predictor."""

from collections.abc import Callable

import pytest
import torch

from ibforecast.core.contracts import Importance
from ibforecast.core.window import Window
from ibforecast.explain.chance import Chance
from ibforecast.explain.guest import Guest


def test_chance_is_uniform_depends_on_the_generator_and_never_runs_the_predictor(
    explain: Callable[..., Importance],
) -> None:
    values = torch.zeros(20, 96, 7)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(100).expand(20, -1))
    guest = Guest(lambda values: pytest.fail("the predictor was run"))
    one, other = (explain(Chance(), guest, window, seed=seed).values for seed in (0, 1))
    assert (one != other).double().mean() > 0.99
    assert ((one >= 0) & (one < 1)).all()
    assert abs(float(one.mean()) - 0.5) < 0.01
    assert abs(float(one.std()) - 12**-0.5) < 0.01
    assert abs(float(torch.corrcoef(torch.stack([one[:, 1:].flatten(), one[:, :-1].flatten()]))[0, 1])) < 0.03
