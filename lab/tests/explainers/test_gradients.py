"""Gradients of the forecast's energy: compared with captum and with closed forms, and their axioms."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import Baseline, Subject, at_rest
from ibforecast.model.network import IBForecast
from ibforecast_lab.explainers.integrated_gradients import IntegratedGradients
from ibforecast_lab.explainers.relaxation import energy, gradient
from ibforecast_lab.explainers.saliency import Saliency

Make = Callable[..., IBForecast]
Explain = Callable[..., Importance]


def flat_energy(subject: Subject) -> Callable[[Tensor], Tensor]:
    """Return the scalar target as captum needs it: any number of copies of the batch, concatenated."""

    def target(values: Tensor) -> Tensor:
        return energy(subject, values.unflatten(0, (-1, len(subject.values)))).flatten()

    return target


def linear(seed: int, horizon: int = 5, look_back: int = 36) -> Tensor:
    return torch.randn(horizon, look_back, generator=torch.Generator().manual_seed(seed)).double() / 6


def mapped(weights: Tensor) -> Guest:
    """Return a guest that forecasts each channel by the same linear map."""
    return Guest(lambda values: torch.einsum("ht,btc->bhc", weights, values))


def attribution(guest: Guest, window: Window, baseline: Baseline = "mean", steps: int = 32) -> Tensor:
    with at_rest(guest):
        return IntegratedGradients(steps, baseline).attribution(Subject.of(guest, window))


def test_the_energy_is_half_the_squared_size_of_the_relaxed_forecast(make_model: Make, window: Window) -> None:
    model = make_model()
    with torch.no_grad():
        relaxed = model.relaxed(window)
        measured = energy(Subject.of(model, window), window.values.expand(2, -1, -1, -1))
    expected = torch.stack([forecast.square().sum() / 2 for forecast in relaxed])
    torch.testing.assert_close(measured, expected.expand(2, -1))


def test_the_gradient_is_taken_in_a_held_context(make_model: Make, complete: Window) -> None:
    """Compare with differences in the context of the intact window: a moved window's own context has other ones."""
    model, step = make_model(), 1e-6
    with at_rest(model):
        subject = Subject.of(model, complete)
        slope = gradient(subject, complete.values[None])[0]
        for place in [(0, 0), (17, 1), (35, 0)]:
            nudge = torch.zeros_like(complete.values)
            nudge[(slice(None), *place)] = step
            ahead, behind = energy(subject, torch.stack([complete.values + nudge, complete.values - nudge]))
            torch.testing.assert_close(
                slope[(slice(None), *place)], (ahead - behind) / (2 * step), rtol=1e-4, atol=1e-5
            )


def test_held_tensors_have_no_graph(make_model: Make, window: Window) -> None:
    tracked = Window(window.values.clone().requires_grad_(), window.observed, window.phase)
    subject = Subject.of(make_model(), tracked)
    held = (subject.values, subject.reference, subject.held.level, subject.held.scale, subject.held.profile)
    assert not any(tensor.requires_grad for tensor in held)


def test_the_saliency_of_a_forecast_that_repeats_values_is_their_size(explain: Explain, complete: Window) -> None:
    importance = explain(Saliency(), Guest(lambda values: values[:, -3:]), complete).values
    assert not importance[:, :-3].any()
    torch.testing.assert_close(importance[:, -3:], complete.values[:, -3:].abs())


