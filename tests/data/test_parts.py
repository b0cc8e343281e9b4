"""Times in several columns: a date and a time of day, or a year, a month and so on."""

from datetime import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibforecast import IBForecaster
from ibforecast.core.errors import DataError
from ibforecast.data.tables import Layout, read


def stamps(count: int = 60, first: str = "2024-02-27", step: str = "h") -> pd.DatetimeIndex:
    return pd.date_range(first, periods=count, freq=step)


def parted(times: pd.DatetimeIndex, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns | {"load": np.arange(float(len(times)))})


WAYS: dict[str, tuple[str, Any]] = {
    "a date and an hour": ("d,h", lambda t: {"d": t.strftime("%Y-%m-%d"), "h": t.hour}),
    "a date of digits and hours and minutes": (
        "d,h",
        lambda t: {"d": t.strftime("%Y%m%d").astype(int), "h": t.hour * 100 + t.minute},
    ),
    "a date and text": ("d,h", lambda t: {"d": t.strftime("%d.%m.%Y"), "h": t.strftime("%H:%M")}),
    "text with points": ("d,h", lambda t: {"d": t.date, "h": t.strftime("%H.%M.%S")}),
    "half days": ("d,h", lambda t: {"d": t.strftime("%m/%d/%Y"), "h": t.strftime("%I:%M %p")}),
    "times of day": ("d,h", lambda t: {"d": t.normalize(), "h": [time(each.hour, each.minute) for each in t]}),
    "numbers": ("y,m,d,h", lambda t: {"y": t.year, "m": t.month, "d": t.day, "h": t.hour}),
    "names of months": ("y,m,d,h", lambda t: {"y": t.year, "m": t.strftime("%b"), "d": t.day, "h": t.hour}),
    "days of the year": ("y,doy,h", lambda t: {"y": t.year, "doy": t.dayofyear, "h": t.hour}),
    "down to seconds": (
        "y,m,d,h,i,s",
        lambda t: {"y": t.year, "m": t.month, "d": t.day, "h": t.hour, "i": t.minute, "s": t.second},
    ),
}


@pytest.mark.filterwarnings("ignore:times must have one meaning")
@pytest.mark.parametrize("way", WAYS)
@given(first=st.datetimes(pd.Timestamp("1975-01-01"), pd.Timestamp("2060-01-01")), rows=st.integers(30, 90))
@settings(deadline=None, max_examples=10)
def test_the_parts_of_a_time_give_that_time(way: str, first: pd.Timestamp, rows: int) -> None:
    named, split = WAYS[way]
    times = stamps(rows, str(pd.Timestamp(first).floor("h")))
    if way == "days of the year" and times[-1].dayofyear <= 53:
        return  # days up to 53 could be weeks
    series = read(
        parted(times, **split(times)), Layout(time=named, dates="monthfirst" if way == "half days" else "auto")
    ).series
    assert (series.clock.stamps == times.to_numpy()).all()
    assert series.channels == ("load",)


@pytest.mark.parametrize(
    ("second", "step", "named"),
    [
        (lambda t: t.month, "MS", "month"),
        (lambda t: t.strftime("%B"), "MS", "month"),
        (lambda t: t.quarter, "QS", "quarter"),
        (lambda t: [f"Q{each}" for each in t.quarter], "QS", "of"),
        (lambda t: t.dayofyear, "D", "doy"),
    ],
)
def test_a_year_with_months_quarters_or_days(second: Any, step: str, named: str) -> None:
    times = stamps(400, "1999-01-01", step)
    series = read(parted(times, year=times.year, **{named: second(times)}), Layout(time=f"year,{named}")).series
    assert (series.clock.stamps == times.to_numpy()).all()


def test_hours_from_1_to_24_are_the_ends_of_the_hours() -> None:
    starts = stamps()
    frame = parted(starts, date=starts.strftime("%Y-%m-%d"), hour=starts.hour + 1)
    assert (read(frame, Layout(time="date,hour")).series.clock.stamps == (starts + pd.Timedelta("1h")).to_numpy()).all()


def test_a_forecast_has_one_time_column_and_a_model_reads_later_tables_in_the_same_way() -> None:
    times = stamps(200)
    frame = parted(times, date=times.strftime("%Y-%m-%d"), hour=times.hour)
    model = IBForecaster(horizon=3, look_back=24, time="date,hour", epochs=1, sealed=True, device="cpu").fit(frame)
    forecast = model.predict(frame)
    assert list(forecast) == ["time", "load"]
    assert forecast["time"].tolist() == list(stamps(3, "2024-03-06 08:00"))
    model.explain(frame).verify(frame)


