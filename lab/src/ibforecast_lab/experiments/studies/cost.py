"""What does an explanation cost? Forward-equivalents of every explainer, on the training device and on the CPU."""

from typing import Any

import torch

from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.contracts import Forecaster
from ibforecast.data.windows import Windows
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies.explainers import explainers_of
from ibforecast_lab.experiments.studies.explanations import points_of
from ibforecast_lab.measures.cost import cost

WINDOWS, REPEATS = 64, 3


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Time every explainer and the plain forecast; the forecaster is moved back to its device."""
    here, cpu = parts.test.values.device, torch.device("cpu")
    rows = []
    for device in dict.fromkeys((here, cpu)):
        rows += _measured(forecaster.to(device), parts.test.to(device), cell.seed)
    forecaster.to(here)
    return rows


def _measured(forecaster: Forecaster, test: Windows, seed: int) -> list[dict[str, Any]]:
    device = test.values.device
    window = test.look_backs(test.starts[evenly_spaced(WINDOWS, len(test)).to(device)])
    share = points_of(forecaster, window) / window.values[0].numel()
    rows = []
    for name, explainer in explainers_of(forecaster, window).items():
        generator = torch.Generator(device).manual_seed(seed)
        taken = cost(explainer, forecaster, window, share, generator, REPEATS)
        rows.append(
            {
                "measure": "cost",
                "explainer": name,
                "device": device.type,
                "windows": len(window.values),
                "forward_equivalents": round(taken.forward_equivalents, 3),
                "forwards": taken.forwards,
                "backwards": taken.backwards,
            }
        )
    return rows
