"""Named values of the ledger: every number of every table, for texts that quote them."""

from pathlib import Path
from typing import Any

from ibforecast_lab.experiments.ledger import LEDGER, Ledger
from ibforecast_lab.experiments.tables import TABLES

KEYS: dict[str, tuple[str, ...]] = {
    "datasets": ("name",),
    "configuration": ("data", "recipe"),
    "accuracy": ("data", "model"),
    "per_horizon": ("data", "horizon", "model"),
    "large_channels": ("data", "horizon", "model"),
    "fidelity": ("data", "horizon", "model", "explainer"),
    "fidelity_rankings": ("data", "horizon", "model", "explainer", "gating", "space", "shift", "aggregate"),
    "certificate": ("data", "horizon", "model"),
    "support_recovery": ("mode", "model", "explainer"),
    "cost": ("data", "horizon", "model", "explainer", "device"),
    "gate_map": ("data", "horizon", "model", "seed", "patch", "channel"),
    "gate_frequency": ("data", "horizon", "model", "seed", "patch", "channel"),
    "coverage": ("data", "horizon", "model", "level"),
    "tradeoff": ("data", "horizon", "model", "budget"),
    "fixed_mask": ("data", "horizon", "budget"),
    "by_kind": ("data", "horizon"),
    "ablations": ("data", "horizon", "model"),
    "sensitivity": ("data", "horizon", "recipe", "setting", "value"),
    "factors": ("data", "horizon", "model"),
}
"""The fields that identify a row of each table, in the order in which a name lists them."""


def facts(ledger_path: Path = LEDGER) -> dict[str, float]:
    """Return every number of every table by its name, `label/key/.../column`.

    The keys are the values of the row's identifying fields, and "published" for a published row. A field without a
    value is left out: `per_horizon/ETTh1/96/steady/mse`, `accuracy/Overall/tqnet/published/mse`.
    """
    records = Ledger(ledger_path).records()
    return {
        "/".join((label, *_keys(row, KEYS[label]), column)): float(value)
        for label, table in TABLES.items()
        for row in table(records).rows
        for column, value in row.items()
        if column not in KEYS[label] and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _keys(row: dict[str, Any], fields: tuple[str, ...]) -> list[str]:
    values = [row[field] for field in fields if row[field] is not None]
    source = [row["source"]] if row.get("source") == "published" else []
    return [f"{value:g}" if isinstance(value, float) else str(value) for value in values] + source
