"""Using a fitted model: tables are read as the training table was, windows cut, forecast, explained and measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Int64

from ibforecast import checks
from ibforecast.audit import Audit, audit_windows
from ibforecast.core.account import Account
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, UsageError, require, require_choice
from ibforecast.core.explanation import Forecast
from ibforecast.core.verification import Verification
from ibforecast.core.window import Window
from ibforecast.data.calendar import Clock, Frequency
from ibforecast.data.opening import open_table
from ibforecast.data.roles import known_in
from ibforecast.data.series import Series
from ibforecast.data.splits import Part, Split
from ibforecast.data.tables import Layout, Table
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.evaluate.naive import naive_errors, repeatable
from ibforecast.explained import ExplainedForecast
from ibforecast.fitting import calibrated_on
from ibforecast.model.network import IBForecast
from ibforecast.zoo.saved import FittedModel

Selection = Part | Literal["all"]
"""A part of the table a model was fitted on, or all rows of any table."""


@dataclass(frozen=True)
class Evaluation:
    """How a model did on a part of a table; errors in standardised units, as the benchmarks report them.

    `naive_mse` and `naive_mae` are those of repeating the last `naive_cycle` steps of each look-back, on the same
    windows and targets: the model's longest cycle that fits, or the last value alone (1) where none does. A missing
    value is replaced by the last one observed a whole number of cycles before, or else by the channel's last.
    """

    split: str
    windows: int
    mse: float
    mae: float
    open_rate: float
    largest_open_rate: float
    budget: float
    naive_mse: float
    naive_mae: float
    naive_cycle: int


@dataclass(frozen=True)
class Desk:
    """A fitted model and the device it computes on."""

    fitted: FittedModel
    device: str = "auto"

    @property
    def look_back(self) -> int:
        """Number of steps a window spans."""
        return self.fitted.config.look_back

    @property
    def horizon(self) -> int:
        """Number of steps to forecast."""
        return self.fitted.config.horizon

    def open(self, table: Any, future: Any = None) -> Table:
        """Read a table as the training table was read; `future` is a table with covariates from its end on."""
        if future is not None:
            return self.open(table).going_on(future)
        fitted = self.fitted
        if isinstance(table, Table):
            _check_read_alike(table.layout, fitted.layout)
        source = table if isinstance(table, Table) else open_table(table, fitted.layout, fitted=True)[0]
        clock = source.series.clock.counted_from(np.datetime64(fitted.origin))
        if clock.by_row:
            _check_placed(clock, fitted)
        if clock.origin == source.series.clock.origin:
            return source
        return replace(source, series=replace(source.series, clock=clock))

    def start(self, series: Series, at: Any) -> int:
        """Return the first row of the window that ends at a moment, or with the series (None)."""
        return self.start_of(series, series.rows - 1 if at is None else series.clock.row_of(at))

    def start_of(self, series: Series, last: int) -> int:
        """Return the first row of the window whose last row this is."""
        start = last - self.look_back + 1
        if start < 0:
            raise DataError(
                f"a forecast must have look_back = {self.look_back} rows before it",
                last + 1,
                "give earlier rows or forecast from a later moment",
            )
        silent = np.isnan(series.values[start : last + 1]).all(axis=0)
        if silent.any():
            raise DataError(
                "every channel must be observed at least once in the window",
                f"nothing in {series.channels[int(silent.argmax())]!r} from {series.clock.labels(start, 1)[0]} to "
                f"{series.clock.labels(last, 1)[0]}",
                "choose another moment or leave the channel out",
            )
        return start

    def window(self, series: Series, start: int) -> Window:
        """Return the window that begins at a row."""
        history = series.values[start : start + self.look_back]
        steps, fitted = self.look_back + self.horizon, self.fitted
        phase = series.clock.phase(start, steps, fitted.config.period)
        known = known_in(series, start, steps)
        ahead = None if known is None or fitted.known is None else fitted.known.standardise(known)
        return checks.window_of(history, phase, fitted.standardiser, ahead)

    def forecast(self, series: Series, start: int, budget: float | None = None) -> Forecast:
        """Forecast from the window that begins at a row, in standardised units."""
        network = self.fitted.at_budget(budget).network
        with torch.inference_mode():
            forecast: Forecast = network(self.window(series, start))
            return forecast

    def predict(self, source: Table, start: int, budget: float | None = None) -> Any:
        """Forecast from the window that begins at a row, as a table like the one that was opened."""
        values = checks.in_units(self.forecast(source.series, start, budget).values, self.fitted.standardiser)
        return source.forecast(start + self.look_back, values)

    def explain(self, source: Table, start: int, budget: float | None = None) -> ExplainedForecast:
        """Forecast and explain the window that begins at a row, in one forward pass."""
        return explained(self, source, start, self.forecast(source.series, start, budget), budget)

    def verify(self, account: Account) -> Verification:
        """Check that an explanation is the truth about its forecast, without raising."""
        return checks.verify(self.fitted, account)

    def windows_at(self, series: Series, starts: range | Int64[np.ndarray, " window"]) -> Windows:
        """Return the windows that begin at these rows, with what follows them."""
        fitted, period = self.fitted, self.fitted.config.period
        return Windows.of(series, fitted.standardiser, period, starts, self.look_back, self.horizon, known=fitted.known)

    def windows(self, series: Series, split: Selection, at_least: int = 1) -> Windows:
        """Return the windows of a part of a table, or of all of it, in which every channel is observed."""
        fitted = self.fitted
        require_choice("split", split, (*get_args(Part), "all"))
        if split != "all" and (other := _difference(series, fitted)):
            raise UsageError(
                f'split "{split}" must come from the table the model was fitted on (this {other})',
                remedy='use split="all"',
            )
        part = Split(series.rows, series.rows, series.rows) if split == "all" else fitted.split
        windows = self.windows_at(
            series, part.starts("train" if split == "all" else split, self.look_back, self.horizon)
        )
        usable = windows.usable()
        if len(usable) < at_least:
            raise DataError(
                f"measuring needs at least {'one window' if at_least == 1 else f'{at_least} windows'} in which every "
                "channel is observed",
                f"{len(usable) or 'none'} of {len(windows)}",
                "give a table with fewer gaps" + (" or more rows" if at_least > 1 else ""),
            )
        return usable

    def evaluate(self, source: Table, split: Selection, budget: float | None = None) -> Evaluation:
        """Measure the model on a part of a table, next to repeating the last cycle."""
        fitted = self.fitted.at_budget(budget)
        usable = self.windows(source.series, split)
        cycle = repeatable(fitted.config.cycles, self.look_back)
        with self.at_work(fitted.network) as device:
            usable = usable.to(device)
            measured = accuracy(fitted.network, usable)
            naive_squared, naive_absolute = naive_errors(usable, cycle)
        return Evaluation(
            split=split,
            windows=len(measured.squared_error),
            mse=measured.mse,
            mae=measured.mae,
            open_rate=float(measured.open_rate.mean()),
            largest_open_rate=float(measured.open_rate.max()),
            budget=fitted.config.budget,
            naive_mse=float(naive_squared.mean()),
            naive_mae=float(naive_absolute.mean()),
            naive_cycle=cycle,
        )

    def audit(self, source: Table, split: Selection, windows: int) -> Audit:
        """Measure how far the model's explanations can be relied on, on evenly spaced windows of a table."""
        usable = self.windows(source.series, split, at_least=2)
        with self.at_work(self.fitted.network) as device:
            return audit_windows(self.fitted, usable.to(device), windows, split, source.series.sha256)

    def calibrate(self, source: Table, split: Selection) -> FittedModel:
        """Return the model with intervals as wide as its errors on these windows, which were not trained on."""
        fitted, series = self.fitted, source.series
        untrained = "intervals must be calibrated on windows the model was not trained on"
        require(split != "train", untrained, 'split="train"', 'use "validation", or "all" of a later table')
        windows = self.windows(series, split)
        row, trained = int(windows.starts[0]) + self.look_back, self.trained_rows(series)
        if row < trained:
            first, until, begin = (series.clock.labels(at, 1)[0] for at in (row, trained, trained - self.look_back))
            raise UsageError(
                untrained,
                f"a first forecast of {first}, trained on rows before {until}",
                f"give the rows from {begin} on",
            )
        with self.at_work(fitted.network) as device:
            return replace(fitted, calibration=calibrated_on(fitted.network, windows.to(device), series))

    def trained_rows(self, series: Series) -> int:
        """Return how many rows of a table, counted from the model's origin, lie before the end of its training part."""
        return max(self.fitted.split.train_end - series.clock.offset, 0)

    @contextmanager
    def at_work(self, network: IBForecast) -> Iterator[torch.device]:
        """Lend a network to the device; it comes back to the CPU whatever happens."""
        device = torch.device(find_device(self.device))
        try:
            network.to(device)
            yield device
        finally:
            network.cpu()


