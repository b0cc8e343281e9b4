"""ibforecast fit: from a table to a saved model."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ibforecast.cli.evaluate import next_to_naive
from ibforecast.cli.settings import forecaster_of, settings_options
from ibforecast.cli.shared import (
    announce,
    check_place,
    deliver,
    epochs_bar,
    json_option,
    stopping,
    threads_option,
)
from ibforecast.core.errors import IBForecastError, UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.settings import EVERY
from ibforecast.zoo.recipes import usual_patch_len

if TYPE_CHECKING:
    from ibforecast.data.series import Series
    from ibforecast.forecaster import IBForecaster
    from ibforecast.model.config import ModelConfig
    from ibforecast.zoo.cost import Cost
    from ibforecast.zoo.saved import Behind

MOST_BEHIND = 3
"""How many channels that a naive forecast describes better are named."""

MOST_HARMFUL = 4
"""How many warnings about the values of a table are printed."""


@click.command("fit")
@click.argument("table")
@settings_options
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the model.")
@click.option("--overwrite", is_flag=True, help="Replace an existing model.")
@click.option("--minutes", type=float, help="End well within this time, with fewer epochs if necessary.")
@threads_option
@json_option
def command(
    table: str,
    out: Path,
    overwrite: bool,
    minutes: float | None,
    threads: int | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Fit a model to TABLE: a CSV, CSV.gz or Parquet path.

    Ctrl-C saves the best model so far. After a stop, the same command continues where it was.

    \b
    ibforecast fit load.csv --horizon 24 --out model
    ibforecast fit load.csv --horizon 96 --budget 0.1 --minutes 2 --out model
    ibforecast fit sensors.parquet --horizon 48 --missing-value -9999 --irregular fill --out model
    ibforecast fit rentals.csv --horizon 24 --limit rentals=0..500 --out model
    ibforecast fit load.csv --horizon 24 --cycle 24,168 --past temperature --future holiday --out model
    torchrun --nproc-per-node 2 -m ibforecast fit load.csv --horizon 24 --out model
    """
    begun = time.perf_counter()  # loading PyTorch takes seconds
    from ibforecast.core.devices import find_device
    from ibforecast.data import tables
    from ibforecast.fitting import ignore_start
    from ibforecast.train.ranks import joined
    from ibforecast.zoo.stages import forget

    check_folder(out, overwrite)
    model = forecaster_of(settings)
    checkpoint = out.parent / f".{out.name}.checkpoint"
    try:
        with joined(find_device(model.device)) as first, epochs_bar(shown=first) as advance, stopping() as until:
            begin = partial(_announce_cost, limited=minutes is not None) if first else ignore_start
            source = tables.read(table, model.layout)
            if first:
                _announce_harmful(model, source.series)
            model.fit(
                source,
                minutes=minutes and _left(minutes, begun),
                threads=threads,
                checkpoint=checkpoint,
                on_epoch=advance,
                on_start=begin,
                until=until,
            )
    except KeyboardInterrupt as stop:
        if not checkpoint.exists():
            raise
        raise IBForecastError("stopped", remedy="run the same command again to continue") from stop
    if not first:
        return
    model.save(out, overwrite)
    summary, config = model.fitted.summary, model.fitted.config
    stopped = until() and summary.stopped
    if not stopped:
        forget(checkpoint)
    _announce_fit(model)
    if stopped:
        announce("stopped before the end; the same command with --overwrite continues")
    chosen = {"patch_len": config.patch_len, "tokens": config.patches * config.channels, "allowance": config.allowance}
    deliver({"model": str(out), **chosen, "training": asdict(summary)}, str(out), as_json)


def check_folder(out: Path, overwrite: bool) -> None:
    """Refuse, before any work, a folder to which no model may be written."""
    from ibforecast.zoo.saved import DOCUMENT

    if out.exists() and not overwrite:
        raise UsageError("the model's folder must be new", f"{out}, which exists", "choose another or add --overwrite")
    if out.exists() and not (out / DOCUMENT).is_file():
        raise UsageError("only a model may be overwritten", f"{out}, which is not a model", "choose another folder")
    check_place(out)


def _left(minutes: float, begun: float) -> float:
    """Return the minutes that are left of a time limit, never less than half; an invalid limit stays as it is."""
    return max(minutes - (time.perf_counter() - begun) / 60, minutes / 2) if minutes > 0 else minutes


