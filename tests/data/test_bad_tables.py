"""Every way a table can be invalid: the error names the rule, the rows and the remedy."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from ibforecast import IBForecaster
from ibforecast.core.errors import DataError, UsageError
from ibforecast.data.axis import SENTINELS
from ibforecast.data.columns import PIECE, in_pieces
from ibforecast.data.sources import load
from ibforecast.data.tables import Layout, read

HOURS = np.datetime64("2020-01-01", "us") + np.arange(10) * np.timedelta64(1, "h")


def table(rows: list[int], **columns: list[object]) -> pl.DataFrame:
    return pl.DataFrame({"when": HOURS[rows]} | (columns or {"a": [1.0] * len(rows)}), strict=False)


def test_no_time_column() -> None:
    with pytest.raises(DataError, match=r"must have a time column \(got none among 'a', 'b'\)"):
        read(pl.DataFrame({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]}))


def test_a_named_time_column_that_is_missing() -> None:
    with pytest.raises(DataError, match=r"time column 'wen' must be in the table .*did you mean 'when'"):
        read(table([0, 1, 2]), Layout(time="wen"))


def test_a_number_is_not_proposed_as_the_time_column() -> None:
    frame = table([0, 1, 2], time_of_use=[1.0, 2.0, 3.0])
    with pytest.raises(DataError, match=r"time column 'time_of_us' must be in the table .*; take 'when', or rename it"):
        read(frame, Layout(time="time_of_us"))
    with pytest.raises(DataError, match=r"time column 'when' must be in the table .*; add a column of times"):
        read(frame.drop("when"), Layout(time="when"))


def test_a_named_time_column_without_times() -> None:
    with pytest.raises(DataError, match=r"must contain times \(got 'I/2/2020' in 'd'\); write them as YYYY-MM-DD"):
        read(pl.DataFrame({"d": ["I/2/2020", "II/2/2020", "III/2/2020"], "a": [1, 2, 3]}), Layout(time="d"))


@pytest.mark.parametrize("way", ["2020-01-{:02}", "{:02}/01/2020", "17000000{}"])
def test_the_one_cell_that_is_no_time_is_found_in_a_long_column(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ibforecast.data.tables.PIECE", 10)
    cells = [way.format(day) for day in range(1, 29)]
    for row in (0, 9, 10, 27):
        odd = [*cells[:row], "total", *cells[row + 1 :]]
        with pytest.raises(DataError, match=rf"must contain times \(got row {row}: 'total' in 'when'\)"):
            read(pl.DataFrame({"when": odd, "a": [1.0] * 28}), Layout(time="when"))


def test_a_long_column_without_times_is_not_looked_at_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr("ibforecast.data.tables._way", lambda cell: seen.append(cell) or "")
    with pytest.raises(DataError, match="must have a time column"):
        read(pl.DataFrame({"when": ["x"] * 300_000, "a": [1.0] * 300_000}))
    assert len(seen) <= 2 * PIECE


def test_a_column_is_parsed_until_its_first_piece_without_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ibforecast.data.columns.PIECE", 10)
    seen: list[int] = []

    def parse(piece: pa.ChunkedArray) -> pa.ChunkedArray | None:
        seen.append(len(piece))
        return None if piece[0].as_py() == "x" else piece

    column = pa.chunked_array([["2020"] * 25, ["x"] * 100])
    assert in_pieces(column, parse) is None
    assert seen == [10, 10, 10, 10]
    assert in_pieces(column[:25], parse).equals(column[:25])


def test_two_columns_of_times() -> None:
    with pytest.raises(DataError, match=r"one time column \(got 'from', 'to'\); name it"):
        read(pl.DataFrame({"from": HOURS[:3], "to": HOURS[1:4], "a": [1, 2, 3]}))


def test_a_row_without_a_time() -> None:
    with pytest.raises(DataError, match=r"every row must have a time \(got row 1"):
        read(pl.DataFrame({"when": [HOURS[0].item(), None, HOURS[2].item()], "a": [1, 2, 3]}))
    with pytest.raises(DataError, match=r"every row must have a time \(got row 1"):
        read(pl.DataFrame({"when": ["2020-01-01 00:00Z", None, "2020-01-01 02:00Z"], "a": [1, 2, 3]}))


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize(("first", "unit"), [(-(2**62), "us"), (253402300799, "s"), (-62135596800, "s")])
def test_a_time_in_a_year_that_dates_do_not_have(first: int, unit: str, zone: str | None) -> None:
    when = pa.array([first + row for row in range(10)], pa.timestamp(unit, zone))
    with pytest.raises(DataError, match=r"a time must be in the years 2 to 9998 \(got row 0: .* in 'when'"):
        read(pa.table({"when": when, "a": [1.0] * 10}))


def test_a_time_that_no_clock_can_count() -> None:
    when = pa.array([2**62 + row for row in range(10)], pa.timestamp("s"))
    with pytest.raises(DataError, match=r"a time must be in the years 2 to 9998"):
        read(pa.table({"when": when, "a": [1.0] * 10}))


def test_numbered_rows_may_stand_for_any_year() -> None:
    when = pa.array([10**12 + row for row in range(10)], pa.timestamp("s"))
    assert read(pa.table({"when": when, "a": [1.0] * 10}), Layout(numbered=True)).series.rows == 10


def test_a_zone_whose_offset_is_longer_than_a_day() -> None:
    when = pa.array(HOURS, pa.timestamp("us", "+99:00"))
    with pytest.raises(UsageError, match="a time zone must be one of the IANA list"):
        read(pa.table({"when": when, "a": [1.0] * 10}))


def test_unsorted_times() -> None:
    message = r"must increase \(got row 3: 2020-01-01 01:00 comes after 2020-01-01 02:00\); sort the table by 'when'"
    with pytest.raises(DataError, match=message):
        read(table([0, 1, 2, 1, 3]))


def test_repeated_times() -> None:
    with pytest.raises(DataError, match=r"row 2: 2020-01-01 01:00 appears twice\).*by_row.*fill"):
        read(table([0, 1, 1, 2, 3]))


def test_gaps_in_time_name_three_rows_and_count_the_rest() -> None:
    days = np.datetime64("2020-01-01", "us") + np.array([0, 1, 2, 3, 4, 5, 7, 10, 14, 19]) * np.timedelta64(1, "D")
    message = r"here of 1d \(got row 6: 2020-01-08 00:00 follows 2020-01-06 00:00; row 7: .*; row 8: .*; and 1 more\)"
    with pytest.raises(DataError, match=message):
        read(pl.DataFrame({"when": days, "a": [1.0] * 10}))


def test_a_missing_month() -> None:
    months = ["2020-01-01", "2020-02-01", "2020-03-01", "2020-05-01"]
    with pytest.raises(DataError, match=r"here of 1mo \(got row 3: 2020-05-01 00:00 follows 2020-03-01 00:00\)"):
        read(pl.DataFrame({"date": months, "a": [1, 2, 3, 4]}))


def test_sentinels_are_mentioned_when_a_gap_is_reported() -> None:
    message = r"-9999 in 'a' looks like .* set missing_values=\(-9999,\) \(fit --missing-value -9999\)"
    with pytest.raises(DataError, match=message):
        read(table([0, 1, 2, 4], a=[1, -9999, 2, 3]))


def test_sentinels_in_a_readable_table_cause_one_warning() -> None:
    bad = table(list(range(6)), a=[1, -9999, 2, 3, -9999, 1], b=[1.0, 2.0, 3.0, 9999.0, None, 1.0])
    message = (
        r"not a mark for a missing one \(read as numbers: 2 x -9999 in 'a', 1 x 9999 in 'b'\); if it is one, "
        r"set missing_values=\(-9999, 9999\) \(fit --missing-value -9999 --missing-value 9999\)$"
    )
    with pytest.warns(UserWarning, match=message) as warned:
        values = read(bad).series.values
    assert len(warned) == 1
    assert (values == -9999).sum() == 2
    with pytest.warns(UserWarning, match=r"1 x 9999 in 'b'\); if it is one, set missing_values=\(9999,\)"):
        read(bad, Layout(missing_values=(-9999.0,)))


def test_declared_sentinels_and_those_of_other_channels_cause_no_warning() -> None:
    bad = table(list(range(4)), a=[1, -9999, 2, 3], b=[1, 2, 3, 4])
    assert np.isnan(read(bad, Layout(missing_values=(-9999.0,))).series.values).sum() == 1
    assert read(bad, Layout(channels=("b",))).series.channels == ("b",)


@pytest.mark.parametrize("others", [[9998, 9998, 9998], [12000, 12001, 9000], [0, 5000, 8000], [-9990, 100, -50]])
@pytest.mark.parametrize("mark", SENTINELS)
def test_a_number_close_to_others_is_not_a_sentinel(mark: float, others: list[int]) -> None:
    scale = abs(mark) / 9999
    read(table(list(range(4)), a=[mark, *(np.sign(mark) * np.abs(others) * scale)]))


@pytest.mark.parametrize(
    ("mark", "others"), [(-999, [0, 500, 1000]), (-9999, [20000, 35000, 59000]), (9999, [0, 0, 0])]
)
def test_a_number_far_from_all_others_is_a_sentinel(mark: int, others: list[int]) -> None:
    with pytest.warns(UserWarning, match=rf"1 x {mark} in 'a'"):
        read(table(list(range(4)), a=[mark, *others]))


@pytest.mark.parametrize(
    "mark", [1e20, 9.969209968386869e36, 1e30, -1e34, float(np.float32(1e20)), float(np.finfo("f4").max)]
)
def test_a_huge_number_that_repeats_exactly_is_named_so_that_it_can_be_declared(mark: float) -> None:
    bad = table(list(range(6)), a=[1.0, mark, 2.0, 3.0, mark, 1.0])
    with pytest.warns(UserWarning, match=r"2 x .* in 'a'\); if it is one, set missing_values=\((.*),\)") as warned:
        read(bad)
    named = re.search(r"--missing-value (\S+)\)", str(warned[0].message))
    assert named is not None
    assert float(named[1]) == mark
    assert np.isnan(read(bad, Layout(missing_values=(float(named[1]),))).series.values).sum() == 2


def test_huge_values_that_differ_and_channels_of_huge_values_have_no_mark() -> None:
    read(table(list(range(6)), a=[1.0, 1e20, 2.0, 3.0, 2e20, 1.0]))
    read(table(list(range(6)), a=np.array([1.0, 1.5, 1.5, 1.2, 1.7, 0.9]) * 1e20))


def test_a_constant_channel_has_no_sentinel() -> None:
    read(table([0, 1, 2], a=[-999, -999, -999]))


def test_a_time_off_the_grid_cannot_be_filled() -> None:
    odd = np.append(HOURS[:3], HOURS[3] + np.timedelta64(7, "m"))
    with pytest.raises(DataError, match=r"steps of 1h .*\(got row 3: 2020-01-01 03:07\)"):
        read(pl.DataFrame({"when": odd, "a": [1, 2, 3, 4]}), Layout(irregular="fill"))


def test_a_grid_that_is_mostly_gap_is_not_filled() -> None:
    minutes = np.datetime64("2020-01-01", "us") + np.array([0, 1, 2, 10_519_200]) * np.timedelta64(1, "m")
    with pytest.raises(
        DataError,
        match=r"at most 100 times .*10,519,201 steps of 1min for 4 rows.* row 3: 2040-01-01 00:00 follows "
        r"2020-01-01 00:02\); correct the time",
    ):
        read(pl.DataFrame({"when": minutes, "a": [1.0] * 4}), Layout(irregular="fill"))
    year = np.append(HOURS[:3], HOURS[0] + np.timedelta64(9000, "h"))
    assert read(pl.DataFrame({"when": year, "a": [1.0] * 4}), Layout(irregular="fill")).series.rows == 9001


@pytest.mark.parametrize("irregular", ["error", "by_row", "fill"])
def test_another_frequency_than_requested_is_refused(irregular: str) -> None:
    with pytest.raises(DataError, match=r"got steps of 1h, requested 15min\)"):
        read(table([0, 1, 2, 3]), Layout(frequency="15min", irregular=irregular))  # type: ignore[arg-type]


def test_text_in_a_channel() -> None:
    with pytest.raises(DataError, match=r"must contain numbers \(got row 1: 'broken' at 2020-01-01 01:00 in 'a'\)"):
        read(table([0, 1, 2], a=["1", "broken", "3"]))


@pytest.mark.parametrize("cells", [["1,5", "2,25", "3"], ["-1,5", None, "2,5e3"]])
def test_decimal_commas(cells: list[object]) -> None:
    with pytest.raises(DataError, match=r"row 0: '-?1,5' .* in 'a'\); write decimal marks as points, not commas: 1\.5"):
        read(table([0, 1, 2], a=cells))


def test_decimal_commas_mixed_with_other_text() -> None:
    with pytest.raises(DataError, match=r"row 1: 'broken' .*\); .* otherwise correct the cells"):
        read(table([0, 1, 2], a=["1,5", "broken", "3"]))


def test_quoted_decimal_commas_in_a_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('date,a\n2020-01-01,"1,5"\n2020-01-02,"2,5"\n2020-01-03,"3,5"\n')
    with pytest.raises(DataError, match=r"row 0: '1,5' .* in 'a'\); write decimal marks as points"):
        read(tmp_path / "t.csv")


def test_text_among_the_numbers_of_a_pandas_column() -> None:
    frame = pd.DataFrame({"when": HOURS[:3], "a": pd.Series([1.0, "n/a?", None], dtype=object)})
    with pytest.raises(DataError, match=r"row 1: 'n/a\?' at 2020-01-01 01:00 in 'a'"):
        read(frame)


def test_text_far_down_a_csv(tmp_path: Path) -> None:
    when = pd.date_range("2020-01-01", periods=60_000, freq="min").astype(str)
    values = ["1"] * 59_999 + ["oops"]
    path = tmp_path / "long.csv"
    path.write_text("date,a\n" + "\n".join(f"{time},{value}" for time, value in zip(when, values, strict=True)))
    with pytest.raises(DataError, match=r"row 59999: 'oops' .* in 'a'"):
        read(path)


def test_times_in_a_channel() -> None:
    with pytest.raises(DataError, match="got times in 'other'"):
        read(pl.DataFrame({"date": HOURS[:3], "other": HOURS[:3]}))


def test_infinities() -> None:
    with pytest.raises(DataError, match=r"must be finite \(got row 2: -inf at 2020-01-01 02:00 in 'b'\)"):
        read(table([0, 1, 2], a=[1.0, 2.0, 3.0], b=[1.0, 2.0, -np.inf]))


def test_too_few_rows() -> None:
    with pytest.raises(DataError, match=r"at least 3 rows .*\(got 2\)"):
        read(table([0, 1]))


def test_an_empty_table() -> None:
    with pytest.raises(DataError, match=r"must have rows and columns \(got 0 x 2\)"):
        read(table([]))


def test_a_table_with_only_times() -> None:
    with pytest.raises(DataError, match="must have a channel"):
        read(pl.DataFrame({"when": HOURS}))


def test_a_channel_that_is_missing() -> None:
    with pytest.raises(DataError, match=r"channel 'lod_kw' must be in the table .*did you mean 'load_kw'"):
        read(table([0, 1, 2], load_kw=[1, 2, 3]), Layout(channels=("lod_kw",)))


def test_the_same_channel_requested_twice() -> None:
    with pytest.raises(UsageError, match="name each once"):
        Layout(channels=("a", "a"))


def test_two_channels_with_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("date,a,a\n2020-01-01,1,2\n2020-01-02,1,2\n2020-01-03,1,2\n")
    frame = pd.DataFrame([[HOURS[0], 1, 2]], columns=["when", "a", "a"])
    for source in (tmp_path / "t.csv", frame, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])):
        with pytest.raises(DataError, match="channel names must differ"):
            read(source)


@pytest.mark.parametrize(("first", "row"), [("2018-03-24T23", 3), ("2018-10-28T00", 2)])
def test_local_times_that_the_clock_skipped_or_repeated(first: str, row: int) -> None:
    local = np.datetime64(first, "us") + np.arange(8) * np.timedelta64(1, "h")
    with pytest.raises(DataError, match=rf"clock of Europe/Berlin showed exactly once \(got row {row}: "):
        read(pl.DataFrame({"when": local, "a": [1.0] * 8}), Layout(zone="Europe/Berlin"))


@pytest.mark.parametrize(
    ("minutes", "rule"), [(60, r"even steps.*02:00 appears twice"), (30, r"must increase .*02:00 comes after .*02:30")]
)
def test_after_a_clock_change_a_zone_is_proposed_and_reads_the_table(minutes: int, rule: str) -> None:
    utc = np.datetime64("2018-10-27T12", "us") + np.arange(40) * np.timedelta64(minutes, "m")
    back = (utc >= np.datetime64("2018-10-28T01")) * np.timedelta64(1, "h")
    local = utc + np.timedelta64(2, "h") - back
    with pytest.raises(DataError, match=rule + r".*zone='Europe/Berlin' \(fit --zone Europe/Berlin\).*twice"):
        read(pl.DataFrame({"when": local, "a": [1.0] * 40}))
    clock = read(pl.DataFrame({"when": local, "a": [1.0] * 40}), Layout(zone="Europe/Berlin")).series.clock
    assert (clock.stamps == utc).all()


BACK = np.datetime64("2018-10-28T00", "us") + np.array([0, 1, 2, 2, 3, 4]) * np.timedelta64(1, "h")
"""The hours of a night in which the clock of Berlin was put back."""


def test_the_doubled_hour_of_a_long_table_is_read_by_the_order_of_the_rows_of_each_channel() -> None:
    by_time = pl.DataFrame({"unique_id": ["x", "y"] * 6, "ds": np.repeat(BACK, 2), "y": np.arange(12.0)})
    series = read(by_time, Layout(zone="Europe/Berlin")).series
    assert (np.diff(series.clock.stamps) == np.timedelta64(1, "h")).all()
    np.testing.assert_array_equal(series.values[:, 1], [1, 3, 5, 7, 9, 11])
    by_channel = read(by_time.sort("unique_id", maintain_order=True), Layout(zone="Europe/Berlin")).series
    np.testing.assert_array_equal(by_channel.values, series.values)


def test_the_doubled_hour_of_a_csv_file_is_read_and_of_a_single_one_nobody_knows_which(tmp_path: Path) -> None:
    times = [f"28.10.2018 {hour:02}:00" for hour in (0, 1, 2, 2, 3, 4)]
    path = tmp_path / "lastgang.csv"
    path.write_text("Zeit;Last\n" + "".join(f"{time};{row},5\n" for row, time in enumerate(times)))
    table = read(path, Layout(zone="Europe/Berlin"))
    assert table.series.clock.labels(2, 2) == ("2018-10-28 02:00+02:00", "2018-10-28 02:00+01:00")
    assert table.series.values[:, 0].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    single = pl.DataFrame({"when": np.delete(BACK, 3), "a": [1.0] * 5})
    with pytest.raises(DataError, match=r"exactly once \(got row 2: 2018-10-28 02:00\); .* first in summer time"):
        read(single, Layout(zone="Europe/Berlin"))


def test_without_a_zone_a_doubled_hour_is_never_left_out_silently() -> None:
    with pytest.warns(UserWarning, match=r"1 row with a time that appears twice left out: 2018-10-28 02:00\).*zone="):
        read(pl.DataFrame({"when": BACK, "a": np.arange(6.0)}), Layout(irregular="fill"))


def test_a_missing_day_is_not_blamed_on_the_clock() -> None:
    with pytest.raises(DataError) as caught:
        read(table([3, 4, 5, 6, 7, 9]))
    assert "zone" not in str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "text", "arrow"])
def test_several_offsets_without_a_zone(kind: str, tmp_path: Path) -> None:
    texts = ["2018-03-25T01:00+01:00", "2018-03-25T03:00+02:00", "2018-03-25T04:00+02:00"]
    path = tmp_path / "t.csv"
    path.write_text("when,a\n" + "".join(f"{text},1\n" for text in texts))
    source = {"csv": path, "text": pl.DataFrame({"when": texts, "a": [1, 1, 1]}), "arrow": load(path)[0]}[kind]
    message = r"one offset, or a zone .*\(got \+01:00, \+02:00 in 'when'\); give the zone, such as zone='Europe/Berlin'"
    with pytest.raises(DataError, match=message):
        read(source)


def test_a_long_table_without_the_required_columns() -> None:
    with pytest.raises(DataError, match="must have the columns 'unique_id' and 'y'"):
        read(table([0, 1, 2]), Layout(shape="long"))


def test_a_long_table_with_a_repeated_time_in_a_channel() -> None:
    frame = pl.DataFrame({"unique_id": ["x", "y"] * 4, "ds": HOURS[[0, 0, 1, 1, 2, 1, 3, 2]], "y": np.arange(8.0)})
    with pytest.raises(DataError, match=r"one value per time \(got row 5: 2020-01-01 01:00 appears twice\)"):
        read(frame)
    with pytest.warns(UserWarning, match="1 row with a time that appears twice left out: 2020-01-01 01:00"):
        filled = read(frame, Layout(irregular="fill")).series.values
    np.testing.assert_array_equal(filled[:, 1], [1, 3, 7, np.nan])


def test_a_long_table_unsorted_within_a_channel() -> None:
    frame = pl.DataFrame({"unique_id": ["x"] * 4, "ds": HOURS[[0, 2, 1, 3]], "y": np.arange(4.0)})
    with pytest.raises(DataError, match=r"must increase \(got row 2"):
        read(frame)


def test_an_object_that_is_not_a_table() -> None:
    with pytest.raises(
        UsageError, match=r"a path or a pandas, polars or pyarrow table \(got ndarray\); give pandas.DataF"
    ):
        read(np.zeros((3, 3)))
    with pytest.raises(UsageError, match=r"\(got Series\); give series.to_frame\('load'\)"):
        read(pd.Series([1.0, 2.0]))
    with pytest.raises(UsageError, match=r"\(got object\); convert it to one of these"):
        read(object())


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a file that exists"):
        read(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz"])
def test_a_file_whose_content_does_not_match_its_suffix(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"date,a\n")
    with pytest.raises(DataError, match="whole and well formed"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "rule"),
    [("", "whole and well formed"), ("date,a\n2020-01-01,1\n2020-01-02\n", "must have as many cells as its first one")],
)
def test_a_csv_that_is_empty_or_ragged(text: str, rule: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=rule):
        read(tmp_path / "t.csv")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_points_between_semicolons_that_may_mean_thousands(separator: str, tmp_path: Path) -> None:
    rows = ["date,a,b", *(f"2020-01-0{day},{day}.250,{day}" for day in range(1, 8)), "2020-01-08,900,3"]
    (tmp_path / "t.csv").write_text("\n".join(rows).replace(",", separator))
    with pytest.raises(
        DataError, match=r"numbers must have one meaning where .* \(got row \d: '1.250' in 'a', which is 1 or"
    ):
        read(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("\n".join(rows).replace(",", separator).replace("900", "900.5"))
    assert read(tmp_path / "t.csv").series.values[0].tolist() == [1.25, 1.0]


@pytest.mark.parametrize("times", ["2020-01-01", "2020-01-01 00:00Z"])
def test_a_csv_is_read_from_memory(times: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a Python file a thread reads ahead; it may outlive an error and abort the process at exit."""
    sources, read_csv = [], arrow_csv.read_csv
    monkeypatch.setattr(arrow_csv, "read_csv", lambda source, **how: sources.append(source) or read_csv(source, **how))
    (tmp_path / "t.csv").write_text(f"date,a\n{times},1\n")
    load(tmp_path / "t.csv")
    assert sources
    assert all(isinstance(source, pa.BufferReader) for source in sources)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("t.xlsx", "save the spreadsheet as CSV or Parquet"),
        ("T.ODS", "save the .*"),
        ("t.json", "convert or rename it"),
    ],
)
def test_a_file_of_another_kind(name: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=rf"must end in .* \(got '{name}'\); {remedy}$"):
        read(name)


