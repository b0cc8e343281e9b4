"""Guests: other forecasting functions, and importance maps computed elsewhere."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.explain.guest import GivenMap, Guest

Explain = Callable[..., Importance]


def test_a_guest_returns_the_forecast_of_its_function(complete: Window) -> None:
    assert torch.equal(Guest(lambda values: values[:, -5:] ** 2)(complete).values, complete.values[:, -5:] ** 2)


def test_the_context_is_mean_and_unbiased_spread_and_the_reference_is_the_mean(complete: Window) -> None:
    context = Guest(lambda values: values).context(complete)
    torch.testing.assert_close(context.level, complete.values.mean(dim=1))
    torch.testing.assert_close(context.scale, complete.values.std(dim=1), rtol=1e-4, atol=0)
    assert context.profile.shape == (1, 2)
    assert not context.profile.any()
    torch.testing.assert_close(context.reference(36), complete.values.mean(dim=1, keepdim=True).expand(-1, 36, -1))


def test_gaps_are_filled_with_the_observed_mean_whatever_their_values(window: Window) -> None:
    seen: list[Tensor] = []
    guest = Guest(lambda values: seen.append(values) or values[:, -3:])  # type: ignore[func-returns-value]
    guest(replace(window, values=window.values.where(window.observed, torch.tensor(1e9).double())))
    assert torch.equal(seen[0][window.observed], window.values[window.observed])
    for row, step, channel in (~window.observed).nonzero().tolist():
        observed = window.observed[row, :, channel]
        torch.testing.assert_close(seen[0][row, step, channel], window.values[row, observed, channel].mean())


def test_holding_its_own_context_changes_nothing_and_another_one_only_fills_gaps(window: Window) -> None:
    guest = Guest(lambda values: values.cumsum(dim=1))
    held = guest.context(window)
    assert torch.equal(guest(window, held).values, guest(window).values)
    moved = guest(window, replace(held, level=held.level + 1, scale=5 * held.scale)).values
    gaps = (~window.observed).cumsum(dim=1).double()
    torch.testing.assert_close(moved - guest(window).values, gaps)


def test_a_module_is_registered_as_a_submodule(complete: Window) -> None:
    network = nn.Sequential(nn.Dropout(0.9), nn.Linear(2, 2))
    guest = Guest(network).double().eval()
    assert not network[0].training
    assert {"function.1.weight", "function.1.bias"} == set(guest.state_dict())
    assert torch.equal(guest(complete).values, guest(complete).values)


@pytest.mark.parametrize("wrong", [lambda v: v.sum(dim=2), lambda v: v[:1], lambda v: v.transpose(1, 2)])
def test_a_forecast_of_the_wrong_shape_is_refused(wrong: Callable[[Tensor], Tensor], complete: Window) -> None:
    with pytest.raises(UsageError, match=r"batch, horizon, channel.*rearranges"):
        Guest(wrong)(complete)


def test_a_precomputed_map_is_returned_as_absolute_values(explain: Explain, window: Window) -> None:
    signed = torch.randn(window.values.shape, generator=torch.Generator().manual_seed(0))
    importance = explain(GivenMap(signed), Guest(lambda values: values), window)
    assert torch.equal(importance.values, (signed.abs() * window.observed).double())
    assert (importance.forwards, importance.backwards) == (0, 0)


def test_a_precomputed_map_for_other_windows_is_refused(explain: Explain, window: Window) -> None:
    with pytest.raises(UsageError, match=r"\(3, 36, 1\) for \(3, 36, 2\)"):
        explain(GivenMap(torch.ones(3, 36, 1)), Guest(lambda values: values), window)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_precomputed_map_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="finite"):
        GivenMap(torch.tensor([[[1.0, bad]]]))
