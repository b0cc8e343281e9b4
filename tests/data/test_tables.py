"""Reading and writing tables of every kind and shape."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ibforecast.core.errors import UsageError
from ibforecast.data.tables import Layout, Table, read, write

KINDS = ("pandas", "polars", "pyarrow")
TYPES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def times(count: int, first: str = "2020-01-01", step: str = "h") -> np.ndarray:
    return np.datetime64(first, "us") + np.arange(count) * np.timedelta64(1, step)


def native(columns: dict[str, Any], kind: str) -> Any:
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


def columns_of(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, pd.DataFrame):
        return {name: table[name].tolist() for name in table.columns}
    return table.to_pydict() if isinstance(table, pa.Table) else table.to_dict(as_series=False)


def wide(kind: str, rows: int = 6) -> Any:
    return native({"when": times(rows), "a": np.arange(rows) * 1.0, "b": np.arange(rows)}, kind)


@pytest.mark.filterwarnings("ignore:a number must be a value, not a mark")  # 99999 may be drawn, and is kept too
@settings(deadline=None, max_examples=25)
@given(
    values=hnp.arrays(
        np.float64, st.tuples(st.integers(3, 9), st.integers(1, 3)), elements=st.floats(-1e6, 1e6) | st.just(np.nan)
    ),
    kind=st.sampled_from(KINDS),
)
def test_values_survive_reading_bit_for_bit(values: np.ndarray, kind: str) -> None:
    columns = {"when": times(len(values))} | {f"c{column}": values[:, column] for column in range(values.shape[1])}
    table = read(native(columns, kind))
    assert table.series.values.tobytes() == np.where(np.isnan(values), np.nan, values).tobytes()
    assert table.series.channels == tuple(columns)[1:]
    assert (table.series.clock.stamps == columns["when"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_table_gives_a_wide_forecast_of_the_same_kind(kind: str) -> None:
    table = read(wide(kind))
    forecast = table.forecast(6, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert table.kind == kind
    assert isinstance(forecast, TYPES[kind])
    assert columns_of(forecast) == {
        "when": [pd.Timestamp("2020-01-01 06:00"), pd.Timestamp("2020-01-01 07:00")],
        "a": [1.0, 3.0],
        "b": [2.0, 4.0],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_table_gives_a_long_forecast_of_the_same_kind(kind: str) -> None:
    columns = {"unique_id": ["x"] * 4 + ["y"] * 3, "ds": np.concatenate([times(4), times(3)]), "y": np.arange(7.0)}
    table = read(native(columns, kind))
    assert table.series.channels == ("x", "y")
    np.testing.assert_array_equal(table.series.values, [[0, 4], [1, 5], [2, 6], [3, np.nan]])
    forecast = table.forecast(4, np.array([[1.0, 2.0]]))
    assert isinstance(forecast, TYPES[kind])
    after = pd.Timestamp("2020-01-01 04:00")
    assert columns_of(forecast) == {"unique_id": ["x", "y"], "ds": [after, after], "IBForecast": [1.0, 2.0]}


def test_names_of_a_long_table_can_be_set_and_integer_ids_stay_integers() -> None:
    frame = pd.DataFrame({"meter": [7, 8] * 3, "at": np.repeat(times(3), 2), "kw": np.arange(6)})
    table = read(frame, Layout(id="meter", target="kw", channels=("8", "7")))
    np.testing.assert_array_equal(table.series.values, [[1, 0], [3, 2], [5, 4]])
    assert table.forecast(3, np.zeros((1, 2)))["meter"].tolist() == [8, 7]


def test_a_resolved_layout_gives_the_same_series_again() -> None:
    table = read(wide("pandas"))
    assert table.layout == Layout(time="when", channels=("a", "b"), shape="wide", frequency="1h")
    assert read(wide("polars"), table.layout).series.sha256 == table.series.sha256


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_time_column_comes_back_with_its_own_type(unit: str) -> None:
    frame = pd.DataFrame({"when": times(4).astype(f"datetime64[{unit}]"), "a": 1.0})
    assert read(frame).forecast(4, np.ones((2, 1)))["when"].dtype == frame["when"].dtype


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_column_keeps_its_time_zone(kind: str) -> None:
    column = pa.array(times(30, "2018-03-24T12")).cast(pa.timestamp("us", "Europe/Berlin"))
    arrow = pa.table({"when": column, "a": pa.array(np.arange(30.0))})
    source = {"pandas": arrow.to_pandas, "polars": lambda: pl.from_arrow(arrow), "pyarrow": lambda: arrow}[kind]()
    table = read(source)
    assert table.series.clock.zone == table.layout.zone == "Europe/Berlin"
    assert table.series.clock.phase(0, 14, 24).tolist() == [13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 3]
    forecast = table.forecast(30, np.ones((1, 1)))
    assert str(columns_of(forecast)["when"][0]) == "2018-03-25 20:00:00+02:00"


def test_local_times_get_the_requested_zone_and_come_back_local() -> None:
    frame = pd.DataFrame({"when": times(5, "2018-07-01"), "a": 1.0})
    table = read(frame, Layout(zone="Europe/Berlin"))
    assert table.series.clock.stamps[0] == np.datetime64("2018-06-30T22:00")
    assert table.series.clock.labels(0, 1) == ("2018-07-01 00:00+02:00",)
    assert table.forecast(5, np.ones((1, 1)))["when"].tolist() == [pd.Timestamp("2018-07-01 05:00")]


def test_days_in_a_zone_are_even_across_a_clock_change() -> None:
    days = pd.date_range("2018-03-20", periods=10, freq="D", tz="Europe/Berlin")
    table = read(pd.DataFrame({"when": days, "a": 1.0}))
    assert table.layout.frequency == "1d"
    assert table.series.clock.labels(9, 2) == ("2018-03-29", "2018-03-30")


def test_times_with_one_offset_in_text_are_utc_unless_a_zone_is_requested(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("when,a\n2018-03-24 01:00+01:00,1\n2018-03-24 02:00+01:00,2\n2018-03-24 03:00+01:00,3\n")
    assert read(path).series.clock.zone == "UTC"
    assert read(path, Layout(zone="Europe/Berlin")).series.clock.phase(0, 3, 24).tolist() == [1, 2, 3]


def test_times_with_several_offsets_follow_the_clock_of_the_requested_zone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("when,a\n2018-03-25 01:00+01:00,1\n2018-03-25 03:00+02:00,2\n2018-03-25 04:00+02:00,3\n")
    assert read(path, Layout(zone="Europe/Berlin")).series.clock.phase(0, 3, 24).tolist() == [1, 3, 4]


def test_several_spellings_of_one_offset_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("when,a\n2018-03-25T01:00Z,1\n2018-03-25T02:00+00:00,2\n2018-03-25T03:00+0000,3\n")
    assert read(path).series.clock.zone == "UTC"


def test_an_unnamed_column_of_times_is_the_time_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(",a\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n")
    table = read(path)
    assert (table.layout.time, table.series.channels) == ("", ("a",))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2020-01-01", "2020-01-02", "2020-01-03"], "1d"),
        (["2020-01-01T00:00", "2020-01-01T01:00", "2020-01-01T02:00"], "1h"),
        (["2020/01/01 00:00", "2020/01/01 00:15", "2020/01/01 00:30"], "15min"),
        (["31.01.2020", "29.02.2020", "31.03.2020"], "1mo"),
    ],
)
def test_times_in_text_are_parsed(texts: list[str], expected: str) -> None:
    assert read(pl.DataFrame({"date": texts, "a": [1, 2, 3]})).layout.frequency == expected


def test_the_time_column_is_found_by_type_then_by_name_then_by_place() -> None:
    texts = ["2020-01-01", "2020-01-02", "2020-01-03"]
    by_type = pl.DataFrame({"a": [1, 2, 3], "anything": times(3)})
    by_name = pl.DataFrame({"a": [1, 2, 3], "Date": texts})
    by_place = pl.DataFrame({"start": texts, "a": [1, 2, 3]})
    assert [read(table).layout.time for table in (by_type, by_name, by_place)] == ["anything", "Date", "start"]


@pytest.mark.parametrize(("name", "expected"), [(None, "time"), ("hour", "hour")])
def test_a_pandas_index_of_times_is_the_time_column(name: str | None, expected: str) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=pd.DatetimeIndex(times(3), name=name))
    table = read(frame)
    assert table.layout.time == expected
    assert read(frame, table.layout).series.sha256 == table.series.sha256


def test_a_lazy_table_is_collected() -> None:
    table = read(wide("polars").lazy())
    assert table.kind == "polars"
    assert table.series.rows == 6


def test_booleans_and_empty_columns_are_read_as_numbers() -> None:
    table = read(pl.DataFrame({"when": times(3), "on": [True, False, None], "never": [None, None, None]}))
    np.testing.assert_array_equal(table.series.values, [[1, np.nan], [0, np.nan], [np.nan, np.nan]])


def test_a_value_can_be_read_as_missing() -> None:
    table = read(pl.DataFrame({"when": times(4), "a": [1, -9999, 3, -1]}), Layout(missing_values=(-9999.0, -1.0)))
    np.testing.assert_array_equal(table.series.values[:, 0], [1, np.nan, 3, np.nan])


def test_filling_puts_rows_on_the_even_grid_and_keeps_the_first_of_repeated_times() -> None:
    when = times(8)[[0, 1, 1, 2, 5, 6]]
    with pytest.warns(UserWarning, match="1 row with a time that appears twice left out"):
        table = read(pl.DataFrame({"when": when, "a": np.arange(6.0)}), Layout(irregular="fill"))
    np.testing.assert_array_equal(table.series.values[:, 0], [0, 1, 3, np.nan, np.nan, 4, 5])
    assert (table.series.clock.stamps == times(7)).all()


def test_filling_may_need_a_finer_grid_than_the_most_common_step() -> None:
    when = times(8)[[0, 2, 4, 5, 7]]
    assert read(pl.DataFrame({"when": when, "a": 1.0}), Layout(irregular="fill", frequency="1h")).series.rows == 8


def test_reading_by_row_number_takes_each_row_as_one_step() -> None:
    when = times(8)[[0, 1, 1, 2, 5, 6]]
    table = read(pl.DataFrame({"when": when, "a": np.arange(6.0)}), Layout(irregular="by_row"))
    assert table.series.rows == 6
    assert table.series.clock.phase(0, 8, 24).tolist() == list(range(8))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_written_table_reads_back_unchanged(kind: str, suffix: str, tmp_path: Path) -> None:
    source = native({"when": times(4), "a": [0.1, None, 1e-17, -3.5], "b c": [1.0, 2.0, 3.0, 4.0]}, kind)
    path = tmp_path / f"table{suffix}"
    write(source, path)
    table = read(path)
    assert table.series.sha256 == read(source).series.sha256
    assert (table.series.clock.stamps == times(4)).all()
    assert table.kind == "pandas"


def test_zoned_times_are_written_for_people_and_read_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": pd.date_range("2018-03-25", periods=4, freq="h", tz="Europe/Berlin"), "a": 1.0})
    write(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[3] == "2018-03-25 03:00+02:00,1.0"
    again = read(tmp_path / "t.csv", read(frame).layout)
    assert again.series.clock.labels(0, 4) == read(frame).series.clock.labels(0, 4)


def test_lists_are_written_as_json(tmp_path: Path) -> None:
    write(pl.DataFrame({"token": ["x"], "values": [[1.0, None]]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'token,values\nx,"[1.0, null]"\n'


def test_a_file_of_another_kind_is_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.csv, \.csv\.gz, \.parquet"):
        write(wide("pandas"), tmp_path / "t.xlsx")
    with pytest.raises(UsageError, match="must end in"):
        read(tmp_path / "t.xlsx")


@pytest.mark.filterwarnings("ignore:a number must be a value, not a mark")
@given(
    values=hnp.arrays(np.float64, (6, 2), elements=st.floats(-1e6, 1e6, width=32)),
    separator=st.sampled_from([";", "\t"]),
    decimal=st.sampled_from([",", "."]),
    dates=st.sampled_from(["%Y-%m-%d", "%d.%m.%Y"]),
)
@settings(max_examples=50)
def test_semicolons_tabs_and_decimal_commas_give_the_same_table(
    values: np.ndarray, separator: str, decimal: str, dates: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("separated")
    frame = pd.DataFrame({"when": pd.date_range("2020-02-01", periods=6), "a": values[:, 0], "b": values[:, 1]})
    frame.to_csv(folder / "plain.csv", index=False)
    frame.to_csv(folder / "other.csv", index=False, sep=separator, decimal=decimal, date_format=dates)
    plain, other = read(folder / "plain.csv").series, read(folder / "other.csv").series
    assert other.values.tobytes() == plain.values.tobytes()
    assert other.clock.stamps.tolist() == plain.clock.stamps.tolist()


def test_commas_in_names_and_whole_numbers_leave_a_table_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('date,"a;b;c;d"\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n')
    assert read(tmp_path / "t.csv").series.channels == ("a;b;c;d",)
    (tmp_path / "t.csv").write_text('date;"a, in °C";b\n01.01.2020;1,5;1\n02.01.2020;2;2\n03.01.2020;,5;3\n')
    series = read(tmp_path / "t.csv").series
    assert series.channels == ("a, in °C", "b")
    assert series.values.tolist() == [[1.5, 1], [2, 2], [0.5, 3]]


def test_names_outside_utf8_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("date,SWDR (W/m²)\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n".encode("latin-1"))
    assert read(tmp_path / "t.csv").series.channels == ("SWDR (W/m²)",)


def test_columns_can_be_turned_into_the_users_kind_of_table() -> None:
    table: Table = read(wide("polars"))
    built = table.build({"channel": ["a"], "start": times(1), "values": [[1.0, 2.0]]})
    assert isinstance(built, pl.DataFrame)
    assert built.to_dict(as_series=False) == {"channel": ["a"], "start": times(1).tolist(), "values": [[1.0, 2.0]]}
