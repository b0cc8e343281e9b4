"""Tables without a time column: the remedy fits what the columns look like, and reads the table."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast.core.errors import DataError
from ibforecast.core.zones import PLACES, place_with, to_wall
from ibforecast.data.tables import Layout, read

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def advised(table: pd.DataFrame) -> DataError:
    with pytest.raises(DataError, match="a table must have a time column") as raised:
        read(table)
    return raised.value


def called(remedy: str, table: pd.DataFrame) -> Any:
    """Return what the call in a remedy gives for the table."""
    found = re.search(r"by (table.*?)(?:, and name|$)", remedy)
    assert found is not None
    return eval(found[1], {"table": table, "pandas": pd})


@pytest.mark.parametrize("spell", [str, str.upper])
def test_a_row_per_year_and_a_column_per_month(spell: Any) -> None:
    names, values = [spell(month) for month in MONTHS], np.arange(36.0)
    table = pd.DataFrame(values.reshape(3, 12), columns=names).assign(Annual=1.0)
    table.insert(0, "Year", [2001, 2002, 2003])
    error = advised(table)
    assert "time='Year,month'" in error.remedy
    series = read(called(error.remedy, table), Layout(time="Year,month")).series
    np.testing.assert_array_equal(series.values[:, 0], values)
    assert series.clock.labels(35, 1) == ("2003-12-01",)


def test_times_in_the_names_of_columns() -> None:
    days = pd.date_range("2024-01-01", periods=40).strftime("%Y-%m-%d")
    table = pd.DataFrame(np.arange(80.0).reshape(2, 40), columns=days)
    table.insert(0, "meter", ["a", "b"])
    series = read(called(advised(table).remedy, table)).series
    assert (series.rows, series.channels) == (40, ("a", "b"))


def test_spans_of_time() -> None:
    hours = pd.date_range("2024-01-01", periods=30, freq="h")
    spans = [f"{hour:%d.%m.%Y %H:%M} - {hour + pd.Timedelta('1h'):%d.%m.%Y %H:%M}" for hour in hours]
    table = pd.DataFrame({"MTU (CET)": spans, "price": 1.0})
    error = advised(table)
    assert f"'MTU (CET)' has '{spans[0]}', which is not read as a time" in error.got
    table["MTU (CET)"] = called(error.remedy, table)
    assert (read(table).series.clock.stamps == hours.to_numpy()).all()


def test_rows_that_only_follow_each_other() -> None:
    table = pd.DataFrame({"ecg": np.arange(50.0)})
    called(advised(table).remedy, table)
    assert read(table).series.rows == 50


@pytest.mark.parametrize("place", PLACES)
def test_the_offsets_of_a_table_lead_to_a_place_that_has_them(place: str) -> None:
    utc = np.datetime64("2023-01-01", "us") + np.arange(365 * 24) * np.timedelta64(1, "h")
    minutes = np.unique((to_wall(utc, place) - utc).astype("timedelta64[m]").astype(int))
    offsets = [f"{'-' if each < 0 else '+'}{abs(each) // 60:02}:{abs(each) % 60:02}" for each in minutes]
    proposed = place_with(offsets, utc)
    assert proposed is not None
    assert set(to_wall(utc, proposed) - utc) == set(to_wall(utc, place) - utc)


def test_no_place_is_proposed_for_offsets_that_none_has() -> None:
    utc = np.datetime64("2023-01-01", "us") + np.arange(365) * np.timedelta64(1, "D")
    assert place_with(["+01:00", "+05:30"], utc) is None


def test_the_proposed_place_reads_a_table_with_its_offsets() -> None:
    hours = pd.date_range("2024-03-01", periods=600, freq="h", tz="America/Chicago")
    table = pd.DataFrame({"start": [str(hour) for hour in hours], "kwh": 1.0})
    with pytest.raises(DataError, match=r"\(fit --zone America/Chicago\), whose clock has these offsets"):
        read(table)
    assert read(table, Layout(zone="America/Chicago")).series.clock.labels(0, 1) == ("2024-03-01 00:00-06:00",)
