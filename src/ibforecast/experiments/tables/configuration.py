"""The configuration our recipes come to on every data set. Paper: Table "config"."""

from ibforecast.core.sizes import Sizes
from ibforecast.data.catalogue import CATALOGUE
from ibforecast.experiments.ledger import Record
from ibforecast.experiments.plans import OURS
from ibforecast.experiments.sheet import Sheet
from ibforecast.zoo.recipes import resolve

LOOK_BACK, HORIZON = 96, 96


def sheet(records: list[Record]) -> Sheet:
    """Read the recipes; nothing has to be run for it."""
    rows = []
    for name in OURS:
        for dataset in CATALOGUE.values():
            recipe = resolve(name, Sizes(LOOK_BACK, HORIZON, dataset.channels, dataset.cycle), dataset.name)
            config, train = recipe.config, recipe.train
            rows.append(
                {
                    "recipe": name,
                    "data": dataset.name,
                    "budget": config.budget,
                    "gate": config.gate.kind,
                    "gate_layers": config.gate.layers,
                    "noise": config.gate.noise,
                    "readout": config.readout.kind,
                    "cross_channel": config.readout.cross_channel,
                    "frame": config.frame,
                    "rate_weight": config.objective.rate_weight,
                    "prior": config.objective.prior,
                    "learning_rate": train.learning_rate,
                    "batch": train.batch,
                    "epochs": train.epochs,
                    "cycle": config.cycle,
                }
            )
    return Sheet(
        "Configuration of our recipes", rows, list(rows[0]), [[str(value) for value in row.values()] for row in rows]
    )
