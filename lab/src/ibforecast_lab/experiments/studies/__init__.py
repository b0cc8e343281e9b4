"""Studies: measurements of a trained forecaster in addition to its errors. Each returns flat rows."""

from collections.abc import Callable
from typing import Any

from ibforecast.core.contracts import Forecaster
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies import (
    audited,
    budgets,
    choice,
    convergence,
    cost,
    coverage,
    explanations,
    factors,
    fev,
    native,
    reach,
    recovery,
)

Study = Callable[[Forecaster, Parts, Cell], list[dict[str, Any]]]

STUDIES: dict[str, Study] = {
    "explanations": explanations.study,
    "promises": explanations.promises,
    "recovery": recovery.study,
    "cost": cost.study,
    "native": native.study,
    "budgets": budgets.study,
    "coverage": coverage.study,
    "choice": choice.study,
    "factors": factors.study,
    "fev": fev.study,
    "reach": reach.study,
    "audited": audited.study,
    "convergence": convergence.study,
}
