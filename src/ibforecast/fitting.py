"""Fitting: from a table and settings to a fitted model."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ibforecast._version import __version__
from ibforecast.core.calendar import Frequency
from ibforecast.core.devices import find_device
from ibforecast.core.errors import DataError, UsageError, hint, require
from ibforecast.core.files import sha256
from ibforecast.core.limits import Limits, rests_at_zero
from ibforecast.core.sizes import Sizes
from ibforecast.data import tables
from ibforecast.data.rhythms import natural_lengths, rhythms_of
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.data.tables import Table
from ibforecast.data.windows import Windows
from ibforecast.evaluate.channels import channel_errors
from ibforecast.evaluate.conformal import Calibration, scores
from ibforecast.evaluate.naive import Naive, naive_cycles, naive_forecasts
from ibforecast.model.network import IBForecast
from ibforecast.settings import EVERY, Settings
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.deadline import Deadline
from ibforecast.train.loop import never
from ibforecast.zoo.anchoring import steadied
from ibforecast.zoo.cost import Cost, cost_of
from ibforecast.zoo.recipes import DEFAULT, OURS, Recipe, adapted, resolve_ours
from ibforecast.zoo.saved import Behind, FittedModel, TrainingSummary
from ibforecast.zoo.stages import NoContest, train_recipe, within

TOLERATED = 0.02
"""By how much the error of a channel may exceed that of its best naive forecast before a fit says so."""

REPEATED = 3
"""How often the training rows must contain a longer cycle if its medians may be blended in."""

ZERO = 1e-6
"""Errors up to this, in standard deviations, are those of rounding: a constant channel is not described better."""


@dataclass(frozen=True)
class Progress(Epoch):
    """The outcome of an epoch, with the error of the best naive forecast on the same validation windows.

    `reader` names the reader of a contest that is trained; it is empty for the first one, or if there is no contest.
    """

    naive_error: float = nan
    reader: str = ""


OnEpoch = Callable[[int, int, Progress], None]
"""Called after each epoch with its number, the largest number of epochs, and its outcome."""


def ignore_epoch(epoch: int, epochs: int, outcome: Progress) -> None:
    """Do nothing after an epoch."""


def reporting(on_epoch: OnEpoch, recipe: Recipe, naive_error: float) -> Callable[[int, Epoch, str], None]:
    """Return a function that reports the outcome of an epoch, of a reader of a contest or of the first one."""

    def report(epoch: int, outcome: Epoch, reader: str) -> None:
        on_epoch(epoch, recipe.epochs, Progress(**vars(outcome), naive_error=naive_error, reader=reader))

    return report


OnStart = Callable[[Cost], None]
"""Called once, before training on a processor, with what the fit will roughly need."""


def ignore_start(cost: Cost) -> None:
    """Do nothing before training."""


def fit(
    table: Any,
    settings: Settings,
    checkpoint: str | Path | None = None,
    on_epoch: OnEpoch = ignore_epoch,
    minutes: int | float | None = None,
    until: Callable[[], bool] = never,
    on_start: OnStart = ignore_start,
    begun: float | None = None,
) -> FittedModel:
    """Fit to a table: a path, or a pandas, polars or pyarrow table; the `minutes` count from now, or since `begun`."""
    begun = time.perf_counter() if begun is None else begun
    if minutes is not None:
        require(0 < minutes < inf, "minutes must be positive", f"minutes={minutes}", "try 2")
    source = tables.read(table, settings.layout)
    split = Split.by_fractions(settings.split, source.series.rows)
    recipe = recipe_for(settings, source.series)
    deadline = None if minutes is None else Deadline(begun, 60.0 * minutes)
    return fit_source(source, settings, recipe, split, checkpoint, on_epoch, deadline, until, on_start)


def fit_source(
    source: Table,
    settings: Settings,
    recipe: Recipe,
    split: Split,
    checkpoint: str | Path | None = None,
    on_epoch: OnEpoch = ignore_epoch,
    deadline: Deadline | None = None,
    until: Callable[[], bool] = never,
    on_start: OnStart = ignore_start,
) -> FittedModel:
    """Fit to a table that was read, with a recipe resolved for it and a split.

    With a `checkpoint` path, a run that was killed continues after its last finished epoch. With a deadline the
    recipe gets as many epochs as it allows. Training also stops once `until` returns True, with the best so far.
    """
    series, look_back, horizon = source.series, settings.look_back, settings.horizon
    limits = limits_for(settings, series, split)
    starts = {part: split.starts(part, look_back, horizon) for part in ("train", "validation")}
    standardiser, known = series.units(split.train_end)
    device = torch.device(find_device(settings.device))
    windows = Windows.of(series, standardiser, recipe.config.period, starts["train"], look_back, horizon, known=known)
    training = windows.to(device).usable()
    validation = training.at(starts["validation"]).usable()
    for part, some in (("training", training), ("validation", validation)):
        if not len(some):
            rule = f"{part} needs a window in which every channel has a value, in the look-back and in the horizon"
            raise DataError(rule, "none", "give more rows, or leave out the channel with the gap")
    wanted = recipe
    if deadline is not None:
        recipe, validation = within(recipe, training, validation, deadline)
    if device.type == "cpu":
        cost = cost_of(recipe, series.rows, len(training), len(validation))
        on_start(cost if deadline is None else cost.within(deadline.seconds))
    compared = validation.compared(recipe.train.validated)
    cycles = naive_cycles(recipe.config.cycles, series.clock.frequency)
    naive = naive_forecasts(compared, cycles)
    yardstick = min((each.mse for each in naive), default=nan)
    begun = time.perf_counter()
    trained = train_recipe(
        recipe,
        training,
        validation,
        settings.seed,
        Path(checkpoint) if checkpoint else None,
        sha256(
            f"{__version__}/{recipe.sha256}/{series.sha256}/{series.clock.stamps[0]}/{source.layout}/{split}/"
            f"{settings.seed}/{device.type}".encode()
        ),
        reporting(on_epoch, recipe, yardstick),
        until,
        deadline,
    )
    seconds = time.perf_counter() - begun
    if wanted.train.contest_margin and not recipe.train.contest_margin:
        trained = replace(trained, no_contest=NoContest("no time"))
    network = trained.forecaster
    assert isinstance(network, IBForecast)
    fitted = FittedModel(
        network=network.cpu(),
        standardiser=standardiser,
        layout=source.layout,
        origin=str(series.clock.stamps[0]),
        even=series.clock.even,
        split=split,
        summary=TrainingSummary.of(
            trained, recipe, settings.seed, str(device), seconds, len(training), series.sha256, series.rows
        ),
        known=known,
        limits=limits,
    )
    # The mask is known only now: a sealed model does not forecast from windows without a value where it reads.
    tokens = None if fitted.tokens is None else torch.from_numpy(fitted.tokens).to(device)
    readable = replace(validation, tokens=tokens).usable()
    if len(readable):
        network.to(device)
        some = readable.compared(recipe.train.validated)
        if not torch.equal(some.starts, compared.starts):
            naive = naive_forecasts(some, cycles)
        behind = behind_naive(fitted, some, naive)
        if behind and recipe.train.anchor_margin:
            fitted, readable = with_medians(fitted, readable, series, [each.channel for each in behind])
            some = replace(some, phase=readable.phase)
            behind = behind_naive(fitted, some, naive)
        calibration = calibrated_on(fitted.network, readable, series)
        summary = replace(fitted.summary, behind=tuple(behind))
        fitted = replace(fitted, calibration=calibration, summary=summary)
        fitted.network.cpu()
    return fitted


def with_medians(
    fitted: FittedModel, windows: Windows, series: Series, channels: Sequence[str]
) -> tuple[FittedModel, Windows]:
    """Return the model with medians of training in those of these channels that are better with them, and its windows.

    The phases of the windows are then modulo the longest cycle that may be added, which is a natural one.
    """
    config, trained = fitted.config, fitted.split.train_end
    assert fitted.summary.schedule is not None
    longer = [each for each in longer_cycles(config.period, series.clock.frequency) if REPEATED * each <= trained]
    phase = series.clock.phase(0, len(windows.phase), max((config.period, *longer)))
    windows = replace(windows, phase=torch.from_numpy(phase).to(windows.phase.device))
    columns = torch.tensor([name in channels for name in fitted.channels], device=windows.phase.device)
    margin = fitted.summary.schedule.anchor_margin
    network = steadied(fitted.network, windows, trained, columns, longer, margin)
    return replace(fitted, network=network), windows


def behind_naive(fitted: FittedModel, windows: Windows, naive: Sequence[Naive]) -> list[Behind]:
    """Return the channels in which a naive forecast is better than the model on these windows, the worst first."""
    own, behind = channel_errors(lambda window: fitted.predictor(window).values, windows).mae, []
    for column, (name, std) in enumerate(zip(fitted.targets, fitted.standardiser.std.tolist(), strict=False)):
        best = min(naive, key=lambda each: float(each.channels.mae[column]))
        errors = float(own[column]), float(best.channels.mae[column])
        if errors[0] > (1 + TOLERATED) * errors[1] + ZERO:  # never in an empty channel, whose errors are not numbers
            behind.append(Behind(name, errors[0] * std, errors[1] * std, best.cycle))
    return sorted(behind, key=lambda each: each.naive_mae / each.mae)


def calibrated_on(network: IBForecast, windows: Windows, series: Series) -> Calibration:
    """Return the widths of intervals from the errors on these windows, which are on the network's device."""
    since = series.clock.stamps[int(windows.starts[0]) + windows.look_back]
    return Calibration.of(scores(network, windows), str(since))