def test_the_weather_file_as_a_users_table(data_folder: Path) -> None:
    path = data_folder / "weather.csv.gz"
    with pytest.raises(DataError) as caught:
        read(path)
    assert "row 19044: 2020-05-12 06:00 appears twice; row 21514: 2020-05-29 11:10 follows 2020-05-29 09:30" in str(
        caught.value
    )
    assert "missing_values=(-9999,)" in str(caught.value)
    with pytest.warns(UserWarning, match="read as numbers: .*50 x -9999 in 'OT'"):
        assert read(path, Layout(irregular="by_row")).series.rows == 52_696
    with pytest.warns(UserWarning, match="appears twice left out: 2020-05-12 06:00"):
        filled = read(path, Layout(irregular="fill", missing_values=(-9999.0,))).series
    assert filled.rows == 366 * 144
    assert not (filled.values == -9999).any()
    assert np.isnan(filled.values).all(axis=1).sum() == 9


@pytest.mark.parametrize(
    ("cells", "named", "remedy"),
    [
        (["1", "1,234.5", "7"], r"row 1: '1,234.5' at 2020-01-01 01:00 in", "1234.5 instead of 1,234.5"),
        (["0,5", "37,25", "1.234,5"], r"got row 2: '1.234,5' at", "1234,5 instead of 1.234,5"),
        (["0,5", "1.234", "37,25"], r"got row 1: '1.234' at 2020-01-01 01:00 in", "1234 instead of 1.234"),
        (["7", "1,234", "999"], r"got row 1: '1,234' at", "1234 instead of 1,234, or 1.234 if the comma is a decimal"),
        (["7", "1,234,567", "999"], r"got row 1: '1,234,567' at", "1234567 instead of 1,234,567$"),
        (["1 234,5", "1'234.5", "1.234.567"], r"row 0: .*row 1: .*row 2: ", "1234,5 instead of 1 234,5"),
        (["1,5", "1,234", "3"], r"row 0: '1,5' .*row 1: '1,234'", "decimal marks as points"),
        (["1,5", "1.234,5", "n/a?"], r"got row 2: 'n/a\?' at", "correct the cells"),
    ],
)
def test_marks_between_thousands_are_named_with_their_rows_and_the_number_to_write(
    cells: list[str], named: str, remedy: str
) -> None:
    with pytest.raises(DataError, match=named) as refused:
        read(table([0, 1, 2], a=cells))
    assert re.search(remedy, refused.value.remedy)


