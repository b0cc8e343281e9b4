"""One model at every budget: its errors and the share it reads, from few tokens to all."""

from typing import Any

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import require
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.model.network import IBForecast
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts

BUDGETS = (0.05, 0.1, 0.2, 0.35, 0.5, 1.0)


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the same weights at every budget, on all validation and test windows."""
    require(
        isinstance(forecaster, IBForecast) and forecaster.config.gate.any_budget,
        "a study of budgets needs a model trained for any budget",
        cell.recipe,
        "use recipe any-budget",
    )
    assert isinstance(forecaster, IBForecast)
    rows: list[dict[str, Any]] = []
    for budget in BUDGETS:
        at_budget = forecaster.with_budget(budget)
        for part, windows in (("validation", parts.validation), ("test", parts.test)):
            errors = accuracy(at_budget, windows)
            rows.append(
                {
                    "measure": "budget",
                    "budget": budget,
                    "part": part,
                    "windows": len(windows),
                    "mse": errors.mse,
                    "mae": errors.mae,
                    "open_rate": float(errors.open_rate.mean()),
                    "largest_open_rate": float(errors.open_rate.max()),
                }
            )
    return rows
