"""IB-Forecast as an sktime forecaster, for any of sktime's time indices; a forecast has the same kind of index."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int64

from ibforecast.core.calendar import MONDAY, Frequency
from ibforecast.core.errors import DataError, MissingExtraError, UsageError, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.sizes import Sizes
from ibforecast.data import tables
from ibforecast.data.layout import Irregular
from ibforecast.forecaster import IBForecaster
from ibforecast.settings import Settings
from ibforecast.zoo.recipes import Recipe, resolve_ours

try:
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("sktime", "pandas"):
        raise
    raise MissingExtraError("sktime", "sktime") from error

USUAL_LOOK_BACK = Settings.look_back
FEWEST_PATCHES = 8
"""As many as the usual look-back has; a budget of one eighth still allows one of them."""


class IBForecastForecaster(BaseForecaster):  # type: ignore[misc]
    """A forecaster that forecasts all columns of `y` together and explains each forecast.

    `fit` sets `ibforecaster_`, an `IBForecaster` with all its methods; `explain` returns the explanation of the
    forecast that `predict` returns. Intervals are calibrated on the rows that select the best epoch (`val_size`).
    `y` may have missing values, which are not read. The columns of `X` are covariates known ahead: if `fit` got them,
    `predict` needs them for the steps to forecast, without gaps.

    `horizon` is the farthest step ahead. By default it is the farthest step of `fh`, which `fit` then needs; with
    a horizon, `predict` takes any `fh` within it. `look_back` and `patch_len` depend on the length of the series if
    they are None: at most 96 rows and at most half of the training rows, in eight patches or more, which are at most as
    long as the recipe's. `cycle` is the number of steps of the seasonal profile, or several such as (24, 168). "auto"
    takes it from the frequency; it is 1, no season, if the frequency has no natural cycle or the index contains plain
    numbers. `budget`, `recipe`, `irregular`, `limits`, `whole` and `device` are those of `IBForecaster`. `max_epochs`
    replaces the recipe's number of epochs. The last `val_size` rows are held back to select the best epoch (None: one
    eighth, at least one horizon). Without `random_state` every fit is different.

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from ibforecast.adapters.sktime import IBForecastForecaster
    >>> forecaster = IBForecastForecaster(max_epochs=2).fit(load_airline(), fh=[1, 2, 3])
    >>> forecaster.predict().index.astype(str).tolist()
    ['1961-01', '1961-02', '1961-03']
    >>> bool(forecaster.explain().verify())
    True
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["The ibforecast developers"],
        "maintainers": ["The ibforecast developers"],
        "python_dependencies": ["torch"],
        "y_inner_mtype": "pd.DataFrame",
        "X_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": True,
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:non_contiguous_X": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:update": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # the rows are in `_cur_y` and `_cur_X`
    _y: Any = None  # sktime reads this and `_X` if a user turns `remember_data` on
    _X: Any = None

    def __init__(
        self,
        horizon: int | None = None,
        look_back: int | None = None,
        budget: float | None = Settings.budget,
        cycle: int | Sequence[int] | Literal["auto"] = Settings.cycle,
        patch_len: int | None = Settings.patch_len,
        recipe: str | Recipe = Settings.recipe,
        max_epochs: int | None = None,
        val_size: int | None = None,
        irregular: Irregular = Settings.irregular,
        limits: Mapping[str, Any] | Sequence[Any] | None = Settings.limits,
        whole: Sequence[str] = Settings.whole,
        device: str = Settings.device,
        random_state: int | np.random.RandomState | None = Settings.seed,
    ) -> None:
        self.horizon = horizon
        self.look_back = look_back
        self.budget = budget
        self.cycle = cycle
        self.patch_len = patch_len
        self.recipe = recipe
        self.max_epochs = max_epochs
        self.val_size = val_size
        self.irregular = irregular
        self.limits = limits
        self.whole = whole
        self.device = device
        self.random_state = random_state
        super().__init__()
        if horizon is not None:
            self.set_tags(**{"requires-fh-in-fit": False})

    def explain(
        self,
        at: Any = None,
        *,
        budget: float | None = None,
        X: Any = None,  # noqa: N803
    ) -> ExplainedForecast:
        """Explain the forecast made at the cutoff, or at another time of the series: all steps up to the horizon.

        `budget` changes the budget of a model that was fitted for any budget. `X` has the covariates of those steps
        that are after the last row of the series.
        """
        self.check_is_fitted()
        self._require_one_series()
        table, ahead = self._table(self._cur_y, self._cur_X), self._ahead(X)
        return self.ibforecaster_.explain(table, self._moment(at), budget=budget, future=ahead)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings for sktime's checks, quick to train: one with automatic lengths, one with explicit ones."""
        tiny: dict[str, Any] = {"recipe": "sealed", "max_epochs": 1, "device": "cpu"}
        return [tiny, {**tiny, "horizon": 5, "look_back": 4, "patch_len": 1, "budget": 0.5, "cycle": 3}]

    def _fit(self, y: pd.DataFrame, X: Any, fh: ForecastingHorizon | None) -> "IBForecastForecaster":  # noqa: N803
        farthest = None if fh is None else int(self._steps(fh).max()) + 1
        self._cur_y, self._cur_X = y, None if X is None else X.reindex(y.index)
        return self._fit_to(y, self._cur_X, self._within_horizon(farthest))

    def _predict(self, fh: ForecastingHorizon, X: Any) -> pd.DataFrame:  # noqa: N803
        return self._forecast(fh, X).set_axis(self._cur_y.columns, axis=1)

    def _predict_quantiles(self, fh: ForecastingHorizon, X: Any, alpha: list[float]) -> pd.DataFrame:  # noqa: N803
        """Return bounds of intervals calibrated on the rows held back; infinite if these are too few for a level.

        The median is the forecast itself; close to it, a level of less than one percent is taken as one percent.
        """
        calibration = self.ibforecaster_.fitted.calibration
        assert calibration is not None
        levels = {share: _level(share) for share in alpha}
        forecast = self._forecast(fh, X, [level for level in levels.values() if 0 < level <= calibration.highest_level])
        names = dict(zip(self._get_varnames(), map(str, self._cur_y.columns), strict=True))
        columns = pd.MultiIndex.from_product([names, alpha])
        ends = []
        for name, share in columns:
            end, unbounded = ("lo", -np.inf) if share < 0.5 else ("hi", np.inf)
            column = f"{names[name]}-{end}-{levels[share]:g}" if levels[share] else names[name]
            ends.append(forecast[column] if column in forecast else np.full(len(forecast), unbounded))
        return pd.DataFrame(np.stack(ends, axis=1), forecast.index, columns)

    def _forecast(
        self,
        fh: ForecastingHorizon,
        X: Any,  # noqa: N803
        levels: list[float] | None = None,
    ) -> pd.DataFrame:
        """Forecast the steps of `fh`, with intervals of the `levels` if there are any, on an index like the series'."""
        steps, horizon = self._steps(fh), self.ibforecaster_.horizon
        if steps.max() >= horizon:
            raise UsageError(
                "fh must not go beyond the horizon that was fitted",
                f"step {steps.max() + 1} of {horizon}",
                f"fit again with horizon={steps.max() + 1}",
            )
        table, ahead = self._table(self._cur_y, self._cur_X), self._ahead(X, steps)
        predicted = self.ibforecaster_.predict(table, self._moment(None), level=levels or None, future=ahead)
        forecast = predicted.iloc[steps]
        # Without a frequency, sktime cannot add steps to the cutoff: the times of the forecast are taken instead.
        without_freq = fh.is_relative and fh.freq is None and isinstance(self.cutoff, pd.DatetimeIndex)
        index = pd.DatetimeIndex(forecast.iloc[:, 0]) if without_freq else fh.to_absolute_index(self.cutoff)
        return pd.DataFrame(forecast.iloc[:, 1:].to_numpy(), index=index, columns=forecast.columns[1:])

    def _update(
        self,
        y: pd.DataFrame,
        X: Any = None,  # noqa: N803
        update_params: bool = True,
    ) -> "IBForecastForecaster":
        """Append new rows and keep the weights, or fit again to all rows up to the new cutoff."""
        known = self._cur_y
        if len(y.columns) != len(known.columns) or (len(known.columns) > 1 and set(y.columns) != set(known.columns)):
            raise DataError(
                "new rows must have the columns of fit",
                f"{list(y.columns)}, fitted to {list(known.columns)}",
                "use the same names",
            )
        new = y.set_axis(known.columns, axis=1) if len(known.columns) == 1 else y
        self._cur_y = _latest(known, new)
        if self._cur_X is not None:
            self._cur_X = _latest(self._cur_X, X).reindex(self._cur_y.index)
        if update_params:
            until = slice(self.cutoff[0])
            covariates = None if self._cur_X is None else self._cur_X.loc[until]
            self._fit_to(self._cur_y.loc[until], covariates, self.ibforecaster_.horizon)
        return self

    def _fit_to(self, y: pd.DataFrame, X: pd.DataFrame | None, horizon: int) -> "IBForecastForecaster":  # noqa: N803
        table = self._table(y, X)
        usual = _usual_patch_len(self.recipe, horizon, y.shape[1])
        cut = Cut.of(len(table), horizon, self.look_back, self.patch_len, self.val_size, usual)
        model = IBForecaster(
            horizon,
            cut.look_back,
            self.budget,
            _cycle(y.index) if self.cycle == "auto" else self.cycle,
            patch_len=cut.patch_len,
            recipe=self.recipe,
            seed=self._seed(),
            device=self.device,
            split=(cut.train_share, 1 - cut.train_share, 0.0),
            epochs=self.max_epochs,
            time=str(table.columns[0]),
            id=_free("id", table.columns),
            freq="1s" if pd.api.types.is_integer_dtype(y.index) else None,
            irregular=self.irregular,
            limits=self.limits,
            whole=self.whole,
            future=[] if X is None else list(table.columns[-X.shape[1] :]),
        )
        # The model gets seconds for the numbers of an index; its explanations print the numbers again.
        numbered = pd.api.types.is_integer_dtype(y.index)
        self.ibforecaster_ = model.fit(tables.read(table, replace(model.layout, numbered=numbered)))
        return self

    def _table(self, y: pd.DataFrame, X: pd.DataFrame | None = None) -> pd.DataFrame:  # noqa: N803
        """Return the series as a table: a time column, the columns of `y` as channels, then those of `X`."""
        names, index = [str(name) for name in y.columns], y.index
        if len(set(names)) < len(names):
            raise DataError("columns must have different names", names, "rename them")
        if self.irregular == "error" and pd.api.types.is_integer_dtype(index) and (np.diff(index) != 1).any():
            row = int((np.diff(index) != 1).argmax()) + 1
            raise DataError(
                f"an index of numbers must increase by one (row {row}: {index[row]} follows {index[row - 1]})",
                remedy="put the rows on the even grid with irregular='fill', or read by row number with "
                "irregular='by_row'",
            )
        parts = [pd.DataFrame({_free("time", names): _to_moments(index)}), y.set_axis(names, axis=1)]
        if X is not None:
            taken = [parts[0].columns[0], *names]
            for name in X.columns:
                taken.append(_free(str(name), taken))
            parts.append(X.set_axis(taken[-X.shape[1] :], axis=1))
        return pd.concat([part.reset_index(drop=True) for part in parts], axis=1)

    def _ahead(self, X: Any, steps: Int64[np.ndarray, " step"] | None = None) -> pd.DataFrame | None:  # noqa: N803
        """Return the covariates of the steps after the last row as a table; None if there are none.

        With `steps`, counted from 0 after the cutoff, only their covariates are needed: a covariate moves only the
        forecast of its own step. Steps that are not needed and have no value get that of the nearest step before them,
        or else after them.
        """
        if self._cur_X is None or X is None:
            return None
        if set(X.columns) != set(self._cur_X.columns):
            raise DataError(
                "X must have the columns of fit",
                f"{list(X.columns)}, fitted to {list(self._cur_X.columns)}",
                "use the same names",
            )
        table = self._table(self._cur_y, self._cur_X)
        series = self.ibforecaster_.open(table).series
        moments = pd.DatetimeIndex(series.clock.times(series.rows, self.ibforecaster_.horizon))
        if series.clock.zone is not None:
            moments = moments.tz_localize("UTC").tz_convert(series.clock.zone)
        later = X[self._cur_X.columns].set_axis(_to_moments(X.index)).reindex(moments)
        if steps is not None:
            first = series.clock.row_of(self._moment(None)) + 1 - series.rows
            unneeded = ~np.isin(np.arange(len(later)), first + steps)
            later.loc[unneeded] = later.ffill().bfill().loc[unneeded]
        later = later.loc[: later.last_valid_index()]
        return pd.DataFrame(later.to_numpy(), columns=series.covariates).assign(**{table.columns[0]: later.index})

    def _within_horizon(self, farthest: int | None) -> int:
        horizon = farthest if self.horizon is None else self.horizon
        assert horizon is not None
        if farthest is not None and farthest > horizon:
            raise UsageError(
                "fh must not go beyond the horizon",
                f"step {farthest}, horizon={horizon}",
                f"give horizon={farthest}, or None for the farthest of fh",
            )
        return horizon

    def _steps(self, fh: ForecastingHorizon) -> Int64[np.ndarray, " step"]:
        """Return the steps of a forecasting horizon after the cutoff, counted from 0."""
        if fh.is_relative and not pd.api.types.is_integer_dtype(fh.to_pandas()):
            fh = fh.to_absolute(self.cutoff)
        return np.asarray(fh.to_indexer(self.cutoff), dtype=np.int64)

    def _moment(self, at: Any) -> Any:
        """Return a time of the series, the cutoff by default, as a moment of the table."""
        index = self._cur_y.index
        try:
            row = index.get_loc(self.cutoff[0] if at is None else at)
        except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError) as error:
            raise _unknown_time(at, index) from error
        if not isinstance(row, int):
            raise _unknown_time(at, index)
        return _to_moments(index[row : row + 1])[0]

    def _require_one_series(self) -> None:
        if not hasattr(self, "ibforecaster_"):
            raise UsageError(
                "an explanation is of one series (this forecaster was fitted to several, one by one)",
                remedy="choose one from `forecasters_`, such as fitted.forecasters_.iloc[0, 0].explain()",
            )

    def _seed(self) -> int:
        # Each fit draws a new seed, from the user's RandomState if there is one.
        if self.random_state is None or isinstance(self.random_state, np.random.RandomState):
            return int((self.random_state or np.random.RandomState()).randint(2**31))
        return int(self.random_state)


