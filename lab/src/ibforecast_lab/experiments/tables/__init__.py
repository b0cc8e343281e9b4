"""The tables. Each is a pure function from the ledger's records to a sheet."""

from collections.abc import Callable

from ibforecast_lab.experiments.frame import frame
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.sheet import Sheet, Table
from ibforecast_lab.experiments.tables.ablations import ablations
from ibforecast_lab.experiments.tables.certificate import certificate
from ibforecast_lab.experiments.tables.choice import choice
from ibforecast_lab.experiments.tables.configuration import configuration
from ibforecast_lab.experiments.tables.convergence import convergence
from ibforecast_lab.experiments.tables.cost import cost
from ibforecast_lab.experiments.tables.coverage import coverage
from ibforecast_lab.experiments.tables.datasets import datasets
from ibforecast_lab.experiments.tables.dropped_batch import dropped_batch
from ibforecast_lab.experiments.tables.errors import accuracy, large_channels, per_horizon
from ibforecast_lab.experiments.tables.factors import factors
from ibforecast_lab.experiments.tables.fev import fev
from ibforecast_lab.experiments.tables.fidelity import fidelity, fidelity_by_budget
from ibforecast_lab.experiments.tables.fidelity_rankings import sheet as fidelity_rankings
from ibforecast_lab.experiments.tables.fixed_mask import fixed_mask
from ibforecast_lab.experiments.tables.gates import gate_frequency, gate_map
from ibforecast_lab.experiments.tables.look_back import look_back
from ibforecast_lab.experiments.tables.sensitivity import sensitivity
from ibforecast_lab.experiments.tables.suite import suite
from ibforecast_lab.experiments.tables.support_recovery import support_recovery
from ibforecast_lab.experiments.tables.tradeoff import tradeoff

TABLES: dict[str, Callable[[list[Record]], Sheet]] = {
    "datasets": datasets,
    "configuration": configuration,
    "accuracy": accuracy,
    "per_horizon": per_horizon,
    "tables": suite,
    "dropped_batch": dropped_batch,
    "fev": fev,
    "look_back": look_back,
    "large_channels": large_channels,
    "fidelity": fidelity,
    "fidelity_by_budget": fidelity_by_budget,
    "fidelity_rankings": fidelity_rankings,
    "certificate": certificate,
    "support_recovery": support_recovery,
    "convergence": convergence,
    "cost": cost,
    "gate_map": gate_map,
    "gate_frequency": gate_frequency,
    "coverage": coverage,
    "tradeoff": tradeoff,
    "fixed_mask": fixed_mask,
    "choice": choice,
    "ablations": ablations,
    "sensitivity": sensitivity,
    "factors": factors,
}


def sheets_of(records: list[Record]) -> dict[str, Sheet]:
    """Return the sheet of every label. The frame is computed once for all tables with a specification."""
    tidy = frame(records)
    return {label: table.sheet(tidy) if isinstance(table, Table) else table(records) for label, table in TABLES.items()}
