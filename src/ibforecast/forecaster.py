"""IBForecaster: what a user holds."""

import time as clock_time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from math import ceil
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast import checks
from ibforecast._version import __version__
from ibforecast.audit import Audit, audit_windows
from ibforecast.backtest import Fold, cutoffs, tidy
from ibforecast.core.account import Account
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, UsageError, require, require_choice
from ibforecast.core.explanation import Forecast
from ibforecast.core.files import sha256
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Window
from ibforecast.data import catalogue, tables
from ibforecast.data.roles import known_in
from ibforecast.data.series import Series
from ibforecast.data.sources import files_become
from ibforecast.data.splits import Part, Split
from ibforecast.data.tables import Layout, Table
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.evaluate.conformal import Calibration, Level, checked_levels, scores, tracked
from ibforecast.evaluate.naive import naive_errors, repeatable
from ibforecast.explained import ExplainedForecast, Verification
from ibforecast.intervals import Interval, laid_out
from ibforecast.model.network import IBForecast
from ibforecast.plots.notebook import model_html, settings_html
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.loop import train
from ibforecast.zoo import saved
from ibforecast.zoo.recipes import DEFAULT, OURS, Recipe, resolve_ours
from ibforecast.zoo.saved import FittedModel, TrainingSummary

CATALOGUE_TIME = "date"
"""The time column of a data set of the catalogue."""


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


