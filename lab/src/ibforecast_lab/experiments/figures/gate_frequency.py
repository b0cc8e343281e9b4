"""How often each gate opens. Paper: Figure "gatefreq"."""

from ibforecast_lab.experiments.figures.gate_map import picture_of
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.tables.gates import MANY, many_windows
from ibforecast_lab.plots.gates import draw
from ibforecast_lab.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw frequencies over many windows, by patch and channel, in a panel for each recipe that was run."""
    pictures = [picture_of(gates, MANY.lower()) for gates in many_windows(records)]
    return draw(pictures, form) if pictures else None
