"""The gates of one window. Paper: Figure "gatemap"."""

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.tables.gates import ONE, Gates, one_window
from ibforecast_lab.plots.gates import GatePicture, draw
from ibforecast_lab.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """Draw probabilities by patch and channel, open gates outlined, in a panel for each recipe that was run."""
    pictures = [picture_of(gates, f"{ONE.lower()}; outlined: open") for gates in one_window(records)]
    return draw(pictures, form) if pictures else None


def picture_of(gates: Gates, shown: str) -> GatePicture:
    """Return the picture of the gates of a record."""
    return GatePicture(
        title=f"{gates.model}: {shown}",
        where=gates.where,
        meaning=gates.name,
        patches=gates.patches,
        channels=gates.channels,
        values=gates.values,
        mask=gates.mask,
    )
