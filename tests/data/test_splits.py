"""Where training ends and testing begins: the protocol's window counts, and splits of one's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core.errors import DataError, UsageError
from ibforecast.data.splits import Part, Split
from ibforecast_lab.data.catalogue import CATALOGUE

LOOK_BACK, HORIZONS = 96, (96, 192, 336, 720)
ETTH = ((8449, 2785, 2785), (8353, 2689, 2689), (8209, 2545, 2545), (7825, 2161, 2161))
ETTM = ((34369, 11425, 11425), (34273, 11329, 11329), (34129, 11185, 11185), (33745, 10801, 10801))
PROTOCOL = {
    "ETTh1": ETTH,
    "ETTh2": ETTH,
    "ETTm1": ETTM,
    "ETTm2": ETTM,
    "Weather": ((36696, 5175, 10444), (36600, 5079, 10348), (36456, 4935, 10204), (36072, 4551, 9820)),
    "Electricity": ((18221, 2537, 5165), (18125, 2441, 5069), (17981, 2297, 4925), (17597, 1913, 4541)),
    "Solar": ((36601, 5161, 10417), (36505, 5065, 10321), (36361, 4921, 10177), (35977, 4537, 9793)),
    "Traffic": ((12089, 1661, 3413), (11993, 1565, 3317), (11849, 1421, 3173), (11465, 1037, 2789)),
}
ROWS = {
    "ETTh1": (8640, 11520, 14400),
    "ETTh2": (8640, 11520, 14400),
    "ETTm1": (34560, 46080, 57600),
    "ETTm2": (34560, 46080, 57600),
    "Weather": (36887, 42157, 52696),
    "Electricity": (18412, 21044, 26304),
    "Solar": (36792, 42048, 52560),
    "Traffic": (12280, 14036, 17544),
}
PARTS: tuple[Part, ...] = ("train", "validation", "test")


def split_of(data: str) -> Split:
    return Split.by_rule(CATALOGUE[data].split, CATALOGUE[data].rows)


def test_every_data_set_of_the_catalogue_is_in_the_protocol() -> None:
    assert set(PROTOCOL) == set(ROWS) == set(CATALOGUE)


@pytest.mark.parametrize("data", PROTOCOL)
def test_parts_end_where_the_protocol_says(data: str) -> None:
    split = split_of(data)
    assert (split.train_end, split.validation_end, split.test_end) == ROWS[data]


@pytest.mark.parametrize(("place", "horizon"), list(enumerate(HORIZONS)))
@pytest.mark.parametrize("data", PROTOCOL)
def test_every_part_has_as_many_windows_as_the_protocol_says(data: str, place: int, horizon: int) -> None:
    counts = tuple(len(split_of(data).starts(part, LOOK_BACK, horizon)) for part in PARTS)
    assert counts == PROTOCOL[data][place]


@pytest.mark.parametrize("data", PROTOCOL)
def test_later_parts_reach_back_a_look_back_and_forecast_only_their_own_rows(data: str) -> None:
    split = split_of(data)
    begins = {"train": LOOK_BACK, "validation": split.train_end, "test": split.validation_end}
    ends = {"train": split.train_end, "validation": split.validation_end, "test": split.test_end}
    for part in PARTS:
        starts = split.starts(part, LOOK_BACK, 192)
        assert starts[0] == split.rows(part, LOOK_BACK)[0] == begins[part] - LOOK_BACK
        assert starts[0] + LOOK_BACK == begins[part]
        assert starts[-1] + LOOK_BACK + 192 == ends[part]
        assert starts.step == 1


@pytest.mark.parametrize("data", PROTOCOL)
def test_no_row_is_forecast_in_two_parts(data: str) -> None:
    split = split_of(data)
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
def test_fractions_cut_in_order_of_time(
    fractions: tuple[float, float, float], rows: int, ends: tuple[int, int, int]
) -> None:
    assert Split.by_fractions(fractions, rows) == Split(*ends)


def test_the_usual_fractions_are_the_protocols_rule() -> None:
    for rows in (52696, 26304, 52560, 17544):
        assert Split.by_fractions((0.7, 0.1, 0.2), rows) == Split.by_rule("ratio", rows)


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
def test_fractions_that_are_none_are_refused(fractions: tuple[float, float, float]) -> None:
    with pytest.raises(UsageError, match=r"split must be .+ \(got .+\); try \(0\.7, 0\.1, 0\.2\)"):
        Split.by_fractions(fractions, 1000)


@given(
    st.lists(st.integers(1, 10**7), min_size=2, max_size=2, unique=True).map(sorted),
    st.integers(0, 10**6),
)
def test_the_fractions_of_a_split_cut_it_again(ends: list[int], test_rows: int) -> None:
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


def test_a_part_may_hold_a_single_window() -> None:
    split = Split.by_fractions((0.4, 0.3, 0.3), 100)
    assert list(split.starts("train", 10, 30)) == [0]
    assert list(split.starts("validation", 10, 30)) == [30]
    assert list(split.starts("test", 10, 30)) == [60]


def test_no_window_begins_before_the_table() -> None:
    split = Split(5, 40, 60)
    assert split.rows("validation", 12)[0] == 0
    assert split.starts("validation", 12, 4)[0] == 0