# --- Columns without any number ---


def refused(columns: dict[str, object], **layout: Any) -> DataError:
    with pytest.raises(DataError, match="a channel must contain numbers") as raised:
        read(pd.DataFrame(columns), Layout(**layout))
    return raised.value


def test_columns_of_words_are_all_named_with_the_channels_that_are_left() -> None:
    words = {
        "time": HOURS[:5],
        "load kW": np.arange(5.0),
        "state": ["OK", None, "OK", None, "OK"],
        "site": pd.Categorical(list("abcde")),
    }
    error = refused(words | {"heat": [1.0] * 5})
    assert error.got == "text such as 'OK' in 'state', text such as 'a' in 'site'"
    assert error.remedy == "leave them out by naming the channels (fit --channels 'load kW,heat')"


@pytest.mark.parametrize("cell", ["$2,129.90", "85 %", "?7", "-"])
def test_a_column_with_text_like_numbers_is_named_by_its_rows(cell: str) -> None:
    assert "row 0" in refused({"time": HOURS[:5], "a": [cell, "1", "n/a?", "2", "3"]}).got


def test_words_that_tell_series_apart_are_proposed_as_ids() -> None:
    ragged = {"time": HOURS[[0, 1, 2, 3, 4, 5, 6, 0]], "meter": ["M-1"] * 7 + ["M-2"], "kWh": np.arange(8.0)}
    assert "fit --id meter --target kWh" in refused(ragged).remedy
    assert "fit --id meter --target NAME" in refused(ragged | {"V": np.arange(8.0)}).remedy
    assert read(pd.DataFrame(ragged), Layout(id="meter", target="kWh")).series.channels == ("M-1", "M-2")
    # The same word twice at one time is no id.
    assert "--id" not in refused(ragged | {"meter": ["M-1"] * 8}).remedy