class IBForecaster:
    """Forecasts every channel of a table `horizon` steps ahead and says, with each forecast, what it read.

    `budget` is the largest fraction of a look-back window that may be read (None: the recipe's, 0.2 by default).
    `cycle` is the number of steps of the seasonal profile, "auto" to take it from the frequency; given several, such as
    (24, 168), the profile is the sum of one for each. `split` gives the fractions of a table used to train, to select
    and to test; `recipe` a name or a TOML path; `epochs` at most how many to train (None: the recipe's). How the table
    is read: `time` and `channels` name columns, `id` and `target` those of a long table, `freq` the frequency, `zone` a
    time zone for times without one; `irregular` says what to do about uneven times ("error", "by_row", "fill"), and
    `missing_values` which numbers stand for nothing. `past` names channels that are read and not forecast, `future`
    columns that are known ahead and become part of the context.
    """

    def __init__(
        self,
        horizon: int,
        look_back: int = 96,
        budget: float | None = None,
        cycle: int | Sequence[int] | Literal["auto"] = "auto",
        *,
        patch_len: int | None = None,
        recipe: str = DEFAULT,
        seed: int = 2024,
        device: str = "auto",
        split: tuple[float, float, float] = (0.7, 0.1, 0.2),
        epochs: int | None = None,
        time: str | None = None,
        channels: tuple[str, ...] | list[str] | None = None,
        id: str = "unique_id",
        target: str = "y",
        freq: str | None = None,
        zone: str | None = None,
        irregular: Literal["error", "by_row", "fill"] = "error",
        missing_values: tuple[float, ...] | list[float] = (),
        past: Sequence[str] = (),
        future: Sequence[str] = (),
    ) -> None:
        self.horizon, self.look_back = _whole("horizon", horizon), _whole("look_back", look_back)
        self.budget, self.cycle = budget, _checked_cycle(cycle)
        self.patch_len = None if patch_len is None else _whole("patch_len", patch_len)
        self.recipe, self.seed, self.device, self.split = recipe, _whole("seed", seed), device, split
        self.epochs = None if epochs is None else _whole("epochs", epochs)
        self.layout = Layout(
            time=time,
            channels=None if channels is None else _names("channels", channels),
            id=id,
            target=target,
            frequency=freq,
            zone=zone,
            irregular=irregular,
            missing_values=_numbers("missing_values", missing_values),
            past=_names("past", past),
            future=_names("future", future),
        )
        self._fitted: FittedModel | None = None
        self._own: Recipe | None = None

    @property
    def fitted(self) -> FittedModel:
        """The fitted model; an error where there is none."""
        if self._fitted is None:
            raise UsageError("a model must be fitted before it is used (this one is not); call fit(table) first")
        return self._fitted

    def fit(
        self,
        table: Any,
        *,
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[int, int, Epoch], None] = lambda epoch, epochs, outcome: None,
    ) -> "IBForecaster":
        """Fit to a table: a path, a pandas, polars or pyarrow table, or the name of a data set in the catalogue.

        With a `checkpoint` path a run that was killed goes on from its last finished epoch.
        """
        source, facts = opened(table, self.layout)
        rows = source.series.rows
        split = Split.by_rule(facts.split, rows) if facts else Split.by_fractions(self.split, rows)
        return self._fit(source, self.recipe_for(source.series, facts), split, checkpoint, on_epoch)

    def _fit(
        self,
        source: Table,
        recipe: Recipe,
        split: Split,
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[int, int, Epoch], None] = lambda epoch, epochs, outcome: None,
    ) -> "IBForecaster":
        series = source.series
        starts = {part: split.starts(part, self.look_back, self.horizon) for part in ("train", "validation")}
        standardiser = Standardiser.of(series.values[: split.train_end], series.channels)
        ahead = None if series.known is None else series.known[: split.train_end]
        known = None if ahead is None else Standardiser.about_usual(ahead, series.covariates)
        device = torch.device(find_device(self.device))
        windows = Windows.of(
            series, standardiser, recipe.config.period, starts["train"], self.look_back, self.horizon, known=known
        )
        training = windows.to(device).usable()
        validation = training.at(starts["validation"]).usable()
        network = recipe.build(self.seed)
        assert isinstance(network, IBForecast)
        begun = clock_time.perf_counter()
        run = train(
            network,
            training,
            validation,
            recipe.train.for_windows(len(training)),
            self.seed,
            Path(checkpoint) if checkpoint else None,
            sha256(
                f"{__version__}/{recipe.sha256}/{series.sha256}/{series.clock.stamps[0]}/{source.layout}/{split}/"
                f"{self.seed}/{device.type}".encode()
            ),
            lambda epoch, outcome: on_epoch(epoch, recipe.train.epochs, outcome),
        )
        seconds = round(clock_time.perf_counter() - begun, 3)
        calibration = _calibration(network, validation, series)
        self._fitted = FittedModel(
            network=network.cpu(),
            standardiser=standardiser,
            layout=source.layout,
            origin=str(series.clock.stamps[0]),
            split=split,
            summary=TrainingSummary(
                recipe=recipe.name,
                recipe_sha256=recipe.sha256,
                data_sha256=series.sha256,
                rows=series.rows,
                seed=self.seed,
                device=str(device),
                seconds=seconds,
                windows=len(training),
                epochs=len(run.history),
                best_epoch=run.best_epoch,
                validation_error=run.history[run.best_epoch - 1].validation_error,
                schedule=recipe.train,
            ),
            known=known,
            calibration=calibration,
        )
        return self

    def predict(
        self,
        table: Any,
        at: Any = None,
        *,
        budget: float | None = None,
        future: Any = None,
        level: Level | Sequence[Level] | None = None,
        adaptive: bool = False,
    ) -> Any:
        """Forecast what follows the table, or the moment `at` in it: same kind of table, original units.

        `budget` turns the budget of a model that was fitted for any, here and in `explain` and `evaluate`. `future` is
        a table with what is known ahead, where the columns of `table` do not go on by themselves.

        `level` asks for intervals, one or several percentages such as [80, 95]: the columns `NAME-lo-80` and
        `NAME-hi-80` then stand beside every forecast, and `open_rate` says how much of the window was read. They come
        from the validation windows; `adaptive` lets them follow how the forecasts before this one turned out, as far
        as the table tells.
        """
        source = self.open(table, future)
        start = self._start(source.series, at)
        if level is not None:
            return self._with_intervals(source, start, checked_levels(level), adaptive, budget)
        require(not adaptive, "intervals that adapt must have a level", "level=None", "try level=[80, 95]")
        forecast = self._forecast(source.series, start, budget)
        return source.forecast(start + self.look_back, checks.in_units(forecast.values, self.fitted.standardiser))

    def explain(
        self, table: Any, at: Any = None, *, budget: float | None = None, future: Any = None
    ) -> ExplainedForecast:
        """Forecast what follows the table, or the moment `at` in it, and say what was read: one forward pass."""
        source = self.open(table, future)
        start = self._start(source.series, at)
        forecast = self._forecast(source.series, start, budget)
        return self._account(source, start, forecast, budget)

    def verify(self, account: Account) -> Verification:
        """Check that an explanation is the truth about its forecast, without raising.

        From the explanation and its context alone the forecast must come out again, bit for bit, also when every
        closed token is scrambled with the mask held; and the model itself must give this explanation for this
        history. Computed elsewhere, the last bits may differ: then they are allowed to, and the check says so.
        """
        return checks.verify(self.fitted, account)

    def evaluate(self, table: Any, split: Part | Literal["all"] = "test", *, budget: float | None = None) -> Evaluation:
        """Measure the model on a part of the table it was fitted on, or on "all" of any table.

        Beside its errors stand those of repeating the last cycle, which a model worth its while undercuts.
        """
        fitted = self.fitted.at_budget(budget)
        usable = self._windows(self.open(table).series, split)
        cycle = repeatable(fitted.config.cycles, self.look_back)
        with self._at_work(fitted.network) as device:
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

    def audit(self, table: Any, split: Part | Literal["all"] = "test", windows: int = 1024) -> Audit:
        """Find out how far this model's explanations can be relied on, on evenly spaced windows of a table.

        Fidelity beside chance, the certificate, the end-to-end sensitivity, the rate and the errors; `passed` holds
        them against a bar. Parts of the table as in `evaluate`.
        """
        series, asked = self.open(table).series, _whole("windows", windows)
        usable = self._windows(series, split, at_least=2)
        with self._at_work(self.fitted.network) as device:
            return audit_windows(self.fitted, usable.to(device), asked, split, series.sha256)

    def calibrate(self, table: Any, split: Part | Literal["all"] = "validation") -> "IBForecaster":
        """Take the widths of intervals from a part of the table the model was fitted on, or from "all" of another.

        Fitting does this already, on its validation windows; a model saved before there were intervals needs it, and
        one whose forecasts have become worse profits by it. The windows must not be those it was trained on.
        """
        fitted, series = self.fitted, self.open(table).series
        untrained = "intervals must be calibrated on windows the model was not trained on"
        require(split != "train", untrained, 'split="train"', 'use "validation", or "all" of a later table')
        windows = self._windows(series, split)
        row, trained = int(windows.starts[0]) + self.look_back, _trained_rows(fitted, series)
        if row < trained:
            first, until, begin = (series.clock.labels(at, 1)[0] for at in (row, trained, trained - self.look_back))
            raise UsageError(
                f"{untrained} (got a first forecast of {first}, trained on rows before {until}); "
                f"give the rows from {begin} on"
            )
        with self._at_work(fitted.network) as device:
            self._fitted = replace(fitted, calibration=_calibration(fitted.network, windows.to(device), series))
        return self

    def cross_validation(
        self,
        table: Any,
        n_windows: int = 1,
        step_size: int | None = None,
        refit: bool | int = False,
        level: Level | Sequence[Level] | None = None,
        *,
        adaptive: bool = False,
    ) -> Any:
        """Forecast from `n_windows` past moments of a table, `step_size` rows apart (None: one horizon).

        One row per channel, moment (`cutoff`, the last one read) and step, with what truly followed: the columns
        `unique_id`, `ds`, `cutoff`, `y` and `IBForecast`, which utilsforecast's `evaluate` takes as they are; a long
        table keeps its own names for the first two and `y`. What was not observed has no row. `refit` fits anew to
        the rows up to the cutoff, before every forecast or before every so many; without it the model is used as it
        is and the moments must lie after the rows it was trained on. One that is not fitted is, to the rows up to the
        first cutoff. The model itself stays as it was. `level` and `adaptive` are those of `predict`.
        """
        levels = () if level is None else checked_levels(level)
        require(refit >= 0, "refit must be a number of windows, or True for every one", f"{refit}", "try 1")
        anew, n_windows = bool(refit) or self._fitted is None, _whole("n_windows", n_windows)
        step = self.horizon if step_size is None else _whole("step_size", step_size)
        source, facts = opened(table, self.layout) if anew else (self.open(table), None)
        lasts = cutoffs(source.series.rows, self.look_back, self.horizon, n_windows, step)
        if not anew:
            self._require_untrained(source.series, lasts[0] + 1)
        folds, every = [], int(refit) or n_windows
        for group in (lasts[first : first + every] for first in range(0, n_windows, every)):
            model = self._refitted(source, facts, group[0] + 1) if anew else self
            starts = [model._start_of(source.series, last) for last in group]
            folds += model._folds(source, starts, levels, adaptive)
        return tidy(source, folds)

    def open(self, table: Any, future: Any = None) -> Table:
        """Read a table as the training table was read, once for many forecasts: all that use the model take it.

        `future` is a table that tells what is known ahead, from the step after the last row on.
        """
        if future is not None:
            return self.open(table).going_on(future)
        fitted = self.fitted
        if isinstance(table, Table):
            _check_read_alike(table.layout, fitted.layout)
        source = table if isinstance(table, Table) else opened(table, fitted.layout, fitted=True)[0]
        clock = source.series.clock.counted_from(np.datetime64(fitted.origin))
        if clock.by_row:
            _check_placed(clock, fitted)
        if clock.origin == source.series.clock.origin:
            return source
        return replace(source, series=replace(source.series, clock=clock))

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted model to a folder of safetensors and JSON."""
        self.fitted.save(Path(path), overwrite)

    def to_onnx(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted model as one ONNX file, to be run without PyTorch: `ibforecast.adapters.onnx`."""
        from ibforecast.adapters.onnx_export import export

        export(self.fitted, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "IBForecaster":
        """Read a saved model; nothing in the folder is executed."""
        return cls.of(saved.load(Path(path)), device)

    @classmethod
    def of(cls, fitted: FittedModel, device: str = "auto") -> "IBForecaster":
        """Take up a fitted model."""
        config = fitted.config
        model = cls(
            config.horizon,
            config.look_back,
            config.budget,
            config.cycles if config.further_cycles else config.cycle,
            patch_len=config.patch_len,
            recipe=fitted.summary.recipe,
            seed=fitted.summary.seed,
            device=device,
            split=fitted.split.fractions,
        )
        model.layout, model._fitted = fitted.layout, fitted
        if fitted.summary.schedule is not None:
            model._own = Recipe(fitted.summary.recipe, OURS, config, fitted.summary.schedule)
        return model

    def __repr__(self) -> str:
        state = f"fitted, weights {self.fitted.weights_sha256[:12]}" if self._fitted else "not fitted"
        return f"IBForecaster(horizon={self.horizon}, look_back={self.look_back}, budget={self.budget}; {state})"

    def _repr_html_(self) -> str:
        """Show itself in a notebook."""
        if self._fitted:
            return model_html(self._fitted)
        settings = {name: getattr(self, name) for name in ("horizon", "look_back", "budget", "cycle", "recipe", "seed")}
        settings |= {name: value for name, value in vars(self.layout).items() if value != getattr(Layout(), name)}
        return settings_html({name: str(value) for name, value in settings.items() if value is not None})

    def recipe_for(self, series: Series, facts: catalogue.DataSet | None = None) -> Recipe:
        """The recipe as it is resolved for a table, or for a data set of the catalogue; of a loaded model, its own."""
        asked = self.cycle if self.cycle != "auto" else facts.cycle if facts else series.clock.frequency.cycle()
        cycle, *further = asked if isinstance(asked, tuple) else (asked,)
        sizes = Sizes(self.look_back, self.horizon, len(series.channels), cycle)
        of_table = {"further_cycles": tuple(further), "past": series.past, "future": len(series.covariates)}
        if self._own is not None and self.recipe == self._own.name:
            wanted = {"budget": self.budget, "patch_len": self.patch_len, **vars(sizes), **of_table}
            recipe = replace(self._own, config=replace(self._own.config, **wanted))
        else:
            recipe = resolve_ours(
                self.recipe,
                sizes,
                facts.name if facts else None,
                budget=self.budget,
                patch_len=self.patch_len,
                **of_table,
                readout={"cross_channel": True} if series.past else None,  # or they could not be read
            )
        return recipe if self.epochs is None else replace(recipe, train=replace(recipe.train, epochs=self.epochs))

    def _windows(self, series: Series, split: Part | Literal["all"], at_least: int = 1) -> Windows:
        """The windows of a part of a table, or of all of it, in which every channel is observed."""
        fitted, look_back, horizon = self.fitted, self.look_back, self.horizon
        require_choice("split", split, (*get_args(Part), "all"))
        if split != "all" and (other := _other_than_fitted(series, fitted)):
            raise UsageError(
                f'split "{split}" must come from the table the model was fitted on (this {other}); use split="all"'
            )
        part = Split(series.rows, series.rows, series.rows) if split == "all" else fitted.split
        starts = part.starts("train" if split == "all" else split, look_back, horizon)
        windows = Windows.of(
            series, fitted.standardiser, fitted.config.period, starts, look_back, horizon, known=fitted.known
        )
        usable = windows.usable()
        if len(usable) < at_least:
            raise DataError(
                f"measuring needs at least {'one window' if at_least == 1 else f'{at_least} windows'} in which every "
                f"channel is observed (got {len(usable) or 'none'} of {len(windows)}); give a table with fewer gaps"
                + (" or more rows" if at_least > 1 else "")
            )
        return usable

    def _start(self, series: Series, at: Any) -> int:
        """First row of the window that ends at a moment."""
        return self._start_of(series, series.rows - 1 if at is None else series.clock.row_of(at))

    def _start_of(self, series: Series, last: int) -> int:
        """First row of the window that ends with a row."""
        start = last - self.look_back + 1
        if start < 0:
            raise DataError(
                f"a forecast must have look_back = {self.look_back} rows before it (got {last + 1}); "
                "give earlier rows or forecast from a later moment"
            )
        silent = np.isnan(series.values[start : last + 1]).all(axis=0)
        if silent.any():
            raise DataError(
                f"every channel must be observed at least once in the window (got nothing in "
                f"{series.channels[int(silent.argmax())]!r} from {series.clock.labels(start, 1)[0]} to "
                f"{series.clock.labels(last, 1)[0]}); choose another moment or leave the channel out"
            )
        return start

    def _forecast(self, series: Series, start: int, budget: float | None = None) -> Forecast:
        network = self.fitted.at_budget(budget).network
        with torch.inference_mode():
            forecast: Forecast = network(self._window(series, start))
            return forecast

    def _with_intervals(
        self, source: Table, start: int, levels: tuple[float, ...], adaptive: bool, budget: float | None
    ) -> Any:
        own = self.fitted.config.budget
        require(
            budget in (None, own),
            f"intervals are those of the budget the model was calibrated at, {own:g}",
            f"budget={budget}",
            "leave the budget or the level out",
        )
        (fold,) = self._folds(source, [start], levels, adaptive)
        return laid_out(source, start + self.look_back, fold.forecast, fold.intervals, fold.open_rate)

    def _folds(self, source: Table, starts: list[int], levels: tuple[float, ...], adaptive: bool) -> list[Fold]:
        """Forecasts of the windows that begin at these rows, in rising order, with their intervals."""
        targets, units, folds = len(source.series.targets), self.fitted.standardiser, []
        widths = self._half_widths(source.series, starts, levels, adaptive)
        for place, start in enumerate(starts):
            forecast = self._forecast(source.series, start)
            values = checks.in_units(forecast.values, units)[:, :targets]
            explanation = forecast.explanation
            assert explanation is not None
            scale = explanation.context.scale[0].double().numpy()[:targets] * units.std[:targets]
            reach = [width[place].double().numpy() * scale for width in widths]
            intervals = (Interval(one, values - half, values + half) for one, half in zip(levels, reach, strict=True))
            read = float(explanation.open_rate[0])
            folds.append(Fold(start + self.look_back - 1, values, tuple(intervals), read))
        return folds

    def _half_widths(
        self, series: Series, starts: list[int], levels: tuple[float, ...], adaptive: bool
    ) -> list[Float[Tensor, "window horizon channel"]]:
        """Half-widths of each level at these windows, in units of their scale; nothing after the last of them is read.

        To adapt, all forecasts are looked back on that could have been made since the rows that were trained on.
        """
        if not levels:
            return []
        calibration = self._calibrated(levels[-1])
        plain = [calibration.half_width(level) for level in levels]
        if not adaptive:
            return [width.expand(len(starts), -1, -1) for width in plain]
        first = min(max(_trained_rows(self.fitted, series) - self.look_back, 0), starts[0])
        known = self._scores(series, range(first, starts[-1]))
        places = [start - first for start in starts]
        return [tracked(width, known, level)[places] for width, level in zip(plain, levels, strict=True)]

    def _scores(self, series: Series, starts: range) -> Float[Tensor, "window horizon channel"]:
        """How consecutive windows turned out, as far as it was known when the window after them ended."""
        fitted = self.fitted
        told = series.values[: starts.stop + self.look_back]
        unknown = np.full((self.horizon, len(series.channels)), np.nan)
        until = replace(series, values=np.concatenate([told, unknown]))
        windows = Windows.of(
            until, fitted.standardiser, fitted.config.period, starts, self.look_back, self.horizon, known=fitted.known
        )
        with self._at_work(fitted.network) as device:
            return scores(fitted.network, windows.to(device))

    @contextmanager
    def _at_work(self, network: IBForecast) -> Iterator[torch.device]:
        """Lend a network to the device; it comes back whatever happens."""
        device = torch.device(find_device(self.device))
        try:
            network.to(device)
            yield device
        finally:
            network.cpu()

    def _calibrated(self, level: Level = 0) -> Calibration:
        """What intervals are made of, up to a level; an error where it is not there."""
        calibration = self.fitted.calibration
        if calibration is None:
            raise UsageError(
                "a model must be calibrated to know its intervals (this one was saved before there were any); call "
                'calibrate(table) with the table it was fitted on, or calibrate(table, "all") with a later one, and '
                "save it again"
            )
        highest = calibration.highest_level
        if level > highest:
            raise UsageError(
                f"an interval of {level:g} % must be calibrated on {ceil(level / (100 - level))} windows or more (got "
                f"{calibration.windows}, less what is missing in them); "
                + (f"ask for at most {highest} %, or " if highest else "")
                + "give a longer table or a split that holds back more"
            )
        return calibration

    def _require_untrained(self, series: Series, row: int) -> None:
        trained = _trained_rows(self.fitted, series)
        if row < trained:
            raise UsageError(
                "a backtest must forecast rows the model was not trained on (got a first forecast of "
                f"{series.clock.labels(row, 1)[0]}, trained on rows before {series.clock.labels(trained, 1)[0]}); "
                "ask for fewer windows or smaller steps, or fit anew with refit=True"
            )

    def _refitted(self, source: Table, facts: catalogue.DataSet | None, rows: int) -> "IBForecaster":
        """Another model of the same settings, fitted to the first rows alone, none of them kept to test on."""
        series = source.series
        clock = replace(series.clock, stamps=series.clock.stamps[:rows])
        split = self.fitted.split if self._fitted else Split.by_fractions(self.split, series.rows)
        share = split.train_end / split.validation_end
        return copy(self)._fit(
            replace(source, series=replace(series, values=series.values[:rows], clock=clock)),
            self.recipe_for(series, facts),
            Split.by_fractions((share, 1 - share, 0.0), rows),
        )

    def _window(self, series: Series, start: int) -> Window:
        history = series.values[start : start + self.look_back]
        steps, fitted = self.look_back + self.horizon, self.fitted
        phase = series.clock.phase(start, steps, fitted.config.period)
        known = known_in(series, start, steps)
        ahead = None if known is None or fitted.known is None else fitted.known.standardise(known)
        return checks.window_of(history, phase, fitted.standardiser, ahead)

    def _account(self, source: Table, start: int, forecast: Forecast, budget: float | None = None) -> ExplainedForecast:
        fitted, series, explanation = self.fitted, source.series, forecast.explanation
        assert explanation is not None
        now, end = start + self.look_back, start + self.look_back + self.horizon
        truth = np.full((self.horizon, len(series.channels)), np.nan)
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
            verifier=self,
            kind=source.kind,
        )


