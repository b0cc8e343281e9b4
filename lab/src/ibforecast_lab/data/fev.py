"""Three tasks of fev-bench that can be rebuilt from files of the catalogue: ETT_1H, ETT_15T and jena_weather_10T.

A task has one or two items, each a file of the catalogue with all its rows. Of each item the last 20 windows are
forecast, one horizon apart, each from all rows before it. Facts: autogluon/fev, benchmarks/fev_bench/tasks.yaml.

An item is read as a data set with the name of its file and a suffix. The rows before the first of the 20 windows are
split into training and validation rows by the shares that the product uses. A model is fitted once, to those rows,
and forecasts all windows; trained models of the benchmark were fitted again before each window.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast_lab.data.catalogue import CATALOGUE, DataSet, load

SUFFIX = "-fev"
WINDOWS = 20
VALIDATION = 1 / 8
"""The share of validation rows in the rows before the test windows: 0.1 of 0.8, as in the product's default split."""

SENTINEL = -9999.0
"""The value in Weather that marks a failed sensor. It counts as missing in training, and as a value in scores."""


@dataclass(frozen=True)
class FevItem:
    """One series of a task; `source` is its data set in the catalogue. The season of its scores is the cycle."""

    task: str
    source: DataSet
    horizon: int

    @property
    def name(self) -> str:
        """Name of the item as a data set."""
        return f"{self.source.name}{SUFFIX}"

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.source.channels

    @property
    def cycle(self) -> int:
        """Length of the cycle, which is also the season of the scaled scores."""
        return self.source.cycle

    @property
    def frequency(self) -> str:
        """Length of a step."""
        return self.source.frequency

    @property
    def parts(self) -> Split:
        """Borders of the parts; the test rows are the targets of the windows."""
        before = self.source.rows - WINDOWS * self.horizon
        return Split(before - int(before * VALIDATION), before, self.source.rows)


def _items() -> Iterator[FevItem]:
    for task, names, horizon in (
        ("ETT_1H", ("ETTh1", "ETTh2"), 168),
        ("ETT_15T", ("ETTm1", "ETTm2"), 96),
        ("jena_weather_10T", ("Weather",), 144),
    ):
        yield from (FevItem(task, CATALOGUE[name], horizon) for name in names)


FEV: dict[str, FevItem] = {item.name: item for item in _items()}
TASKS: dict[str, tuple[FevItem, ...]] = {
    task: tuple(item for item in FEV.values() if item.task == task)
    for task in ("ETT_1H", "ETT_15T", "jena_weather_10T")
}


def with_gaps(name: str) -> Series:
    """Return the series of an item with failed sensors as missing values."""
    series = load(FEV[name].source.name)
    return Series(np.where(series.values == SENTINEL, np.nan, series.values), series.channels, series.clock)
