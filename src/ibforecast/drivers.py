"""What moves which channel: the amounts of receipts, averaged over many windows of a table."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from ibforecast import receipts
from ibforecast.core.errors import DataError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import column_of
from ibforecast.core.words import percent
from ibforecast.data.sources import Kind, from_rows, to_native
from ibforecast.data.tables import Table
from ibforecast.engine import TorchEngine
from ibforecast.evaluate.chosen import evenly_spaced
from ibforecast.plots.heat import HeatMap, draw
from ibforecast.use import Desk, Selection

WINDOWS = 100
"""Windows used by default. Eight channels of which 150 values are read take about 15 s, if the amounts are what-ifs."""

LINES, SOURCES = 8, 3
"""The largest number of lines in words, and how many sources are named for a channel."""

PANELS, ROWS = 8, 12
"""How many channels are drawn, and how many sources of each."""


@dataclass(frozen=True)
class Driver:
    """What a patch of one channel, or a covariate known ahead, adds to the forecast of a channel on average.

    `steps_back` counts from the newest step of the window to the last step of the patch; None means known ahead. Over
    windows and steps ahead, `size` is the mean of the absolute amounts and `mean` that of the amounts, both in the
    units of the channel. An amount that was not read is 0. `share` is the size as a share of all sizes of the channel,
    and `read` the share of windows in which the patch was read.
    """

    channel: str
    source: str
    steps_back: int | None
    size: float
    mean: float
    share: float
    read: float


@dataclass(frozen=True)
class Source:
    """The size and share of all that one source adds to the forecast of a channel, summed over its patches."""

    channel: str
    source: str
    size: float
    share: float


@dataclass(frozen=True)
class Drivers:
    """What moves the forecasts of a model, on evenly spaced windows of a part of a table."""

    rows: tuple[Driver, ...]
    windows: int
    split: str
    kind: Kind = "pyarrow"
    """The kind of its tables."""

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that are forecast, in the order of the table."""
        return tuple(dict.fromkeys(row.channel for row in self.rows))

    def of(self, channel: str) -> list[Driver]:
        """Return what moves one channel."""
        return [row for row in self.rows if row.channel == channel]

    def sources(self) -> Iterator[Source]:
        """Yield the sources of every channel, each summed over its patches, largest first."""
        for channel in self.channels:
            sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
            for row in self.of(channel):
                sums[row.source][0] += row.size
                sums[row.source][1] += row.share
            for source, (size, share) in sorted(sums.items(), key=lambda item: -item[1][0]):
                yield Source(channel, source, size, share)

    def to_table(self) -> Any:
        """Return a table with one row per channel, source and patch; its columns are the fields of `Driver`."""
        return to_native(from_rows(Driver, self.rows), self.kind)

    def by_channel(self) -> Any:
        """Return a table with one row per channel and source, largest first: channel, source, size and share."""
        return to_native(from_rows(Source, self.sources()), self.kind)

    def in_words(self) -> str:
        """Return the three largest sources of each channel and where each is strongest, in at most eight lines."""
        lines = [f"Sources of each channel, as shares of all amounts, over {self.windows} windows ({self.split}):"]
        channels = self.channels
        shown = channels if len(channels) < LINES else channels[: LINES - 2]
        lines += [f"{channel}: {self._largest(channel)}" for channel in shown]
        if rest := len(channels) - len(shown):
            lines.append(f"{rest} more channels are in the table")
        return "\n".join(lines)

    def plot(self, path: str | Path) -> Path:
        """Draw a heat map for each channel, sources by steps back, as .png or .svg; the first eight channels."""
        draw([self._heat_map(channel) for channel in self.channels[:PANELS]], Path(path))
        return Path(path)

    def _largest(self, channel: str) -> str:
        strongest: dict[str, Driver] = {}
        for row in self.of(channel):
            strongest[row.source] = max(strongest.get(row.source, row), row, key=lambda each: each.size)
        largest = [source for source in self.sources() if source.channel == channel and source.size][:SOURCES]
        return (
            ", ".join(f"{each.source} {percent(each.share)} ({_where(strongest[each.source])})" for each in largest)
            or "nothing"
        )

    def _heat_map(self, channel: str) -> HeatMap:
        rows = self.of(channel)
        names = [source.source for source in self.sources() if source.channel == channel][:ROWS]
        backs = sorted({row.steps_back for row in self.rows if row.steps_back is not None}, reverse=True)
        ahead = [None] if any(row.steps_back is None for row in self.rows) else []
        places = {back: place for place, back in enumerate([*backs, *ahead])}
        shares = np.full((len(names), len(places)), np.nan)
        for row in rows:
            if row.source in names:
                shares[names.index(row.source), places[row.steps_back]] = row.share
        columns = tuple(["known ahead" if back is None else str(back) for back in places])
        return HeatMap(channel, tuple(names), columns, shares)


