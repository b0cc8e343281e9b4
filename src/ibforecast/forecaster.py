"""IBForecaster: what a user holds."""

import time as clock_time
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ibforecast import checks
from ibforecast.audit import Audit, audit_windows
from ibforecast.core.account import Account
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, UsageError
from ibforecast.core.explanation import Forecast
from ibforecast.core.files import sha256
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data import catalogue, tables
from ibforecast.data.series import Series
from ibforecast.data.sources import files_become
from ibforecast.data.splits import Part, Split
from ibforecast.data.standardiser import Standardiser
from ibforecast.data.tables import Layout, Table
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.explained import ExplainedForecast, Verification
from ibforecast.model.network import IBForecast
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.loop import train
from ibforecast.zoo import saved
from ibforecast.zoo.recipes import DEFAULT, Recipe, forecaster_of, resolve
from ibforecast.zoo.saved import FittedModel, TrainingSummary

USUAL_PATCH = 12


@dataclass(frozen=True)
class Evaluation:
    """How a model did on a part of a table; errors in standardised units, as the benchmarks report them."""

    split: str
    windows: int
    mse: float
    mae: float
    open_rate: float
    largest_open_rate: float
    budget: float


class IBForecaster:
    """Forecasts every channel of a table `horizon` steps ahead and says, with each forecast, what it read.

    `budget` is the largest fraction of a look-back window that may be read (None: the recipe's, 0.2 by default).
    `cycle` is the number of steps of the seasonal profile, "auto" to take it from the frequency. `split` gives the
    fractions of a table used to train, to select and to test; `recipe` a name or a TOML path; `epochs` at most how
    many to train (None: the recipe's). How the table is read: `time` and `channels` name columns, `id` and `target`
    those of a long table, `freq` the frequency, `zone` a time zone for times without one; `irregular` says what to do
    about uneven times ("error", "by_row", "fill"), and `missing_values` which numbers stand for nothing.
    """

    def __init__(
        self,
        horizon: int,
        look_back: int = 96,
        budget: float | None = None,
        cycle: int | Literal["auto"] = "auto",
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
    ) -> None:
        if cycle != "auto" and (not isinstance(cycle, Integral) or cycle < 1):
            raise UsageError(
                f'cycle must be a positive number of steps or "auto" (got {cycle!r}); try 24 for hourly data'
            )
        self.horizon, self.look_back, self.budget = horizon, look_back, budget
        self.cycle: int | Literal["auto"] = cycle if cycle == "auto" else int(cycle)
        self.patch_len, self.recipe, self.seed, self.device, self.split = patch_len, recipe, seed, device, split
        self.epochs = epochs
        self.layout = Layout(
            time=time,
            channels=tuple(channels) if channels is not None else None,
            id=id,
            target=target,
            frequency=freq,
            zone=zone,
            irregular=irregular,
            missing_values=tuple(missing_values),
        )
        self._fitted: FittedModel | None = None

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
        source, facts = _open(table, self.layout)
        series = source.series
        recipe = self._recipe(series, facts)
        split = Split.by_rule(facts.split, series.rows) if facts else Split.by_fractions(self.split, series.rows)
        starts = {part: split.starts(part, self.look_back, self.horizon) for part in ("train", "validation")}
        standardiser = Standardiser.of(series.values[: split.train_end], series.channels)
        device = torch.device(find_device(self.device))
        windows = Windows.of(series, standardiser, recipe.config.cycle, starts["train"], self.look_back, self.horizon)
        training = windows.to(device).usable()
        network = recipe.build(self.seed)
        assert isinstance(network, IBForecast)
        begun = clock_time.perf_counter()
        run = train(
            network,
            training,
            training.at(starts["validation"]).usable(),
            recipe.train,
            self.seed,
            Path(checkpoint) if checkpoint else None,
            sha256(
                f"{recipe.sha256}/{series.sha256}/{series.clock.stamps[0]}/{source.layout}/{split}/{self.seed}/"
                f"{device.type}".encode()
            ),
            lambda epoch, outcome: on_epoch(epoch, recipe.train.epochs, outcome),
        )
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
                seconds=round(clock_time.perf_counter() - begun, 3),
                windows=len(training),
                epochs=len(run.history),
                best_epoch=run.best_epoch,
                validation_error=run.history[run.best_epoch - 1].validation_error,
            ),
        )
        return self

    def predict(self, table: Any, at: Any = None, *, budget: float | None = None) -> Any:
        """Forecast what follows the table, or the moment `at` in it: same kind of table, original units.

        `budget` turns the budget of a model that was fitted for any, here and in `explain` and `evaluate`.
        """
        source = self.open(table)
        start = self._start(source.series, at)
        _, forecast = self._forecast(source.series, start, budget)
        return source.forecast(start + self.look_back, checks.in_units(forecast.values, self.fitted.standardiser))

    def explain(self, table: Any, at: Any = None, *, budget: float | None = None) -> ExplainedForecast:
        """Forecast what follows the table, or the moment `at` in it, and say what was read: one forward pass."""
        source = self.open(table)
        start = self._start(source.series, at)
        window, forecast = self._forecast(source.series, start, budget)
        return self._account(source, start, window, forecast, budget)

    def verify(self, account: Account) -> Verification:
        """Check that an explanation is the truth about its forecast, without raising.

        From the explanation and its context alone the forecast must come out again, bit for bit, also when every
        closed token is scrambled with the mask held; and the model itself must give this explanation for this
        history. Computed elsewhere, the last bits may differ: then they are allowed to, and the check says so.
        """
        return checks.verify(self.fitted, account)

    def evaluate(self, table: Any, split: Part | Literal["all"] = "test", *, budget: float | None = None) -> Evaluation:
        """Measure the model on a part of the table it was fitted on, or on "all" of any table."""
        fitted, device = self.fitted.at_budget(budget), torch.device(find_device(self.device))
        usable = self._windows(self.open(table).series, split)
        measured = accuracy(fitted.network.to(device), usable.to(device))
        fitted.network.cpu()
        return Evaluation(
            split=split,
            windows=len(measured.squared_error),
            mse=measured.mse,
            mae=measured.mae,
            open_rate=float(measured.open_rate.mean()),
            largest_open_rate=float(measured.open_rate.max()),
            budget=fitted.config.budget,
        )

    def audit(self, table: Any, split: Part | Literal["all"] = "test", windows: int = 1024) -> Audit:
        """Find out how far this model's explanations can be relied on, on evenly spaced windows of a table.

        Fidelity beside chance, the certificate, the end-to-end sensitivity, the rate and the errors; `passed` holds
        them against a bar. Parts of the table as in `evaluate`.
        """
        fitted, device = self.fitted, torch.device(find_device(self.device))
        series = self.open(table).series
        usable = self._windows(series, split, at_least=2)
        try:
            fitted.network.to(device)
            return audit_windows(fitted, usable.to(device), windows, split, series.sha256)
        finally:
            fitted.network.cpu()

    def open(self, table: Any) -> Table:
        """Read a table as the training table was read, once for many forecasts: all methods take what comes out."""
        if isinstance(table, Table):
            return table
        fitted = self.fitted
        source, _ = _open(table, fitted.layout)
        if source.series.channels != fitted.channels:
            absent = [name for name in fitted.channels if name not in source.series.channels]
            raise DataError(
                f"a table must have the channels of training (it lacks {absent}); use the same table layout"
            )
        clock = source.series.clock.counted_from(np.datetime64(fitted.origin))
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
        fitted = saved.load(Path(path))
        config, layout = fitted.config, fitted.layout
        model = cls(
            config.horizon,
            config.look_back,
            config.budget,
            config.cycle,
            patch_len=config.patch_len,
            recipe=fitted.summary.recipe,
            seed=fitted.summary.seed,
            device=device,
        )
        model.layout, model._fitted = layout, fitted
        return model

    def __repr__(self) -> str:
        state = f"fitted, weights {self.fitted.weights_sha256[:12]}" if self._fitted else "not fitted"
        return f"IBForecaster(horizon={self.horizon}, look_back={self.look_back}, budget={self.budget}; {state})"

    def _recipe(self, series: Series, facts: catalogue.DataSet | None) -> Recipe:
        cycle = self.cycle if self.cycle != "auto" else facts.cycle if facts else series.clock.frequency.cycle()
        sizes = Sizes(self.look_back, self.horizon, len(series.channels), cycle)
        if forecaster_of(self.recipe) != "ibforecast":
            raise UsageError(
                f"recipe must be one of ibforecast's own (got {self.recipe!r}, a rival's); try {DEFAULT!r}"
            )
        recipe = resolve(
            self.recipe,
            sizes,
            facts.name if facts else None,
            budget=self.budget,
            patch_len=_patch_len(self.look_back) if self.patch_len is None else self.patch_len,
        )
        return recipe if self.epochs is None else replace(recipe, train=replace(recipe.train, epochs=self.epochs))

    def _windows(self, series: Series, split: Part | Literal["all"], at_least: int = 1) -> Windows:
        """The windows of a part of a table, or of all of it, in which every channel is observed."""
        fitted, look_back, horizon = self.fitted, self.look_back, self.horizon
        if split != "all" and series.sha256 != fitted.summary.data_sha256:
            raise UsageError(
                f'split "{split}" must come from the table the model was fitted on (this is another); use split="all"'
            )
        part = Split(series.rows, series.rows, series.rows) if split == "all" else fitted.split
        starts = part.starts("train" if split == "all" else split, look_back, horizon)
        windows = Windows.of(series, fitted.standardiser, fitted.config.cycle, starts, look_back, horizon)
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
        last = series.rows - 1 if at is None else series.clock.row_of(at)
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

    def _forecast(self, series: Series, start: int, budget: float | None = None) -> tuple[Window, Forecast]:
        fitted = self.fitted.at_budget(budget)
        cycle = fitted.config.cycle
        history = series.values[start : start + self.look_back]
        phase = series.clock.phase(start, self.look_back + self.horizon, cycle)
        window = checks.window_of(history, phase, fitted.standardiser)
        with torch.no_grad():
            return window, fitted.network(window)

    def _account(
        self, source: Table, start: int, window: Window, forecast: Forecast, budget: float | None = None
    ) -> ExplainedForecast:
        fitted, series, explanation = self.fitted, source.series, forecast.explanation
        assert explanation is not None
        now, end = start + self.look_back, start + self.look_back + self.horizon
        truth = np.full((self.horizon, len(series.channels)), np.nan)
        known = series.values[now:end]
        truth[: len(known)] = known
        context = explanation.context
        return ExplainedForecast(
            weights_sha256=fitted.weights_sha256,
            computed_with=checks.environment(),
            budget=fitted.config.budget if budget is None else budget,
            patch_len=fitted.config.patch_len,
            frequency=str(series.clock.frequency),
            channels=series.channels,
            times=series.clock.labels(start, end - start),
            history=series.values[start:now],
            forecast=checks.in_units(forecast.values, fitted.standardiser),
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
            verifier=self,
            kind=source.kind,
        )


def _open(table: Any, layout: Layout) -> tuple[Table, catalogue.DataSet | None]:
    """Read a table, or a data set of the catalogue by its name, which is read by row number."""
    if isinstance(table, str) and table in catalogue.CATALOGUE and not Path(table).exists():
        series = catalogue.load(table)
        found = Layout(
            time="date",
            channels=series.channels,
            shape="wide",
            frequency=str(series.clock.frequency),
            irregular="by_row",
        )
        return Table(series, found, files_become()), catalogue.CATALOGUE[table]
    return tables.read(table, layout), None


def _patch_len(look_back: int) -> int | None:
    """The usual patch where it fits, otherwise the divisor of the look-back nearest to it."""
    if look_back < 1 or look_back % USUAL_PATCH == 0:
        return None
    return min((n for n in range(1, look_back + 1) if look_back % n == 0), key=lambda n: abs(n - USUAL_PATCH))
