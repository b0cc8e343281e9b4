"""ibforecast fleet: a small model for each of many series, or one model for all."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ibforecast.cli.main import SOME_FAILED
from ibforecast.cli.settings import forecaster_of, settings_options
from ibforecast.cli.shared import (
    Command,
    announce,
    at_option,
    budget_option,
    check_place,
    deliver,
    epochs_bar,
    json_option,
    progress_bar,
    stopping,
)
from ibforecast.core.errors import IBForecastError, require

if TYPE_CHECKING:
    from ibforecast.core.workers import Workers
    from ibforecast.fleet import Outcome

NAMED_AT_MOST = 10
WORST = 5


@click.group("fleet")
def command() -> None:
    """Fit and forecast many series, each with its own small model, or with one model for all.

    TABLES is a folder of tables, or one long table with an id column. Exit code 6 if some series failed; fleet.csv
    and, with --json, stdout say which and why.

    \b
    ibforecast fleet fit meters.parquet --horizon 24 --out fleet
    ibforecast fleet predict fleet meters.parquet --out forecasts.parquet
    """


def engine_options(command: Command) -> Command:
    """Add the options that choose where the work is done."""
    for option in (
        click.option("--address", help="Address of the Ray cluster; default: one on this machine."),
        click.option(
            "--jobs", type=click.IntRange(min=1), help="Series at the same time (local engine); default: one per core."
        ),
        click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True),
    ):
        command = option(command)
    return command


@command.command("fit")
@click.argument("tables")
@settings_options
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the fleet.")
@engine_options
@click.option(
    "--global",
    "together",
    is_flag=True,
    help="Fit one model to all series, each in its own units: for many short series of one kind.",
)
@click.option("--gpus-per-series", type=float, default=0.0, show_default=True, help="May be a fraction (Ray).")
@json_option
def fit(
    tables: str,
    out: Path,
    engine: Literal["local", "ray"],
    jobs: int | None,
    address: str | None,
    gpus_per_series: float,
    together: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Fit a model to every series in TABLES: a folder of tables, or one long table with an id column.

    A long table's channels are the columns named by --channels, or else --target. A fitted series is kept unless its
    table or the settings changed: after a stop the same command continues, and series that failed are tried again.

    \b
    ibforecast fleet fit meters.parquet --horizon 24 --out fleet
    ibforecast fleet fit tables/ --horizon 48 --irregular fill --jobs 8 --out fleet
    ibforecast fleet fit sales.parquet --horizon 12 --global --out fleet
    ibforecast fleet fit meters.parquet --horizon 24 --engine ray --address auto --out fleet
    """
    from ibforecast.fleet import Fleet
    from ibforecast.fleet.fleet import REPORT

    check_place(out / REPORT)
    forecaster = forecaster_of(settings)
    if together:
        _require_here(engine=engine != "local", jobs=jobs, address=address, gpus_per_series=gpus_per_series)
        try:
            with epochs_bar() as epoch, stopping() as until:
                outcomes = Fleet(out).fit_global(tables, forecaster, epoch, until)
        except KeyboardInterrupt as stop:
            if not Fleet(out).unfinished:
                raise
            raise IBForecastError("stopped", remedy="run the same command again to continue") from stop
        if Fleet(out).unfinished:
            announce("stopped before the end; the same command continues")
    else:
        with _members_bar("fit") as advance:
            outcomes = Fleet(out).fit(tables, forecaster, _engine(engine, jobs, address, gpus_per_series), advance)
    _deliver(outcomes, {"fleet": str(out)}, str(out / REPORT), as_json)


