"""Times as people and programs write them: one meaning, or a question."""

import warnings
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ibforecast import DataError, IBForecaster, UsageError
from ibforecast.data.columns import text_of
from ibforecast.data.dates import read_moment
from ibforecast.data.layout import Dates, Layout
from ibforecast.data.tables import Table, read

DAYS = pd.date_range("2023-01-28", periods=40, freq="D")
HOURS = pd.date_range("2023-03-01", periods=60, freq="h")
FEW = pd.date_range("2023-03-01", periods=12, freq="D")


def table_of(times: list[object], name: str = "date") -> pd.DataFrame:
    return pd.DataFrame({name: times, "a": np.arange(len(times), dtype=float)})


def moments(table: Table) -> list[str]:
    return list(table.series.clock.labels(0, table.series.rows))


@pytest.mark.parametrize(
    "pattern",
    [
        "%m/%d/%Y",
        "%d/%m/%Y",
        "%d.%m.%Y",
        "%d-%m-%Y",
        "%m/%d/%y",
        "%d.%m.%y",
        "%d/%m/%y",
        "%m/%d/%Y %I:%M %p",
        "%d/%m/%Y %H:%M:%S",
        "%d.%m.%Y %H:%M",
    ],
)
def test_a_column_that_fits_one_way_is_read_that_way(pattern: str) -> None:
    assert moments(read(table_of(list(DAYS.strftime(pattern))))) == list(DAYS.strftime("%Y-%m-%d"))


def test_two_digits_are_a_year_of_the_last_or_this_century_and_points_put_the_day_first() -> None:
    january = pd.date_range("1998-01-01", periods=12)  # each could be a month
    assert moments(read(table_of(list(january.strftime("%d.%m.%y"))))) == list(january.strftime("%Y-%m-%d"))
    evening = pd.date_range("2023-12-30", periods=48, freq="h")
    assert moments(read(table_of(list(evening.strftime("%d.%m.%y %H:%M"))))) == list(evening.strftime("%Y-%m-%d %H:%M"))


@pytest.mark.parametrize("pattern", ["%y/%m/%d", "%y-%m-%d"])
def test_years_of_two_digits_that_come_first_are_refused(pattern: str) -> None:
    """The day would count years, which nobody means."""
    with pytest.raises(DataError, match="the time column must contain times"):
        read(table_of(list(DAYS.strftime(pattern))), Layout(time="date"))


@pytest.mark.parametrize("pattern", ["%m/%d/%Y %I:%M %p", "%m/%d/%Y %H:%M:%S"])
def test_the_time_of_day_is_read(pattern: str) -> None:
    times = pd.date_range("2023-12-30", periods=48, freq="h")
    assert moments(read(table_of(list(times.strftime(pattern))))) == list(times.strftime("%Y-%m-%d %H:%M"))


@pytest.mark.parametrize(
    "pattern", ["%d-%b-%Y", "%d %B %Y %H:%M", "%B %d, %Y", "%b %d %Y, %I:%M %p", "%d/%b/%y", "%d. %B %Y"]
)
def test_months_are_read_by_their_names(pattern: str) -> None:
    days = pd.date_range("2023-04-28", periods=400)
    assert moments(read(table_of(list(days.strftime(pattern)), "day"))) == list(days.strftime("%Y-%m-%d"))


def test_a_moment_with_half_a_character_is_returned_as_it_is() -> None:
    assert read_moment("\ud800") == "\ud800"


def test_numbers_of_hundreds_of_digits_are_no_times() -> None:
    with pytest.raises(DataError, match="time column"):
        read(pa.table({"date": [1e308, 1.1e308, 1.2e308], "a": [1.0, 2.0, 3.0]}))


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.date64(), pa.time64("us"), pa.timestamp("s")])
def test_a_column_of_moments_that_python_does_not_know_is_a_column_of_numbers_or_refused(kind: pa.DataType) -> None:
    days = pa.array([f"2024-01-{day:02}" for day in range(1, 4)])
    column = pa.array([2**62] * 3, pa.int64()).view(kind)
    for names in (["date", "a"], ["a", "b"], ["unique_id", "y"]):
        for columns in ([days, column], [column, days]):
            with suppress(DataError):  # and no other error
                assert read(pa.table(columns, names=names)).series.rows == 3


