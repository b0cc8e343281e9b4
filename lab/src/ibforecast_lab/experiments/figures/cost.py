"""Fidelity against cost. Paper: Figure "cost"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.tables.cost import DEVICES, lines_of
from ibforecast_lab.experiments.tables.measured import NATIVE
from ibforecast_lab.plots.cost import CostPoint, draw
from ibforecast_lab.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """A panel per data set with the explainers of which both are known."""
    panels: dict[str, list[CostPoint]] = {}
    for line in lines_of(records):
        if line.forward_equivalents is not None and line.score is not None:
            device = DEVICES.get(str(line.device), str(line.device))
            point = CostPoint(
                line.explainer, device, line.forward_equivalents, line.score, emphasised=line.explainer == NATIVE
            )
            panels.setdefault(f"{line.data}, {line.model}, horizon {line.horizon}", []).append(point)
    return draw(panels, form) if panels else None
