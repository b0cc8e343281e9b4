"""The promises of every forecaster, checked for each of them."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.contracts import Forecaster, Loss, SelfExplaining
from ibforecast.core.errors import UsageError
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Target, Window
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import train
from ibforecast.zoo.configs import build
from ibforecast_lab.recipes import BOOK, FITTED

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH, ROWS = 48, 24, 3, 24, 5, 150
SIZES = {"look_back": LOOK_BACK, "horizon": HORIZON, "channels": CHANNELS, "cycle": CYCLE}
TINY: dict[str, dict[str, Any]] = {
    "ibforecast": {"budget": 0.4, "gate": {"width": 8, "heads": 2}, "readout": {"width": 16}},
    "ibforecast-factors": {"budget": 0.4, "factors": 2, "gate": {"width": 8, "heads": 2}, "readout": {"width": 16}},
    "dlinear": {"kernel": 5},
    "patchdecomp": {"width": 8, "heads": 2, "layers": 1},
    "tft": {"width": 8, "heads": 2},
    "protots": {"width": 8, "bottleneck": 4, "layers": 1, "roots": 3, "children": 2},
    "tqnet": {"width": 16},
    "cyclenet": {"width": 16},
    "itransformer": {"width": 16, "hidden": 16, "layers": 1, "heads": 2},
    "patchtst": {"width": 16, "hidden": 16, "layers": 2, "heads": 2},
    "olinear": {"width": 16, "layers": 1, "copies": 2},
    "timeemb": {"width": 16},
    "timexer": {"width": 16, "hidden": 16, "layers": 2, "heads": 2},
    "timesnet": {"width": 4, "hidden": 4, "layers": 1, "top": 2, "kernels": 2},
}


@dataclass(frozen=True)
class Case:
    """A forecaster with some settings, and which of the optional promises it makes."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    equivariant: bool = True
    channel_independent: bool = False
    reads_phase: bool = False
    without_gradient: str = "none"

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in _flat(self.settings))])

    def build(self, seed: int = 0) -> Forecaster:
        """Build it tiny, with perturbed weights, because some start at zero and would have no effect."""
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            config, network = BOOK.forecasters[self.name]
            forecaster = network(build(config, {**SIZES, **_merged(TINY[self.name], self.settings)}, str(self)))
            with torch.no_grad():
                for parameter in forecaster.parameters():
                    if parameter.requires_grad:
                        parameter.add_(0.1 * torch.randn_like(parameter))
        return forecaster.eval()


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    return {**under, **{k: _merged(under.get(k, {}), v) if isinstance(v, Mapping) else v for k, v in over.items()}}


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    nested = [_flat(value) if isinstance(value, Mapping) else [(key, value)] for key, value in settings.items()]
    return [pair for pairs in nested for pair in pairs]


def ours(settings: Mapping[str, Any], **promises: Any) -> Case:
    return Case("ibforecast", settings, **{"reads_phase": True, **promises})


