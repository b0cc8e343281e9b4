"""The promises of every forecast, for any weights, settings and window."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import floor, inf, nan
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import closed_to_zero, spread, to_tokens
from ibforecast.core.window import Window
from ibforecast.evaluate.verification import broken, changed_bits, scrambled
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

modest = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Case:
    """A network with arbitrary weights, and a batch of windows to test it on; both built when needed."""

    settings: dict[str, Any]
    gate: dict[str, Any]
    readout: dict[str, Any]
    weights_seed: int
    window_seed: int
    batch: int
    missing_share: float

    @cached_property
    def config(self) -> ModelConfig:
        return ModelConfig(gate=GateConfig(**self.gate), readout=ReadoutConfig(**self.readout), **self.settings)

    @cached_property
    def network(self) -> IBForecast:
        """The network in evaluation mode, with every weight changed from its initial value."""
        return built(self.config, self.weights_seed)

    @cached_property
    def window(self) -> Window:
        config, random = self.config, torch.Generator().manual_seed(self.window_seed)
        values = 30 * torch.randn(self.batch, config.look_back, config.channels, generator=random)
        observed = torch.rand(values.shape, generator=random) >= self.missing_share
        tau = torch.randint(0, config.cycle, (self.batch, 1), generator=random)
        phase = (tau + torch.arange(config.look_back + config.horizon)) % config.cycle
        return Window(values.where(observed, torch.zeros(())), observed, phase)

    def explain(self) -> tuple[Tensor, Explanation]:
        return explained(self.network, self.window)


def built(config: ModelConfig, seed: int) -> IBForecast:
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network = IBForecast(config)
        with torch.no_grad():
            for parameter in network.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.4 * torch.randn_like(parameter))
    return network.eval()


@torch.no_grad()
def explained(network: IBForecast, window: Window) -> tuple[Tensor, Explanation]:
    forecast = network(window)
    assert forecast.explanation is not None
    return forecast.values, forecast.explanation


@st.composite
def cases(
    draw: st.DrawFn,
    gaps: bool = True,
    kinds: tuple[str, ...] = ("exact", "capped", "threshold", "newest"),
    frames: tuple[str, ...] = ("mean", "weighted", "none"),
    readouts: tuple[str, ...] = ("linear", "mlp", "phase"),
    full_budget: bool = False,
) -> Case:
    patch_len, patches, channels = (draw(st.integers(*ends)) for ends in ((1, 4), (1, 5), (1, 4)))
    readout = draw(st.sampled_from(readouts))
    attention = draw(st.sampled_from(["joint", "within", "none"]))
    kind = draw(st.sampled_from(kinds))
    least = 100 if full_budget else -(-100 // (patches if kind == "newest" else patches * channels))
    return Case(
        settings={
            "look_back": patch_len * patches,
            "horizon": draw(st.integers(1, 6)),
            "channels": channels,
            "cycle": draw(st.integers(1, 9)),
            "patch_len": patch_len,
            "budget": draw(st.integers(least, 100)) / 100,
            "frame": draw(st.sampled_from(frames)),
            "profile": draw(st.booleans()),
        },
        gate={
            "kind": kind,
            "attention": attention,
            "recent": draw(st.integers(attention == "none", 2)),
            "width": 4,
            "heads": 2,
        },
        readout={"kind": readout, "width": 6, "cross_channel": readout == "phase" and draw(st.booleans())},
        weights_seed=draw(SEEDS),
        window_seed=draw(SEEDS),
        batch=draw(st.integers(1, 3)),
        missing_share=draw(st.sampled_from([0.0, 0.05, 0.4])) if gaps else 0.0,
    )


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal bit for bit, including the sign of zero."""
    return one.shape == other.shape and torch.equal(one.view(torch.int32), other.view(torch.int32))


def noise_like(values: Tensor, seed: int, size: float = 1e3) -> Tensor:
    return size * torch.randn(values.shape, generator=torch.Generator().manual_seed(seed))