def test_a_part_may_be_known_ahead_as_well() -> None:
    times = stamps()
    frame = parted(times, date=times.strftime("%Y-%m-%d"), hour=times.hour)
    series = read(frame, Layout(time="date,hour", future=("hour",))).series
    assert (series.channels, series.covariates) == (("load",), ("hour",))


def test_a_column_whose_name_has_a_comma_is_one_column() -> None:
    times = stamps()
    assert read(pd.DataFrame({"date,hour": times, "load": 1.0}), Layout(time="date,hour")).series.rows == 60


@pytest.mark.parametrize(
    ("columns", "named", "message"),
    [
        ({"date": ["2024-01-01"] * 3, "hour": [1, 2, 25]}, "date,hour", r"row 2: 25 in 'hour'"),
        (
            {"date": ["2024-01-01"] * 3, "hour": [1, 2, None]},
            "date,hour",
            r"must have a time \(got row 2: none in 'hour'",
        ),
        ({"date": ["2024-01-01"] * 3, "hour": ["1:00", "2:00", "x"]}, "date,hour", r"row 2: 'x' in 'hour'"),
        ({"date": ["2024-01-01"] * 3, "hour": ["1:00 pm", "2:00 pm", "13:00 pm"]}, "date,hour", "row 2: '13:00 pm'"),
        ({"date": ["a", "b", "c"], "hour": [1, 2, 3]}, "date,hour", r"dates or years \(got 'a' in 'date'\)"),
        ({"hour": [1, 2, 3], "date": ["2024-01-01"] * 3}, "hour,date", r"dates or years \(got 1 in 'hour'\)"),
        (
            {"date": stamps(3), "hour": [0, 1, 2]},
            "date,hour",
            r"no time of day and no zone \(got row 1: .*--time date\)",
        ),
        ({"year": [2024] * 3, "week": [1, 2, 53]}, "year,week", r"'week' from 1 to 53, most likely weeks\)"),
        ({"year": [2023] * 3, "doy": [364, 365, 366]}, "year,doy", r"must exist in that year \(got row 2: 366"),
        (
            {"year": [2023] * 3, "month": [2] * 3, "day": [27, 28, 29]},
            "year,month,day",
            r"in its month \(got row 2: 29",
        ),
        ({"year": [2023] * 3, "month": [0, 1, 2]}, "year,month", r"from 1 to 12 \(got row 0: 0"),
        ({"year": [2023] * 3, "month": ["Jan", "Feb", "Mrz"]}, "year,month", r"English name \(got row 2: 'Mrz'"),
        ({"date": ["2024-01-01"] * 3, "hour": [1, 2, 3]}, "date,our", r"'our' must be in the table .*'hour'\?"),
    ],
)
def test_a_part_that_gives_no_time_is_named(columns: dict[str, Any], named: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(pd.DataFrame(columns | {"load": [1.0, 2.0, 3.0]}), Layout(time=named))


@pytest.mark.parametrize(
    ("columns", "option"),
    [
        (lambda t: {"Year": t.year, "Month": t.month, "Day": t.day, "Hour": t.hour}, "Year,Month,Day,Hour"),
        (lambda t: {"YEAR": t.year, "MO": t.month, "DY": t.day, "HR": t.hour}, "YEAR,MO,DY,HR"),
        (lambda t: {"year": t.year, "quarter": t.quarter}, "year,quarter"),
        (lambda t: {"Date": t.strftime("%Y-%m-%d"), "HE": t.hour + 1}, "Date,HE"),
        (lambda t: {"date": t.strftime("%Y-%m-%d"), "Stunde": t.hour}, "date,Stunde"),
        (lambda t: {"date": t.strftime("%d.%m.%Y"), "Time": t.strftime("%H:%M")}, "date,Time"),
    ],
)
def test_columns_that_seem_to_make_up_a_time_are_proposed(columns: Any, option: str) -> None:
    times = stamps(200)
    with pytest.raises(DataError, match=rf"\(fit --time {option}\)"):
        read(parted(times, **columns(times)))


def test_a_column_that_would_be_read_if_it_were_named_is_proposed() -> None:
    with pytest.raises(DataError, match=r"if 'Year' has the times, name it \(fit --time Year\)"):
        read(pl.DataFrame({"Year": [1990, 1991, 1992], "people": [1800, 1900, 2000]}))
    with pytest.raises(DataError, match=r"if 'Quarter' has the times, name it \(fit --time Quarter\)"):
        read(pl.DataFrame({"gdp": [1, 2, 3], "Quarter": ["1990 Q1", "1990 Q2", "1990 Q3"]}))
