"""IB-Forecast as a forecaster of sktime: any of its time indices in, forecasts on the same kind of index out."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int64

from ibforecast.core.calendar import MONDAY, Frequency
from ibforecast.core.errors import DataError, MissingExtraError, UsageError, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.forecaster import IBForecaster
from ibforecast.model.config import ModelConfig
from ibforecast.zoo.recipes import DEFAULT

try:
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("sktime", "pandas"):
        raise
    raise MissingExtraError("sktime", "sktime") from error

USUAL_LOOK_BACK = 96
FEWEST_PATCHES = 8
"""As many as the usual look-back has; a budget of an eighth still allows one of them."""


class IBForecastForecaster(BaseForecaster):  # type: ignore[misc]
    """Forecasts all columns of `y` together and says, with each forecast, what it read.

    What `fit` leaves behind is `ibforecaster_`, an `IBForecaster` with all it can do; `explain` gives the explanation
    of the forecast that `predict` gives. Intervals are calibrated on the rows that select the best epoch (`val_size`).
    `X` is ignored, and missing values are allowed: what is missing is not read.

    `horizon` is the farthest step ahead. By default it is the farthest of `fh`, which `fit` must then be given; with
    a horizon, `predict` takes any `fh` within it. `look_back` and `patch_len` are chosen by the length of the series
    where they are left open: at most 96 rows, at most half of what there is to train on, in eight patches or more.
    `cycle` is the number of steps of the seasonal profile; "auto" takes it from the frequency and is 1, no season,
    where there is no natural one or the index holds plain numbers. `budget`, `recipe`, `irregular` and `device` are
    those of `IBForecaster`. `max_epochs` stands in for the recipe's number of epochs; `val_size` last rows are held
    back to select the best of them (None: an eighth, at least one horizon). Without `random_state` every fit differs.

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
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:update": True,
        "capability:random_state": True,
        "property:randomness": "derandomized",
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # the rows seen are in `_cur_y`
    _y: Any = None  # sktime looks here, and for `_X`, when a user turns `remember_data` on
    _X: Any = None

    def __init__(
        self,
        horizon: int | None = None,
        look_back: int | None = None,
        budget: float | None = None,
        cycle: int | Literal["auto"] = "auto",
        patch_len: int | None = None,
        recipe: str = DEFAULT,
        max_epochs: int | None = None,
        val_size: int | None = None,
        irregular: Literal["error", "by_row", "fill"] = "error",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 2024,
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
        self.device = device
        self.random_state = random_state
        super().__init__()
        if horizon is not None:
            self.set_tags(**{"requires-fh-in-fit": False})

    def explain(self, at: Any = None, *, budget: float | None = None) -> ExplainedForecast:
        """Explain the forecast made at the cutoff, or at another time of the series: all steps up to the horizon.

        `budget` turns the budget of a model that was fitted for any.
        """
        self.check_is_fitted()
        self._require_one_series()
        explained = self.ibforecaster_.explain(self._table(self._cur_y), self._moment(at), budget=budget)
        numbered = pd.api.types.is_integer_dtype(self._cur_y.index)
        return replace(explained, clock=replace(explained.clock, numbered=True)) if numbered else explained

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings for sktime's checks: lengths found out, and lengths given, each trained in a moment."""
        tiny: dict[str, Any] = {"recipe": "quick", "max_epochs": 1, "device": "cpu"}
        return [tiny, {**tiny, "horizon": 5, "look_back": 4, "patch_len": 1, "budget": 0.5, "cycle": 3}]

    def _fit(self, y: pd.DataFrame, X: Any, fh: ForecastingHorizon | None) -> "IBForecastForecaster":  # noqa: N803
        farthest = None if fh is None else int(self._steps(fh).max()) + 1
        self._cur_y = y
        return self._fit_to(y, self._within_horizon(farthest))

    def _predict(self, fh: ForecastingHorizon, X: Any) -> pd.DataFrame:  # noqa: N803
        return self._told(fh).set_axis(self._cur_y.columns, axis=1)

    def _predict_quantiles(self, fh: ForecastingHorizon, X: Any, alpha: list[float]) -> pd.DataFrame:  # noqa: N803
        """Ends of intervals calibrated on the rows held back; where these are too few for a level there is no end.

        The median is the forecast itself; next to it, a level of less than one percent is taken as one.
        """
        calibration = self.ibforecaster_.fitted.calibration
        assert calibration is not None
        levels = {share: _level(share) for share in alpha}
        told = self._told(fh, [level for level in levels.values() if 0 < level <= calibration.highest_level])
        names = dict(zip(self._get_varnames(), map(str, self._cur_y.columns), strict=True))
        columns = pd.MultiIndex.from_product([names, alpha])
        found = []
        for name, share in columns:
            end, nowhere = ("lo", -np.inf) if share < 0.5 else ("hi", np.inf)
            column = f"{names[name]}-{end}-{levels[share]:g}" if levels[share] else names[name]
            found.append(told[column] if column in told else np.full(len(told), nowhere))
        return pd.DataFrame(np.stack(found, axis=1), told.index, columns)

    def _told(self, fh: ForecastingHorizon, levels: list[float] | None = None) -> pd.DataFrame:
        """What is forecast at these steps, with intervals if levels are given, on an index like that of the series."""
        steps, horizon = self._steps(fh), self.ibforecaster_.horizon
        if steps.max() >= horizon:
            raise UsageError(
                f"fh must not reach beyond the horizon that was fitted (got step {steps.max() + 1} of {horizon}); "
                f"fit again with horizon={steps.max() + 1}"
            )
        model, table, at = self.ibforecaster_, self._table(self._cur_y), self._moment(None)
        forecast = model.predict(table, at, level=levels or None).iloc[steps]
        unclear = fh.is_relative and fh.freq is None and isinstance(self.cutoff, pd.DatetimeIndex)
        index = pd.DatetimeIndex(forecast.iloc[:, 0]) if unclear else fh.to_absolute_index(self.cutoff)
        return pd.DataFrame(forecast.iloc[:, 1:].to_numpy(), index=index, columns=forecast.columns[1:])

    def _update(
        self,
        y: pd.DataFrame,
        X: Any = None,  # noqa: N803
        update_params: bool = True,
    ) -> "IBForecastForecaster":
        """Go on from new rows with the weights as they are, or fit anew to all rows up to the new cutoff."""
        known = self._cur_y
        if len(y.columns) != len(known.columns) or (len(known.columns) > 1 and set(y.columns) != set(known.columns)):
            raise DataError(
                f"new rows must have the columns of fit (got {list(y.columns)}, fitted to {list(known.columns)}); "
                "name them alike"
            )
        new = y.set_axis(known.columns, axis=1) if len(known.columns) == 1 else y
        both = pd.concat([known, new])
        self._cur_y = both[~both.index.duplicated(keep="last")].sort_index()
        if update_params:
            self._fit_to(self._cur_y.loc[: self.cutoff[0]], self.ibforecaster_.horizon)
        return self

    def _fit_to(self, y: pd.DataFrame, horizon: int) -> "IBForecastForecaster":
        table = self._table(y)
        cut = Cut.of(len(table), horizon, self.look_back, self.patch_len, self.val_size)
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
        )
        self.ibforecaster_ = model.fit(table)
        return self

    def _table(self, y: pd.DataFrame) -> pd.DataFrame:
        """The series as a table with a time column in front; columns of any names become channels."""
        names, index = [str(name) for name in y.columns], y.index
        if len(set(names)) < len(names):
            raise DataError(f"columns must have different names (got {names}); rename them")
        if self.irregular == "error" and pd.api.types.is_integer_dtype(index) and (np.diff(index) != 1).any():
            row = int((np.diff(index) != 1).argmax()) + 1
            raise DataError(
                f"an index of numbers must count on by one (row {row}: {index[row]} follows {index[row - 1]}); "
                "put the rows on the even grid with irregular='fill', or read by row number with irregular='by_row'"
            )
        moments = pd.DataFrame({_free("time", names): _to_moments(index)})
        return pd.concat([moments, y.set_axis(names, axis=1).reset_index(drop=True)], axis=1)

    def _within_horizon(self, farthest: int | None) -> int:
        horizon = farthest if self.horizon is None else self.horizon
        assert horizon is not None
        if farthest is not None and farthest > horizon:
            raise UsageError(
                f"fh must not reach beyond the horizon (got step {farthest}, horizon={horizon}); "
                f"give horizon={farthest}, or None for the farthest of fh"
            )
        return horizon

    def _steps(self, fh: ForecastingHorizon) -> Int64[np.ndarray, " step"]:
        """Which steps after the cutoff are asked for, counted from 0."""
        if fh.is_relative and not pd.api.types.is_integer_dtype(fh.to_pandas()):
            fh = fh.to_absolute(self.cutoff)
        return np.asarray(fh.to_indexer(self.cutoff), dtype=np.int64)

    def _moment(self, at: Any) -> Any:
        """The moment by which the table knows a time of the series, the cutoff by default."""
        index = self._cur_y.index
        try:
            row = index.get_loc(self.cutoff[0] if at is None else at)
        except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError) as error:
            raise DataError(_not_there(at, index)) from error
        if not isinstance(row, int):
            raise DataError(_not_there(at, index))
        return _to_moments(index[row : row + 1])[0]

    def _require_one_series(self) -> None:
        if not hasattr(self, "ibforecaster_"):
            raise UsageError(
                "an explanation is of one series (this forecaster was fitted to several, one by one); "
                "choose one in `forecasters_`, such as fitted.forecasters_.iloc[0, 0].explain()"
            )

    def _seed(self) -> int:
        if self.random_state is None or isinstance(self.random_state, np.random.RandomState):
            return int((self.random_state or np.random.RandomState()).randint(2**31))
        return int(self.random_state)


