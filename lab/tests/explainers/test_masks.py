"""The mask optimisers: they recover what was planted, keep to their share, and have the documented terms."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ibforecast.core.contracts import Importance
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.explain.guest import Guest
from ibforecast.explain.subject import Subject
from ibforecast_lab.explainers.dynamask import Dynamask, contiguity, size
from ibforecast_lab.explainers.extremal_mask import ExtremalMask

Explain = Callable[..., Importance]
both = pytest.mark.parametrize(
    "explainer", [Dynamask(steps=150), ExtremalMask(steps=150)], ids=["dynamask", "extremal"]
)


def planted() -> tuple[Guest, Window, Tensor]:
    """Return windows whose forecast reads one block of one channel, with values away from the mean."""
    random = torch.Generator().manual_seed(0)
    values = torch.randn(6, 36, 2, generator=random)
    values[:, 12:24, 0] = values[:, 12:24, 0].sign() * (1 + values[:, 12:24, 0].abs())
    weights = torch.randn(8, 12, generator=random).sign() / 3

    def read(shown: Tensor) -> Tensor:
        future = torch.tanh(shown[:, 12:24, 0] @ weights.T / 2)
        return torch.stack([future, -future], dim=-1)

    inside = torch.zeros(36, 2, dtype=torch.bool)
    inside[12:24, 0] = True
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(44).expand(6, -1))
    return Guest(read), window, inside


@both
def test_the_only_block_a_forecast_reads_gets_the_highest_grades(explain: Explain, explainer: Dynamask) -> None:
    guest, window, inside = planted()
    mask = explain(explainer, guest, window, share=1 / 6).values
    assert mask[:, inside].mean() > 15 * mask[:, ~inside].mean()
    above = (mask[:, inside][:, :, None] > mask[:, ~inside][:, None]).double().mean()
    assert above > 0.9


@both
@pytest.mark.parametrize("share", [0.05, 0.25, 0.6])
def test_the_mask_marks_about_its_share(explain: Explain, explainer: Dynamask, share: float) -> None:
    guest, window, _ = planted()
    mask = explain(explainer, guest, window, share=share).values
    torch.testing.assert_close(mask.mean(dim=(1, 2)), torch.full((6,), share), rtol=0, atol=0.03)
    assert ((mask < 0.1) | (mask > 0.9)).double().mean() > 0.95


@both
def test_every_window_has_its_own_share(explain: Explain, explainer: Dynamask) -> None:
    guest, window, _ = planted()
    shares = torch.tensor([0.0, 0.1, 0.2, 0.5, 0.8, 1.0])
    mask = explain(explainer, guest, window, share=shares).values
    torch.testing.assert_close(mask.mean(dim=(1, 2)), shares, rtol=0, atol=0.04)


@both
def test_missing_values_use_no_part_of_the_share(explain: Explain, explainer: Dynamask) -> None:
    guest, window, inside = planted()
    observed = window.observed.clone()
    observed[:, -8:] = False
    mask = explain(explainer, guest, replace(window, observed=observed), share=1 / 6).values
    assert not mask[:, -8:].any()
    torch.testing.assert_close(mask.mean(dim=(1, 2)), torch.full((6,), 1 / 6), rtol=0, atol=0.03)
    assert mask[:, inside].mean() > 8 * mask[:, ~inside].mean()


@both
def test_values_kept_by_the_mask_forecast_better_than_random_ones(explain: Explain, explainer: Dynamask) -> None:
    guest, window, _ = planted()
    subject = Subject.of(guest, window)
    intact = subject.forecast(window.values[None])[0]

    def lost(importance: Tensor) -> float:
        top = importance.flatten(1).topk(12).indices
        kept = torch.zeros(6, 72, dtype=torch.bool).scatter(1, top, True).view_as(importance)
        return float(subject.shift(intact, subject.forecast(window.values.where(kept, subject.reference)[None])).mean())

    fitted = lost(explain(explainer, guest, window, share=1 / 6).values)
    assert fitted < 0.1 * lost(torch.rand(6, 36, 2, generator=torch.Generator().manual_seed(0)))


def test_a_mask_depends_on_its_batch_only_if_replacements_are_learned(explain: Explain) -> None:
    guest, window, _ = planted()
    strangers = replace(window, values=torch.cat([window.values[:1], 3 * window.values[1:].flip(1)]))
    for explainer, depends in ((Dynamask(steps=20), False), (ExtremalMask(steps=20), True)):
        one, other = (explain(explainer, guest, batch, share=1 / 6).values[0] for batch in (window, strangers))
        assert torch.equal(one, other) != depends


def test_learned_replacements_start_at_the_reference_and_are_penalised_for_their_distance() -> None:
    guest, window, _ = planted()
    explainer, subject = ExtremalMask(steps=30, anchor_weight=2.0), Subject.of(guest, window)
    stand_in = explainer.stand_in(subject, torch.Generator().manual_seed(0))
    values, price = stand_in()
    assert torch.equal(values, subject.reference)
    assert not price.any()
    explainer.fitted(subject, torch.full((6,), 1 / 6), stand_in)
    values, price = stand_in()
    distance = (values - subject.reference) / subject.held.scale[:, None]
    assert 0 < distance.abs().max() <= 1
    torch.testing.assert_close(price, 2 * distance.square().mean(dim=(1, 2)))


def test_a_large_anchor_weight_keeps_the_replacements_at_the_reference() -> None:
    guest, window, _ = planted()

    def distance(anchor_weight: float) -> float:
        explainer, subject = ExtremalMask(steps=60, anchor_weight=anchor_weight), Subject.of(guest, window)
        stand_in = explainer.stand_in(subject, torch.Generator().manual_seed(0))
        explainer.fitted(subject, torch.full((6,), 1 / 6), stand_in)
        return float((stand_in()[0].detach() - subject.reference).abs().mean())

    assert distance(1e4) < 0.1 * distance(0.0)


def test_the_size_of_a_mask_is_its_distance_from_one_that_marks_exactly_its_share() -> None:
    mask = torch.tensor([[[0.9, 0.1], [0.0, 0.4]], [[1.0, 0.0], [0.0, 1.0]]])
    expected = torch.tensor([(0.0 + 0.1**2 + 0.4**2 + 0.1**2) / 4, 0.0])
    torch.testing.assert_close(size(mask, torch.tensor([0.25, 0.5])), expected)
    torch.testing.assert_close(size(mask, torch.tensor([0.0, 1.0])), torch.tensor([(0.81 + 0.01 + 0.16) / 4, 0.5]))


def test_contiguity_is_the_mean_jump_between_observed_steps() -> None:
    mask = torch.tensor([[[1.0, 0.0], [0.0, 0.5], [1.0, 0.5]]])
    observed = torch.ones(1, 3, 2, dtype=torch.bool)
    torch.testing.assert_close(contiguity(mask, observed), torch.tensor([(1 + 1 + 0.5) / 4]))
    observed[0, 2, 0] = False
    torch.testing.assert_close(contiguity(mask, observed), torch.tensor([(1 + 0.5) / 4]))


def test_the_weight_of_the_size_grows_geometrically(explain: Explain) -> None:
    """A forecast of zeros has no error, and a mask that cannot learn keeps its size, so the loss shows the weight."""
    guest, losses = Guest(lambda values: 0 * values[:, :4]), []
    window = Window(torch.randn(1, 8, 1), torch.ones(1, 8, 1, dtype=torch.bool), torch.arange(12)[None])
    explainer = Dynamask(4, 1e-12, 0.5, 16.0, 0.0, lambda step, loss: losses.append(float(loss)))
    explain(explainer, guest, window, share=0.5)
    torch.testing.assert_close(torch.tensor(losses) / 0.25, torch.tensor([0.5, 1.0, 2.0, 4.0]))


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_outside_0_to_1_is_refused(explain: Explain, share: float) -> None:
    guest, window, _ = planted()
    with pytest.raises(UsageError, match=r"share must lie in \[0, 1\]"):
        explain(Dynamask(), guest, window, share=share)


@pytest.mark.parametrize(
    "settings",
    [
        {"steps": 0},
        {"rate": 0.0},
        {"size_weight": 0.0},
        {"growth": 0.5},
        {"contiguity_weight": -1.0},
        {"width": 0},
        {"kernel": 4},
        {"kernel": -1},
        {"anchor_weight": -1.0},
        {"network_rate": 0.0},
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must"):
        ExtremalMask(**settings)  # type: ignore[arg-type]