@modest
@given(case=cases())
def test_a_forecast_rebuilt_from_only_its_explanation_is_the_same_bit_for_bit(case: Case) -> None:
    values, explanation = case.explain()
    context = explanation.context
    # The explanation as it is disclosed: the mask, the values of the open tokens, the context.
    opened = explanation.evidence[spread(explanation.mask, case.config.patch_len)].tolist()
    evidence = torch.zeros(explanation.evidence.shape)
    evidence[spread(explanation.mask, case.config.patch_len)] = torch.tensor(opened)
    written = replace(
        context,
        level=torch.tensor(context.level.tolist()),
        scale=torch.tensor(context.scale.tolist()),
        phase=torch.tensor(context.phase.tolist()),
        profile=torch.tensor(context.profile.tolist()),
    )
    rebuilt = Explanation(
        mask=torch.tensor(explanation.mask.tolist()),
        evidence=evidence,
        probability=torch.zeros_like(explanation.probability),
        missing=torch.zeros_like(explanation.missing),
        context=written,
    )
    with torch.no_grad():
        again = case.network.replay(rebuilt)
    assert same_bits(again, values)


@modest
@given(case=cases(), seed=SEEDS)
def test_with_context_and_mask_held_no_closed_token_can_change_a_bit(case: Case, seed: int) -> None:
    values, explanation = case.explain()
    closed = ~spread(explanation.mask, case.config.patch_len)
    window = replace(case.window, values=case.window.values.where(~closed, noise_like(case.window.values, seed)))
    network = case.network
    network.decompose.frame = Held(explanation.context.level, explanation.context.scale)
    network.gate = Held(explanation.mask, explanation.probability)  # type: ignore[assignment]
    with torch.no_grad():
        moved = network(window)
        direct = network.replay(scrambled(case.window, explanation, torch.Generator().manual_seed(seed)))
    assert same_bits(moved.values, values)
    assert same_bits(moved.explanation.evidence, explanation.evidence)
    assert same_bits(direct, values)


class Held(nn.Module):
    """A stage that always returns the same outputs."""

    def __init__(self, *outputs: Tensor) -> None:
        super().__init__()
        self.given = outputs

    def forward(self, *shown: Tensor) -> tuple[Tensor, ...]:
        return self.given


@modest
@given(case=cases(), seed=SEEDS, place=st.integers(0, 1000), filling=st.sampled_from([nan, inf, -inf, 3e38, -0.0]))
def test_not_even_nan_or_infinity_passes_a_closed_gate(case: Case, seed: int, place: int, filling: float) -> None:
    values, explanation = case.explain()
    closed = ~spread(explanation.mask, case.config.patch_len)
    deviation = explanation.evidence.where(~closed, noise_like(explanation.evidence, seed))
    deviation.view(-1)[place % deviation.numel()] = filling
    deviation = deviation.where(closed, explanation.evidence)
    with torch.no_grad():
        again = case.network.replay(replace(explanation, evidence=closed_to_zero(explanation.mask, deviation)))
    assert same_bits(again, values)


@modest
@given(case=cases(), seed=SEEDS)
def test_an_honest_forecast_passes_the_check(case: Case, seed: int) -> None:
    values, explanation = case.explain()
    random = torch.Generator().manual_seed(seed)
    assert not broken(case.network, case.window, Forecast(values, explanation), random).any()


SEE_EVERYTHING = ("linear", "phase")
"""Readouts that every change of the evidence moves; behind a ReLU it may not matter."""


class LeaksIntoTheForecast(IBForecast):
    """A forecaster that adds a little of the closed tokens to its forecast."""

    def forward(self, window: Window) -> Forecast:
        forecast = super().forward(window)
        return replace(forecast, values=forecast.values + 1e-3 * window.values.abs().amax(dim=1, keepdim=True))


class LeaksIntoTheEvidence(IBForecast):
    """A forecaster that lets a little of the closed tokens through, as a soft mask does, without disclosing it."""

    def forward(self, window: Window) -> Forecast:
        explanation = super().forward(window).explanation
        assert explanation is not None
        _, deviation = self.decompose(window)
        leaky = replace(explanation, evidence=explanation.evidence + 1e-2 * (deviation - explanation.evidence))
        return Forecast(self.replay(leaky), leaky)


class LeaksIntoTheLevel(IBForecast):
    """A forecaster that hides the largest value of the window in the level it uses, and reports the true level."""

    def forward(self, window: Window) -> Forecast:
        explanation = super().forward(window).explanation
        assert explanation is not None
        level = explanation.context.level + 1e-2 * window.values.abs().amax(dim=1)
        secret = replace(explanation, context=replace(explanation.context, level=level))
        return Forecast(self.replay(secret), explanation)


