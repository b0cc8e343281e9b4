"""Names, ticks and ranges that all figures share."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from ibforecast.plots import labels


def moments(start: str, minutes: int, count: int) -> tuple[str, ...]:
    first = datetime.fromisoformat(start)
    return tuple(f"{first + timedelta(minutes=minutes * step):%Y-%m-%d %H:%M:%S}" for step in range(count))


@given(some.text(max_size=80), some.integers(6, 30))
def test_a_name_takes_at_most_two_lines_of_the_given_width(name: str, width: int) -> None:
    name = " ".join(name.split())
    lines = labels.wrapped(name, width).split("\n")
    assert len(lines) <= 2
    assert all(len(line) <= width for line in lines)


@given(some.text(max_size=80), some.integers(3, 30))
def test_shortening_keeps_both_ends_and_never_exceeds_the_width(text: str, width: int) -> None:
    short = labels.shortened(text, width)
    assert len(short) == min(len(text), width)
    if len(text) > width:
        head, tail = text[: (width - 1) - (width - 1) // 2], text[len(text) - (width - 1) // 2 :]
        assert short == f"{head}…{tail}"


def test_a_name_is_broken_after_a_separator_if_both_halves_fit() -> None:
    assert labels.wrapped("zone 12 electricity", 17) == "zone 12\nelectricity"


def test_names_that_become_equal_when_shortened_get_their_column_number() -> None:
    long = tuple(f"plant_03_building_{index}_floor_2_temperature_sensor" for index in range(12))
    names = labels.row_names((*long, "OT"), 17)
    assert len(set(names)) == 13
    assert names[0].endswith("(1)")
    assert names[-1] == "OT"
    assert all(len(line) <= 17 for name in names for line in name.split("\n"))


@given(some.floats(-1e9, 1e9), some.floats(1e-3, 1e9), some.integers(2, 3))
def test_value_ticks_are_few_and_distinct_and_lie_inside_the_row(low: float, span: float, at_most: int) -> None:
    ticks, texts = labels.value_ticks(low, low + span, at_most)
    assert 2 <= len(ticks) <= at_most
    assert len(set(texts)) == len(texts)
    assert all(low <= tick <= low + span for tick in ticks)
    for tick, text in zip(ticks, texts, strict=True):
        assert float(text.replace("−", "-")) == pytest.approx(tick, abs=2e-3 * span)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 100.0, ["25", "50", "75"]),
        (-1.6, 1.6, ["−1", "0", "1"]),
        (0.88, 1.02, ["0.90", "0.95", "1.00"]),
        (0.0, 4e7, ["1e7", "2e7", "3e7"]),
        (0.0, 4e-5, ["1e−5", "2e−5", "3e−5"]),
    ],
)
def test_value_ticks_are_round_and_plain(low: float, high: float, texts: list[str]) -> None:
    assert labels.value_ticks(low, high, 3)[1] == texts


@pytest.mark.parametrize(
    ("times", "texts"),
    [
        (moments("2018-06-24 05:00", 60, 96), ["2018-06-25", "06-26", "06-27", "06-28"]),
        (moments("2018-12-31 00:00", 1440, 3), ["2018-12-31", "2019-01-01", "01-02"]),
        (moments("2018-06-24 20:00", 60, 9), ["20:00\n2018-06-24", "22:00", "00:00\n06-25", "02:00", "04:00"]),
        (("step 0", "step 1", "step 2"), ["step 0", "step 1", "step 2"]),
    ],
)
def test_time_labels_are_at_round_moments_and_show_only_what_changed(times: tuple[str, ...], texts: list[str]) -> None:
    assert labels.time_ticks(times, 6)[1][: len(texts)] == texts


@given(some.integers(1, 2000), some.sampled_from([1, 5, 7, 10, 15, 30, 60, 1440, 10080]), some.integers(3, 10))
def test_there_are_few_time_labels_at_any_frequency(count: int, minutes: int, at_most: int) -> None:
    times = moments("2018-06-24 05:35", minutes, count)
    positions, texts = labels.time_ticks(times, at_most)
    assert 1 <= len(positions) == len(texts) <= at_most
    assert positions == sorted(set(positions))
    assert 0 <= positions[0] <= positions[-1] < count


def test_only_a_value_without_neighbours_is_isolated() -> None:
    values = np.array([1.0, np.nan, 2.0, 3.0, np.nan, 4.0])
    assert labels.isolated_steps(values).tolist() == [True, False, False, False, False, True]
