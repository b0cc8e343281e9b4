"""The training configuration: epochs, learning rate, batches and patience."""

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ibforecast.core.errors import UsageError
from ibforecast.train.config import CONTEST_EPOCHS, SMALLEST_BATCH, TrainConfig


def test_the_learning_rate_is_constant_for_some_epochs_and_then_falls_by_its_factor() -> None:
    pace = TrainConfig(epochs=7, learning_rate=0.01, constant_epochs=3, decay=0.8)
    expected = [0.01, 0.01, 0.01, 0.01 * 0.8, 0.01 * 0.8**2, 0.01 * 0.8**3, 0.01 * 0.8**4]
    assert [pace.rate_at(epoch) for epoch in range(7)] == pytest.approx(expected, rel=1e-12)


def test_a_decay_of_one_keeps_the_rate() -> None:
    pace = TrainConfig(learning_rate=0.3, constant_epochs=1, decay=1.0)
    assert {pace.rate_at(epoch) for epoch in range(36)} == {0.3}


@pytest.mark.parametrize(("epochs", "expected"), [(5, [0, 0.25, 0.5, 0.75, 1]), (2, [0, 1]), (1, [0])])
def test_progress_goes_from_zero_to_one_over_the_epochs(epochs: int, expected: list[float]) -> None:
    pace = TrainConfig(epochs=epochs)
    assert [pace.progress_at(epoch) for epoch in range(epochs)] == expected


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("epochs", 0),
        ("batch", 0),
        ("batch", -1),
        ("constant_epochs", 0),
        ("patience", 0),
        ("decay", 0.0),
        ("decay", 1.1),
        ("decay", float("nan")),
        ("learning_rate", 0.0),
        ("learning_rate", -1e-3),
        ("learning_rate", float("nan")),
        ("fewest_steps", 0),
        ("averaged", -1.0),
        ("averaged", float("nan")),
        ("second_epochs", -1),
        ("most_steps", -1),
        ("validated", -1),
        ("contest_margin", -0.1),
        ("contest_margin", 1.0),
        ("contest_margin", float("nan")),
        ("additive_margin", -0.1),
        ("additive_margin", 1.0),
    ],
)
def test_an_invalid_setting_is_refused_with_rule_value_and_remedy(setting: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"^{setting} must .+ \(got {re.escape(str(value))}\); .+"):
        TrainConfig(**{setting: value})


def test_a_contest_without_a_second_stage_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"a contest must have a second stage \(got second_epochs=0\); set second_epochs"
    ):
        TrainConfig(contest_margin=0.02)


def test_an_additive_candidate_without_a_contest_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"an additive candidate needs a contest \(got contest_margin=0\); set contest_"
    ):
        TrainConfig(second_epochs=2, additive_margin=0.01)


@given(some.integers(1, 60), some.integers(1, 60), some.integers(1, 30))
def test_a_shorter_stage_ends_with_the_same_rate(epochs: int, second_epochs: int, constant_epochs: int) -> None:
    pace = TrainConfig(epochs, constant_epochs=constant_epochs, second_epochs=second_epochs, contest_margin=0.02)
    second, contest = pace.second, pace.contest
    assert (second.epochs, contest.epochs) == (second_epochs, min(CONTEST_EPOCHS, second_epochs))
    assert contest.patience >= contest.epochs, "all epochs of a contest are run"
    for stage in (second, contest):
        assert (stage.second_epochs, stage.contest_margin, stage.learning_rate) == (0, 0.0, pace.learning_rate)
        assert stage.decay ** (stage.epochs / epochs) == pytest.approx(pace.decay)
        share = constant_epochs * stage.epochs / epochs
        assert stage.constant_epochs == 1 or abs(stage.constant_epochs - share) < 0.5 + 1e-9


def test_a_largest_number_of_epochs_limits_every_stage() -> None:
    pace = TrainConfig(24, second_epochs=12)
    assert (pace.at_most(3).epochs, pace.at_most(3).second_epochs) == (3, 3)
    assert (pace.at_most(20).epochs, pace.at_most(20).second_epochs) == (20, 12)
    assert TrainConfig(24).at_most(3).second_epochs == 0


@given(some.integers(1, 60))
def test_a_linear_fall_starts_with_half_the_rate_and_ends_near_zero(epochs: int) -> None:
    pace = TrainConfig(epochs, learning_rate=0.01, fall="linear")
    rates = [pace.rate_at(epoch) for epoch in range(epochs)]
    assert rates[0] == pytest.approx(0.01 * (1 - 0.5 / epochs) / 2)
    assert rates[-1] <= 0.01 * 0.5 / epochs + 1e-12
    assert all(after < before for before, after in pairwise(rates[1:]))
    falls = [before - after for before, after in pairwise(rates[1:])]
    assert falls == pytest.approx([0.01 / epochs] * len(falls))


@given(some.integers(1, 512), some.integers(1, 20_000), some.integers(1, 200), some.integers(0, 100))
def test_an_epoch_has_all_complete_batches_or_at_most_a_given_number(
    batch: int, windows: int, fewest: int, most: int
) -> None:
    pace = TrainConfig(batch=batch, fewest_steps=fewest, most_steps=most)
    every = windows // pace.batch_of(windows)
    assert pace.steps_of(windows) == (every if most == 0 else min(every, most))


@given(some.integers(1, 512), some.integers(1, 20_000), some.integers(1, 200))
def test_batches_are_smaller_if_windows_are_few_and_never_larger(batch: int, windows: int, steps: int) -> None:
    taken = TrainConfig(batch=batch, fewest_steps=steps).batch_of(windows)
    assert min(batch, SMALLEST_BATCH, windows) <= taken <= min(batch, windows)
    assert taken in (batch, SMALLEST_BATCH, windows) or windows // taken >= steps


def test_a_table_with_many_windows_keeps_the_batch_size_of_its_recipe() -> None:
    assert TrainConfig(batch=256).batch_of(8_000) == 256
    assert TrainConfig(batch=128).batch_of(211) == 26
    assert TrainConfig(batch=256, fewest_steps=128).batch_of(8_000) == 62
