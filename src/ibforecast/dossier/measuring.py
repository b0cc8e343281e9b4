"""Gathering the facts of a dossier from a fitted model and the table it was fitted on."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ibforecast._version import __version__
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.errors import DataError, UsageError, require, require_choice
from ibforecast.data.series import Series
from ibforecast.data.splits import Part
from ibforecast.data.tables import Table
from ibforecast.data.windows import Windows
from ibforecast.dossier.facts import (
    AccuracyFacts,
    ChannelAccuracy,
    ChannelCoverage,
    ChannelFacts,
    ChannelReading,
    Claim,
    ContestFacts,
    CoverageFacts,
    DataFacts,
    Example,
    Facts,
    NaiveErrors,
    PartFacts,
    Place,
    Replay,
    Setting,
    TrainingFacts,
    Use,
)
from ibforecast.drivers import Drivers, drivers
from ibforecast.evaluate.channels import ChannelErrors, channel_errors, read_shares
from ibforecast.evaluate.naive import naive_cycles, naive_forecasts
from ibforecast.intervals import ends
from ibforecast.receipts import additive, orders_of
from ibforecast.settings import whole_number
from ibforecast.use import Desk, difference
from ibforecast.zoo.configs import chosen
from ibforecast.zoo.saved import FittedModel

LEVELS = (50, 80, 95)
"""The levels whose coverage is measured, in percent, as far as the calibration reaches."""

RECEIPTS = 32
"""Number of windows whose receipts give the drivers."""

DRIVEN = 8
"""The largest number of channels whose drivers are computed."""

AT_ONCE = 128
"""Number of windows whose intervals are computed at once."""

RUNS = 400_000
"""About the largest number of windows computed for receipts of a model that is not additive."""


def gather(
    desk: Desk, table: Any, split: Part, windows: int, purpose: str, model_name: str, table_name: str | None
) -> Facts:
    """Return the facts of a model, measured on evenly spaced windows of a part of its training table.

    The names are those of model and table in commands. A table without one is named by its path, if it has one.
    """
    require_choice("split", split, get_args(Part))
    require(
        whole_number("windows", windows) >= 2, "a dossier needs at least 2 windows", f"windows={windows}", "try 1024"
    )
    fitted, source = desk.fitted, desk.open(table)
    table_name = table_name or (Path(table).name if isinstance(table, str | Path) else "table.csv")
    if other := difference(source.series, fitted):
        raise UsageError(
            "a dossier must be made from the table the model was fitted on",
            f"one that {other}",
            'give that table; to measure another one, use evaluate and audit with split="all"',
        )
    usable = desk.windows(source.series, split, at_least=2)
    measured = usable.at(usable.starts[evenly_spaced(windows, len(usable))].numpy())
    return Facts(
        use=_use(fitted, purpose),
        data=_data(desk, source.series, table_name),
        training=_training(fitted),
        accuracy=_accuracy(desk, measured, source.series, split, len(usable)),
        coverage=_coverage(desk, measured, source.series),
        reading=tuple(_reading(desk, measured)),
        audit=desk.audit(source, split, windows),
        drivers=_drivers(desk, source, split, windows),
        example=_example(desk, source, int(usable.starts[-1])),
        replay=Replay(model_name, table_name, _versions()),
    )


def _use(fitted: FittedModel, purpose: str) -> Use:
    config, layout = fitted.config, fitted.layout
    claim: Claim = "sealed" if config.sealed else "choosing" if config.chooses else "conditional"
    tokens = config.patches * config.channels
    limits = () if fitted.limits is None else fitted.limits.named(fitted.channels)
    return Use(
        purpose=purpose,
        claim=claim,
        additive=additive(fitted.network) is not None,
        targets=fitted.targets,
        past=layout.past,
        covariates=layout.future,
        look_back=config.look_back,
        horizon=config.horizon,
        frequency=str(layout.frequency),
        cycles=config.cycles,
        patch_len=config.patch_len,
        budget=config.budget,
        any_budget=config.gate.any_budget,
        allowance=config.allowance,
        tokens=tokens,
        anchors=tuple(fitted.anchors()),
        limits=tuple(f"{name} {words}" for name, words in limits),
        weights_sha256=fitted.weights_sha256,
    )


# --- The table ---


def _data(desk: Desk, series: Series, name: str) -> DataFacts:
    layout, (first, last) = desk.fitted.layout, _ends(series, 0, series.rows)
    return DataFacts(
        name=name,
        sha256=series.sha256,
        rows=series.rows,
        first=first,
        last=last,
        zone=layout.zone,
        irregular=layout.irregular,
        missing_values=(*layout.missing_values, *layout.missing_texts),
        zero_at=layout.zero_at,
        parts=tuple(_parts(desk, series)),
        channels=tuple(_columns(desk.fitted, series)),
    )


def _ends(series: Series, start: int, stop: int) -> tuple[str, str]:
    """Return the first and the last moment of some rows."""
    return series.clock.labels(start, 1)[0], series.clock.labels(stop - 1, 1)[0]


def _parts(desk: Desk, series: Series) -> Iterator[PartFacts]:
    """Yield the parts that have rows; each row belongs to one part."""
    split, start = desk.fitted.split, 0
    for part, stop in zip(get_args(Part), (split.train_end, split.validation_end, split.test_end), strict=True):
        if stop > start:
            windows = len(split.rows(part, desk.look_back)) - desk.look_back - desk.horizon + 1
            starts = split.starts(part, desk.look_back, desk.horizon) if windows > 0 else range(0)
            rows = slice(start, stop)
            own = replace(
                series, values=series.values[rows], known=None if series.known is None else series.known[rows]
            )
            first, last = _ends(series, start, stop)
            yield PartFacts(
                part=part,
                rows=stop - start,
                first=first,
                last=last,
                missing=int(np.isnan(own.values).sum()),
                windows=len(starts),
                usable=len(desk.windows_at(series, starts).usable()),
                sha256=own.sha256,
            )
        start = stop


def _columns(fitted: FittedModel, series: Series) -> Iterator[ChannelFacts]:
    targets, trained = fitted.targets, fitted.split.train_end
    columns = list(zip(series.channels, series.values.T, strict=True))
    known = [] if series.known is None else list(zip(series.covariates, series.known[: series.rows].T, strict=True))
    for number, (name, values) in enumerate([*columns, *known]):
        training = values[:trained]
        yield ChannelFacts(
            channel=name,
            role="known ahead" if number >= len(columns) else "forecast" if name in targets else "read only",
            missing=int(np.isnan(values).sum()),
            longest_gap=_longest_run(np.isnan(values)),
            smallest=float(np.nanmin(values)),
            largest=float(np.nanmax(values)),
            mean=float(np.nanmean(training)),
            spread=float(np.nanstd(training)),
            constant=bool(np.nanmin(training) == np.nanmax(training)),
        )


def _longest_run(marks: Bool[np.ndarray, " row"]) -> int:
    """Return the length of the longest run of marked rows."""
    borders = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
    return int((borders[1::2] - borders[::2]).max(initial=0))


# --- Training ---


def _training(fitted: FittedModel) -> TrainingFacts:
    summary, contest = fitted.summary, fitted.summary.contest
    settings = {"model": chosen(fitted.config)} | ({"train": chosen(summary.schedule)} if summary.schedule else {})
    return TrainingFacts(
        recipe=summary.recipe,
        recipe_sha256=summary.recipe_sha256,
        seed=summary.seed,
        windows=summary.windows,
        epochs=summary.epochs,
        best_epoch=summary.best_epoch,
        validation_error=summary.validation_error,
        seconds=summary.seconds,
        device=summary.device,
        contest=(
            None
            if contest is None
            else ContestFacts(
                contest.sealed,
                contest.choosing,
                contest.margin,
                contest.winner,
                contest.additive,
                contest.doubt if contest.gain > contest.margin else "",
            )
        ),
        no_contest=str(summary.no_contest or ""),
        settings=tuple(_flat(settings)),
        versions=(
            Setting("ibforecast", summary.ibforecast_version),
            Setting("torch", summary.torch_version),
            Setting("Python", summary.python_version),
        ),
    )


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[Setting]:
    """Yield nested settings with their full names, such as "model.gate.kind"."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield Setting(prefix + name, str(list(value) if isinstance(value, tuple) else value))


