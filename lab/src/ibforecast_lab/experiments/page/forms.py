"""How the page of results writes numbers, names and lists."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from ibforecast_lab.experiments.frame import Lead, Row
from ibforecast_lab.experiments.plans import (
    OPEN,
)
from ibforecast_lab.experiments.sheet import NONE

NAMES = {
    "default": "**ibforecast**, budget 0.2 (`default`)",
    "additive": "ibforecast, budget 0.2, additive readout (`additive`)",
    "steady": "ibforecast, budget 0.2 (`steady`, the former default)",
    OPEN: f"the same readout, everything read (`{OPEN}`)",
    "dense": "gates open, an earlier recipe (`dense`)",
    "static-fixed": "one learned mask for all windows (`static-fixed`)",
    "static-newest": "the two newest patches, always (`static-newest`)",
    "paper": "the paper's recipe, run again (`paper`)",
    "tqnet": "TQNet",
    "cyclenet-linear": "CycleNet/Linear",
    "cyclenet-mlp": "CycleNet/MLP",
    "patchdecomp": "PatchDecomp",
    "patchtst": "PatchTST",
    "itransformer": "iTransformer",
    "dlinear": "DLinear",
    "timesnet": "TimesNet",
    "olinear": "OLinear",
    "timeemb": "TimeEmb",
    "timexer": "TimeXer",
    "tft": "TFT",
    "protots": "ProtoTS",
    "ridge": "ridge regression (`ridge`)",
    "lightgbm": "LightGBM (`lightgbm`)",
    "seasonal-naive": "repeat the last cycle (`seasonal-naive`)",
    "ibforecast": "IB-Forecast, as published",
}
"""Models as the page names them, in its order."""


SOURCES = {"ledger": "our run", "published": "published"}


Line = dict[str, str]
"""A line of a table: its cells by the names of their columns."""


def _rounded_up(value: float) -> float:
    """Return the value rounded up to one digit, for bounds."""
    return math.ceil(round(10 * value, 6)) / 10


FORMS: dict[str, Callable[[float], str]] = {
    ".2f": "{:.2f}".format,
    ".3f": "{:.3f}".format,
    ".4f": "{:.4f}".format,
    ".0f": "{:.0f}".format,
    "n": "{:,.0f}".format,
    ".1f": "{:,.1f}".format,
    "%0": lambda value: f"{100 * value:.0f} %".replace("-", "−"),
    "%1": lambda value: f"{100 * value:.1f} %",
    "%+": lambda value: f"{round(100 * value, 1) or 0.0:+.1f} %".replace("-", "−"),  # no negative zero
    "up": lambda value: f"{_rounded_up(value):.1f}",
    "points_up": lambda value: f"{_rounded_up(100 * value):.1f}",
    "none": lambda value: "none" if value == 0 else f"{value:,.0f}",
    "s": lambda value: f"{value:.0f} s" if value >= 100 else f"{value:.1f} s",
    "×": "{:.1f} times".format,
    ".2×": "{:.2f} times".format,
    ".2s": "{:.2f} s".format,
    "ms": "{:.0f} ms".format,
    "yes": lambda value: "yes" if value else "no",
}
"""How a number is written."""


def formatted(value: int | float | None, form: str) -> str:
    """Return a number in one of the forms; None is a dash."""
    return NONE if value is None else FORMS[form](value)


def with_spread(row: Row, field: str, form: str = ".3f") -> str:
    """Return a field with its standard deviation, if there is one."""
    spread = row.get(f"{field}_std")
    return formatted(row.get(field), ".3f") + (f" ± {FORMS[form](spread)}" if spread is not None else "")


def both(row: Row) -> str:
    """Return both errors of a row."""
    return f"{row['mse']:.3f} / {row['mae']:.3f}"


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence."""
    *most, last = [*names] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def by_lead(leads: Mapping[str, str | None]) -> str:
    """Say where something is ahead, level and behind."""
    places = {word: [data for data, here in leads.items() if here == word] for word in get_args(Lead)}
    return ", ".join(f"{word} on {listed(data)}" for word, data in places.items() if data)