def explained(
    desk: Desk, source: Table, start: int, forecast: Forecast, budget: float | None = None
) -> ExplainedForecast:
    """Return a forecast of the window that begins at a row with its explanation, in the table's names and units."""
    fitted, series, explanation = desk.fitted, source.series, forecast.explanation
    assert explanation is not None
    now, end = start + desk.look_back, start + desk.look_back + desk.horizon
    truth = np.full((desk.horizon, len(series.channels)), np.nan)
    known = series.values[now:end]
    truth[: len(known)] = known
    context, ahead = explanation.context, known_in(series, start, end - start)
    return ExplainedForecast(
        weights_sha256=fitted.weights_sha256,
        computed_with=checks.environment(),
        budget=fitted.config.budget if budget is None else budget,
        patch_len=fitted.config.patch_len,
        frequency=str(series.clock.frequency),
        channels=series.channels,
        times=series.clock.labels(start, end - start),
        history=series.values[start:now],
        forecast=checks.in_units(forecast.values, fitted.standardiser, fitted.config.past),
        truth=truth if len(known) else None,
        mean=fitted.standardiser.mean,
        std=fitted.standardiser.std,
        level=context.level[0].numpy(),
        scale=context.scale[0].numpy(),
        phase=context.phase[0].numpy(),
        profile=context.profile.detach().numpy().copy(),
        mask=explanation.mask[0].numpy(),
        probability=explanation.probability[0].numpy(),
        missing=explanation.missing[0].numpy(),
        evidence=explanation.evidence[0].numpy(),
        prior=fitted.config.objective.prior,
        cycles=fitted.config.cycles,
        past=fitted.layout.past,
        known=None if ahead is None else checks.known_of(fitted, ahead, context),
        verifier=desk,
        kind=source.kind,
    )


