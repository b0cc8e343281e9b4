"""Windows, indexed from a series that stays on the device."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int, Int64
from torch import Tensor

from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.standardiser import Standardiser, too_large
from ibforecast.core.window import Target, Window
from ibforecast.data.series import Series

ROWS = 1 << 16
"""Rows that are standardised at a time."""

CELLS = 1 << 23
"""Cells, which are steps of channels, of the windows that are computed at a time: they need up to 5 GB."""


@dataclass(frozen=True)
class Windows:
    """The windows that begin at `starts`, in one series; missing values are 0 and not `observed`.

    The last `past` channels are read and not forecast: in targets they count as not observed. `tokens` marks what a
    sealed model reads, each token only if it is complete; None is for any other model, which sees every value.
    """

    values: Float[Tensor, "row channel"]
    observed: Bool[Tensor, "row channel"]
    phase: Int[Tensor, " row_and_beyond"]
    starts: Int[Tensor, " window"]
    look_back: int
    horizon: int
    calendar: Float[Tensor, "row_and_beyond 4"] | None = None
    known: Float[Tensor, "row_and_further covariate"] | None = None
    past: int = 0
    tokens: Bool[Tensor, "patch channel"] | None = None

    @classmethod
    def of(
        cls,
        series: Series,
        standardiser: Standardiser,
        cycle: int,
        starts: range | Int64[np.ndarray, " window"],
        look_back: int,
        horizon: int,
        with_calendar: bool = False,
        known: Standardiser | None = None,
        tokens: Bool[np.ndarray, "patch channel"] | None = None,
    ) -> "Windows":
        """Standardise a series once for all its windows; it may end with the look-back of the last one.

        `cycle` is the period of the phases, and `known` standardises the covariates known ahead.
        """
        ahead = None
        if known is not None and series.known is not None:
            _check_sizes(series, series.covariates, known, series.known)
            ahead = known.standardise(series.known)
        steps = series.rows + horizon
        values = torch.empty(series.values.shape, dtype=torch.float32)
        # In parts, because all rows in double precision, twice, would need four times the memory of the result.
        for first in range(0, series.rows, ROWS):
            part = slice(first, first + ROWS)
            _check_sizes(series, series.channels, standardiser, series.values[part], first)
            values[part] = torch.from_numpy(standardiser.standardise(series.values[part]))
        observed = ~values.isnan()
        return cls(
            values=values.nan_to_num_(0.0),
            observed=observed,
            phase=torch.from_numpy(series.clock.phase(0, steps, cycle)),
            starts=torch.as_tensor(np.asarray(starts), dtype=torch.int64),
            look_back=look_back,
            horizon=horizon,
            calendar=torch.from_numpy(series.clock.calendar(0, steps)).float() if with_calendar else None,
            known=None if ahead is None else torch.from_numpy(ahead).float(),
            past=series.past,
            tokens=None if tokens is None else torch.from_numpy(tokens),
        )

    def __len__(self) -> int:
        return len(self.starts)

    def to(self, device: torch.device) -> "Windows":
        """Return the windows with the series on a device."""
        return replace(
            self,
            values=self.values.to(device),
            observed=self.observed.to(device),
            phase=self.phase.to(device),
            starts=self.starts.to(device),
            calendar=None if self.calendar is None else self.calendar.to(device),
            known=None if self.known is None else self.known.to(device),
            tokens=None if self.tokens is None else self.tokens.to(device),
        )

    def at(self, starts: range | Int64[np.ndarray, " window"]) -> "Windows":
        """Return other windows of the same series."""
        chosen = torch.as_tensor(np.asarray(starts), dtype=torch.int64, device=self.starts.device)
        return replace(self, starts=chosen)

    def spaced(self, count: int) -> "Windows":
        """Return this many of the windows, evenly spaced from first to last; all if there are fewer."""
        return replace(self, starts=self.starts[evenly_spaced(count, len(self)).to(self.starts.device)])

    def compared(self, count: int) -> "Windows":
        """Return the windows on which errors are compared: this many, evenly spaced; all of them if it is 0."""
        return self.spaced(count) if count else self

    def apart(self) -> int:
        """Return how many of the windows can be chosen so that no two forecast the same step."""
        starts: list[int] = self.starts.sort().values.tolist()
        count = place = 0
        while place < len(starts):
            count, place = count + 1, bisect_left(starts, starts[place] + self.horizon, place)
        return count

    def usable(self) -> "Windows":
        """Return the windows in which every channel is observed at least once: where it is read, and in the target.

        A model forecasts from no other window. A channel that is never read may be empty in the look-back. In the
        target, only the channels that are forecast count. Without `tokens`, a value anywhere in the look-back counts;
        so it is in training, also for a sealed model, which is still choosing its tokens.
        """
        counts = self._counts()
        now, end = self.starts + self.look_back, self.starts + self.look_back + self.horizon
        forecast = slice(counts.shape[1] - self.past)
        keep = self._read(counts).all(dim=1)
        keep &= (counts[end] > counts[now])[:, forecast].all(dim=1)
        return replace(self, starts=self.starts[keep])

    def read(self) -> Bool[Tensor, "window channel"]:
        """Mark the channels of each window with a value where they are read, and those that are never read."""
        return self._read(self._counts())

    def _read(self, counts: Int[Tensor, "row_and_one channel"]) -> Bool[Tensor, "window channel"]:
        if self.tokens is None:
            return counts[self.starts + self.look_back] > counts[self.starts]
        patch_len = self.look_back // len(self.tokens)
        complete = counts[patch_len:] - counts[:-patch_len] == patch_len
        read = (~self.tokens.any(dim=0)).repeat(len(self), 1)
        # One patch at a time, because the look-backs of all windows may not fit into memory.
        for patch in self.tokens.any(dim=1).nonzero().flatten().tolist():
            read |= self.tokens[patch] & complete[self.starts + patch * patch_len]
        return read

    def _counts(self) -> Int[Tensor, "row_and_one channel"]:
        """Return the number of observed values of each channel before each row."""
        none = self.observed.new_zeros(1, self.observed.shape[1])
        return torch.cat([none, self.observed]).cumsum(0, dtype=torch.int32)

    def look_backs(self, starts: Int[Tensor, " batch"]) -> Window:
        """Return the look-back windows that begin at these rows; the rows after them need not exist."""
        past, steps = self._steps(starts, self.look_back), self._steps(starts, self.look_back + self.horizon)
        calendar = None if self.calendar is None else self.calendar[steps]
        known = None if self.known is None else self.known[steps]
        return Window(self.values[past], self.observed[past], self.phase[steps], calendar, known)

    def take(self, starts: Int[Tensor, " batch"]) -> tuple[Window, Target]:
        """Return the windows that begin at these rows, and their targets."""
        future = self._steps(starts + self.look_back, self.horizon)
        observed = self.observed[future]
        observed[..., observed.shape[-1] - self.past :] = False
        return self.look_backs(starts), Target(self.values[future], observed)

    def at_once(self, most: int) -> int:
        """Return how many windows to compute at a time: `most`, or fewer if there are many channels or steps."""
        return within_cells(most, self.values.shape[1], self.look_back + self.horizon)

    def batches(self, size: int) -> Iterator[tuple[Window, Target]]:
        """Yield all windows in order, none dropped."""
        for first in range(0, len(self), size):
            yield self.take(self.starts[first : first + size])

    @staticmethod
    def _steps(starts: Int[Tensor, " batch"], count: int) -> Int[Tensor, "batch steps"]:
        return starts[:, None] + torch.arange(count, device=starts.device)


def within_cells(most: int, channels: int, steps: int) -> int:
    """Return the number of windows of this size, at most `most`, that have no more than `CELLS` cells."""
    return min(most, max(1, CELLS // (channels * steps)))


def _check_sizes(
    series: Series,
    names: tuple[str, ...],
    units: Standardiser,
    values: Float64[np.ndarray, "row column"],
    first: int = 0,
) -> None:
    """Refuse a value that single precision cannot carry through the network; `first` is the first of these rows."""
    for row, column in np.argwhere(units.too_far(values)).tolist():
        label = series.clock.labels(first + row, 1)[0]
        raise too_large(values[row, column], f"in row {first + row} of {names[column]!r}, at {label}")