def test_saliency_equals_that_of_captum(make_model: Make, explain: Explain, window: Window) -> None:
    captum = pytest.importorskip("captum.attr")
    model = make_model()
    subject = Subject.of(model, window)
    theirs = captum.Saliency(flat_energy(subject)).attribute(subject.values.clone().requires_grad_())
    torch.testing.assert_close(
        explain(Saliency(), model, window).values, theirs * window.observed, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("baseline", ["mean", "reference"])
def test_integrated_gradients_equal_those_of_captum(
    make_model: Make, explain: Explain, window: Window, baseline: Baseline
) -> None:
    captum = pytest.importorskip("captum.attr")
    model = make_model()
    subject = Subject.of(model, window)
    theirs = captum.IntegratedGradients(flat_energy(subject)).attribute(
        subject.values, subject.baseline(baseline).contiguous(), n_steps=32, method="riemann_middle"
    )
    with at_rest(model):
        ours = IntegratedGradients(baseline=baseline).attribution(subject)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    graded = explain(IntegratedGradients(baseline=baseline), model, window).values
    torch.testing.assert_close(graded, theirs.abs() * window.observed, rtol=1e-9, atol=1e-12)


def test_the_baseline_is_the_mean_of_observed_values_or_the_reference(make_model: Make, window: Window) -> None:
    model = make_model()
    with torch.no_grad():
        subject = Subject.of(model, window)
        mean, reference = subject.baseline("mean"), subject.baseline("reference")
        assert torch.equal(reference, model.context(window).reference(36))
    for row in range(len(window.values)):
        for channel in range(2):
            there = window.values[row, :, channel][window.observed[row, :, channel]].mean()
            torch.testing.assert_close(mean[row, :, channel], there.expand(36))


@pytest.mark.parametrize("baseline", ["mean", "reference"])
@pytest.mark.parametrize(("steps", "within"), [(32, 1e-2), (256, 1e-3)])
def test_attributions_add_up_to_the_gain_in_energy_over_the_baseline(
    make_model: Make, window: Window, baseline: Baseline, steps: int, within: float
) -> None:
    model = make_model()
    with at_rest(model):
        subject = Subject.of(model, window)
        total = IntegratedGradients(steps, baseline).attribution(subject).sum(dim=(1, 2))
        there, start = energy(subject, torch.stack([subject.values, subject.baseline(baseline)]))
    torch.testing.assert_close(total, there - start, rtol=within, atol=within * float(there.max()))


def test_integrated_gradients_of_a_linear_map_have_a_closed_form(complete: Window) -> None:
    """The gradient of ½‖Wx‖² is linear along the path, so even a single midpoint integrates it exactly."""
    weights, values = linear(3), complete.values
    start = values.mean(dim=1, keepdim=True).expand_as(values)
    halfway = torch.einsum("ht,hs,bsc->btc", weights, weights, (values + start) / 2)
    for steps in (1, 32):
        torch.testing.assert_close(attribution(mapped(weights), complete, steps=steps), (values - start) * halfway)


def test_integrated_gradients_of_concatenated_forecasts_add_up(complete: Window) -> None:
    one, other = linear(4), linear(5, horizon=3)
    both = attribution(mapped(torch.cat([one, other])), complete)
    torch.testing.assert_close(both, attribution(mapped(one), complete) + attribution(mapped(other), complete))


def test_equal_values_that_are_read_alike_have_equal_attributions(complete: Window) -> None:
    def curved(values: Tensor) -> Tensor:
        return (torch.tanh(values[:, 3] * values[:, 20]) + values[:, 30].exp() / 9)[:, None]

    complete.values[:, 20] = complete.values[:, 3]
    attributed = attribution(Guest(curved), complete)
    assert attributed[:, 3].abs().min() > 0
    torch.testing.assert_close(attributed[:, 3], attributed[:, 20])


def test_a_value_that_is_not_read_has_an_attribution_of_exactly_zero(explain: Explain, complete: Window) -> None:
    guest = Guest(lambda values: values[:, 10:20].cumsum(dim=1).sin())
    unread = torch.ones(36, dtype=torch.bool)
    unread[10:20] = False
    for explainer in (Saliency(), IntegratedGradients()):
        importance = explain(explainer, guest, complete).values
        assert not importance[:, unread].any()
        assert importance[:, ~unread].all()


def test_a_forecast_detached_from_its_window_is_refused_and_occlusion_suggested(
    explain: Explain, complete: Window
) -> None:
    guest = Guest(lambda values: torch.from_numpy(values.detach().numpy()[:, -5:].copy()))
    for explainer in (Saliency(), IntegratedGradients()):
        with pytest.raises(UsageError, match=r"differentiated .*occlusion"):
            explain(explainer, guest, complete)


@pytest.mark.parametrize("settings", [{"steps": 0}, {"chunk": 0}, {"baseline": "zero"}])
def test_invalid_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(Exception, match=r"must be|baseline"):
        IntegratedGradients(**settings)  # type: ignore[arg-type]
