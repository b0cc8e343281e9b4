"""The context: which phases belong to the past and the future, and what replaces an absent token."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from ibforecast.core.context import Context

LOOK_BACK, HORIZON, CYCLE = 4, 3, 5
CONTEXT = Context(
    level=torch.tensor([[10.0, -1.0]]),
    scale=torch.tensor([[2.0, 0.5]]),
    phase=torch.tensor([[3, 4, 0, 1, 2, 3, 4]]),
    profile=torch.arange(10.0).view(CYCLE, 2),
)


def test_the_past_uses_the_first_phases() -> None:
    values = torch.full((1, LOOK_BACK, 2), 12.0)
    deviation = CONTEXT.remove(values)
    for step, phase in enumerate((3, 4, 0, 1)):
        assert deviation[0, step].tolist() == [(12 - 10) / 2 - 2 * phase, (12 + 1) / 0.5 - (2 * phase + 1)]


def test_the_future_uses_the_last_phases() -> None:
    values = CONTEXT.restore(torch.ones(1, HORIZON, 2))
    for step, phase in enumerate((2, 3, 4)):
        assert values[0, step].tolist() == [2 * (1 + 2 * phase) + 10, 0.5 * (1 + 2 * phase + 1) - 1]


def test_phases_may_jump_with_the_wall_clock() -> None:
    jumped = replace(CONTEXT, phase=torch.tensor([[3, 4, 0, 2, 3, 4, 0]]))
    assert jumped.remove(torch.zeros(1, LOOK_BACK, 2))[0, 3, 0] == -5 - 4
    assert jumped.restore(torch.zeros(1, HORIZON, 2))[0, :, 0].tolist() == [22.0, 26.0, 10.0]


def test_an_absent_token_is_the_profile_at_level_and_scale() -> None:
    reference = CONTEXT.reference(LOOK_BACK)
    assert reference[0, :, 0].tolist() == [10 + 2 * 6, 10 + 2 * 8, 10, 10 + 2 * 2]
    assert not CONTEXT.remove(reference).any()


def test_a_context_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        CONTEXT.level = torch.zeros(1, 2)  # type: ignore[misc]
