"""The demo table has the documented structure."""

import numpy as np
import polars as pl

from ibforecast.data.demo import demo_table
from ibforecast.data.tables import read

DEMO = demo_table()
VALUES = DEMO.series.values


def test_the_demo_is_a_year_of_hours_with_six_channels_and_a_few_gaps() -> None:
    assert VALUES.shape == (8760, 6)
    assert DEMO.series.clock.labels(0, 1) == ("2023-01-01 00:00",)
    assert 12 <= np.isnan(VALUES).sum() <= 150


def test_the_seed_determines_the_table() -> None:
    assert demo_table().series.sha256 == DEMO.series.sha256 != demo_table(1).series.sha256


def test_the_demo_is_read_like_a_users_table() -> None:
    table = read(pl.DataFrame(DEMO.columns()))
    assert table.layout.time == "time"
    assert table.layout.frequency == "1h"
    assert table.series.sha256 == DEMO.series.sha256


def test_the_support_is_exactly_the_hours_of_the_events_and_never_missing() -> None:
    marked = np.zeros_like(DEMO.support)
    for event in DEMO.events:
        marked[event.first : event.first + event.steps, DEMO.series.channels.index(event.channel)] = True
    assert (marked == DEMO.support).all()
    assert not np.isnan(VALUES[DEMO.support]).any()
    assert not DEMO.support[:, 4:].any()


def test_only_an_event_predicts_its_echo() -> None:
    """The echo has the event's sign and size, and between them the channel looks like any other day."""
    sizes, echoes, between = [], [], []
    for event in DEMO.events:
        if not 20 * 24 <= event.first < 8760 - 20 * 24:
            continue
        column = DEMO.series.channels.index(event.channel)
        others = [VALUES[event.first + days * 24 :][:84, column] for days in (*range(-14, -3), *range(7, 15))]
        off = VALUES[event.first :][:84, column] - np.nanmedian(others, axis=0)
        delay = event.echo_first - event.first
        sizes.append(event.size)
        echoes.append(np.nanmean(off[delay : delay + 12]))
        between.append(np.nanmean(off[event.steps : delay]))
    assert np.mean(np.sign(echoes) == np.sign(sizes)) > 0.95
    assert np.corrcoef(sizes, echoes)[0, 1] > 0.9
    assert abs(np.corrcoef(sizes, between)[0, 1]) < 0.3


def test_the_demo_has_daily_and_weekly_cycles_and_drifting_levels() -> None:
    load = np.nan_to_num(VALUES[:, 0], nan=float(np.nanmean(VALUES[:, 0])))
    days = load.reshape(365, 24)
    assert days.mean(axis=0).std() > 0.5 * 60
    weekend = np.isin((np.arange(365) + 6) % 7, (5, 6))
    assert days[~weekend].mean() > days[weekend].mean() + 0.3 * 60
    assert days.reshape(-1)[: 364 * 24].reshape(13, -1).mean(axis=1).std() > 0.3 * 60
