"""Roles of columns: channels to forecast, past channels, and covariates that continue after the channels end."""

import numpy as np
import pandas as pd
import pytest

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError
from ibforecast.data.roles import by_role, known_in
from ibforecast.data.series import Series
from ibforecast.data.tables import Layout, read

ROWS, AHEAD = 10, 4
COLUMNS = ("plan", "wind", "load", "holiday", "heat")


def series(ahead: int = AHEAD) -> Series:
    values = np.random.default_rng(0).normal(size=(ROWS + ahead, 5))
    values[ROWS:, [1, 2, 4]] = np.nan
    stamps = np.datetime64("2024-01-01", "us") + np.arange(len(values)) * np.timedelta64(1, "h")
    return Series(values, COLUMNS, Clock(stamps, Frequency(3600)))


def test_forecast_channels_come_first_then_past_channels_and_covariates_are_separate() -> None:
    original = series()
    parted = by_role(original, ("wind",), ("holiday", "plan"))
    assert (parted.channels, parted.targets, parted.covariates) == (
        ("load", "heat", "wind"),
        ("load", "heat"),
        ("holiday", "plan"),
    )
    np.testing.assert_array_equal(parted.values, original.values[:ROWS][:, [2, 4, 1]])
    np.testing.assert_array_equal(parted.known, original.values[:, [3, 0]])
    assert parted.rows == len(parted.clock.stamps) == ROWS
    assert parted.values.flags.c_contiguous
    assert parted.known.flags.c_contiguous


def test_without_roles_a_series_is_unchanged() -> None:
    parted = by_role(series(), (), ())
    assert parted.values is not None
    assert parted.sha256 == series().sha256
    assert (parted.rows, parted.past, parted.known) == (ROWS + AHEAD, 0, None)


def test_splitting_by_role_twice_changes_nothing() -> None:
    once = by_role(series(), ("wind",), ())
    assert by_role(once, ("wind",), ()).channels == once.channels
    assert by_role(once, ("wind",), ()).values.tobytes() == once.values.tobytes()


def test_the_fingerprint_depends_on_roles_and_covariates_but_not_on_their_length() -> None:
    prints = {
        by_role(series(), past, future).sha256
        for past, future in (((), ()), (("heat",), ()), ((), ("plan",)), (("heat",), ("plan",)))
    }
    assert len(prints) == 4
    known = by_role(series(), (), ("plan", "holiday"))
    assert by_role(series(ahead=0), (), ("plan", "holiday")).sha256 == known.sha256


def test_a_window_without_all_its_covariate_steps_is_refused() -> None:
    parted = by_role(series(), (), ("plan", "holiday"))
    np.testing.assert_array_equal(known_in(parted, 4, 10), series().values[4:14, [0, 3]])
    with pytest.raises(DataError, match=r"up to its last step, 2024-01-01 14:00 \(got no values for its last step\)"):
        known_in(parted, 5, 10)
    assert known_in(by_role(series(), (), ()), 5, 10) is None


def test_a_future_across_a_clock_change_follows_the_clock() -> None:
    local = pd.date_range("2024-03-30 12:00", periods=24, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"when": local, "load": np.arange(24.0), "plan": np.arange(24.0)})
    table = read(frame[:10], Layout(future=("plan",)))
    assert table.with_future(frame[10:]).series.known.ravel().tolist() == list(range(24))
    with pytest.raises(DataError, match=r"row 4: 2024-03-31 04:00 where 2024-03-31 03:00 belongs"):
        table.with_future(frame.drop(index=14)[10:])


def test_a_future_of_dates_continues_by_date() -> None:
    frame = pd.DataFrame(
        {"when": pd.date_range("2024-01-31", periods=9, freq="ME"), "load": 1.0, "plan": np.arange(9.0)}
    )
    table = read(frame[:6], Layout(future=("plan",)))
    assert table.with_future(frame[["when", "plan"]][6:]).series.known.ravel().tolist() == list(range(9))


def test_by_row_number_the_future_follows_in_row_order() -> None:
    days = pd.bdate_range("2024-01-01", periods=30)
    frame = pd.DataFrame({"when": days, "load": 1.0, "plan": np.arange(30.0)})
    table = read(frame[:20], Layout(future=("plan",), irregular="by_row"))
    assert table.with_future(frame[20:]).series.known.ravel().tolist() == list(range(30))


def workdays(rows: int = 30) -> pd.DataFrame:
    """Make workdays without rows on holidays: 2024-01-10 in the table, and 2024-02-07 and 2024-02-12 after it."""
    days = pd.bdate_range("2024-01-01", periods=rows + 10)
    numbers = np.arange(float(len(days)))
    table = pd.DataFrame({"when": days, "load": numbers, "plan": numbers + 100})
    return table[~days.isin(pd.to_datetime(["2024-01-10", "2024-02-07", "2024-02-12"]))]


FILLED = Layout(frequency="B", irregular="fill", future=("plan",))


def test_rows_that_fill_makes_take_the_covariates_of_the_row_before_and_a_warning_says_so() -> None:
    with pytest.warns(UserWarning, match=r"1 row that irregular='fill' made, the first at 2024-01-10 00:00"):
        parted = read(workdays()[:20], FILLED).series
    assert parted.known is not None
    assert np.isnan(parted.values[7]).all()
    assert parted.known[6:9, 0].tolist() == [106, 106, 108]


def test_a_future_table_may_leave_out_the_rows_that_fill_makes() -> None:
    rows = workdays()
    until = rows["when"] < "2024-02-12"
    with pytest.warns(UserWarning, match="irregular='fill' made"):
        table = read(rows[until], FILLED)
    with pytest.warns(UserWarning, match=r"1 row that irregular='fill' made, the first at 2024-02-12 00:00"):
        known = table.with_future(rows[["when", "plan"]][~until]).series.known
    assert known is not None
    assert known[29:33, 0].tolist() == [129, 129, 131, 132]
    assert len(known) == 40


def test_a_future_table_off_the_grid_is_refused_even_if_rows_are_filled() -> None:
    rows = workdays()
    with pytest.warns(UserWarning, match="irregular='fill' made"):
        table = read(rows[:25], FILLED)
    later = rows[["when", "plan"]][25:]
    with pytest.raises(DataError, match=r"must continue from the table.s last row in steps of 1 workday"):
        table.with_future(later.assign(when=later["when"] + pd.Timedelta("1h")))


def test_a_short_future_table_is_refused_with_all_the_rows_that_are_needed() -> None:
    parted = by_role(series(ahead=0), (), ("plan", "holiday"))
    with pytest.raises(DataError, match=r"its last 4 steps\).*all 4 rows after its end .*--future FILE"):
        known_in(parted, 4, 10)
    with pytest.raises(DataError, match=r"its last 2 steps\).*all 6 rows after its end"):
        known_in(by_role(series(), (), ("plan", "holiday")), 6, 10)