def catalogued(table: Any) -> catalogue.DataSet | None:
    """The data set of the catalogue that is meant, in whatever case; None for a table or a file."""
    named = isinstance(table, str) and table.lower() in {name.lower() for name in catalogue.CATALOGUE}
    return catalogue.lookup(table) if named and not Path(table).exists() else None


def opened(table: Any, layout: Layout, fitted: bool = False) -> tuple[Table, catalogue.DataSet | None]:
    """Read a table, or a data set of the catalogue by its name, which is read by row number unless asked otherwise.

    A `fitted` layout is one that was found, by which a data set is read as the training table was.
    """
    facts = catalogued(table)
    if facts is None:
        return tables.read(table, layout), None
    series = catalogue.load(facts.name)
    columns = {CATALOGUE_TIME: series.clock.stamps} | dict(zip(series.channels, series.values.T, strict=True))
    source = tables.read(
        pa.table(columns),
        replace(
            layout,
            time=CATALOGUE_TIME if fitted else layout.time or CATALOGUE_TIME,
            shape="wide",
            frequency=layout.frequency or facts.frequency,
            irregular=layout.irregular if fitted or layout.irregular != "error" else "by_row",
        ),
        warn=False,  # the protocol reads the marks of a benchmark as numbers
    )
    return replace(source, kind=files_become()), facts


