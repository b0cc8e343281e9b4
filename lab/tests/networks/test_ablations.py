"""Networks with a part taken out: what is gone is gone, and what they no longer promise."""

from dataclasses import replace

import pytest
import torch

from ibforecast.core.contracts import Accountable
from ibforecast.core.tokens import spread
from ibforecast.core.window import Target, Window
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast_lab.networks.ablations import PhaselessForecast, SoftForecast, UngatedForecast

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 48, 12, 3, 24, 4
CONFIG = ModelConfig(
    LOOK_BACK,
    HORIZON,
    CHANNELS,
    CYCLE,
    budget=0.25,
    gate=GateConfig(width=8, heads=2),
    readout=ReadoutConfig(width=16, dropout=0.0),
    objective=ObjectiveConfig(rate_weight=0.02, prior=0.2),
)
Network = type[IBForecast] | type[SoftForecast] | type[UngatedForecast]


def built(network: Network, config: ModelConfig = CONFIG) -> IBForecast | SoftForecast | UngatedForecast:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return network(config).eval()


def window(seed: int = 1) -> Window:
    values = torch.randn(BATCH, LOOK_BACK, CHANNELS, generator=torch.Generator().manual_seed(seed))
    phase = torch.arange(LOOK_BACK + HORIZON).expand(BATCH, -1) % CYCLE
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


def target() -> Target:
    values = torch.randn(BATCH, HORIZON, CHANNELS, generator=torch.Generator().manual_seed(2))
    return Target(values, torch.ones_like(values, dtype=torch.bool))


def terms(forecaster: IBForecast | SoftForecast | UngatedForecast) -> dict[str, torch.Tensor]:
    return dict(forecaster.loss(window(), target(), torch.tensor(0.5), torch.Generator().manual_seed(3)).terms)


def trained(network: Network, config: ModelConfig) -> IBForecast | SoftForecast | UngatedForecast:
    forecaster = built(network, config).train()
    for group in forecaster.parameter_groups():
        optimiser = torch.optim.Adam(group.parameters, 0.05)
        for _ in range(3):
            optimiser.zero_grad()
            torch.stack(list(terms(forecaster).values())).sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return forecaster.eval()


@pytest.mark.parametrize("network", [SoftForecast, UngatedForecast])
@torch.no_grad()
def test_what_is_closed_still_moves_the_forecast_with_context_and_mask_held(network: Network) -> None:
    forecaster, seen = built(network), window()
    held, mask = forecaster.context(seen), forecaster(seen).explanation.mask
    moved = replace(seen, values=seen.values.where(spread(mask, CONFIG.patch_len), window(seed=9).values))
    with_own_gates = forecaster(moved, held).values
    assert not torch.equal(with_own_gates, forecaster(seen, held).values)
    assert not isinstance(forecaster, Accountable)


@torch.no_grad()
def test_explanations_are_those_of_the_whole_network_within_its_budget() -> None:
    whole = built(IBForecast)(window()).explanation
    for network in (SoftForecast, UngatedForecast):
        told = built(network)(window()).explanation
        assert torch.equal(told.mask, whole.mask)
        assert torch.equal(built(network).importance(window()), built(IBForecast).importance(window()))


def test_soft_gates_are_trained_on_what_they_are_used_with() -> None:
    forecaster = built(SoftForecast)
    used = ((forecaster(window()).values - target().values) ** 2).mean()
    torch.testing.assert_close(terms(forecaster)["fit"], used)


def test_past_the_gates_the_fit_moves_no_gate_and_no_gate_the_forecast() -> None:
    forecaster = built(UngatedForecast)
    assert isinstance(forecaster, UngatedForecast)
    told = terms(forecaster)
    told["fit"].backward(retain_graph=True)  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in forecaster.network.score.parameters())
    told["rate"].backward()  # type: ignore[no-untyped-call]
    assert any(parameter.grad is not None for parameter in forecaster.network.score.parameters())
    before = forecaster(window()).values
    with torch.no_grad():
        for parameter in forecaster.network.score.parameters():
            parameter.add_(1.0)
    assert torch.equal(forecaster(window()).values, before)


@torch.no_grad()
def test_where_everything_is_open_there_is_no_gate_to_take_out() -> None:
    opened = replace(CONFIG, budget=1.0)
    whole, ungated = (built(network, opened)(window()).values for network in (IBForecast, UngatedForecast))
    torch.testing.assert_close(whole, ungated)


@pytest.mark.parametrize("cross_channel", [False, True])
def test_without_the_phase_the_readout_does_not_notice_what_time_it_is(cross_channel: bool) -> None:
    readout = replace(CONFIG.readout, cross_channel=cross_channel)
    config = replace(CONFIG, profile=False, readout=readout)
    later = replace(window(), phase=window().phase + 5)
    with_phase, without = trained(IBForecast, config), trained(PhaselessForecast, config)
    assert not torch.equal(with_phase(later).values, with_phase(window()).values)
    assert torch.equal(without(later).values, without(window()).values)
    assert isinstance(without, Accountable)
