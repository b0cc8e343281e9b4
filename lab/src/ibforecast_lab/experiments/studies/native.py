"""Fidelity of only a forecaster's own explanation: a light study for many cells."""

from typing import Any

from ibforecast.core.contracts import Forecaster
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies import explanations
from ibforecast_lab.explainers.native import Native


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the fidelity of the native map on evenly spaced test windows, in every way."""
    measured = explanations.fidelity(forecaster, explanations.spaced(parts.test), Native(), cell.seed)
    return [explanations.flat("native", row) for row in measured]