def _versions() -> tuple[Setting, ...]:
    return (
        Setting("ibforecast", __version__),
        Setting("torch", torch.__version__),
        Setting("numpy", np.__version__),
        Setting("Python", platform.python_version()),
        Setting("system", f"{platform.system()} {platform.machine()}"),
    )


# --- Measures ---


def _accuracy(desk: Desk, windows: Windows, series: Series, split: str, usable: int) -> AccuracyFacts:
    fitted = desk.fitted
    with desk.at_work(fitted.network) as device:
        here, predictor = windows.to(device), fitted.predictor
        own = channel_errors(lambda window: predictor(window).values, here)
        naive = naive_forecasts(here, naive_cycles(fitted.config.cycles, series.clock.frequency))
    rows = []
    for column, (name, std) in enumerate(zip(fitted.targets, fitted.standardiser.std.tolist(), strict=False)):
        others = ((each.cycle, each.channels) for each in naive)
        yardsticks = (NaiveErrors(cycle, *_in_units(errors, column, std)) for cycle, errors in others)
        rows.append(ChannelAccuracy(name, *_in_units(own, column, std), tuple(yardsticks)))
    return AccuracyFacts(split, len(windows), usable, tuple(rows))


def _in_units(errors: ChannelErrors, column: int, std: float) -> tuple[float, float]:
    return float(errors.mae[column]) * std, float(errors.rmse[column]) * std