@pytest.mark.parametrize("saboteur", [LeaksIntoTheForecast, LeaksIntoTheEvidence, LeaksIntoTheLevel])
@modest
@given(case=cases(gaps=False, readouts=SEE_EVERYTHING), seed=SEEDS)
def test_a_forecaster_that_reads_closed_tokens_is_detected(saboteur: type[IBForecast], case: Case, seed: int) -> None:
    _, honest = case.explain()
    with torch.no_grad():
        _, deviation = case.network.decompose(case.window)
    hidden = (deviation - honest.evidence).abs().flatten(1).amax(dim=1)
    assume(bool((hidden > 1e-2).all()))  # there must be something to leak
    network = saboteur(case.config).eval()
    network.load_state_dict(case.network.state_dict())
    with torch.no_grad():
        forecast = network(case.window)
    assert broken(network, case.window, forecast, torch.Generator().manual_seed(seed)).all()


def with_another_forecast(forecast: Forecast) -> Forecast:
    values = forecast.values.clone()
    values[:, -1, 0] = torch.nextafter(values[:, -1, 0], torch.tensor(inf))
    return replace(forecast, values=values)


def with_other_evidence(forecast: Forecast) -> Forecast:
    assert forecast.explanation is not None
    return replace(forecast, explanation=replace(forecast.explanation, evidence=1.5 * forecast.explanation.evidence))


def with_another_level(forecast: Forecast) -> Forecast:
    assert forecast.explanation is not None
    context = replace(forecast.explanation.context, level=forecast.explanation.context.level + 0.5)
    return replace(forecast, explanation=replace(forecast.explanation, context=context))


def with_less_in_the_mask(forecast: Forecast) -> Forecast:
    """Claim that nothing was read."""
    assert forecast.explanation is not None
    mask = torch.zeros_like(forecast.explanation.mask)
    return replace(forecast, explanation=replace(forecast.explanation, mask=mask))


def with_more_in_the_mask(forecast: Forecast) -> Forecast:
    """Claim that everything was read."""
    assert forecast.explanation is not None
    mask = torch.ones_like(forecast.explanation.mask)
    return replace(forecast, explanation=replace(forecast.explanation, mask=mask))


@pytest.mark.parametrize(
    "tampered",
    [with_another_forecast, with_other_evidence, with_another_level, with_less_in_the_mask, with_more_in_the_mask],
)
@modest
@given(case=cases(gaps=False, readouts=SEE_EVERYTHING), seed=SEEDS)
def test_a_tampered_explanation_is_detected(tampered: Callable[[Forecast], Forecast], case: Case, seed: int) -> None:
    values, explanation = case.explain()
    partly = explanation.mask.flatten(1).any(dim=1) & (~explanation.mask).flatten(1).any(dim=1)
    assume(bool(partly.all()))
    # A single step of a channel equals its own mean, so there is no evidence to change.
    assume(bool((explanation.evidence.abs().flatten(1).amax(dim=1) > 1e-3).all()))
    forecast = tampered(Forecast(values, explanation))
    assert broken(case.network, case.window, forecast, torch.Generator().manual_seed(seed)).all()


def test_only_the_windows_at_fault_are_marked() -> None:
    config = ModelConfig(12, 5, 2, 4, patch_len=3, budget=0.5, gate=GateConfig(width=4, heads=2))
    random = torch.Generator().manual_seed(0)
    values = torch.randn(4, 12, 2, generator=random)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(17).expand(4, 17) % 4)
    network = built(config, 1)
    with torch.no_grad():
        forecast = network(window)
    forecast.values[2, 4, 1] += 1e-3
    assert broken(network, window, forecast, random).tolist() == [False, False, True, False]


def test_the_sign_of_zero_and_the_last_bit_count_as_changes() -> None:
    one = torch.tensor([0.0, 1.0, 2.0, -3.0])[:, None, None]
    other = torch.tensor([-0.0, 1.0, 2.0, -3.0])[:, None, None]
    other[2] = torch.nextafter(other[2], torch.tensor(inf))
    assert changed_bits(one, other).tolist() == [1, 0, 1, 0]