EVERY_TERM = {"rate_weight": 0.1, "prior": 0.2, "budget_weight": 1.0, "contiguity_weight": 0.1}
SEALED = {"sealed": True, "frame": "seasonal", "gate": {"attention": "none"}, "objective": {"loss": "frequency"}}
NO_TERM = {"rate_weight": 0.0, "consistency_weight": 0.0, "departure_weight": 0.0}
CASES = [
    ours({}),
    ours({"gate": {"kind": "threshold", "recent": 0}}),
    ours({"gate": {"kind": "threshold"}, "objective": EVERY_TERM}),
    ours({"objective": EVERY_TERM}),
    ours({"gate": {"kind": "open"}, "budget": 1.0, "objective": NO_TERM}, without_gradient="score."),
    ours({"gate": {"kind": "capped"}}),
    ours({"gate": {"kind": "newest"}, "budget": 0.5, "objective": NO_TERM}, without_gradient="score."),
    ours({"gate": {"attention": "none"}}),
    ours({"gate": {"attention": "within"}}),
    ours({"readout": {"kind": "linear"}}),
    ours({"readout": {"kind": "mlp"}}),
    ours({"readout": {"cross_channel": True}}),
    ours({"readout": {"by_channel": True}}),
    ours({"gate": {"any_budget": True}}),
    ours({"frame": "mean"}),
    ours({"frame": "none"}, equivariant=False),
    ours(SEALED, equivariant=False),
    ours({**SEALED, "frame": "mean"}, equivariant=False),  # a channel that is not read has the level of training
    ours({**SEALED, "objective": {"loss": "mae"}}, equivariant=False),
    ours({"profile": False}),
    ours({"profile": False, "readout": {"kind": "linear"}}, reads_phase=False),
    Case("ibforecast-factors", reads_phase=True),
    Case("ibforecast-factors", {"objective": EVERY_TERM}, reads_phase=True),
    Case("ibforecast-factors", {"gate": {"kind": "threshold"}}, reads_phase=True),
    Case("dlinear", equivariant=False, channel_independent=True),
    Case("patchdecomp", channel_independent=True),
    Case("patchdecomp", {"multivariate": True}),
    Case("tft"),
    Case("protots", channel_independent=True),
    Case("tqnet", reads_phase=True),
    Case("tqnet", {"normalise": False}, equivariant=False, reads_phase=True),
    Case("cyclenet", {"backbone": "mlp"}, channel_independent=True, reads_phase=True),
    Case("cyclenet", {"backbone": "linear"}, channel_independent=True, reads_phase=True),
    Case("cyclenet", {"normalise": False}, equivariant=False, channel_independent=True, reads_phase=True),
    Case("itransformer"),
    Case("itransformer", {"calendar": False}),
    Case("patchtst", {"variant": "library"}, channel_independent=True),
    Case("patchtst", {"variant": "official"}, channel_independent=True),
    Case("olinear"),
    Case("timeemb", channel_independent=True),
    Case("timeemb", {"days": True, "frequency": 0.5}, channel_independent=True),
    Case("timexer"),
    Case("timexer", {"calendar": False}),
    Case("timesnet"),
    Case("timesnet", {"calendar": False}),
]
every = pytest.mark.parametrize("case", CASES, ids=str)


def only(promise: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [case for case in CASES if getattr(case, promise)], ids=str)


explaining = pytest.mark.parametrize(
    "case", [case for case in CASES if isinstance(case.build(), SelfExplaining)], ids=str
)


def batch_of_windows(seed: int = 1) -> Window:
    """Return windows with gaps and a standard deviation of about 2, at various phases and dates."""
    random = torch.Generator().manual_seed(seed)
    values = 1 + 2 * torch.randn(BATCH, LOOK_BACK, CHANNELS, generator=random)
    observed = torch.rand(BATCH, LOOK_BACK, CHANNELS, generator=random) > 0.05
    observed[0] = True
    observed[1, 12:24, 0] = False
    phase = torch.randint(0, CYCLE, (BATCH, 1), generator=random) + torch.arange(LOOK_BACK + HORIZON)
    calendar = torch.rand(BATCH, LOOK_BACK + HORIZON, 4, generator=random) - 0.5
    return Window(values.where(observed, torch.zeros(())), observed, phase % CYCLE, calendar)


def batch_of_targets(seed: int = 2) -> Target:
    random = torch.Generator().manual_seed(seed)
    observed = torch.rand(BATCH, HORIZON, CHANNELS, generator=random) > 0.1
    return Target(torch.randn(BATCH, HORIZON, CHANNELS, generator=random), observed)


def rows(window: Window, chosen: slice) -> Window:
    assert window.calendar is not None
    return Window(window.values[chosen], window.observed[chosen], window.phase[chosen], window.calendar[chosen])


@torch.no_grad()
def forecast(forecaster: Forecaster, window: Window) -> Tensor:
    values: Tensor = forecaster(window).values
    return values


def loss_of(forecaster: Forecaster, window: Window, target: Target, progress: float = 0.2) -> Loss:
    return forecaster.loss(window, target, torch.tensor(progress), torch.Generator().manual_seed(3))