def _coverage(desk: Desk, windows: Windows, series: Series) -> CoverageFacts | None:
    """Return the coverage of intervals; None if the model is not calibrated for any of the levels."""
    fitted, calibration = desk.fitted, desk.fitted.calibration
    levels = [level for level in LEVELS if calibration is not None and level <= calibration.highest_level]
    if calibration is None or not levels:
        return None
    covered, width = _covered(desk, windows, series, [calibration.half_width(level) for level in levels])
    rows = [
        ChannelCoverage(*row)
        for level, *both in zip(levels, covered.tolist(), width.tolist(), strict=True)
        for row in zip(fitted.targets, [float(level)] * len(fitted.targets), *both, strict=True)
    ]
    first, stamps = int(windows.starts[0]) + desk.look_back, series.clock.stamps.astype(str)
    # A model may have been calibrated on another table, whose moments this one does not have.
    since = [series.clock.labels(row, 1)[0] for row in np.flatnonzero(stamps == calibration.since)[:1].tolist()]
    same = calibration.since == stamps[first]
    return CoverageFacts(calibration.windows, (since or [calibration.since])[0], bool(same), tuple(rows))


@torch.no_grad()
def _covered(
    desk: Desk, windows: Windows, series: Series, halves: list[Float[Tensor, "horizon target"]]
) -> tuple[Float64[np.ndarray, "level target"], Float64[np.ndarray, "level target"]]:
    """Return how often intervals of these half-widths contain the truth, and how wide they are on average, in units.

    The intervals are those that users get: within the limits, if there are any.
    """
    fitted, count = desk.fitted, len(desk.fitted.targets)
    network, mean, std = fitted.network, fitted.standardiser.mean[:count], fitted.standardiser.std[:count]
    limits = None if fitted.limits is None else fitted.limits.first(count)
    covered, width = np.zeros((2, len(halves), count))
    cases, reads = np.zeros(count), torch.split(windows.read(), AT_ONCE)
    starts, ahead = torch.split(windows.starts, AT_ONCE), np.arange(desk.look_back, desk.look_back + desk.horizon)
    with desk.at_work(network) as device:
        for first, read, (window, _) in zip(starts, reads, windows.to(device).batches(AT_ONCE), strict=True):
            truth = series.values[first.numpy()[:, None] + ahead, :count]
            known = ~np.isnan(truth) & read[:, None, :count].numpy()
            values = network(window).values[..., :count].double().cpu().numpy() * std + mean
            context = network.context(window)
            scale, level = (
                array[:, None, :count].double().cpu().numpy() * std for array in (context.scale, context.level)
            )
            cases += known.sum(axis=(0, 1))
            for number, half in enumerate(halves):
                low, high = ends(values, half.double().numpy() * scale, mean, level)
                if limits is not None:
                    low, high = limits.around(low, high)
                covered[number] += ((low <= truth) & (truth <= high) & known).sum(axis=(0, 1))
                width[number] += (high - low).mean(axis=1).sum(axis=0) / len(windows)
    return covered / cases, width


def _reading(desk: Desk, windows: Windows) -> Iterator[ChannelReading]:
    """Yield how much of each channel is read, and where, newest place first."""
    fitted, length = desk.fitted, desk.fitted.config.patch_len
    with desk.at_work(fitted.network) as device:
        shares = read_shares(fitted.network, windows.to(device)).numpy()
    for name, column in zip(fitted.channels, shares.T, strict=True):
        newest = {patch: desk.look_back - (patch + 1) * length for patch in np.flatnonzero(column)[::-1].tolist()}
        yield ChannelReading(
            channel=name,
            values=float(column.sum()) * length,
            share=float(column.sum() / shares.sum()) if shares.any() else 0.0,
            places=tuple(Place(at, at + length - 1, float(column[patch])) for patch, at in newest.items()),
        )


# --- Receipts ---


def _drivers(desk: Desk, source: Table, split: Part, windows: int) -> Drivers:
    """Return what moves the first channels, from fewer windows if the receipts of the model take long to compute."""
    fitted, count = desk.fitted, min(windows, RECEIPTS)
    if additive(fitted.network) is None:
        allowance = fitted.config.allowance
        count = min(count, max(2, RUNS // (2 * orders_of(allowance) * allowance)))
    return drivers(desk, source, split, count, fitted.targets[:DRIVEN])


def _example(desk: Desk, source: Table, otherwise: int) -> Example:
    """Return the forecast made at the end of the table; the last measured one if the end is not complete."""
    try:
        explained = desk.explain(source, desk.start(source.series, None))
    except DataError:
        explained = desk.explain(source, otherwise)
    target = desk.fitted.targets[0]
    # With the receipt, so that its document is the one that `explain --channel` writes.
    explained = explained.with_receipts([target])
    return Example(explained, explained.itemised(target), desk.verify(explained, source))
