"""Tables in which most rows have the time of another row: what is proposed, and that nothing is thrown away."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast.core.errors import DataError
from ibforecast.data.tables import Layout, read

DAYS = pd.date_range("2024-01-01", periods=50)


def stores(**columns: Any) -> pd.DataFrame:
    """Return the rows of two stores with two items each, over the same days."""
    parts = [
        pd.DataFrame({"store": store, "item": item, "date": DAYS, "sales": np.arange(50.0)})
        for store in columns.get("store", "AB")
        for item in columns.get("item", "xy")
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("irregular", ["error", "fill"])
def test_rows_that_share_their_time_are_never_thrown_away(irregular: Any) -> None:
    frame = pd.DataFrame({"date": np.repeat(DAYS, 3), "sales": np.arange(150.0)})
    with pytest.raises(
        DataError, match=r"time of its own \(got 150 of 150 rows with the same time as another in 'date'"
    ):
        read(frame, Layout(irregular=irregular))
    assert read(frame, Layout(irregular="by_row")).series.rows == 150


def test_a_few_repeated_rows_may_still_be_filled() -> None:
    frame = pd.DataFrame({"date": np.concatenate([DAYS, DAYS[-3:]]), "sales": 1.0}).sort_values("date")
    with pytest.warns(UserWarning, match="3 rows with a time that appears twice left out"):
        assert read(frame, Layout(irregular="fill")).series.rows == 50


@pytest.mark.parametrize("ids", [("x", "y", "z"), (101, 102, 103)])
def test_the_column_that_says_which_series_a_row_is_of_is_proposed(ids: Any) -> None:
    with pytest.raises(DataError, match=r"if 'item' says which series .*\(fit --id item --target sales\)"):
        read(stores(store="A", item=ids).drop(columns="store"))


def test_two_columns_that_together_say_it_are_proposed() -> None:
    message = r"'store', 'item' together .*table\['store'\].astype\(str\) \+ '/' \+ .*--id id --target sales"
    with pytest.raises(DataError, match=message):
        read(stores())
    with pytest.raises(DataError, match=rf"one value per time \(got 200 of 200 .*{message}"):
        read(stores(), Layout(id="store", target="sales"))


def test_the_proposal_for_two_columns_reads_the_table() -> None:
    table = stores()
    table["id"] = table["store"].astype(str) + "/" + table["item"].astype(str)
    assert read(table, Layout(id="id", target="sales")).series.channels == ("A/x", "A/y", "B/x", "B/y")


def test_another_column_of_times_is_proposed_with_the_channels() -> None:
    hours = pd.date_range("2024-01-01", periods=100, freq="h")
    frame = pd.DataFrame({"date": hours.normalize(), "at": hours, "load": 1.0, "state": "on"})
    with pytest.raises(DataError, match=r"if the times are those of 'at', name it \(fit --time at --channels load\)"):
        read(frame)


def test_repeated_times_of_several_ids_are_one_warning() -> None:
    frame = pd.concat([pd.DataFrame({"unique_id": id, "ds": [*DAYS, DAYS[-1]], "y": 1.0}) for id in "abc"])
    with pytest.warns(UserWarning, match="3 rows with a time that appears twice left out: .* and others") as warned:
        read(frame, Layout(irregular="fill"))
    assert len(warned) == 1
