"""Windows with and without gaps, and a function that runs an explainer."""

from collections.abc import Callable

import pytest
import torch

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.window import Window

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 36, 12, 2, 12, 3


@pytest.fixture
def window() -> Window:
    """Windows in double precision with some missing values."""
    random = torch.Generator().manual_seed(1)
    values = 1 + 2 * torch.randn(BATCH, LOOK_BACK, CHANNELS, generator=random).double()
    observed = torch.rand(BATCH, LOOK_BACK, CHANNELS, generator=random) > 0.05
    phase = torch.randint(0, CYCLE, (BATCH, 1), generator=random) + torch.arange(LOOK_BACK + HORIZON)
    return Window(values.where(observed, torch.zeros(()).double()), observed, phase % CYCLE)


@pytest.fixture
def complete(window: Window) -> Window:
    """Windows of the same sizes without missing values."""
    random = torch.Generator().manual_seed(2)
    values = 1 + 2 * torch.randn(window.values.shape, generator=random).double()
    return Window(values, torch.ones_like(window.observed), window.phase)


@pytest.fixture
def explain() -> Callable[..., Importance]:
    def explain(explainer: Explainer, predictor: Predictor, window: Window, seed: int = 0) -> Importance:
        """Explain windows with a share of one quarter."""
        shares = torch.full((len(window.values),), 0.25, dtype=window.values.dtype)
        return explainer.explain(predictor, window, shares, torch.Generator().manual_seed(seed))

    return explain
