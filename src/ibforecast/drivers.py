"""What moves which channel: the amounts of receipts, averaged over many windows of a table, or over groups of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast import receipts
from ibforecast.core.calendar import MONDAY, NOT_SET, Clock
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.errors import DataError, UsageError, require, require_choice
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.limits import LIMIT
from ibforecast.core.receipt import COARSE, UNREAD, column_of, decimals_of, is_limited, shown
from ibforecast.core.receipt import Kind as Part
from ibforecast.core.words import percent
from ibforecast.data.sources import Kind, from_rows, to_native
from ibforecast.data.tables import Table
from ibforecast.data.windows import Windows
from ibforecast.engine import TorchEngine
from ibforecast.use import Desk, Selection

if TYPE_CHECKING:
    from ibforecast.plots.heat import HeatMap

WINDOWS = 100
"""Windows used by default. Eight channels of which 150 values are read take about 11 s, if the amounts are what-ifs."""

LINES, SOURCES = 8, 3
"""The largest number of lines in words, and how many sources are named for a channel."""

PANELS, ROWS = 8, 12
"""How many channels are drawn, and how many sources of each."""

By = Literal["quarter", "month", "weekday", "hour", "event"]
"""How windows are grouped: by the local time at which the forecast was made, or by how far it is from the calendar.

