"""Windows cut from a series, with and without a calendar, and their units."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import DataError
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast.evaluate.naive import naive_errors

ROWS, LOOK_BACK, HORIZON = 60, 12, 5
STARTS = range(ROWS - LOOK_BACK - HORIZON + 1)


def cut(with_calendar: bool) -> tuple[Series, Windows]:
    stamps = np.datetime64("2019-12-30T07", "us") + np.arange(ROWS) * np.timedelta64(1, "h")
    values = np.random.default_rng(0).normal(size=(ROWS, 2))
    series = Series(values, ("a", "b"), Clock(stamps, Frequency(3600)))
    standardiser = Standardiser.of(values, series.channels)
    return series, Windows.of(series, standardiser, 24, STARTS, LOOK_BACK, HORIZON, with_calendar=with_calendar)


def test_the_calendar_covers_every_row_and_the_horizon_beyond() -> None:
    series, windows = cut(with_calendar=True)
    assert windows.calendar is not None
    assert windows.calendar.dtype == torch.float32
    assert windows.calendar.shape == (ROWS + HORIZON, 4)
    np.testing.assert_allclose(windows.calendar.numpy(), series.clock.calendar(0, ROWS + HORIZON), atol=1e-7)


def test_every_window_has_the_calendar_of_its_own_steps() -> None:
    series, windows = cut(with_calendar=True)
    starts = torch.tensor([0, 17, ROWS - LOOK_BACK])
    calendar = windows.look_backs(starts).calendar
    assert calendar is not None
    for row, start in enumerate(starts.tolist()):
        own = series.clock.calendar(start, LOOK_BACK + HORIZON)
        np.testing.assert_allclose(calendar[row].numpy(), own, atol=1e-7)


def test_windows_at_other_starts_or_devices_keep_the_calendar() -> None:
    _, windows = cut(with_calendar=True)
    elsewhere = windows.at(range(3)).to(torch.device("cpu"))
    assert elsewhere.calendar is not None
    assert all(window.calendar is not None for window, _ in elsewhere.batches(2))


def test_no_calendar_is_computed_unless_requested() -> None:
    _, windows = cut(with_calendar=False)
    window, _ = windows.take(windows.starts[:2])
    assert windows.calendar is None
    assert window.calendar is None


def gappy(rows: int = ROWS, share: float = 0.1) -> Series:
    random = np.random.default_rng(1)
    values = 5 + 3 * random.normal(size=(rows, 3))
    values[random.random(values.shape) < share] = np.nan
    stamps = np.datetime64("2019-12-30T07", "us") + np.arange(rows) * np.timedelta64(1, "h")
    return Series(values, ("a", "b", "c"), Clock(stamps, Frequency(3600)))


def cut_from(series: Series, starts: range = STARTS) -> tuple[Standardiser, Windows]:
    standardiser = Standardiser.of(series.values, series.channels)
    return standardiser, Windows.of(series, standardiser, 24, starts, LOOK_BACK, HORIZON)


def test_a_window_is_its_rows_and_a_target_the_rows_after_them() -> None:
    series = gappy()
    standardiser, windows = cut_from(series)
    standardised = standardiser.standardise(series.values)
    for start in (0, 7, STARTS[-1]):
        window, target = windows.take(torch.tensor([start]))
        now, end = start + LOOK_BACK, start + LOOK_BACK + HORIZON
        for got, rows in ((window, standardised[start:now]), (target, standardised[now:end])):
            np.testing.assert_array_equal(got.observed[0].numpy(), ~np.isnan(rows))
            np.testing.assert_allclose(got.values[0].numpy(), np.nan_to_num(rows), rtol=1e-6)
        expected = series.clock.phase(start, LOOK_BACK + HORIZON, 24)
        np.testing.assert_array_equal(window.phase[0].numpy(), expected)


def test_a_missing_value_is_finite_and_marked_unobserved() -> None:
    series = gappy(share=0.3)
    _, windows = cut_from(series)
    assert windows.values.isfinite().all()
    np.testing.assert_array_equal(windows.observed.numpy(), ~np.isnan(series.values))
    assert not windows.values[~windows.observed].any()


@pytest.mark.parametrize("rows", [1, 7, ROWS - 1, ROWS])
def test_rows_standardised_in_parts_are_those_standardised_at_once(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    series = gappy()
    standardiser, whole = cut_from(series)
    monkeypatch.setattr("ibforecast.data.windows.ROWS", rows)
    _, parts = cut_from(series)
    assert torch.equal(parts.values, whole.values)
    assert torch.equal(parts.observed, whole.observed)
    at_once = torch.from_numpy(np.nan_to_num(standardiser.standardise(series.values))).float()
    assert torch.equal(parts.values, at_once)


def test_fewer_windows_are_computed_at_a_time_if_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    _, windows = cut_from(gappy())
    cells = windows.values.shape[1] * (LOOK_BACK + HORIZON)
    assert windows.at_once(1024) == 1024
    for most, expected in ((5 * cells, 5), (5 * cells - 1, 4), (1, 1)):
        monkeypatch.setattr("ibforecast.data.windows.CELLS", most)
        assert windows.at_once(1024) == expected
    in_parts = naive_errors(windows, cycle=6)
    monkeypatch.undo()
    for part, whole in zip(in_parts, naive_errors(windows, cycle=6), strict=True):
        assert torch.equal(part, whole)


@pytest.mark.parametrize("size", [1, 7, len(STARTS) - 1, len(STARTS), 1000])
def test_batches_hold_every_window_once_and_in_order(size: int) -> None:
    _, windows = cut_from(gappy())
    assert len(windows) == len(STARTS)
    batches = list(windows.batches(size))
    assert [len(window.values) for window, _ in batches[:-1]] == [min(size, len(STARTS))] * (len(batches) - 1)
    joined = torch.cat([window.values for window, _ in batches])
    follows = torch.cat([target.values for _, target in batches])
    assert len(joined) == len(STARTS)
    for place, start in enumerate(STARTS):
        assert torch.equal(joined[place], windows.values[start : start + LOOK_BACK])
        assert torch.equal(follows[place], windows.values[start + LOOK_BACK : start + LOOK_BACK + HORIZON])


def test_the_last_look_back_needs_no_future() -> None:
    series = gappy()
    _, windows = cut_from(series)
    last = windows.look_backs(torch.tensor([ROWS - LOOK_BACK]))
    assert torch.equal(last.values[0], windows.values[-LOOK_BACK:])
    np.testing.assert_array_equal(last.phase[0].numpy(), series.clock.phase(ROWS - LOOK_BACK, LOOK_BACK + HORIZON, 24))


def test_windows_at_other_starts_come_from_the_same_series() -> None:
    _, windows = cut_from(gappy())
    elsewhere = windows.at(range(3, 9))
    assert elsewhere.starts.tolist() == [3, 4, 5, 6, 7, 8]
    assert elsewhere.values.data_ptr() == windows.values.data_ptr()


@pytest.mark.parametrize(
    ("starts", "apart"), [([], 0), ([7], 1), (range(5), 1), (range(6), 2), (range(5, 0, -1), 1), ([0, 4, 5, 9, 40], 3)]
)
def test_windows_are_apart_if_they_forecast_no_step_twice(starts: range | list[int], apart: int) -> None:
    _, windows = cut(with_calendar=False)
    assert HORIZON == 5
    assert windows.at(np.array(starts, dtype=np.int64)).apart() == apart


def test_usable_windows_observe_every_channel_in_past_and_future() -> None:
    series = gappy(share=0.75)
    _, windows = cut_from(series)
    observed = ~np.isnan(series.values)
    expected = [
        start
        for start in STARTS
        if observed[start : start + LOOK_BACK].any(axis=0).all()
        and observed[start + LOOK_BACK : start + LOOK_BACK + HORIZON].any(axis=0).all()
    ]
    assert windows.usable().starts.tolist() == expected
    assert 0 < len(expected) < len(STARTS)


@pytest.mark.parametrize("patch_len", [1, 3])
def test_with_tokens_a_usable_window_has_a_complete_one_of_every_channel_that_is_read(patch_len: int) -> None:
    series = gappy(rows=3000, share=0.5)
    starts = range(3000 - LOOK_BACK - HORIZON + 1)
    tokens = np.zeros((LOOK_BACK // patch_len, 3), dtype=bool)
    tokens[[1, 3, -1], 0] = tokens[[0, -1], 1] = True  # nothing of the third channel is read
    series.values[100:200, 2] = np.nan
    standardiser = Standardiser.of(series.values, series.channels)
    windows = Windows.of(series, standardiser, 24, starts, LOOK_BACK, HORIZON, tokens=tokens)
    seen = ~np.isnan(series.values)

    def is_usable(start: int) -> bool:
        now = start + LOOK_BACK
        read = all(
            any(
                seen[start + patch * patch_len : start + (patch + 1) * patch_len, channel].all()
                for patch in np.flatnonzero(tokens[:, channel])
            )
            for channel in (0, 1)
        )
        return bool(read and seen[now : now + HORIZON].any(axis=0).all())

    expected = [start for start in starts if is_usable(start)]
    assert windows.to(torch.device("cpu")).usable().starts.tolist() == expected
    anywhere = replace(windows, tokens=None).usable().starts.tolist()
    assert set(anywhere) - set(expected)
    assert set(expected) - set(anywhere)  # windows in which the third channel is empty


def test_there_may_be_no_usable_window() -> None:
    series = gappy()
    _, windows = cut_from(series)
    silent = replace(windows, observed=torch.zeros_like(windows.observed))
    assert len(silent.usable()) == 0


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_standardisation_uses_mean_and_population_spread_of_the_observed_rows(share: float) -> None:
    rows = gappy(share=share).values
    standardiser = Standardiser.of(rows, ("a", "b", "c"))
    for column in range(3):
        seen = [value for value in rows[:, column].tolist() if value == value]
        mean = sum(seen) / len(seen)
        spread = (sum((value - mean) ** 2 for value in seen) / len(seen)) ** 0.5
        assert standardiser.mean[column] == pytest.approx(mean, rel=1e-12)
        assert standardiser.std[column] == pytest.approx(spread, rel=1e-12)


def test_standardisation_equals_that_of_scikit_learn() -> None:
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    rows, later = gappy(share=0.0).values, gappy(rows=80, share=0.0).values
    rows[:, 1] = 0.1
    scaler = preprocessing.StandardScaler().fit(rows)
    standardiser = Standardiser.of(rows, ("a", "b", "c"))
    np.testing.assert_allclose(standardiser.standardise(later), scaler.transform(later), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(standardiser.to_units(later), scaler.inverse_transform(later), rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, -9999.0, 1e9 + 0.1])
def test_a_constant_channel_keeps_its_unit(value: float) -> None:
    rows = gappy(share=0.0).values
    rows[:, 1] = value
    standardiser = Standardiser.of(rows, ("a", "b", "c"))
    assert standardiser.std[1] == 1
    np.testing.assert_allclose(standardiser.standardise(rows)[:, 1], 0, atol=1e-5)


def test_a_channel_never_observed_in_training_is_refused_by_name() -> None:
    rows = gappy().values
    rows[:, 2] = np.nan
    with pytest.raises(DataError, match=r"every channel needs an observation .+ \(got none in 'c'\); .+"):
        Standardiser.of(rows, ("a", "b", "c"))


def test_the_standardisation_does_not_depend_on_the_test_rows() -> None:
    series = gappy()
    later = series.values.copy()
    later[40:] *= 1000
    for one, other in zip(
        vars(Standardiser.of(series.values[:40], series.channels)).values(),
        vars(Standardiser.of(later[:40], series.channels)).values(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