def _check_read_alike(found: Layout, wanted: Layout) -> None:
    """Refuse a table that was opened by another model, which reads tables otherwise; what is None was left open."""
    if found.channels != wanted.channels:
        raise DataError(
            f"a table must have the channels of training, {wanted.channels} (got one opened by another model, with "
            f"{found.channels}); open it with this one"
        )
    for name in ("past", "future", "frequency", "irregular", "missing_values", "zone"):
        here, there = getattr(found, name), getattr(wanted, name)
        if there is not None and here != there:
            raise DataError(
                f"a table must be read as the training table was, with {name}={there!r} (got one opened by another "
                f"model, with {name}={here!r}); open it with this one"
            )


def _check_placed(clock: Clock, fitted: FittedModel) -> None:
    """Refuse a table whose rows cannot be counted from the first of training.

    Even ones are counted by their times, if those of training were even too. That can be seen where every validation
    window was calibrated on: then it is known when the row came that ended the training part.
    """
    calibration, split = fitted.calibration, fitted.split
    if clock.offset <= 0 or calibration is None:
        return
    windows = split.validation_end - split.train_end - fitted.config.horizon + 1
    ended = replace(clock, stamps=np.array([calibration.since], dtype="datetime64[us]"))
    if calibration.windows == windows and ended.offset != split.train_end:
        raise clock.unplaced("and those of training did not")