def _check_read_alike(layout: Layout, wanted: Layout) -> None:
    """Refuse a table opened by another model that reads tables in another way; None in `wanted` allows any."""
    if layout.channels != wanted.channels:
        raise DataError(
            f"a table must have the channels of training, {wanted.channels}",
            f"one opened by another model, with {layout.channels}",
            "open it with this one",
        )
    for name in ("past", "future", "frequency", "irregular", "missing_values", "zone"):
        here, there = getattr(layout, name), getattr(wanted, name)
        if there is not None and here != there:
            raise DataError(
                f"a table must be read as the training table was, with {name}={there!r}",
                f"one opened by another model, with {name}={here!r}",
                "open it with this one",
            )


def _check_placed(clock: Clock, fitted: FittedModel) -> None:
    """Refuse a later piece of a table whose rows are counted, unless the times say how many rows lie before it."""
    if clock.offset > 0 and not fitted.even:
        raise clock.unplaced("and those of training did not")


def _difference(series: Series, fitted: FittedModel) -> str:
    """Say how a series differs from the one a model was fitted on; empty if it is the same."""
    clock, layout = series.clock, fitted.layout
    if series.sha256 != fitted.summary.data_sha256:
        return "is another"
    if clock.stamps[0] != np.datetime64(fitted.origin) or clock.zone != layout.zone:
        return f"has its values, but begins at {clock.labels(0, 1)[0]}"
    if layout.frequency is not None and clock.frequency != Frequency.parse(layout.frequency):
        return f"has its values, but steps of {clock.frequency}"
    return ""
