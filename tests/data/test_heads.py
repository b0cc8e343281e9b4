"""Lines of a CSV file that are neither names nor values: each is named, with what reads the file without them."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ibforecast.core.errors import DataError
from ibforecast.data.heads import check_head
from ibforecast.data.tables import Layout, read

ROWS = [f"2024-01-{day:02},{day},{day / 2}" for day in range(1, 29)]
GOOD = "\n".join(["time,load,wind", *ROWS]) + "\n"


def refused(content: str | bytes, folder: Path) -> DataError:
    path = folder / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as raised:
        read(path)
    return raised.value


TITLES = st.sampled_from(
    [
        "Report",
        "# a comment",
        "# station 12, Hesse, Germany",
        "TOA5,site,CR1000,7000,x",
        "Source: us",
        "723170,NC,-5.0,36.1",
    ]
)
UNITS = st.sampled_from([",MW,m/s", "[UTC],[MW],[m/s]", "#,°C,m³/s", "TS,RN,", "# from here on"])


@given(above=st.lists(TITLES, max_size=3), below=st.lists(UNITS, max_size=2))
@example(["Report", "# station 12", "# station 13"], [])
@settings(deadline=None)
def test_lines_that_are_neither_names_nor_values_are_named_and_pandas_reads_the_rest(
    above: list[str], below: list[str]
) -> None:
    text = "\n".join([*above, "time,load,wind", *below, *ROWS]) + "\n"
    if not above and not below:
        assert check_head("table.csv", text.encode()) == 3
        return
    with pytest.raises(DataError, match=r"one line of names, and its values must follow") as raised:
        check_head("table.csv", text.encode())
    skipped = re.search(r"skiprows=(\[[\d, ]*\])", raised.value.remedy)
    assert skipped is not None
    rest = pd.read_csv(io.StringIO(text), skiprows=[int(each) for each in re.findall(r"\d+", skipped[1])])
    pd.testing.assert_frame_equal(rest, pd.read_csv(io.StringIO(GOOD)))


@pytest.mark.parametrize(
    ("above", "below", "lines"),
    [(["a"], [], "line 1,"), (["a", "b"], ["x,y,z"], "lines 1 to 2 and 4,"), ([], ["x,y,z"], "line 2,")],
)
def test_the_lines_to_remove_are_counted_from_one(
    above: list[str], below: list[str], lines: str, tmp_path: Path
) -> None:
    text = "\n".join([*above, "time,load,wind", *below, *ROWS])
    assert refused(text, tmp_path).remedy.startswith(f"remove {lines} or read it with pandas")


def test_semicolons_and_an_old_encoding_do_not_hide_a_title(tmp_path: Path) -> None:
    text = "\n".join(["Wärme, Köln", "time;load;wind", *(row.replace(",", ";") for row in ROWS)])
    assert "skiprows=[0], sep=';')" in refused(text.encode("latin-1"), tmp_path).remedy


@pytest.mark.parametrize(
    "text",
    [
        "when,a\n" + "\n".join(f"{month} 1 2000,NA" for month in ("Jan", "Feb", "Mar")),
        "when,a\n" + "\n".join(f"{month} 1 2000,{at}" for at, month in enumerate(("Jan", "Feb", "Mar"))),
        "symbol,when,a\n" + "\n".join(f"AB,Jan {day} 2000,NA" for day in range(1, 9)),
        "when,00,10\n2024-01-01,1,2\n2024-01-02,1,2\n",
        "2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n",
        "a\n1\n2\n",
        "a,b\n",
        "",
    ],
)
def test_files_without_such_lines_are_not_refused_for_them(text: str) -> None:
    refusal = ""
    try:
        check_head("table.csv", text.encode())
    except DataError as error:
        refusal = error.rule
    assert refusal in ("", "a .csv file must begin with the names of its columns")


@pytest.mark.parametrize("mark", [";", ",", "\t"])
def test_a_first_line_that_names_the_separator_is_skipped(mark: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"sep={mark}\n" + GOOD.replace(",", mark))
    assert read(tmp_path / "table.csv").series.channels == ("load", "wind")


@pytest.mark.parametrize(
    ("text", "got", "remedy"),
    [
        (
            GOOD + "End of file\n",
            "1 cell in line 30, 'End of file', and 3 in line 1",
            "remove line 30, which is the last",
        ),
        (GOOD.replace("2024-01-05,", "2024-01-05,,"), "4 cells in line 6", "correct line 6"),
        (GOOD.replace("time,", "", 1), "3 cells in line 2", "add the name that is missing in the first line"),
    ],
)
def test_a_line_of_another_length_is_named(text: str, got: str, remedy: str, tmp_path: Path) -> None:
    error = refused(text, tmp_path)
    assert error.got.startswith(got)
    assert error.remedy.startswith(remedy)


@pytest.mark.parametrize(("mark", "what"), [("|", "bars"), ("  ", "spaces"), (" ", "spaces")])
def test_other_separators_are_named_with_what_reads_them(mark: str, what: str, tmp_path: Path) -> None:
    error = refused(GOOD.replace(",", mark), tmp_path)
    assert error.got.startswith(what)
    called = re.search(r"sep='(.*?)'\)", error.remedy)
    assert called is not None
    assert pd.read_csv(tmp_path / "table.csv", sep=called[1].replace("\\\\", "\\")).shape == (28, 3)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_unnamed_column_that_numbers_the_rows_is_left_out(first: int, name: str) -> None:
    table = pd.read_csv(io.StringIO(GOOD))
    table.insert(0, name, np.arange(len(table)) + first)
    assert read(table).series.channels == ("load", "wind")


def test_unnamed_columns_without_a_value_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("\n".join(f"{line},," for line in GOOD.splitlines()))
    assert read(tmp_path / "table.csv").series.channels == ("load", "wind")


@pytest.mark.parametrize("numbers", [[5, 7, *range(8, 34)], [2, *range(3, 30)], np.arange(28) / 2, [0] * 28])
def test_other_unnamed_columns_are_refused_with_the_channels_to_name(numbers: Any) -> None:
    table = pd.read_csv(io.StringIO(GOOD))
    table[""] = numbers
    with pytest.raises(DataError, match=r"a channel must have a name .*\(fit --channels load,wind\)"):
        read(table)
    assert read(table, Layout(channels=("load",))).series.channels == ("load",)


def test_an_error_about_an_empty_file_is_not_its_own_cause(tmp_path: Path) -> None:
    cause = refused("", tmp_path).__cause__
    assert cause is not None
    assert cause.__cause__ is not cause
