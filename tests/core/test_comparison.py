"""Comparisons of two forecasts: their changes add up, and every value that was read is in the right kind."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from tests.core.samples import CYCLE, HORIZON, PATCH_LEN, SOME, START, changed, hourly, sample

from ibforecast.core.comparison import LINES, Comparison, compare
from ibforecast.core.errors import UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Amounts

LOOK_BACK = PATCH_LEN * len(SOME)
OTHER = [[0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0]]


@dataclass(frozen=True)
class Teller:
    """A host that gives amounts which add up to the forecast, drawn at random."""

    seed: int

    def amounts(self, explained: ExplainedForecast, columns: Sequence[int]) -> list[Amounts]:
        return [self._amounts(explained, column) for column in columns]

    def _amounts(self, explained: ExplainedForecast, column: int) -> Amounts:
        random = np.random.default_rng([self.seed, column])
        read = random.normal(size=(explained.open_count, explained.horizon))
        known = random.normal(size=(len(explained.covariates), explained.horizon))
        unread = None if explained.sealed else random.normal(size=explained.horizon)
        rest = explained.forecast[:, column] - read.sum(axis=0) - known.sum(axis=0)
        return Amounts(rest if unread is None else rest - unread, read, known, unread)


def explained(mask: Any, hours: int, seed: int, **changes: Any) -> ExplainedForecast:
    """Return a sample that begins a number of hours after 2020-01-01."""
    steps = LOOK_BACK + HORIZON
    clock = replace(hourly(steps), stamps=START + (hours + np.arange(steps)) * np.timedelta64(1, "h"), origin=START)
    made = sample(mask, **changes)
    forecast = made.forecast + np.random.default_rng(seed).normal(size=made.forecast.shape)
    made = changed(made, clock=clock, phase=clock.phase(0, steps, CYCLE), forecast=forecast)
    return replace(made, host=Host(Teller(seed)))


class Host:
    """A host of which only the amounts are used."""

    def __init__(self, teller: Teller) -> None:
        self.amounts = teller.amounts

    def verify(self, *_: Any, **__: Any) -> Any: ...
    def draw(self, *_: Any) -> None: ...
    def spreadsheet(self, *_: Any) -> None: ...
    def tabulate(self, *_: Any) -> Any: ...
    def html(self, *_: Any) -> Any: ...


def exact(value: float) -> Decimal:
    return Decimal(repr(value))


def kinds(comparison: Comparison) -> dict[tuple[str, str], str]:
    return {(change.channel, change.start[11:13]): change.kind for change in comparison.changes}


@pytest.mark.parametrize("hours", [0, 1, 4, 7, 16, 40])
@pytest.mark.parametrize("step", ["mean", 1, HORIZON])
@pytest.mark.parametrize("kind", [{}, {"sealed": True}, {"covariates": 2}])
def test_changes_add_up_to_the_difference_of_the_printed_forecasts(hours: int, step: Any, kind: Any) -> None:
    earlier, later = explained(SOME, 0, 1, **kind), explained(OTHER, hours, 2, **kind)
    for channel in later.channels:
        comparison = compare(later, earlier, channel, step)
        difference = exact(later.itemised(channel, step).forecast) - exact(earlier.itemised(channel, step).forecast)
        assert sum(exact(change.change) for change in comparison.changes) == difference == exact(comparison.difference)
        assert all(exact(change.change) == exact(change.after) - exact(change.before) for change in comparison.changes)
        assert comparison.adds_up


def test_before_and_after_add_up_to_each_forecast() -> None:
    earlier, later = explained(SOME, 0, 1), explained(OTHER, 4, 2)
    comparison = compare(later, earlier, "alpha")
    assert sum(exact(change.before) for change in comparison.changes) == exact(comparison.before.forecast)
    assert sum(exact(change.after) for change in comparison.changes) == exact(comparison.after.forecast)


def test_every_value_that_was_read_is_of_the_right_kind() -> None:
    # Patches of the earlier window begin at hours 0, 4, 8 and 12, those of the later one at 4, 8, 12 and 16.
    comparison = compare(explained(OTHER, 4, 2), explained(SOME, 0, 1), "gamma")
    assert kinds(comparison) == {
        ("gamma", "20"): "calendar",
        ("beta", "00"): "left",
        ("beta", "04"): "re-weighted",
        ("alpha", "08"): "mask",
        ("beta", "12"): "re-weighted",
        ("gamma", "12"): "mask",
        ("alpha", "12"): "mask",
        ("beta", "16"): "new",
        ("gamma", "04"): "unread",
    }


def test_patches_that_share_values_without_lining_up_are_compared_together() -> None:
    one, other = np.zeros_like(SOME), np.zeros_like(SOME)
    one[[1, 2], 0] = other[[1, 3], 0] = 1
    earlier, later = explained(one, 0, 1), explained(other, 2, 2)
    read = [change for change in compare(later, earlier, "beta").changes if change.kind not in ("calendar", "unread")]
    # Earlier: hours 4 to 11. Later: hours 6 to 9, which overlap both earlier patches, and 14 to 17.
    assert [(change.kind, change.start[11:13], change.end[11:13]) for change in read] == [
        ("re-weighted", "04", "11"),
        ("new", "14", "17"),
    ]
    amounts = earlier.itemised("beta").read
    assert exact(read[0].before) == sum(map(exact, amounts))


def test_windows_without_a_common_value_have_only_new_values_and_values_that_left() -> None:
    comparison = compare(explained(OTHER, 40, 2), explained(SOME, 0, 1), "alpha")
    assert {change.kind for change in comparison.changes} == {"calendar", "new", "left", "unread"}


def test_a_forecast_compared_with_itself_has_no_change() -> None:
    made = explained(SOME, 0, 1, covariates=1)
    comparison = compare(made, made, "alpha")
    assert {change.change for change in comparison.changes} == {0.0}
    assert {change.kind for change in comparison.changes} == {"calendar", "re-weighted", "known ahead", "unread"}
    assert comparison.in_words().endswith(
        f"is equal to the one made at {made.at}: {comparison.totals[0]} instead of {comparison.totals[1]}."
    )
    assert comparison.reasons() == ()


@pytest.mark.parametrize("covariates", [0, 3])
def test_the_words_have_at_most_eight_lines_whose_numbers_add_up(covariates: int) -> None:
    earlier, later = (explained(mask, 4 * seed, seed, covariates=covariates) for seed, mask in enumerate((SOME, OTHER)))
    comparison = compare(later, earlier, "beta", 2)
    headline, *lines = comparison.in_words().splitlines()
    assert len(lines) < LINES
    assert headline.startswith(f"Step 2 of the forecast of beta made at {later.at} is ")
    changes = [Decimal(line.partition(":")[0]) for line in lines]
    before, after = map(exact, comparison.totals)
    assert sum(changes) == after - before
    assert headline.endswith(f" {after} instead of {before}.")
    assert [exact(reason.change) for reason in comparison.reasons()] == changes
    named = changes[:-1] if "other reasons" in lines[-1] else changes
    assert [abs(change) for change in named] == pytest.approx(sorted(map(abs, named), reverse=True), abs=0.01)


def test_the_words_name_every_reason_if_they_are_few() -> None:
    nothing = np.zeros_like(SOME)
    earlier, later = explained(nothing, 0, 1, sealed=True), explained(nothing, 4, 2, sealed=True)
    comparison = compare(later, earlier, "alpha")
    before, after = map(exact, comparison.totals)
    assert comparison.in_words().splitlines()[1:] == [f"{after - before:+f}: the calendar: the profile at another time"]


def test_forecasts_that_differ_by_less_than_words_print_are_about_equal() -> None:
    made = explained(SOME, 0, 1)
    almost = replace(changed(made, forecast=made.forecast + 1e-3), host=made.host)
    comparison = compare(almost, made, "alpha")
    assert comparison.difference
    assert " is about equal to the one made at " in comparison.in_words()


def test_a_reason_names_the_place_of_its_largest_change() -> None:
    comparison = compare(explained(OTHER, 4, 2), explained(SOME, 0, 1), "alpha")
    both = [change for change in comparison.changes if (change.kind, change.channel) == ("re-weighted", "beta")]
    largest = max(both, key=lambda change: abs(change.change))
    line = f"beta, read by both, weighted differently now (most: {largest.start} to "
    assert len(both) > 1
    assert line + largest.end[11:] in comparison.in_words()


def test_words_name_a_zone_once_and_no_offset_but_of_a_time_that_the_clock_showed_twice() -> None:
    def zoned(at: str, seed: int) -> ExplainedForecast:
        made, steps = explained(SOME, 0, seed), LOOK_BACK + HORIZON
        stamps = np.datetime64(at, "us") + np.arange(1 - LOOK_BACK, HORIZON + 1) * np.timedelta64(1, "h")
        clock = replace(hourly(steps), stamps=stamps, zone="Europe/Berlin", origin=START)
        made = replace(changed(made, clock=clock, phase=clock.phase(0, steps, CYCLE)), host=None)
        return replace(made, host=Host(Teller(seed)))

    summer, winter, later = (zoned(at, 1) for at in ("2020-10-25 00:00", "2020-10-25 01:00", "2020-10-26 00:00"))
    words = compare(later, winter, "alpha").in_words()
    assert "made at 2020-10-26 01:00 (Europe/Berlin) is " in words
    assert "the one made at 2020-10-25 02:00: " in words
    assert not re.search(r":00[+-]\d\d", words)
    twice = compare(winter, summer, "alpha").in_words()
    assert "made at 2020-10-25 02:00+01:00 (Europe/Berlin) is " in twice
    assert "the one made at 2020-10-25 02:00+02:00: " in twice


def test_explanations_of_different_models_are_refused() -> None:
    earlier, later = explained(SOME, 0, 1), explained(SOME, 4, 2, weights_sha256="cd" * 32)
    rule = r"only explanations of one model can be compared \(got weights cdcdcdcdcdcd and abababababab\); explain both"
    with pytest.raises(UsageError, match=rule):
        compare(later, earlier, "alpha")


def test_a_channel_that_is_not_forecast_is_refused() -> None:
    earlier, later = (explained(SOME, 4 * seed, seed, past=["gamma"]) for seed in (0, 1))
    for channel in ("gamma", "delta"):
        with pytest.raises(UsageError, match=rf"must be one that is forecast \(got '{channel}'\); try 'alpha'"):
            compare(later, earlier, channel)
