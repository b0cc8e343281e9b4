"""TimeEmb: the hour, the embeddings, the filter and the loss."""

from typing import Any

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import UsageError
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Target, Window
from ibforecast.data.series import Series
from ibforecast.data.windows import Windows
from ibforecast_lab.rivals.timeemb import TimeEmb, TimeEmbConfig

LOOK_BACK, HORIZON, CHANNELS = 12, 6, 2


def model(**settings: Any) -> TimeEmb:
    torch.manual_seed(0)
    made = TimeEmb(TimeEmbConfig(LOOK_BACK, HORIZON, CHANNELS, 24, width=8, **settings)).eval()
    for bank in (made.by_hour, made.by_day):
        if bank is not None:
            torch.nn.init.normal_(bank)
    return made


def windows() -> Windows:
    """Return windows of a series with one row every quarter of an hour, from 1 February 2024, a Thursday, at 05:00."""
    values = np.random.default_rng(0).normal(size=(800, CHANNELS))
    stamps = np.datetime64("2024-02-01T05:00", "us") + np.arange(800) * np.timedelta64(15, "m")
    series = Series(values, ("a", "b"), Clock(stamps, Frequency(900), by_row=True))
    return Windows.of(series, Standardiser.of(values, series.channels), 96, range(700), LOOK_BACK, HORIZON, True)


def test_the_embedding_is_that_of_the_hour_and_weekday_of_the_first_forecast_step() -> None:
    made, table = model(days=True), windows()
    assert made.by_day is not None
    for start in (0, 3, 4, 71, 400):
        minutes = 15 * (start + LOOK_BACK) + 5 * 60
        hour, weekday = minutes // 60 % 24, (3 + minutes // (24 * 60)) % 7
        window, _ = table.take(torch.tensor([start]))
        assert torch.equal(made.usual(window)[0], made.by_hour[hour] + made.by_day[weekday])


def test_with_fewer_embeddings_hours_share_them() -> None:
    made, table = model(hours=12), windows()
    morning, evening = (made.usual(table.take(torch.tensor([start]))[0]) for start in (0, 48))
    assert torch.equal(morning, evening)


@torch.no_grad()
def test_a_forecast_is_that_of_a_circular_convolution_of_what_the_embeddings_leave() -> None:
    made = model()
    window, _ = windows().take(torch.tensor([5]))
    frame = made.frame(window.values)
    series = frame.remove(window.values)[0].T
    usual = torch.fft.irfft(made.usual(window)[0].to(torch.complex64), n=LOOK_BACK, norm="ortho")
    rest = series - usual
    filtered = torch.stack(
        [
            sum(made.filter[k] * rest[:, (t - k) % LOOK_BACK] for k in range(LOOK_BACK)) / LOOK_BACK**0.5  # type: ignore[misc]
            for t in range(LOOK_BACK)
        ],
        dim=1,
    )
    expected = frame.restore(made.map(filtered + usual).T[None])
    torch.testing.assert_close(made(window).values, expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("weight", [0.0, 0.75, 1.0])
def test_the_loss_mixes_the_error_of_the_spectrum_with_the_squared_error(weight: float) -> None:
    made = model(frequency=weight)
    window, target = windows().take(torch.arange(4))
    difference = (made(window).values - target.values).numpy()
    expected = weight * np.abs(np.fft.fft(difference, axis=1)).mean() + (1 - weight) * np.square(difference).mean()
    loss = made.loss(window, target, torch.tensor(0.0), torch.Generator())
    assert float(loss.total) == pytest.approx(expected, rel=1e-5)
    gone = Target(target.values, torch.zeros_like(target.observed))
    assert float(made.loss(window, gone, torch.tensor(0.0), torch.Generator()).total) == 0


def test_windows_without_a_calendar_are_refused() -> None:
    window, _ = windows().take(torch.tensor([0]))
    with pytest.raises(UsageError, match="must get windows with a calendar"):
        model()(Window(window.values, window.observed, window.phase))
