"""Windows with and without their calendar."""

import numpy as np
import torch

from ibforecast.data.calendar import Clock, Frequency
from ibforecast.data.series import Series
from ibforecast.data.windows import Standardiser, Windows

ROWS, LOOK_BACK, HORIZON = 60, 12, 5
STARTS = range(ROWS - LOOK_BACK - HORIZON + 1)


def cut(with_calendar: bool) -> tuple[Series, Windows]:
    stamps = np.datetime64("2019-12-30T07", "us") + np.arange(ROWS) * np.timedelta64(1, "h")
    values = np.random.default_rng(0).normal(size=(ROWS, 2))
    series = Series(values, ("a", "b"), Clock(stamps, Frequency(3600)))
    standardiser = Standardiser.of(values, series.channels)
    return series, Windows.of(series, standardiser, 24, STARTS, LOOK_BACK, HORIZON, with_calendar=with_calendar)


def test_the_calendar_is_laid_out_over_every_row_and_the_horizon_beyond() -> None:
    series, windows = cut(with_calendar=True)
    assert windows.calendar is not None
    assert windows.calendar.dtype == torch.float32
    assert windows.calendar.shape == (ROWS + HORIZON, 4)
    np.testing.assert_allclose(windows.calendar.numpy(), series.clock.calendar(0, ROWS + HORIZON), atol=1e-7)


def test_every_window_comes_with_the_calendar_of_its_own_steps() -> None:
    series, windows = cut(with_calendar=True)
    starts = torch.tensor([0, 17, ROWS - LOOK_BACK])
    calendar = windows.look_backs(starts).calendar
    assert calendar is not None
    for row, start in enumerate(starts.tolist()):
        own = series.clock.calendar(start, LOOK_BACK + HORIZON)
        np.testing.assert_allclose(calendar[row].numpy(), own, atol=1e-7)


def test_windows_cut_elsewhere_and_moved_keep_the_calendar() -> None:
    _, windows = cut(with_calendar=True)
    elsewhere = windows.at(range(3)).to(torch.device("cpu"))
    assert elsewhere.calendar is not None
    assert all(window.calendar is not None for window, _ in elsewhere.batches(2))


def test_nobody_pays_for_a_calendar_that_was_not_asked_for() -> None:
    _, windows = cut(with_calendar=False)
    window, _ = windows.take(windows.starts[:2])
    assert windows.calendar is None
    assert window.calendar is None
