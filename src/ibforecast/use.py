"""Using a fitted model: reading tables like the training table, and forecasting, explaining and measuring."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float64, Int64

from ibforecast import receipts
from ibforecast.core import running, verification
from ibforecast.core.calendar import Frequency
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, UsageError, require, require_choice
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.reader import Reader
from ibforecast.core.receipt import Amounts, Step
from ibforecast.core.running import Cell
from ibforecast.core.verdict import Verification
from ibforecast.core.verification import Original
from ibforecast.data import tables
from ibforecast.data.dates import read_moment
from ibforecast.data.roles import known_in
from ibforecast.data.series import Series
from ibforecast.data.sources import Kind, from_rows, kind_for_files, to_native
from ibforecast.data.splits import Part, Split
from ibforecast.data.tables import Layout, Table
from ibforecast.data.windows import Windows
from ibforecast.engine import TorchEngine, facts_of
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.evaluate.channels import ChannelErrors, channel_errors
from ibforecast.evaluate.naive import Naive, SeasonalMean, naive_cycles, naive_forecasts, seasonal_mean
from ibforecast.fitting import calibrated_on
from ibforecast.model.network import IBForecast
from ibforecast.zoo.saved import FittedModel

if TYPE_CHECKING:
    from ibforecast.audit import Audit

Selection = Part | Literal["all"]
"""A part of the table a model was fitted on, or all rows of any table."""


@dataclass(frozen=True)
class ChannelEvaluation:
    """The errors of a channel in its units, next to those of the best naive forecast of this channel.

    The best one, by MAE, repeats the last `naive_cycle` steps.
    """

    channel: str
    mae: float
    rmse: float
    naive_mae: float
    naive_rmse: float
    naive_cycle: int


@dataclass(frozen=True)
class Evaluation:
    """The results of a model on a part of a table; errors in standardised units, as in the benchmarks.

    `naive_mse` and `naive_mae` are the errors of the best naive forecast, by MAE, on the same windows and targets. It
    repeats the last `naive_cycle` steps. These cycles are tried: the last value, the model's cycles, and the natural
    ones of its step, such as a day and a week of hours. Rows before the look-back are used if the cycle is longer. A
    missing value is replaced by the last one observed a whole number of cycles before, or otherwise by the channel's
    last value. (A channel without one, which a sealed model need not read, is repeated as its mean in training.)

    `channels` has the errors of each channel that is forecast, in its units. `seasonal_mse` and `seasonal_mae` are the
    errors of a seasonal mean: that of the training rows at the same phase of a cycle of `seasonal_cycle` steps, which
    is the best of those above by MAE. They are None for a table other than that of the fit.
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
    channels: tuple[ChannelEvaluation, ...] = ()
    seasonal_mse: float | None = None
    seasonal_mae: float | None = None
    seasonal_cycle: int | None = None


