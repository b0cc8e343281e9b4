"""The gates of one window. Paper: Figure "gatemap"."""

from ibforecast.experiments.ledger import Record
from ibforecast.experiments.tables.gates import Gates, one_window
from ibforecast.plots.gates import GatePicture, draw
from ibforecast.plots.records import Form


def figure(records: list[Record], form: Form) -> bytes | None:
    """Probabilities, patch by channel, with the open gates outlined."""
    gates = one_window(records)
    return None if gates is None else draw(picture_of(gates, "; outlined: open"), form)


def picture_of(gates: Gates, marked: str = "") -> GatePicture:
    """Gates of a record as a picture takes them."""
    return GatePicture(
        title=f"{gates.what}{marked}",
        where=gates.where,
        meaning=gates.name,
        patches=gates.patches,
        channels=gates.channels,
        values=gates.values,
        mask=gates.mask,
    )
