"""One model for all members of a fleet: every series gives windows, in the units of its own training rows.

The model of a member is the shared network with the member's own units, calendar and split. So everything a model can
do, such as explaining and verifying, works for a member as for any other model.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ibforecast._version import __version__
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.files import sha256
from ibforecast.core.standardiser import Standardiser
from ibforecast.data import tables
from ibforecast.data.layout import Layout
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.data.tables import Table
from ibforecast.data.windows import Windows
from ibforecast.evaluate.conformal import Calibration, scores
from ibforecast.evaluate.naive import naive_cycles, naive_forecasts
from ibforecast.fitting import OnEpoch, ignore_epoch, limits_for, recipe_for, reporting
from ibforecast.fleet.members import Member
from ibforecast.model.network import IBForecast
from ibforecast.settings import Settings
from ibforecast.train.loop import never
from ibforecast.zoo.saved import FittedModel, TrainingSummary
from ibforecast.zoo.stages import train_recipe

SHORT = 10
"""A look-back that is not set is chosen for a short series: about one of this number of series is shorter."""


@dataclass(frozen=True)
class Opened:
    """A member whose table was read, its split, and the units of its training rows."""

    member: Member
    source: Table
    split: Split
    units: Standardiser
    known: Standardiser | None

    @property
    def series(self) -> Series:
        """The numbers of the member."""
        return self.source.series


@dataclass(frozen=True)
class Together:
    """A model for series that it has not seen, the models of the members, and why others have none."""

    shared: FittedModel
    models: dict[str, tuple[FittedModel, Table]]
    problems: dict[str, IBForecastError]


def fit_together(
    members: Iterable[Member],
    settings: Settings,
    checkpoint: Path | None = None,
    on_epoch: OnEpoch = ignore_epoch,
    until: Callable[[], bool] = never,
) -> Together:
    """Fit one model to the windows of all members that have the same channels, frequency and zone."""
    tables_of, problems = _read(members, settings.layout)
    settings = _sized(settings, [source.series for source in tables_of.values()])
    opened = dict(_opened(tables_of, settings, problems))
    if not opened:
        raise DataError(
            "a fleet must have a series to fit to",
            f"none of {len(problems)}: {next(iter(problems.values()))}",
            "give one",
        )
    longest = max(opened.values(), key=lambda each: each.series.rows)
    recipe = recipe_for(settings, longest.series)
    training, validation = _windows(list(opened.values()), settings, recipe.config.period)
    device = torch.device(find_device(settings.device))
    training, validation = training.to(device).usable(), validation.to(device).usable()
    for part, windows in (("training", training), ("validation", validation)):
        if not len(windows):
            raise DataError(
                f"the {part} rows must contain a window of look_back + horizon = "
                f"{settings.look_back + settings.horizon} rows",
                "none in any series",
                "give longer series, or a shorter look_back (--look-back) or horizon",
            )
    compared = validation.compared(recipe.train.validated)
    natural = naive_cycles(recipe.config.cycles, longest.series.clock.frequency)
    # The rows before a look-back, which a longer cycle would repeat, may be those of another series.
    cycles = [cycle for cycle in natural if cycle <= settings.look_back]
    naive = min((each.mse for each in naive_forecasts(compared, cycles)), default=nan)
    fingerprint = sha256([each.series.sha256.encode() for each in opened.values()])
    begun = time.perf_counter()
    trained = train_recipe(
        recipe,
        training,
        validation,
        settings.seed,
        checkpoint,
        sha256(f"{__version__}/{recipe.sha256}/{fingerprint}/{longest.source.layout}/{settings.seed}".encode()),
        reporting(on_epoch, recipe, naive),
        until,
    )
    seconds = time.perf_counter() - begun
    network = trained.forecaster
    assert isinstance(network, IBForecast)
    rows = sum(each.series.rows for each in opened.values())
    summary = TrainingSummary.of(trained, recipe, settings.seed, str(device), seconds, len(training), fingerprint, rows)
    models = {name: (_model_of(network.cpu(), each, settings, summary), each.source) for name, each in opened.items()}
    some, _ = next(iter(models.values()))
    tokens = None if some.tokens is None else torch.from_numpy(some.tokens).to(device)
    readable = replace(validation, tokens=tokens).usable()
    quantiles = Calibration.of(scores(network.to(device), readable), some.origin) if len(readable) else None
    network.cpu()
    if quantiles is not None:  # pooled: the errors of all series, in units of the scale of their windows
        models = {name: (_calibrated(model, quantiles, source), source) for name, (model, source) in models.items()}
    return Together(_unseen(some), models, problems)


def adopted(shared: FittedModel, table: Any, settings: Settings) -> FittedModel:
    """Return the shared model for a series that it has not seen, in the units of all rows of its table.

    `settings` are those of the fleet, for the limits of forecasts.
    """
    source = tables.read(table, replace(shared.layout, time=None, shape="auto"))
    series = source.series
    _require_alike(series, source.layout, shared.layout)
    standardiser, known = series.units(series.rows)
    every_row = Split(series.rows, series.rows, series.rows)
    return replace(
        shared,
        standardiser=standardiser,
        known=known,
        layout=source.layout,
        origin=str(series.clock.stamps[0]),
        even=series.clock.even,
        split=every_row,
        limits=limits_for(settings, series, every_row),
        summary=replace(shared.summary, data_sha256=series.sha256, rows=series.rows),
    )


def _read(members: Iterable[Member], layout: Layout) -> tuple[dict[str, Table], dict[str, IBForecastError]]:
    """Read the tables of members; leave out those that differ from most in channels, frequency or zone."""
    read: dict[str, Table] = {}
    problems: dict[str, IBForecastError] = {}
    for member in members:
        try:
            read[member.name] = tables.read(member.read(), layout)
        except IBForecastError as error:
            problems[member.name] = error
    if not read:
        return {}, problems
    kinds = Counter(_kind(source.layout) for source in read.values())
    usual = kinds.most_common(1)[0][0]
    wanted = next(source.layout for source in read.values() if _kind(source.layout) == usual)
    for name, source in list(read.items()):
        try:
            _require_alike(source.series, source.layout, wanted)
        except DataError as error:
            problems[name] = error
            del read[name]
    return read, problems


def _kind(layout: Layout) -> tuple[Any, ...]:
    return layout.channels, layout.frequency, layout.zone


def _require_alike(series: Series, layout: Layout, wanted: Layout) -> None:
    for what, own, others in zip(("channels", "frequency", "zone"), _kind(layout), _kind(wanted), strict=True):
        if own != others:
            raise DataError(
                f"all series of a global fleet must have the same {what}, here {others}", own, "fit it on its own"
            )


def _sized(settings: Settings, series: list[Series]) -> Settings:
    """Return the settings with a look-back that nearly all series have room for, unless it was set."""
    if not series:
        return settings
    ordered = sorted(series, key=lambda each: each.rows)
    return replace(settings, look_back=settings.sized(ordered[len(ordered) // SHORT]).look_back)


def _opened(
    sources: dict[str, Table], settings: Settings, problems: dict[str, IBForecastError]
) -> Iterator[tuple[str, Opened]]:
    for name, source in sources.items():
        series = source.series
        split = _split(settings, series.rows)
        try:
            units, known = series.units(split.train_end)
        except IBForecastError as error:
            problems[name] = error
        else:
            yield name, Opened(Member(name, None), source, split, units, known)


def _split(settings: Settings, rows: int) -> Split:
    """Return the split of a series; one too short for three parts keeps one horizon to select on, none to test on."""
    split, horizon = Split.by_fractions(settings.split, rows), settings.horizon
    if min(split.validation_end - split.train_end, split.test_end - split.validation_end) >= horizon:
        return split
    return Split(max(rows - horizon, 1), rows, rows)


def _windows(opened: list[Opened], settings: Settings, period: int) -> tuple[Windows, Windows]:
    """Return the training and the validation windows of all series, end to end; none crosses from one to another.

    A series that is too short for a window gets rows without values before its first one.
    """
    look_back, horizon, beyond = settings.look_back, settings.horizon, 0
    parts: list[Windows] = []
    starts: dict[str, list[int]] = {"training": [], "validation": []}
    for each in opened:
        pad = max(look_back + horizon - each.split.train_end, 0)
        own = Windows.of(each.series, each.units, period, range(0), look_back, horizon, known=each.known)
        parts.append(_padded(own, pad, period))
        train_end, validation_end = pad + each.split.train_end, pad + each.split.validation_end
        starts["training"] += range(beyond, beyond + train_end - look_back - horizon + 1)
        later = range(train_end - look_back, validation_end - look_back - horizon + 1)
        starts["validation"] += (beyond + start for start in later)
        beyond += len(parts[-1].values)
    joined = replace(
        parts[0],
        values=torch.cat([part.values for part in parts]),
        observed=torch.cat([part.observed for part in parts]),
        phase=torch.cat([part.phase[: len(part.values)] for part in parts]),
        known=None if parts[0].known is None else torch.cat([_rows(part) for part in parts]),
    )
    training, validation = (joined.at(np.array(each, dtype=np.int64)) for each in starts.values())
    return training, validation


def _rows(part: Windows) -> torch.Tensor:
    assert part.known is not None
    return part.known[: len(part.values)]


def _padded(windows: Windows, pad: int, period: int) -> Windows:
    """Return a series with rows before its first one, none of them observed."""
    if not pad:
        return windows
    empty = windows.values.new_zeros(pad, windows.values.shape[1])
    known = windows.known
    return replace(
        windows,
        values=torch.cat([empty, windows.values]),
        observed=torch.cat([empty.bool(), windows.observed]),
        phase=torch.cat([(windows.phase[0] - torch.arange(pad, 0, -1)) % period, windows.phase]),
        known=None if known is None else torch.cat([known.new_zeros(pad, known.shape[1]), known]),
    )


def _model_of(network: IBForecast, opened: Opened, settings: Settings, summary: TrainingSummary) -> FittedModel:
    series = opened.series
    return FittedModel(
        network=network,
        standardiser=opened.units,
        layout=opened.source.layout,
        origin=str(series.clock.stamps[0]),
        split=opened.split,
        summary=replace(summary, data_sha256=series.sha256, rows=series.rows),
        even=series.clock.even,
        known=opened.known,
        limits=limits_for(settings, series, opened.split),
    )


def _calibrated(model: FittedModel, calibration: Calibration, source: Table) -> FittedModel:
    since = source.series.clock.stamps[min(model.split.train_end, source.series.rows - 1)]
    return replace(model, calibration=replace(calibration, since=str(since)))


def _unseen(model: FittedModel) -> FittedModel:
    """Return a model without the units of any series."""
    zeros, ones = np.zeros(model.config.channels), np.ones(model.config.channels)
    known = None if model.known is None else Standardiser(np.zeros(model.config.future), np.ones(model.config.future))
    return replace(model, standardiser=Standardiser(zeros, ones), known=known, limits=None)
