"""One model, any budget: the same weights under another budget, masks one within the other."""

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
def test_a_smaller_budget_reads_a_part_of_what_a_larger_one_reads(seed: int, one: float, other: float) -> None:
    small, large = sorted((one, other))
    made = network()
    little, much = (made.with_budget(budget)(window(seed)).explanation for budget in (small, large))
    assert not (little.mask & ~much.mask).any()
    assert (little.open_rate <= small + 1e-8).all()
    assert (much.open_rate <= large + 1e-8).all()


@torch.no_grad()
def test_at_its_own_budget_it_is_the_same_forecaster() -> None:
    made = network()
    assert torch.equal(made.with_budget(0.25)(window(1)).values, made(window(1)).values)


def test_weights_are_shared_and_a_change_of_one_is_a_change_of_both() -> None:
    made = network()
    other = made.with_budget(0.5)
    assert {p.data_ptr() for p in made.parameters()} == {p.data_ptr() for p in other.parameters()}
    assert other.config.budget == 0.5
    assert made.config.budget == 0.25


def test_a_model_trained_for_one_budget_keeps_it() -> None:
    made = network(any_budget=False)
    assert made.with_budget(0.25).config == made.config
    with pytest.raises(UsageError, match="only in a model trained for any"):
        made.with_budget(0.5)


@torch.no_grad()
def test_channels_that_are_separated_may_be_forecast_differently_from_the_same_past() -> None:
    made, alike = network(), window(2)
    values = alike.values[..., :1].expand(-1, -1, CHANNELS).contiguous()
    readout, context = made.readout, made.context(alike)
    evidence, mask = values, torch.ones(4, 4, CHANNELS)
    same = readout(evidence, mask, context)
    assert torch.equal(same[..., 0], same[..., 1])
    readout.channel.normal_(generator=torch.Generator().manual_seed(3))
    told = readout(evidence, mask, context)
    assert not torch.equal(told[..., 0], told[..., 1])


def test_turning_the_budget_draws_from_no_generator_of_the_caller() -> None:
    made = network()
    state = torch.get_rng_state()
    made.with_budget(0.5)
    assert made.with_budget(0.25) is made
    assert torch.equal(torch.get_rng_state(), state)