@dataclass(frozen=True)
class Desk:
    """A fitted model and the device it computes on."""

    fitted: FittedModel
    device: str = "auto"
    kind: Kind = "pyarrow"
    """The kind of tables made from an explanation."""

    @property
    def look_back(self) -> int:
        """Number of steps a window spans."""
        return self.fitted.config.look_back

    @property
    def horizon(self) -> int:
        """Number of steps to forecast."""
        return self.fitted.config.horizon

    def open(self, table: Any, future: Any = None) -> Table:
        """Read a table like the training table; `future` is a table with covariates from its end on."""
        if future is not None:
            return self.open(table).with_future(future)
        fitted = self.fitted
        if isinstance(table, Table):
            _check_read_alike(table.layout, fitted.layout)
        source = table if isinstance(table, Table) else tables.read(table, fitted.layout)
        clock = source.series.clock.counted_from(np.datetime64(fitted.origin), fitted.even)
        if clock.by_row:
            _ = clock.offset  # raises now if the rows cannot be counted
        if (clock.origin, clock.countable) == (source.series.clock.origin, source.series.clock.countable):
            return source
        return replace(source, series=replace(source.series, clock=clock))

    def moment(self, at: Any) -> Any:
        """Return a moment in a form that clocks accept; a text may have any format that times of a table may have."""
        return read_moment(at, self.fitted.layout.dates)

    def start(self, series: Series, at: Any, budget: float | None = None) -> int:
        """Return the first row of the window that ends at a moment, or with the series (None)."""
        return self.start_of(series, self.last(series, at), budget)

    def last(self, series: Series, at: Any) -> int:
        """Return the row of a moment, or the last one of the series (None)."""
        return series.rows - 1 if at is None else series.clock.row_of(self.moment(at))

    def start_of(self, series: Series, last: int, budget: float | None = None) -> int:
        """Return the first row of the window that ends with the row `last`."""
        start = last - self.look_back + 1
        if start < 0:
            raise DataError(
                f"a forecast must have look_back = {self.look_back} rows before it",
                last + 1,
                "give earlier rows or forecast from a later moment",
            )
        cells, clock = self.fitted.at_budget(budget).cells, series.clock.window(start, self.look_back)
        running.require_readable(facts_of(self.fitted), cells, series.values[start : last + 1], clock)
        return start

    def reads(self, at: Any = None, budget: float | None = None) -> list[Cell]:
        """Return the values that a sealed model reads for a forecast made at a moment, oldest first.

        Without a moment their times are None.
        """
        return running.reads(facts_of(self.fitted), self.fitted.at_budget(budget).cells, self.moment(at))

    def reader(self, at: Any, budget: float | None = None, future: Any = None) -> Reader:
        """Return a reader of the window of a sealed model that ends at a moment."""
        engine, kind = TorchEngine(self.fitted.at_budget(budget)), kind_for_files()
        facts, clock = engine.facts, running.window_at(engine.facts, self.moment(at))
        nothing = np.full((facts.look_back, len(facts.channels)), np.nan)
        series = Series(nothing, facts.channels, clock, len(facts.past), facts.covariates)
        window = Table(series, self.fitted.layout, kind)
        require(
            future is not None or not facts.covariates,
            "a reader needs the covariates known ahead, for every step of look-back and horizon",
            "future=None",
            f"give a table of {', '.join(map(repr, facts.covariates))}",
        )
        return Reader(
            engine,
            engine.fitted.cells,
            clock,
            None if future is None else window.known_at(future, facts.steps),
            replace(self, kind=kind),
            partial(window.forecast, facts.look_back),
        )

    def original(self, source: Table, start: int) -> Original:
        """Return the table's history, times, truth and covariates of the window that begins at a row."""
        series, steps, now = source.series, self.look_back + self.horizon, start + self.look_back
        truth = np.full((self.horizon, len(series.channels)), np.nan)
        followed = series.values[now : start + steps]
        truth[: len(followed)] = followed
        return Original(
            clock=series.clock.window(start, steps),
            history=series.values[start:now],
            truth=truth if len(followed) else None,
            known=known_in(series, start, steps),
        )

    def run(
        self, source: Table, start: int, budget: float | None = None
    ) -> tuple[Explanation[np.ndarray], Float64[np.ndarray, "horizon channel"]]:
        """Return the explanation of the window that begins at a row, and what the model computed, before any limits."""
        return running.computed(TorchEngine(self.fitted.at_budget(budget)), self.original(source, start))

    def predict(self, source: Table, start: int, budget: float | None = None) -> Any:
        """Forecast from the window that begins at a row, as a table like the opened one."""
        _, computed = self.run(source, start, budget)
        return source.forecast(start + self.look_back, facts_of(self.fitted).limited(computed))

    def explain(self, source: Table, start: int, budget: float | None = None) -> ExplainedForecast:
        """Forecast and explain the window that begins at a row, in one forward pass."""
        engine, rows = TorchEngine(self.fitted.at_budget(budget)), self.original(source, start)
        return self.explained(source, rows, engine.facts, *running.computed(engine, rows))

    def explained(
        self,
        source: Table,
        rows: Original,
        facts: ModelFacts,
        explanation: Explanation[np.ndarray],
        computed: Float64[np.ndarray, "horizon channel"],
    ) -> ExplainedForecast:
        """Return the explained forecast of rows of a table, from what the model computed."""
        host = replace(self, kind=source.kind)
        return ExplainedForecast.of(
            facts, explanation, computed, rows.history, rows.clock, rows.truth, rows.known, host
        )

    def explain_before(self, source: Table, at: Any = None, budget: float | None = None) -> ExplainedForecast:
        """Explain the forecast with which one made at a moment is compared by default: the one made a day before.

        If steps are a day or longer, or counted by row, it is the one made one step before.
        """
        series = source.series
        return self.explain(source, self.start_of(series, self.last(series, at) - series.clock.day, budget), budget)

    def verify(
        self,
        explained: ExplainedForecast | str | bytes,
        table: Any = None,
        *,
        future: Any = None,
        exact: bool = False,
        key: bytes | None = None,
    ) -> Verification:
        """Check that an explanation, or the text of its document, is true, without raising."""
        source = verification.read(explained)
        if isinstance(source, Verification):
            return source
        original = None if table is None else self._claimed(source, self.open(table, future))
        engine = TorchEngine(self.fitted)
        return verification.verify(engine, source, original, exact=exact, key=key, itemised=self._itemised)

    def _itemised(self, explained: ExplainedForecast) -> Iterator[Amounts]:
        """Yield the amounts of the receipts that an explanation contains, whatever they state."""
        columns = list(dict.fromkeys(explained.channels.index(stated.channel) for stated in explained.receipts))
        amounts = dict(zip(columns, self.amounts(explained, columns), strict=True))
        for stated in explained.receipts:
            yield amounts[explained.channels.index(stated.channel)]

    def draw(self, explained: ExplainedForecast, path: Path, channel: str | None = None, step: Step = "mean") -> None:
        """Draw an explanation into a file; its suffix determines the format."""
        from ibforecast.plots.explanation import draw

        draw(explained, path, self.verify, channel, step)

    def amounts(self, explained: ExplainedForecast, columns: Sequence[int]) -> list[Amounts]:
        """Return what adds up to the forecast of each of these channels, of an explanation that this model computed."""
        return receipts.amounts(self._engine_of(explained), explained, columns)

    def spreadsheet(
        self,
        explained: ExplainedForecast,
        path: Path,
        channels: Sequence[str] | None = None,
        steps: Sequence[int] | None = None,
    ) -> None:
        """Write the forecast of an explanation that this model computed as a workbook of formulas."""
        from ibforecast.adapters import spreadsheet

        spreadsheet.write(self._engine_of(explained), explained, path, channels, steps)

    def _engine_of(self, explained: ExplainedForecast) -> TorchEngine:
        """Return the model at the budget of an explanation; refuse an explanation of another model."""
        engine = TorchEngine(self.fitted)
        other = engine.facts.difference(explained.weights_sha256, explained.units)
        require(
            not other, "a receipt needs the model that computed the explanation", other, "use the model that made it"
        )
        return engine.at_budget(explained.budget)

    def tabulate(self, kind: type[Any], rows: Iterable[Any]) -> Any:
        """Return rows, instances of one dataclass, as a table of the user's kind."""
        return to_native(from_rows(kind, rows), self.kind)

    def html(self, explained: ExplainedForecast) -> str:
        """Return an explanation as HTML for a notebook."""
        from ibforecast.plots.notebook import explanation_html

        return explanation_html(explained)

    def _claimed(self, explained: ExplainedForecast, source: Table) -> Original:
        """Return the rows of a table that an explanation claims to be about, as many as the model reads."""
        series, clock, row = source.series, source.series.clock, explained.clock.row
        if row is not None:  # times may repeat if rows are counted
            last = row - clock.offset + explained.look_back - 1
        else:
            last = int(np.searchsorted(clock.stamps, explained.clock.stamps[explained.look_back - 1]))
        if self.look_back > series.rows:
            raise DataError(
                f"the table must contain a window of {self.look_back} rows", series.rows, "give the whole table"
            )
        # Beyond its ends, the nearest window: its times differ, so the check of the table fails.
        end = max(last + 1, self.look_back)
        if end > series.rows:
            # The newest window may lack covariates, which would be an error of their own.
            whole = series.rows if series.known is None else len(series.known) - self.horizon
            end = max(min(whole, series.rows), self.look_back)
        return self.original(source, end - self.look_back)

    def windows_at(self, series: Series, starts: range | Int64[np.ndarray, " window"]) -> Windows:
        """Return the windows that begin at these rows, with their targets."""
        fitted = self.fitted
        return Windows.of(
            series,
            fitted.standardiser,
            fitted.config.period,
            starts,
            self.look_back,
            self.horizon,
            known=fitted.known,
            tokens=fitted.tokens,
        )

    def windows(self, series: Series, split: Selection, at_least: int = 1) -> Windows:
        """Return the windows of a part of a table, or of all of it, from which the model can forecast."""
        fitted = self.fitted
        require_choice("split", split, (*get_args(Part), "all"))
        if split != "all" and (other := difference(series, fitted)):
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
                "channel is observed" + (", where it is read" if fitted.config.sealed else ""),
                f"{len(usable) or 'none'} of {len(windows)}",
                "give a table with fewer gaps" + (" or more rows" if at_least > 1 else ""),
            )
        return usable

    def evaluate(self, source: Table, split: Selection, budget: float | None = None) -> Evaluation:
        """Measure the model, and the best naive forecast, on a part of a table."""
        fitted = self.fitted.at_budget(budget)
        usable = replace(self, fitted=fitted).windows(source.series, split)
        cycles = naive_cycles(fitted.config.cycles, source.series.clock.frequency)
        with self.at_work(fitted.network) as device:
            usable = usable.to(device)
            predictor = fitted.predictor
            measured = accuracy(predictor, usable)
            own = channel_errors(lambda window: predictor(window).values, usable)
            naive = naive_forecasts(usable, cycles)
            means = [] if split == "all" else self._seasonal_means(source.series, usable, cycles)
        seasonal = min(means, key=lambda each: each.mae, default=None)
        best = min(naive, key=lambda each: each.mae)
        return Evaluation(
            split=split,
            windows=len(measured.squared_error),
            mse=measured.mse,
            mae=measured.mae,
            open_rate=float(measured.open_rate.mean()),
            largest_open_rate=float(measured.open_rate.max()),
            budget=fitted.config.budget,
            naive_mse=best.mse,
            naive_mae=best.mae,
            naive_cycle=best.cycle,
            channels=tuple(self._by_channel(own, naive)),
            seasonal_mse=None if seasonal is None else seasonal.mse,
            seasonal_mae=None if seasonal is None else seasonal.mae,
            seasonal_cycle=None if seasonal is None else seasonal.cycle,
        )

    def _seasonal_means(self, series: Series, windows: Windows, cycles: Sequence[int]) -> list[SeasonalMean]:
        """Measure the means of the training rows by phase, for each cycle that is at least twice in them."""
        trained, rows = self.fitted.split.train_end, series.rows + self.horizon
        return [
            seasonal_mean(windows, torch.from_numpy(series.clock.phase(0, rows, cycle)), cycle, trained)
            for cycle in cycles
            if 1 < cycle <= trained // 2
        ]

    def _by_channel(self, own: ChannelErrors, naive: list[Naive]) -> Iterator[ChannelEvaluation]:
        """Yield the errors of each channel, in its units, with those of its best naive forecast."""
        for column, (name, std) in enumerate(zip(self.fitted.targets, self.fitted.standardiser.std, strict=False)):
            best = naive[int(torch.stack([each.channels.mae for each in naive])[:, column].argmin())]
            measures = (own.mae, own.rmse, best.channels.mae, best.channels.rmse)
            mae, rmse, naive_mae, naive_rmse = (float(errors[column]) * float(std) for errors in measures)
            yield ChannelEvaluation(name, mae, rmse, naive_mae, naive_rmse, best.cycle)

    def audit(self, source: Table, split: Selection, windows: int) -> "Audit":
        """Measure how far the model's explanations can be relied on, on evenly spaced windows of a table."""
        from ibforecast.audit import audit_windows

        usable = self.windows(source.series, split, at_least=2)
        with self.at_work(self.fitted.network) as device:
            return audit_windows(self.fitted, usable.to(device), windows, split, source.series.sha256)

    def calibrate(self, source: Table, split: Selection) -> FittedModel:
        """Return the model with intervals from its errors on these windows, which must not be training windows."""
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
        """Return how many rows of a table are before the end of the model's training part."""
        return max(self.fitted.split.train_end - series.clock.offset, 0)

    @contextmanager
    def at_work(self, network: IBForecast) -> Iterator[torch.device]:
        """Move a network to the device, and back to the CPU at the end, even after an error."""
        device = torch.device(find_device(self.device))
        try:
            network.to(device)
            yield device
        finally:
            network.cpu()


