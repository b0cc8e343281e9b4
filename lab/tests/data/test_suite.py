"""The tables of the suite: their facts, their reader and the roles of their columns."""

import gzip
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ibforecast.core.errors import DataError
from ibforecast.data import tables
from ibforecast.data.tables import Layout
from ibforecast.fitting import cycles_of
from ibforecast.settings import Settings
from ibforecast_lab.data import suite
from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.data.suite import KNOWN, PARTS, SUITE, SuiteTable, load, locate, parse

TEXT = "date,a_P,a_Q,b_P,b_Q\n" + "".join(
    f"2020-01-01 {hour:02}:00:00,{hour},{10 + hour},{'' if hour == 2 else 20 + hour},{30 + hour}\n"
    for hour in (0, 1, 2, 4, 5)
)
TINY = SuiteTable("tiny", 6, 4, "1h", 24, (24,), (2,), "c", "o", "l", hashlib.sha256(TEXT.encode()).hexdigest())


def write(folder: Path, content: bytes) -> None:
    (folder / "tables").mkdir()
    (folder / "tables" / TINY.file).write_bytes(content)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IBFORECAST_DATA", str(tmp_path))
    monkeypatch.setitem(SUITE, "tiny", TINY)
    return tmp_path


def test_an_empty_field_and_a_step_without_a_row_are_missing_values(data: Path) -> None:
    write(data, gzip.compress(TEXT.encode()))
    series = load("tiny")
    assert series.channels == ("a_P", "a_Q", "b_P", "b_Q")
    assert series.values.shape == (TINY.rows, TINY.channels)
    assert np.argwhere(np.isnan(series.values)).tolist() == [[2, 2], [3, 0], [3, 1], [3, 2], [3, 3]]
    assert series.values[4].tolist() == [4, 14, 24, 34]
    assert series.clock.even
    assert series.clock.phase(0, 6, 24).tolist() == [0, 1, 2, 3, 4, 5]


def test_channels_that_are_only_read_are_the_last_ones() -> None:
    series = parse(replace(TINY, past=("a_P", "b_P")), TEXT)
    assert series.channels == ("a_Q", "b_Q", "a_P", "b_P")
    assert series.targets == ("a_Q", "b_Q")
    assert series.values[1].tolist() == [11, 31, 1, 21]


def test_covariates_known_ahead_are_no_channels() -> None:
    table = replace(TINY, future=("a_P",))
    series = parse(table, TEXT)
    assert series.channels == ("a_Q", "b_P", "b_Q")
    assert (series.covariates, table.channels) == (("a_P",), 3)
    assert series.known is not None
    assert series.known[[0, 1, 5], 0].tolist() == [0, 1, 5]


def test_a_file_of_other_sizes_is_refused() -> None:
    with pytest.raises(DataError, match=re.escape("tiny must be 7 x 4 (got 6 x 4)")):
        parse(replace(TINY, rows=7), TEXT)


def test_a_changed_file_is_refused_with_its_fingerprint(data: Path) -> None:
    write(data, gzip.compress(TEXT.replace("10", "11").encode()))
    with pytest.raises(DataError, match=f"must have the sha256 {TINY.sha256}"):
        load("tiny")


def test_a_truncated_file_is_refused(data: Path) -> None:
    write(data, gzip.compress(TEXT.encode())[:-9])
    with pytest.raises(DataError, match="must be a complete gzip file"):
        load("tiny")


def test_a_missing_file_is_refused_with_the_variable_to_set(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=re.escape(f"no tiny.csv.gz in {data}")) as raised:
        load("tiny")
    assert "set IBFORECAST_DATA" in raised.value.remedy
    monkeypatch.delenv("IBFORECAST_DATA")
    with pytest.raises(DataError, match="IBFORECAST_DATA is not set"):
        load("tiny")


def test_a_table_with_covariates_known_ahead_shares_the_file_and_the_facts_of_the_plain_one() -> None:
    known, plain = SUITE[f"epf_de{KNOWN}"], SUITE["epf_de"]
    assert replace(known, name=plain.name, content=plain.content, future=()) == plain
    assert known.file == plain.file
    assert (plain.channels, known.channels) == (3, 1)


def test_only_the_flows_of_the_catchments_are_forecast() -> None:
    table = SUITE["flow_france19"]
    assert len(table.past) == len(set(table.past)) == table.columns - 19
    assert not any(name.endswith("_Q") for name in table.past)


def test_the_suite_has_ten_files_and_none_of_the_benchmarks() -> None:
    assert len({table.file for table in SUITE.values()}) == len({table.sha256 for table in SUITE.values()}) == 10
    assert not SUITE.keys() & CATALOGUE.keys()
    assert all(table.origin and table.licence for table in SUITE.values())


@pytest.mark.parametrize("name", SUITE)
def test_a_table_is_read_as_the_product_reads_it(name: str) -> None:
    if (path := locate(name)) is None:
        pytest.skip(f"needs {SUITE[name].file} in the folder tables of IBFORECAST_DATA")
    table, series = SUITE[name], suite.load(name)
    read = tables.read(path, Layout(irregular="fill", past=table.past, future=table.future)).series
    assert series.sha256 == read.sha256
    assert (series.channels, series.past, series.covariates) == (read.channels, read.past, read.covariates)
    assert np.array_equal(series.clock.stamps, read.clock.stamps)
    assert cycles_of(Settings(horizon=1, split=PARTS), read) == table.learned
    phases = [clock.phase(0, series.rows, table.cycle) for clock in (series.clock, read.clock)]
    assert np.array_equal(*phases)