def cycles_of(settings: Settings, series: Series) -> tuple[int, ...]:
    """Return the cycles of a fit: those that are set or, by default, the natural one of the step, and longer ones.

    A longer one is a natural multiple of it, such as a week of hours, that is found in the training rows.
    """
    if settings.cycle != "auto":
        return settings.cycle if isinstance(settings.cycle, tuple) else (settings.cycle,)
    frequency, rows = series.clock.frequency, Split.by_fractions(settings.split, series.rows).train_end
    first, seen = frequency.cycle(), {each.length for each in rhythms_of(series.values[:rows], frequency)}
    return (first, *(length for length in longer_cycles(first, frequency) if length in seen))


def longer_cycles(first: int, frequency: Frequency) -> tuple[int, ...]:
    """Return the natural multiples of a cycle, such as a week of hours."""
    return tuple(length for length in natural_lengths(frequency) if length > first and length % first == 0)


def recipe_for(settings: Settings, series: Series) -> Recipe:
    """Return the recipe resolved for a table."""
    first, *further = cycles_of(settings, series)
    sizes = Sizes(int(settings.look_back), settings.horizon, len(series.channels), first)
    overrides = {
        "budget": settings.budget,
        "patch_len": settings.patch_len,
        "further_cycles": tuple(further),
        "past": series.past,
        "future": len(series.covariates),
        "objective": None if settings.loss is None else {"loss": settings.loss},
        "readout": {"cross_channel": True} if series.past else None,  # needed to read `past` channels
    }
    if isinstance(settings.recipe, Recipe):
        recipe = adapted(settings.recipe, sizes, **overrides)
    else:
        by_hand = "sealed" if settings.sealed else "choosing" if settings.choosing else DEFAULT
        recipe = resolve_ours(by_hand if settings.recipe == DEFAULT else settings.recipe, sizes, **overrides)
    for name, wanted, fits in (
        ("sealed", settings.sealed, recipe.config.sealed),
        ("choosing", settings.choosing, not recipe.config.sealed),
    ):
        require(
            fits or not wanted,
            f"a {name} model needs a {name} recipe",
            f"recipe={recipe.name!r}",
            f"leave the recipe out, use {name!r}, or set sealed = {str(name == 'sealed').lower()} in yours",
        )
    if settings.epochs is None:
        return recipe
    return replace(recipe, train=recipe.train.at_most(settings.epochs))


