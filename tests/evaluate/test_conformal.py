"""Widths of intervals: sufficient for exchangeable scores, adapted to drift, and never based on the future."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast.evaluate.conformal import (
    FEW_WINDOWS,
    LEVELS,
    PACE,
    Calibration,
    checked_levels,
    inside,
    quantiles,
    tracked,
)

STEPS, CHANNELS = 3, 2


def draw_scores(windows: int, seed: int = 0, horizon: int = STEPS, channels: int = CHANNELS) -> Tensor:
    return torch.randn(windows, horizon, channels, generator=torch.Generator().manual_seed(seed)).abs()


def calibrate(scores: Tensor) -> Calibration:
    return Calibration.of(scores, "2023-01-01T00:00:00.000000")


# --- Quantiles ---


@settings(max_examples=30, deadline=None)
@given(windows=st.integers(1, 60), level=st.sampled_from(LEVELS), seed=st.integers(0, 9))
def test_exchangeable_scores_are_covered_at_least_as_often_as_the_level(windows: int, level: int, seed: int) -> None:
    """Any of n + 1 exchangeable scores may be the next one: leaving out each in turn covers enough of them."""
    scores = draw_scores(windows + 1, seed)
    within = [
        inside(scores[[one]], quantiles(scores[torch.arange(windows + 1) != one], [level]))
        for one in range(windows + 1)
    ]
    assert (torch.cat(within).mean(dim=0) >= level / 100 - 1e-6).all()


@settings(max_examples=30, deadline=None)
@given(windows=st.integers(1, 120), level=st.sampled_from(LEVELS))
def test_the_quantile_is_the_score_of_its_rank_or_infinite(windows: int, level: int) -> None:
    scores = torch.arange(1.0, windows + 1)[torch.randperm(windows)][:, None, None].expand(-1, STEPS, CHANNELS)
    rank = -(-(windows + 1) * level // 100)
    expected = float(rank) if rank <= windows else math.inf
    assert quantiles(scores, [level]).unique().tolist() == [expected]


def test_quantiles_of_many_scores_approach_those_of_their_distribution() -> None:
    wide = quantiles(draw_scores(20_000), [68, 95])
    torch.testing.assert_close(wide, torch.tensor([0.994, 1.960])[:, None, None].expand_as(wide), atol=0.05, rtol=0)


def test_a_missing_score_does_not_count() -> None:
    scores, places = draw_scores(50), torch.randperm(90)
    gappy = torch.full((90, STEPS, CHANNELS), torch.nan)
    gappy[places[:50]] = scores
    assert torch.equal(quantiles(gappy, LEVELS), quantiles(scores, LEVELS))


@settings(max_examples=30, deadline=None)
@given(windows=st.integers(1, 200), lower=st.floats(0.1, 99), higher=st.floats(0.1, 99))
def test_a_higher_level_is_never_narrower(windows: int, lower: float, higher: float) -> None:
    lower, higher = sorted((lower, higher))
    calibration = calibrate(draw_scores(windows))
    assert (calibration.half_width(lower) <= calibration.half_width(higher)).all()


def test_a_level_between_two_others_gets_the_next_higher_one() -> None:
    calibration = calibrate(draw_scores(400))
    assert torch.equal(calibration.half_width(81), calibration.half_width(85))
    assert torch.equal(calibration.half_width(80), quantiles(draw_scores(400), [80])[0])
    assert torch.equal(calibration.half_width(98.5), calibration.half_width(99))


@pytest.mark.parametrize(("windows", "highest"), [(1, 50), (4, 80), (18, 94), (19, 95), (99, 99)])
def test_the_highest_level_depends_on_the_number_of_windows(windows: int, highest: int) -> None:
    assert calibrate(draw_scores(windows)).highest_level == highest


def test_a_calibration_on_few_windows_warns_what_that_means_and_what_to_do() -> None:
    assert calibrate(draw_scores(FEW_WINDOWS)).warning == ""
    assert calibrate(draw_scores(5)).warning == (
        "intervals are rough: they were calibrated on only 5 windows, so their highest level is 80 %, and one of 80 % "
        "may contain the truth about 15 points less or more often than that; give a longer table or a larger "
        "validation part, or calibrate again on later rows (ibforecast calibrate)"
    )
    assert "only 1 window, so their highest level is 50 %" in calibrate(draw_scores(1)).warning


def test_one_step_with_too_few_scores_lowers_the_highest_level() -> None:
    scores = draw_scores(99)
    scores[4:, 1, 0] = torch.nan
    assert calibrate(scores).highest_level == 80


@pytest.mark.parametrize(
    ("level", "levels"), [(80, (80.0,)), ([95, 80], (80.0, 95.0)), ((90, 90.0), (90.0,)), ([97.5], (97.5,))]
)
def test_levels_are_sorted(level: object, levels: tuple[float, ...]) -> None:
    assert checked_levels(level) == levels


@pytest.mark.parametrize(("level", "got"), [(0, "0"), (0.0, "0"), ([80, 99.9], "99.9"), ([-5], "-5"), ([], "none")])
def test_an_invalid_level_is_refused(level: object, got: str) -> None:
    with pytest.raises(UsageError, match=rf"from 1 to 99 \(got {got}\); try \[80, 95\]"):
        checked_levels(level)


@pytest.mark.parametrize(("level", "meant"), [(0.8, "80"), ([0.95, 80], "95"), (0.975, "97.5")])
def test_a_fraction_is_refused_with_its_percentage(level: object, meant: str) -> None:
    with pytest.raises(UsageError, match=rf"a percentage from 1 to 99 \(got 0.*\); try {meant}$"):
        checked_levels(level)


# --- Tracking ---


def by_hand(start: Tensor, scores: Tensor, level: float) -> Tensor:
    """Compute the widths with loops: step h of window w is known h + 1 windows later."""
    windows, horizon, channels = scores.shape
    widths = start.repeat(windows + 1, 1, 1)
    for now in range(1, windows + 1):
        for step in range(horizon):
            for channel in range(channels):
                width, then = widths[now - 1, step, channel], now - 1 - step
                if then >= 0 and not scores[then, step, channel].isnan():
                    missed = float(scores[then, step, channel] > widths[then, step, channel])
                    width = max(width + PACE * start[step, channel] * (missed - (1 - level / 100)), torch.tensor(0.0))
                widths[now, step, channel] = width
    return widths


@pytest.mark.parametrize("windows", [0, 1, 2, 40])
def test_widths_equal_those_of_the_rule_written_with_loops(windows: int) -> None:
    scores, start = draw_scores(windows, horizon=4), draw_scores(1, 7, horizon=4)[0]
    scores[3:6, 1:] = torch.nan
    torch.testing.assert_close(tracked(start, scores, 80), by_hand(start, scores, 80))


def test_no_score_is_used_before_it_is_known() -> None:
    """Step h of window w is observed h + 1 rows later: no earlier width may depend on it."""
    scores, start = draw_scores(30, horizon=5), torch.full((5, CHANNELS), 0.7)
    plain = tracked(start, scores, 80)
    for window, step in ((3, 0), (3, 4), (20, 2)):
        other = scores.clone()
        other[window, step] = 100.0 - 200 * (scores[window, step] > plain[window, step])
        moved = (tracked(start, other, 80) != plain).any(dim=2)
        assert not moved[: window + step + 1].any()
        assert moved[window + step + 1, step]
        assert not moved[:, torch.arange(5) != step].any()


@pytest.mark.parametrize("level", [80, 95])
@pytest.mark.parametrize("drift", [0.3, 1.0, 2.0])
def test_the_miss_rate_approaches_the_level_despite_drift(level: int, drift: float) -> None:
    windows = 4000
    scores = draw_scores(windows) * torch.linspace(0, math.log(drift), windows).exp()[:, None, None]
    start = quantiles(draw_scores(1000, 1), [level])[0]
    widths = tracked(start, scores, level)
    off = inside(scores, widths[:-1]).mean(dim=0) - level / 100
    way = (widths[-1] / start - 1).abs() / (PACE * windows)
    assert (off.abs() <= way + STEPS / windows).all()
    assert off.abs().max() < 0.02
    if drift != 1.0:
        assert off.abs().max() < (inside(scores, start[None]).mean(dim=0) - level / 100).abs().min()


def test_without_known_scores_the_widths_do_not_change() -> None:
    start = draw_scores(1)[0]
    assert (tracked(start, torch.full((9, STEPS, CHANNELS), torch.nan), 80) == start).all()


def test_a_missing_truth_counts_neither_as_covered_nor_as_missed() -> None:
    scores = torch.tensor([0.5, 1.0, 2.0, torch.nan])[:, None, None]
    assert inside(scores, torch.ones(1, 1, 1)).flatten().nan_to_num(-1).tolist() == [1, 1, 0, -1]
