"""Advice on a table: what to know about it and what to do, and the options of `fit` that do it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ibforecast.data.series import Series

REPEATED = "--missing-value"
"""The option that the advice may have several times."""

NAMED = 4
"""Channels that are named in one piece of advice, and pieces of advice about single channels."""


@dataclass(frozen=True)
class Advice:
    """Something to know about a table, and what to do about it: `options` are those of `fit`, if there are any."""

    topic: str
    finding: str
    remedy: str
    options: tuple[str, ...] = ()


def leaving_out(series: Series, names: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the remedy for channels to leave out, and its option."""
    rest = [name for name in series.targets if name not in names]
    if not rest:
        return "give a table with other channels", ()
    option = listing("--channels", rest)
    return f"leave it out: {option}", (option,)


def listing(option: str, names: list[str]) -> str:
    """Return an option with names as its value, as it is written in a shell."""
    return f"{option} {shlex.quote(','.join(names))}"


def named(names: Sequence[str], most: int = NAMED) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
