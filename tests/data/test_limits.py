"""Tables made to exhaust memory, or damaged: refused before they are parsed, by any way in."""

import gzip
import io
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from ibforecast.core.errors import DataError
from ibforecast.data import limits, sources
from ibforecast.data.limits import LONGEST_HEADER, LONGEST_NAME, MOST_COLUMNS
from ibforecast.data.sources import load, write
from ibforecast.data.tables import read

COMMAS = b"," * 1_000_000
ROWS = b"time,load\n" + b"".join(b"2024-01-%02d,%d\n" % (day, day) for day in range(1, 29))


@pytest.mark.parametrize(
    "content",
    [COMMAS, b"\r\n" * 3 + COMMAS, b'"\n"' + COMMAS, COMMAS * 3, COMMAS + b"\n" + COMMAS],
    ids=["one line", "after empty lines", "after a quoted line end", "beyond the header's limit", "twice"],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_file_of_a_million_commas_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"wide{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == ".csv.gz" else content)
    monkeypatch.setattr(sources, "_read_csv", lambda content: pytest.fail("it was parsed"))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"at most 10,000 columns \(got 1,0\d\d,\d+\); split the table"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "build", [pd.DataFrame, pl.DataFrame, pa.table, pl.LazyFrame], ids=["pandas", "polars", "pyarrow", "lazy"]
)
def test_a_table_in_memory_is_bounded_as_a_file_is(build: Callable[[dict[str, list[float]]], Any]) -> None:
    columns = {f"c{number}": [1.0] for number in range(MOST_COLUMNS)}
    assert load(build(columns))[0].num_columns == MOST_COLUMNS
    with pytest.raises(DataError, match=r"at most 10,000 columns \(got 10,001\)"):
        load(build(columns | {"more": [1.0]}))
    with pytest.raises(DataError, match=r"at most 1,000 characters \(got 1,001 in 'nnn"):
        load(build({"n" * (LONGEST_NAME + 1): [1.0]}))


def test_a_table_of_results_may_have_more_columns_than_one_to_read(tmp_path: Path) -> None:
    write(pa.table({f"c{number}": [1.0] for number in range(MOST_COLUMNS + 1)}), tmp_path / "wide.parquet")
    with pytest.raises(DataError, match=r"at most 10,000 columns \(got 10,001\)"):
        load(tmp_path / "wide.parquet")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", None])
def test_cells_are_counted_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    table = pa.table({"a": [1.0] * 50, "b": [2.0] * 50})
    if name is not None:
        write(table, tmp_path / name)
    source = table if name is None else tmp_path / name
    load(source)
    monkeypatch.setattr(limits, "MOST_CELLS", 99)
    with pytest.raises(DataError, match=r"at most 99 cells \(got 5[01] rows of 2 columns\); give fewer"):
        load(source)


def test_a_long_table_cannot_become_a_wide_one_beyond_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = np.datetime64("2024-01-01", "us") + np.arange(30) * np.timedelta64(1, "h")
    apart = pd.DataFrame({"unique_id": [f"m{row}" for row in range(30)], "ds": hours, "y": 1.0})
    monkeypatch.setattr(limits, "MOST_CELLS", 800)
    with pytest.raises(DataError, match=r"at most 800 cells \(got 30 rows of 30 columns\)"):
        read(apart)
    monkeypatch.setattr(limits, "MOST_COLUMNS", 29)
    with pytest.raises(DataError, match=r"at most 29 ids that are read \(got 30\)"):
        read(apart)


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LONGEST_TEXT", 2 * LONGEST_HEADER)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(ROWS + b" " * (2 * LONGEST_HEADER)))
    with pytest.raises(DataError, match=r"at most 2,097,152 bytes of text \(got 'bomb.csv.gz'\); use Parquet"):
        load(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"n" * (LONGEST_NAME + 1) + b",b\n1,2\n", "at most 1,000 characters"),
        (b"n" * 200_000 + b"," * 800_000, "must begin with the names of its columns"),
        (b'"' + b"n\n" * 200_000, "must begin with the names of its columns"),
        ((b"n" * 900 + b",") * 2_000, "first line of a .csv file must have at most 1,048,576 bytes"),
    ],
    ids=["a long name", "a name too long for a cell", "a quote that never ends", "many long names"],
)
def test_a_header_that_is_too_long_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=words):
        load(path)