def _other_than_fitted(series: Series, fitted: FittedModel) -> str:
    """What tells a series from the one a model was fitted on; nothing where it is the same."""
    clock, layout = series.clock, fitted.layout
    if series.sha256 != fitted.summary.data_sha256:
        return "is another"
    if clock.stamps[0] != np.datetime64(fitted.origin) or clock.zone != layout.zone:
        return f"has its values, but begins at {clock.labels(0, 1)[0]}"
    if layout.frequency is not None and clock.frequency != Frequency.parse(layout.frequency):
        return f"has its values, but steps of {clock.frequency}"
    return ""


def _calibration(network: IBForecast, windows: Windows, series: Series) -> Calibration:
    """Take the scores of these windows, which lie on the network's device."""
    since = series.clock.stamps[int(windows.starts[0]) + windows.look_back]
    return Calibration.of(scores(network, windows), str(since))


def _trained_rows(fitted: FittedModel, series: Series) -> int:
    """Number of rows of a table, counted from the model's origin, up to the end of those it was trained on."""
    return max(fitted.split.train_end - series.clock.offset, 0)


def _checked_cycle(
    cycle: int | Sequence[int] | Literal["auto"],
) -> int | tuple[int, ...] | Literal["auto"]:
    """A number of steps, or several of them, or "auto"."""
    if cycle == "auto":
        return "auto"
    lengths = tuple(cycle) if isinstance(cycle, Sequence) and not isinstance(cycle, str) else (cycle,)
    if not lengths or not all(isinstance(length, Integral) and length >= 1 for length in lengths):
        raise UsageError(
            f'cycle must be a positive number of steps or "auto" (got {cycle!r}); try 24 for hourly data, '
            "or (24, 168) for its day and its week"
        )
    return int(lengths[0]) if len(lengths) == 1 else tuple(int(length) for length in lengths)


def _whole(what: str, number: Any) -> int:
    """A whole number of whatever library, as Python's own."""
    if not isinstance(number, Integral) or isinstance(number, bool):
        raise UsageError(f"{what} must be a whole number (got {number!r}); write it without quotes or a point")
    return int(number)


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise UsageError(f"{what} must be a list of names (got {names!r}); write [{names!r}]")
    return tuple(map(str, names))


def _numbers(what: str, numbers: Sequence[float]) -> tuple[float, ...]:
    if isinstance(numbers, Real):
        raise UsageError(f"{what} must be a list of numbers (got {numbers!r}); write [{numbers!r}]")
    return tuple(map(float, numbers))
