"""Occlusion: compared with closed forms, and exactly zero for values that a model cannot read."""

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
Explain = Callable[..., Importance]


@pytest.mark.parametrize("space", ["frame", "output"])
@pytest.mark.parametrize("patch_len", [1, 6, 12, 36])
def test_on_dlinear_a_grade_is_the_blocks_weights_times_its_distance_from_the_level(
    explain: Explain, complete: Window, space: Space, patch_len: int
) -> None:
    torch.manual_seed(0)
    model = DLinear(DLinearConfig(36, 12, 2, 12, kernel=5)).double()
    importance = explain(Occlusion(patch_len, space), model, complete).values
    with torch.no_grad():
        context, weights = model.context(complete), model.effective_weights()
    away = complete.values - context.level[:, None]
    for first in range(0, 36, patch_len):
        block = slice(first, first + patch_len)
        moved = torch.einsum("ht,btc->bhc", weights[:, block], away[:, block])
        moved = moved / context.scale[:, None] if space == "frame" else moved
        # Only the block's own channel moves; the mean is over two channels.
        expected = moved.square().mean(dim=1, keepdim=True) / 2
        torch.testing.assert_close(importance[:, block], expected.expand(-1, patch_len, -1))


def test_the_shift_of_every_channel_counts(explain: Explain, complete: Window) -> None:
    weights = torch.randn(5, 2, 36, 2, generator=torch.Generator().manual_seed(0)).double()
    guest = Guest(lambda values: torch.einsum("hotc,btc->bho", weights, values))
    importance = explain(Occlusion(12, "output"), guest, complete).values
    away = complete.values - complete.values.mean(dim=1, keepdim=True)
    for row, first, channel in [(0, 0, 0), (1, 12, 1), (2, 24, 0)]:
        block = slice(first, first + 12)
        moved = torch.einsum("hot,t->ho", weights[:, :, block, channel], away[row, block, channel])
        torch.testing.assert_close(importance[row, block, channel], moved.square().mean().expand(12))


def test_under_a_static_mask_only_closed_tokens_are_graded_exactly_zero(
    make_model: Make, explain: Explain, complete: Window
) -> None:
    """With other gates the gate network reads closed tokens too, so occluding one may change the mask."""
    model = make_model("newest", budget=0.5)
    importance = explain(Occlusion(12, chunk=1), model, complete).values
    with torch.no_grad():
        opened = spread(model(complete).explanation.mask, 12)
    assert 0 < float(opened.double().mean()) < 1
    assert not importance[~opened].any()
    assert importance[opened].all()
    together = explain(Occlusion(12, chunk=8), model, complete).values
    assert together[~opened].max() < 1e-24


def test_an_occluded_window_gets_new_gates_in_the_old_context(
    make_model: Make, explain: Explain, complete: Window
) -> None:
    """Compute one token by hand: the hard forecast of the occluded window in the intact window's context."""
    model = make_model("exact", budget=0.4)
    importance = explain(Occlusion(12), model, complete).values
    with torch.no_grad():
        held = model.context(complete)
        values = complete.values.clone()
        values[:, 12:24, 1] = held.reference(36)[:, 12:24, 1]
        moved = model(Window(values, complete.observed, complete.phase), held).values - model(complete).values
    by_hand = (moved / held.scale[:, None]).square().mean(dim=(1, 2))
    torch.testing.assert_close(importance[:, 12:24, 1], by_hand[:, None].expand(-1, 12))


def test_occlusion_needs_no_gradients(explain: Explain, complete: Window) -> None:
    guest = Guest(lambda values: torch.from_numpy(values.detach().numpy()[:, -12:].copy()))
    importance = explain(Occlusion(12), guest, complete).values
    assert not importance[:, :24].any()
    assert importance[:, 24:].all()


def test_a_patch_len_that_does_not_divide_the_look_back_is_refused_with_those_that_do(
    explain: Explain, complete: Window
) -> None:
    with pytest.raises(UsageError, match=r"divide look_back \(got patch_len=10, look_back=36\); try .*12, 18"):
        explain(Occlusion(10), Guest(lambda values: values), complete)


@pytest.mark.parametrize("settings", [{"patch_len": 0}, {"chunk": 0}])
def test_invalid_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Occlusion(**settings)  # type: ignore[arg-type]
