"""Options, progress and output that several verbs share."""

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from shlex import quote
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ibforecast.core.errors import ModelFileError, UsageError
from ibforecast.core.files import not_usable, to_json
from ibforecast.core.folders import sweep

if TYPE_CHECKING:
    from ibforecast.fitting import Progress
    from ibforecast.forecaster import IBForecaster

Command = TypeVar("Command", bound=Callable[..., Any])


def announce(text: str) -> None:
    """Print a message for the user on stderr, so that stdout has only the result."""
    click.echo(text, err=True)


def check_place(*paths: Path) -> None:
    """Refuse, before any work, a path whose folder, or its nearest existing parent, cannot be written to.

    Temporary files that a killed process left there are removed.
    """
    for path in paths:
        try:
            folder = next(parent for parent in path.absolute().parents if parent.exists())
            tempfile.TemporaryFile(dir=folder).close()  # permissions do not say whether a disk is full or read-only
            sweep(folder)
        except OSError as error:
            raise not_usable(error, path) from error


def check_file(*paths: Path) -> None:
    """Refuse, like `check_place`, a path to which no file can be written; also one that is a folder or has none."""
    for path in paths:
        if not path.parent.exists():
            raise UsageError(
                "the folder of a file must exist", f"{path.parent}, which does not", "make it, or choose another"
            )
        check_place(path)
        if path.is_dir():
            raise UsageError(
                "a file must not take the place of a folder", f"{path}, which is a folder", "choose another"
            )


def load_model(model: Path, table: str, device: str = "auto") -> "IBForecaster":
    """Load the model of a verb; refuse a table and a model that are most likely swapped."""
    from ibforecast.forecaster import IBForecaster

    if model.is_file() and Path(table).is_dir():
        verb = click.get_current_context().info_name
        raise ModelFileError(
            "the first argument must be the folder of a model, the second one a table",
            f"{model}, a file, and {table}, a folder",
            f"swapped? ibforecast {verb} {quote(table)} {quote(str(model))}",
        )
    return IBForecaster.load(model, device)


def deliver(document: Any, text: str, as_json: bool) -> None:
    """Print the result on stdout: as one JSON document, or as text, if there is any."""
    if not (text or as_json):
        return
    plain = asdict(document) if is_dataclass(document) and not isinstance(document, type) else document
    click.echo(to_json(plain).decode().rstrip() if as_json else text)


def json_option(command: Command) -> Command:
    """Add --json."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document on stdout, all else on stderr."
    )(command)


def at_option(command: Command) -> Command:
    """Add --at."""
    return click.option("--at", help="The last moment to be read, e.g. '2018-01-05 10:00'; default: the table's end.")(
        command
    )


class Ahead(click.ParamType[Any]):
    """A number of steps ahead, or "mean" for the mean over the horizon."""

    name = "integer or mean"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or "mean"; whether the horizon has it is checked with the forecast."""
        return value if value == "mean" else click.INT.convert(value, param, ctx)


def step_option(command: Command) -> Command:
    """Add --step."""
    return click.option(
        "--step",
        type=Ahead(),
        default="mean",
        show_default=True,
        help="A step ahead, counted from 1, or mean: the mean over the horizon.",
    )(command)


def budget_option(command: Command) -> Command:
    """Add --budget."""
    return click.option(
        "--budget", type=float, help="Another budget, for a model fitted for any (recipe any-budget); default: its own."
    )(command)


def device_option(command: Command) -> Command:
    """Add --device."""
    return click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")(command)


def threads_option(command: Command) -> Command:
    """Add --threads."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        help="Threads to train with on a processor; default: one, which other programs slow down least.",
    )(command)


def future_option(command: Command) -> Command:
    """Add --future."""
    return click.option(
        "--future", help="A table with the covariates known ahead, if TABLE itself does not contain them."
    )(command)


@contextmanager
def progress_bar(doing: str, unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on stderr, if it is a terminal; yield a function of step, number of steps and text."""
    from tqdm import tqdm

    bar: tqdm[Any] | None = None

    def advance(step: int, steps: int, text: str) -> None:
        nonlocal bar
        if bar is None:
            # A fit that is continued starts at a later step. `disable=None` shows no bar unless stderr is a terminal.
            bar = tqdm(total=steps, initial=step - 1, desc=doing, unit=unit, disable=None, leave=False)
        bar.update()
        bar.set_postfix_str(text)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def epochs_bar(shown: bool = True) -> Iterator[Callable[[int, int, "Progress"], None]]:
    """Show a progress bar over epochs or, if stderr is no terminal, print a line after each; nothing unless `shown`."""
    if not shown:
        yield lambda number, epochs, epoch: None
        return
    begun, first = time.perf_counter(), 0

    def line(number: int, epochs: int, epoch: "Progress") -> None:
        from ibforecast.zoo.cost import duration

        nonlocal first
        first = first or number  # a fit that is continued starts at a later epoch
        left = (time.perf_counter() - begun) / (number - first + 1) * (epochs - number)
        announce(f"epoch {number} of at most {epochs}: {_outcome(epoch)}; at most {duration(left)} left")

    if not sys.stderr.isatty():
        yield line
        return
    with progress_bar("fit", "epoch") as advance:
        yield lambda number, epochs, epoch: advance(number, epochs, _outcome(epoch))


def _outcome(epoch: "Progress") -> str:
    """Return the validation error of an epoch, compared with the naive yardstick, and whose it is in a contest."""
    naive = f", {epoch.validation_error / epoch.naive_error:.0%} of the naive one" if epoch.naive_error > 0 else ""
    whose = f"{epoch.reader}, " if epoch.reader else ""
    return f"{whose}validation error {epoch.validation_error:.4f}{naive}"


@contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C stop the work inside at its next step: yield a function that returns whether it was pressed.

    A second Ctrl-C interrupts at once.
    """
    pressed, before = Event(), signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or current_thread() is not main_thread():
        yield pressed.is_set  # another program's handler decides, and only the main thread may set one
        return

    def note(number: int, frame: object) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)
        announce("\nstopping: the best model so far will be saved (Ctrl-C again to leave at once)")

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
