"""Networks with a part removed: the part has no effect, and the promises that depended on it do not hold."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from ibforecast.core.contracts import Accountable
from ibforecast.core.tokens import spread
from ibforecast.core.window import Target, Window
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast_lab.networks.ablations import SoftForecast, UngatedForecast, frozen, phaseless

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
Network = Callable[[ModelConfig], IBForecast | SoftForecast | UngatedForecast]


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
def test_a_closed_token_still_moves_the_forecast_of_an_unaccountable_network(network: Network) -> None:
    forecaster, seen = built(network), window()
    held, mask = forecaster.context(seen), forecaster(seen).explanation.mask
    moved = replace(seen, values=seen.values.where(spread(mask, CONFIG.patch_len), window(seed=9).values))
    with_own_gates = forecaster(moved, held).values
    assert not torch.equal(with_own_gates, forecaster(seen, held).values)
    assert not isinstance(forecaster, Accountable)


@torch.no_grad()
def test_explanations_equal_those_of_the_intact_network() -> None:
    whole = built(IBForecast)(window()).explanation
    for network in (SoftForecast, UngatedForecast):
        explanation = built(network)(window()).explanation
        assert torch.equal(explanation.mask, whole.mask)
        assert torch.equal(built(network).importance(window()), built(IBForecast).importance(window()))


def test_soft_gates_are_trained_on_the_forecast_they_make_in_use() -> None:
    forecaster = built(SoftForecast)
    used = ((forecaster(window()).values - target().values) ** 2).mean()
    torch.testing.assert_close(terms(forecaster)["fit"], used)


def test_without_the_gated_base_fit_and_gates_do_not_affect_each_other() -> None:
    forecaster = built(UngatedForecast)
    assert isinstance(forecaster, UngatedForecast)
    losses = terms(forecaster)
    losses["fit"].backward(retain_graph=True)  # type: ignore[no-untyped-call]
    assert all(parameter.grad is None for parameter in forecaster.network.score.parameters())
    losses["rate"].backward()  # type: ignore[no-untyped-call]
    assert any(parameter.grad is not None for parameter in forecaster.network.score.parameters())
    before = forecaster(window()).values
    with torch.no_grad():
        for parameter in forecaster.network.score.parameters():
            parameter.add_(1.0)
    assert torch.equal(forecaster(window()).values, before)


@torch.no_grad()
def test_with_all_gates_open_removing_the_gated_base_changes_nothing() -> None:
    opened = replace(CONFIG, budget=1.0)
    whole, ungated = (built(network, opened)(window()).values for network in (IBForecast, UngatedForecast))
    torch.testing.assert_close(whole, ungated)


@pytest.mark.parametrize("cross_channel", [False, True])
def test_without_the_phase_the_forecast_does_not_depend_on_the_time(cross_channel: bool) -> None:
    readout = replace(CONFIG.readout, cross_channel=cross_channel)
    config = replace(CONFIG, profile=False, readout=readout)
    later = replace(window(), phase=window().phase + 5)
    with_phase, without = trained(IBForecast, config), trained(phaseless, config)
    assert not torch.equal(with_phase(later).values, with_phase(window()).values)
    assert torch.equal(without(later).values, without(window()).values)
    assert isinstance(without, Accountable)


def test_a_mask_that_is_not_learned_stays_as_it_starts() -> None:
    config = replace(CONFIG, sealed=True, gate=replace(CONFIG.gate, attention="none"))
    network = frozen(config)
    before, readout = (
        [part.detach().clone() for part in parts.parameters()] for parts in (network.score, network.readout)
    )
    network = trained(lambda _: network, config)
    assert all(map(torch.equal, before, network.score.parameters()))
    assert not all(map(torch.equal, readout, network.readout.parameters()))
