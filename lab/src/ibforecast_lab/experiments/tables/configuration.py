"""The configuration our recipes come to on every data set. Paper: Table "config"."""

from ibforecast.core.sizes import Sizes
from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.plans import AT_A_BUDGET, OURS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.recipes import resolve

LOOK_BACK, HORIZON = 96, 96


def sheet(records: list[Record]) -> Sheet:
    """Read the recipes; nothing has to be run for it."""
    rows = []
    for name in dict.fromkeys((*OURS, *AT_A_BUDGET, "any-budget")):
        for dataset in CATALOGUE.values():
            recipe = resolve(name, Sizes(LOOK_BACK, HORIZON, dataset.channels, dataset.cycle), dataset.name)
            config, train = recipe.config, recipe.train
            rows.append(
                {
                    "recipe": name,
                    "data": dataset.name,
                    "cycle": config.cycle,
                    "patch_len": config.patch_len,
                    "budget": config.budget,
                    "gate": config.gate.kind,
                    "attention": config.gate.attention,
                    "gate_layers": config.gate.layers,
                    "gate_width": config.gate.width,
                    "noise": config.gate.noise,
                    "readout": config.readout.kind,
                    "cross_channel": config.readout.cross_channel,
                    "frame": config.frame,
                    "rate_weight": config.objective.rate_weight,
                    "prior": config.objective.prior,
                    "budget_weight": config.objective.budget_weight,
                    "contiguity_weight": config.objective.contiguity_weight,
                    "consistency_weight": config.objective.consistency_weight,
                    "departure_weight": config.objective.departure_weight,
                    "learning_rate": train.learning_rate,
                    "batch": train.batch,
                    "epochs": train.epochs,
                }
            )
    return Sheet(
        "Configuration of our recipes", rows, list(rows[0]), [[str(value) for value in row.values()] for row in rows]
    )
