"""Options that verbs of the laboratory share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]


def ledger_option(command: Command) -> Command:
    """Add --ledger."""
    return click.option(
        "--ledger",
        type=click.Path(path_type=Path),
        default=Path("results/ledger"),
        show_default=True,
        help="Its folder.",
    )(command)
