"""Past covariates, covariates known ahead and several cycles, inside the network."""

from dataclasses import replace
from math import gcd
from typing import Any

import pytest
import torch
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.cycles import parts, tiled
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Target, Window
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage1_decompose import Decompose, MeanFrame, separated

LOOK_BACK, HORIZON, CHANNELS, CYCLE = 12, 4, 3, 6
PLAIN = ModelConfig(
    LOOK_BACK, HORIZON, CHANNELS, CYCLE, patch_len=3, budget=0.5, gate=GateConfig(width=4, heads=2, dropout=0.0)
)
CROSS = ReadoutConfig(width=6, dropout=0.0, cross_channel=True)


def config(**changes: Any) -> ModelConfig:
    return replace(PLAIN, **{"readout": CROSS} | changes)


def network(**changes: Any) -> IBForecast:
    """Build a network in evaluation mode, with perturbed weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        model = IBForecast(config(**changes)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def make_window(future: int = 0, batch: int = 5) -> Window:
    random = torch.Generator().manual_seed(1)
    values = torch.randn(batch, LOOK_BACK, CHANNELS, generator=random)
    phase = torch.arange(LOOK_BACK + HORIZON) + torch.randint(0, 40, (batch, 1), generator=random)
    known = torch.randn(batch, LOOK_BACK + HORIZON, future, generator=random) if future else None
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase, known=known)


# --- Several cycles ---


@pytest.mark.parametrize("cycles", [(2, 6), (4, 6), (3, 5), (2, 3, 12), (4, 6, 10)])
def test_a_profile_sums_to_zero_over_phases_it_shares_with_an_earlier_cycle(cycles: tuple[int, ...]) -> None:
    profile = torch.randn(sum(cycles), 2, dtype=torch.float64)
    kept = parts(separated(profile, cycles), cycles)
    torch.testing.assert_close(kept[0], parts(profile, cycles)[0])
    for number, part in enumerate(kept):
        for earlier in cycles[:number]:
            shared = part.reshape(-1, gcd(earlier, len(part)), 2).sum(dim=0)
            torch.testing.assert_close(shared, torch.zeros_like(shared))


@pytest.mark.parametrize("cycles", [(2, 6), (4, 6), (2, 3, 12)])
def test_separated_profiles_express_every_season_in_exactly_one_way(cycles: tuple[int, ...]) -> None:
    """Separated profiles have the same sums as all profiles, and every sum belongs to one choice of them."""
    phase = torch.arange(60)
    count = sum(cycles)
    seasons = tiled(torch.eye(count, dtype=torch.float64), phase, cycles)
    apart = tiled(separated(torch.eye(count, dtype=torch.float64), cycles), phase, cycles)
    rank = torch.linalg.matrix_rank
    assert rank(apart) == rank(seasons) == rank(torch.cat([seasons, apart], dim=1))
    assert rank(apart) == rank(separated(torch.eye(count, dtype=torch.float64), cycles))


def test_a_single_cycle_is_left_unchanged() -> None:
    profile = torch.randn(5, 2)
    assert separated(profile, (5,)) is profile


def test_the_context_contains_the_profiles_used_in_the_forecast() -> None:
    model, window = network(further_cycles=(4,)), make_window()
    explanation = model(window).explanation
    assert explanation.context.cycles == (CYCLE, 4)
    assert torch.equal(explanation.context.profile, separated(model.decompose.profile, (CYCLE, 4)))
    moved = replace(explanation.context, profile=explanation.context.profile + 1)
    assert not torch.equal(model.replay(replace(explanation, context=moved)), model.replay(explanation))


def test_phases_count_modulo_the_period_of_all_cycles() -> None:
    model, window = network(further_cycles=(4,)), make_window()
    assert model.config.period == 12
    forecast = model(window).values
    assert torch.equal(model(replace(window, phase=window.phase + 12)).values, forecast)
    assert not torch.equal(model(replace(window, phase=window.phase + CYCLE)).values, forecast)


# --- Known ahead ---


def decompose(**changes: Any) -> Decompose:
    model = Decompose(MeanFrame(), CYCLE, CHANNELS, True, **{"future": 2} | changes)
    torch.nn.init.normal_(model.profile, generator=torch.Generator().manual_seed(2))
    torch.nn.init.normal_(model.response, generator=torch.Generator().manual_seed(2))
    return model


def naive_effect(context: Context) -> Tensor:
    effects = torch.zeros(*context.phase.shape, CHANNELS)
    for batch, step, covariate, channel in torch.cartesian_prod(
        *(torch.arange(size) for size in (*context.known.shape, CHANNELS))
    ).tolist():
        response = context.response[context.phase[batch, step] % CYCLE, covariate, channel]
        effects[batch, step, channel] += context.known[batch, step, covariate] * response
    return effects


@torch.no_grad()
def test_a_known_covariate_moves_a_channel_by_its_response_at_that_phase() -> None:
    context, deviation = decompose()(make_window(future=2))
    effects, quiet = naive_effect(context), replace(context, known=None)
    restored = context.restore(torch.zeros(5, HORIZON, CHANNELS))
    torch.testing.assert_close(
        restored, quiet.restore(torch.zeros(5, HORIZON, CHANNELS)) + effects[:, LOOK_BACK:], atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(
        deviation, quiet.remove(make_window(future=2).values - effects[:, :LOOK_BACK]), atol=1e-5, rtol=1e-5
    )
    torch.testing.assert_close(
        context.remove(context.reference(LOOK_BACK)), torch.zeros_like(deviation), atol=1e-5, rtol=0
    )


@torch.no_grad()
def test_a_known_effect_changes_neither_level_nor_scale_nor_deviation() -> None:
    """The covariates and their effect are added to a window: only its baseline changes."""
    stage, plain = decompose(), replace(make_window(future=2), known=torch.zeros(5, LOOK_BACK + HORIZON, 2))
    planned = make_window(future=2)
    effects = naive_effect(stage(planned)[0])
    planned = replace(planned, values=plain.values + effects[:, :LOOK_BACK])
    (one, quiet), (other, moved) = stage(plain), stage(planned)
    torch.testing.assert_close(other.level, one.level, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(other.scale, one.scale, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(moved, quiet, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_known_covariates_do_not_move_past_channels() -> None:
    context, _ = decompose(past=1)(make_window(future=2))
    assert context.response.shape == (CYCLE, 2, CHANNELS)
    assert not context.response[..., -1].any()
    assert context.response[..., :-1].all()


def test_a_window_without_its_known_covariates_is_refused() -> None:
    with pytest.raises(UsageError, match="a window must come with its covariates known ahead"):
        network(future=2)(make_window())


# --- Past covariates ---


@torch.no_grad()
def test_a_past_channel_is_forecast_by_its_pattern_and_affects_the_others() -> None:
    model, window = network(past=1, budget=1.0, gate=replace(PLAIN.gate, kind="open")), make_window()
    forecast = model(window)
    pattern = forecast.explanation.context.restore(torch.zeros(5, HORIZON, CHANNELS))
    assert torch.equal(forecast.values[..., -1], pattern[..., -1])
    held, values = forecast.explanation.context, window.values.clone()
    values[..., -1] += torch.randn(5, LOOK_BACK, generator=torch.Generator().manual_seed(4))
    moved = model(replace(window, values=values), held).values
    assert torch.equal(moved[..., -1], forecast.values[..., -1])
    assert (moved[..., :-1] != forecast.values[..., :-1]).any(dim=1).all()


def test_the_future_of_a_past_channel_does_not_change_the_loss() -> None:
    model, window = network(past=1, future=2).train(), make_window(future=2)
    values = torch.randn(5, HORIZON, CHANNELS)
    observed = torch.ones_like(values, dtype=torch.bool)
    observed[..., -1] = False

    def total(target: Target) -> Tensor:
        return model.loss(window, target, torch.zeros(()), torch.Generator().manual_seed(0)).total

    other = values.clone()
    other[..., -1] += 100
    assert torch.equal(total(Target(values, observed)), total(Target(other, observed)))
    total(Target(values, observed)).backward()
    assert model.decompose.response.grad.any()
    assert model.readout.readout.attention.key_value.weight.grad.any()


# --- Settings ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"past": 3}, r"at least one channel must be forecast \(got past=3 of 3 channels\)"),
        ({"past": -1}, r"at least one channel must be forecast"),
        ({"past": 1, "readout": ReadoutConfig()}, r"matter only where channels read each other.+; set cross_channel"),
        ({"past": 1, "readout": ReadoutConfig(kind="linear")}, r"matter only where channels read each other"),
        ({"future": -1}, r"future must not be negative"),
        ({"further_cycles": (0,)}, r"cycles must be different positive numbers of steps \(got cycles=\(6, 0\)\)"),
        ({"further_cycles": (6,)}, r"cycles must be different"),
    ],
)
def test_an_invalid_setting_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        config(**changes)


def test_a_network_without_covariates_has_no_weights_for_them() -> None:
    plain = set(IBForecast(PLAIN).state_dict())
    assert {"decompose.profile", "readout.phase.weight", "readout.leave.bias"} <= plain
    assert not any("response" in name or "readout.readout" in name for name in plain)
    several = IBForecast(replace(PLAIN, further_cycles=(4,))).state_dict()
    assert set(several) == plain
    assert several["decompose.profile"].shape == (10, CHANNELS)
    assert len(several["readout.phase.weight"]) == 10