def test_another_word_is_no_month() -> None:
    assert str(read_moment("1 Sept 2023 17:00")) == "2023-09-01 17:00:00"
    for odd in ("2 Noon 2023", "30 Feb 2023", "May 2023 or so"):
        assert read_moment(odd) == odd


def test_a_column_that_is_even_in_one_way_only_is_decided_by_that_and_says_so() -> None:
    texts = list(HOURS.strftime("%m/%d/%Y %H:%M"))
    with pytest.warns(UserWarning, match=r"month first.*only then are they evenly spaced.*--dates monthfirst"):
        table = read(table_of(texts))
    assert table.layout.dates == "monthfirst"
    assert moments(table) == list(HOURS.strftime("%Y-%m-%d %H:%M"))
    assert moments(read(table_of(texts[:5]), table.layout)) == moments(table)[:5]


def test_a_long_table_is_decided_by_each_time_once() -> None:
    texts = list(HOURS.strftime("%m/%d/%Y %H:%M"))
    long = pd.DataFrame({"unique_id": ["x"] * 60 + ["y"] * 60, "ds": texts * 2, "y": np.arange(120.0)})
    with pytest.warns(UserWarning, match="month first"):
        assert moments(read(long)) == list(HOURS.strftime("%Y-%m-%d %H:%M"))


def test_a_column_with_two_meanings_is_refused_unless_one_is_named() -> None:
    # The first twelve days of a month are also the first days of twelve months.
    texts = list(pd.date_range("2023-01-01", periods=12, freq="D").strftime("%d/%m/%Y"))
    with pytest.raises(DataError) as refused:
        read(table_of(texts))
    assert "'02/01/2023', which is 2023-01-02 or 2023-02-01" in str(refused.value)
    assert "--dates dayfirst" in refused.value.remedy
    assert read(table_of(texts), Layout(dates="dayfirst")).layout.frequency == "1d"
    assert read(table_of(texts), Layout(dates="monthfirst")).layout.frequency == "1mo"