def generated(with_calendar: bool) -> Windows:
    """Return windows of a small hourly series of daily waves and noise."""
    random, hour = np.random.default_rng(4), np.arange(ROWS)[:, None]
    values = np.sin(2 * np.pi * (hour / 24 + random.random(CHANNELS))) + 0.3 * random.normal(size=(ROWS, CHANNELS))
    values[random.random(values.shape) < 0.02] = np.nan
    stamps = np.datetime64("2024-02-01", "us") + hour[:, 0] * np.timedelta64(1, "h")
    series = Series(values, ("a", "b", "c"), Clock(stamps, Frequency(3600)))
    standardiser = Standardiser.of(values, series.channels)
    starts = range(ROWS - LOOK_BACK - HORIZON + 1)
    return Windows.of(series, standardiser, CYCLE, starts, LOOK_BACK, HORIZON, with_calendar=with_calendar)


def trained(case: Case, seed: int) -> dict[str, Tensor]:
    forecaster = case.build()
    windows = generated(forecaster.reads_calendar)
    pace = TrainConfig(epochs=2, batch=16, learning_rate=1e-2)
    train(forecaster, windows.at(range(50)), windows.at(range(50, len(windows))), pace, seed)
    return forecaster.state_dict()


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_every_registered_forecaster_with_weights_has_a_case() -> None:
    assert {case.name for case in CASES} == BOOK.forecasters.keys() - FITTED.keys()


@every
def test_a_forecast_has_a_finite_value_for_every_window_step_and_channel(case: Case) -> None:
    values = forecast(case.build(), batch_of_windows())
    assert values.shape == (BATCH, HORIZON, CHANNELS)
    assert values.dtype == torch.float32
    assert values.isfinite().all()


