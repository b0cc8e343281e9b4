"""The configuration that our recipes give on every data set. Paper: Table "config"."""

from dataclasses import asdict
from typing import Any

from ibforecast.core.sizes import Sizes
from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.experiments.frame import Row
from ibforecast_lab.experiments.plans import AT_A_BUDGET, OURS
from ibforecast_lab.experiments.sheet import Column, Table
from ibforecast_lab.experiments.variants import varied

LOOK_BACK, HORIZON = 96, 96
FIELDS = {
    **{name: name for name in ("cycle", "patch_len", "budget")},
    "gate": "gate.kind",
    "attention": "gate.attention",
    "gate_layers": "gate.layers",
    "gate_width": "gate.width",
    "noise": "gate.noise",
    "readout": "readout.kind",
    "cross_channel": "readout.cross_channel",
    "frame": "frame",
    **{
        name: f"objective.{name}"
        for name in (
            *("rate_weight", "prior", "budget_weight"),
            *("contiguity_weight", "consistency_weight", "departure_weight"),
        )
    },
    **{name: f"train.{name}" for name in ("learning_rate", "batch", "epochs")},
}
"""The columns, and the path of each in a recipe."""


def _rows(tidy: list[Row]) -> list[Row]:
    rows = []
    for name in dict.fromkeys((*OURS, *AT_A_BUDGET, "any-budget")):
        for dataset in CATALOGUE.values():
            recipe = varied(name, Sizes(LOOK_BACK, HORIZON, dataset.channels, dataset.cycle), dataset.name)
            settings = asdict(recipe.config) | {"train": asdict(recipe.train)}
            values = {field: _at(settings, path) for field, path in FIELDS.items()}
            rows.append({"recipe": name, "data": dataset.name} | values)
    return rows


def _at(settings: dict[str, Any], path: str) -> Any:
    for name in path.split("."):
        settings = settings[name]
    return settings


configuration = Table(
    title="Configuration of our recipes",
    keys=("data", "recipe"),
    columns=tuple(Column(name, name, str) for name in ("recipe", "data", *FIELDS)),
    rows=_rows,
    lines=list,
)
