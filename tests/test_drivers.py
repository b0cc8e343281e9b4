"""Drivers: what moves which channel, averaged over the receipts of many windows."""

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ibforecast import IBForecaster, UsageError
from ibforecast.core.errors import DataError
from ibforecast.core.receipt import UNREAD
from ibforecast.drivers import LINES, By, Drivers, chosen_starts, drivers_of
from ibforecast.drivers.groups import from_groups
from ibforecast.engine import TorchEngine
from ibforecast.use import Desk

ROWS, LOOK_BACK, HORIZON, BUDGET = 500, 24, 6, 0.25
TINY = 'extends = "{}"\n[model.readout]\nwidth = 16\n[train]\nepochs = 1\nbatch = 64\n'


def table(rows: int = ROWS) -> pd.DataFrame:
    """Make a load, a wind that is not forecast, and a price known ahead; the load follows the wind of 12 hours ago."""
    random, hour = np.random.default_rng(5), np.arange(rows)
    wind, price = random.normal(size=rows), random.normal(size=rows)
    load = np.sin(2 * np.pi * hour / 24) + np.roll(wind, 12) + 0.5 * price + 0.1 * random.normal(size=rows)
    times = pd.date_range("2023-01-01", periods=rows, freq="h")
    return pd.DataFrame({"when": times, "load": 900 + 20 * load, "heat": load + random.normal(size=rows)}).assign(
        wind=wind, price=price
    )