def test_further_times_are_proposed_as_the_time_column() -> None:
    days = {"date": pd.date_range("2024-01-01", periods=5), "ts": HOURS[:5], "a": np.arange(5.0)}
    error = refused(days)
    assert error.got == "times in 'ts'"
    assert "if the times are those of 'ts' and not of 'date', name it (fit --time ts --channels a)" in error.remedy


def test_a_table_of_words_only_has_nothing_to_leave() -> None:
    assert refused({"time": HOURS[:5], "state": ["OK"] * 5}).remedy == "give a table with numbers"


# --- A time column that cannot be read ---


@pytest.mark.parametrize("cell", ["week 7", 17, "31.12.2023 25:00"])
def test_a_column_that_is_called_a_time_and_is_none_is_named_with_its_first_cell(cell: object) -> None:
    with pytest.raises(DataError, match="a table must have a time column") as raised:
        read(pd.DataFrame({"a": np.arange(5.0), "Date": [cell] * 5}))
    assert raised.value.got == f"none among 'a', 'Date'; 'Date' has {cell!r}, which is not read as a time"


# --- Texts that mean missing values ---


@pytest.mark.parametrize("mark", [".", "-", "--", "?", "nil", ":", "*", "keine Daten"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_text_that_means_a_missing_value_is_proposed_and_then_read_as_one(mark: str, kind: Any) -> None:
    columns = {"time": HOURS[:6], "a": ["1.5", mark, "2", f" {mark} ", "4e1", None], "b": [1.0] * 6}
    error = refused(columns)
    assert f"if {mark!r} means a missing value, set missing_values=[{mark!r}]" in error.remedy
    words = shlex.split(re.search(r"\(fit (.*?)\)", error.remedy)[1])  # type: ignore[index]
    assert words == ["--missing-value", mark]
    values = read(kind(columns), Layout(missing_texts=(mark,))).series.values[:, 0]
    np.testing.assert_array_equal(values, [1.5, np.nan, 2.0, np.nan, 40.0, np.nan])


def test_several_texts_are_proposed_at_once_and_many_are_not() -> None:
    columns = {"time": HOURS[:8], "a": ["1", "-", "2", "?", "3", "nil", "4", "5"]}
    assert "missing_values=['-', '?', 'nil'] (fit --missing-value - " in refused(columns).remedy
    words = {"time": HOURS[:8], "a": ["1", "north", "south", "east", "west", "2", "3", "4"]}
    assert "--missing-value" not in refused(words).remedy


@pytest.mark.parametrize("mark", ["-", "k. A."])
def test_texts_between_numbers_with_decimal_commas(mark: str, tmp_path: Path) -> None:
    rows = [f"2024-01-01 0{hour}:00;{hour},5;{mark if hour == 3 else hour}" for hour in range(8)]
    (tmp_path / "t.csv").write_text("\n".join(["time;a;b", *rows, f"2024-01-01 08:00;{mark};8"]))
    values = read(tmp_path / "t.csv", Layout(missing_texts=(mark,))).series.values
    np.testing.assert_array_equal(values[:, 0], [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, np.nan])
    np.testing.assert_array_equal(values[:, 1], [0, 1, 2, np.nan, 4, 5, 6, 7, 8])


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("47.9%", "47.9"),
        ("47.9 %", "47.9"),
        ("€46.3", "46.3"),
        ("12 MW", "12"),
        ("3.1 m/s", "3.1"),
        ("-4°C", "-4"),
        ("5$", "5"),
    ],
)
def test_a_unit_in_a_cell_is_named_with_the_number_without_it(cell: str, number: str) -> None:
    error = refused({"time": HOURS[:5], "a": ["1", cell, "2", "3", "4"]})
    assert f"write numbers without a unit or a sign: {number} instead of {cell}" in error.remedy


