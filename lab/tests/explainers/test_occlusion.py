"""Occlusion: against closed forms, and exactly zero for what a model cannot read."""

from collections.abc import Callable

import pytest
import torch

from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import Space
from ibforecast.model.network import IBForecast
from ibforecast_lab.explainers.occlusion import Occlusion
from ibforecast_lab.rivals.dlinear import DLinear, DLinearConfig

Make = Callable[..., IBForecast]
Ask = Callable[..., Importance]


@pytest.mark.parametrize("space", ["frame", "output"])
@pytest.mark.parametrize("patch_len", [1, 6, 12, 36])
def test_on_dlinear_it_is_the_blocks_weights_times_its_distance_from_the_level(
    ask: Ask, complete: Window, space: Space, patch_len: int
) -> None:
    torch.manual_seed(0)
    model = DLinear(DLinearConfig(36, 12, 2, 12, kernel=5)).double()
    found = ask(Occlusion(patch_len, space), model, complete).values
    with torch.no_grad():
        context, weights = model.context(complete), model.effective_weights()
    away = complete.values - context.level[:, None]
    for first in range(0, 36, patch_len):
        block = slice(first, first + patch_len)
        moved = torch.einsum("ht,btc->bhc", weights[:, block], away[:, block])
        moved = moved / context.scale[:, None] if space == "frame" else moved
        # Only the block's own channel moves, one of two over which the mean is taken.
        expected = moved.square().mean(dim=1, keepdim=True) / 2
        torch.testing.assert_close(found[:, block], expected.expand(-1, patch_len, -1))


def test_on_a_linear_map_between_channels_every_channel_that_moves_counts(ask: Ask, complete: Window) -> None:
    weights = torch.randn(5, 2, 36, 2, generator=torch.Generator().manual_seed(0)).double()
    guest = Guest(lambda values: torch.einsum("hotc,btc->bho", weights, values))
    found = ask(Occlusion(12, "output"), guest, complete).values
    away = complete.values - complete.values.mean(dim=1, keepdim=True)
    for row, first, channel in [(0, 0, 0), (1, 12, 1), (2, 24, 0)]:
        block = slice(first, first + 12)
        moved = torch.einsum("hot,t->ho", weights[:, :, block, channel], away[row, block, channel])
        torch.testing.assert_close(found[row, block, channel], moved.square().mean().expand(12))


def test_under_a_static_mask_closed_tokens_are_graded_exactly_zero_and_open_ones_are_not(
    make_model: Make, ask: Ask, complete: Window
) -> None:
    """Under any other gate a closed token is read by the gate network, and occluding it may change the mask."""
    model = make_model("newest", budget=0.5)
    found = ask(Occlusion(12, chunk=1), model, complete).values
    with torch.no_grad():
        opened = spread(model(complete).explanation.mask, 12)
    assert 0 < float(opened.double().mean()) < 1
    assert not found[~opened].any()
    assert found[opened].all()
    together = ask(Occlusion(12, chunk=8), model, complete).values
    assert together[~opened].max() < 1e-24


def test_the_gates_decide_anew_and_the_context_does_not(make_model: Make, ask: Ask, complete: Window) -> None:
    """By hand for one token: the hard forecast of the occluded window in the intact window's context."""
    model = make_model("exact", budget=0.4)
    found = ask(Occlusion(12), model, complete).values
    with torch.no_grad():
        held = model.context(complete)
        values = complete.values.clone()
        values[:, 12:24, 1] = held.reference(36)[:, 12:24, 1]
        moved = model(Window(values, complete.observed, complete.phase), held).values - model(complete).values
    by_hand = (moved / held.scale[:, None]).square().mean(dim=(1, 2))
    torch.testing.assert_close(found[:, 12:24, 1], by_hand[:, None].expand(-1, 12))


def test_it_needs_no_gradients(ask: Ask, complete: Window) -> None:
    guest = Guest(lambda values: torch.from_numpy(values.detach().numpy()[:, -12:].copy()))
    found = ask(Occlusion(12), guest, complete).values
    assert not found[:, :24].any()
    assert found[:, 24:].all()


def test_blocks_that_do_not_fit_are_refused_with_those_that_do(ask: Ask, complete: Window) -> None:
    with pytest.raises(UsageError, match=r"divide look_back \(got patch_len=10, look_back=36\); try .*12, 18"):
        ask(Occlusion(10), Guest(lambda values: values), complete)


@pytest.mark.parametrize("settings", [{"patch_len": 0}, {"chunk": 0}])
def test_settings_that_cannot_be_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Occlusion(**settings)  # type: ignore[arg-type]
