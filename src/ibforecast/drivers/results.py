"""The drivers of a model's forecasts, by source and by place, as tables, words and heat maps."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from ibforecast.core.errors import require_choice
from ibforecast.core.limits import LIMIT
from ibforecast.core.receipt import COARSE, UNREAD, decimals_of, shown
from ibforecast.core.receipt import Kind as Part
from ibforecast.core.words import percent
from ibforecast.data.sources import Kind, from_rows, to_native
from ibforecast.drivers.groups import EVENTS, NAMES, By, check_groups, numbers_of

if TYPE_CHECKING:
    from ibforecast.plots.heat import HeatMap


LINES, SOURCES = 8, 3
"""The largest number of lines in words, and how many sources are named for a channel."""


PANELS, ROWS = 8, 12
"""How many channels are drawn, and how many sources of each."""


PREPOSITIONS = {"weekday": "on", "hour": "at"}
"""The words before the names of groups, if not "in"."""


@dataclass(frozen=True)
class Driver:
    """The amount that one place of a source adds to the forecast of a channel on average.

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
    """The amount that one source adds to the forecast of a channel as a whole, on average.

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
    """The amounts that each source adds as a whole to the forecasts of each channel, by window, in its units.

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
        return numbers_of(self.moments, by)[:, None].repeat(channels, axis=1)

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
    """The amount that a source adds to the forecast of a channel as a whole, on average over one group of windows.

    `size` and `share` are those of `Source`, and `mean` is the mean of the amounts.
    """

    channel: str
    group: str
    source: str
    size: float
    mean: float
    share: float
    windows: int


@dataclass(frozen=True)
class Grouped:
    """The sources that move the forecasts of a model, in each group of windows."""

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
    """The sources that move the forecasts of a model, over windows of a part of a table."""

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
        check_groups(groups, by, self.split)
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


def source_in_words(source: str, channel: str) -> str:
    """Name a source of a channel, which may be the channel itself."""
    return "its own past" if source == channel else source


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
