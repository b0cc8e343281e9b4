"""Stage 1: frames, the profile, and windows with constant or unobserved channels."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ibforecast.core.window import Window
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage1_decompose import Decompose, MeanFrame, NoFrame, SeasonalFrame, WeightedFrame

LOOK_BACK, HORIZON, CHANNELS, CYCLE = 24, 8, 3, 6
VALUES = 5 + 2 * torch.randn(4, LOOK_BACK, CHANNELS, generator=torch.Generator().manual_seed(0))
OBSERVED = torch.rand(VALUES.shape, generator=torch.Generator().manual_seed(1)) > 0.2
PHASE = torch.arange(LOOK_BACK + HORIZON).expand(4, -1) % CYCLE
SEASON = torch.randn(CYCLE, CHANNELS, generator=torch.Generator().manual_seed(2))[PHASE[:, :LOOK_BACK]]


@pytest.fixture(autouse=True)
def _fixed_seed() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def config(**settings: object) -> ModelConfig:
    return ModelConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, patch_len=6, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("observed", [torch.ones_like(OBSERVED), OBSERVED])
@torch.no_grad()
def test_the_weighted_frame_starts_as_the_mean_frame(observed: Tensor) -> None:
    plain, weighted = MeanFrame()(VALUES, observed, SEASON), WeightedFrame(LOOK_BACK)(VALUES, observed, SEASON)
    for one, other in zip(plain, weighted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "weight",
    [
        20.0,
        pytest.param(40.0),
    ],
)
@torch.no_grad()
def test_the_weighted_frame_follows_its_weights_and_ignores_gaps(weight: float) -> None:
    frame = WeightedFrame(LOOK_BACK)
    frame.logits[-1] = weight
    level, _ = frame(VALUES, torch.ones_like(OBSERVED), SEASON)
    torch.testing.assert_close(level, VALUES[:, -1], rtol=1e-3, atol=1e-3)
    gap = torch.ones_like(OBSERVED)
    gap[:, -1] = False
    level, _ = frame(VALUES.where(gap, torch.tensor(1e6)), gap, SEASON)
    torch.testing.assert_close(level, VALUES[:, :-1].mean(dim=1), rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_the_scale_is_the_spread_about_the_weighted_level() -> None:
    frame = WeightedFrame(LOOK_BACK)
    frame.logits[-1] = 3.0
    level, scale = frame(VALUES, OBSERVED, SEASON)
    for b in range(4):
        for c in range(CHANNELS):
            values = VALUES[b, OBSERVED[b, :, c], c].double()
            expected = (((values - level[b, c]) ** 2).sum() / (len(values) - 1) + 1e-5).sqrt()
            torch.testing.assert_close(scale[b, c].double(), expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_without_a_frame_the_deviation_is_the_window_minus_its_profile() -> None:
    level, scale = NoFrame()(VALUES, OBSERVED, SEASON)
    assert not level.any()
    assert (scale == 1).all()
    stage = Decompose(NoFrame(), CYCLE, CHANNELS, learn_profile=True)
    stage.profile.copy_(torch.randn(CYCLE, CHANNELS))
    _, deviation = stage(Window(VALUES, torch.ones_like(OBSERVED), PHASE))
    assert torch.equal(deviation, VALUES - stage.profile[PHASE[:, :LOOK_BACK]])


def test_a_disabled_profile_is_not_learned() -> None:
    network = IBForecast(config(profile=False))
    assert not network.decompose.profile.any()
    assert not network.decompose.profile.requires_grad
    learned = {id(p) for group in network.parameter_groups() for p in group.parameters}
    assert id(network.decompose.profile) not in learned
    assert id(IBForecast(config()).decompose.profile) not in learned
    assert IBForecast(config()).decompose.profile.requires_grad


@torch.no_grad()
def test_a_disabled_profile_equals_a_profile_of_zeros() -> None:
    window = Window(VALUES, torch.ones_like(OBSERVED), PHASE)
    without, with_zeros = IBForecast(config(profile=False)).eval(), IBForecast(config()).eval()
    with_zeros.load_state_dict(without.state_dict())
    assert torch.equal(without(window).values, with_zeros(window).values)


@pytest.mark.parametrize("frame", ["mean", "weighted", "none"])
@torch.no_grad()
def test_a_constant_channel_has_a_finite_forecast_at_its_level(frame: str) -> None:
    window = Window(VALUES.clone(), torch.ones_like(OBSERVED), PHASE)
    window.values[..., 1] = 7.25
    forecast = IBForecast(config(frame=frame)).eval()(window)
    assert forecast.values.isfinite().all()
    if frame != "none":
        torch.testing.assert_close(forecast.values[..., 1], torch.full((4, HORIZON), 7.25), rtol=0, atol=0.05)
        assert (forecast.explanation.context.scale[..., 1] < 0.01).all()


@pytest.mark.parametrize("frame", ["mean", "weighted", "seasonal", "none"])
@torch.no_grad()
def test_a_channel_observed_once_or_never_has_a_finite_forecast(frame: str) -> None:
    observed = torch.ones_like(OBSERVED)
    observed[0, 1:, 0] = False
    observed[1, :, 1] = False
    forecast = IBForecast(config(frame=frame)).eval()(Window(VALUES, observed, PHASE))
    assert forecast.values.isfinite().all()
    assert forecast.explanation.missing[1, :, 1].all()


@torch.no_grad()
def test_the_frame_depends_only_on_the_observed_steps() -> None:
    for b in range(4):
        for c in range(CHANNELS):
            values = VALUES[b : b + 1, OBSERVED[b, :, c], c : c + 1]
            expected = MeanFrame()(values, torch.ones_like(values, dtype=torch.bool), torch.zeros_like(values))
            actual = MeanFrame()(VALUES.where(OBSERVED, torch.tensor(-1e4)), OBSERVED, SEASON)
            for one, other in zip(expected, actual, strict=True):
                torch.testing.assert_close(one[0, 0], other[b, c], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_the_deviation_of_a_missing_step_is_exactly_zero() -> None:
    stage = Decompose(MeanFrame(), CYCLE, CHANNELS, learn_profile=True)
    stage.profile.copy_(torch.randn(CYCLE, CHANNELS))
    window = Window(VALUES, OBSERVED, PHASE)
    _, deviation = stage(window)
    _, filled = stage(replace(window, values=VALUES.where(OBSERVED, torch.tensor(1e30))))
    assert not deviation[~OBSERVED].view(torch.int32).any()
    assert torch.equal(deviation, filled)


@torch.no_grad()
def test_the_seasonal_frame_follows_the_formula_in_its_docstring() -> None:
    frame = SeasonalFrame(LOOK_BACK, CHANNELS)
    frame.logits.copy_(torch.randn(LOOK_BACK, CHANNELS))
    frame.doubt.copy_(torch.tensor([-1.0, 0.5, 2.0]))
    level, scale = frame(VALUES.where(OBSERVED, torch.zeros(())), OBSERVED, SEASON)
    for b in range(4):
        for c in range(CHANNELS):
            steps = OBSERVED[b, :, c]
            value, season = VALUES[b, steps, c].double(), SEASON[b, steps, c].double()
            weight, doubt = frame.logits[steps, c].double().exp(), frame.doubt[c].double().exp()
            first = (weight * (value - season)).sum() / weight.sum()
            expected = ((doubt + ((value - first) ** 2).sum()) / (doubt + len(value))).sqrt()
            torch.testing.assert_close(scale[b, c].double(), expected, rtol=1e-5, atol=1e-5)
            mean = (weight * (value - expected * season)).sum() / weight.sum()
            torch.testing.assert_close(level[b, c].double(), mean, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_seasonal_level_does_not_depend_on_which_hours_are_observed() -> None:
    values = 3.0 + SEASON
    frame = SeasonalFrame(LOOK_BACK, CHANNELS)
    frame.doubt.fill_(60.0)  # so that the scale is 1, the scale of the season
    for first in range(4):
        observed = (torch.arange(LOOK_BACK) % 4 == first)[None, :, None].expand(values.shape)
        level, scale = frame(values, observed, SEASON)
        torch.testing.assert_close(level, torch.full_like(level, 3.0), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(scale, torch.ones_like(scale), rtol=1e-5, atol=1e-5)


def test_an_unobserved_channel_has_finite_gradients() -> None:
    frame = SeasonalFrame(LOOK_BACK, CHANNELS)
    observed = OBSERVED.float()
    observed[:, :, 1] = 0
    observed.requires_grad_()
    level, scale = frame(VALUES, observed, SEASON)
    assert not level[:, 1].any()
    assert (scale[:, 1] == 1).all()
    (level.sum() + scale.sum()).backward()
    assert observed.grad is not None
    assert observed.grad.isfinite().all()
