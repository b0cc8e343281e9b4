"""The effect of the factors: the error without them, their size and the base's, and the drivers they recover."""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import require
from ibforecast.core.explanation import Explanation
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast_lab.data import drivers
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import DRIVERS, Parts
from ibforecast_lab.measures.drivers import alignment, driver_auroc, matched
from ibforecast_lab.networks.factors import FactorForecast

BATCH = 1024


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the factors on all test windows and, if drivers were planted, the map of each driver."""
    require(
        isinstance(forecaster, FactorForecast),
        "a study of the factors needs a model with factors",
        cell.recipe,
        "use the recipe factors",
    )
    assert isinstance(forecaster, FactorForecast)
    rows = [_worth(forecaster, parts.test)]
    return [*rows, *_drivers(forecaster, parts.test)] if cell.data == DRIVERS else rows


@torch.no_grad()
def _worth(forecaster: FactorForecast, windows: Windows) -> dict[str, Any]:
    """Measure the error without factors, and the root mean squares of the parts added to the future deviation."""
    bare = deepcopy(forecaster)
    torch.nn.init.zeros_(bare.readout.loading)
    base, factors = [], []
    for explanation in _explanations(forecaster, windows):
        evidence = explanation.evidence
        base.append(forecaster.readout.readout(evidence, explanation.mask.to(evidence.dtype), explanation.context))
        factors.append(forecaster.factors(explanation).contribution)
    return {
        "measure": "worth",
        "mse_zeroed": accuracy(bare, windows).mse,
        "base_size": float(_size(torch.cat(base))),
        "factor_sizes": [float(_size(each)) for each in torch.cat(factors).unbind(1)],
    }


@torch.no_grad()
def _drivers(forecaster: FactorForecast, windows: Windows) -> list[dict[str, Any]]:
    _, _, truth = drivers.splits()
    factors = [forecaster.factors(explanation) for explanation in _explanations(forecaster, windows)]
    maps, probability = (torch.cat([getattr(each, name) for each in factors]).cpu() for name in ("maps", "probability"))
    support = torch.from_numpy(truth.tokens(forecaster.config.patch_len))
    scores = driver_auroc(probability, support)
    aligned = alignment(forecaster.readout.loading.cpu(), torch.from_numpy(truth.loading))
    return [
        {
            "measure": "driver",
            "driver": driver + 1,
            "auroc": float(scores[best, driver]),
            "alignment": float(aligned[best, driver]),
            "precision": float((maps[:, best] & support[:, driver]).sum() / maps[:, best].sum()),
            "recall": float((maps[:, best] & support[:, driver]).sum() / support[:, driver].sum()),
        }
        for driver, best in enumerate(matched(scores))
    ]


def _explanations(forecaster: FactorForecast, windows: Windows) -> list[Explanation]:
    return [forecaster(window).explanation for window, _ in windows.batches(BATCH)]


def _size(values: Tensor) -> Tensor:
    return values.square().mean().sqrt()
