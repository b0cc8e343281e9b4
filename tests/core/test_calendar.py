"""Steps, wall clocks and phases."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError, IBForecastError, UsageError
from ibforecast.core.zones import to_utc

HOUR = Frequency(3600)
BERLIN = "Europe/Berlin"

frequencies = st.one_of(
    st.integers(1, 10**7).map(lambda seconds: Frequency(seconds=seconds)),
    st.integers(1, 120).map(lambda months: Frequency(months=months)),
)


def hours(first: str, count: int) -> np.ndarray:
    return np.datetime64(first, "us") + np.arange(count) * np.timedelta64(1, "h")


def moments(*texts: str) -> np.ndarray:
    return np.array(texts, dtype="datetime64[us]")


@given(frequencies)
def test_a_frequency_survives_formatting_and_parsing(frequency: Frequency) -> None:
    assert Frequency.parse(str(frequency)) == frequency


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        *(("15min", "15min"), ("h", "1h"), ("H", "1h"), ("1h", "1h"), ("D", "1d"), ("1d", "1d"), ("W", "1w")),
        *(("MS", "1mo"), ("1mo", "1mo"), ("QS", "3mo"), ("YS", "12mo"), ("30s", "30s"), ("W-SUN", "1w"), ("7d", "1w")),
    ],
)
def test_common_spellings_have_one_canonical_form(text: str, canonical: str) -> None:
    assert str(Frequency.parse(text)) == canonical


@pytest.mark.parametrize(
    "text", ["", "0h", "1 fortnight", "1.5h", "-1h", "ms", "１h", "9" * 19 + "s", "9" * 5000 + "h"]
)
def test_an_unknown_frequency_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a count and a unit"):
        Frequency.parse(text)


@pytest.mark.parametrize(("seconds", "months"), [(0, 0), (60, 1), (-60, 0)])
def test_a_step_is_seconds_or_months_and_positive(seconds: int, months: int) -> None:
    with pytest.raises(UsageError, match="set one of them"):
        Frequency(seconds, months)


@pytest.mark.parametrize(
    ("text", "cycle"),
    [
        ("1h", 24),
        ("15min", 96),
        ("10min", 144),
        ("1min", 1440),
        ("30s", 120),
        ("1d", 7),
        ("1w", 52),
        ("1mo", 12),
        ("QS", 4),
    ],
)
def test_the_natural_cycle_follows_from_the_frequency(text: str, cycle: int) -> None:
    assert Frequency.parse(text).cycle() == cycle


@pytest.mark.parametrize("text", ["7h", "2d", "1y", "7s", "36h"])
def test_without_a_natural_cycle_an_explicit_one_is_required(text: str) -> None:
    with pytest.raises(UsageError, match=r"give `cycle` \(fit --cycle\) as a number of steps"):
        Frequency.parse(text).cycle()


@pytest.mark.parametrize("text", ["10min", "1h", "1d", "1w", "30s", "1mo", "3mo", "12mo", "2h"])
def test_the_frequency_of_an_even_axis_is_inferred(text: str) -> None:
    frequency = Frequency.parse(text)
    assert Frequency.infer(frequency.after(moments("2020-01-31")[0], np.arange(9), 31)) == frequency


def test_the_most_common_step_wins() -> None:
    assert Frequency.infer(moments("2020-01-01", "2020-01-02", "2020-01-03", "2020-01-06", "2020-01-07")) == Frequency(
        86400
    )


def test_the_hour_of_the_day_and_of_the_week_count_from_monday_midnight() -> None:
    clock = Clock(hours("2024-01-01", 400), HOUR)  # a Monday
    assert (clock.phase(0, 400, 24) == np.arange(400) % 24).all()
    assert (clock.phase(0, 400, 168) == np.arange(400) % 168).all()


def test_days_count_from_monday_and_months_from_january() -> None:
    assert Clock(moments("2023-01-01", "2023-01-02", "2023-01-03"), Frequency(86400)).phase(0, 4, 7).tolist() == [
        6,
        0,
        1,
        2,
    ]
    months = Clock(moments("2023-11-01", "2023-12-01", "2024-01-01"), Frequency(months=1))
    assert months.phase(0, 5, 12).tolist() == [10, 11, 0, 1, 2]


@pytest.mark.parametrize(("first", "expected"), [("2018-03-24T23", [0, 1, 3, 4]), ("2018-10-27T22", [0, 1, 2, 2, 3])])
def test_phases_follow_the_wall_clock_across_a_clock_change(first: str, expected: list[int]) -> None:
    clock = Clock(hours(first, 48), HOUR, BERLIN)
    local = [
        datetime.fromtimestamp(int(at), ZoneInfo(BERLIN)).hour
        for at in clock.stamps.astype("datetime64[s]").astype(int)
    ]
    assert clock.phase(0, 48, 24).tolist() == local
    assert clock.phase(0, len(expected), 24).tolist() == expected
    beyond = Clock(clock.stamps[:1], HOUR, BERLIN)
    assert beyond.phase(0, 48, 24).tolist() == local


@given(
    first=st.datetimes(datetime(1971, 1, 1), datetime(2060, 1, 1)),
    seconds=st.sampled_from([60, 600, 900, 3600, 86400]),
    cycle=st.integers(1, 400),
    by_row=st.booleans(),
)
def test_without_a_zone_phases_advance_by_one_per_row(first: datetime, seconds: int, cycle: int, by_row: bool) -> None:
    start = np.datetime64(first, "us")
    clock = Clock(start + np.arange(20) * np.timedelta64(seconds, "s"), Frequency(seconds), by_row=by_row)
    phase = clock.phase(0, 60, cycle)
    assert ((phase[1:] - phase[:-1]) % cycle == 1 % cycle).all()
    assert (clock.phase(15, 20, cycle) == phase[15:35]).all()


def test_by_row_number_a_later_table_counts_from_the_start_of_training() -> None:
    whole = Clock(hours("2020-01-01T05", 100), HOUR, by_row=True)
    later = Clock(whole.stamps[30:], HOUR, by_row=True).counted_from(whole.origin)
    assert whole.phase(0, 3, 24).tolist() == [0, 1, 2]
    assert (later.phase(0, 70, 24) == whole.phase(30, 70, 24)).all()


WEEKDAYS = np.busday_offset("2024-01-01", np.arange(300)).astype("datetime64[us]")
DAY = Frequency(86400)


def test_by_row_number_uneven_rows_can_be_counted_only_from_the_first_training_row() -> None:
    whole = Clock(WEEKDAYS, DAY, by_row=True).counted_from(WEEKDAYS[40])
    assert whole.offset == -40
    assert (whole.phase(40, 10, 5) == np.arange(10) % 5).all()
    later = Clock(WEEKDAYS[199:], DAY, by_row=True).counted_from(WEEKDAYS[0])
    with pytest.raises(
        DataError,
        match=r"counted from the first one of training, 2024-01-01, .* even steps, here of 1d \(got a table from "
        r"2024-10-04 on, in which 2024-10-07 follows 2024-10-04\); give the table from its beginning",
    ):
        later.phase(0, 10, 5)


@pytest.mark.parametrize("zone", [None, BERLIN])
def test_by_row_number_days_and_months_are_counted_by_the_wall_clock(zone: str | None) -> None:
    days = np.datetime64("2024-02-01", "D") + np.arange(200)
    ends = (np.datetime64("2024-01", "M") + np.arange(1, 30)).astype("datetime64[D]") - 1
    for wall, frequency in ((days, DAY), (ends, Frequency(months=1))):
        stamps = to_utc(wall.astype("datetime64[us]"), zone)
        later = Clock(stamps[20:], frequency, zone, by_row=True).counted_from(stamps[0])
        assert later.offset == 20


def test_by_row_number_a_little_jitter_does_not_move_rows() -> None:
    jitter = np.random.default_rng(3).integers(-900, 900, 100) * np.timedelta64(1, "s")
    stamps = hours("2020-01-01T05", 100) + jitter
    assert Clock(stamps[30:], HOUR, by_row=True).counted_from(hours("2020-01-01T05", 1)[0]).offset == 30


def by_hand(moment: datetime) -> list[float]:
    """Return the four calendar features of a wall-clock time, computed with the standard library."""
    of_year = moment.timetuple().tm_yday
    return [moment.hour / 23 - 0.5, moment.weekday() / 6 - 0.5, (moment.day - 1) / 30 - 0.5, (of_year - 1) / 365 - 0.5]


@given(
    first=st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1)),
    seconds=st.sampled_from([60, 900, 3600, 86400, 5 * 86400]),
)
def test_the_calendar_is_hour_weekday_day_and_day_of_year_scaled_to_half_around_zero(
    first: datetime, seconds: int
) -> None:
    clock = Clock(np.datetime64(first, "us") + np.arange(50) * np.timedelta64(seconds, "s"), Frequency(seconds))
    calendar = clock.calendar(0, 80)
    moments_by_hand = clock.times(0, 80).astype("datetime64[us]").tolist()
    np.testing.assert_allclose(calendar, [by_hand(moment) for moment in moments_by_hand], rtol=0, atol=1e-12)
    assert np.abs(calendar).max() <= 0.5
    assert (clock.calendar(45, 20) == calendar[45:65]).all()


def test_the_calendar_spans_its_whole_range_in_a_leap_year() -> None:
    clock = Clock(hours("2024-01-01", 366 * 24), HOUR)  # a Monday
    assert clock.calendar(0, 1).tolist() == [[-0.5, -0.5, -0.5, -0.5]]
    assert clock.calendar(0, 366 * 24).max(axis=0).tolist() == [0.5, 0.5, 0.5, 0.5]


def test_the_calendar_follows_the_wall_clock_beyond_the_end_of_the_table() -> None:
    clock = Clock(hours("2018-03-24T20", 2), HOUR, BERLIN)
    first = datetime(2018, 3, 24, 20, tzinfo=UTC).timestamp()
    local = [datetime.fromtimestamp(first + 3600 * step, ZoneInfo(BERLIN)) for step in range(12)]
    np.testing.assert_allclose(clock.calendar(0, 12), [by_hand(moment) for moment in local], rtol=0, atol=1e-12)


def test_the_calendar_follows_the_wall_clock_even_if_phases_count_rows() -> None:
    by_row, by_clock = (Clock(hours("2020-02-27T05", 99), HOUR, by_row=choice) for choice in (True, False))
    assert (by_row.calendar(0, 99) == by_clock.calendar(0, 99)).all()


def test_times_continue_after_the_end_of_the_table() -> None:
    clock = Clock(hours("2020-01-01", 5), HOUR)
    assert (clock.times(3, 4) == hours("2020-01-01T03", 4)).all()
    assert (clock.times(7, 2) == hours("2020-01-01T07", 2)).all()


def test_month_ends_stay_month_ends() -> None:
    clock = Clock(moments("2020-01-31", "2020-02-29", "2020-03-31"), Frequency(months=1))
    assert clock.labels(0, 6) == ("2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30", "2020-05-31", "2020-06-30")


def test_local_midnights_stay_midnights_across_a_clock_change() -> None:
    clock = Clock(moments("2018-03-22T23", "2018-03-23T23", "2018-03-24T23"), Frequency(86400), BERLIN)
    assert clock.labels(0, 5) == ("2018-03-23", "2018-03-24", "2018-03-25", "2018-03-26", "2018-03-27")


def test_labels_are_local_and_carry_the_offset_of_the_zone() -> None:
    clock = Clock(hours("2018-03-25", 3), HOUR, BERLIN)
    assert clock.labels(0, 3) == ("2018-03-25 01:00+01:00", "2018-03-25 03:00+02:00", "2018-03-25 04:00+02:00")
    assert Clock(hours("2018-03-25", 3), HOUR).labels(0, 1) == ("2018-03-25 00:00",)
    seconds = Clock(moments("2018-03-25 00:00:30", "2018-03-25 00:01:00"), Frequency(30))
    assert seconds.labels(0, 3) == ("2018-03-25 00:00:30", "2018-03-25 00:01:00", "2018-03-25 00:01:30")


@pytest.mark.parametrize(
    ("zone", "first", "label"),
    [
        ("Africa/Monrovia", "1972-01-05", "1972-01-04 23:15:30-00:44:30"),
        (BERLIN, "1893-03-30", "1893-03-30 00:53:28+00:53:28"),
    ],
)
def test_an_axis_from_before_time_zones_can_be_rebuilt_although_offsets_have_seconds(
    zone: str, first: str, label: str
) -> None:
    clock = Clock(hours(first, 96), HOUR, zone)
    assert clock.labels(0, 96)[0] == label
    assert same_clock(read_again(clock), clock)


@pytest.mark.parametrize("zone", [None, BERLIN, "America/New_York", "+05:30"])
def test_every_label_can_be_found_by_its_text(zone: str | None) -> None:
    clock = Clock(hours("2018-10-27", 72), HOUR, zone)
    assert [clock.row_of(label) for label in clock.labels(0, 72)] == list(range(72))


def test_a_moment_may_be_text_a_datetime_or_a_datetime64() -> None:
    clock = Clock(hours("2018-06-01", 72), HOUR, BERLIN)
    moments = ["2018-06-02 10:00", datetime(2018, 6, 2, 8, tzinfo=UTC), np.datetime64("2018-06-02T10:00")]
    assert [clock.row_of(moment) for moment in moments] == [32, 32, 32]


def test_a_moment_outside_the_table_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(DataError, match=r"from 2020-01-01 00:00 to 2020-01-01 04:00 .*nearest is 2020-01-01 03:00"):
        Clock(hours("2020-01-01", 5), HOUR).row_of("2020-01-01 02:40")


def test_an_hour_that_the_clock_showed_twice_needs_an_offset() -> None:
    with pytest.raises(UsageError, match=r"write 2018-10-28 02:00\+02:00 or 2018-10-28 02:00\+01:00"):
        Clock(hours("2018-10-27", 72), HOUR, BERLIN).row_of("2018-10-28 02:00")


def test_an_hour_that_the_clock_skipped_is_refused_with_its_neighbours() -> None:
    clock = Clock(hours("2018-03-24", 72), HOUR, BERLIN)
    message = (
        r"clock of Europe/Berlin showed exactly once \(got 2018-03-25 02:00, which it never showed\); "
        r"write 2018-03-25 01:00\+01:00 or 2018-03-25 03:00\+02:00"
    )
    with pytest.raises(UsageError, match=message):
        clock.row_of("2018-03-25 02:00")
    assert clock.row_of("2018-03-25 01:00") + 1 == clock.row_of("2018-03-25 03:00")


def test_a_day_without_a_midnight_is_found_by_its_date() -> None:
    days = moments("2018-11-03 03:00", "2018-11-04 03:00", "2018-11-05 02:00")
    assert Clock(days, Frequency(86_400), "America/Sao_Paulo").row_of("2018-11-04") == 1


def test_an_invalid_moment_is_refused() -> None:
    clock = Clock(hours("2020-01-01", 5), HOUR)
    with pytest.raises(UsageError, match="must be an ISO time"):
        clock.row_of("yesterday")
    with pytest.raises(UsageError, match="have no zone"):
        clock.row_of("2020-01-01 02:00+01:00")


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="IANA"):
        Clock(hours("2020-01-01", 5), HOUR, "Europe/Atlantis").labels(0, 1)


# --- From labels to axes ---


ZONES = [None, "UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "+05:30", "-03:00"]


def same_clock(one: Clock, other: Clock) -> bool:
    names = ("frequency", "zone", "by_row", "numbered", "row")
    return np.array_equal(one.stamps, other.stamps) and all(
        getattr(one, name) == getattr(other, name) for name in names
    )


def read_again(clock: Clock) -> Clock:
    """Return the axis as read from a document."""
    return Clock.of_labels(clock.labels(0, len(clock.stamps)), clock.step, clock.zone, clock.row)


@given(
    first=st.datetimes(datetime(1975, 1, 1), datetime(2035, 1, 1)),
    seconds=st.sampled_from([1, 7, 30, 60, 900, 3600, 10800, 43200]),
    rows=st.integers(1, 60),
    zone=st.sampled_from(ZONES),
    row=st.none() | st.integers(-1000, 10**6),
)
def test_an_axis_in_seconds_can_be_rebuilt_from_its_labels(
    first: datetime, seconds: int, rows: int, zone: str | None, row: int | None
) -> None:
    stamps = np.datetime64(first, "us") + np.arange(rows) * np.timedelta64(seconds, "s")
    clock = Clock(stamps, Frequency(seconds), zone, by_row=row is not None, row=row)
    assert same_clock(read_again(clock), clock)


@given(
    night=st.sampled_from(["2018-03-24T12", "2018-10-27T12", "2021-03-13T20", "2021-11-06T20", "2021-04-03T08"]),
    minutes=st.sampled_from([10, 15, 30, 60]),
    zone=st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe"]),
)
def test_an_axis_across_a_clock_change_can_be_rebuilt_from_its_labels(night: str, minutes: int, zone: str) -> None:
    stamps = np.datetime64(night, "us") + np.arange(2 * 1440 // minutes) * np.timedelta64(minutes, "m")
    clock = Clock(stamps, Frequency(60 * minutes), zone)
    again = read_again(clock)
    assert same_clock(again, clock)
    assert (again.phase(0, len(stamps), 24) == clock.phase(0, len(stamps), 24)).all()


@given(
    first=st.dates(datetime(1975, 1, 1).date(), datetime(2035, 1, 1).date()),
    hour=st.sampled_from([0, 9]),
    frequency=st.sampled_from([DAY, Frequency(7 * 86400), Frequency(months=1), Frequency(months=3)]),
    rows=st.integers(1, 40),
    zone=st.sampled_from([None, BERLIN, "America/New_York", "+05:30"]),
)
def test_an_axis_of_dates_or_months_can_be_rebuilt_from_its_labels(
    first: date, hour: int, frequency: Frequency, rows: int, zone: str | None
) -> None:
    start = np.datetime64(first, "us") + np.timedelta64(hour, "h")
    wall = frequency.after(start, np.arange(rows), first.day)
    clock = Clock(to_utc(wall, zone), frequency, zone)
    assert same_clock(read_again(clock), clock)


@given(first=st.integers(-(10**9), 10**9), step=st.integers(1, 1000), rows=st.integers(1, 40))
def test_numbered_steps_can_be_rebuilt_from_their_labels(first: int, step: int, rows: int) -> None:
    labels = [str(first + step * row) for row in range(rows)]
    frequency = "1 step" if step == 1 else f"{step} steps"
    clock = Clock.of_labels(labels, frequency, None)
    assert clock.numbered
    assert (clock.labels(0, rows), clock.step) == (tuple(labels), frequency)
    assert same_clock(read_again(clock), clock)
    # A numbered axis continues by number, and its phases count from zero.
    assert clock.labels(rows, 1) == (str(first + step * rows),)
    assert clock.phase(0, 1, 7).tolist() == [first // step % 7]


HOURLY = ("2020-01-01 00:00", "2020-01-01 01:00", "2020-01-01 02:00")


@pytest.mark.parametrize(
    ("labels", "frequency", "zone", "message"),
    [
        ((), "1h", None, "a time axis must have a time"),
        (("2020/01/01 00:00", *HOURLY[1:]), "1h", None, "times must be ISO times"),
        (("2020-02-30 00:00", *HOURLY[1:]), "1h", None, "times must be ISO times"),
        (("soon", *HOURLY[1:]), "1h", None, "times must be ISO times"),
        (("2020-01-01T00:00", *HOURLY[1:]), "1h", None, r"must be written as this library .*try '2020-01-01 00:00'"),
        (("2020-01-01 00:00:00", *HOURLY[1:]), "1h", None, "must be written as this library writes them"),
        (("20200101 00:00", *HOURLY[1:]), "1h", None, "must be written as this library writes them|ISO times"),
        (("2020-01-01", *HOURLY[1:]), "1h", None, "must be written as this library writes them"),
        (("2020-01-01 00:00", "2020-01-02 00:00"), "1d", None, r"try '2020-01-01'"),
        ([f"{label}+00:00" for label in HOURLY], "1h", None, "times without a zone must have no offset"),
        (HOURLY, "1h", BERLIN, r"with the offset of their zone .*try '2020-01-01 00:00\+01:00'"),
        (
            [f"{label}+02:00" for label in HOURLY],
            "1h",
            BERLIN,
            r"with the offset of their zone .*try '2019-12-31 23:00",
        ),
        ([f"{label}+0100" for label in HOURLY], "1h", BERLIN, "with the offset of their zone"),
        ([f"{label}Z" for label in HOURLY], "1h", "UTC", "with the offset of their zone"),
        (HOURLY, "60min", None, r"a frequency must be written as this library writes it \(got '60min'\); try '1h'"),
        (HOURLY, "H", None, "a frequency must be written as this library writes it"),
        (HOURLY, "hourly", None, "a frequency must be a count and a unit"),
        (HOURLY, "2h", None, "times must follow each other in even steps, here of 2h"),
        ((HOURLY[0], HOURLY[2]), "1h", None, "times must follow each other in even steps, here of 1h"),
        ((HOURLY[0], HOURLY[0]), "1h", None, "times must follow each other in even steps"),
        (HOURLY[::-1], "1h", None, r"times must increase \(got a step back in row 1\)"),
        (("2020-01-31", "2020-02-28", "2020-03-31"), "1mo", None, "times must follow each other in even steps"),
        (("0", "1"), "1 steps", None, "a frequency must be written as this library writes it"),
        (("0", "1"), "2 step", None, "a frequency must be written as this library writes it"),
        (("0", "1"), "0 steps", None, "a frequency must be a count and a unit"),
        (("0", "2"), "1 step", None, "times must follow each other in even steps"),
        (("1", "0"), "1 step", None, "times must increase"),
        (("0", "01"), "1 step", None, "must be written as this library writes them"),
        (("-0", "1"), "1 step", None, "must be written as this library writes them"),
        (("٠", "1"), "1 step", None, "must be written as this library writes them"),
        (("9" * 15, "9" * 15), "1 step", None, "times must|must be written"),
        (("0", "+1"), "1 step", None, "times must be whole numbers without a zone"),
        (("0", "1.0"), "1 step", None, "times must be whole numbers without a zone"),
        (("0", HOURLY[0]), "1 step", None, "times must be whole numbers without a zone"),
        (("0", "1"), "1 step", BERLIN, "times must be whole numbers without a zone"),
        (("0", "1"), "1h", None, "times must be ISO times|must be written"),
    ],
)
def test_labels_in_another_spelling_or_order_are_refused(
    labels: Sequence[str], frequency: str, zone: str | None, message: str
) -> None:
    with pytest.raises(IBForecastError, match=message):
        Clock.of_labels(labels, frequency, zone)


def test_an_offset_from_another_time_of_the_year_is_refused() -> None:
    with pytest.raises(DataError, match=r"with the offset of their zone .*try '2020-07-01 01:00\+02:00'"):
        Clock.of_labels(["2020-07-01 00:00+01:00", "2020-07-01 01:00+01:00"], "1h", BERLIN)


def test_counted_rows_may_be_uneven_or_repeated_but_not_decreasing() -> None:
    labels = ("2020-01-01 00:00", "2020-01-01 00:00", "2020-01-01 07:00")
    clock = Clock.of_labels(labels, "1h", None, row=5)
    assert clock.phase(0, 3, 24).tolist() == [5, 6, 7]
    with pytest.raises(DataError, match="times must increase"):
        Clock.of_labels(labels[::-1], "1h", None, row=5)


# --- Windows of an axis ---


@given(first=st.integers(0, 60), count=st.integers(1, 60), by_row=st.booleans(), zone=st.sampled_from([None, BERLIN]))
def test_a_window_of_an_axis_has_times_and_phases_beyond_the_end(
    first: int, count: int, by_row: bool, zone: str | None
) -> None:
    clock = Clock(hours("2018-03-23", 72), HOUR, zone, by_row=by_row).counted_from(hours("2018-03-20", 1)[0])
    window = clock.window(first, count)
    assert (window.stamps == clock.times(first, count)).all()
    assert window.labels(0, count) == clock.labels(first, count)
    assert (window.phase(0, count, 24) == clock.phase(first, count, 24)).all()
    assert window.row == (72 + first if by_row else None)
    assert same_clock(read_again(window), window)


def test_uneven_times_give_no_row_number() -> None:
    counted = Clock(hours("2020-01-02", 24), HOUR, by_row=True)
    assert counted.counted_from(hours("2020-01-01", 1)[0], countable=True).offset == 24
    uncountable = counted.counted_from(hours("2020-01-01", 1)[0], countable=False)
    with pytest.raises(DataError, match=r"a table from 2020-01-02 00:00 on, and those of training did not"):
        uncountable.window(0, 3)
    # The first row of training can always be recognised, and a known row number needs no counting.
    assert counted.counted_from(counted.stamps[3], countable=False).offset == -3
    assert replace(uncountable, row=7).offset == 7


@pytest.mark.parametrize(
    ("stamps", "frequency", "even"),
    [
        (hours("2020-01-01", 48), HOUR, True),
        (np.delete(hours("2020-01-01", 48), 7), HOUR, False),
        (WEEKDAYS, DAY, False),
        (moments("2020-01-31", "2020-02-29", "2020-03-31"), Frequency(months=1), True),
    ],
)
def test_an_axis_is_even_if_every_row_is_one_step_after_the_previous(
    stamps: np.ndarray, frequency: Frequency, even: bool
) -> None:
    assert Clock(stamps, frequency).even is even


@pytest.mark.parametrize(
    ("frequency", "changes", "day", "lengths"),
    [
        (Frequency(3600), {}, 24, {1: "hour", 24: "day", 168: "week", 25: "25 steps"}),
        (Frequency(900), {}, 96, {1: "1 step", 4: "hour", 96: "day"}),
        (Frequency(86_400), {}, 1, {1: "day", 7: "week", 365: "365 steps"}),
        (Frequency(7 * 86_400), {}, 1, {1: "week"}),
        (Frequency(7 * 3600), {}, 1, {24: "week"}),
        (Frequency(months=1), {}, 1, {12: "12 steps"}),
        (Frequency(3600), {"by_row": True}, 1, {24: "24 steps"}),
        (Frequency(1), {"numbered": True}, 1, {3600: "3600 steps"}),
    ],
)
def test_a_clock_names_the_steps_of_an_hour_a_day_and_a_week(
    frequency: Frequency, changes: dict[str, bool], day: int, lengths: dict[int, str]
) -> None:
    clock = Clock(np.array(["2024-01-01"], dtype="datetime64[us]"), frequency, **changes)
    assert clock.day == day
    assert {steps: clock.lasting(steps) for steps in lengths} == lengths