def _announce_harmful(model: "IBForecaster", series: "Series") -> None:
    """Warn of what in the values of a table harms a fit."""
    from ibforecast.check import harmful

    advice = harmful(model, series)
    for each in advice[:MOST_HARMFUL]:
        announce(f"warning: {each.topic}: {each.finding}")
    if advice:
        others = f"{len(advice) - MOST_HARMFUL} more, and " if len(advice) > MOST_HARMFUL else ""
        announce(f"warning: ibforecast check says {others}what to do")


def _announce_cost(cost: "Cost", limited: bool) -> None:
    """Print what a fit will need if that is much, and how to limit the time."""
    if cost.is_large:
        announce(f"{cost}{'' if limited else '; --minutes limits the time'}")


def _limits(model: "IBForecaster") -> str:
    """Return the limits of a model in words, and how to lift those that were learned."""
    limits, given = model.fitted.limits, model.ranges
    assert limits is not None
    alike: dict[str, list[str]] = {}
    for name, words in limits.named(model.fitted.channels):
        learned = not {name, EVERY} & given.keys() and name not in model.whole
        why = " (counts that are often 0; --limit NAME=.. lifts it)" if learned else ""
        alike.setdefault(f"{words}{why} in", []).append(name)
    listed = "; ".join(f"{words} {', '.join(names)}" for words, names in alike.items())
    return f"limits of the forecasts: {listed or 'none, as given'}"


def _behind(channels: Sequence["Behind"], config: "ModelConfig") -> str:
    """Return one line with the channels in which a naive forecast is better, the worst first, and what may help."""
    named = ", ".join(f"{each.channel} (MAE {next_to_naive(each)})" for each in channels[:MOST_BEHIND])
    others = len(channels) - MOST_BEHIND
    more = f", and {others} other channel{'s' if others > 1 else ''}" if others > 0 else ""
    cycle = channels[0].naive_cycle
    unknown = cycle > config.look_back and cycle not in config.learned_cycles
    cycles = ",".join(map(str, (*config.learned_cycles, cycle)))
    remedy = f"try --cycle {cycles}" if unknown else "see ibforecast evaluate"
    return f"worse than a naive forecast on validation windows: {named}{more}; {remedy}"


def _announce_fit(model: "IBForecaster") -> None:
    """Print what was fitted, and a look-back that suits the recipe better, if there is one."""
    from ibforecast.core.words import count_of

    summary, config = model.fitted.summary, model.fitted.config
    tokens, steps = config.patches * config.channels, "step" if config.patch_len == 1 else "steps"
    fitted = f"{count_of(len(model.fitted.channels), 'channel')} on {count_of(summary.windows, 'window')}"
    announce(
        f"fitted {fitted} in {summary.seconds:.0f} s: "
        f"epoch {summary.best_epoch} of {summary.epochs} kept, validation error {summary.validation_error:.4f}; "
        f"patches of {config.patch_len} {steps}, {tokens} tokens, at most {config.allowance} read"
    )
    if model.cycle == "auto" and config.further_cycles:
        lengths = " and ".join(map(str, config.further_cycles))
        announce(f"cycles of {', '.join(map(str, config.learned_cycles))} steps: {lengths} found in the training rows")
    if outcome := summary.contest or summary.no_contest:
        announce(str(outcome))
    if summary.contest and summary.contest.winner == "choosing" and config.sealed:
        announce("the sealed reader was kept: training the choosing one further gave nothing better")
    for line in model.fitted.anchors():
        announce(f"anchor: {line}")
    if (calibration := model.fitted.calibration) and calibration.warning:
        announce(calibration.warning)
    if summary.behind:
        announce(_behind(summary.behind, config))
    if model.fitted.limits is not None:
        announce(_limits(model))
    sizes = Sizes(config.look_back, config.horizon, config.channels, config.cycle)
    usual = usual_patch_len(model.recipe_name, sizes)
    if model.patch_len is None and config.look_back % usual:
        announce(
            f"the recipe's patches of {usual} steps do not divide a look-back of {config.look_back}: "
            f"--look-back {max(1, round(config.look_back / usual)) * usual} would be cut into them"
        )