In "event" the first group has the tenth of the windows in which the forecast of a channel is furthest from the
calendar, on average over the horizon.
"""

NAMES: dict[By, tuple[str, ...]] = {
    "quarter": ("Q1", "Q2", "Q3", "Q4"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "hour": tuple(f"{hour:02}:00" for hour in range(24)),
    "event": ("event", "other"),
}
"""The names of the groups, in their order."""

PREPOSITIONS = {"weekday": "on", "hour": "at"}
"""The words before the names of groups, if not "in"."""

GOLDEN = (5**0.5 - 1) / 2
"""The fractional parts of its multiples are spread evenly over 0 to 1 and never repeat."""

EVENTS = 10
"""One of this number of windows is an event."""


@dataclass(frozen=True)
class Driver:
    """What one place of a source adds to the forecast of a channel on average.

    `part` is that of the receipt. A source that is "read" is a patch of a channel, and `steps_back` counts from the
    newest step of the window to its last step. It is None for a covariate "known ahead", for the "unread" values of a
    model that is not sealed, and for the "limit" of the channel. Over windows and steps ahead, `size` is the mean of
    the absolute amounts and `mean` that of the amounts, both in the units of the channel. An amount that was not read
    is 0. `share` is the size as a share of the sizes of all places of the channel, and `read` the share of windows in
    which the source was read.
    """

    channel: str
    part: Part
    source: str
    steps_back: int | None
    size: float
    mean: float
    share: float
    read: float

    @property
    def where(self) -> str:
        """The place of the source in words."""
        if self.steps_back is None:
            return self.part
        back = f"{self.steps_back} step{'s' if self.steps_back > 1 else ''} back"
        return f"most {back}" if self.steps_back else "most at the newest step"


@dataclass(frozen=True)
class Source:
    """What one source adds to the forecast of a channel as a whole, on average.

    Receipts add up, so the amount of a source at a step ahead is the sum of the amounts of its places: amounts that
    cancel move nothing. `size` is the mean of the absolute value of this sum over windows and steps ahead, in the units
    of the channel. `share` is the size divided by the sum of the sizes of all sources of the channel.
    """

    channel: str
    source: str
    size: float
    share: float


@dataclass(frozen=True, eq=False)
class Moves:
    """What each source adds as a whole to the forecasts of each channel, window by window, in its units.

    `size` is that of `Source`, and `mean` the mean of the amounts. `departure` is the mean distance of the forecast
    from the calendar over the horizon. `moments` are the local times at which the forecasts were made; they are not set
    if rows are numbered.
    """

    channels: tuple[str, ...]
    """Those that are forecast."""
    sources: tuple[str, ...]
    moments: Shaped[np.ndarray, " window"]
    size: Float64[np.ndarray, "window forecast source"]
    mean: Float64[np.ndarray, "window forecast source"]
    departure: Float64[np.ndarray, "window forecast"]

    def groups(self, by: By) -> Int64[np.ndarray, "window forecast"]:
        """Return the number of the group of every window, for each channel that is forecast."""
        count, channels = self.departure.shape
        if by == "event":
            furthest = np.argsort(-self.departure, axis=0, kind="stable")[: ceil(count / EVENTS)]
            groups = np.ones((count, channels), dtype=np.int64)
            np.put_along_axis(groups, furthest, 0, axis=0)
            return groups
        return _numbers(self.moments, by)[:, None].repeat(channels, axis=1)

    def average(
        self, channel: str, windows: Bool[np.ndarray, " window"] | None = None
    ) -> dict[str, tuple[float, float, float]]:
        """Return size, mean and share of every source of a channel over some windows; None: over all of them."""
        own, place = slice(None) if windows is None else windows, self.channels.index(channel)
        size, mean = (each[own, place].mean(axis=0) for each in (self.size, self.mean))
        share = size / (size.sum() or 1.0)
        return dict(zip(self.sources, zip(size.tolist(), mean.tolist(), share.tolist(), strict=True), strict=True))


@dataclass(frozen=True)
class Group:
    """What a source adds to the forecast of a channel as a whole, on average over one group of windows.

    `size` and `share` are those of `Source`, and `mean` is the mean of the amounts.
    """

    channel: str
    group: str
    source: str
    size: float
    mean: float
    share: float
    windows: int


def source_in_words(source: str, channel: str) -> str:
    """Name a source of a channel, which may be the channel itself."""
    return "its own past" if source == channel else source


@dataclass(frozen=True)
class Grouped:
    """What moves the forecasts of a model in each group of windows."""

    rows: tuple[Group, ...]
    by: By
    windows: int
    split: str
    kind: Kind = "pyarrow"

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that are forecast, in the order of the table."""
        return tuple(dict.fromkeys(row.channel for row in self.rows))

    def of(self, channel: str) -> dict[str, list[Group]]:
        """Return the groups of every source of a channel; the source that varies most between groups first."""
        rows = sorted((row for row in self.rows if row.channel == channel), key=lambda row: row.source)
        sources = {source: list(some) for source, some in groupby(rows, key=lambda row: row.source)}
        return dict(sorted(sources.items(), key=lambda item: -_varies(item[1])))

    def to_table(self) -> Any:
        """Return a table with one row per channel, group and source; its columns are the fields of `Group`."""
        return to_native(from_rows(Group, self.rows), self.kind)

    def in_words(self) -> str:
        """Return what to watch, in at most eight lines: the sources that vary most between groups."""
        lines = [
            f"Size of what each source adds by {self.by}, in units of the channel, over {_windows(self.windows)} "
            f"({self.split}); the largest differences:"
        ]
        channels, rest = _listed(self.channels)
        each = max(1, (LINES - 1 - bool(rest)) // max(len(channels), 1))
        for channel in channels:
            lines += [f"{channel}: {line}" for line in self.watch(channel, each) or ["the same in all"]]
        return "\n".join([*lines, *rest])

    def watch(self, channel: str, most: int = SOURCES) -> list[str]:
        """Return a line for each of at most `most` sources of a channel that vary between groups, most varied first."""
        return [self._line(groups) for groups in self.of(channel).values() if _varies(groups)][:most]

    def plot(self, path: str | Path) -> Path:
        """Draw a heat map for each channel, sources by groups, as .png or .svg; the first eight channels."""
        from ibforecast.plots.heat import draw

        maps = [self._heat_map(channel) for channel in self.channels[:PANELS]]
        draw(maps, Path(path), self.by, "size (% of the mean total)")
        return Path(path)

    def _line(self, groups: list[Group]) -> str:
        low, *_, high = sorted(groups, key=lambda row: row.size)
        decimals = decimals_of(high.size, COARSE)
        most, least = (f"{shown(row.size, decimals)} {self._when(row)}" for row in (high, low))
        return f"{source_in_words(high.source, high.channel)} {most}, {least}"

    def _when(self, row: Group) -> str:
        if self.by == "event":
            return "in events" if row.group == NAMES["event"][0] else "otherwise"
        return f"{PREPOSITIONS.get(self.by, 'in')} {row.group}"

    def _heat_map(self, channel: str) -> "HeatMap":
        from ibforecast.plots.heat import HeatMap

        sources = self.of(channel)
        largest = sorted(sources, key=lambda source: -_mean(sources[source]))[:ROWS]
        whole = sum(map(_mean, sources.values()))
        columns = [row.group[:3] if self.by in ("month", "weekday") else row.group for row in sources[largest[0]]]
        sizes = np.array([[row.size for row in sources[source]] for source in largest])
        return HeatMap(channel, tuple(largest), tuple(columns), sizes / whole if whole else sizes)


@dataclass(frozen=True)
class Drivers:
    """What moves the forecasts of a model, on evenly spaced windows of a part of a table."""

    rows: tuple[Driver, ...]
    moves: Moves = field(repr=False)
    split: str
    kind: Kind = "pyarrow"
    """The kind of its tables."""

    @property
    def windows(self) -> int:
        """The number of windows."""
        return len(self.moves.moments)

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that are forecast, in the order of the table."""
        return self.moves.channels

    def of(self, channel: str) -> list[Driver]:
        """Return the places that move one channel."""
        return [row for row in self.rows if row.channel == channel]

    def sources(self) -> Iterator[Source]:
        """Yield the sources of every channel, each as a whole, largest first."""
        for channel in self.channels:
            average = self.moves.average(channel)
            for source in sorted(self._names(channel), key=lambda name: -average[name][0]):
                size, _, share = average[source]
                yield Source(channel, source, size, share)

    def to_table(self) -> Any:
        """Return a table with one row per channel, source and patch; its columns are the fields of `Driver`."""
        return to_native(from_rows(Driver, self.rows), self.kind)

    def by_channel(self) -> Any:
        """Return a table with one row per channel and source, largest first; its columns are the fields of `Source`."""
        return to_native(from_rows(Source, self.sources()), self.kind)

    def in_words(self) -> str:
        """Return the largest sources of each channel and the largest place of each, in at most eight lines.

        The own past of a channel comes first, because it usually explains most of the forecast; then what moves it from
        outside, and the largest of these sources.
        """
        headline = (
            f"Sources of each channel, as shares of what all sources add, over {_windows(self.windows)} ({self.split}):"
        )
        channels, rest = _listed(self.channels)
        return "\n".join([headline, *(f"{channel}: {self._largest(channel)}" for channel in channels), *rest])

    def plot(self, path: str | Path) -> Path:
        """Draw a heat map for each channel, sources by steps back, as .png or .svg; the first eight channels."""
        from ibforecast.plots.heat import draw

        maps = [self._heat_map(channel) for channel in self.channels[:PANELS]]
        draw(maps, Path(path), "steps back", "share of the sizes of all places (%)")
        return Path(path)

    def by(self, by: By) -> Grouped:
        """Return what moves each channel in groups of windows: by quarter, month, weekday, hour or event."""
        require_choice("by", by, get_args(By))
        groups = self.moves.groups(by)
        _check_groups(groups, by, self.split)
        return Grouped(tuple(self._grouped(by, groups)), by, self.windows, self.split, self.kind)

    def document(self, grouped: Grouped | None = None) -> dict[str, Any]:
        """Return places and sources as plain data and, if there are groups, also these and the sources to watch."""
        return {
            "windows": self.windows,
            "channels": list(self.channels),
            "rows": list(map(asdict, self.rows)),
            "sources": list(map(asdict, self.sources())),
            "by": None if grouped is None else grouped.by,
            "groups": [] if grouped is None else list(map(asdict, grouped.rows)),
            "watch": {} if grouped is None else {channel: grouped.watch(channel) for channel in self.channels},
        }

    def _grouped(self, by: By, groups: Int64[np.ndarray, "window forecast"]) -> Iterator[Group]:
        for column, channel in enumerate(self.channels):
            names = self._names(channel)
            for number in np.unique(groups[:, column]).tolist():
                own = groups[:, column] == number
                average = self.moves.average(channel, own)
                for source in names:
                    size, mean, share = average[source]
                    yield Group(channel, NAMES[by][number], source, size, mean, share, int(own.sum()))

    def _names(self, channel: str) -> list[str]:
        """Return the sources of a channel that have a place, in the order of the rows."""
        return list(dict.fromkeys(row.source for row in self.of(channel)))

    def strongest(self, channel: str, source: str) -> Driver:
        """Return the place at which a source moves a channel most."""
        return max((row for row in self.of(channel) if row.source == source), key=lambda row: row.size)

    def _largest(self, channel: str) -> str:
        moving = [source for source in self.sources() if source.channel == channel and source.size]
        own = [f"{source_in_words(channel, channel)} {self._share(each)}" for each in moving if each.source == channel]
        neither = [f"{each.source} {self._share(each)}" for each in moving if each.source in (UNREAD, LIMIT)]
        return "; ".join([*own, *self._from_outside(channel, moving, SOURCES - len(own)), *neither]) or "nothing"

    def _from_outside(self, channel: str, moving: list[Source], most: int) -> Iterator[str]:
        """Yield how much other sources move a channel, and the largest of them."""
        outside = [each for each in moving if each.source not in (channel, UNREAD, LIMIT)]
        whole = f"from outside {percent(sum((each.share for each in outside), 0.0))}"
        if len(outside) == 1:
            yield f"{whole}: {outside[0].source}{self._place(outside[0])}"
        elif outside:
            named = ", ".join(f"{each.source} {self._share(each)}" for each in outside[:most])
            yield f"{whole}: {'' if len(outside) <= most else 'first '}{named}"

    def _share(self, source: Source) -> str:
        return f"{percent(source.share)}{self._place(source)}"

    def _place(self, source: Source) -> str:
        strongest = self.strongest(source.channel, source.source)
        return "" if strongest.part in ("unread", "limit") else f" ({strongest.where})"

    def _heat_map(self, channel: str) -> "HeatMap":
        from ibforecast.plots.heat import HeatMap

        rows = self.of(channel)
        names = [source.source for source in self.sources() if source.channel == channel][:ROWS]
        backs = sorted({row.steps_back for row in self.rows if row.steps_back is not None}, reverse=True)
        elsewhere = sorted({row.part for row in self.rows if row.steps_back is None})
        places = {back: place for place, back in enumerate([*backs, *([None] if elsewhere else [])])}
        shares = np.full((len(names), len(places)), np.nan)
        for row in rows:
            if row.source in names:
                shares[names.index(row.source), places[row.steps_back]] = row.share
        columns = tuple([", ".join(elsewhere) if back is None else str(back) for back in places])
        return HeatMap(channel, tuple(names), columns, shares)


def drivers(
    desk: Desk,
    source: Table,
    split: Selection,
    windows: int,
    channels: Sequence[str] | None,
    by: By | None = None,
) -> Drivers:
    """Return what moves these channels of a model (None: all), on windows of a table."""
    starts = chosen_starts(desk.windows(source.series, split), source.series.clock, windows, by, split)
    explanations = (desk.explain(source, start) for start in starts)
    return drivers_of(TorchEngine(desk.fitted), explanations, channels, split, source.kind)


def chosen_starts(windows: Windows, clock: Clock, count: int, by: By | None, split: str) -> list[int]:
    """Return the first rows of `count` of the windows of a part of a table, in increasing order.

    They are evenly spaced, or about equally many of each group `by` the time of the forecast. Windows that cannot be
    grouped are refused before any work.
    """
    require(count >= 1, "windows must be at least 1", f"windows={count}", "give a positive number")
    if by is not None:
        require_choice("by", by, get_args(By))
    starts = windows.starts
    if by in (None, "event"):
        chosen = evenly_spaced(count, len(starts)).numpy()
    else:
        ends = starts.numpy() + windows.look_back - 1
        groups = _numbers(np.full(len(ends), NOT_SET) if clock.numbered else clock.wall[ends], by)
        _check_groups(groups[:, None], by, split)
        chosen = _from_groups(groups, count)
    rows: list[int] = starts[chosen].tolist()
    return rows


def _check_groups(groups: Int64[np.ndarray, "window forecast"], by: By, split: str) -> None:
    """Refuse windows that are all in one group."""
    if len(groups) and (groups == groups[0]).all():
        more = "more rows" if split == "all" else 'split="all"'
        raise DataError(
            f"windows must be in at least two groups by {by}",
            f"all {len(groups)} in {NAMES[by][int(groups[0, 0])]!r}",
            f"use {more}, another number of windows, or another `by`",
        )


def _numbers(moments: Shaped[np.ndarray, " window"], by: By) -> Int64[np.ndarray, " window"]:
    """Return the number of the group of every local time."""
    if np.isnat(moments).any():
        raise UsageError(f"groups by {by} need times", "rows that are numbered", 'try by="event"')
    date = moments.astype("datetime64[D]")
    month = date.astype("datetime64[M]").astype(np.int64) % 12
    numbers = {
        "quarter": month // 3,
        "month": month,
        "weekday": (date - MONDAY.astype("datetime64[D]")).astype(np.int64) % 7,
        "hour": (moments - date).astype("timedelta64[h]").astype(np.int64),
    }
    return np.asarray(numbers[by])


def _from_groups(groups: Int64[np.ndarray, " window"], count: int) -> Int64[np.ndarray, " chosen"]:
    """Return the indices of about equally many windows of each group, `count` in all, in increasing order."""
    chosen: list[int] = []
    members = sorted((np.flatnonzero(groups == number) for number in np.unique(groups)), key=len)
    for place, own in enumerate(members):
        share = min((count - len(chosen)) // (len(members) - place), len(own))
        # One of each of `share` equal parts, at varying places: even steps could be of the same hour or weekday.
        edges = np.arange(share + 1) * len(own) // max(share, 1)
        places = np.arange(len(chosen), len(chosen) + share) * GOLDEN % 1
        chosen += own[edges[:-1] + (places * np.diff(edges)).astype(np.int64)].tolist()
    return np.array(sorted(chosen), dtype=np.int64)


def drivers_of(
    engine: TorchEngine,
    explanations: Iterable[ExplainedForecast],
    channels: Sequence[str] | None = None,
    split: str = "all",
    kind: Kind = "pyarrow",
) -> Drivers:
    """Return what moves these channels of a model (None: all), from explanations that it computed."""
    tally: _Tally | None = None
    for explained in explanations:
        if tally is None:
            tally = _Tally.of(explained, channels)
        tally.add(engine, explained)
    if tally is None:
        raise DataError("drivers need at least one explanation", "none", "give more windows")
    return Drivers(tuple(tally.rows(engine.facts.channels, engine.facts.patch_len)), tally.moves(), split, kind)


@dataclass
class _Tally:
    """Sums over windows of what each token adds to the channels in `columns`, and what each source adds in each window.

    `names` are those of `columns`. The sources are the channels and `others`: covariates known ahead, unread values
    unless the model is sealed, and limits if there are any.
    """

    columns: list[int]
    names: tuple[str, ...]
    others: list[tuple[Part, str]]
    size: Float64[np.ndarray, "forecast patch channel"]
    mean: Float64[np.ndarray, "forecast patch channel"]
    read: Float64[np.ndarray, "patch channel"]
    sources: tuple[str, ...]
    moments: list[np.datetime64] = field(default_factory=list)
    sizes: list[Float64[np.ndarray, "forecast source"]] = field(default_factory=list)
    means: list[Float64[np.ndarray, "forecast source"]] = field(default_factory=list)
    departures: list[Float64[np.ndarray, " forecast"]] = field(default_factory=list)

    @classmethod
    def of(cls, explained: ExplainedForecast, channels: Sequence[str] | None) -> "_Tally":
        """Return sums of zero for these channels, or for all that are forecast."""
        columns = np.flatnonzero(explained.is_forecast).tolist()
        if channels is not None:
            columns = [column_of(explained, channel) for channel in channels]
        others: list[tuple[Part, str]] = [("known ahead", name) for name in explained.covariates]
        others += [] if explained.sealed else [("unread", UNREAD)]
        others += [("limit", LIMIT)] if any(is_limited(explained, column) for column in columns) else []
        mask = explained.explanation.mask.shape
        tokens = (len(columns), *mask)
        sources = (*explained.channels, *(name for _, name in others))
        names = tuple(explained.channels[column] for column in columns)
        return cls(columns, names, others, np.zeros(tokens), np.zeros(tokens), np.zeros(mask), sources)

    def add(self, engine: TorchEngine, explained: ExplainedForecast) -> None:
        """Add the amounts of one window."""
        mask, clock = explained.explanation.mask, explained.clock
        self.read += mask
        self.moments.append(NOT_SET if clock.numbered else clock.wall[explained.look_back - 1])
        shape = len(self.columns), len(self.sources)
        sizes, means, departures = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
        for place, amounts in enumerate(receipts.amounts(engine, explained, self.columns)):
            unread = [] if amounts.unread is None else [amounts.unread[None]]
            limit = np.zeros((1, explained.horizon)) if amounts.limit is None else amounts.limit[None]
            others = np.concatenate([amounts.known, *unread, limit])[: len(self.others)]
            self.size[place][mask] += np.abs(amounts.read).mean(axis=1)
            self.mean[place][mask] += amounts.read.mean(axis=1)
            whole = np.concatenate([_summed(amounts.read, mask), others])
            sizes[place], means[place] = np.abs(whole).mean(axis=1), whole.mean(axis=1) + 0.0  # turns -0.0 into 0.0
            departures[place] = np.abs(explained.forecast[:, self.columns[place]] - amounts.calendar).mean()
        self.sizes.append(sizes)
        self.means.append(means)
        self.departures.append(departures)

    def moves(self) -> Moves:
        """Return what each source adds in each window."""
        moments = np.array(self.moments, dtype="datetime64[us]")
        sizes, means, departures = map(np.stack, (self.sizes, self.means, self.departures))
        return Moves(self.names, self.sources, moments, sizes, means, departures)

    def rows(self, channels: tuple[str, ...], patch_len: int) -> Iterator[Driver]:
        """Yield the means, for every place that was read in some window, and for the other sources."""
        count, patches, moves = len(self.moments), len(self.read), self.moves()
        for place, column in enumerate(self.columns):
            sizes, means = moves.size[:, place].mean(axis=0), moves.mean[:, place].mean(axis=0)
            whole = float(self.size[place].sum() / count + sizes[len(channels) :].sum()) or 1.0
            for source, patch in np.argwhere(self.read.T > 0).tolist():
                back, read = (patches - 1 - patch) * patch_len, float(self.read[patch, source]) / count
                size, mean = (float(sums[place, patch, source]) / count for sums in (self.size, self.mean))
                yield Driver(channels[column], "read", channels[source], back, size, mean, size / whole, read)
            for number, (part, name) in enumerate(self.others, len(channels)):
                size, read = float(sizes[number]), float(part == "known ahead")
                yield Driver(channels[column], part, name, None, size, float(means[number]), size / whole, read)


def _summed(
    amounts: Float64[np.ndarray, "open horizon"], mask: Bool[np.ndarray, "patch channel"]
) -> Float64[np.ndarray, "channel horizon"]:
    """Return the amounts of every channel as a whole: the sums over its places, at every step ahead."""
    sums = np.zeros((mask.shape[1], amounts.shape[1]))
    np.add.at(sums, np.nonzero(mask)[1], amounts)
    return sums


def _windows(count: int) -> str:
    return f"{count} window{'s' if count > 1 else ''}"


def _listed(channels: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """Return the channels that have a line in words, and a line about the others."""
    if len(channels) < LINES:
        return channels, []
    return channels[: LINES - 2], [f"{len(channels) - LINES + 2} more channels are in the table"]


def _mean(groups: list[Group]) -> float:
    """Return the mean size of a source over all windows."""
    return sum(row.size * row.windows for row in groups) / sum(row.windows for row in groups)


def _varies(groups: list[Group]) -> float:
    """Return by how much the sizes of a source differ between groups."""
    return max(row.size for row in groups) - min(row.size for row in groups)
