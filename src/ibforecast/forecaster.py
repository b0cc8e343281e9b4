"""IBForecaster: the main class of the library."""

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ibforecast import backtest, drivers, fitting, intervals
from ibforecast.core.devices import computing_with
from ibforecast.core.errors import UsageError, require, require_threads
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.reader import Reader
from ibforecast.core.running import Cell
from ibforecast.core.verdict import Verification
from ibforecast.data import tables
from ibforecast.data.sources import kind_for_files
from ibforecast.data.splits import Part
from ibforecast.data.tables import Table
from ibforecast.drivers import By, Drivers
from ibforecast.evaluate.conformal import Level, checked_levels
from ibforecast.fitting import OnEpoch, OnStart, ignore_epoch, ignore_start, settings_of
from ibforecast.settings import Settings, whole_number
from ibforecast.train.loop import never
from ibforecast.use import Desk, Evaluation, Selection
from ibforecast.zoo import saved
from ibforecast.zoo.saved import FittedModel

if TYPE_CHECKING:
    from ibforecast.audit import Audit
    from ibforecast.check import Findings
    from ibforecast.dossier import Dossier


class IBForecaster(Settings):
    """Forecasts every channel of a table `horizon` steps ahead, and explains with each forecast what it read.

    The model:

    - A window spans `look_back` steps, cut into patches of `patch_len` (None: the recipe's, or the nearest that fits).
    - `budget` is the largest fraction of a window that may be read (None: the recipe's, 0.2 by default).
    - `cycle` is the number of steps of the seasonal profile. "auto" takes it from the frequency. With several, such as
      (24, 168), the profile is the sum of one for each.
    - `sealed` insists on a model whose mask and level also depend only on what is read, `choosing` on one that looks at
      a window to choose what it reads. Without either, a contest decides.
    - `recipe` is a name, a TOML path or a `Recipe`. `loss` is the error that training minimises, and `epochs` the
      largest number in each stage of training (None: the recipe's).
    - `split` gives the fractions of a table used to train, to select and to test. `seed` determines the weights, and
      `device` is where they are computed.

    How the table is read:

    - `time` and `channels` name columns, `id` and `target` those of a long table. `past` names channels that are read
      and not forecast, `future` columns that are known ahead and are part of the context.
    - `freq` is the frequency, `zone` the zone of times without one. `dates` says how times are written if that is
      unclear, such as "dayfirst".
    - `irregular` says what to do about uneven times: "error", "by_row" or "fill".
    - `missing_values` lists numbers and texts that mean a missing value. At the times of the day in `zero_at`, such as
      ["22:00..05:30"], an empty cell means 0.

    Which forecasts are possible:

    - `limits` has the lowest and the highest forecast of channels, such as {"rentals": (0, 500)}, or of every channel,
      such as (0, None). A channel that is not named there is limited to 0 or more if its training rows are counts that
      are often 0; (None, None) lifts that.
    - `whole` names channels whose forecasts are rounded to whole numbers. That makes most of them a little worse: a
      mean of 0.4 calls an hour is a better forecast than 0.

    Settings are fixed: `model.replace(horizon=12)` makes another forecaster, which is not fitted.
    """

    _fitted: FittedModel | None = None

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        known = any(name == each.name for each in dataclasses.fields(self))
        remedy = f"build another: model.replace({name}={value!r}).fit(table)" if known else "keep it elsewhere"
        raise UsageError("a forecaster's settings are fixed when it is made", f"{name}={value!r}", remedy)

    def __delattr__(self, name: str) -> NoReturn:
        raise UsageError("a forecaster's settings are fixed when it is made", f"del {name}", "build another")

    __eq__ = object.__eq__  # two forecasters of the same settings may be fitted to different tables
    __hash__ = object.__hash__

    @property
    def fitted(self) -> FittedModel:
        """The fitted model. Raises UsageError if there is none."""
        if self._fitted is None:
            raise UsageError("a model must be fitted before it is used", "one that is not", "call fit(table) first")
        return self._fitted

    @property
    def desk(self) -> Desk:
        """The fitted model on its device, with each step from a table to a forecast as a separate method."""
        return Desk(self.fitted, self.device)

    def check(self, table: Any) -> "Findings":
        """Look at a table before fitting to it: gaps, cycles and odd values, what a fit needs, and what to change."""
        from ibforecast.check import check

        return check(table, self)

    def fit(
        self,
        table: Any,
        *,
        minutes: int | float | None = None,
        threads: int | None = None,
        checkpoint: str | Path | None = None,
        on_epoch: OnEpoch = ignore_epoch,
        on_start: OnStart = ignore_start,
        until: Callable[[], bool] = never,
    ) -> "IBForecaster":
        """Fit to a table: a path, or a pandas, polars or pyarrow table.

        `minutes` limits the time: a few steps are timed on this machine, and the number of epochs is chosen so that the
        fit ends well within the limit. Training stops early if it turns out slower. `threads` is the number of threads
        a processor trains with, by default one, so that the weights do not depend on the number of cores. With a
        `checkpoint` path, a run that was killed continues after its last finished epoch. `on_epoch` is called after
        each epoch with its number, the largest number of epochs, and its outcome. `on_start` is called once, before
        training on a processor, with the `Cost` of the fit: roughly the seconds on one thread and the memory. Once
        `until` returns True, training stops and keeps the best so far.

        If the table is too short for the default look-back or split, shorter ones are taken, with a warning.
        """
        begun = time.perf_counter()
        source = tables.read(table, self.layout)
        settings = self.sized(source.series)
        if settings is not self:
            warnings.warn(self._shortening(settings, source.series.rows), stacklevel=2)
        if threads is not None:
            require_threads(whole_number("threads", threads))
        with computing_with(threads or 1):
            return self._with(fitting.fit(source, settings, checkpoint, on_epoch, minutes, until, on_start, begun))

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
        """Forecast the steps after the table, or after the moment `at` in it, in the same kind of table and units.

        `budget` changes the budget of a model that was fitted for any budget, as in `explain` and `evaluate`. `future`
        is a table with the covariates known ahead; it is not needed if the columns of `table` continue themselves.

        `level` requests intervals, by one or several percentages such as [80, 95]. Every forecast then has the columns
        `NAME-lo-80` and `NAME-hi-80` next to it, and the column `open_rate` is the fraction of the window that was
        read. The widths come from the validation windows; `adaptive` intervals follow the errors of earlier forecasts,
        as far as the table contains them.
        """
        desk = self.desk
        source = desk.open(table, future)
        if level is not None:
            start = desk.start(source.series, at)
            return intervals.predict(desk, source, start, checked_levels(level), adaptive, budget)
        require(not adaptive, "intervals that adapt must have a level", "level=None", "try level=[80, 95]")
        return desk.predict(source, desk.start(source.series, at, budget), budget)

    def reads(self, at: Any = None, *, budget: float | None = None) -> Any:
        """Return a table of the values that a sealed model reads for a forecast made `at` a moment.

        Its columns are channel, steps_back and time (empty without a moment). `predict` and `explain` give the same
        result, at the same `budget`, on a table in which every other cell is empty.
        """
        return dataclasses.replace(self.desk, kind=kind_for_files()).tabulate(Cell, self.desk.reads(at, budget))

    def reader(self, at: Any, *, budget: float | None = None, future: Any = None) -> Reader:
        """Return a reader for a forecast of a sealed model made `at` a moment, from a source instead of a table.

        It lists the cells that it needs, takes their values, and then predicts and explains. `future` is a table with
        the covariates known ahead, for every step of look-back and horizon. The forecast is a table as `predict` gives
        it for a file.
        """
        return self.desk.reader(at, budget, future)

    def explain(
        self, table: Any, at: Any = None, *, budget: float | None = None, future: Any = None
    ) -> ExplainedForecast:
        """Forecast the steps after the table, or after the moment `at`, and explain what was read, in one pass."""
        desk = self.desk
        source = desk.open(table, future)
        return desk.explain(source, desk.start(source.series, at, budget), budget)

    def verify(
        self,
        explained: ExplainedForecast | str | bytes,
        table: Any = None,
        *,
        future: Any = None,
        exact: bool = False,
        key: bytes | None = None,
    ) -> Verification:
        """Check that an explanation, or the text of its document, is true, without raising.

        The explanation and its context must give the same forecast again, bit for bit, even if every closed token is
        scrambled with the mask held; and the model must compute this explanation from this history. A sealed model must
        also compute it, bit for bit, with every unread value replaced and nothing held, a choosing model with only the
        mask held. If another machine computed the explanation, the last digits may differ by the effect of rounding on
        this machine; the verdict then names the tolerance, and `exact` forbids it.

        With a `table` (and `future`, as in `explain`) history, times and truth are compared with the table's own rows;
        without it, an explanation of an invented table passes too. With a `key`, the public key of the issuer in PEM,
        the explanation must be signed by it.
        """
        return self.desk.verify(explained, table, future=future, exact=exact, key=key)

    def evaluate(self, table: Any, split: Selection = "test", *, budget: float | None = None) -> Evaluation:
        """Measure the model on a part of the table it was fitted on, or on "all" of any table.

        The result also has the errors of the best naive forecast, which a useful model stays below.
        """
        return self.desk.evaluate(self.open(table), split, budget)

    def audit(self, table: Any, split: Selection = "test", windows: int = 1024) -> "Audit":
        """Measure how far this model's explanations can be relied on, on evenly spaced windows of a table.

        The audit contains fidelity and chance, the certificate, the end-to-end sensitivity, the rate and the errors;
        its `passed` compares them with a bar. The parts of the table are those of `evaluate`.
        """
        return self.desk.audit(self.open(table), split, whole_number("windows", windows))

    def drivers(
        self,
        table: Any,
        split: Selection = "test",
        windows: int = drivers.WINDOWS,
        channel: str | None = None,
        by: By | None = None,
    ) -> Drivers:
        """Measure what moves which channel: the amounts of receipts, averaged over evenly spaced windows of a table.

        `channel` limits it to one channel that is forecast. The parts of the table are those of `evaluate`. The result
        can be grouped: `model.drivers(table, by="hour").by("hour")`. With `by`, about equally many windows are chosen
        from each group, such as each hour; evenly spaced ones may be of a few hours only.
        """
        channels = None if channel is None else [channel]
        return drivers.drivers(self.desk, self.open(table), split, whole_number("windows", windows), channels, by)

    def dossier(
        self,
        table: Any,
        split: Part = "test",
        windows: int = 1024,
        *,
        purpose: str = "",
        model_name: str = "model",
        table_name: str | None = None,
    ) -> "Dossier":
        """Gather what auditors need to know about this model, from the table it was fitted on.

        Errors, coverage and the audit are measured on evenly spaced windows of one part of the table. `purpose` is the
        intended use, in your words. The names are those of model and table in the document and its commands; without
        one, the table is named by its path.
        """
        from ibforecast.dossier import Dossier, gather

        return Dossier(gather(self.desk, table, split, windows, purpose, model_name, table_name))

    def calibrate(self, table: Any, split: Selection = "validation") -> "IBForecaster":
        """Take the widths of intervals from a part of the table the model was fitted on, or from "all" of another.

        Fitting already does this on the validation windows; repeat it when the forecasts of a model have become worse.
        The windows must not be those it was trained on.
        """
        return self._with(self.desk.calibrate(self.open(table), split))

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

        The result has one row per channel, moment (`cutoff`, the last one read) and step, with the true value. Its
        columns `unique_id`, `ds`, `cutoff`, `y` and `IBForecast` are those that utilsforecast's `evaluate` reads; a
        long table keeps its own names for the first two and `y`. Steps without an observation are left out.

        `refit` fits again to the rows up to the cutoff, before every forecast or, if a number, before every n-th.
        Without it the fitted model is used, and the moments must be after the rows it was trained on. An unfitted
        forecaster is fitted to the rows up to the first cutoff. This forecaster does not change. `level` and `adaptive`
        are those of `predict`.
        """
        levels = () if level is None else checked_levels(level)
        return backtest.cross_validation(table, self, self._fitted, n_windows, step_size, refit, levels, adaptive)

    def open(self, table: Any, future: Any = None) -> Table:
        """Read a table like the training table, once for many forecasts: all methods accept the result.

        `future` is a table with the covariates known ahead, from the step after the last row on.
        """
        return self.desk.open(table, future)

    def replace(self, **changes: Any) -> "IBForecaster":
        """Return another forecaster with these settings changed; it is not fitted."""
        return dataclasses.replace(self, **changes)

    def save(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted model to a folder of safetensors and JSON."""
        self.fitted.save(Path(path), overwrite)

    def to_onnx(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the fitted model as one ONNX file, which `ibforecast.adapters.onnx` runs without PyTorch."""
        from ibforecast.adapters.onnx_export import export

        export(self.fitted, Path(path), overwrite)

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "IBForecaster":
        """Read a saved model; no code in the folder is executed."""
        return cls.of(saved.load(Path(path)), device)

    @classmethod
    def of(cls, fitted: FittedModel, device: str = "auto") -> "IBForecaster":
        """Return a forecaster with a fitted model."""
        return cls(**vars(settings_of(fitted, device)))._with(fitted)

    def _shortening(self, settings: Settings, rows: int) -> str:
        """Return in words how settings were changed for a short table."""
        parts = ", ".join(f"{fraction:.2g}" for fraction in settings.split)
        return (
            f"a table must hold windows of look_back + horizon = {self.look_back + self.horizon} rows in each part "
            f"(this one has {rows} rows, so look_back={settings.look_back} and split=({parts}) were taken); set them "
            "(fit --look-back, --split) to choose others"
        )

    def _with(self, fitted: FittedModel) -> "IBForecaster":
        object.__setattr__(self, "_fitted", fitted)
        return self

    def __repr__(self) -> str:
        if self._fitted is None:
            return (
                f"IBForecaster({', '.join(f'{name}={value!r}' for name, value in self.chosen().items())}; not fitted)"
            )
        config, weights = self._fitted.config, self._fitted.weights_sha256[:12]
        sizes = f"horizon={config.horizon}, look_back={config.look_back}, budget={config.budget}"
        return f"IBForecaster({sizes}; fitted, weights {weights})"

    def _repr_html_(self) -> str:
        """Return the forecaster as HTML for a notebook."""
        from ibforecast.plots.notebook import model_html, settings_html

        if self._fitted:
            return model_html(self._fitted)
        return settings_html({name: str(value) for name, value in self.chosen().items()})
