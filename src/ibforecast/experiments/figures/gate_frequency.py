"""How often each gate opens. Paper: Figure "gatefreq"."""

from ibforecast.experiments.figures.gate_map import picture_of
from ibforecast.experiments.ledger import Record
from ibforecast.experiments.tables.gates import many_windows
from ibforecast.plots.gates import draw
from ibforecast.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """Frequencies over many windows, patch by channel."""
    gates = many_windows(records)
    return None if gates is None else draw(picture_of(gates), form)