def limits_for(settings: Settings, series: Series, split: Split) -> Limits | None:
    """Return the limits of the forecasts: those of the settings, and 0 for counts that are often 0 in training.

    None if there are none and none were given. A channel that is only read has no forecast, and so no limits.
    """
    targets, count, ends = series.targets, len(series.channels), settings.ranges
    for name, named in (("limits", [each for each in ends if each != EVERY]), ("whole", settings.whole)):
        for channel in named:
            known, remedy = channel in targets, hint(channel, list(targets))
            require(known, f"{name} must name channels that are forecast", repr(channel), remedy)
    low, high = np.full(count, -inf), np.full(count, inf)
    for column, channel in enumerate(targets):
        given = ends.get(channel, ends.get(EVERY))
        learned = 0.0 if given is None and rests_at_zero(series.values[: split.train_end, column]) else None
        lowest, highest = (learned, None) if given is None else given
        low[column], high[column] = -inf if lowest is None else lowest, inf if highest is None else highest
    whole = np.array([channel in settings.whole for channel in series.channels])
    limits = Limits(low, high, whole)
    if not limits.present.any() and not ends:  # limits that allow everything are kept, so that a refit learns none
        return None
    if flaw := limits.flaw(count):
        raise UsageError("limits of whole numbers must be whole numbers", flaw, "write (0, 500) instead of (0.5, 500)")
    return limits


def settings_of(fitted: FittedModel, device: str = "auto") -> Settings:
    """Return the settings that would fit the same model again to its training table."""
    layout, summary = fitted.layout, fitted.summary
    config = fitted.config.trained
    return Settings(
        horizon=config.horizon,
        look_back=config.look_back,
        budget=config.budget,
        cycle=config.cycles if config.further_cycles else config.cycle,
        patch_len=config.patch_len,
        recipe=Recipe(summary.recipe, OURS, config, summary.schedule) if summary.schedule else summary.recipe,
        seed=summary.seed,
        device=device,
        split=fitted.split.fractions,
        time=layout.time,
        channels=layout.channels,
        id=layout.id,
        target=layout.target,
        freq=layout.frequency,
        zone=layout.zone,
        irregular=layout.irregular,
        missing_values=(*layout.missing_values, *layout.missing_texts),
        zero_at=layout.zero_at,
        past=layout.past,
        future=layout.future,
        dates=layout.dates,
        **_limits_of(fitted),
    )


def _limits_of(fitted: FittedModel) -> dict[str, Any]:
    """Return the settings that give the limits of a model again."""
    limits = fitted.limits
    if limits is None:
        return {}
    plain, targets = limits.document(), fitted.channels[: len(fitted.channels) - fitted.config.past]
    return {
        "limits": dict(zip(targets, zip(plain["low"], plain["high"], strict=True), strict=False)),
        "whole": tuple(name for name, whole in zip(targets, plain["whole"], strict=False) if whole),
    }
