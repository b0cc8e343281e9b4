"""Options that verbs of the laboratory share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ibforecast_lab.experiments.ledger import LEDGER

Command = Callable[..., Any]


def ledger_option(command: Command) -> Command:
    """Add --ledger."""
    return click.option(
        "--ledger",
        type=click.Path(path_type=Path),
        default=LEDGER,
        show_default=True,
        help="The packed ledger; new records are in the folder records next to it.",
    )(command)
