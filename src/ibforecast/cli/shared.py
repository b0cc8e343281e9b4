"""What the verbs share: options, progress, and the two streams."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from tqdm import tqdm

from ibforecast.core.files import to_json
from ibforecast.train.checkpoint import Epoch

Command = TypeVar("Command", bound=Callable[..., Any])


def announce(text: str) -> None:
    """Say something to the person at the terminal: on stderr, so that stdout stays clean."""
    click.echo(text, err=True)


def deliver(document: Any, text: str, as_json: bool) -> None:
    """Give the result on stdout: one JSON document if asked for, otherwise text."""
    plain = asdict(document) if is_dataclass(document) and not isinstance(document, type) else document
    click.echo(to_json(plain).decode().rstrip() if as_json else text)


def json_option(command: Command) -> Command:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout, all else on stderr.")(
        command
    )


def at_option(command: Command) -> Command:
    """Add --at."""
    return click.option("--at", help="The last moment to be read, e.g. '2018-01-05 10:00'; default: the table's end.")(
        command
    )


def budget_option(command: Command) -> Command:
    """Add --budget."""
    return click.option(
        "--budget", type=float, help="Turn the budget of a model fitted for any (recipe any-budget); default: its own."
    )(command)


def future_option(command: Command) -> Command:
    """Add --future."""
    return click.option(
        "--future", help="A table with what is known ahead, where the columns of TABLE do not go on by themselves."
    )(command)


def ledger_option(command: Command) -> Command:
    """Add --ledger."""
    return click.option(
        "--ledger",
        type=click.Path(path_type=Path),
        default=Path("results/ledger"),
        show_default=True,
        help="Its folder.",
    )(command)


@contextmanager
def epochs_bar() -> Iterator[Callable[[int, int, Epoch], None]]:
    """A progress bar over epochs with loss and open rate, on stderr, and only for a person."""
    bar: tqdm[Any] | None = None

    def advance(epoch: int, epochs: int, outcome: Epoch) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(total=epochs, initial=epoch - 1, desc="fit", unit="epoch", disable=None, leave=False)
        bar.update()
        bar.set_postfix_str(
            f"loss {outcome.loss:.4f}, validation {outcome.validation_error:.4f}, open {outcome.open_rate:.1%}"
        )

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()