@dataclass(frozen=True)
class Cut:
    """Lengths for a series: its look-back, the length of a patch, and the share of the rows to train on."""

    look_back: int
    patch_len: int | None
    train_share: float

    @classmethod
    def of(
        cls,
        rows: int,
        horizon: int,
        look_back: int | None,
        patch_len: int | None,
        val_size: int | None,
        usual_patch_len: int,
    ) -> "Cut":
        """Keep the lengths that are not None and choose the others by the number of rows; refuse a series too short.

        One eighth of the rows, at least one horizon, selects the best epoch. The look-back is at most half of the
        rest, so that there are as many windows as it has steps, but never less than eight rows. `usual_patch_len` is
        the longest patch to choose, the recipe's.
        """
        for name, least, value in (("patch_len", 1, patch_len), ("val_size", horizon, val_size)):
            require(
                value is None or value >= least,
                f"{name} must be at least {least}",
                f"{value}",
                "leave it out for the default",
            )
        shortest = max(FEWEST_PATCHES, patch_len or 1) if look_back is None else look_back

        def trained_on(rows: int) -> int:
            return rows - (max(horizon, rows // 8) if val_size is None else val_size)

        if trained_on(rows) < shortest + horizon:
            enough = next(more for more in count(rows + 1) if trained_on(more) >= shortest + horizon)
            raise DataError(
                f"a series must have look_back + horizon = {shortest} + {horizon} rows to train on and "
                f"{enough - trained_on(enough)} to select on",
                rows,
                f"give {enough} rows or more, or shorten one",
            )
        room = trained_on(rows) - horizon
        share = (trained_on(rows) + 0.5) / rows  # half a row more, so that rounding down never loses a row
        if look_back is not None:
            return cls(look_back, patch_len, share)
        longest = min(USUAL_LOOK_BACK, max(shortest, (room + 1) // 2))
        patch = patch_len or min(usual_patch_len, longest // FEWEST_PATCHES)
        return cls(longest // patch * patch, patch, share)


def _usual_patch_len(recipe: str | Recipe, horizon: int, channels: int) -> int:
    """Return the patch length of a recipe for the usual look-back."""
    if isinstance(recipe, Recipe):
        return int(recipe.config.patch_len)
    return int(resolve_ours(recipe, Sizes(USUAL_LOOK_BACK, horizon, channels, cycle=1)).config.patch_len)


def _level(share: float) -> float:
    """Return the level, in percent, of the interval with a bound at this quantile; 0 for the median."""
    level = round(100 * abs(1 - 2 * share), 9)
    return max(level, 1.0) if level else 0.0


def _latest(known: pd.DataFrame, new: pd.DataFrame | None) -> pd.DataFrame:
    """Return all rows in order; a new row replaces the known one of the same time."""
    both = known if new is None else pd.concat([known, new])
    return both[~both.index.duplicated(keep="last")].sort_index()


def _free(name: str, taken: Iterable[str]) -> str:
    """Return this name, with underscores added while it is taken."""
    names = set(taken)
    while name in names:
        name += "_"
    return name


def _to_moments(index: pd.Index) -> pd.DatetimeIndex:
    """Return an index as times: a period is its start, a plain number is seconds after a Monday at midnight."""
    if isinstance(index, pd.DatetimeIndex):
        return index
    if isinstance(index, pd.PeriodIndex):
        return index.to_timestamp(how="start")
    if pd.api.types.is_integer_dtype(index):
        return pd.DatetimeIndex(MONDAY + index.to_numpy().astype("timedelta64[s]"))
    raise DataError(
        "an index must hold times, periods or whole numbers",
        f"{type(index).__name__} of {index.dtype}",
        "set another index",
    )


def _cycle(index: pd.Index) -> int:
    """Return the natural cycle of the frequency of an index; 1 if it has none."""
    if pd.api.types.is_integer_dtype(index):
        return 1
    try:
        return Frequency.infer(_to_moments(index).tz_localize(None).to_numpy()).cycle()
    except UsageError:
        return 1


def _unknown_time(at: Any, index: pd.Index) -> DataError:
    return DataError(
        f"`at` must be a time of the series, which runs from {index[0]} to {index[-1]}", repr(at), "choose another"
    )
