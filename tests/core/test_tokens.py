"""Tokens: where they begin and end, and that closed ones are zero."""

import pytest
import torch

from ibforecast.core.tokens import closed_to_zero, from_tokens, spread, to_tokens

STEPS = torch.arange(2 * 6 * 3.0).view(2, 6, 3)


def test_patches_of_a_channel_are_consecutive_steps_of_that_channel() -> None:
    tokens = to_tokens(STEPS, 2)
    assert tokens.shape == (2, 3, 3, 2)
    assert tokens[0, 1, 2].tolist() == [STEPS[0, 2, 2], STEPS[0, 3, 2]]
    assert tokens[1, 2, 0].tolist() == [STEPS[1, 4, 0], STEPS[1, 5, 0]]


def test_a_patch_may_be_a_whole_window_or_a_single_step() -> None:
    assert to_tokens(STEPS, 6).shape == (2, 1, 3, 6)
    assert torch.equal(to_tokens(STEPS, 1)[..., 0], STEPS)
    assert torch.equal(from_tokens(to_tokens(STEPS, 6)), STEPS)


def test_tokens_of_booleans_stay_booleans() -> None:
    observed = STEPS > 4
    tokens = to_tokens(observed, 3)
    assert tokens.dtype == torch.bool
    assert torch.equal(from_tokens(tokens), observed)


def test_a_look_back_that_is_not_a_multiple_of_patch_len_is_refused() -> None:
    with pytest.raises(RuntimeError):
        to_tokens(STEPS, 4)


def test_a_gate_covers_the_steps_of_its_patch_and_no_others() -> None:
    mask = torch.zeros(2, 3, 3, dtype=torch.bool)
    mask[0, 1, 2] = True
    covered = spread(mask, 2)
    assert covered.nonzero().tolist() == [[0, 2, 2], [0, 3, 2]]


def test_a_closed_token_is_exactly_zero_even_if_it_was_nan() -> None:
    deviation = STEPS.clone()
    deviation[0, 0, 0], deviation[0, 1, 0], deviation[1, 0, 0] = float("nan"), float("-inf"), -0.0
    evidence = closed_to_zero(torch.zeros(2, 3, 3, dtype=torch.bool), deviation)
    assert not evidence.view(torch.int32).any()


def test_an_open_token_keeps_its_bits() -> None:
    deviation = -STEPS
    evidence = closed_to_zero(torch.ones(2, 3, 3, dtype=torch.bool), deviation)
    assert torch.equal(evidence.view(torch.int32), deviation.view(torch.int32))
