"""Fidelity by cost. Paper: Figure "cost"."""

from ibforecast_lab.experiments.frame import frame
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.sheet import NATIVE
from ibforecast_lab.experiments.tables.cost import DEVICES, rows_of
from ibforecast_lab.plots.cost import CostPoint, draw
from ibforecast_lab.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw a panel for each data set, with the explainers whose cost and fidelity are known."""
    panels: dict[str, list[CostPoint]] = {}
    for row in rows_of(frame(records)):
        if row["forward_equivalents"] is not None and row["score"] is not None:
            device = DEVICES.get(row["device"], str(row["device"]))
            point = CostPoint(
                row["explainer"],
                device,
                row["forward_equivalents"],
                row["score"],
                emphasised=row["explainer"] == NATIVE,
            )
            panels.setdefault(f"{row['data']}, {row['model']}, horizon {row['horizon']}", []).append(point)
    return draw(panels, form) if panels else None
