"""Promises of the parts for any input: gates, tokens, contexts, the rate, the standardiser."""

from fractions import Fraction
from math import floor, inf, log, nan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.tokens import closed_to_zero, from_tokens, spread, to_tokens
from ibforecast.model import objective
from ibforecast.model.config import GateConfig, allowance
from ibforecast.model.network import GATES
from ibforecast.model.stage3_gate import largest, straight_through

modest = settings(max_examples=60, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
CLOSING = ["exact", "capped", "threshold", "newest"]
ODD = [nan, inf, -inf, 3e38, -3e38, 1e30, -1e30, 0.0, 1.0, -1.0]


@st.composite
def logits_and_gaps(draw: st.DrawFn) -> tuple[list[list[list[float]]], list[list[list[bool]]]]:
    """Draw logits of every kind, including ties and NaN, and which tokens are missing."""
    shape = tuple(draw(st.integers(1, 4)) for _ in range(3))
    kind = st.one_of(st.sampled_from(ODD), st.floats(width=32), st.integers(-2, 2).map(float))
    logits = draw(arrays(np.float32, shape, elements=kind))
    missing = draw(arrays(np.bool_, shape))
    return logits.tolist(), missing.tolist()


@pytest.mark.parametrize("kind", CLOSING)
@modest
@given(drawn=logits_and_gaps(), allowed=st.integers(1, 16))
def test_no_logits_open_more_than_the_allowance_or_a_missing_token(
    kind: str, drawn: tuple[list[list[list[float]]], list[list[list[bool]]]], allowed: int
) -> None:
    logits, missing = torch.tensor(drawn[0]), torch.tensor(drawn[1])
    tokens = logits[0].numel()
    allowed = min(allowed, tokens)
    gate = GATES[kind](allowed, tokens, GateConfig(kind=kind))  # type: ignore[arg-type]
    mask, probability = gate(logits, missing)
    assert (mask.sum(dim=(1, 2)) <= allowed).all()
    assert not (mask & missing).any()
    assert kind == "newest" or not (mask & logits.isnan()).any()
    assert probability.shape == logits.shape


@modest
@given(drawn=logits_and_gaps(), count=st.integers(1, 16))
def test_the_largest_are_marked_and_the_threshold_lies_between_them_and_the_rest(
    drawn: tuple[list[list[list[float]]], list[list[list[bool]]]], count: int
) -> None:
    logits, missing = torch.tensor(drawn[0]), torch.tensor(drawn[1])
    count = min(count, logits[0].numel())
    marked, threshold = largest(logits, missing, torch.tensor(count))
    for window in range(len(logits)):
        readable = ~missing[window] & (logits[window] > -1e30)
        chosen, left = logits[window][marked[window]], logits[window][readable & ~marked[window]]
        assert len(chosen) == min(count, int(readable.sum()))
        if len(chosen) and len(left):
            assert chosen.min() >= left.max()
        if len(chosen) and len(left) and chosen.min() < 1e38:  # beyond that the midpoint overflows
            assert chosen.min() >= threshold[window] >= left.max()


@modest
@given(budget=st.integers(1, 100), tokens=st.integers(1, 2000))
def test_the_allowance_is_the_floor_of_the_decimal_budget(budget: int, tokens: int) -> None:
    assert allowance(budget / 100, tokens) == floor(Fraction(budget, 100) * tokens)


@pytest.mark.parametrize("kind", [*CLOSING, "open"])
@modest
@given(seed=SEEDS, size=st.floats(0, 1e4), progress=st.floats(0, 1))
def test_a_sampled_mask_is_exactly_zero_or_one_and_zero_if_missing(
    kind: str, seed: int, size: float, progress: float
) -> None:
    random = torch.Generator().manual_seed(seed)
    logits = size * torch.randn(3, 4, 3, generator=random)
    missing = torch.rand(3, 4, 3, generator=random) < 0.3
    budget = 12 if kind == "open" else 5
    gate = GATES[kind](budget, 12, GateConfig(kind=kind))  # type: ignore[arg-type]
    mask = gate.sample(logits, missing, torch.tensor(progress), random)
    assert ((mask == 0) | (mask == 1)).all()
    assert not mask[missing].any()
    if kind in ("exact", "capped"):
        assert (mask.sum(dim=(1, 2)) <= budget).all()
    if kind == "exact":
        assert torch.equal(mask.sum(dim=(1, 2)), (~missing).sum(dim=(1, 2)).clamp(max=budget).float())


@modest
@given(seed=SEEDS)
def test_the_straight_through_gate_equals_the_hard_gate_bit_for_bit(seed: int) -> None:
    smooth = torch.rand(2, 50, 20, generator=torch.Generator().manual_seed(seed))
    hard = smooth > 0.5
    assert torch.equal(straight_through(hard, smooth), hard.float())


@modest
@given(
    batch=st.integers(1, 3), patch=st.integers(1, 5), channel=st.integers(1, 4), patch_len=st.integers(1, 6), seed=SEEDS
)
def test_to_tokens_and_from_tokens_are_inverse(batch: int, patch: int, channel: int, patch_len: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    steps = torch.randn(batch, patch * patch_len, channel, generator=random)
    assert torch.equal(from_tokens(to_tokens(steps, patch_len)), steps)
    tokens = torch.randn(batch, patch, channel, patch_len, generator=random)
    assert torch.equal(to_tokens(from_tokens(tokens), patch_len), tokens)
    mask = torch.rand(batch, patch, channel, generator=random) > 0.5
    assert torch.equal(to_tokens(spread(mask, patch_len), patch_len), mask[..., None].expand(tokens.shape))
    kept = to_tokens(closed_to_zero(mask, steps), patch_len)
    assert torch.equal(kept[mask], to_tokens(steps, patch_len)[mask])
    assert not kept[~mask].any()


def some_context(seed: int, batch: int, steps: int, channels: int, cycle: int) -> tuple[Context, Tensor]:
    random = torch.Generator().manual_seed(seed)
    context = Context(
        level=10 * torch.randn(batch, channels, generator=random),
        scale=0.1 + 3 * torch.rand(batch, channels, generator=random),
        phase=torch.randint(0, 3 * cycle, (batch, steps), generator=random),
        profile=torch.randn(cycle, channels, generator=random),
    )
    return context, 10 * torch.randn(batch, steps, channels, generator=random)


@modest
@given(seed=SEEDS, batch=st.integers(1, 3), steps=st.integers(1, 9), cycle=st.integers(1, 5))
def test_removing_and_restoring_a_context_leaves_the_values_unchanged(
    seed: int, batch: int, steps: int, cycle: int
) -> None:
    context, values = some_context(seed, batch, steps, 3, cycle)
    torch.testing.assert_close(context.restore(context.remove(values)), values, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(context.remove(context.restore(values)), values, rtol=1e-3, atol=1e-3)


@modest
@given(seed=SEEDS, look_back=st.integers(1, 9), horizon=st.integers(1, 6), cycle=st.integers(1, 5))
def test_the_reference_of_a_window_has_no_deviation(seed: int, look_back: int, horizon: int, cycle: int) -> None:
    context, _ = some_context(seed, 2, look_back + horizon, 3, cycle)
    nothing = context.remove(context.reference(look_back))
    torch.testing.assert_close(nothing, torch.zeros_like(nothing), rtol=0, atol=1e-3)


@modest
@given(logit=st.floats(-50, 50), prior=st.floats(0.01, 0.99))
def test_the_rate_is_never_negative(logit: float, prior: float) -> None:
    rate = float(objective.token_rate(torch.tensor([logit]), prior))
    assert rate >= -1e-5
    if abs(logit - log(prior / (1 - prior))) > 0.1:
        assert rate > 0


@modest
@given(prior=st.floats(0.01, 0.99))
def test_the_rate_and_its_gradient_are_zero_at_the_prior(prior: float) -> None:
    at = torch.tensor([log(prior / (1 - prior))], requires_grad=True)
    rate = objective.rate(at[:, None, None], prior)
    rate.backward()
    assert abs(rate.item()) < 1e-6
    assert at.grad is not None
    assert abs(at.grad.item()) < 1e-6


@modest
@given(
    rows=arrays(np.float64, st.tuples(st.integers(2, 20), st.just(3)), elements=st.floats(-1e6, 1e6, width=32)),
)
def test_standardising_and_back_keeps_the_values(rows: np.ndarray) -> None:
    standardiser = Standardiser.of(rows, ("a", "b", "c"))
    back = standardiser.to_units(standardiser.standardise(rows))
    np.testing.assert_allclose(back, rows, rtol=1e-9, atol=1e-9 * (1 + np.abs(rows).max()))
    assert (standardiser.std > 0).all()
