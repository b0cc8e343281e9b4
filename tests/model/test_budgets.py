"""A model for any budget: the same weights under another budget, with nested masks."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

LOOK_BACK, HORIZON, CHANNELS, CYCLE = 48, 12, 3, 24


def network(any_budget: bool = True, budget: float = 0.25) -> IBForecast:
    gate = GateConfig(width=8, heads=2, any_budget=any_budget)
    config = ModelConfig(
        LOOK_BACK, HORIZON, CHANNELS, CYCLE, budget=budget, gate=gate, readout=ReadoutConfig(width=16, by_channel=True)
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return IBForecast(config).eval()


def window(seed: int) -> Window:
    values = torch.randn(4, LOOK_BACK, CHANNELS, generator=torch.Generator().manual_seed(seed))
    phase = torch.arange(LOOK_BACK + HORIZON).expand(4, -1) % CYCLE
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.floats(0.1, 1.0), st.floats(0.1, 1.0))
@torch.no_grad()
def test_the_mask_of_a_smaller_budget_is_within_that_of_a_larger_one(seed: int, one: float, other: float) -> None:
    small, large = sorted((one, other))
    model = network()
    little, much = (model.with_budget(budget)(window(seed)).explanation for budget in (small, large))
    assert not (little.mask & ~much.mask).any()
    assert (little.open_rate <= small + 1e-8).all()
    assert (much.open_rate <= large + 1e-8).all()


@torch.no_grad()
def test_the_budget_of_training_gives_the_same_forecast() -> None:
    model = network()
    assert torch.equal(model.with_budget(0.25)(window(1)).values, model(window(1)).values)


def test_both_budgets_share_the_weights() -> None:
    model = network()
    other = model.with_budget(0.5)
    assert {p.data_ptr() for p in model.parameters()} == {p.data_ptr() for p in other.parameters()}
    assert other.config.budget == 0.5
    assert model.config.budget == 0.25


def test_a_model_trained_for_one_budget_keeps_it() -> None:
    model = network(any_budget=False)
    assert model.with_budget(0.25).config == model.config
    with pytest.raises(UsageError, match="only in a model trained for any"):
        model.with_budget(0.5)


@torch.no_grad()
def test_a_readout_by_channel_may_forecast_channels_with_the_same_past_differently() -> None:
    model, alike = network(), window(2)
    values = alike.values[..., :1].expand(-1, -1, CHANNELS).contiguous()
    readout, context = model.readout, model.context(alike)
    evidence, mask = values, torch.ones(4, 4, CHANNELS)
    same = readout(evidence, mask, context)
    assert torch.equal(same[..., 0], same[..., 1])
    readout.channel.normal_(generator=torch.Generator().manual_seed(3))
    separate = readout(evidence, mask, context)
    assert not torch.equal(separate[..., 0], separate[..., 1])


def test_changing_the_budget_leaves_the_global_generator_unchanged() -> None:
    model = network()
    state = torch.get_rng_state()
    model.with_budget(0.5)
    assert model.with_budget(0.25) is model
    assert torch.equal(torch.get_rng_state(), state)
