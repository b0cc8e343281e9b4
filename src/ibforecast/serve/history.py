"""Gates and errors of a model over a whole table, on evenly spaced windows."""

from concurrent.futures import CancelledError
from dataclasses import replace
from threading import Event

import numpy as np
import torch

from ibforecast.core.chosen import evenly_spaced
from ibforecast.data.tables import Table
from ibforecast.evaluate.accuracy import absolute_error, squared_error
from ibforecast.serve import wire
from ibforecast.serve.models import LoadedModel
from ibforecast.serve.tables import starts as starts_of

BATCH = 32


@torch.no_grad()
def history(model: LoadedModel, table: str, source: Table, count: int, stopped: Event) -> wire.History:
    """Run the model on `count` windows, oldest first; raise CancelledError once `stopped` is set.

    The windows run in batches, because none of these numbers is verified bit for bit.
    """
    series, config = source.series, model.fitted.config
    look_back, horizon = config.look_back, config.horizon
    available = starts_of(series, model.fitted)
    starts = available[evenly_spaced(count, len(available)).numpy()]
    # Missing rows after the end, so that the last windows have a target too: their errors become null.
    unknown = np.full((horizon, len(series.channels)), np.nan)
    padded = replace(series, values=np.concatenate([series.values, unknown]))
    windows = model.forecaster.desk.windows_at(padded, starts)
    opened, squared, absolute, read = torch.zeros(config.patches, config.channels).double(), [], [], []
    predictor = model.fitted.predictor
    for window, target in windows.batches(BATCH):
        if stopped.is_set():
            raise CancelledError
        forecast = predictor(window)
        opened += forecast.explanation.mask.double().sum(dim=0)
        read.append(forecast.explanation.open_rate)
        squared.append(squared_error(forecast.values, target))
        absolute.append(absolute_error(forecast.values, target))
    return wire.History(
        model=model.name,
        table=table,
        windows=len(starts),
        available=len(available),
        channels=list(series.channels),
        open_frequency=(opened / len(starts)).tolist(),
        moments=[series.clock.labels(int(start) + look_back - 1, 1)[0] for start in starts],
        open_rate=torch.cat(read).tolist(),
        squared_error=_nullable(torch.cat(squared)),
        absolute_error=_nullable(torch.cat(absolute)),
    )


def _nullable(values: torch.Tensor) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