@pytest.mark.parametrize("position", range(0, 120, 3))
def test_a_damaged_file_is_either_refused_as_data_or_read(tmp_path: Path, position: int) -> None:
    (tmp_path / "t.csv").write_bytes(ROWS)
    write(load(tmp_path / "t.csv")[0], tmp_path / "t.parquet")
    for name, whole in (("t.csv.gz", gzip.compress(ROWS)), ("t.parquet", (tmp_path / "t.parquet").read_bytes())):
        place = position * len(whole) // 120
        for damaged in (whole[:place], whole[:place] + b"\xff" * 4 + whole[place + 4 :]):
            (tmp_path / name).write_bytes(damaged)
            with suppress(DataError):
                read(tmp_path / name)


def test_a_gzipped_file_with_an_invalid_block_is_a_data_error(tmp_path: Path) -> None:
    whole, path = gzip.compress(ROWS), tmp_path / "t.csv.gz"
    path.write_bytes(whole[:20] + b"\xff" * 4 + whole[24:])
    with pytest.raises(DataError, match=r"\.csv\.gz file must be whole and well formed .*; export it again"):
        load(path)


@pytest.mark.parametrize("place", ["name", "cell"])
def test_text_in_parquet_that_is_not_utf8_is_a_data_error(tmp_path: Path, place: str) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a" if place == "cell" else "nämé": ["nämé" if place == "cell" else "a"] * 3})
    parquet.write_table(table, path, compression="none", store_schema=False)
    path.write_bytes(path.read_bytes().replace("nämé".encode(), b"n\xff\xffm\xff\xff"))
    with pytest.raises(DataError, match=r"\.parquet file must be whole and well formed"):
        load(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused_by_name(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(ROWS.decode().encode(encoding))
    with pytest.raises(
        DataError, match=r"text in UTF-8 \(got bytes that are zero, as in UTF-16, in 't\.csv'\); save it again"
    ):
        load(path)


@pytest.mark.parametrize("cell", ["1_000", "１２", "٣", "1e1_0", "0b1", "1.5.", "--1", "e5", "."])
def test_text_that_only_python_reads_as_a_number_is_refused(cell: str) -> None:
    days = [f"2024-01-{day:02d}" for day in range(1, 6)]
    with pytest.raises(DataError, match=r"a channel must contain numbers \(got row 2"):
        read(pa.table({"time": days, "a": ["1", "2.5", cell, "4", "5"]}))


@pytest.mark.parametrize("cell", ["1000", " 12 ", "-1.5e3", "+.5", "7.", "1E-3", None])
def test_numbers_as_text_are_read(cell: str | None) -> None:
    days = [f"2024-01-{day:02d}" for day in range(1, 6)]
    values = read(pa.table({"time": days, "a": [" 1", "2.5", cell, "4", "5"]})).series.values
    np.testing.assert_equal(values[2, 0], np.nan if cell is None else float(cell))


def test_a_file_is_read_in_pieces_so_that_little_memory_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = list[int]()

    class File(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            requested.append(-1 if size is None else size)
            return super().read(size)

    monkeypatch.setattr(sources, "PIECE", 1000)
    assert sources._read_on(File(b"x" * 2500), b"head") == b"head" + b"x" * 2500
    assert requested == [1000] * 4
    monkeypatch.setattr(sources, "LONGEST_TEXT", 1500)
    assert len(sources._read_on(File(b"x" * 2500), b"head")) == 1501
