"""IB-Forecast as a neuralforecast model: fit, cross-validate and save it there, explain its forecasts here."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import torch
from jaxtyping import Float, Int, Int64, Shaped
from torch import Tensor

from ibforecast.core.calendar import MONDAY, SECOND, Frequency
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, IBForecastError, MissingExtraError, UsageError, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.sizes import Sizes
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Target, Window
from ibforecast.data import tables
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout, Table
from ibforecast.forecaster import IBForecaster
from ibforecast.model.network import IBForecast as Network
from ibforecast.settings import Settings
from ibforecast.train.loop import epoch_seed
from ibforecast.zoo.recipes import DEFAULT, resolve_ours
from ibforecast.zoo.saved import FittedModel, TrainingSummary
from ibforecast.zoo.stages import sealed_of

try:
    from neuralforecast import NeuralForecast
    from neuralforecast.common._base_model import BaseModel
    from neuralforecast.core import MODEL_FILENAME_DICT
    from neuralforecast.losses.pytorch import MSE
    from neuralforecast.tsdataset import TimeSeriesDataset
    from pytorch_lightning import Trainer
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("neuralforecast", "pytorch_lightning"):
        raise
    raise MissingExtraError("neuralforecast", "neuralforecast") from error

PHASE = "phase"
"""The column with the position of each row in the cycle; neuralforecast does not pass times to its models."""


class IBForecast(BaseModel):  # type: ignore[misc]
    """A model that forecasts all series of a table together and explains each forecast.

    `h`, `input_size` and `n_series` are neuralforecast's names for the horizon, the look-back and the number of
    channels. `cycle` is the number of steps of the seasonal profile; unless it is 1, the table must have the column
    that `with_phase` adds. `budget`, `patch_len` and `recipe` are those of `IBForecaster`. Training minimises the same
    objective: every term of the recipe's objective, in standardised units, with the recipe's learning rates; their
    schedule is stretched over `max_steps`. `valid_loss` is measured in standardised units too. The model standardises
    its input, so `scaler_type` must stay "identity". All other arguments are neuralforecast's; `trainer_kwargs` are
    passed to Lightning's Trainer, which is quiet by default.
    """

    EXOGENOUS_FUTR = False
    EXOGENOUS_HIST = True
    EXOGENOUS_STAT = False
    MULTIVARIATE = True
    RECURRENT = False
    network: Network
    mean: Float[Tensor, " channel"]
    std: Float[Tensor, " channel"]

    def __init__(
        self,
        h: int,
        input_size: int,
        n_series: int,
        cycle: int,
        budget: float | None = Settings.budget,
        patch_len: int | None = Settings.patch_len,
        recipe: str = DEFAULT,
        valid_loss: Any = None,
        max_steps: int = 1000,
        learning_rate: float | None = None,
        early_stop_patience_steps: int = -1,
        val_monitor: str = "ptl/val_loss",
        val_check_steps: int = 100,
        batch_size: int = 32,
        valid_batch_size: int | None = None,
        windows_batch_size: int | None = None,
        inference_windows_batch_size: int = 1024,
        start_padding_enabled: bool = False,
        training_data_availability_threshold: float | list[float] = 0.0,
        step_size: int = 1,
        scaler_type: str = "identity",
        random_seed: int = 1,
        drop_last_loader: bool = False,
        alias: str | None = None,
        optimizer: Any = None,
        optimizer_kwargs: dict[str, Any] | None = None,
        lr_scheduler: Any = None,
        lr_scheduler_kwargs: dict[str, Any] | None = None,
        dataloader_kwargs: dict[str, Any] | None = None,
        **trainer_kwargs: Any,
    ) -> None:
        require(
            scaler_type == "identity",
            'scaler_type must be "identity": another would change the phase, and the model standardises its input',
            repr(scaler_type),
            "leave it out",
        )
        _require_trainer_settings(trainer_kwargs)
        resolved = resolve_ours(recipe, Sizes(input_size, h, n_series, cycle), budget=budget, patch_len=patch_len)
        if resolved.train.contest_margin:  # neuralforecast trains in one stage, without a contest
            resolved = sealed_of(resolved)
        pace = resolved.train if learning_rate is None else replace(resolved.train, learning_rate=learning_rate)
        super().__init__(
            h=h,
            input_size=input_size,
            n_series=n_series,
            loss=MSE(),
            valid_loss=valid_loss,
            learning_rate=pace.learning_rate,
            max_steps=max_steps,
            early_stop_patience_steps=early_stop_patience_steps,
            val_monitor=val_monitor,
            val_check_steps=val_check_steps,
            batch_size=batch_size,
            valid_batch_size=valid_batch_size,
            windows_batch_size=pace.batch if windows_batch_size is None else windows_batch_size,
            inference_windows_batch_size=inference_windows_batch_size,
            start_padding_enabled=start_padding_enabled,
            training_data_availability_threshold=training_data_availability_threshold,
            step_size=step_size,
            scaler_type=scaler_type,
            hist_exog_list=[PHASE] if cycle > 1 else None,
            random_seed=random_seed,
            drop_last_loader=drop_last_loader,
            alias=alias,
            optimizer=optimizer,
            optimizer_kwargs=optimizer_kwargs,
            lr_scheduler=lr_scheduler,
            lr_scheduler_kwargs=lr_scheduler_kwargs,
            dataloader_kwargs=dataloader_kwargs,
            **_quiet(trainer_kwargs),
        )
        self._keep_own_settings(trainer_kwargs)
        self.recipe, self.pace = resolved, pace
        network = resolved.build(random_seed)
        assert isinstance(network, Network)
        self.network = network
        self.register_buffer("mean", torch.full((n_series,), torch.nan, dtype=torch.float64))
        self.register_buffer("std", torch.full((n_series,), torch.nan, dtype=torch.float64))

    def fit(self, dataset: Any, val_size: int = 0, test_size: int = 0, **settings: Any) -> Any:
        """Compute mean and standard deviation from the training rows, then train as neuralforecast does."""
        if not isinstance(dataset, TimeSeriesDataset):
            raise UsageError(
                "a model must be fitted to a table in memory", f"a {type(dataset).__name__}", "pass a table to nf.fit"
            )
        self._check_exog(dataset)
        standardiser = _standardiser(dataset, (val_size or 0) + test_size)
        self.mean.copy_(torch.tensor(standardiser.mean))
        self.std.copy_(torch.tensor(standardiser.std))
        return super().fit(dataset, val_size=val_size, test_size=test_size, **settings)

    def forward(self, windows_batch: Mapping[str, Any]) -> Float[Tensor, "batch horizon channel"]:
        """Forecast windows in the table's units."""
        past, mask, phase = (windows_batch[name] for name in ("insample_y", "insample_mask", "hist_exog"))
        values: Tensor = self.network(self._window(past, mask, phase)).values
        return (values.double() * self.std + self.mean).to(values.dtype)

    def training_step(self, batch: Mapping[str, Any], batch_idx: int) -> Float[Tensor, ""]:
        """Draw windows and return their loss; each term of the objective is logged as `train_` and its name."""
        windows, static, static_cols, usable, weights, columns = self._create_windows(batch, step="train")
        if weights is not None:
            raise UsageError("all windows must have the same weight", "a column 'sample_weight'", "leave it out")
        usable = self._shard_multivariate_windows(usable)
        drawn = torch.randperm(len(usable), device=usable.device)[: self.windows_batch_size]
        chosen = self._sample_windows(windows, static, static_cols, columns, drawn, usable)
        past, past_mask, future, future_mask, phase, *_ = self._parse_windows(batch, chosen)
        target = Target(self._standardised(future).nan_to_num(0.0), future_mask > 0)
        progress = torch.tensor(self.global_step / max(1, self.max_steps - 1), device=self.device)
        generator = torch.Generator(self.device).manual_seed(epoch_seed(self.random_seed, self.global_step))
        loss = self.network.loss(self._window(past, past_mask, phase), target, progress, generator)
        if not loss.total.isfinite():
            raise IBForecastError(
                f"training must stay finite (step {self.global_step + 1} gave {loss.total.item()})",
                remedy="lower the learning rate",
            )
        logged = {"loss": loss.total, "open_rate": loss.open_rate, **loss.terms}
        for name, value in logged.items():
            self.log(f"train_{name}", value.detach(), batch_size=len(drawn), prog_bar=name == "loss")
        self.train_trajectories.append((self.global_step, loss.total.item()))
        return loss.total

    def configure_optimizers(self) -> Any:
        """Return the recipe's learning rates and schedule, unless the user passed an optimiser or a scheduler."""
        if self.optimizer or self.lr_scheduler:
            return super().configure_optimizers()
        groups = self.network.parameter_groups()
        adam = torch.optim.Adam(
            [{"params": group.parameters, "lr": self.learning_rate * group.rate} for group in groups], fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            adam, lambda step: self.pace.rate_at(step * self.pace.epochs // self.max_steps) / self.pace.learning_rate
        )
        return {"optimizer": adam, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _compute_valid_loss(
        self, insample_y: Tensor, outsample_y: Tensor, output: Tensor, outsample_mask: Tensor, y_idx: int
    ) -> Tensor:
        past, future, forecast = (self._standardised(values) for values in (insample_y, outsample_y, output))
        loss: Tensor = super()._compute_valid_loss(past, future, forecast, outsample_mask, y_idx)
        return loss

    def _check_exog(self, dataset: Any) -> None:
        """Refuse a wrong number of series, and a phase that is absent or was scaled."""
        require(
            dataset.n_groups == self.n_series,
            "n_series must be the number of series in the table",
            f"n_series={self.n_series}, {dataset.n_groups} in the table",
            f"build the model with n_series={dataset.n_groups}",
        )
        cycle = self.recipe.config.cycle
        if cycle == 1:
            return
        if PHASE not in dataset.temporal_cols:
            raise DataError(
                f"a table must have the position of its rows in the cycle (it has no column {PHASE!r})",
                remedy=f"add it with ibforecast.adapters.neuralforecast.with_phase(table, cycle={cycle})",
            )
        phase = dataset.temporal[:, dataset.temporal_cols.get_loc(PHASE)]
        known = phase[~phase.isnan()]  # rows that are to be forecast have no phase
        invalid = known[(known < 0) | (known >= cycle) | (known % 1 != 0)]
        if len(invalid):
            raise DataError(
                f"the column {PHASE!r} must hold whole numbers from 0 to {cycle - 1}",
                f"{invalid[0].item():g}",
                "leave out local_scaler_type, which scales it, or add it again with the model's own cycle",
            )

    def _standardised(self, values: Float[Tensor, "batch some channel"]) -> Float[Tensor, "batch some channel"]:
        return ((values.double() - self.mean) / self.std).to(values.dtype)

    def _window(
        self,
        values: Float[Tensor, "batch look_back channel"],
        mask: Float[Tensor, "batch look_back channel"],
        phase: Float[Tensor, "batch 1 look_back channel"] | None,
    ) -> Window:
        observed = (mask > 0).contiguous()  # in memory as in our own windows, so that sums have the same bits
        standardised = self._standardised(values.contiguous()).where(observed, values.new_zeros(()))
        return Window(standardised, observed, self._phase(phase, len(values)))

    def _phase(
        self, phase: Float[Tensor, "batch 1 look_back channel"] | None, batch: int
    ) -> Int[Tensor, "batch steps"]:
        """Count backwards and forwards from the last look-back step, which exists even if a series was padded."""
        steps = torch.arange(1 - self.input_size, self.h + 1, device=self.device)
        if phase is None:
            return torch.zeros_like(steps).expand(batch, -1)
        last = phase[:, 0, -1].long()
        if (last != last[:, :1]).any():
            raise DataError(
                "all series must be in the same phase at the same time",
                "different ones",
                "give series that end together",
            )
        counted: Tensor = (last[:, :1] + steps) % self.recipe.config.cycle
        return counted

    def _keep_own_settings(self, trainer_kwargs: Mapping[str, Any]) -> None:
        """Delete the settings that are not arguments of this class, so that a saved model is built like this one."""
        own = {*inspect.signature(IBForecast).parameters, *trainer_kwargs}
        for name in set(self.hparams) - own:
            del self.hparams[name]


MODEL_FILENAME_DICT["ibforecast"] = (
    IBForecast  # only models in this dictionary can be saved and loaded; there is no function to add one
)


def with_phase(df: Any, cycle: int, time_col: str = "ds") -> Any:
    """Add the column "phase" to a pandas or polars table: the position of each row in a cycle of `cycle` steps.

    Phases are those of `IBForecaster`: in local time, counted from a Monday at midnight. Times that are plain numbers
    are counted from 0.
    """
    require(cycle >= 1, "cycle must be at least 1", str(cycle), "try 24 for hourly data")
    table = nw.from_native(df, eager_only=True)
    if time_col not in table.columns:
        raise DataError(f"a table must have its time column (it has no {time_col!r})", remedy="name it with time_col")
    return table.with_columns(
        nw.new_series(PHASE, _phases(_moments(table[time_col]), cycle), backend=table.implementation)
    ).to_native()


def explain(
    nf: NeuralForecast, df: Any, at: Any = None, *, model: str | None = None, budget: float | None = None
) -> ExplainedForecast:
    """Explain the forecast that `nf.predict(df)` returns, or one made at an earlier time of the table.

    `model` is the name of the model, needed only if there are several. `budget` changes the budget of a model that was
    fitted for any budget.
    """
    forecaster, table = _opened(nf, df, model)
    numbered = nw.from_native(df, eager_only=True)[nf.time_col].dtype.is_integer()
    moment = MONDAY + at * SECOND if numbered and at is not None else at
    explained = forecaster.explain(table, moment, budget=budget)
    if ((np.diff(explained.phase) - 1) % len(explained.profile)).any():
        raise DataError(
            "a window that is explained must not span a change of the clock: neuralforecast counts steps evenly",
            f"one in the window that ends at {explained.at}",
            "choose another moment",
        )
    return explained


def to_ibforecaster(nf: NeuralForecast, df: Any, model: str | None = None) -> IBForecaster:
    """Return the fitted model as an `IBForecaster`, with all its methods, such as `save`, `to_onnx` and `verify`.

    Names and calendar are read from `df`, a table like the one that the model was fitted to.
    """
    return _opened(nf, df, model)[0]


def _opened(nf: NeuralForecast, df: Any, name: str | None) -> tuple[IBForecaster, Table]:
    model = _model_of(nf, name)
    require(
        nf.local_scaler_type is None,
        "explaining needs the table's own units, so local_scaler_type must be None",
        repr(nf.local_scaler_type),
        "leave it out: the model standardises its input itself",
    )
    source = _read(nf, df, model)
    series = source.series
    fitted = FittedModel(
        network=deepcopy(model.network).cpu().eval(),
        standardiser=Standardiser(model.mean.cpu().numpy(), model.std.cpu().numpy()),
        layout=source.layout,
        origin=str(series.clock.stamps[0]),
        even=series.clock.even,
        split=Split(series.rows, series.rows, series.rows),
        summary=TrainingSummary(
            recipe=model.recipe.name,
            recipe_sha256=model.recipe.sha256,
            data_sha256="",  # unknown here, so that no part of a table is taken for one that was held back
            rows=0,
            seed=model.random_seed,
            device=str(model.trainer_kwargs["accelerator"]),
            seconds=0.0,
            windows=0,
            epochs=0,
            best_epoch=0,
            validation_error=0.0,
        ),
    )
    return IBForecaster.of(fitted, device="cpu"), source


def _model_of(nf: NeuralForecast, name: str | None) -> IBForecast:
    ours = [model for model in nf.models if isinstance(model, IBForecast) and name in (None, repr(model))]
    if len(ours) != 1:
        names = ", ".join(repr(model) for model in nf.models)
        raise UsageError("one IBForecast must be named", f"{len(ours)} among {names}", "give its alias as `model`")
    if ours[0].mean.isnan().any():
        raise UsageError(
            "a model must be fitted before it is explained (this one is not)", remedy="call nf.fit(df) first"
        )
    return ours[0]


def _read(nf: NeuralForecast, df: Any, model: IBForecast) -> Table:
    """Read a table as neuralforecast does: sorted by id, in single precision, unavailable values as missing ones."""
    table = nw.from_native(df, eager_only=True)
    moments = _moments(table[nf.time_col])
    cycle = model.recipe.config.cycle
    if PHASE in table.columns and (table[PHASE].to_numpy() != _phases(moments, cycle)).any():
        raise DataError(
            f"the column {PHASE!r} must be what with_phase(table, cycle={cycle}) gives", "another", "add it again"
        )
    values = nw.col(nf.target_col).cast(nw.Float32)
    if "available_mask" in table.columns:
        values = nw.when(nw.col("available_mask") != 0).then(values)
    columns = [nw.col(nf.id_col), nw.col(nf.time_col), values.alias(nf.target_col)]
    selected = table.select(columns)
    if table[nf.time_col].dtype.is_integer():
        selected = selected.with_columns(nw.new_series(nf.time_col, moments, backend=table.implementation))
    layout = Layout(
        time=nf.time_col,
        channels=tuple(map(str, table[nf.id_col].unique().sort().to_list())),
        id=nf.id_col,
        target=nf.target_col,
        shape="long",
        frequency=str(Frequency.infer(np.unique(moments))),
        numbered=table[nf.time_col].dtype.is_integer(),
    )
    return tables.read(selected.sort(nf.id_col, nf.time_col).to_native(), layout)


def _moments(times: nw.Series[Any]) -> Shaped[np.ndarray, " row"]:
    """Return times as local times; plain numbers are seconds after a Monday at midnight."""
    if times.dtype.is_integer():
        return np.asarray(MONDAY + times.to_numpy().astype("timedelta64[s]"))
    if times.dtype == nw.Date:
        times = times.cast(nw.Datetime("us"))
    if not isinstance(times.dtype, nw.Datetime):
        raise DataError(f"{times.name!r} must hold times or whole numbers", times.dtype, "convert it")
    return times.dt.replace_time_zone(None).to_numpy().astype("datetime64[us]")


def _phases(moments: Shaped[np.ndarray, " row"], cycle: int) -> Int64[np.ndarray, " row"]:
    return Frequency.infer(np.unique(moments)).count(MONDAY, moments) % cycle


def _require_trainer_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that neither this model nor Lightning has; a `loss` would replace the recipe's objective."""
    unknown = sorted(set(settings) - set(inspect.signature(Trainer).parameters))
    require(
        not unknown,
        "settings must be those of IBForecast or of Lightning's Trainer",
        ", ".join(unknown),
        "leave them out; loss and learning rates are the recipe's, and covariates are not read",
    )


def _quiet(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return Lightning's settings with its output, its folders and its choice of device off, unless they are set."""
    accelerator = "gpu" if find_device("auto") == "cuda" else "cpu"
    silence = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return {"accelerator": accelerator, **silence, **settings}


def _standardiser(dataset: TimeSeriesDataset, held_back: int) -> Standardiser:
    """Compute mean and standard deviation of each series over the training rows."""
    seen = dataset.temporal[:, dataset.temporal_cols.get_loc("available_mask")] > 0
    values = torch.where(seen, dataset.temporal[:, dataset.y_idx].double(), torch.nan).numpy()
    columns = [values[first:last] for first, last in zip(dataset.indptr[:-1], dataset.indptr[1:], strict=True)]
    rows = np.full((dataset.max_size, len(columns)), np.nan)
    for number, column in enumerate(columns):  # series end together, so that a short one starts later
        rows[len(rows) - len(column) :, number] = column
    return Standardiser.of(rows[: len(rows) - held_back], tuple(f"series {n}" for n in range(len(columns))))