@command.command("predict")
@click.argument("fleet", type=click.Path(path_type=Path))
@click.argument("tables")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="One .csv, .csv.gz or .parquet file, or else a folder for one Parquet file per series.",
)
@at_option
@budget_option
@engine_options
@json_option
def predict(
    fleet: Path,
    tables: str,
    out: Path,
    at: str | None,
    budget: float | None,
    engine: Literal["local", "ray"],
    jobs: int | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Forecast the steps after every series in TABLES with its model in FLEET.

    After a stop the same command continues with the series that are left.

    \b
    ibforecast fleet predict fleet meters.parquet --out forecasts.parquet
    ibforecast fleet predict fleet tables/ --at '2023-11-05 10:00' --out forecasts.csv --json
    """
    from ibforecast.fleet import Fleet

    check_place(out)
    checkpoint = out.parent / f".{out.name}.checkpoint"
    with _members_bar("predict") as advance:
        where = _engine(engine, jobs, address)
        forecasts = Fleet(fleet).predict(
            tables, at, budget=budget, engine=where, on_member=advance, checkpoint=checkpoint
        )
    if forecasts.parts:
        forecasts.save(out)
        announce(f"forecasts written to {out}")
    checkpoint.unlink(missing_ok=True)
    written = str(out) if forecasts.parts else None
    _deliver(forecasts.outcomes, {"fleet": str(fleet), "out": written}, written or "", as_json)


def _require_here(**given: object) -> None:
    """Refuse options about where series are fitted, which have no effect on the one model of a global fleet."""
    useless = ", ".join(f"--{name.replace('_', '-')}" for name, value in given.items() if value)
    require(not useless, "the one model of a global fleet is fitted in this process", useless, "leave it out")


def _engine(engine: Literal["local", "ray"], jobs: int | None, address: str | None, gpus: float = 0.0) -> "Workers":
    from ibforecast.fleet import Processes, Ray

    return Ray(address, gpus_per_item=gpus) if engine == "ray" else Processes(jobs or os.cpu_count() or 1)


@contextmanager
def _members_bar(doing: str) -> Iterator[Callable[["Outcome", int], None]]:
    """Show a progress bar over series, with the number that failed; Ctrl-C says what is done and how to go on."""
    states, count = Counter[str](), 0
    with progress_bar(doing, "series") as advance:

        def report(outcome: "Outcome", members: int) -> None:
            nonlocal count
            count = members
            states[outcome.state] += 1
            advance(states.total(), members, f"{states['failed']} failed" if states["failed"] else "")

        try:
            yield report
        except KeyboardInterrupt as stop:
            done = ", ".join(f"{number} {state}" for state, number in states.items())
            so_far = f"stopped; so far: {done}, of {count} series" if done else "stopped before the first series"
            raise IBForecastError(so_far, remedy="run the same command again to continue") from stop


def _announce_worst(outcomes: Sequence["Outcome"]) -> None:
    """Print the series that compare worst with the naive forecast."""
    from ibforecast.fleet.work import worst_first

    measured = [outcome for outcome in worst_first(outcomes) if outcome.ratio is not None]
    if measured:
        behind = sum(outcome.ratio > 1 for outcome in measured if outcome.ratio is not None)
        named = ", ".join(f"{outcome.name!r} {outcome.ratio:.2f}" for outcome in measured[:WORST])
        announce(f"mean absolute error as a part of the naive one, worst first: {named}; above 1 in {behind} series")


def _deliver(outcomes: Sequence["Outcome"], document: dict[str, Any], text: str, as_json: bool) -> None:
    """Print the number of series in each state and the first that failed; write all outcomes as the result."""
    counts = {
        state: sum(outcome.state == state for outcome in outcomes) for state in dict.fromkeys(o.state for o in outcomes)
    }
    announce(f"{len(outcomes)} series: " + ", ".join(f"{count} {state}" for state, count in counts.items()))
    failures = [outcome for outcome in outcomes if outcome.state == "failed"]
    for outcome in failures[:NAMED_AT_MOST]:
        announce(f"failed: {outcome.name!r}: {outcome.message}")
    if len(failures) > NAMED_AT_MOST:
        announce(f"and {len(failures) - NAMED_AT_MOST} more")
    _announce_worst(outcomes)
    deliver(document | {"counts": counts, "series": [asdict(outcome) for outcome in outcomes]}, text, as_json)
    if failures:
        raise click.exceptions.Exit(SOME_FAILED)
