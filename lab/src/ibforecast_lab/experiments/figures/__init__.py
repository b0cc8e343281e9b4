"""One file per figure: from the ledger's records to plain data, and by `plots` to bytes."""

from collections.abc import Callable

from ibforecast.core.errors import DataError, UsageError
from ibforecast_lab.experiments.figures import (
    ablations,
    cost,
    fidelity_by_budget,
    gate_frequency,
    gate_map,
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
    "ablations": ablations.figure,
    "sensitivity": sensitivity.figure,
}
"""Each gives None if nothing of it was run."""


def drawn(label: str, records: list[Record], form: Form) -> bytes:
    """Draw a label's figure; refuse a label that has none, or of which nothing was run."""
    check_has_figure(label)
    picture = FIGURES[label](records, form)
    if picture is None:
        raise DataError(
            "a figure needs records", f"none of {label!r} in the ledger", f"run: ibforecast reproduce {label}"
        )
    return picture


def check_has_figure(label: str) -> None:
    """Refuse a label that is only a table."""
    if label not in FIGURES:
        raise UsageError(
            f"a label must be one of {', '.join(FIGURES)} to be drawn",
            f"{label!r}, a table",
            "use --format md, csv, tex or json",
        )
