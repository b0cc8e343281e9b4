"""The promises of every forecast, with covariates and several cycles."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import closed_to_zero, spread
from ibforecast.core.window import Window
from ibforecast.evaluate.fidelity import native_importance, native_points, perturb
from ibforecast.evaluate.verification import broken, scrambled
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

modest = settings(max_examples=30, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Case:
    """A network with arbitrary weights, covariates and cycles, and windows to test it on."""

    settings: dict[str, Any]
    readout: dict[str, Any]
    seed: int
    batch: int

    @cached_property
    def config(self) -> ModelConfig:
        gate, readout = GateConfig(width=4, heads=2), ReadoutConfig(**self.readout)
        return ModelConfig(gate=gate, readout=readout, **self.settings)

    @cached_property
    def network(self) -> IBForecast:
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            network = IBForecast(self.config)
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.add_(0.4 * torch.randn_like(parameter))
        return network.eval()

    @cached_property
    def window(self) -> Window:
        config, random = self.config, torch.Generator().manual_seed(self.seed)
        steps = config.look_back + config.horizon
        values = 30 * torch.randn(self.batch, config.look_back, config.channels, generator=random)
        observed = torch.rand(values.shape, generator=random) >= 0.05
        phase = torch.randint(0, 99, (self.batch, 1), generator=random) + torch.arange(steps)
        known = torch.randn(self.batch, steps, config.future, generator=random) if config.future else None
        return Window(values.where(observed, torch.zeros(())), observed, phase % config.period, known=known)

    @torch.no_grad()
    def explain(self) -> tuple[Tensor, Explanation]:
        forecast = self.network(self.window)
        return forecast.values, forecast.explanation


@st.composite
def cases(draw: st.DrawFn, least_future: int = 0) -> Case:
    patch_len, patches, channels = (draw(st.integers(*ends)) for ends in ((1, 4), (2, 5), (2, 4)))
    past = draw(st.integers(0, channels - 1))
    kind = "phase" if past else draw(st.sampled_from(["linear", "mlp", "phase"]))
    cycles = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True))
    return Case(
        settings={
            "look_back": patch_len * patches,
            "horizon": draw(st.integers(1, 5)),
            "channels": channels,
            "cycle": cycles[0],
            "further_cycles": tuple(cycles[1:]),
            "past": past,
            "future": draw(st.integers(least_future, 2)),
            "patch_len": patch_len,
            "budget": 0.5,
            "frame": draw(st.sampled_from(["mean", "weighted", "none"])),
        },
        readout={"kind": kind, "width": 6, "cross_channel": bool(past)},
        seed=draw(SEEDS),
        batch=draw(st.integers(1, 3)),
    )


def same_bits(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


@modest
@given(case=cases())
def test_a_forecast_replayed_from_its_explanation_is_the_same_bit_for_bit(case: Case) -> None:
    values, explanation = case.explain()
    context = explanation.context
    tensors = {name: value for name, value in vars(context).items() if isinstance(value, Tensor)}
    written = replace(context, **{name: torch.tensor(value.tolist()).view_as(value) for name, value in tensors.items()})
    with torch.no_grad():
        assert same_bits(case.network.replay(replace(explanation, context=written)), values)


@modest
@given(case=cases(), seed=SEEDS)
def test_with_covariates_held_no_closed_token_can_change_a_bit(case: Case, seed: int) -> None:
    values, explanation = case.explain()
    random = torch.Generator().manual_seed(seed)
    closed = ~spread(explanation.mask, case.config.patch_len)
    noise = case.window.values.where(~closed, 1e3 * torch.randn(closed.shape, generator=random))
    with torch.no_grad():
        assert same_bits(case.network.replay(scrambled(case.window, explanation, random)), values)
        evidence = closed_to_zero(explanation.mask, explanation.context.remove(noise))
        assert same_bits(case.network.replay(replace(explanation, evidence=evidence)), values)
    assert not broken(case.network, case.window, Forecast(values, explanation), random).any()


@modest
@given(case=cases(least_future=1), step=st.integers(0, 1000))
def test_changing_a_future_covariate_changes_only_that_step_by_its_effect(case: Case, step: int) -> None:
    values, explanation = case.explain()
    context, config = explanation.context, case.config
    ahead = step % config.horizon
    known = context.known.clone()
    known[:, config.look_back + ahead] += 1
    with torch.no_grad():
        moved = case.network.replay(replace(explanation, context=replace(context, known=known)))
    response = context.response[context.phase[:, config.look_back + ahead] % config.cycle].sum(dim=1)
    torch.testing.assert_close(moved[:, ahead] - values[:, ahead], response, atol=1e-3, rtol=1e-3)
    others = [other for other in range(config.horizon) if other != ahead]
    assert same_bits(moved[:, others], values[:, others])


class ForgetsThePlan(IBForecast):
    """A forecaster that uses covariates without disclosing them."""

    def forward(self, window: Window, held: Any = None) -> Forecast:
        forecast = super().forward(window, held)
        context = replace(forecast.explanation.context, known=torch.zeros_like(forecast.explanation.context.known))
        return replace(forecast, explanation=replace(forecast.explanation, context=context))


@modest
@given(case=cases(least_future=1), seed=SEEDS)
def test_a_forecaster_that_hides_its_covariates_is_detected(case: Case, seed: int) -> None:
    network = ForgetsThePlan(case.config).eval()
    network.load_state_dict(case.network.state_dict())
    with torch.no_grad():
        forecast = network(case.window)
    assert broken(network, case.window, forecast, torch.Generator().manual_seed(seed)).all()


@modest
@given(case=cases(least_future=1))
def test_fidelity_keeps_covariates_fixed(case: Case) -> None:
    """With everything deleted, the forecast is that of a window that follows its baseline, covariates included."""
    values, explanation = case.explain()
    perturbed = perturb(case.network, case.window, native_importance(explanation), native_points(explanation))
    assert same_bits(perturbed.whole, values)
    with torch.no_grad():
        nothing = case.network.context(case.window).reference(case.config.look_back)
        bare = case.network(replace(case.window, values=nothing), explanation.context)
    assert same_bits(perturbed.all_deleted, bare.values)
    assert bare.explanation.evidence.abs().max() < 1e-3


@pytest.mark.parametrize("cycles", [(4, 6), (2, 6)])
@modest
@given(seed=SEEDS, shift=st.integers(-50, 50))
def test_shifting_all_phases_by_the_period_changes_nothing(cycles: tuple[int, int], seed: int, shift: int) -> None:
    case = Case(
        {
            "look_back": 6,
            "horizon": 3,
            "channels": 2,
            "cycle": cycles[0],
            "further_cycles": cycles[1:],
            "future": 1,
            "patch_len": 2,
            "budget": 0.5,
        },
        {"width": 6},
        seed,
        2,
    )
    values, _ = case.explain()
    later = replace(case.window, phase=case.window.phase + shift * case.config.period)
    with torch.no_grad():
        assert same_bits(case.network(later).values, values)
