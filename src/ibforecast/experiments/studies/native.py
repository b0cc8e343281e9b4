"""How faithful is a forecaster's own explanation, and nothing else: the light study, for many cells."""

from typing import Any

from ibforecast.core.contracts import Forecaster
from ibforecast.experiments.ledger import Cell
from ibforecast.experiments.parts import Parts
from ibforecast.experiments.studies import explanations
from ibforecast.explain.native import Native


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the fidelity of the native map on evenly spaced test windows, in every way there is."""
    found = explanations.fidelity(forecaster, explanations.spaced(parts.test), Native(), cell.seed)
    return [explanations.flat("native", row) for row in found]
