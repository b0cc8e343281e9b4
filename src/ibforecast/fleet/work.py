"""The work on one member: fit it, or forecast from it; any error becomes its outcome."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ibforecast.core import reading
from ibforecast.core.devices import computing_with
from ibforecast.core.errors import IBForecastError
from ibforecast.core.files import is_of_disk, not_usable
from ibforecast.fleet.members import Member
from ibforecast.fleet.together import adopted
from ibforecast.forecaster import IBForecaster
from ibforecast.settings import Settings
from ibforecast.use import Evaluation
from ibforecast.zoo.saved import FittedModel, of_files

State = Literal["fitted", "kept", "forecast", "failed"]
ONE = 1
"""Threads for a member: members run in parallel, and the last bits must not depend on how many."""

Files = dict[str, bytes]
"""A saved model by the names of its files, so that it can be sent to another machine."""

UNSEEN = "not seen in training: in the units of its own rows"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one member: fitted now, kept from before, forecast, or failed and why.

    Errors are those of the validation windows, in standardised units. `validation_error` is the mean squared error,
    `mae` the mean absolute error, and `naive_mae` that of the best naive forecast. `ratio` is `mae` over `naive_mae`:
    above 1, the naive forecast is better. `channel` is the channel that is worst compared with its best naive forecast;
    `channel_mae` and `channel_naive_mae` are the two mean absolute errors in its units. `open_rate` is that of the
    validation windows, or of the one window that a forecast was made from.
    """

    name: str
    state: State
    seconds: float
    rows: int | None = None
    channels: int | None = None
    windows: int | None = None
    epochs: int | None = None
    validation_error: float | None = None
    mae: float | None = None
    naive_mae: float | None = None
    ratio: float | None = None
    channel: str | None = None
    channel_mae: float | None = None
    channel_naive_mae: float | None = None
    open_rate: float | None = None
    folder: str = ""
    message: str = ""


REQUIRED = ("name", "state", "seconds", "folder", "message")
TEXTS, COUNTS = ("name", "state", "channel", "folder", "message"), ("rows", "channels", "windows", "epochs")


def read_outcome(content: Any) -> Outcome:
    """Return the outcome that a file states; raise DataError if it states none."""
    values = reading.members(content, [each.name for each in fields(Outcome)], "outcome")

    def read(name: str) -> Any:
        kind = reading.text if name in TEXTS else reading.whole_number if name in COUNTS else reading.number
        return reading.maybe(kind, values[name], f"outcome.{name}", name not in REQUIRED)

    return Outcome(**{name: read(name) for name in values})


def fit_member(member: Member, forecaster: IBForecaster) -> tuple[Outcome, Files]:
    """Fit a copy of the forecaster to a member; return its outcome and the model as files."""
    begun = time.perf_counter()
    try:
        with computing_with(ONE):
            model = forecaster.replace().fit(member.read())
            measured = model.evaluate(member.read(), "validation")
            files = model.fitted.files()
    except Exception as error:  # any error: it must not stop the fleet
        return failure(member, _words(error), time.perf_counter() - begun), {}
    outcome = outcome_of(member, model, measured, time.perf_counter() - begun)
    return replace(outcome, validation_error=model.fitted.summary.validation_error), files


def outcome_of(member: Member, model: IBForecaster, measured: Evaluation | None, seconds: float) -> Outcome:
    """Return the outcome of a member that has a model, with its errors if they could be measured."""
    summary = model.fitted.summary
    outcome = Outcome(
        name=member.name,
        state="fitted",
        seconds=round(seconds, 3),
        rows=summary.rows,
        channels=len(model.fitted.channels),
        windows=summary.windows,
        epochs=summary.epochs,
        folder=member.folder,
    )
    if measured is None:
        return outcome
    worst = max(measured.channels, key=lambda each: each.mae / each.naive_mae if each.naive_mae else each.mae and inf)
    return replace(
        outcome,
        validation_error=measured.mse,
        mae=measured.mae,
        naive_mae=measured.naive_mae,
        ratio=measured.mae / measured.naive_mae if measured.naive_mae else None,
        channel=worst.channel,
        channel_mae=worst.mae,
        channel_naive_mae=worst.naive_mae,
        open_rate=measured.open_rate,
    )


def worst_first(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return outcomes with the failed ones first, and then by how they compare with the naive forecast."""
    return sorted(outcomes, key=lambda each: (each.state != "failed", -(each.ratio or 0.0), each.name))


@dataclass(frozen=True)
class Job:
    """A member to forecast and the files of its model.

    If a global fleet has not seen it, they are those of the shared model, and `unseen` has the settings of the fleet.
    `identity` is the fingerprint of all that the forecast depends on.
    """

    member: Member
    files: Files
    unseen: Settings | None
    identity: str


def forecast_member(job: Job, id: str, at: Any, budget: float | None) -> tuple[Outcome, pa.Table | None]:
    """Forecast the steps after a member's table, or after the moment `at` in it: one row per channel and step.

    `id` is the name of the column with the member's name.
    """
    member, begun = job.member, time.perf_counter()
    try:
        with computing_with(ONE):
            fitted = _model(tuple(job.files.items()))
            if job.unseen is not None:
                fitted = adopted(fitted, member.read(), job.unseen)
            model = IBForecaster.of(fitted, "cpu")
            source = model.open(member.read())
            explained = model.explain(source, at, budget=budget)
            clock, targets = source.series.clock, source.series.targets
            first = source.series.rows if at is None else clock.row_of(model.desk.moment(at)) + 1
            time_name = source.time_name
            moments = source.build({time_name: np.tile(clock.times(first, model.horizon), len(targets))}).column(0)
    except Exception as error:  # as above
        return failure(member, _words(error), time.perf_counter() - begun), None
    columns = [
        [member.name] * len(moments),
        moments,
        [channel for channel in targets for _ in range(model.horizon)],
        explained.forecast.T[: len(targets)].ravel(),
    ]
    return Outcome(
        name=member.name,
        state="forecast",
        seconds=round(time.perf_counter() - begun, 3),
        rows=source.series.rows,
        channels=len(targets),
        open_rate=explained.open_rate,
        folder=member.folder,
        message="" if job.unseen is None else UNSEEN,
    ), pa.table(columns, names=column_names(id, time_name))


def column_names(id: str, time: str) -> list[str]:
    """Return the columns of a forecast: id, time, channel and values; a name that is taken gets underscores."""
    names: list[str] = []
    for name in (id, time, "channel", "IBForecast"):
        while name in names:
            name += "_"
        names.append(name)
    return names


def failure(member: Member, message: str, seconds: float = 0.0) -> Outcome:
    """Return the outcome of a member that failed."""
    return Outcome(member.name, "failed", round(seconds, 3), folder=member.folder, message=message)


@lru_cache(maxsize=1)
def _model(files: tuple[tuple[str, bytes], ...]) -> FittedModel:
    """Return the model of files; all series that a global fleet has not seen have the same."""
    return of_files(dict(files))


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and is_of_disk(error):
        return str(not_usable(error))
    return str(error) if isinstance(error, IBForecastError) else f"unexpected {type(error).__name__}: {error}"