@dataclass(frozen=True)
class Cut:
    """Lengths for a series of so many rows: what is read, in which patches, and the share that is trained on."""

    look_back: int
    patch_len: int | None
    train_share: float

    @classmethod
    def of(cls, rows: int, horizon: int, look_back: int | None, patch_len: int | None, val_size: int | None) -> "Cut":
        """Keep what is given and choose the rest by the number of rows; a series too short for any is refused.

        An eighth of the rows, at least one horizon, selects the best epoch. The look-back takes at most half of what
        is left, so that there are as many windows as it has steps, but never less than eight rows.
        """
        for name, least, value in (("patch_len", 1, patch_len), ("val_size", horizon, val_size)):
            require(value is None or value >= least, f"{name} must be at least {least}", f"{value}", "or leave it open")
        shortest = max(FEWEST_PATCHES, patch_len or 1) if look_back is None else look_back

        def trained_on(rows: int) -> int:
            return rows - (max(horizon, rows // 8) if val_size is None else val_size)

        if trained_on(rows) < shortest + horizon:
            enough = next(more for more in count(rows + 1) if trained_on(more) >= shortest + horizon)
            raise DataError(
                f"a series must have look_back + horizon = {shortest} + {horizon} rows to train on and "
                f"{enough - trained_on(enough)} to select on (got {rows}); give {enough} rows or more, or shorten one"
            )
        room = trained_on(rows) - horizon
        share = (trained_on(rows) + 0.5) / rows  # half a row more, so that no rounding can lose one
        if look_back is not None:
            return cls(look_back, patch_len, share)
        longest = min(USUAL_LOOK_BACK, max(shortest, (room + 1) // 2))
        patch = patch_len or min(ModelConfig.patch_len, longest // FEWEST_PATCHES)
        return cls(longest // patch * patch, patch, share)


def _level(share: float) -> float:
    """The level in percent of the interval that ends at this quantile, 0 for the median."""
    level = round(100 * abs(1 - 2 * share), 9)
    return max(level, 1.0) if level else 0.0


def _free(name: str, taken: Iterable[str]) -> str:
    """This name, or one like it that is not taken."""
    names = set(taken)
    while name in names:
        name += "_"
    return name


def _to_moments(index: pd.Index) -> pd.DatetimeIndex:
    """Put an index on a clock: periods begin at their start, plain numbers are seconds after a Monday at midnight."""
    if isinstance(index, pd.DatetimeIndex):
        return index
    if isinstance(index, pd.PeriodIndex):
        return index.to_timestamp(how="start")
    if pd.api.types.is_integer_dtype(index):
        return pd.DatetimeIndex(MONDAY + index.to_numpy().astype("timedelta64[s]"))
    raise DataError(
        f"an index must hold times, periods or whole numbers (got {type(index).__name__} of {index.dtype}); "
        "set another index"
    )


def _from_moments(moments: pd.DatetimeIndex, index: pd.Index) -> pd.Index:
    """Read the clock as an index of this kind: the inverse of `_to_moments`."""
    if isinstance(index, pd.PeriodIndex):
        return moments.to_period(index.freq)
    return (moments - pd.Timestamp(MONDAY)) // pd.Timedelta(seconds=1)


def _cycle(index: pd.Index) -> int:
    """The natural cycle of the frequency of an index, 1 where it has none."""
    if pd.api.types.is_integer_dtype(index):
        return 1
    try:
        return Frequency.infer(_to_moments(index).tz_localize(None).to_numpy()).cycle()
    except UsageError:
        return 1


def _not_there(at: Any, index: pd.Index) -> str:
    return f"`at` must be a time of the series, which runs from {index[0]} to {index[-1]} (got {at!r}); choose another"