def test_times_that_are_on_no_grid_are_not_proposed_to_be_filled() -> None:
    times = HOURS[:8] + np.array([0, 0, 0, 7, 0, 0, 11, 0]).astype("timedelta64[s]")
    with pytest.raises(DataError, match=r"table.resample\('1h', on='time'\).mean\(\)") as raised:
        read(pd.DataFrame({"time": times, "a": np.arange(8.0)}))
    assert "--irregular fill" not in raised.value.remedy
    even = pd.DataFrame({"time": times, "a": np.arange(8.0)}).resample("1h", on="time").mean()
    assert read(even).series.rows == 8


def test_a_model_reads_later_tables_with_the_texts_of_training(tmp_path: Path) -> None:
    hours = np.datetime64("2024-01-01", "us") + np.arange(200) * np.timedelta64(1, "h")
    cells = [f"{hour % 24}" if hour % 50 else "-" for hour in range(200)]
    table = pd.DataFrame({"time": hours, "a": cells})
    settings = {"horizon": 3, "look_back": 24, "epochs": 1, "sealed": True, "device": "cpu"}
    model = IBForecaster(**settings, missing_values=["-", -9.0]).fit(table)  # type: ignore[arg-type]
    model.save(tmp_path / "model")
    loaded = IBForecaster.load(tmp_path / "model")
    assert loaded.missing_values == (-9.0, "-")
    loaded.explain(table).verify(table)
    table["a"] = table["a"].replace("-", None).astype(float)
    pd.testing.assert_frame_equal(loaded.predict(table), model.predict(table))
