"""The figures. Each file turns the ledger's records into plain data, which `plots` draws."""

from collections.abc import Callable

from ibforecast.core.errors import DataError, UsageError
from ibforecast_lab.experiments.figures import (
    ablations,
    cost,
    fidelity_by_budget,
    gate_frequency,
    gate_map,
    look_back,
    overview,
    sensitivity,
    tradeoff,
)
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.plots.records import Form

FIGURES: dict[str, Callable[[list[Record], Form], bytes | None]] = {
    "fidelity_by_budget": fidelity_by_budget.figure,
    "cost": cost.figure,
    "gate_map": gate_map.figure,
    "gate_frequency": gate_frequency.figure,
    "tradeoff": tradeoff.figure,
    "look_back": look_back.figure,
    "ablations": ablations.figure,
    "sensitivity": sensitivity.figure,
}
"""Each function returns None if the ledger has no records for it."""

WITHOUT_RECORDS: dict[str, Callable[[Form], bytes]] = {"overview": overview.figure}
"""Figures of what the code does, not of results. They are labels without a table."""


def drawn(label: str, records: list[Record], form: Form) -> bytes:
    """Draw the figure of a label; refuse a label without a figure or without records."""
    check_has_figure(label)
    if label in WITHOUT_RECORDS:
        return WITHOUT_RECORDS[label](form)
    picture = FIGURES[label](records, form)
    if picture is None:
        raise DataError(
            "a figure needs records", f"none of {label!r} in the ledger", f"run: ibforecast reproduce {label}"
        )
    return picture


def check_has_figure(label: str) -> None:
    """Refuse a label that has no figure."""
    if label not in {**FIGURES, **WITHOUT_RECORDS}:
        raise UsageError(
            f"a label must be one of {', '.join((*FIGURES, *WITHOUT_RECORDS))} to be drawn",
            f"{label!r}, a table",
            "use --format md, csv, tex or json",
        )


def check_has_table(label: str) -> None:
    """Refuse a label that is only a figure."""
    if label in WITHOUT_RECORDS:
        raise UsageError(
            f"{label} can only be drawn", "no format of a figure", f"add --format png --out {label}.png, or svg"
        )
