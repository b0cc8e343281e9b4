"""Fleets next to naive forecasts and MSTL, on 52 generated series and 52 cut from real tables (`benchmarks.ragged`).

The fleet of a model for each series and the one model for all are fitted with the default settings. All methods
forecast the same 24 hours from the same origins, whole days apart and at most `MOST` of them in a part: validation, on
which ours select, and test, the last 20 % of the rows. The error of a series is its MASE: the mean absolute error
divided by that of repeating the day before in the training rows.

MSTL needs statsforecast: IBFORECAST_STATSFORECAST_PYTHON is a Python that has it, by default this one. It sees the last
`REMEMBERED` rows, with gaps filled by a straight line. It is left out if it is missing, and so are the real tables.
With IBFORECAST_FLEETS, a folder, models stay there, and a benchmark that was stopped continues.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float64, Int64

from benchmarks import ragged
from ibforecast import IBForecaster
from ibforecast.data.splits import Split
from ibforecast.data.windows import Windows
from ibforecast.fleet import Fleet, Outcome
from ibforecast.layers.naive import repeated
from ibforecast.use import Desk
from ibforecast.zoo.saved import FittedModel

HORIZON, DAY, WEEK, MOST = 24, 24, 168, 4
REMEMBERED = 8 * WEEK
PARTS = (0.7, 0.1, 0.2)
TOLERATED = 0.02
"""By how much the MASE of a series may exceed that of its naive forecast."""

Values = Float64[np.ndarray, " row"]
Forecasts = Float64[np.ndarray, "origin step"]
Origins = Int64[np.ndarray, " origin"]
Method = Callable[[str, Origins], Forecasts]
"""Forecasts a series, given by its name, from origins: the first rows that are forecast."""

NAIVE = {"last_value": 1, "last_day": DAY, "last_week": WEEK}


@dataclass(frozen=True)
class Series:
    """A series with its split, and the error of repeating the day before in its training rows."""

    table: pd.DataFrame
    values: Values
    split: Split
    scale: float

    @classmethod
    def of(cls, table: pd.DataFrame) -> "Series":
        """Return the series of a table."""
        values = table["y"].to_numpy(dtype=np.float64)
        split = Split.by_fractions(PARTS, len(values))
        training = values[: split.train_end]
        return cls(table, values, split, float(np.nanmean(np.abs(training[DAY:] - training[:-DAY]))))

    def origins(self, part: str) -> Origins:
        """Return the origins in a part: days with a value to forecast, evenly spaced if there are too many."""
        first, end = {
            "validation": (self.split.train_end, self.split.validation_end),
            "test": (self.split.validation_end, self.split.test_end),
        }[part]
        days = np.arange(first, end - HORIZON + 1, DAY)
        days = days[np.isfinite(self.values[days[:, None] + np.arange(HORIZON)]).any(axis=1)]
        return days[np.linspace(0, len(days) - 1, min(MOST, len(days))).round().astype(int)]

    def mase(self, forecasts: Forecasts, origins: Origins) -> float:
        """Return the mean absolute scaled error of forecasts."""
        truth = self.values[origins[:, None] + np.arange(HORIZON)]
        return float(np.nanmean(np.abs(forecasts - truth)) / self.scale)


def fleet(device: torch.device, each: bool = True) -> dict[str, float]:
    """Return mean and median MASE of every method in both parts of both sets, and how often ours lose to naive ones.

    Unless `each`, the fleet with a model for each series is left out.
    """
    results: dict[str, float] = {}
    for name, tables in (("generated", ragged.generated()), ("tables", ragged.cut())):
        if not tables:
            print(f"{name} are left out: set IBFORECAST_DATA to a folder with the tables of the suite", flush=True)
            continue
        with _folder(name) as folder:
            results |= {f"{name}_{key}": value for key, value in _measured(tables, folder, device, each).items()}
    return results


@contextmanager
def _folder(name: str) -> Iterator[Path]:
    if kept := os.environ.get("IBFORECAST_FLEETS"):
        yield Path(kept) / name
    else:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)


def fleet_global(device: torch.device) -> dict[str, float]:
    """Return the same without the fleet of a model for each series: minutes instead of an hour."""
    return fleet(device, each=False)


def _measured(tables: Mapping[str, pd.DataFrame], folder: Path, device: torch.device, each: bool) -> dict[str, float]:
    series = {name: Series.of(table) for name, table in tables.items()}
    fleets = {name: Fleet(folder / name) for name in (("shared", "own") if each else ("shared",))}
    settings = IBForecaster(HORIZON, device=device.type)
    results = {"shared_seconds": _seconds(fleets["shared"].fit_global(tables, settings))}
    if each:
        results["own_seconds"] = _seconds(fleets["own"].fit(tables, settings, on_member=_say))
    ours = {name: _Fitted(fitted, series) for name, fitted in fleets.items()}
    rows = np.array([len(one.values) for one in series.values()])
    results |= {"series": float(len(rows)), "median_rows": float(np.median(rows)), "most_rows": float(rows.max())}
    for part in ("validation", "test"):
        origins = {name: one.origins(part) for name, one in series.items()}
        kept = {
            name: firsts[np.logical_and.reduce([fitted.readable(name, firsts) for fitted in ours.values()])]
            for name, firsts in origins.items()
        }
        methods: dict[str, Method] = {
            **{name: fitted.forecast for name, fitted in ours.items()},
            **{name: partial(_naive, series, cycle) for name, cycle in NAIVE.items()},
        }
        if (decomposed := _mstl(series, kept)) is not None:
            methods["mstl"] = partial(_made, decomposed)
        errors = {
            method: np.array([series[name].mase(forecast(name, firsts), firsts) for name, firsts in kept.items()])
            for method, forecast in methods.items()
        }
        if part == "validation":
            usual = np.stack([errors[name] for name in NAIVE]).argmin(axis=0)
        errors["usual_naive"] = np.choose(usual, [errors[name] for name in NAIVE])
        results[f"{part}_windows"] = float(sum(map(len, kept.values())))
        results[f"{part}_unreadable"] = float(sum(map(len, origins.values()))) - results[f"{part}_windows"]
        for method, mases in errors.items():
            results |= {
                f"{part}_{method}_mean": float(mases.mean()),
                f"{part}_{method}_median": float(np.median(mases)),
            }
        for method in ours:
            for other in ("usual_naive", "mstl"):
                if other in errors:
                    behind = errors[method] > (1 + TOLERATED) * errors[other]
                    results |= {
                        f"{part}_{method}_behind_{other}": float(behind.sum()),
                        f"{part}_{method}_most_behind_{other}": float((errors[method] - errors[other]).max()),
                    }
    return results


@dataclass(frozen=True)
class _Fitted:
    """The models of a fleet."""

    fleet: Fleet
    series: Mapping[str, Series]

    def readable(self, name: str, origins: Origins) -> Bool[np.ndarray, " origin"]:
        """Return which windows have a value where the model reads."""
        windows, _ = self._windows(name, origins)
        return np.isin(windows.starts.numpy(), windows.usable().starts.numpy())

    def forecast(self, name: str, origins: Origins) -> Forecasts:
        """Forecast from the windows before the origins, in the units of the table."""
        windows, fitted = self._windows(name, origins)
        with torch.no_grad():
            ahead = fitted.predictor(windows.look_backs(windows.starts)).values
        return fitted.standardiser.to_units(ahead.flatten(0, 1).double().numpy()).reshape(len(origins), HORIZON)

    def _windows(self, name: str, origins: Origins) -> tuple[Windows, FittedModel]:
        model = self.fleet.model(name, "cpu")
        desk = Desk(model.fitted, "cpu")
        return desk.windows_at(model.open(self.series[name].table).series, origins - desk.look_back), model.fitted


def _naive(series: Mapping[str, Series], cycle: int, name: str, origins: Origins) -> Forecasts:
    """Repeat the last cycle before each origin; a missing value is replaced by the one a cycle before."""
    histories = torch.from_numpy(series[name].values[origins[:, None] + np.arange(-2 * WEEK, 0)])[..., None]
    return repeated(histories.nan_to_num(), histories.isfinite(), cycle, HORIZON)[..., 0].numpy()


def _mstl(series: Mapping[str, Series], origins: Mapping[str, Origins]) -> dict[str, Forecasts] | None:
    """Forecast all windows with MSTL in a process of its own; None if statsforecast is missing there."""
    histories = {
        f"{name}/{place}": _filled(series[name].values[max(origin - REMEMBERED, 0) : origin])
        for name, each in origins.items()
        for place, origin in enumerate(each)
    }
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "histories.npz", Path(folder) / "forecasts.npz"
        np.savez(given, **histories)
        python, script = (
            os.environ.get("IBFORECAST_STATSFORECAST_PYTHON", sys.executable),
            Path(__file__).parent / "mstl.py",
        )
        # Without -P, modules of the standard library would be found in this folder, which has a profile.py.
        command = [python, "-P", "-W", "ignore", script, given, made]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"MSTL is left out: {done.stderr.strip().splitlines()[-1]}", flush=True)
            return None
        with np.load(made) as forecasts:
            return {
                name: np.stack([forecasts[f"{name}/{place}"] for place in range(len(each))])
                for name, each in origins.items()
            }


def _made(forecasts: dict[str, Forecasts], name: str, origins: Origins) -> Forecasts:
    return forecasts[name]


def _filled(values: Values) -> Values:
    seen = np.isfinite(values).nonzero()[0]
    return np.interp(np.arange(len(values)), seen, values[seen])


def _seconds(outcomes: tuple[Outcome, ...]) -> float:
    for outcome in outcomes:
        if outcome.state == "failed":
            raise RuntimeError(f"{outcome.name}: {outcome.message}")
    return sum(outcome.seconds for outcome in outcomes)


def _say(outcome: Outcome, count: int) -> None:
    print(f"{outcome.name} {outcome.state}, {outcome.seconds:.0f} s, {outcome.message}", flush=True)
