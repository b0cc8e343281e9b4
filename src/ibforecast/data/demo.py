"""The demo table: a year of hourly energy data of a small town, with planted events at known places."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.series import Series

HOURS = 365 * 24
START = np.datetime64("2023-01-01", "us")
LEVEL = {"load_kw": 900.0, "wind_kw": 400.0, "heat_kw": 600.0, "price_eur": 90.0}
SPREAD = {"load_kw": 60.0, "wind_kw": 35.0, "heat_kw": 45.0, "price_eur": 7.0}
CHANNELS = (*LEVEL, "solar_kw", "temperature_c")
EVENT_HOURS = 6
EVENT_SIZE = (3.0, 5.0)
BETWEEN_EVENTS = (130, 260)
ECHO_DELAY = 60
ECHO_HOURS = 48
ECHO_DECAY = 16.0
ECHO_SHARE = 0.8
GAPS = 12


@dataclass(frozen=True)
class Event:
    """An unusual stretch of `steps` hours from row `first` on, up to `size` table units off, and its echo."""

    channel: str
    first: int
    steps: int
    size: float
    echo_first: int
    echo_last: int


@dataclass(frozen=True)
class Demo:
    """The series, a mask of the values in events, and the list of events."""

    series: Series
    support: Bool[np.ndarray, "row channel"]
    events: tuple[Event, ...]

    def columns(self) -> dict[str, Shaped[np.ndarray, " row"]]:
        """Return the columns of the table: `time` first, then the channels."""
        return {"time": self.series.clock.stamps} | dict(zip(self.series.channels, self.series.values.T, strict=True))

    def moment_before_echo(self, first_row: int) -> str:
        """Return a moment at or after a row, with an event in the past and its echo starting seven hours later."""
        event = min((event for event in self.events if event.echo_first - 7 >= first_row), key=lambda e: e.echo_first)
        return self.series.clock.labels(event.echo_first - 7, 1)[0]


def demo_table(seed: int = 2024) -> Demo:
    """Return the demo table.

    Load, wind, heat and price follow a daily and weekly rhythm on a slowly drifting level; solar and temperature
    follow the day and the year and have no events. Every five to eleven days each of the first four has an event: six
    hours far off its pattern, up or down. The channel then returns to its pattern, and two and a half days after the
    event began it echoes: by 0.8 of the event's size, decaying over two days. In the hours between, only the event
    itself predicts the echo, so a forecaster gains by reading the event and not by reading the latest values.
    """
    random = np.random.default_rng(seed)
    regular = [LEVEL[name] + SPREAD[name] * _rhythm(random) for name in LEVEL]
    values = np.stack([*regular, _solar(random), _temperature(random)], axis=1)
    support = np.zeros(values.shape, dtype=bool)
    events = [event for name in LEVEL for event in _events(name, random)]
    for event in events:
        column = CHANNELS.index(event.channel)
        during = slice(event.first, event.first + EVENT_HOURS)
        echo = slice(event.echo_first, event.echo_last + 1)
        values[during, column] += event.size * np.sin(np.pi * (np.arange(EVENT_HOURS) + 0.5) / EVENT_HOURS)
        values[echo, column] += ECHO_SHARE * event.size * np.exp(-np.arange(echo.stop - echo.start) / ECHO_DECAY)
        support[during, column] = True
    values = values.round(2)
    _leave_gaps(values, support, random)
    clock = Clock(START + np.arange(HOURS) * np.timedelta64(1, "h"), Frequency(3600))
    return Demo(Series(values, CHANNELS, clock), support, tuple(events))


def _events(channel: str, random: np.random.Generator) -> Iterator[Event]:
    """Yield events far enough apart that none overlaps the echo of the previous one."""
    first = int(random.integers(*BETWEEN_EVENTS))
    while (echo_first := first + ECHO_DELAY) < HOURS:
        size = random.choice([-1.0, 1.0]) * random.uniform(*EVENT_SIZE) * SPREAD[channel]
        yield Event(channel, first, EVENT_HOURS, float(size), echo_first, min(echo_first + ECHO_HOURS, HOURS) - 1)
        first += int(random.integers(*BETWEEN_EVENTS))


def _rhythm(random: np.random.Generator) -> Float64[np.ndarray, " row"]:
    """Return a daily pattern of two harmonics, lower weekends, a level that drifts over weeks, and noise."""
    hour = np.arange(HOURS)
    weekday = (START.astype("datetime64[D]").astype(np.int64) + 3 + hour // 24) % 7
    day, drift = (
        sum(random.uniform(*size) * np.sin(2 * np.pi * (hour / period + random.random())) for period in periods)
        for size, periods in (((0.6, 1.2), (24.0, 12.0)), ((0.4, 0.9), random.uniform(20 * 24, 90 * 24, 3)))
    )
    return np.asarray(day + drift - 0.6 * (weekday >= 5) + random.normal(0, 0.3, HOURS))


def _solar(random: np.random.Generator) -> Float64[np.ndarray, " row"]:
    """Return solar power: zero at night, more in summer, less on cloudy days."""
    hour = np.arange(HOURS)
    sun = np.clip(np.sin(2 * np.pi * (hour % 24 - 6) / 24), 0, None)
    summer = 1 - 0.6 * np.cos(2 * np.pi * hour / HOURS)
    clear = np.repeat(random.uniform(0.7, 1.0, HOURS // 24), 24)
    return np.asarray(300 * sun * summer * clear)


def _temperature(random: np.random.Generator) -> Float64[np.ndarray, " row"]:
    """Return temperatures: a yearly and a daily cycle, and weather that lasts a few days."""
    hour = np.arange(HOURS)
    weather = np.interp(hour, np.arange(0, HOURS + 72, 72), random.normal(0, 2.0, HOURS // 72 + 2))
    year, day = -9 * np.cos(2 * np.pi * hour / HOURS), 4 * np.sin(2 * np.pi * (hour - 9) / 24)
    return np.asarray(10 + year + day + weather + random.normal(0, 0.4, HOURS))


def _leave_gaps(
    values: Float64[np.ndarray, "row channel"], support: Bool[np.ndarray, "row channel"], random: np.random.Generator
) -> None:
    """Set `GAPS` stretches of a few hours to NaN, never in an event."""
    left = GAPS
    while left:
        first, length = int(random.integers(0, HOURS - 12)), int(random.integers(1, 13))
        column = int(random.integers(0, len(CHANNELS)))
        if not support[first : first + length, column].any():
            values[first : first + length, column] = np.nan
            left -= 1
