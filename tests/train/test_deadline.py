"""Deadlines: how much of the time is kept for the end of a fit, and for later stages."""

from types import SimpleNamespace

import pytest

from ibforecast.train.deadline import AIM, RECENT, TAIL_PASSES, Deadline

QUICK, SLOW = "quick", "slow"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr("time.perf_counter", lambda: clock.now)
    return clock


def deadline(*passes: tuple[str, float]) -> Deadline:
    made = Deadline(40.0, 100.0)
    for kind, seconds in passes:
        made.note(kind, seconds)
    return made


def test_the_time_that_is_left_counts_from_the_beginning(clock: SimpleNamespace) -> None:
    assert deadline().left == pytest.approx(AIM * 100 - 10)
    clock.now = 140.0
    assert deadline().left < 0
    assert deadline().over()


def test_the_end_takes_as_long_as_that_of_the_slowest_forecaster() -> None:
    assert deadline().tail == 0
    assert deadline((QUICK, 0.5)).tail == pytest.approx(TAIL_PASSES * 0.5)
    assert deadline((QUICK, 0.5), (SLOW, 2.0), (QUICK, 0.5)).tail == pytest.approx(TAIL_PASSES * 2.0)


def test_the_end_takes_longer_if_the_latest_passes_did() -> None:
    slower = deadline((QUICK, 0.5), (SLOW, 2.0), (QUICK, 1.0))
    assert slower.tail == pytest.approx(TAIL_PASSES * 4.0)
    for _ in range(RECENT):
        slower.note(QUICK, 0.25)
    assert slower.tail == pytest.approx(TAIL_PASSES * 1.0), "a pause of the machine is forgotten"


def test_training_is_over_once_only_the_end_is_left(clock: SimpleNamespace) -> None:
    limit = deadline((QUICK, 1.0))
    assert not limit.over()
    assert not limit.reached
    clock.now = 40 + AIM * 100 - TAIL_PASSES + 0.01
    assert limit.over()
    assert limit.reached


def test_a_stage_with_a_share_leaves_the_rest_to_later_ones(clock: SimpleNamespace) -> None:
    limit = deadline((QUICK, 1.0))
    training = limit.left - TAIL_PASSES
    limit.grant(0.25)
    clock.now += 0.25 * training - 0.01
    assert not limit.over()
    clock.now += 0.02
    assert limit.over()
    limit.grant(1.0)
    assert not limit.over()