def _check_read_alike(layout: Layout, wanted: Layout) -> None:
    """Refuse a table opened by another model that reads tables differently; None in `wanted` allows any value."""
    if layout.channels != wanted.channels:
        raise DataError(
            f"a table must have the channels of training, {wanted.channels}",
            f"one opened by another model, with {layout.channels}",
            "open it with this one",
        )
    for name in ("past", "future", "frequency", "irregular", "missing_values", "missing_texts", "zero_at", "zone"):
        here, there = getattr(layout, name), getattr(wanted, name)
        if there is not None and here != there:
            raise DataError(
                f"a table must be read as the training table was, with {name}={there!r}",
                f"one opened by another model, with {name}={here!r}",
                "open it with this one",
            )


def difference(series: Series, fitted: FittedModel) -> str:
    """Return how a series differs from the one a model was fitted on; empty if it does not."""
    clock, layout = series.clock, fitted.layout
    if series.sha256 != fitted.summary.data_sha256:
        return "is another"
    if clock.stamps[0] != np.datetime64(fitted.origin) or clock.zone != layout.zone:
        return f"has its values, but begins at {clock.labels(0, 1)[0]}"
    if layout.frequency is not None and clock.frequency != Frequency.parse(layout.frequency):
        return f"has its values, but steps of {clock.frequency.words}"
    return ""
