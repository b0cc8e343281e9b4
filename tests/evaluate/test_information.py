"""The rate in bits."""

from math import log, log2

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Bernoulli, kl_divergence

from ibforecast.core.context import Context
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation
from ibforecast.evaluate.information import rate_bits, token_bits
from ibforecast.model.objective import token_rate

modest = settings(max_examples=100, deadline=None, derandomize=True)
priors = st.floats(0.01, 0.99)


@modest
@given(st.floats(1e-6, 1 - 1e-6), priors)
def test_token_bits_are_the_divergence_of_two_bernoullis_in_bits(probability: float, prior: float) -> None:
    one, other = (Bernoulli(torch.tensor(p, dtype=torch.float64)) for p in (probability, prior))
    bits = token_bits(torch.tensor([probability], dtype=torch.float64), prior)
    assert bits.item() == pytest.approx(float(kl_divergence(one, other)) / log(2), rel=1e-6, abs=1e-12)


@modest
@given(st.floats(-12, 12), priors)
def test_token_bits_equal_the_rate_of_the_objective(logit: float, prior: float) -> None:
    bits = token_bits(torch.sigmoid(torch.tensor([logit], dtype=torch.float64)), prior)
    nats = token_rate(torch.tensor([logit], dtype=torch.float64), prior)
    assert bits.item() * log(2) == pytest.approx(nats.item(), rel=1e-6, abs=1e-9)


@modest
@given(st.floats(0, 1, width=32), priors)
def test_token_bits_are_never_negative_and_zero_only_at_the_prior(probability: float, prior: float) -> None:
    bits = token_bits(torch.tensor([probability, prior], dtype=torch.float64), prior)
    assert torch.isfinite(bits).all()
    assert bits[0] >= 0
    assert bits[1] == 0
    if abs(probability - prior) > 1e-3:
        assert bits[0] > 0


def test_a_certain_gate_costs_its_surprise_under_the_prior() -> None:
    assert token_bits(torch.tensor([0.0, 1.0]), 0.2).tolist() == pytest.approx([-log2(0.8), -log2(0.2)])
    assert token_bits(torch.tensor([0.0, 1.0]), 0.5).tolist() == [1, 1]


def explanation(probability: torch.Tensor, missing: torch.Tensor) -> Explanation:
    batch, patch, channel = probability.shape
    context = Context(
        torch.zeros(batch, channel),
        torch.ones(batch, channel),
        torch.zeros(batch, 5, dtype=torch.int64),
        torch.zeros(1, channel),
    )
    return Explanation(probability > 0.5, torch.zeros(batch, 2 * patch, channel), probability, missing, context)


def test_a_windows_rate_is_the_sum_over_its_gated_tokens() -> None:
    probability = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(0))
    missing = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(1)) < 0.3
    rates = rate_bits(explanation(probability, missing), 0.2)
    for row in range(4):
        bits = [
            p * log2(p / 0.2) + (1 - p) * log2((1 - p) / 0.8)
            for p, absent in zip(probability[row].flatten().tolist(), missing[row].flatten().tolist(), strict=True)
            if not absent
        ]
        assert rates[row].item() == pytest.approx(sum(bits))
    assert rates.dtype == torch.float64


def test_a_mask_at_the_prior_costs_nothing_and_a_certain_one_costs_a_bit_per_token() -> None:
    even = torch.full((2, 3, 4), 0.5)
    none = torch.zeros(2, 3, 4, dtype=torch.bool)
    assert rate_bits(explanation(even, none), 0.5).tolist() == [0, 0]
    assert rate_bits(explanation(even.round(), none), 0.5).tolist() == [12, 12]


@pytest.mark.parametrize("prior", [0.0, 1.0, -0.1, 1.5])
def test_a_prior_of_zero_or_one_is_refused(prior: float) -> None:
    with pytest.raises(UsageError, match="prior must lie in"):
        token_bits(torch.tensor([0.5]), prior)
