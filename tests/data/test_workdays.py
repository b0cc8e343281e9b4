"""Steps of workdays: days from Monday to Friday, with holidays among them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast import DataError, IBForecaster
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.layout import Layout
from ibforecast.data.tables import read

WORKDAY = Frequency(workdays=1)
DAYS = pd.bdate_range("2024-01-01", periods=120)


def table_of(days: pd.DatetimeIndex) -> pd.DataFrame:
    return pd.DataFrame({"day": days, "price": np.random.default_rng(0).normal(size=len(days)).cumsum()})


def test_a_workday_is_a_frequency_with_a_cycle_of_a_week() -> None:
    assert Frequency.parse("B") == WORKDAY == Frequency.parse(str(WORKDAY))
    assert (str(WORKDAY), WORKDAY.cycle(), WORKDAY.by_date) == ("1b", 5, True)


@given(st.integers(0, 400), st.integers(0, 4))
def test_counting_undoes_stepping(steps: int, weekday: int) -> None:
    start = np.datetime64("2024-01-01T09:30", "us") + np.timedelta64(weekday, "D")
    after = WORKDAY.after(start, np.array([steps]), 1)
    assert WORKDAY.count(start, after).tolist() == [steps]
    assert np.is_busday(after.astype("datetime64[D]")).all()


def test_workdays_continue_after_a_weekend_and_the_phase_is_the_weekday() -> None:
    table = read(table_of(DAYS), Layout(frequency="B"))
    clock = table.series.clock
    assert clock.times(120, 7).tolist() == pd.bdate_range(DAYS[-1], periods=8)[1:].to_pydatetime().tolist()
    assert (clock.phase(0, 130, 5) == np.arange(130) % 5).all()
    labels = clock.labels(110, 20)
    assert Clock.of_labels(labels, clock.step, None).labels(0, 20) == labels


def test_days_without_weekends_are_refused_with_the_remedy() -> None:
    with pytest.raises(DataError) as refused:
        read(table_of(DAYS))
    assert refused.value.remedy.startswith("count days from Monday to Friday with freq='B' (fit --freq B")


def test_a_holiday_is_an_uneven_time_that_can_be_filled() -> None:
    holed = table_of(DAYS.delete([7, 50]))
    with pytest.raises(DataError, match="even steps, here of 1 workday") as refused:
        read(holed, Layout(frequency="B"))
    assert "if these are holidays" in refused.value.remedy
    assert "fit --irregular fill" in refused.value.remedy
    assert "fit --irregular by_row" in refused.value.remedy
    filled = read(holed, Layout(frequency="B", irregular="fill")).series
    assert (filled.rows, np.flatnonzero(np.isnan(filled.values[:, 0])).tolist()) == (120, [7, 50])


def test_a_row_on_a_saturday_is_refused() -> None:
    with pytest.raises(DataError, match=r"requested frequency|even steps|lie on steps"):
        read(table_of(pd.date_range("2024-01-01", periods=30)), Layout(frequency="B", irregular="fill"))


def test_a_model_of_workdays_forecasts_workdays_and_its_explanation_verifies() -> None:
    table = table_of(DAYS)
    model = IBForecaster(horizon=5, look_back=20, freq="B", epochs=1, sealed=True, device="cpu").fit(table)
    assert model.predict(table)["day"].tolist() == pd.bdate_range(DAYS[-1], periods=6)[1:].tolist()
    assert model.verify(model.explain(table).to_json(), table)


EVERY_DAY = pd.bdate_range("2022-01-03", "2024-12-31")
HOLIDAYS = pd.DatetimeIndex(
    [
        EVERY_DAY[(EVERY_DAY.year == year) & (EVERY_DAY.month == month)][9]
        for year in (2022, 2023, 2024)
        for month in range(2, 11)
    ]
)
"""Nine workdays of each year on which an exchange is closed."""


@pytest.mark.parametrize("irregular", ["fill", "by_row"])
def test_a_table_of_trading_days_is_fitted_explained_and_verified(irregular: str) -> None:
    table = table_of(EVERY_DAY.difference(HOLIDAYS))
    assert len(EVERY_DAY) - len(table) == 27
    settings = {"freq": "B", "irregular": irregular, "epochs": 1, "sealed": True, "device": "cpu"}
    model = IBForecaster(horizon=5, look_back=60, **settings).fit(table)
    explained = model.explain(table, at="2024-07-10")
    holidays = pd.DatetimeIndex(explained.times[:60]).isin(HOLIDAYS)
    gaps = np.isnan(explained.history[:, 0])
    assert (gaps == holidays).all()
    assert (gaps.sum(), explained.missing.sum()) == ((2, 2) if irregular == "fill" else (0, 0))
    assert model.verify(explained.with_receipts().to_json(), table)
    if irregular == "fill":
        assert model.verify(explained.to_json())  # its times show the phases
    assert model.predict(table)["day"].tolist() == pd.bdate_range("2024-12-31", periods=6)[1:].tolist()


def test_steps_of_workdays_are_named_by_a_word() -> None:
    assert (Frequency.parse("B").words, Frequency.parse("3B").words) == ("1 workday", "3 workdays")
    assert (str(Frequency.parse("B")), Frequency.parse("15min").words) == ("1b", "15min")
    findings = IBForecaster(horizon=5, freq="B").check(table_of(DAYS))
    assert "steps of 1 workday, " in str(findings)
    assert findings.step == "1b"