@modest
@given(
    case=cases(frames=("mean", "weighted")),
    unit=st.floats(0.2, 50),
    level=st.floats(-100, 100),
)
def test_a_forecast_scales_and_shifts_with_its_window(case: Case, unit: float, level: float) -> None:
    seen = case.window.observed.sum(dim=1)
    assume(bool((seen >= 4).all()))  # with fewer values the deviations do not depend on the values
    values, explanation = case.explain()
    moved, moved_explanation = explained(case.network, replace(case.window, values=unit * case.window.values + level))
    assert torch.equal(moved_explanation.mask, explanation.mask)
    scale = explanation.context.scale[:, None]
    torch.testing.assert_close((moved - level) / unit / scale, values / scale, rtol=1e-3, atol=1e-3)


@modest
@given(case=cases(), turns=st.integers(-20, 20))
def test_shifting_the_phase_by_whole_cycles_changes_nothing(case: Case, turns: int) -> None:
    values, explanation = case.explain()
    shifted = replace(case.window, phase=case.window.phase + turns * case.config.cycle)
    moved, moved_explanation = explained(case.network, shifted)
    assert same_bits(moved, values)
    assert torch.equal(moved_explanation.mask, explanation.mask)


@modest
@given(case=cases(kinds=("exact",), full_budget=True))
def test_with_all_gates_open_the_model_is_the_dense_model(case: Case) -> None:
    dense = IBForecast(replace(case.config, gate=replace(case.config.gate, kind="open"))).eval()
    dense.load_state_dict(case.network.state_dict())
    values, explanation = case.explain()
    dense_values, dense_explanation = explained(dense, case.window)
    assert same_bits(values, dense_values)
    assert torch.equal(explanation.mask, dense_explanation.mask)
    assert torch.equal(explanation.mask, ~explanation.missing)


@modest
@given(case=cases(), filling=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_values_in_a_gap_do_not_change_forecast_or_explanation(case: Case, filling: float) -> None:
    values, explanation = case.explain()
    filled = case.window.values.where(case.window.observed, torch.tensor(filling))
    moved, moved_explanation = explained(case.network, replace(case.window, values=filled))
    assert same_bits(moved, values)
    assert torch.equal(moved_explanation.mask, explanation.mask)
    assert same_bits(moved_explanation.evidence, explanation.evidence)


@modest
@given(case=cases())
def test_a_token_with_a_missing_step_is_marked_and_never_open(case: Case) -> None:
    _, explanation = case.explain()
    gaps = to_tokens(~case.window.observed, case.config.patch_len).any(dim=-1)
    assert torch.equal(explanation.missing, gaps)
    assert not (explanation.mask & gaps).any()
    assert not explanation.probability[gaps].any()


@modest
@given(case=cases(gaps=False, kinds=("exact",)))
def test_without_gaps_the_exact_gate_opens_exactly_what_the_budget_allows(case: Case) -> None:
    _, explanation = case.explain()
    assert (explanation.open_count == allowed(case.config)).all()


def allowed(config: ModelConfig) -> int:
    """Return ⌊ρ·P·C⌋ of the decimal budget, in exact arithmetic."""
    return floor(Fraction(str(config.budget)) * (config.look_back // config.patch_len) * config.channels)


@modest
@given(
    case=cases(),
    scale=st.sampled_from([0.0, 1.0, 1e3, 1e10, nan, inf]),
    share=st.sampled_from([0.02, 1.0]),
    seed=SEEDS,
)
def test_the_budget_is_never_exceeded_for_any_weights(case: Case, scale: float, share: float, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in case.network.parameters():
            struck = torch.rand(parameter.shape, generator=random) <= share
            parameter.copy_(parameter.where(~struck, parameter * scale))
    _, explanation = case.explain()
    assert (explanation.open_count <= allowed(case.config)).all()
    assert not (explanation.mask & explanation.missing).any()


@modest
@given(case=cases(), seed=SEEDS)
def test_a_forecast_leaves_network_and_window_unchanged(case: Case, seed: int) -> None:
    weights = {name: tensor.clone() for name, tensor in case.network.state_dict().items()}
    values, phase = case.window.values.clone(), case.window.phase.clone()
    forecast, explanation = case.explain()
    broken(case.network, case.window, Forecast(forecast, explanation), torch.Generator().manual_seed(seed))
    assert all(same_bits(tensor, weights[name]) for name, tensor in case.network.state_dict().items())
    assert torch.equal(case.window.values, values)
    assert torch.equal(case.window.phase, phase)