@pytest.fixture(scope="module", params=["additive", "sealed"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    return fit(request.param, tmp_path_factory.mktemp("recipe"))


def fit(recipe: str, folder: Path) -> IBForecaster:
    path = folder / "tiny.toml"
    path.write_text(TINY.format(recipe))
    settings: dict[str, Any] = {"past": ("wind",), "future": ("price",), "recipe": str(path), "device": "cpu"}
    return IBForecaster(HORIZON, LOOK_BACK, BUDGET, **settings).fit(table())


@pytest.fixture(scope="module")
def drivers(model: IBForecaster) -> Drivers:
    return model.drivers(table(), windows=5)


@pytest.fixture(scope="module")
def months(model: IBForecaster) -> Drivers:
    """Drivers of another table, which spans four months."""
    return model.drivers(table(2600), "all", windows=41)


def amounts(model: IBForecaster, channel: str) -> Iterator[dict[tuple[str, int | None], np.ndarray]]:
    """Yield the amounts of the five windows that the drivers are of, by source and steps back."""
    series, split = model.open(table()).series, model.fitted.split
    first, last = split.validation_end - 1, ROWS - HORIZON - 1
    for number in range(5):
        row = first + number * (last - first) // 4
        explained = model.explain(table(), series.clock.labels(row, 1)[0])
        own = explained.amounts(channel)
        places = np.argwhere(explained.mask).tolist()
        read = {
            (explained.channels[column], LOOK_BACK - explained.steps(patch).stop): moves
            for (patch, column), moves in zip(places, own.read, strict=True)
        }
        yield read | {("price", None): own.known[0]}


def test_sizes_and_means_are_those_of_the_receipts(model: IBForecaster, drivers: Drivers) -> None:
    for channel in ("load", "heat"):
        windows = list(amounts(model, channel))
        rows = {(row.source, row.steps_back): row for row in drivers.of(channel)}
        assert rows.keys() == set().union(*windows)
        for place, row in rows.items():
            moves = [window.get(place, np.zeros(HORIZON)) for window in windows]
            assert row.size == pytest.approx(np.abs(moves).mean(), rel=1e-3, abs=1e-4)
            assert row.mean == pytest.approx(np.mean(moves), rel=1e-3, abs=1e-4)
            assert row.read == np.mean([place in window for window in windows])


def test_the_shares_of_a_channel_add_up_to_one(drivers: Drivers) -> None:
    assert drivers.channels == ("load", "heat")
    for channel in drivers.channels:
        rows = drivers.of(channel)
        assert sum(row.share for row in rows) == pytest.approx(1)
        whole = sum(row.size for row in rows)
        assert all(row.share == pytest.approx(row.size / whole) for row in rows)
        assert all(abs(row.mean) <= row.size + 1e-12 for row in rows)


def test_a_channel_that_is_not_forecast_and_a_covariate_are_sources(drivers: Drivers) -> None:
    assert "wind" in {row.source for row in drivers.rows}
    assert {row.steps_back for row in drivers.rows if row.source == "price"} == {None}
    assert all(0 <= row.steps_back < LOOK_BACK for row in drivers.rows if row.steps_back is not None)


def test_a_source_is_the_sum_of_its_places_at_each_step(model: IBForecaster, drivers: Drivers) -> None:
    for channel in ("load", "heat"):
        windows, sizes = list(amounts(model, channel)), {}
        for name in ("load", "heat", "wind", "price"):
            own = [[moves for place, moves in window.items() if place[0] == name] for window in windows]
            sizes[name] = np.mean([np.abs(np.sum([np.zeros(HORIZON), *places], axis=0)) for places in own])
        measured = [source for source in drivers.sources() if source.channel == channel]
        for source in measured:
            assert source.size == pytest.approx(sizes[source.source], rel=1e-3, abs=1e-4)
            assert source.share == pytest.approx(source.size / sum(each.size for each in measured))
        assert {source.source for source in measured} == {row.source for row in drivers.of(channel)}
        assert sum(source.share for source in measured) == pytest.approx(1)


def test_a_source_is_at_most_as_large_as_its_places_together(drivers: Drivers) -> None:
    for source in drivers.sources():
        places = [row for row in drivers.of(source.channel) if row.source == source.source]
        assert abs(sum(row.mean for row in places)) - 1e-9 <= source.size <= sum(row.size for row in places) + 1e-9
        if len(places) == 1:
            assert source.size == pytest.approx(places[0].size)


def test_unread_values_are_a_source_if_the_model_is_not_sealed(drivers: Drivers, tmp_path: Path) -> None:
    model = fit("choosing", tmp_path)
    other = model.drivers(table(), windows=5)
    for column, channel in enumerate(other.channels):
        *_, row = other.of(channel)
        assert (row.part, row.source, row.steps_back, row.read) == ("unread", UNREAD, None, 0.0)
        unread = [model.explain(table(), pd.Timestamp(at)).amounts(channel).unread for at in other.moves.moments]
        assert row.size == pytest.approx(np.abs(unread).mean(), rel=1e-3)
        assert row.mean == pytest.approx(np.mean(unread), rel=1e-3)
        assert sum(row.share for row in other.of(channel)) == pytest.approx(1)
        assert other.moves.size[:, column, -1].mean() == pytest.approx(row.size)
    assert ">known ahead, unread<" in other.plot(tmp_path / "unread.svg").read_text()
    assert {row.part for row in drivers.rows} == {"read", "known ahead"}


def test_by_channel_lists_the_sources_largest_first(drivers: Drivers) -> None:
    whole = drivers.by_channel()
    assert list(whole.columns) == ["channel", "source", "size", "share"]
    assert whole.to_dict("records") == [vars(source) for source in drivers.sources()]
    for _, sizes in whole.groupby("channel")["size"]:
        assert sizes.is_monotonic_decreasing


def test_the_document_has_places_sources_groups_and_what_to_watch(months: Drivers) -> None:
    grouped = months.by("month")
    document = months.document(grouped)
    assert document["rows"] == [asdict(row) for row in months.rows]
    assert document["sources"] == [asdict(source) for source in months.sources()]
    assert (document["by"], document["groups"]) == ("month", [asdict(row) for row in grouped.rows])
    assert document["watch"] == {channel: grouped.watch(channel) for channel in ("load", "heat")}
    assert [len(lines) for lines in document["watch"].values()] == [3, 3]
    assert months.document() == document | {"by": None, "groups": [], "watch": {}}


def test_the_tables_are_of_the_kind_of_the_users_table(model: IBForecaster) -> None:
    drivers = model.drivers(pl.from_pandas(table()), windows=2)
    assert isinstance(drivers.to_table(), pl.DataFrame)
    assert isinstance(drivers.by_channel(), pl.DataFrame)
    assert drivers.to_table().columns == [
        *("channel", "part", "source", "steps_back"),
        *("size", "mean", "share", "read"),
    ]


def test_one_channel_gives_the_rows_of_that_channel(model: IBForecaster, drivers: Drivers) -> None:
    one = model.drivers(table(), windows=5, channel="heat")
    assert one.channels == ("heat",)
    for row, expected in zip(one.rows, drivers.of("heat"), strict=True):
        assert (row.source, row.steps_back, row.read) == (expected.source, expected.steps_back, expected.read)
        assert row.size == pytest.approx(expected.size, rel=1e-3, abs=1e-5)


# --- Groups ---


@pytest.mark.parametrize("by", ["quarter", "month", "weekday", "hour", "event"])
def test_the_mean_over_groups_is_that_over_all_windows(months: Drivers, by: By) -> None:
    grouped = months.by(by).to_table()
    assert list(grouped.columns) == ["channel", "group", "source", "size", "mean", "share", "windows"]
    for (channel, source), rows in grouped.groupby(["channel", "source"]):
        own = [row for row in months.of(channel) if row.source == source]
        (whole,) = (each for each in months.sources() if (each.channel, each.source) == (channel, source))
        assert rows["windows"].sum() == months.windows
        assert np.average(rows["size"], weights=rows["windows"]) == pytest.approx(whole.size)
        assert np.average(rows["mean"], weights=rows["windows"]) == pytest.approx(sum(row.mean for row in own))
    assert grouped.groupby(["channel", "group"])["share"].sum().to_numpy() == pytest.approx(1)


def test_a_window_belongs_to_the_local_time_at_which_its_forecast_was_made(model: IBForecaster) -> None:
    source = model.open(table())
    starts = [source.series.clock.row_of(f"2023-01-{day} 09:00") - LOOK_BACK + 1 for day in ("16", "17", "18")]
    measured = drivers_of(TorchEngine(model.fitted), (model.desk.explain(source, start) for start in starts))
    assert [row.group for row in measured.by("weekday").of("load")["wind"]] == ["Monday", "Tuesday", "Wednesday"]
    with pytest.raises(DataError, match=r"at least two groups by hour \(got all 3 in '09:00'\); use more rows"):
        measured.by("hour")
    with pytest.raises(DataError, match=r'use split="all", another number of windows, or another `by`'):
        replace(measured, split="test").by("hour")


def test_groups_are_in_the_order_of_the_calendar(months: Drivers) -> None:
    assert [row.group for row in months.by("month").of("load")["wind"]] == ["January", "February", "March", "April"]
    hours = [row.group for row in months.by("hour").of("load")["wind"]]
    assert hours == sorted(hours)


def test_events_are_the_tenth_of_windows_furthest_from_the_calendar(months: Drivers) -> None:
    rows = months.by("event").of("load")["wind"]
    assert [(row.group, row.windows) for row in rows] == [("event", 5), ("other", 36)]
    furthest = np.argsort(-months.moves.departure[:, 0])[:5]
    wind = months.moves.sources.index("wind")
    assert rows[0].size == pytest.approx(months.moves.size[furthest, 0, wind].mean())


def test_the_departure_is_the_mean_distance_from_the_calendar(model: IBForecaster, drivers: Drivers) -> None:
    made = pd.Timestamp(drivers.moves.moments[-1])
    explained = model.explain(table(), made)
    expected = np.abs(explained.forecast[:, 1] - explained.amounts("heat").calendar).mean()
    assert drivers.moves.departure[-1, 1] == pytest.approx(expected, rel=1e-4)


def test_the_words_of_groups_name_what_varies_most(months: Drivers) -> None:
    grouped = months.by("month")
    headline, *lines = grouped.in_words().splitlines()
    assert "by month, in units of the channel, over 41 windows (all)" in headline
    assert len(lines) == 6
    table = grouped.to_table()
    load = table[table["channel"] == "load"].groupby("source")["size"]
    source = (load.max() - load.min()).idxmax()
    rows = table[(table["channel"] == "load") & (table["source"] == source)]
    most, least = (rows.loc[getattr(rows["size"], which)()] for which in ("idxmax", "idxmin"))
    decimals = max(0, 2 - math.floor(math.log10(most["size"])))
    texts = [f"{row['size']:.{decimals}f} in {row['group']}" for row in (most, least)]
    assert lines[0] == f"load: {'its own past' if source == 'load' else source} {texts[0]}, {texts[1]}"


def test_the_words_of_groups_have_at_most_eight_lines(months: Drivers) -> None:
    grouped = months.by("event")
    many = replace(
        grouped, rows=tuple(replace(row, channel=f"{row.channel} {n}") for n in range(9) for row in grouped.rows)
    )
    lines = many.in_words().splitlines()
    assert len(lines) == LINES
    assert lines[-1] == "12 more channels are in the table"
    assert "in events" in lines[1]
    assert "otherwise" in lines[1]


def test_sources_that_are_the_same_in_all_groups_are_described_and_drawn(months: Drivers, tmp_path: Path) -> None:
    grouped = months.by("month")
    still = replace(grouped, rows=tuple(replace(row, size=0.0) for row in grouped.rows))
    assert still.in_words().splitlines()[1:] == ["load: the same in all", "heat: the same in all"]
    assert still.plot(tmp_path / "still.png").stat().st_size


def test_a_picture_of_groups_names_them(months: Drivers, tmp_path: Path) -> None:
    text = months.by("month").plot(tmp_path / "months.svg").read_text()
    assert all(f">{name}<" in text for name in ("load", "heat", "wind", "price", "Jan", "Apr", "month"))
    assert months.by("event").plot(tmp_path / "events.png").read_bytes().startswith(b"\x89PNG")


def test_every_hour_and_weekday_has_windows_if_windows_are_chosen_by_them(model: IBForecaster) -> None:
    """2,522 windows, so that 25 evenly spaced ones are 105 hours apart, and 106 of them exactly a day."""
    rows = table(2522 + LOOK_BACK + HORIZON - 1)
    hours = model.drivers(rows, "all", windows=48, by="hour").by("hour").of("load")["wind"]
    assert [row.group for row in hours] == [f"{hour:02}:00" for hour in range(24)]
    assert {row.windows for row in hours} == {2}
    measured = model.drivers(rows, "all", windows=42, by="weekday")
    assert {row.windows for row in measured.by("weekday").of("load")["wind"]} == {6}
    assert len({row.group for row in measured.by("hour").of("load")["wind"]}) > 12
    assert (np.diff(measured.moves.moments) > np.timedelta64(0)).all()


@pytest.mark.parametrize("count", [1, 5, 24, 99, 300, 1000])
def test_windows_are_chosen_from_all_groups_as_evenly_as_their_sizes_allow(count: int) -> None:
    groups = np.repeat([3, 0, 7, 1], [1, 50, 9, 240])
    chosen = from_groups(groups, count)
    assert len(set(chosen.tolist())) == len(chosen) == min(count, 300)
    of_each = np.bincount(groups[chosen], minlength=8)[[3, 7, 0, 1]]
    assert (np.diff(of_each) >= 0).all()
    full = of_each == [1, 9, 50, 240]
    assert of_each[~full].max(initial=0) - of_each[~full].min(initial=1000) <= 1


def test_tables_of_groups_are_of_the_kind_of_the_users_table(model: IBForecaster) -> None:
    assert isinstance(model.drivers(pl.from_pandas(table()), windows=3).by("event").to_table(), pl.DataFrame)


def test_numbered_rows_have_no_month(months: Drivers) -> None:
    moves = replace(months.moves, moments=np.full(months.windows, np.datetime64("NaT", "us")))
    numbered = replace(months, moves=moves)
    with pytest.raises(UsageError, match=r'groups by month need times \(got rows that are numbered\); try by="event"'):
        numbered.by("month")
    assert numbered.by("event").rows == months.by("event").rows


def test_windows_that_cannot_be_grouped_are_refused_before_any_work(
    model: IBForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Desk, "explain", lambda *_: pytest.fail("a window was explained"))
    with pytest.raises(DataError, match=r"at least two groups by month \(got all \d+ in 'January'\)"):
        model.drivers(table(), windows=5, by="month")
    series = model.open(table()).series
    usable, clock = model.desk.windows(series, "all"), replace(series.clock, numbered=True)
    with pytest.raises(UsageError, match=r'groups by hour need times \(got rows that are numbered\); try by="event"'):
        chosen_starts(usable, clock, 5, "hour", "all")
    assert len(chosen_starts(usable, clock, 5, "event", "all")) == 5


# --- Refusals and words ---


@pytest.mark.parametrize("channel", ["wind", "price", "sun"])
def test_a_channel_that_is_not_forecast_is_refused(model: IBForecaster, channel: str) -> None:
    with pytest.raises(UsageError, match=rf"must be one that is forecast \(got '{channel}'\); try 'load'"):
        model.drivers(table(), windows=2, channel=channel)


def test_drivers_without_a_window_are_refused(model: IBForecaster) -> None:
    with pytest.raises(DataError, match="drivers need at least one explanation"):
        drivers_of(TorchEngine(model.fitted), [])
    for by in (None, "hour"):
        with pytest.raises(UsageError, match=r"windows must be at least 1 \(got windows=0\)"):
            model.drivers(table(), windows=0, by=by)


def test_the_words_name_the_own_past_and_what_moves_a_channel_most_from_outside(drivers: Drivers) -> None:
    headline, *lines = drivers.in_words().splitlines()
    assert headline.endswith("over 5 windows (test):")
    assert len(lines) == 2
    shares = drivers.by_channel().set_index(["channel", "source"])["share"]
    for channel, line in zip(drivers.channels, lines, strict=True):
        others = shares[channel].drop([channel, UNREAD], errors="ignore")
        assert line.startswith(f"{channel}: its own past {100 * shares[channel, channel]:.3g} % (most ")
        outside = f"; from outside {100 * others.sum():.3g} %: "
        assert outside + (others.idxmax() if len(others) == 1 else "") in line
        assert f"{others.idxmax()} " in line.partition(outside)[2]


def test_values_that_were_not_read_are_no_source_from_outside(drivers: Drivers) -> None:
    unread = replace(drivers.rows[0], channel="load", part="unread", source=UNREAD, steps_back=None)
    load = repeated(drivers, ["load"])
    third = load.moves.size.sum(axis=2, keepdims=True).mean(axis=0, keepdims=True).repeat(5, axis=0) / 3
    sizes = np.concatenate([load.moves.size, third], axis=2)
    moves = replace(load.moves, sources=(*load.moves.sources, UNREAD), size=sizes, mean=sizes)
    line = replace(load, rows=(*load.rows, unread), moves=moves).in_words()
    assert line.endswith(f"; {UNREAD} 25 %")


def test_the_words_have_at_most_eight_lines(drivers: Drivers) -> None:
    lines = repeated(drivers, [f"load {number}" for number in range(18)]).in_words().splitlines()
    assert len(lines) == LINES
    assert lines[-1] == "12 more channels are in the table"


def repeated(drivers: Drivers, names: list[str]) -> Drivers:
    """Return drivers of channels with these names, each as the load."""
    kept = drivers.moves
    size, mean, departure = (each[:, :1].repeat(len(names), axis=1) for each in (kept.size, kept.mean, kept.departure))
    moves = replace(kept, channels=tuple(names), size=size, mean=mean, departure=departure)
    return replace(
        drivers, rows=tuple(replace(row, channel=name) for name in names for row in drivers.of("load")), moves=moves
    )


def test_one_window_is_not_called_windows(model: IBForecaster) -> None:
    assert ", over 1 window (test):" in model.drivers(table(), windows=1).in_words()


def test_a_channel_that_nothing_moves_is_described_and_drawn(drivers: Drivers, tmp_path: Path) -> None:
    rows = tuple(replace(row, size=0.0, mean=0.0, share=0.0) for row in drivers.rows)
    moves = replace(drivers.moves, size=0 * drivers.moves.size, mean=0 * drivers.moves.mean)
    still = replace(drivers, rows=rows, moves=moves)
    assert [source.share for source in still.sources()] == [0.0] * len(list(drivers.sources()))
    assert still.in_words().splitlines()[1] == "load: nothing"
    assert still.plot(tmp_path / "still.png").stat().st_size


def test_a_picture_is_drawn_the_same_each_time_and_names_channels_and_sources(drivers: Drivers, tmp_path: Path) -> None:
    for suffix in (".png", ".svg"):
        one, other = (drivers.plot(tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "other"))
        assert one == other
    text = (tmp_path / "one.svg").read_text()
    assert all(f">{name}<" in text for name in ("load", "heat", "wind", "price", "known ahead", "steps back"))


def test_a_picture_of_many_channels_has_eight_panels(drivers: Drivers, tmp_path: Path) -> None:
    many = repeated(drivers, [f"${number}$" for number in range(9)])
    text = many.plot(tmp_path / "many.svg").read_text()
    assert text.count(">steps back<") == 8
    assert ">$7$<" in text
    assert ">$8$<" not in text


def test_a_picture_of_another_format_is_refused(drivers: Drivers, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in .png or .svg \(got 'map.pdf'\); try 'map.png'"):
        drivers.plot(tmp_path / "map.pdf")


def test_two_forecasts_of_a_model_are_compared_in_a_table(model: IBForecaster) -> None:
    later, earlier = (model.explain(table(), at) for at in ("2023-01-20 10:00", "2023-01-20 03:00"))
    changes = later.compare(earlier, "load", 2)
    assert list(changes.columns) == ["kind", "channel", "start", "end", "before", "after", "change"]
    difference = later.itemised("load", 2).forecast - earlier.itemised("load", 2).forecast
    assert changes["change"].sum() == pytest.approx(difference)
    assert (
        {"calendar", "known ahead"}
        <= set(changes["kind"])
        <= {"calendar", "re-weighted", "new", "left", "mask", "known ahead"}
    )
