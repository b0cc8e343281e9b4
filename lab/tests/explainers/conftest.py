"""A tiny model of ours, windows with gaps, and a function that runs an explainer."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.window import Window
from ibforecast.model.config import GateConfig, GateKind, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 36, 12, 2, 12, 3


@pytest.fixture
def make_model() -> Callable[..., IBForecast]:
    def make(kind: GateKind = "exact", budget: float = 0.5) -> IBForecast:
        """Build it in evaluation mode and double precision, with every parameter moved away from zero."""
        config = ModelConfig(
            LOOK_BACK,
            HORIZON,
            CHANNELS,
            CYCLE,
            budget=budget,
            gate=GateConfig(kind=kind, width=8, heads=2),
            readout=ReadoutConfig(width=16),
        )
        with torch.random.fork_rng([]):
            torch.manual_seed(0)
            model = IBForecast(config)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
        return model.double().eval()

    return make


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
    def explain(
        explainer: Explainer, predictor: Predictor, window: Window, share: float | Tensor = 0.25, seed: int = 0
    ) -> Importance:
        """Explain windows with one share for all, or one for each."""
        shares = torch.as_tensor(share, dtype=window.values.dtype).expand(len(window.values))
        return explainer.explain(predictor, window, shares, torch.Generator().manual_seed(seed))

    return explain
