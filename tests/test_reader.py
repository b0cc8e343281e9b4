"""Readers: the cells of a window are requested from a source and answered, and the results are those of a table."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.test_sealed import HORIZON, LOOK_BACK, fit, make_table

from ibforecast import DataError, IBForecaster, UsageError
from ibforecast.core.reader import Reader
from ibforecast.core.running import Cell

MOMENT = pd.Timestamp("2023-03-12 05:00")
Source = Callable[[Cell], Any]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def model(folder: Path, table: pd.DataFrame) -> IBForecaster:
    return fit(folder, table)


def source_of(table: pd.DataFrame, at: Any) -> Source:
    """Return a source that looks up cells in a table by their number of steps before a moment."""
    last = int(table.index[table["when"] == at][0])
    return lambda cell: table.loc[last - cell.steps_back, cell.channel]


def read(reader: Reader, source: Source) -> Reader:
    """Answer until nothing is requested."""
    while reader.asks:
        reader.answer({cell: source(cell) for cell in reader.asks})
    return reader


def window_of(table: pd.DataFrame, at: Any, kept: set[tuple[int, str]]) -> pd.DataFrame:
    """Return the window of a table that ends at a moment, with only the cells that are kept."""
    last = int(table.index[table["when"] == at][0])
    window = table[last + 1 - LOOK_BACK : last + 1].reset_index(drop=True)
    for channel in ("load", "wind", "heat"):
        empty = [step for step in range(LOOK_BACK) if (LOOK_BACK - 1 - step, channel) not in kept]
        window.loc[empty, channel] = np.nan
    return window


def refusal(call: Callable[[], Any]) -> str | None:
    """Return the message of the DataError that a call raises; None if it succeeds."""
    try:
        call()
    except DataError as error:
        return str(error)
    return None


def assert_same_forecast(mine: Any, other: Any) -> None:
    """Compare two explanations that may differ only in values that were not read."""
    for name in ("forecast", "mask", "evidence", "probability", "level", "scale", "phase", "profile"):
        assert getattr(mine, name).tobytes() == getattr(other, name).tobytes(), name
    assert mine.times == other.times


def test_the_forecast_is_that_of_the_full_table(model: IBForecaster, table: pd.DataFrame) -> None:
    reader = read(model.reader(MOMENT), source_of(table, MOMENT))
    pd.testing.assert_frame_equal(
        reader.predict(), model.predict(table, at=MOMENT), check_exact=True, check_dtype=False
    )
    assert_same_forecast(reader.explain(), model.explain(table, at=MOMENT))


def test_the_explanation_is_that_of_a_table_of_only_these_cells(model: IBForecaster, table: pd.DataFrame) -> None:
    reader = model.reader(MOMENT)
    kept = {(cell.steps_back, cell.channel) for cell in reader.asks}
    explained = read(reader, source_of(table, MOMENT)).explain()
    sparse = window_of(table, MOMENT, kept)
    assert explained.to_json() == model.explain(sparse).to_json()
    assert np.array_equal(~np.isnan(explained.history), model.fitted.cells)
    verification = model.verify(explained.to_json(), sparse, exact=True)
    assert verification, str(verification)
    assert verification.checks[-1].name == "unread"
    assert explained.verify(exact=True)  # by the model that made the reader


def test_the_cells_are_those_that_the_model_lists(model: IBForecaster) -> None:
    listed = [Cell(**row) for row in model.reads(MOMENT).to_dict("records")]
    assert list(model.reader(MOMENT).asks) == listed
    assert list(model.reader(str(MOMENT)).asks) == listed


@settings(max_examples=40, derandomize=True)
@given(data=st.data())
def test_answers_without_a_value_are_empty_cells_of_a_table(
    data: st.DataObject, model: IBForecaster, table: pd.DataFrame
) -> None:
    reader, source = model.reader(MOMENT), source_of(table, MOMENT)
    cells = data.draw(st.permutations(reader.asks))
    missing = data.draw(st.sets(st.sampled_from(cells)))
    cut = data.draw(st.integers(0, len(cells)))
    nothing = data.draw(st.sampled_from([None, np.nan, float("nan"), np.float32("nan")]))
    for part in (cells[:cut], cells[cut:]):
        reader.answer({cell: nothing if cell in missing else source(cell) for cell in part})
    gaps, last = table.copy(), int(table.index[table["when"] == MOMENT][0])
    for cell in missing:
        gaps.loc[last - cell.steps_back, cell.channel] = np.nan
    sparse = window_of(gaps, MOMENT, {(cell.steps_back, cell.channel) for cell in cells})
    refusals = [refusal(call) for call in (lambda: model.explain(gaps, at=MOMENT), reader.explain, reader.predict)]
    assert len(set(refusals)) == 1
    if refusals[0] is not None:
        return
    expected = model.explain(gaps, at=MOMENT)
    assert_same_forecast(reader.explain(), expected)
    assert reader.explain().to_json() == model.explain(sparse).to_json()
    assert reader.predict()[["load", "wind", "heat"]].to_numpy().tobytes() == expected.forecast.tobytes()


def test_a_channel_without_any_value_is_refused(model: IBForecaster, table: pd.DataFrame) -> None:
    source = source_of(table, MOMENT)
    reader = read(model.reader(MOMENT), lambda cell: None if cell.channel == "heat" else source(cell))
    rule = r"must be observed at least once in the window, where it is read \(got nothing in 'heat'"
    with pytest.raises(DataError, match=rule):
        reader.predict()


def test_a_forecast_needs_every_answer(model: IBForecaster, table: pd.DataFrame) -> None:
    reader = model.reader(MOMENT)
    first, *others = reader.asks
    count = len(others) + 1
    assert repr(reader) == f"Reader(at='2023-03-12 05:00'; 0 of {count} cells answered)"
    reader.answer(dict.fromkeys(others, 1.0))
    assert reader.asks == (first,)
    for early in (reader.predict, reader.explain):
        with pytest.raises(UsageError, match=f"needs an answer for every cell .*none for 1 of {count}, such as Cell"):
            early()
    reader.answer({first: None})
    assert reader.asks == ()
    assert len(reader.predict()) == HORIZON


def test_a_cell_is_answered_once(model: IBForecaster) -> None:
    reader = model.reader(MOMENT)
    reader.answer({reader.asks[0]: 1.0})
    answered = model.reader(MOMENT).asks[0]
    with pytest.raises(UsageError, match=r"a cell must be answered once \(got Cell\(.*make another reader"):
        reader.answer({answered: 2.0})


def test_an_unknown_cell_is_refused(model: IBForecaster) -> None:
    reader, later = model.reader(MOMENT), model.reader(MOMENT + pd.Timedelta(hours=1))
    for stranger in (Cell("sun", 0, None), later.asks[0]):
        with pytest.raises(UsageError, match="only a cell that is read can be answered"):
            reader.answer({stranger: 1.0})


@pytest.mark.parametrize("value", ["3.5", b"3", 1j, MOMENT, [1.0, 2.0], 10**400, "", pd.NA])
def test_a_value_that_is_no_number_is_refused_and_nothing_is_taken(model: IBForecaster, value: Any) -> None:
    reader = model.reader(MOMENT)
    first, second, *_ = before = reader.asks
    with pytest.raises(DataError, match="a value must be a number"):
        reader.answer({first: 1.0, second: value})
    assert reader.asks == before


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_value_is_refused(model: IBForecaster, value: float) -> None:
    reader = model.reader(MOMENT)
    with pytest.raises(DataError, match="values must be finite"):
        reader.answer({reader.asks[0]: value})


def test_any_kind_of_number_is_taken(model: IBForecaster) -> None:
    kinds = [float, int, Decimal, Fraction, np.float64, np.float32, np.int16, lambda number: np.array(number)]
    forecasts = []
    for kind in kinds:
        reader = model.reader(MOMENT)
        reader.answer({cell: kind(cell.steps_back) for cell in reader.asks})
        forecasts.append(reader.explain().forecast.tobytes())
    assert len(set(forecasts)) == 1


def test_a_mark_for_a_missing_value_is_missing(folder: Path) -> None:
    marked = make_table()
    marked.loc[5, "load"] = -9999.0
    model = fit(folder, marked, missing_values=(-9999.0,))
    source = source_of(marked, MOMENT)
    first = model.reader(MOMENT).asks[0]
    forecasts = [
        read(model.reader(MOMENT), lambda cell, mark=mark: mark if cell == first else source(cell)).explain().to_json()
        for mark in (-9999, None)
    ]
    assert forecasts[0] == forecasts[1]


def test_only_a_sealed_model_has_a_reader(table: pd.DataFrame) -> None:
    looking = IBForecaster(HORIZON, LOOK_BACK, recipe="dense", epochs=1, device="cpu").fit(table)
    with pytest.raises(UsageError, match="only a sealed model reads places that are known before it reads"):
        looking.reader(MOMENT)


def test_a_moment_must_be_a_time(model: IBForecaster) -> None:
    with pytest.raises(UsageError, match=r"a moment must be an ISO time \(got 'noon'\)"):
        model.reader("noon")


def test_rows_that_are_counted_are_read_by_their_times_if_these_are_even(folder: Path) -> None:
    even = make_table()
    model = fit(folder, even, irregular="by_row", cycle=7)
    explained = read(model.reader(MOMENT), source_of(even, MOMENT)).explain()
    assert_same_forecast(explained, model.explain(even, at=MOMENT))
    assert explained.clock.row == model.explain(even, at=MOMENT).clock.row
    uneven = even.drop(index=[3]).reset_index(drop=True)
    with pytest.raises(UsageError, match="times of a table that is read by row are known only in the table"):
        fit(folder, uneven, irregular="by_row", cycle=7).reader(MOMENT)


def test_times_follow_the_clock_of_a_zone(folder: Path) -> None:
    local = make_table(24 * 30, zone="Europe/Berlin")
    model, at = fit(folder, local), pd.Timestamp("2023-03-26 12:00", tz="Europe/Berlin")
    reader = read(model.reader("2023-03-26 12:00"), source_of(local, at))
    assert_same_forecast(reader.explain(), model.explain(local, at=at))
    pd.testing.assert_frame_equal(reader.predict(), model.predict(local, at=at), check_exact=True, check_dtype=False)


@pytest.mark.parametrize(("freq", "day"), [("MS", 28), ("ME", None), ("MS", 30)])
def test_monthly_times_are_those_of_the_table(folder: Path, freq: str, day: int | None) -> None:
    monthly = make_table(freq=freq)
    monthly["when"] = pd.date_range("1989-12-01", periods=len(monthly), freq=freq)
    if day:
        days = monthly["when"].dt.days_in_month.clip(upper=day) - 1
        monthly["when"] += pd.to_timedelta(days, unit="D")
    at = monthly["when"][(monthly["when"].dt.month == 2) & (monthly["when"].dt.year == 2001)].iloc[0]
    model = fit(folder, monthly, cycle=12)
    assert_same_forecast(read(model.reader(at), source_of(monthly, at)).explain(), model.explain(monthly, at=at))


def with_holidays(rows: int = 400) -> pd.DataFrame:
    return make_table(rows).assign(holiday=np.repeat(np.random.default_rng(1).random(rows) < 0.2, 24)[:rows])


@pytest.fixture(scope="module")
def driven(folder: Path) -> IBForecaster:
    return fit(folder, with_holidays(), past=["heat"], future=["holiday"])


def test_covariates_known_ahead_are_taken_by_their_times(driven: IBForecaster) -> None:
    table = with_holidays()
    explained = driven.explain(table, at=MOMENT)
    for future in (table[["when", "holiday"]], table[table["when"].between(explained.times[0], explained.times[-1])]):
        reader = read(driven.reader(MOMENT, future=future), source_of(table, MOMENT))
        assert_same_forecast(reader.explain(), explained)
        assert reader.explain().known.tobytes() == explained.known.tobytes()
        assert reader.explain().verify(exact=True)
        assert list(reader.predict().columns) == ["when", "load", "wind"]


def test_a_reader_needs_the_covariates_of_every_step(driven: IBForecaster, model: IBForecaster) -> None:
    table = with_holidays()
    ahead = table[table["when"] > MOMENT][["when", "holiday"]]
    with pytest.raises(UsageError, match=r"a reader needs the covariates known ahead.*give a table of 'holiday'"):
        driven.reader(MOMENT)
    rule = rf"a forecast needs 'holiday' from .* to 2023-03-12 11:00 \(got no 'holiday' at .* {LOOK_BACK} of"
    with pytest.raises(DataError, match=rule):
        driven.reader(MOMENT, future=ahead)
    gap = table.assign(holiday=table["holiday"].astype(float).where(table["when"] != MOMENT))
    with pytest.raises(DataError, match="no 'holiday' at 2023-03-12 05:00, gaps in 1 of"):
        driven.reader(MOMENT, future=gap)
    with pytest.raises(UsageError, match="only a model with future covariates takes a future table"):
        model.reader(MOMENT, future=ahead)