@every
def test_a_forecast_is_repeatable_bit_for_bit_and_draws_no_random_numbers(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = forecast(forecaster, window)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert torch.equal(forecast(forecaster, window), first)


@every
def test_the_same_seed_trains_the_same_weights_and_another_seed_different_ones(case: Case) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = trained(case, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert same(trained(case, seed=1), first)
    assert not same(trained(case, seed=2), first)
    assert not same(case.build().state_dict(), first)


@every
def test_a_forecast_does_not_depend_on_the_other_windows_of_its_batch(case: Case) -> None:
    forecaster, window, others = case.build(), batch_of_windows(), batch_of_windows(seed=9)
    together = forecast(forecaster, window)
    for row in range(BATCH):
        single = forecast(forecaster, rows(window, slice(row, row + 1)))
        torch.testing.assert_close(single[0], together[row], rtol=1e-5, atol=1e-5)
    scaled_others = replace(others, values=100 * others.values)
    assert window.calendar is not None
    assert scaled_others.calendar is not None
    mixed = Window(
        torch.cat([window.values[:1], scaled_others.values[1:]]),
        torch.cat([window.observed[:1], scaled_others.observed[1:]]),
        torch.cat([window.phase[:1], scaled_others.phase[1:]]),
        torch.cat([window.calendar[:1], scaled_others.calendar[1:]]),
    )
    torch.testing.assert_close(forecast(forecaster, mixed)[0], together[0], rtol=1e-5, atol=1e-5)


@only("channel_independent")
def test_a_channel_is_forecast_only_from_its_own_past(case: Case) -> None:
    forecaster, window, other = case.build(), batch_of_windows(), batch_of_windows(seed=10)
    for channel in range(CHANNELS):
        own = torch.arange(CHANNELS) == channel
        values, observed = window.values.where(own, other.values), window.observed.where(own, other.observed)
        changed = forecast(forecaster, replace(window, values=values, observed=observed))
        torch.testing.assert_close(
            changed[..., channel], forecast(forecaster, window)[..., channel], rtol=1e-6, atol=1e-6
        )


@only("equivariant")
def test_a_forecast_is_equivariant_to_level_and_unit_of_every_channel(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    unit, level = torch.tensor([0.5, 3.0, 40.0]), torch.tensor([-5.0, 2.0, 90.0])
    scaled = forecast(forecaster, replace(window, values=unit * window.values + level))
    torch.testing.assert_close((scaled - level) / unit, forecast(forecaster, window), rtol=1e-3, atol=1e-3)


@every
def test_a_missing_value_is_never_read(case: Case) -> None:
    forecaster, window, target = case.build(), batch_of_windows(), batch_of_targets()
    for filling in (-3.0, 1e6, 1e30):
        filled = replace(window, values=window.values.where(window.observed, torch.tensor(filling)))
        assert torch.equal(forecast(forecaster, filled), forecast(forecaster, window))
        one, other = (loss_of(deepcopy(forecaster), changed, target).total for changed in (window, filled))
        assert torch.equal(one, other)


@every
def test_a_missing_target_value_does_not_change_the_loss(case: Case) -> None:
    forecaster, window, target = case.build(), batch_of_windows(), batch_of_targets()
    filled = replace(target, values=target.values.where(target.observed, torch.tensor(1e6)))
    one, other = (loss_of(deepcopy(forecaster), window, changed).total for changed in (target, filled))
    assert torch.equal(one, other)


@every
def test_an_unobserved_channel_leaves_forecast_and_gradients_finite(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    window.observed[2, :, 1] = False
    assert forecast(forecaster, window).isfinite().all()
    loss_of(forecaster.train(), window, batch_of_targets()).total.backward()
    assert all(p.grad.isfinite().all() for p in forecaster.parameters() if p.grad is not None)


def test_a_window_with_fewer_tokens_than_the_budget_has_an_ordinary_loss() -> None:
    window = batch_of_windows()
    window.observed[2, 12:] = False
    assert float(loss_of(ours({}).build(), window, batch_of_targets()).total.detach()) < 1e3


@every
def test_a_constant_window_leaves_forecast_and_gradients_finite(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    window.values[3] = 0.0
    window.observed[3] = True
    assert forecast(forecaster, window).isfinite().all()
    loss_of(forecaster.train(), window, batch_of_targets()).total.backward()
    assert all(p.grad.isfinite().all() for p in forecaster.parameters() if p.grad is not None)


@every
def test_a_forecast_depends_on_nothing_outside_its_look_back(case: Case) -> None:
    forecaster = case.build()
    assert list(inspect.signature(forecaster.forward).parameters) == ["window", "held"]
    windows, start = generated(with_calendar=True), torch.tensor([20])
    window, _ = windows.take(start)
    future, past = windows.values.clone(), windows.values.clone()
    future[20 + LOOK_BACK :] = 1e3
    past[:20] = -1e3
    for changed in (future, past):
        again, _ = replace(windows, values=changed).take(start)
        assert torch.equal(forecast(forecaster, again), forecast(forecaster, window))


@every
def test_a_forecast_has_gradients_only_in_its_look_back(case: Case) -> None:
    forecaster, windows = case.build(), generated(with_calendar=True)
    values = windows.values.clone().requires_grad_()
    window, _ = replace(windows, values=values).take(torch.tensor([20]))
    forecaster(window).values.square().sum().backward()
    assert values.grad is not None
    assert values.grad[20 : 20 + LOOK_BACK].any()
    assert not values.grad[:20].any()
    assert not values.grad[20 + LOOK_BACK :].any()


@every
def test_holding_the_windows_own_context_changes_nothing(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    with torch.no_grad():
        held = forecaster(window, forecaster.context(window)).values
    assert torch.equal(held, forecast(forecaster, window))


@only("equivariant")
def test_a_held_context_replaces_the_windows_own(case: Case) -> None:
    """A window stretched about its level has another forecast in the old context than in its own."""
    forecaster, window = case.build(), batch_of_windows()
    with torch.no_grad():
        context = forecaster.context(window)
        stretched = replace(window, values=2 * window.values - context.level[:, None])
        own, held = forecaster(stretched).values, forecaster(stretched, context).values
    assert not torch.allclose(own, held, atol=1e-3)


@every
def test_the_relaxed_forecast_has_gradients_that_agree_with_its_differences(case: Case) -> None:
    forecaster, window = case.build().double(), batch_of_windows()
    assert window.calendar is not None
    window = replace(window, values=window.values.double(), calendar=window.calendar.double())
    held = forecaster.context(window)
    values = window.values.clone().requires_grad_()
    direction = torch.randn(values.shape, generator=torch.Generator().manual_seed(0)).double()

    def energy(moved: Tensor) -> Tensor:
        return forecaster.relaxed(replace(window, values=moved), held).square().sum()

    (gradient,) = torch.autograd.grad(energy(values), values)
    with torch.no_grad():
        ahead, behind = (energy(values + step * direction) for step in (1e-6, -1e-6))
    assert torch.allclose((gradient * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-3)


@every
def test_saved_weights_give_the_same_forecast_in_another_network(case: Case) -> None:
    forecaster, other, window = case.build(), case.build(seed=11), batch_of_windows()
    assert not torch.equal(forecast(forecaster, window), forecast(other, window))
    other.load_state_dict(load(save(forecaster.state_dict())))
    assert same(forecaster.state_dict(), other.state_dict())
    assert torch.equal(forecast(forecaster, window), forecast(other, window))


@pytest.mark.parametrize("progress", [0.0, 0.7, 1.0])
@every
def test_the_loss_is_the_sum_of_its_terms_and_reaches_every_parameter(case: Case, progress: float) -> None:
    forecaster = case.build().train()
    loss = loss_of(forecaster, batch_of_windows(), batch_of_targets(), progress)
    assert "fit" in loss.terms
    assert all(term.isfinite() for term in loss.terms.values())
    torch.testing.assert_close(loss.total, sum(loss.terms.values(), torch.zeros(())))
    assert 0 <= float(loss.open_rate) <= 1
    loss.total.backward()
    for name, parameter in forecaster.named_parameters():
        reached = parameter.requires_grad and not name.startswith(case.without_gradient)
        assert (parameter.grad is not None) == reached, name
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


@every
def test_every_trainable_parameter_is_in_one_group_with_a_positive_rate(case: Case) -> None:
    forecaster = case.build()
    groups = forecaster.parameter_groups()
    grouped = [id(parameter) for group in groups for parameter in group.parameters]
    learned = {id(parameter) for parameter in forecaster.parameters() if parameter.requires_grad}
    assert len(grouped) == len(set(grouped))
    assert learned <= set(grouped) <= {id(parameter) for parameter in forecaster.parameters()}
    assert all(group.rate > 0 for group in groups)


@every
def test_shifting_the_phase_by_the_cycle_changes_nothing(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    for shift in (CYCLE, -CYCLE, 7 * CYCLE):
        shifted = replace(window, phase=window.phase + shift)
        assert torch.equal(forecast(forecaster, shifted), forecast(forecaster, window))


@every
def test_shifting_the_phase_by_a_step_changes_only_forecasters_that_read_it(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    shifted = forecast(forecaster, replace(window, phase=window.phase + 1))
    assert torch.equal(shifted, forecast(forecaster, window)) != case.reads_phase


@every
def test_the_calendar_is_needed_if_reads_calendar_and_otherwise_ignored(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    without = replace(window, calendar=None)
    if forecaster.reads_calendar:
        with pytest.raises(UsageError, match="calendar"):
            forecaster(without)
        assert window.calendar is not None
        moved = forecast(forecaster, replace(window, calendar=-window.calendar))
        assert not torch.equal(moved, forecast(forecaster, window))
    else:
        assert torch.equal(forecast(forecaster, without), forecast(forecaster, window))


@pytest.mark.parametrize("training", [False, True])
@explaining
def test_importance_grades_every_value_and_does_not_change_the_forecaster(case: Case, training: bool) -> None:
    forecaster, window = case.build().train(training), batch_of_windows()
    weights = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    modes = [module.training for module in forecaster.modules()]
    assert isinstance(forecaster, SelfExplaining)
    importance = forecaster.importance(window)
    assert importance.shape == window.values.shape
    assert importance.isfinite().all()
    assert (importance >= 0).all()
    assert same(forecaster.state_dict(), weights)
    assert [module.training for module in forecaster.modules()] == modes
    assert all(parameter.grad is None for parameter in forecaster.parameters())


@explaining
def test_a_missing_value_does_not_change_the_importance(case: Case) -> None:
    forecaster, window = case.build(), batch_of_windows()
    filled = replace(window, values=window.values.where(window.observed, torch.tensor(1e6)))
    assert isinstance(forecaster, SelfExplaining)
    assert torch.equal(forecaster.importance(filled), forecaster.importance(window))
