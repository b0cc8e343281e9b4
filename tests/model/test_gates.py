"""Stages 2 and 3: the first scores, noise, temperature and budget during training, and the mask of each gate."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import Tensor, nn

from ibforecast.core.errors import UsageError
from ibforecast.layers.attention import EncoderLayer
from ibforecast.model.config import GateConfig, ModelConfig
from ibforecast.model.network import GATES, JOINT_UP_TO, IBForecast
from ibforecast.model.stage2_score import FixedScores, GateNetwork, first_bias, spacing
from ibforecast.model.stage3_gate import (
    SMALLEST_BUDGET,
    CappedGate,
    ExactGate,
    Gate,
    NewestGate,
    OpenGate,
    ThresholdGate,
)

TOKENS, ALLOWED = 12, 5
CLEAR = torch.zeros(1, 4, 3, dtype=torch.bool)


@pytest.fixture(autouse=True)
def _fixed_seed() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def gate(kind: type[Gate] = ExactGate, allowed: int = ALLOWED, /, **settings: Any) -> Gate:
    return kind(allowed, TOKENS, GateConfig(**settings))


def make_logits(*values: float) -> Tensor:
    """Return the logits of one window of 4 patches and 3 channels; those not listed increase from −2 to −1.5."""
    rest = torch.linspace(-2, -1.5, TOKENS - len(values)).tolist()
    return torch.tensor([*values, *rest]).view(1, 4, 3)


def open_tokens(mask: Tensor) -> set[int]:
    return set(mask.flatten().nonzero().flatten().tolist())


@pytest.mark.parametrize("recent", [1, 2, 4, 9])
def test_the_first_bias_favours_the_newest_patches(recent: int) -> None:
    bias = first_bias(4, 3, recent)
    assert bias is not None
    for patch in range(4):
        newest = patch >= 4 - recent
        assert (bias[patch] == (2.0 if newest else -1.0)).all()


def test_the_first_bias_may_favour_patches_spread_over_the_window() -> None:
    spread, both = first_bias(8, 2, 0, every=3), first_bias(8, 2, 2, every=3)
    assert spread is not None
    assert both is not None
    assert (spread[:, 0] == spread[:, 1]).all()
    assert (spread[:, 0] > 0).nonzero().flatten().tolist() == [1, 4, 7]
    assert (both[:, 0] > 0).nonzero().flatten().tolist() == [1, 4, 6, 7]


@given(some.integers(1, 120), some.integers(0, 5), some.integers(0, 60))
def test_patches_are_spread_as_closely_as_the_budget_allows(patches: int, recent: int, allowed: int) -> None:
    every = spacing(patches, allowed, recent)
    bias, closer = first_bias(patches, 1, recent, every), first_bias(patches, 1, recent, max(1, every - 1))
    assert bias is not None
    assert closer is not None
    # Even the widest spacing has the newest patches.
    assert (bias > 0).sum() <= max(allowed, recent, 1)
    assert every == 1 or (closer > 0).sum() > allowed


def scorer(bias: Tensor | None) -> GateNetwork:
    return GateNetwork(6, 4, 8, 1, 2, 0.0, "joint", 0.5, bias)


def test_without_recent_patches_no_bias_is_learned() -> None:
    assert first_bias(4, 3, 0) is None
    plain, biased = scorer(None), scorer(first_bias(4, 3, 1))
    assert not plain.bias.requires_grad
    assert not plain.bias.any()
    assert biased.bias.requires_grad
    assert biased.bias.shape == (4, 3)


@torch.no_grad()
def test_the_bias_is_only_added_to_the_logits() -> None:
    plain, bias = scorer(None), torch.randn(4, 3)
    biased = scorer(bias)
    biased.load_state_dict(plain.state_dict() | {"bias": bias})
    deviation = torch.randn(2, 24, 3)
    torch.testing.assert_close(biased(deviation), plain(deviation) + bias)


@torch.no_grad()
def test_scores_start_at_the_first_logit() -> None:
    network = scorer(None)
    network.head.weight.zero_()
    assert (network(torch.randn(2, 24, 3)) == 0.5).all()


def test_a_network_learns_a_copy_of_the_first_bias() -> None:
    bias = first_bias(4, 3, 1)
    assert bias is not None
    network = scorer(bias)
    with torch.no_grad():
        network.bias.fill_(9)
    assert bias.max() == 2


@pytest.mark.parametrize(("channels", "joint"), [(JOINT_UP_TO, True), (JOINT_UP_TO + 1, False)])
def test_attention_is_joint_up_to_a_number_of_channels(channels: int, joint: bool) -> None:
    assert IBForecast(ModelConfig(12, 4, channels, 4)).score.joint == joint


@torch.no_grad()
def test_the_encoder_layer_equals_the_post_norm_layer_of_pytorch() -> None:
    layer = EncoderLayer(8, 2, 16, 0.0).eval()
    reference = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True)
    for parameter in layer.parameters():
        parameter.add_(0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel())))
    attention, feed_forward = layer.attention, layer.feed_forward
    reference.load_state_dict(
        {
            "self_attn.in_proj_weight": torch.cat([attention.query.weight, attention.key_value.weight]),
            "self_attn.in_proj_bias": torch.cat([attention.query.bias, attention.key_value.bias]),
            "self_attn.out_proj.weight": attention.out.weight,
            "self_attn.out_proj.bias": attention.out.bias,
            "linear1.weight": feed_forward[0].weight,
            "linear1.bias": feed_forward[0].bias,
            "linear2.weight": feed_forward[2].weight,
            "linear2.bias": feed_forward[2].bias,
            "norm1.weight": layer.attention_norm.weight,
            "norm1.bias": layer.attention_norm.bias,
            "norm2.weight": layer.feed_forward_norm.weight,
            "norm2.bias": layer.feed_forward_norm.bias,
        }
    )
    rows = torch.randn(3, 7, 8)
    torch.testing.assert_close(layer(rows), reference.train()(rows), rtol=1e-5, atol=1e-5)


def test_scores_are_the_same_bits_with_and_without_gradients_and_in_training() -> None:
    network, deviation = scorer(None), torch.randn(2, 24, 3)
    with torch.no_grad():
        in_use = network.eval()(deviation)
    assert torch.equal(network(deviation), in_use)
    assert torch.equal(network.train()(deviation), in_use)


@pytest.mark.parametrize(
    ("progress", "left"), [(0.0, 1.0), (0.15, 0.75), (0.3, 0.5), (0.6, 0.0), (0.8, 0.0), (1.0, 0.0)]
)
def test_the_noise_falls_linearly_to_zero(progress: float, left: float) -> None:
    size = gate(noise=0.4, noise_until=0.6).noise_at(torch.tensor(progress))
    torch.testing.assert_close(size, torch.tensor(0.4 * left))


@pytest.mark.parametrize("progress", [0.0, 0.5, 1.0])
def test_the_noise_of_the_paper_never_falls(progress: float) -> None:
    assert gate(noise=1.0, noise_until=1.0).noise_at(torch.tensor(progress)) == 1


@pytest.mark.parametrize(
    ("progress", "count"), [(0.0, 12), (0.05, 10), (0.1, 9), (0.25, 6), (0.4, 5), (0.5, 5), (0.75, 5), (1.0, 5)]
)
def test_the_number_of_open_gates_falls_to_the_budget_with_a_cubic_schedule(progress: float, count: int) -> None:
    assert gate(narrow_until=0.5).count_at(torch.tensor(progress)) == count


@pytest.mark.parametrize("until", [0.1, 0.5, 0.9])
def test_the_number_of_open_gates_never_rises(until: float) -> None:
    counts = [int(gate(narrow_until=until).count_at(torch.tensor(step / 50))) for step in range(51)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == TOKENS
    assert all(count == ALLOWED for step, count in enumerate(counts) if step / 50 >= until)


@pytest.mark.parametrize("progress", [0.0, 0.5, 1.0])
def test_without_narrowing_the_budget_applies_from_the_start(progress: float) -> None:
    count = gate(narrow_until=0.0).count_at(torch.tensor(progress))
    assert count == ALLOWED
    assert count.dtype == torch.int64


@pytest.mark.parametrize("kind", [ExactGate, CappedGate])
@pytest.mark.parametrize(("progress", "count"), [(0.0, 12), (0.25, 6), (0.5, 5), (1.0, 5)])
def test_the_narrowing_budget_applies_only_in_training(kind: type[Gate], progress: float, count: int) -> None:
    every = torch.rand(1, 4, 3) + 1
    narrowing = gate(kind, noise=0.0, narrow_until=0.5)
    assert narrowing.sample(every, CLEAR, torch.tensor(progress), torch.Generator()).sum() == count
    assert narrowing(every, CLEAR)[0].sum() == ALLOWED


@pytest.mark.parametrize(("progress", "temperature"), [(0.0, 0.5), (0.5, 0.05**0.5), (1.0, 0.1)])
@pytest.mark.parametrize("kind", [ThresholdGate, CappedGate])
def test_the_temperature_falls_geometrically_and_sharpens_the_gradient(
    kind: type[Gate], progress: float, temperature: float
) -> None:
    logits = make_logits(0.3, 0.2).requires_grad_()
    gate(kind, noise=0.0).sample(logits, CLEAR, torch.tensor(progress), torch.Generator()).sum().backward()
    smooth = torch.sigmoid(logits.detach() / temperature)
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, smooth * (1 - smooth) / temperature)


def test_the_threshold_of_the_exact_gate_is_half_way_to_the_next_logit() -> None:
    logits = make_logits(3.0, 1.0, 2.0, 0.5, -1.0, 0.25)  # the fifth largest is 0.25, the next −1
    mask, probability = gate(ExactGate)(logits, CLEAR)
    assert open_tokens(mask) == {0, 1, 2, 3, 5}
    torch.testing.assert_close(probability, torch.sigmoid(logits - (0.25 - 1.0) / 2))
    assert torch.equal(mask, probability > 0.5)


def test_the_exact_gate_fills_its_budget_even_with_logits_below_zero() -> None:
    mask, _ = gate(ExactGate)(make_logits() - 5, CLEAR)
    assert open_tokens(mask) == {7, 8, 9, 10, 11}


@pytest.mark.parametrize("kind", [ThresholdGate, CappedGate])
def test_the_gate_of_the_paper_opens_only_above_one_half_and_keeps_its_probabilities(kind: type[Gate]) -> None:
    logits = make_logits(3.0, -0.1, 0.1)
    mask, probability = gate(kind)(logits, CLEAR)
    assert open_tokens(mask) == {0, 2}
    torch.testing.assert_close(probability, torch.sigmoid(logits))
    crowded = make_logits(3.0, 1.0, 2.0, 0.5, 4.0, 0.25, 0.1)
    mask, probability = gate(kind)(crowded, CLEAR)
    assert open_tokens(mask) == {0, 1, 2, 3, 4}
    torch.testing.assert_close(probability, torch.sigmoid(crowded))


def test_a_gate_with_a_logit_of_zero_is_closed() -> None:
    assert not gate(ThresholdGate)(torch.zeros(1, 4, 3), CLEAR)[0].any()


def test_in_training_only_the_capped_gate_limits_the_number_of_open_tokens() -> None:
    crowded = make_logits(3.0, 1.0, 2.0, 0.5, 4.0, 0.25, 0.1)
    sampled = [
        gate(kind, noise=0.0).sample(crowded, CLEAR, torch.tensor(0.5), torch.Generator())
        for kind in (ThresholdGate, CappedGate)
    ]
    assert [open_tokens(mask) for mask in sampled] == [{0, 1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4}]


def test_the_threshold_of_the_capped_gate_is_that_of_the_budget_but_at_least_zero() -> None:
    crowded, roomy = make_logits(3.0, 1.0, 2.0, 0.5, 4.0, 0.25, 0.1), make_logits(3.0, 1.0)
    _, margin = gate(CappedGate).margin(crowded, CLEAR, torch.tensor(ALLOWED))
    torch.testing.assert_close(margin, crowded - (0.5 + 0.25) / 2)
    _, margin = gate(CappedGate).margin(roomy, CLEAR, torch.tensor(ALLOWED))
    torch.testing.assert_close(margin, roomy)


def test_the_next_best_token_replaces_a_missing_one() -> None:
    missing = CLEAR.clone()
    missing.view(-1)[[0, 2]] = True
    logits = make_logits(3.0, 1.0, 2.0, 0.5, 4.0, 0.25, 0.1)
    for kind in (ExactGate, ThresholdGate, CappedGate):
        mask, probability = gate(kind)(logits, missing)
        assert open_tokens(mask) == {1, 3, 4, 5, 6}
        assert not probability[missing].any()


@pytest.mark.parametrize("kind", [ExactGate, ThresholdGate, CappedGate])
def test_a_missing_token_gets_no_gradient(kind: type[Gate]) -> None:
    missing = CLEAR.clone()
    missing.view(-1)[[0, 2]] = True
    logits = make_logits(0.3, 0.1, 0.2).requires_grad_()
    gate(kind, noise=0.0).sample(logits, missing, torch.tensor(0.5), torch.Generator()).sum().backward()
    assert logits.grad is not None
    assert (logits.grad == 0).flatten().tolist() == missing.flatten().tolist()


def test_among_equal_tokens_the_first_are_open() -> None:
    wide = torch.zeros(2, 50, 40, dtype=torch.bool)
    mask, _ = ExactGate(7, 2000, GateConfig())(torch.zeros(2, 50, 40), wide)
    assert [open_tokens(row) for row in mask] == [set(range(7)), set(range(7))]


def test_the_threshold_passes_no_gradient() -> None:
    logits = make_logits(3.0, 1.0, 2.0).requires_grad_()
    exact = gate(ExactGate, noise=0.0)
    exact.sample(logits, CLEAR, torch.tensor(0.0), torch.Generator())[0, 0, 0].backward()
    assert logits.grad is not None
    assert open_tokens(logits.grad) == {0}


def test_the_open_gate_opens_every_observed_token_with_probability_one() -> None:
    missing = CLEAR.clone()
    missing[0, 1, 1] = True
    mask, probability = gate(OpenGate, TOKENS, kind="open")(torch.randn(1, 4, 3) - 9, missing)
    assert torch.equal(mask, ~missing)
    assert torch.equal(probability, (~missing).float())


@pytest.mark.parametrize(("allowed", "patches"), [(3, 1), (5, 1), (6, 2), (11, 3), (12, 4)])
def test_the_static_gate_opens_the_newest_patches_of_every_channel_within_the_budget(
    allowed: int, patches: int
) -> None:
    missing = CLEAR.clone()
    missing[0, 3, 1] = True
    mask, probability = gate(NewestGate, allowed, kind="newest")(torch.randn(1, 4, 3), missing)
    expected = (torch.arange(4) >= 4 - patches)[None, :, None] & ~missing
    assert torch.equal(mask, expected)
    assert torch.equal(probability, expected.float())
    sampled = gate(NewestGate, allowed, kind="newest").sample(
        torch.randn(1, 4, 3), missing, torch.tensor(0.5), torch.Generator()
    )
    assert torch.equal(sampled, expected.float())


@torch.no_grad()
def test_fixed_scores_are_the_same_for_every_window_and_start_with_the_newest_patches() -> None:
    config = ModelConfig(24, 4, 3, 4, patch_len=6, gate=GateConfig(attention="none", recent=1))
    scores = IBForecast(config).score
    assert isinstance(scores, FixedScores)
    logits = scores(torch.randn(5, 24, 3))
    assert torch.equal(logits[0], first_bias(4, 3, 1))
    assert all(torch.equal(row, logits[0]) for row in logits)
    assert scores.bias.requires_grad


@pytest.mark.parametrize("kind", GATES)
def test_the_budget_is_not_part_of_the_weights(kind: str) -> None:
    assert not gate(GATES[kind], kind=kind).state_dict()
    assert not list(gate(GATES[kind], kind=kind).parameters())


@pytest.mark.parametrize("kind", GATES)
def test_noise_comes_from_the_generator_that_is_passed(kind: str) -> None:
    logits = 0.1 * torch.randn(8, 4, 3)
    clear = torch.zeros(8, 4, 3, dtype=torch.bool)
    noisy = gate(GATES[kind], noise=1.0, noise_until=1.0, kind=kind)
    before = torch.get_rng_state()
    first, again, other = (
        noisy.sample(logits, clear, torch.tensor(0.0), torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (kind in ("open", "newest"))


def test_with_any_budget_small_counts_are_drawn_as_often_as_large_ones() -> None:
    random, exact = torch.Generator().manual_seed(0), gate(any_budget=True)
    drawn = torch.tensor([int(exact.drawn_count(torch.tensor(0.5), random)) for _ in range(400)]) / exact.tokens
    assert drawn.min() <= 1.5 * max(SMALLEST_BUDGET, 1 / exact.tokens)
    assert drawn.max() > 0.9
    middle = SMALLEST_BUDGET**0.5
    assert 0.35 < (drawn < middle).float().mean() < 0.65


def test_with_one_budget_the_count_is_the_scheduled_one_and_nothing_is_drawn() -> None:
    random, exact = torch.Generator().manual_seed(0), gate()
    before = random.get_state()
    assert exact.drawn_count(torch.tensor(0.5), random) == exact.count_at(torch.tensor(0.5))
    assert torch.equal(random.get_state(), before)


def test_sampling_with_a_count_opens_this_number_of_gates() -> None:
    logits = torch.randn(3, *CLEAR.shape[1:], generator=torch.Generator().manual_seed(1))
    clear = torch.zeros_like(logits, dtype=torch.bool)
    for count in (1, 3):
        mask = gate().sample(logits, clear, torch.tensor(0.0), torch.Generator(), torch.tensor(count))
        assert mask.sum(dim=(1, 2)).tolist() == [count] * 3


@pytest.mark.parametrize("kind", ["threshold", "open", "newest"])
def test_any_budget_needs_a_gate_that_counts(kind: str) -> None:
    with pytest.raises(UsageError, match="any_budget needs a gate that counts"):
        GateConfig(kind=kind, any_budget=True)  # type: ignore[arg-type]