@pytest.mark.parametrize(("way", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_numbers_since_1970_are_moments_in_utc(way: str, per_second: int) -> None:
    seconds = (HOURS - pd.Timestamp("1970-01-01")) // pd.Timedelta("1s")
    with pytest.warns(UserWarning, match=f"seconds since 1970, from 2023-03-01 00:00 on.*--dates {way}"):
        table = read(table_of(list(seconds * per_second), "timestamp"))
    assert (table.layout.dates, table.series.clock.zone) == (way, "UTC")
    assert (table.series.clock.stamps == HOURS.to_numpy()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_berlin = read(table_of(list(seconds * per_second), "timestamp"), Layout(dates=way, zone="Europe/Berlin"))
    assert moments(in_berlin)[0] == "2023-03-01 01:00+01:00"


def test_serial_numbers_of_spreadsheets_are_moments() -> None:
    serial = [round((time - pd.Timestamp("1899-12-30")) / pd.Timedelta("1D"), 9) for time in HOURS]
    with pytest.warns(UserWarning, match=r"serial numbers of a spreadsheet.*--dates excel"):
        table = read(table_of(serial))
    assert moments(table) == list(HOURS.strftime("%Y-%m-%d %H:%M"))


@pytest.mark.parametrize(
    ("pattern", "freq"),
    [("%Y", "YS"), ("%Y%m", "MS"), ("%Y%m%d", "D"), ("%Y%m%d%H", "h"), ("%Y%m%d%H%M", "15min"), ("%Y%m%d%H%M%S", "s")],
)
def test_digits_without_marks_are_moments(pattern: str, freq: str) -> None:
    times = pd.date_range("1999-12-30", periods=60, freq=freq)
    with pytest.warns(UserWarning, match=r"as digits of year, month, day and so on, from .*--dates digits"):
        table = read(table_of([int(text) for text in times.strftime(pattern)]))
    assert (table.series.clock.stamps == times.to_numpy()).all()
    assert table.layout.dates == "digits"


@pytest.mark.parametrize("number", [20240230, 202413, 202401312460, 1499, 20240131.5, 202401311200001])
def test_digits_that_are_no_moment_are_refused(number: float) -> None:
    with pytest.raises(DataError, match="time"):
        read(table_of([number] * 3))


def test_digits_that_could_be_seconds_since_1970_are_decided_by_even_steps_or_refused() -> None:
    """2024013118 is in January 2024, or 2024013118 seconds after 1970, which is in 2034."""
    hours = [int(text) for text in HOURS.strftime("%Y%m%d%H")]
    seconds = list(range(2024010100, 2024010100 + 60))
    for numbers, way in ((hours, "digits"), (seconds, "s")):
        with pytest.warns(UserWarning, match=f"--dates {way}"):
            assert read(table_of(numbers)).layout.dates == way
    with pytest.raises(
        DataError, match=r"one meaning \(got 2023030100, which is 2034-02-08 or 2023-03-01\); give dates"
    ):
        read(table_of(hours[:20]))
    assert read(table_of(hours[:20]), Layout(dates="digits")).layout.frequency == "1h"


def test_numbers_in_a_column_of_another_name_are_no_times() -> None:
    seconds = list((HOURS - pd.Timestamp("1970-01-01")) // pd.Timedelta("1s"))
    with pytest.raises(DataError, match="a table must have a time column"):
        read(table_of(seconds, "meter"))


@pytest.mark.parametrize("texts", [["1/2/2023", "31/31/2023", "3/2/2023"], ["25:00"] * 3, [5, 6, 7]], ids=str)
def test_anything_else_is_refused(texts: list[object]) -> None:
    with pytest.raises(DataError, match="time"):
        read(table_of(texts))


def test_dates_of_a_file_are_read_and_come_back_as_times(tmp_path: Path) -> None:
    path = tmp_path / "us.csv"
    table_of(list(DAYS.strftime("%m/%d/%Y"))).to_csv(path, index=False)
    table = read(path)
    ahead = table.forecast(40, np.zeros((2, 1)))
    assert ahead["date"].tolist() == [pd.Timestamp("2023-03-09"), pd.Timestamp("2023-03-10")]


@pytest.mark.parametrize("name", ["when", None])
@pytest.mark.parametrize("level", [None, 80])
def test_an_index_of_times_comes_back_as_one(name: str | None, level: int | None) -> None:
    index = pd.date_range("2023-01-01", periods=160, freq="h", tz="Europe/Berlin", name=name)
    table = pd.DataFrame({"a": np.sin(np.arange(160.0))}, index=index)
    model = IBForecaster(horizon=4, look_back=24, epochs=1, sealed=True, device="cpu").fit(table)
    ahead = model.predict(table, level=level)
    assert isinstance(ahead.index, pd.DatetimeIndex)
    assert ahead.index.tolist() == pd.date_range(index[-1], periods=5, freq="h")[1:].tolist()
    assert (ahead.index.name, "a" in ahead.columns) == (name or "time", True)
    joined = pd.concat([table, ahead[["a"]]])
    assert len(model.predict(joined)) == 4


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    ("texts", "firsts"),
    [
        (["2014-11", "2014-12", "2015-01", "2015-02"], ["2014-11-01", "2014-12-01", "2015-01-01", "2015-02-01"]),
        (["2014Q3", "2014Q4", "2015Q1", "2015Q2"], ["2014-07-01", "2014-10-01", "2015-01-01", "2015-04-01"]),
        (["2014-Q3", "2014-Q4", "2015-Q1", "2015-Q2"], ["2014-07-01", "2014-10-01", "2015-01-01", "2015-04-01"]),
        (["Q3 2014", "Q4-2014", "q1/2015", "Q22015"], ["2014-07-01", "2014-10-01", "2015-01-01", "2015-04-01"]),
        (["2014M11", "2014M12", "2015M1", "2015m02"], ["2014-11-01", "2014-12-01", "2015-01-01", "2015-02-01"]),
        (["2020-W52", "2020-W53", "2021-W01", "2021W02"], ["2020-12-21", "2020-12-28", "2021-01-04", "2021-01-11"]),
    ],
)
def test_months_quarters_and_weeks_mean_their_first_days(texts: list[str], firsts: list[str], missing: bool) -> None:
    if missing:
        with pytest.raises(DataError, match=r"every row must have a time .*row 4"):
            read(table_of([*texts, None]))
        return
    assert moments(read(table_of([*texts]))) == firsts


@pytest.mark.parametrize(
    ("pattern", "freq"),
    [
        ("%b %Y", "MS"),
        ("%B-%Y", "MS"),
        ("%d-%b-%Y", "D"),
        ("%d %B %Y %H:%M", "h"),
        ("%b %d, %Y", "D"),
        ("%b-%d-%Y %H:%M:%S", "min"),
        ("%Y-%b", "MS"),
        ("%Y %B %d", "D"),
        ("%d/%b/%Y:%H:%M:%S", "min"),
        ("%a %d %b %Y %H:%M", "h"),
        ("%A, %B %d, %Y", "D"),
    ],
)
def test_dates_with_the_name_of_a_month_are_read(pattern: str, freq: str) -> None:
    times = pd.date_range("2014-01-01", periods=60, freq=freq)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read(table_of(list(times.strftime(pattern))))
    assert (table.series.clock.stamps == times.to_numpy()).all()


@pytest.mark.parametrize(
    "text", ["1 Jan 2 2014", "30 Feb 2014", "Jan 1 2014 25:00", "1 Jan 2014 13:00 PM", "Jan 14", "Jan", "Marvin 2014"]
)
def test_a_text_with_the_name_of_a_month_that_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="time column"):
        read(table_of([text] * 3))


@pytest.mark.parametrize("pattern", ["%Y%m%d %H:%M", "%Y%m%d %H:%M:%S", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M", "%Y%m%d:%H%M"])
def test_dates_without_hyphens_are_read(pattern: str) -> None:
    times = pd.date_range("2014-01-01", periods=60, freq="h")
    assert (read(table_of(list(times.strftime(pattern)))).series.clock.stamps == times.to_numpy()).all()


@pytest.mark.parametrize("date", ["%Y-%m-%d ", "%Y-%m-%dT", "%d.%m.%Y ", "%Y/%m/%d ", "%d/%m/%Y "])
@pytest.mark.parametrize("clock", ["24:00", "24:00:00"])
def test_24_00_is_midnight_at_the_end_of_the_day(date: str, clock: str) -> None:
    ends = pd.date_range("2016-02-27 01:00", periods=80, freq="h")
    seconds = ":00" if len(clock) > 5 else ""
    texts = [
        (end - pd.Timedelta("1h")).strftime(date) + (clock if end.hour == 0 else end.strftime("%H:%M") + seconds)
        for end in ends
    ]
    assert (read(table_of(texts)).series.clock.stamps == ends.to_numpy()).all()


@pytest.mark.parametrize("freq", ["h", "D", "W", "M", "Q", "Y"])
@pytest.mark.parametrize("place", ["index", "column"])
def test_periods_of_pandas_mean_their_first_moments(freq: str, place: str) -> None:
    periods = pd.period_range("2001-01-01", periods=50, freq=freq)
    values = {"a": np.arange(50.0)}
    table = pd.DataFrame(values, index=periods) if place == "index" else pd.DataFrame({"when": periods} | values)
    assert (read(table).series.clock.stamps == periods.to_timestamp().to_numpy()).all()


def test_an_index_of_ids_and_times_is_refused_with_the_call_that_makes_columns_of_it() -> None:
    index = pd.MultiIndex.from_product([["a", "b"], pd.date_range("2024", periods=5)], names=["id", "ds"])
    table = pd.DataFrame({"y": np.arange(10.0)}, index=index)
    with pytest.raises(DataError, match=r"got an index of 'id', 'ds'\); give table.reset_index\(\)"):
        read(table)
    assert read(table.reset_index(), Layout(id="id")).series.channels == ("a", "b")


@pytest.mark.parametrize(
    "odd", ["2014-13", "2014Q5", "2014-00", "14-01", "2014M13", "2021-W53", "2014-W00", "2014 24:00"]
)
def test_a_text_that_is_no_month_is_refused(odd: str) -> None:
    with pytest.raises(DataError, match="time column"):
        read(table_of(["2014-11", "2014-12", odd]))


def test_a_message_names_a_moment_as_briefly_as_it_can() -> None:
    for moment in ("2023-01-01 10:00", "2023-01-01 10:00:05", "2023-01-01 10:00:05.250000"):
        assert text_of(np.datetime64(moment, "us")) == moment


# --- One moment, as --at has it ---


@pytest.mark.parametrize(
    ("text", "dates", "moment"),
    [
        ("2024-12", "auto", "2024-12-01 00:00"),
        ("2024Q2", "auto", "2024-04-01 00:00"),
        ("3 Apr 2024 9:30", "auto", "2024-04-03 09:30"),
        ("2024/03/03 22:00", "auto", "2024-03-03 22:00"),
        ("03.03.2024 22:00", "auto", "2024-03-03 22:00"),
        ("03.04.2024", "monthfirst", "2024-04-03 00:00"),  # points mean the day first, as in a column
        ("11/24/2023", "auto", "2023-11-24 00:00"),
        ("11/04/2023 6:00 PM", "monthfirst", "2023-11-04 18:00"),
        ("11/04/2023", "dayfirst", "2023-04-11 00:00"),
        ("45292.5", "excel", "2024-01-01 12:00"),
        ("2024010112", "digits", "2024-01-01 12:00"),
        ("202402", "digits", "2024-02-01 00:00"),
    ],
)
def test_a_moment_is_read_as_the_times_of_a_table_are(text: str, dates: Dates, moment: str) -> None:
    assert read_moment(text, dates) == datetime.fromisoformat(moment)


def test_a_moment_in_seconds_is_in_utc_and_an_iso_text_is_left_to_the_clock() -> None:
    assert read_moment("1704067200", "s") == datetime(2024, 1, 1, tzinfo=UTC)
    for moment in ("2024-01-01 10:00", "2024-01-01 10:00+02:00", "noon", None, datetime(2024, 1, 1)):
        assert read_moment(moment) is moment


def test_a_moment_that_could_be_two_is_refused_with_both() -> None:
    message = r"day or month first\? \(got '11/04/2023'\); write '2023-04-11 00:00' or '2023-11-04 00:00'"
    with pytest.raises(UsageError, match=message):
        read_moment("11/04/2023")


def test_a_moment_of_a_forecast_may_be_written_as_in_its_table() -> None:
    days = pd.date_range("2023-01-01", periods=160, freq="D")
    table = pd.DataFrame({"day": days.strftime("%m/%d/%Y"), "a": np.sin(np.arange(160.0))})
    model = IBForecaster(horizon=4, look_back=24, epochs=1, sealed=True, device="cpu").fit(table)
    assert model.explain(table, at="05/04/2023").at == "2023-05-04"
    assert model.explain(table, at="2023-05-04").sha256 == model.explain(table, at="05/04/2023").sha256
    assert model.reads("05/04/2023").equals(model.reads("2023-05-04"))
    with pytest.raises(UsageError, match="must be an ISO time") as refused:
        model.explain(table, at="soon")
    hint = refused.value.remedy.split("'")[1]
    assert model.explain(table, at=hint).at == hint
