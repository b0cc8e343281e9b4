"""Sealed models: unread values cannot change anything. Choosing models: they cannot, if the mask stays the same."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from math import inf, nan, sqrt
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation
from ibforecast.core.sizes import Sizes
from ibforecast.core.tokens import spread
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import GATES, IBForecast
from ibforecast.model.reading import ChoosingForecast, SealedForecast, exchanged, network_of, only
from ibforecast.model.stage2_score import MixingNetwork
from ibforecast.zoo.recipes import resolve

LOOK_BACK, HORIZON, CHANNELS, CYCLE, BATCH = 24, 8, 3, 6, 5


def network(seed: int = 0, **changes: Any) -> SealedForecast:
    """Build a small sealed network with perturbed weights."""
    config = ModelConfig(
        **{
            "look_back": LOOK_BACK,
            "horizon": HORIZON,
            "channels": CHANNELS,
            "cycle": CYCLE,
            "patch_len": 2,
            "sealed": True,
            "frame": "seasonal",
            "gate": GateConfig(attention="none", recent=1, every=3),
            "readout": ReadoutConfig(width=16, by_channel=True, cross_channel=True),
            **changes,
        }
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = network_of(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    assert isinstance(model, SealedForecast)
    return model.eval()


def choosing(seed: int = 0, weights: float = 0.3, **changes: Any) -> ChoosingForecast:
    """Build a small choosing network with perturbed weights."""
    silent = {f"{name}_weight": 0.0 for name in ("rate", "consistency")}
    changes = {
        "level_from": "reading",
        "gate": GateConfig(attention="mixing", width=8, recent=1, every=3),
        "objective": ObjectiveConfig(**silent, departure_weight=0.01, exchange_weight=1.0, loss="frequency"),
        **changes,
    }
    config = replace(network().config, sealed=False, **changes)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        model = network_of(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(weights * torch.randn_like(parameter))
    assert isinstance(model, ChoosingForecast)
    return model.eval()


def unsealed() -> IBForecast:
    """Build a small network with a level from the whole window."""
    return network_of(replace(network().config, sealed=False)).eval()


def windows(seed: int = 0, missing: float = 0.0, future: int = 0) -> Window:
    random = torch.Generator().manual_seed(seed)
    values = 2 + 3 * torch.randn(BATCH, LOOK_BACK, CHANNELS, generator=random)
    observed = torch.rand(values.shape, generator=random) >= missing
    phase = (torch.randint(0, CYCLE, (BATCH, 1), generator=random) + torch.arange(LOOK_BACK + HORIZON)) % CYCLE
    known = torch.randn(BATCH, LOOK_BACK + HORIZON, future, generator=random) if future else None
    return Window(values.where(observed, torch.zeros(())), observed, phase, known=known)


def noise(window: Window) -> Tensor:
    return 10 * torch.randn(window.values.shape, generator=torch.Generator().manual_seed(9))


SCRAMBLES: dict[str, Callable[[Window], tuple[Tensor, Tensor]]] = {
    "noise": lambda window: (noise(window), window.observed),
    "missing": lambda window: (torch.full_like(window.values, nan), torch.zeros_like(window.observed)),
    "NaN marked as observed": lambda window: (torch.full_like(window.values, nan), window.observed),
    "huge": lambda window: (torch.full_like(window.values, 1e30), window.observed),
    "infinite": lambda window: (torch.full_like(window.values, -inf), torch.ones_like(window.observed)),
    "another window": lambda window: (window.values.roll(1, 0), window.observed.roll(1, 0)),
}


def scramble(window: Window, mask: Tensor, gaps: Tensor, how: str) -> Window:
    """Replace every value outside the open tokens and the tokens closed by a gap."""
    kept = spread(mask | gaps, LOOK_BACK // mask.shape[1])
    values, observed = SCRAMBLES[how](window)
    return replace(window, values=window.values.where(kept, values), observed=window.observed.where(kept, observed))


def same_bits(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.contiguous().view(torch.int32), other.contiguous().view(torch.int32))


def first_mask(model: SealedForecast) -> Tensor:
    """Return the fixed mask of a window without gaps."""
    return model(windows(future=model.config.future)).explanation.mask[:1]


@pytest.mark.parametrize("how", SCRAMBLES)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    missing=st.sampled_from([0.0, 0.1]),
    frame=st.sampled_from(["seasonal", "weighted", "mean", "none"]),
    future=st.sampled_from([0, 2]),
)
@torch.no_grad()
def test_no_bit_changes_if_every_unread_value_is_replaced(
    how: str, seed: int, missing: float, frame: str, future: int
) -> None:
    model, window = network(seed, frame=frame, future=future), windows(seed, missing, future)
    before = model(window)
    explanation: Explanation = before.explanation
    gaps = first_mask(model) & explanation.missing
    after = model(scramble(window, explanation.mask, gaps, how))
    assert same_bits(before.values, after.values)
    assert torch.equal(explanation.mask, after.explanation.mask)
    for name in ("evidence", "probability"):
        assert same_bits(getattr(explanation, name), getattr(after.explanation, name))
    for name in ("level", "scale"):
        assert same_bits(getattr(explanation.context, name), getattr(after.explanation.context, name))


@torch.no_grad()
def test_the_forecast_of_an_unsealed_model_changes() -> None:
    """The test above can fail: an unsealed model takes its level from the whole window."""
    looking = unsealed()
    window = windows()
    before = looking(window)
    after = looking(scramble(window, before.explanation.mask, torch.zeros_like(before.explanation.mask), "noise"))
    assert not torch.equal(before.values, after.values)


@torch.no_grad()
def test_the_mask_is_the_same_for_every_window_and_within_the_budget() -> None:
    model = network(budget=0.3)
    mask = model(windows(1)).explanation.mask
    assert (mask == mask[:1]).all()
    assert int(mask[0].sum()) == model.config.allowance


@torch.no_grad()
@torch.no_grad()
def _by_adding(model: SealedForecast) -> SealedForecast:
    model.score.unseen().copy_(-model.score.unseen())
    return model


def _without_a_trace(model: SealedForecast) -> SealedForecast:
    model.score.unseen().data.neg_()  # leaves the version of the tensor as it was
    return model


def _by_loading(model: SealedForecast) -> SealedForecast:
    model.load_state_dict({**model.state_dict(), "score.bias": -model.score.unseen().detach()})
    return model


def _by_assignment(model: SealedForecast) -> SealedForecast:
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    model.load_state_dict({**state, "score.bias": -state["score.bias"]}, assign=True)
    return model


def _in_a_copy(model: SealedForecast) -> SealedForecast:
    return _without_a_trace(deepcopy(model))


def _in_double_precision(model: SealedForecast) -> SealedForecast:
    return _by_adding(model.double()).float()


def _by_a_step(model: SealedForecast) -> SealedForecast:
    scores = model.train().score.unseen()
    scores.grad = 2 * scores.detach()
    torch.optim.SGD([scores], lr=1.0).step()
    return model.eval()


@pytest.mark.parametrize(
    "change",
    [
        _by_adding,
        _without_a_trace,
        _by_loading,
        _by_assignment,
        _in_a_copy,
        _in_double_precision,
        _by_a_step,
    ],
)
def test_a_kept_mask_is_computed_again_however_the_scores_have_changed(
    change: Callable[[SealedForecast], SealedForecast],
) -> None:
    model, window = network().eval(), windows(missing=0.1)
    with torch.no_grad():
        before = model(window).explanation
        assert same_explanation(model(window).explanation, before, torch.arange(len(window.values)))
    changed = change(model)
    with torch.no_grad():
        again = changed(window).explanation
    fresh = SealedForecast(changed.config).eval()
    fresh.load_state_dict(changed.state_dict())
    with torch.enable_grad():  # nothing is kept while gradients are recorded
        expected = fresh(window).explanation
    assert not torch.equal(again.mask, before.mask)
    assert torch.equal(again.mask, expected.mask)
    assert same_bits(again.probability, expected.probability.detach())


def test_a_kept_mask_follows_another_gate_and_another_allowance() -> None:
    model, window = network().eval(), windows()
    with torch.no_grad():
        opened = int(model(window).explanation.mask[0].sum())
        model.gate.allowance.fill_(1)
        assert int(model(window).explanation.mask[0].sum()) == 1 < opened
        model.gate = GATES["open"](1, model.gate.tokens, model.gate.config)
        assert model(window).explanation.mask.all()


def test_gradients_reach_the_scores_of_a_model_that_has_kept_its_mask() -> None:
    model, window = network().eval(), windows()
    with torch.no_grad():
        model(window)
    model.relaxed(window).sum().backward()
    assert model.score.unseen().grad is not None
    assert model.score.unseen().grad.abs().sum() > 0


def test_a_missing_token_of_the_mask_is_closed_and_not_replaced() -> None:
    model, window = network(), windows()
    mask = first_mask(model)[0]
    patch, channel = (int(place) for place in mask.nonzero()[0])
    observed = window.observed.clone()
    observed[0, patch * 2, channel] = False
    explanation = model(replace(window, observed=observed)).explanation
    expected = mask.clone()
    expected[patch, channel] = False
    assert torch.equal(explanation.mask[0], expected)
    assert torch.equal(explanation.mask[1], mask)
    assert explanation.missing[0, patch, channel]
    assert explanation.probability[0, patch, channel] == 0


@torch.no_grad()
def test_the_level_comes_from_the_values_that_were_read() -> None:
    model, window = network(frame="mean"), windows()
    explanation = model(window).explanation
    read = spread(explanation.mask, 2)
    for channel in range(CHANNELS):
        values = window.values[0, read[0, :, channel], channel]
        level = values.mean() if len(values) else torch.zeros(())
        torch.testing.assert_close(explanation.context.level[0, channel], level)


@torch.no_grad()
def test_a_window_reduced_to_its_open_tokens_has_the_same_forecast() -> None:
    model, window = network(), windows()
    forecast = model(window)
    assert same_bits(forecast.values, model(only(window, forecast.explanation.mask)).values)


def test_training_reaches_the_scores_the_frame_the_profile_and_the_readout() -> None:
    model, window = network().train(), windows(missing=0.05)
    target = Target(torch.randn(BATCH, HORIZON, CHANNELS), torch.rand(BATCH, HORIZON, CHANNELS) > 0.1)
    loss = model.loss(window, target, torch.tensor(0.2), torch.Generator().manual_seed(0))
    loss.total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_the_loss_does_not_depend_on_closed_tokens() -> None:
    model, window = network(gate=GateConfig(attention="none", recent=1, every=3, noise=0.0)), windows()
    target = Target(torch.randn(BATCH, HORIZON, CHANNELS), torch.ones(BATCH, HORIZON, CHANNELS, dtype=torch.bool))
    mask = model(window).explanation.mask
    read = [
        float(model.loss(shown, target, torch.tensor(1.0), torch.Generator().manual_seed(0)).total.detach())
        for shown in (window, scramble(window, mask, torch.zeros_like(mask), "noise"))
    ]
    assert read[0] == read[1]


@pytest.mark.parametrize("gate", [{"attention": "joint"}, {"kind": "capped", "attention": "none"}])
def test_a_sealed_model_with_a_gate_that_reads_the_window_is_refused(gate: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a sealed model reads by a fixed mask"):
        network(gate=GateConfig(**gate))


def test_the_sealed_recipe_is_sealed_for_every_kind_of_table() -> None:
    for sizes in (Sizes(96, 24, 7, 24), Sizes(96, 24, 7, 96), Sizes(96, 24, 21, 144), Sizes(96, 24, 100, 24)):
        recipe = resolve("sealed", sizes)
        assert isinstance(recipe.build(0), SealedForecast)


@torch.no_grad()
def test_the_frequency_loss_is_a_sum_over_waves() -> None:
    random = torch.Generator().manual_seed(3)
    forecast, truth = torch.randn(2, HORIZON, 2, generator=random), torch.randn(2, HORIZON, 2, generator=random)
    observed = torch.rand(truth.shape, generator=random) > 0.2
    error = (forecast - truth).where(observed, torch.zeros(())).double()
    sizes = []
    for b in range(2):
        for c in range(2):
            for wave in range(HORIZON // 2 + 1):
                angle = 2 * torch.pi * wave * torch.arange(HORIZON) / HORIZON
                cosine, sine = (error[b, :, c] * angle.cos()).sum(), (error[b, :, c] * angle.sin()).sum()
                sizes.append(sqrt(float(cosine**2 + sine**2)))
    absolute = float(error.abs().sum() / observed.sum())
    expected = 0.75 * absolute + 0.25 * sum(sizes) / len(sizes)
    knobs = ObjectiveConfig(loss="frequency", frequency_share=0.25)
    assert float(objective.fit(forecast, Target(truth, observed), knobs)) == pytest.approx(expected, rel=1e-5)
    for loss, plain in (("mae", absolute), ("mse", float((error**2).sum() / observed.sum()))):
        knobs = ObjectiveConfig(loss=loss)  # type: ignore[arg-type]
        assert float(objective.fit(forecast, Target(truth, observed), knobs)) == pytest.approx(plain, rel=1e-5)


def test_an_invalid_share_is_refused() -> None:
    with pytest.raises(UsageError, match="frequency_share must lie in"):
        ObjectiveConfig(frequency_share=1.5)


# --- Choosing ---


def same_explanation(one: Explanation, other: Explanation, rows: Tensor) -> bool:
    """Compare mask, evidence and context of some windows, bit for bit."""
    pairs = [(one.evidence, other.evidence), (one.context.level, other.context.level)]
    pairs.append((one.context.scale, other.context.scale))
    return torch.equal(one.mask[rows], other.mask[rows]) and all(same_bits(a[rows], b[rows]) for a, b in pairs)


@torch.no_grad()
def test_a_choosing_network_with_the_weights_of_a_sealed_one_begins_with_its_mask_and_forecast() -> None:
    sealed, grown, window = network(), choosing(weights=0.0), windows()
    before = grown(window)
    grown.load_state_dict({**grown.state_dict(), **sealed.state_dict()})
    after, expected = grown(window), sealed(window)
    assert not torch.equal(before.values, expected.values)
    assert same_bits(after.values, expected.values)
    assert same_explanation(after.explanation, expected.explanation, torch.ones(BATCH, dtype=torch.bool))


@torch.no_grad()
def test_a_choosing_network_chooses_another_mask_for_another_window() -> None:
    mask = choosing()(windows()).explanation.mask
    assert (mask != mask[:1]).any()


@settings(max_examples=25, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**16), missing=st.sampled_from([0.0, 0.1]), future=st.sampled_from([0, 2]))
@torch.no_grad()
def test_where_the_mask_stays_the_same_no_bit_changes_if_unread_values_do(
    seed: int, missing: float, future: int
) -> None:
    model, window = choosing(seed, future=future), windows(seed, missing, future)
    before = model(window)
    mask = before.explanation.mask
    # A hundredth of the noise, so that most masks stay the same.
    unread = ~spread(mask, 2) & window.observed
    other = replace(window, values=window.values + (0.01 * noise(window)).where(unread, torch.zeros(())))
    after = model(other)
    same = (mask == after.explanation.mask).flatten(1).all(dim=1)
    assert same.any()
    assert not torch.equal(window.values[same], other.values[same])
    assert same_bits(before.values[same], after.values[same])
    assert same_explanation(before.explanation, after.explanation, same)
    replayed = model.replay(after.explanation)
    assert same_bits(before.values[same], replayed[same])


@pytest.mark.parametrize("how", SCRAMBLES)
@torch.no_grad()
def test_given_the_mask_of_a_choosing_network_no_bit_changes(how: str) -> None:
    model, window = choosing(), windows()
    before = model(window)
    mask = before.explanation.mask
    after = model.through(scramble(window, mask, torch.zeros_like(mask), how), mask)
    assert same_bits(before.values, after.values)
    assert same_explanation(before.explanation, after.explanation, torch.ones(BATCH, dtype=torch.bool))


@pytest.mark.parametrize("build", [network, choosing, unsealed], ids=["sealed", "choosing", "unsealed"])
@torch.no_grad()
def test_through_its_own_mask_a_network_gives_its_own_forecast(build: Callable[[], IBForecast]) -> None:
    model, window = build(), windows(missing=0.05)
    own = model(window)
    again = model.through(window, own.explanation.mask)
    assert same_bits(own.values, again.values)
    assert same_explanation(own.explanation, again.explanation, torch.ones(BATCH, dtype=torch.bool))
    assert torch.equal(own.explanation.missing, again.explanation.missing)
    other = model.through(window, ~own.explanation.mask)
    assert torch.equal(other.explanation.mask, ~own.explanation.mask & ~own.explanation.missing)
    assert torch.equal(other.explanation.probability, other.explanation.mask.float())
    assert not torch.equal(own.values, other.values)


@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([0.0, 0.3]), st.sampled_from([0.05, 0.3, 1.0]))
@torch.no_grad()
def test_a_choosing_network_never_reads_more_than_its_allowance(seed: int, missing: float, budget: float) -> None:
    model = choosing(seed, budget=budget)
    explanation = model(windows(seed, missing)).explanation
    assert (explanation.mask.sum(dim=(1, 2)) <= model.config.allowance).all()
    assert not (explanation.mask & explanation.missing).any()


def test_the_terms_of_a_choosing_network_train_what_they_are_for() -> None:
    model, window = choosing().train(), windows(missing=0.05)
    target = Target(torch.randn(BATCH, HORIZON, CHANNELS), torch.rand(BATCH, HORIZON, CHANNELS) > 0.1)
    loss = model.loss(window, target, torch.tensor(0.2), torch.Generator().manual_seed(0))
    reached = {}
    for name, term in loss.terms.items():
        model.zero_grad()
        term.backward(retain_graph=True)
        reached[name] = {n.split(".")[0] for n, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert reached == {
        "fit": {"decompose", "score", "readout"},
        "exchange": {"score"},
        "exchanged": {"decompose", "readout"},
        "departure": {"score"},
    }
    model.zero_grad()
    loss.total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@given(st.integers(0, 2**32 - 1))
def test_an_exchange_closes_one_open_token_and_opens_one_that_may_be_read(seed: int) -> None:
    random, shape = torch.Generator().manual_seed(seed), (6, 4, 3)
    missing = torch.rand(shape, generator=random) < 0.2
    mask = ((torch.rand(shape, generator=random) < 0.3) & ~missing).float()
    mask[0], mask[1] = 0.0, (~missing[1]).float()  # nothing to close, and nothing to open
    size, logits = torch.rand(shape, generator=random), torch.randn(shape, generator=random)
    other, opened, closed = exchanged(mask, missing, size, logits, random)
    assert torch.equal(other[:2], mask[:2])
    for window in range(6):
        before, after = mask[window].bool(), other[window].bool()
        assert not (after & missing[window]).any()
        if before.any() and (~before & ~missing[window]).any():
            assert logits[window][before & ~after].tolist() == [opened[window].item()]
            assert logits[window][after & ~before].tolist() == [closed[window].item()]
        else:
            assert torch.equal(before, after)
            assert opened[window] == closed[window]


def test_about_half_of_the_exchanges_open_a_token_in_proportion_to_its_size() -> None:
    mask, size = torch.zeros(4000, 4, 1), torch.ones(4000, 4, 1)
    mask[:, 0], size[:, 3] = 1.0, 1e6
    other, *_ = exchanged(mask, mask > 1, size, torch.zeros_like(mask), torch.Generator().manual_seed(0))
    share = other.mean(dim=(0, 2)).tolist()
    assert share == pytest.approx([0, 1 / 6, 1 / 6, 2 / 3], abs=0.03)


@pytest.mark.parametrize("with_bias", [True, False])
@torch.no_grad()
def test_a_mixing_network_gives_every_token_a_logit_which_at_first_is_the_bias(with_bias: bool) -> None:
    bias = torch.randn(12, CHANNELS) if with_bias else None
    mixing, deviation = MixingNetwork(2, 12, CHANNELS, 8, 2, bias), torch.randn(BATCH, 24, CHANNELS)
    first = mixing(deviation)
    assert first.shape == (BATCH, 12, CHANNELS)
    assert torch.equal(first, (torch.zeros(12, CHANNELS) if bias is None else bias).expand_as(first))
    assert torch.equal(mixing.unseen(), first[0])
    mixing.head.weight.add_(1.0)
    assert (mixing(deviation) != first).all()


def test_a_logit_of_a_mixing_network_depends_on_every_token() -> None:
    mixing, deviation = MixingNetwork(2, 12, CHANNELS, 8, 2, None), torch.randn(1, 24, CHANNELS, requires_grad=True)
    with torch.no_grad():
        mixing.head.weight.add_(torch.randn_like(mixing.head.weight))
    mixing(deviation)[0, 0, 0].backward()
    assert deviation.grad is not None
    assert (deviation.grad != 0).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": ObjectiveConfig()}, r'with level_from "reading" the gates learn only from .*rate_weight=0\.02'),
        ({"level_from": "window"}, r'exchange_weight needs level_from "reading" \(got exchange_weight=1\.0\)'),
    ],
)
def test_an_objective_that_does_not_fit_the_source_of_the_level_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        choosing(**changes)


def test_the_recipes_choosing_and_default_build_a_choosing_network() -> None:
    for name in ("choosing", "default"):
        assert isinstance(resolve(name, Sizes(96, 24, 7, 24)).build(0), ChoosingForecast)
