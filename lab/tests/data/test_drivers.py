"""The driver benchmark has the properties that its description promises."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ibforecast.core.errors import UsageError
from ibforecast_lab.data.drivers import DriverConstants, DriverWindows, generate, splits
from ibforecast_lab.data.framed import FramedConstants, FramedWindows, assemble, draw

CONSTANTS = DriverConstants()


def without_events(windows: int, seed: int) -> FramedWindows:
    """Return the same windows without any event."""
    parts = draw("pulse", windows, seed, CONSTANTS.framed)
    nothing = {name: np.zeros_like(getattr(parts, name)) for name in ("event", "decoy", "response")}
    return assemble(replace(parts, **nothing))


def in_patches(steps: np.ndarray) -> np.ndarray:
    """Return steps by patch: window, driver, patch, step of the patch, channel."""
    return steps.reshape(*steps.shape[:2], -1, CONSTANTS.event_steps, steps.shape[-1])


def test_the_same_seed_gives_the_same_windows() -> None:
    one, same, other = generate(20, 7), generate(20, 7), generate(20, 8)
    assert one.window.tobytes() == same.window.tobytes()
    assert one.target.tobytes() == same.target.tobytes()
    assert (one.window != other.window).any()


def test_the_splits_have_the_sizes_of_the_framed_benchmark_and_share_their_loadings() -> None:
    parts = splits()
    assert [len(part) for part in parts] == [4000, 1000, 1000]
    assert all((part.loading == parts[0].loading).all() for part in parts)
    firsts = np.concatenate([part.window[:, 0, 0] for part in parts])
    assert len(np.unique(firsts)) > 5990


def test_a_driver_with_a_state_fills_exactly_one_patch_of_its_source() -> None:
    made = generate(300, 1)
    steps = in_patches(made.support)
    assert (steps.all(axis=3) == steps.any(axis=3)).all()
    assert (steps.any(axis=3).sum(axis=(2, 3)) == (made.state != 0)).all()
    for driver, source in enumerate(CONSTANTS.source):
        assert made.support[:, driver, :, source].any()
        assert not np.delete(made.support[:, driver], source, axis=-1).any()
    assert 0.4 < (made.state != 0).mean() < 0.6
    assert {-1.0, 1.0} == set(np.sign(made.state[made.state != 0]))


def test_a_bystander_is_never_in_the_source_of_its_driver() -> None:
    made = generate(300, 1)
    for driver, source in enumerate(CONSTANTS.source):
        channels = made.bystander[:, driver].any(axis=(0, 1))
        assert not channels[source]
        assert np.delete(channels, source).all()


def test_no_two_events_of_a_window_share_a_patch() -> None:
    made = generate(300, 1)
    taken = in_patches(made.support).any(axis=(3, 4)).sum(axis=1) + in_patches(made.bystander).any(axis=(3, 4)).sum(
        axis=1
    )
    assert taken.max() == 1


def test_a_window_is_the_one_without_events_plus_events_that_keep_its_level() -> None:
    made, without = generate(200, 1), without_events(200, 1)
    added = (made.window - without.window) / made.scale[:, None]
    shown = made.support.any(axis=1) | made.bystander.any(axis=1)
    assert np.abs(added[~shown]).max() < 1e-4
    for window, driver in np.argwhere(made.state != 0)[:100]:
        event = added[window][made.support[window, driver]]
        np.testing.assert_allclose(event, made.state[window, driver] * CONSTANTS.shape[driver], atol=1e-4)
        assert abs(event.sum()) < 1e-3


def test_a_future_is_the_one_without_events_plus_states_times_loadings() -> None:
    made, without = generate(50, 1), without_events(50, 1)
    added = (made.target - without.target) / made.scale[:, None]
    for window in range(50):
        for step in range(24):
            for channel in range(4):
                expected = sum(made.state[window, k] * made.loading[step, k, channel] for k in range(3))
                assert abs(added[window, step, channel] - expected) < 1e-4


def test_a_loading_peaks_at_its_lead_and_is_zero_without_an_effect() -> None:
    loading = CONSTANTS.loading
    for driver, (effect, lead) in enumerate(zip(CONSTANTS.effect, CONSTANTS.lead, strict=True)):
        for channel, size in enumerate(effect):
            course = loading[:, driver, channel]
            assert course[int(lead)] == pytest.approx(size)
            assert np.abs(course).max() == pytest.approx(abs(size))
        assert effect[CONSTANTS.source[driver]] == 0


def test_a_token_is_marked_if_it_contains_a_step_of_an_event() -> None:
    made = generate(30, 1)
    assert (made.tokens(12).sum(axis=(2, 3)) == (made.state != 0)).all()
    assert (made.tokens(6).sum(axis=(2, 3)) == 2 * (made.state != 0)).all()
    assert (made.tokens(24).sum(axis=(2, 3)) == (made.state != 0)).all()
    assert (made.tokens(1) == made.support).all()


def test_a_part_contains_its_windows_and_their_truth() -> None:
    made = generate(30, 1)
    part = made.part(10, 14)
    assert isinstance(part, DriverWindows)
    assert len(part) == 4
    assert part.window.tobytes() == made.window[10:14].tobytes()
    assert (part.support == made.support[10:14]).all()
    assert (part.state == made.state[10:14]).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": (0, 1)},
        {"source": (), "effect": (), "lead": ()},
        {"source": (0, 1, 4)},
        {"effect": ((0.0, 0.6), (0.0, 0.6), (0.6, 0.0))},
        {"event_steps": 10},
        {"event_steps": 48},
        {"event_steps": 6},
        {
            "framed": FramedConstants(channels=1),
            "source": (0,),
            "effect": ((0.5,),),
            "lead": (3.0,),
        },
    ],
)
def test_inconsistent_constants_are_refused_with_rule_value_and_remedy(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^.+ must .+ \(got .+\); .+"):
        DriverConstants(**wrong)
