from dataclasses import replace

import pytest
import torch

from ibforecast.core.contracts import Loss
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Target, Window
from ibforecast_lab.rivals.protots import ProtoTS, ProtoTSConfig

CONFIG = ProtoTSConfig(
    look_back=24, horizon=6, channels=3, cycle=24, width=16, bottleneck=4, roots=4, children=3, dropout=0.0, memory=0.5
)


def draw(batch: int = 8) -> tuple[Window, Target]:
    values = torch.randn(batch, 24, 3)
    phase = torch.arange(30).expand(batch, -1) % 24
    window = Window(values, torch.ones_like(values, dtype=torch.bool), phase, torch.rand(batch, 30, 4) - 0.5)
    return window, Target(torch.randn(batch, 6, 3), torch.ones(batch, 6, 3, dtype=torch.bool))


def loss_at(model: ProtoTS, progress: float, window: Window, target: Target) -> Loss:
    return model.loss(window, target, torch.tensor(progress), torch.Generator())


def trained(model: ProtoTS, progress: float, steps: int = 3) -> ProtoTS:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        loss_at(model, progress, *draw()).total.backward()
        optimiser.step()
    return model


@pytest.fixture
def model() -> ProtoTS:
    torch.manual_seed(0)
    return ProtoTS(CONFIG)


@torch.no_grad()
@pytest.mark.parametrize("split", [False, True])
def test_the_weights_sum_to_one_and_mix_the_curves_into_the_forecast(model: ProtoTS, split: bool) -> None:
    window, _ = draw()
    model.split[:2] = split
    model.curves.normal_()
    weights = model.eval().prototypes(window)
    assert torch.allclose(weights.sum(dim=(2, 3)), torch.ones(8, 3), atol=1e-5)
    level, scale = window.values.mean(dim=1), (window.values.var(dim=1, unbiased=False) + 1e-5).sqrt()
    mixture = torch.einsum("bcrl,rlh->bhc", weights, model.curves)
    assert torch.allclose(model(window).values, mixture * scale[:, None] + level[:, None], atol=1e-5)


@torch.no_grad()
def test_a_split_root_passes_its_whole_weight_to_its_children(model: ProtoTS) -> None:
    window, _ = draw()
    before = model.eval().prototypes(window)
    model.split[1] = True
    after = model.prototypes(window)
    assert torch.allclose(before.sum(dim=-1), after.sum(dim=-1))
    assert (after[:, :, 1, 0] == 0).all()
    assert (after[:, :, 1, 1:] > 0).all()
    assert (after[:, :, [0, 2, 3], 1:] == 0).all()


def test_before_the_split_children_follow_their_roots(model: ProtoTS) -> None:
    trained(model, 0.0)
    model.loss(*draw(), torch.tensor(0.2), torch.Generator())
    assert not model.split.any()
    assert torch.equal(model.curves, model.curves[:, :1].expand_as(model.curves))
    assert torch.equal(model.places, model.places[:, :1] + model.apart)
    assert (model.visits > 0).any()


def test_the_split_itself_changes_no_forecast(model: ProtoTS) -> None:
    trained(model, 0.4)
    window, target = draw()
    with torch.no_grad():
        before = model.eval()(window).values
        loss_at(model, 0.5, window, target)
        assert model.split.sum() == 2
        assert torch.allclose(before, model(window).values, atol=1e-5)


def test_the_roots_with_the_largest_mean_errors_are_split(model: ProtoTS) -> None:
    model.errors.copy_(torch.tensor([8.0, 3.0, 1.0, 0.0]))
    model.visits.copy_(torch.tensor([8.0, 1.0, 0.5, 0.0]))  # mean errors 1, 3, 2 and, never visited, 0
    loss_at(model, 0.6, *draw())
    assert model.split.tolist() == [False, True, True, False]


def test_after_the_split_the_choice_is_frozen_and_children_learn_different_curves(model: ProtoTS) -> None:
    trained(model, 0.4)
    loss_at(model, 0.5, *draw())
    chosen, errors = model.split.clone(), model.errors.clone()
    trained(model, 0.7)
    assert torch.equal(model.split, chosen)
    assert torch.equal(model.errors, errors)
    spread = model.curves.detach()[:, 1:].std(dim=1).amax(dim=-1)
    assert torch.equal(spread > 0, chosen)


def test_running_errors_are_those_of_the_nearest_root(model: ProtoTS) -> None:
    window, target = draw()
    with torch.no_grad():
        error = (model(window).values - target.values).abs().mean(dim=1)
        nearest = model.prototypes(window).sum(dim=-1).argmax(dim=-1)
    loss_at(model, 0.0, window, target)
    for root in range(4):
        assert model.visits[root] == pytest.approx(0.5 * int((nearest == root).sum()))
        assert float(model.errors[root]) == pytest.approx(0.5 * float(error[nearest == root].sum()), abs=1e-5)


def test_the_terms_are_the_absolute_error_and_the_weighted_entropy_of_the_roots(model: ProtoTS) -> None:
    window, target = draw()
    target.observed[:, 3:, 1] = False
    loss = loss_at(model, 0.0, window, target)
    with torch.no_grad():
        error = (model(window).values - target.values).abs()[target.observed].mean()
        rooted = model.prototypes(window).sum(dim=-1)
    assert torch.allclose(loss.terms["fit"], error)
    assert torch.allclose(loss.terms["entropy"], -0.01 * (rooted * rooted.log()).sum(dim=-1).mean())


def test_the_calendar_of_the_future_matters(model: ProtoTS) -> None:
    window, _ = draw()
    assert window.calendar is not None
    later = window.calendar.clone()
    later[:, 24:] += 0.3
    with torch.no_grad():
        assert not torch.allclose(model(window).values, model(replace(window, calendar=later)).values)


def test_a_window_without_a_calendar_is_refused(model: ProtoTS) -> None:
    window, _ = draw()
    with pytest.raises(UsageError, match="calendar"):
        model(replace(window, calendar=None))


@pytest.mark.parametrize(
    ("setting", "value"), [("roots", 0), ("split_share", 1.5), ("memory", 1.0), ("entropy_weight", -0.1)]
)
def test_invalid_settings_are_refused(setting: str, value: float) -> None:
    with pytest.raises(UsageError, match=setting):
        replace(CONFIG, **{setting: value})
