"""The losses of a forecaster in a task of fev-bench, from which the table computes the scores of the task.

Quantiles are the forecast plus the quantiles of its errors on the validation windows, for each step and channel.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.windows import Windows
from ibforecast_lab.data import catalogue
from ibforecast_lab.data.fev import FEV
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts, series_of
from ibforecast_lab.measures.fev import LEVELS, losses

BATCH = 256
DIGITS = 6
"""Significant digits of a loss in a record."""


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Return a row for each window, with one number for each channel."""
    item, series = FEV[cell.data], series_of(cell.data)
    units = Standardiser.of(series.values[: item.parts.train_end], series.channels)
    spread = _error_quantiles(forecaster, parts.validation) * units.std
    forecast = np.concatenate([part[0] for part in _forecasts(forecaster, parts.test)]) * units.std + units.mean
    measured = losses(
        history=catalogue.load(item.source.name).values,
        first=parts.test.starts.cpu().numpy() + cell.look_back,
        season=item.cycle,
        forecast=forecast,
        quantiles=forecast + spread[:, None],
    )
    columns = asdict(measured)
    return [
        {"measure": "fev", "task": item.task, "window": number}
        | {name: [float(f"{value:.{DIGITS}g}") for value in values[number]] for name, values in columns.items()}
        for number in range(len(parts.test))
    ]


def _error_quantiles(forecaster: Forecaster, validation: Windows) -> Float64[np.ndarray, "level horizon channel"]:
    """Return the quantiles of the errors on validation windows; windows with a gap do not count where it is."""
    errors = [np.where(seen, truth - forecast, np.nan) for forecast, truth, seen in _forecasts(forecaster, validation)]
    return np.asarray(np.nanquantile(np.concatenate(errors), LEVELS, axis=0))


@torch.no_grad()
def _forecasts(forecaster: Forecaster, windows: Windows) -> list[tuple[Any, Any, Any]]:
    """Return forecast, truth and what is observed, batch by batch."""

    def plain(values: Tensor) -> Any:
        return values.cpu().numpy().astype(np.float64)

    return [
        (plain(forecaster(window).values), plain(target.values), target.observed.cpu().numpy())
        for window, target in windows.batches(BATCH)
    ]
