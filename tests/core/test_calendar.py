"""Steps, wall clocks and phases."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError, UsageError
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
def test_a_frequency_survives_being_written_and_parsed(frequency: Frequency) -> None:
    assert Frequency.parse(str(frequency)) == frequency


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        *(("15min", "15min"), ("h", "1h"), ("H", "1h"), ("1h", "1h"), ("D", "1d"), ("1d", "1d"), ("W", "1w")),
        *(("MS", "1mo"), ("1mo", "1mo"), ("QS", "3mo"), ("YS", "12mo"), ("30s", "30s"), ("W-SUN", "1w"), ("7d", "1w")),
    ],
)
def test_usual_spellings_have_one_canonical_form(text: str, canonical: str) -> None:
    assert str(Frequency.parse(text)) == canonical


@pytest.mark.parametrize("text", ["", "0h", "1 fortnight", "1.5h", "-1h", "ms"])
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
def test_without_a_natural_cycle_a_number_is_asked_for(text: str) -> None:
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
def test_phases_follow_the_wall_clock_when_it_changes(first: str, expected: list[int]) -> None:
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
def test_without_a_zone_phases_run_on_one_by_one(first: datetime, seconds: int, cycle: int, by_row: bool) -> None:
    start = np.datetime64(first, "us")
    clock = Clock(start + np.arange(20) * np.timedelta64(seconds, "s"), Frequency(seconds), by_row=by_row)
    phase = clock.phase(0, 60, cycle)
    assert ((phase[1:] - phase[:-1]) % cycle == 1 % cycle).all()
    assert (clock.phase(15, 20, cycle) == phase[15:35]).all()


def test_by_row_number_a_later_table_goes_on_where_the_training_table_began() -> None:
    whole = Clock(hours("2020-01-01T05", 100), HOUR, by_row=True)
    later = Clock(whole.stamps[30:], HOUR, by_row=True).counted_from(whole.origin)
    assert whole.phase(0, 3, 24).tolist() == [0, 1, 2]
    assert (later.phase(0, 70, 24) == whole.phase(30, 70, 24)).all()


WEEKDAYS = np.busday_offset("2024-01-01", np.arange(300)).astype("datetime64[us]")
DAY = Frequency(86400)


def test_by_row_number_uneven_rows_are_counted_from_the_first_of_training_or_not_at_all() -> None:
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


def test_by_row_number_a_little_jitter_leaves_rows_where_they_are() -> None:
    jitter = np.random.default_rng(3).integers(-900, 900, 100) * np.timedelta64(1, "s")
    stamps = hours("2020-01-01T05", 100) + jitter
    assert Clock(stamps[30:], HOUR, by_row=True).counted_from(hours("2020-01-01T05", 1)[0]).offset == 30


def by_hand(moment: datetime) -> list[float]:
    """The four calendar features of one wall-clock time, by the standard library."""
    of_year = moment.timetuple().tm_yday
    return [moment.hour / 23 - 0.5, moment.weekday() / 6 - 0.5, (moment.day - 1) / 30 - 0.5, (of_year - 1) / 365 - 0.5]


@given(
    first=st.datetimes(datetime(1960, 1, 1), datetime(2060, 1, 1)),
    seconds=st.sampled_from([60, 900, 3600, 86400, 5 * 86400]),
)
def test_the_calendar_is_hour_weekday_day_and_day_of_year_between_minus_and_plus_a_half(
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


def test_the_calendar_follows_the_wall_clock_of_the_zone_beyond_the_end_of_the_table_too() -> None:
    clock = Clock(hours("2018-03-24T20", 2), HOUR, BERLIN)
    first = datetime(2018, 3, 24, 20, tzinfo=UTC).timestamp()
    local = [datetime.fromtimestamp(first + 3600 * step, ZoneInfo(BERLIN)) for step in range(12)]
    np.testing.assert_allclose(clock.calendar(0, 12), [by_hand(moment) for moment in local], rtol=0, atol=1e-12)


def test_the_calendar_reads_the_wall_clock_even_where_phases_count_rows() -> None:
    by_row, by_clock = (Clock(hours("2020-02-27T05", 99), HOUR, by_row=choice) for choice in (True, False))
    assert (by_row.calendar(0, 99) == by_clock.calendar(0, 99)).all()


def test_times_go_on_after_the_end_of_the_table() -> None:
    clock = Clock(hours("2020-01-01", 5), HOUR)
    assert (clock.times(3, 4) == hours("2020-01-01T03", 4)).all()
    assert (clock.times(7, 2) == hours("2020-01-01T07", 2)).all()


def test_month_ends_stay_month_ends() -> None:
    clock = Clock(moments("2020-01-31", "2020-02-29", "2020-03-31"), Frequency(months=1))
    assert clock.labels(0, 6) == ("2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30", "2020-05-31", "2020-06-30")


def test_local_midnights_stay_midnights_across_a_change_of_clock() -> None:
    clock = Clock(moments("2018-03-22T23", "2018-03-23T23", "2018-03-24T23"), Frequency(86400), BERLIN)
    assert clock.labels(0, 5) == ("2018-03-23", "2018-03-24", "2018-03-25", "2018-03-26", "2018-03-27")


def test_labels_are_local_and_carry_the_offset_of_the_zone() -> None:
    clock = Clock(hours("2018-03-25", 3), HOUR, BERLIN)
    assert clock.labels(0, 3) == ("2018-03-25 01:00+01:00", "2018-03-25 03:00+02:00", "2018-03-25 04:00+02:00")
    assert Clock(hours("2018-03-25", 3), HOUR).labels(0, 1) == ("2018-03-25 00:00",)
    seconds = Clock(moments("2018-03-25 00:00:30", "2018-03-25 00:01:00"), Frequency(30))
    assert seconds.labels(0, 3) == ("2018-03-25 00:00:30", "2018-03-25 00:01:00", "2018-03-25 00:01:30")


@pytest.mark.parametrize("zone", [None, BERLIN, "America/New_York", "+05:30"])
def test_every_label_leads_back_to_its_row(zone: str | None) -> None:
    clock = Clock(hours("2018-10-27", 72), HOUR, zone)
    assert [clock.row_of(label) for label in clock.labels(0, 72)] == list(range(72))


def test_a_moment_may_be_text_a_datetime_or_a_datetime64() -> None:
    clock = Clock(hours("2018-06-01", 72), HOUR, BERLIN)
    asked = ["2018-06-02 10:00", datetime(2018, 6, 2, 8, tzinfo=UTC), np.datetime64("2018-06-02T10:00")]
    assert [clock.row_of(moment) for moment in asked] == [32, 32, 32]


def test_a_moment_outside_the_table_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"from 2020-01-01 00:00 to 2020-01-01 04:00 .*nearest is 2020-01-01 03:00"):
        Clock(hours("2020-01-01", 5), HOUR).row_of("2020-01-01 02:40")


def test_an_hour_shown_twice_must_be_told_apart() -> None:
    with pytest.raises(UsageError, match=r"say 2018-10-28 02:00\+02:00 or 2018-10-28 02:00\+01:00"):
        Clock(hours("2018-10-27", 72), HOUR, BERLIN).row_of("2018-10-28 02:00")


def test_an_hour_never_shown_is_refused_with_those_around_it() -> None:
    clock = Clock(hours("2018-03-24", 72), HOUR, BERLIN)
    message = (
        r"clock of Europe/Berlin showed exactly once \(got 2018-03-25 02:00, which it never showed\); "
        r"say 2018-03-25 01:00\+01:00 or 2018-03-25 03:00\+02:00"
    )
    with pytest.raises(UsageError, match=message):
        clock.row_of("2018-03-25 02:00")
    assert clock.row_of("2018-03-25 01:00") + 1 == clock.row_of("2018-03-25 03:00")


def test_a_day_whose_midnight_was_never_shown_is_found_by_its_date() -> None:
    days = moments("2018-11-03 03:00", "2018-11-04 03:00", "2018-11-05 02:00")
    assert Clock(days, Frequency(86_400), "America/Sao_Paulo").row_of("2018-11-04") == 1


def test_what_is_not_a_moment_is_refused() -> None:
    clock = Clock(hours("2020-01-01", 5), HOUR)
    with pytest.raises(UsageError, match="must be an ISO time"):
        clock.row_of("yesterday")
    with pytest.raises(UsageError, match="have no zone"):
        clock.row_of("2020-01-01 02:00+01:00")


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(UsageError, match="IANA"):
        Clock(hours("2020-01-01", 5), HOUR, "Europe/Atlantis").labels(0, 1)
