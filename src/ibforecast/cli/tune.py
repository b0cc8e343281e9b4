"""ibforecast tune: search for a recipe on the validation windows of a table."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ibforecast.cli.fit import check_folder
from ibforecast.cli.settings import forecaster_of, settings_options
from ibforecast.cli.shared import announce, check_file, check_place, deliver, json_option, progress_bar
from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically

if TYPE_CHECKING:
    from ibforecast.tune import Trial, Tuning


@click.command("tune")
@click.argument("table")
@settings_options
@click.option("--trials", type=int, default=30, show_default=True, help="Number of recipes to try in all.")
@click.option("--timeout", type=float, help="Start no new trial after this many seconds.")
@click.option(
    "--storage", type=click.Path(path_type=Path), help="File that stores the search, to continue after a stop."
)
@click.option("--budgets", help="Budgets to choose among, separated by commas; default: only --budget.")
@click.option(
    "--best",
    type=click.Path(path_type=Path),
    default=Path("tuned.toml"),
    show_default=True,
    help="File for the best recipe.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Also fit the best recipe: folder of the model.")
@click.option("--overwrite", is_flag=True, help="Replace an existing recipe and model.")
@json_option
def command(
    table: str,
    trials: int,
    timeout: float | None,
    storage: Path | None,
    budgets: str | None,
    best: Path,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Search for a better recipe for TABLE, starting with --recipe, by the error on its validation windows.

    Test windows are never used. After a stop, the same command with the same --storage continues until there are
    --trials in all (add --overwrite if a recipe was written). The trials depend on the seed.

    \b
    ibforecast tune load.csv --horizon 24 --trials 30 --storage search.log
    ibforecast tune load.csv --horizon 24 --recipe sealed --timeout 600 --out model
    ibforecast fit load.csv --horizon 24 --recipe tuned.toml --out model
    """
    from ibforecast.tune import tune

    if best.suffix != ".toml":
        raise UsageError("a recipe's file must end in .toml", repr(str(best)), "rename it")
    check_file(best)
    if best.exists() and not overwrite:
        raise UsageError("the recipe's file must be new", f"{best}, which exists", "choose --best or add --overwrite")
    if out is not None:
        check_folder(out, overwrite)
    if storage is not None:
        check_place(storage)
    forecaster = forecaster_of(settings)
    with _trials_bar() as advance:
        tuning = tune(
            table,
            forecaster,
            trials,
            storage=storage,
            timeout=timeout,
            budgets=_numbers(budgets),
            on_trial=advance,
        )
    write_atomically(best, tuning.recipe.encode())
    announce(f"best recipe written to {best}; fit it with --recipe {shlex.quote(str(best))}")
    if out is not None:
        tuning.fit(table).save(out, overwrite)
        announce(f"model written to {out}")
    document = {
        "recipe": str(best),
        "model": str(out) if out else None,
        "patch_len": tuning.patch_len,
        "best": asdict(tuning.best),
        "trials": [asdict(trial) for trial in tuning.trials],
    }
    deliver(document, _in_lines(tuning), as_json)


def _in_lines(tuning: "Tuning") -> str:
    """Return the trials as a table, with a * at the best one."""
    names = list(tuning.best.knobs)
    head = ["trial", "state", "error", "read", "epochs", *(name.split(".")[-1] for name in names)]
    rows = [head] + [
        [
            f"{'*' if trial == tuning.best else ''}{trial.number}",
            trial.state,
            "" if trial.validation_error is None else f"{trial.validation_error:.4f}",
            "" if trial.open_rate is None else f"{trial.open_rate:.1%}",
            str(trial.epochs),
            *(f"{value:.3g}" if isinstance(value, float) else str(value) for value in map(trial.knobs.get, names)),
        ]
        for trial in tuning.trials
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(lines)


@contextmanager
def _trials_bar() -> Iterator[Callable[["Trial", int], None]]:
    """Show a progress bar over trials, with the best error so far."""
    least = float("inf")
    with progress_bar("tune", "trial") as advance:

        def report(trial: "Trial", trials: int) -> None:
            nonlocal least
            if trial.state == "finished" and trial.validation_error:
                least = min(least, trial.validation_error)
            advance(trial.number, trials, f"best {least:.4f}")

        yield report


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise UsageError("budgets must be numbers separated by commas", repr(text), "try 0.1,0.2,0.3") from error