def drivers(desk: Desk, source: Table, split: Selection, windows: int, channel: str | None) -> Drivers:
    """Return what moves the channels of a model, or one of them, on evenly spaced windows of a table."""
    explanations = explained_windows(desk, source, split, windows)
    return drivers_of(TorchEngine(desk.fitted), explanations, channel, split, source.kind)


def explained_windows(desk: Desk, source: Table, split: Selection, windows: int) -> Iterator[ExplainedForecast]:
    """Yield the explanations of evenly spaced windows of a part of a table, oldest first."""
    usable = desk.windows(source.series, split)
    for start in usable.starts[evenly_spaced(windows, len(usable))].tolist():
        yield desk.explain(source, start)


def drivers_of(
    engine: TorchEngine,
    explanations: Iterable[ExplainedForecast],
    channel: str | None = None,
    split: str = "all",
    kind: Kind = "pyarrow",
) -> Drivers:
    """Return what moves the channels of a model, or one of them, from explanations that it computed."""
    tally: _Tally | None = None
    for explained in explanations:
        if tally is None:
            tally = _Tally.of(explained, channel)
        tally.add(engine, explained)
    if tally is None:
        raise DataError("drivers need at least one explanation", "none", "give more windows")
    facts = engine.facts
    return Drivers(tuple(tally.rows(facts.channels, facts.covariates, facts.patch_len)), tally.windows, split, kind)


@dataclass
class _Tally:
    """Sums over windows of what each token and each covariate adds to the channels in `columns`."""

    columns: list[int]
    size: Float64[np.ndarray, "forecast patch channel"]
    mean: Float64[np.ndarray, "forecast patch channel"]
    read: Float64[np.ndarray, "patch channel"]
    known_size: Float64[np.ndarray, "forecast covariate"]
    known_mean: Float64[np.ndarray, "forecast covariate"]
    windows: int = 0

    @classmethod
    def of(cls, explained: ExplainedForecast, channel: str | None) -> "_Tally":
        """Return sums of zero for one channel, or for all that are forecast."""
        columns = np.flatnonzero(explained.is_forecast).tolist()
        if channel is not None:
            columns = [column_of(explained, channel)]
        mask = explained.explanation.mask.shape
        tokens, known = (len(columns), *mask), (len(columns), len(explained.covariates))
        return cls(columns, np.zeros(tokens), np.zeros(tokens), np.zeros(mask), np.zeros(known), np.zeros(known))

    def add(self, engine: TorchEngine, explained: ExplainedForecast) -> None:
        """Add the amounts of one window."""
        mask = explained.explanation.mask
        self.windows += 1
        self.read += mask
        for place, amounts in enumerate(receipts.amounts(engine, explained, self.columns)):
            self.size[place][mask] += np.abs(amounts.read).mean(axis=1)
            self.mean[place][mask] += amounts.read.mean(axis=1)
            self.known_size[place] += np.abs(amounts.known).mean(axis=1)
            self.known_mean[place] += amounts.known.mean(axis=1)

    def rows(self, channels: tuple[str, ...], covariates: tuple[str, ...], patch_len: int) -> Iterator[Driver]:
        """Yield the means, for every place that was read in some window."""
        count, patches = self.windows, len(self.read)
        for place, column in enumerate(self.columns):
            whole = float(self.size[place].sum() + self.known_size[place].sum())
            shares = 1 / whole if whole else 0.0
            for source, patch in np.argwhere(self.read.T > 0).tolist():
                size, mean = float(self.size[place, patch, source]), float(self.mean[place, patch, source])
                back, read = (patches - 1 - patch) * patch_len, float(self.read[patch, source])
                yield Driver(
                    channels[column],
                    channels[source],
                    back,
                    size / count,
                    mean / count,
                    size * shares,
                    read / count,
                )
            for number, covariate in enumerate(covariates):
                size, mean = float(self.known_size[place, number]), float(self.known_mean[place, number])
                yield Driver(channels[column], covariate, None, size / count, mean / count, size * shares, 1.0)


def _where(driver: Driver) -> str:
    back = driver.steps_back
    if back is None:
        return "known ahead"
    return f"most {back} step{'s' if back > 1 else ''} back" if back else "most at the newest step"
