"""Splits: the rows and windows of each part, by row number or by fractions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core.errors import DataError, UsageError
from ibforecast.data.splits import Part, Split

LOOK_BACK = 96
PARTS: tuple[Part, ...] = ("train", "validation", "test")
SPLITS = [Split(8640, 11520, 14400), Split.by_fractions((0.7, 0.1, 0.2), 5001)]


@pytest.mark.parametrize("split", SPLITS)
def test_later_parts_start_one_look_back_earlier_and_forecast_only_their_own_rows(split: Split) -> None:
    begins = {"train": LOOK_BACK, "validation": split.train_end, "test": split.validation_end}
    ends = {"train": split.train_end, "validation": split.validation_end, "test": split.test_end}
    for part in PARTS:
        starts = split.starts(part, LOOK_BACK, 192)
        assert starts[0] == split.rows(part, LOOK_BACK)[0] == begins[part] - LOOK_BACK
        assert starts[0] + LOOK_BACK == begins[part]
        assert starts[-1] + LOOK_BACK + 192 == ends[part]
        assert starts.step == 1


@pytest.mark.parametrize("split", SPLITS)
def test_no_row_is_forecast_in_two_parts(split: Split) -> None:
    forecast = [
        set(range(starts[0] + LOOK_BACK, starts[-1] + LOOK_BACK + 96))
        for starts in (split.starts(part, LOOK_BACK, 96) for part in PARTS)
    ]
    assert not forecast[0] & forecast[1]
    assert not forecast[1] & forecast[2]


@pytest.mark.parametrize(
    ("fractions", "rows", "ends"),
    [
        ((0.7, 0.1, 0.2), 1000, (700, 800, 1000)),
        ((0.6, 0.2, 0.2), 1000, (600, 800, 1000)),
        ((0.7, 0.1, 0.2), 999, (699, 800, 999)),
        ((0.29, 0.42, 0.29), 100, (29, 71, 100)),
        ((0.8, 0.2, 0.0), 50, (40, 50, 50)),
    ],
)
def test_fractions_split_in_order_of_time(
    fractions: tuple[float, float, float], rows: int, ends: tuple[int, int, int]
) -> None:
    assert Split.by_fractions(fractions, rows) == Split(*ends)


@pytest.mark.parametrize(
    "fractions",
    [
        (0.7, 0.1, 0.1),
        (0.7, 0.2, 0.2),
        (1.0, 0.0, 0.0),
        (0.0, 0.5, 0.5),
        (0.8, 0.0, 0.2),
        (0.9, 0.3, -0.2),
        (-0.5, 1.0, 0.5),
        (float("nan"), 0.5, 0.5),
    ],
)
def test_invalid_fractions_are_refused(fractions: tuple[float, float, float]) -> None:
    with pytest.raises(UsageError, match=r"split must be .+ \(got .+\); try \(0\.7, 0\.1, 0\.2\)"):
        Split.by_fractions(fractions, 1000)


@given(
    st.lists(st.integers(1, 10**7), min_size=2, max_size=2, unique=True).map(sorted),
    st.integers(0, 10**6),
)
def test_the_fractions_of_a_split_give_the_same_split(ends: list[int], test_rows: int) -> None:
    split = Split(ends[0], ends[1], ends[1] + test_rows)
    assert Split.by_fractions(split.fractions, split.test_end) == split


@pytest.mark.parametrize("part", PARTS)
def test_a_part_too_short_for_a_window_is_refused_by_name(part: Part) -> None:
    split = Split.by_fractions((0.4, 0.3, 0.3), 100)
    assert len(split.starts(part, 10, 30)) >= 1
    with pytest.raises(
        DataError,
        match=rf"the {part} part must contain .+ = 51 rows \(got \d+ rows\); .+ 100 rows in all\), .+ look_back .+",
    ):
        split.starts(part, 10, 41)


def test_a_part_may_contain_a_single_window() -> None:
    split = Split.by_fractions((0.4, 0.3, 0.3), 100)
    assert list(split.starts("train", 10, 30)) == [0]
    assert list(split.starts("validation", 10, 30)) == [30]
    assert list(split.starts("test", 10, 30)) == [60]


def test_no_window_begins_before_the_table() -> None:
    split = Split(5, 40, 60)
    assert split.rows("validation", 12)[0] == 0
    assert split.starts("validation", 12, 4)[0] == 0
