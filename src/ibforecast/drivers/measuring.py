"""Measuring drivers: the amounts of receipts, added up over windows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float64

from ibforecast import receipts
from ibforecast.core.calendar import NOT_SET
from ibforecast.core.errors import DataError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.limits import LIMIT
from ibforecast.core.receipt import UNREAD, column_of, is_limited
from ibforecast.core.receipt import Kind as Part
from ibforecast.data.sources import Kind
from ibforecast.data.tables import Table
from ibforecast.drivers.groups import By, chosen_starts
from ibforecast.drivers.results import Driver, Drivers, Moves
from ibforecast.engine import TorchEngine
from ibforecast.use import Desk, Selection

WINDOWS = 100
"""Windows used by default. Eight channels of which 150 values are read take about 11 s, if the amounts are what-ifs."""


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
