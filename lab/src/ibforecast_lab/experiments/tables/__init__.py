"""One file per table of the paper: a pure function from the ledger's records to a sheet."""

from collections.abc import Callable

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables import (
    ablations,
    accuracy,
    by_kind,
    certificate,
    configuration,
    cost,
    coverage,
    datasets,
    factors,
    fidelity,
    fidelity_rankings,
    fixed_mask,
    gates,
    large_channels,
    per_horizon,
    sensitivity,
    support_recovery,
    tradeoff,
)

TABLES: dict[str, Callable[[list[Record]], Sheet]] = {
    "datasets": datasets.sheet,
    "configuration": configuration.sheet,
    "accuracy": accuracy.sheet,
    "per_horizon": per_horizon.sheet,
    "large_channels": large_channels.sheet,
    "fidelity": fidelity.sheet,
    "fidelity_rankings": fidelity_rankings.sheet,
    "certificate": certificate.sheet,
    "support_recovery": support_recovery.sheet,
    "cost": cost.sheet,
    "gate_map": gates.gate_map,
    "gate_frequency": gates.gate_frequency,
    "coverage": coverage.sheet,
    "tradeoff": tradeoff.sheet,
    "fixed_mask": fixed_mask.sheet,
    "by_kind": by_kind.sheet,
    "ablations": ablations.sheet,
    "sensitivity": sensitivity.sheet,
    "factors": factors.sheet,
}
