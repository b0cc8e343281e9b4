"""Does a model choose what it reads? Its errors with each window's own mask, another window's, and one for all."""

from typing import Any

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import require
from ibforecast.model.network import IBForecast
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.measures.choice import errors_through, masks_of, usual_mask


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the errors and the share of unusual tokens among those read, on all validation and test windows."""
    require(
        isinstance(forecaster, IBForecast),
        "a study of the choice needs a model with gates",
        cell.recipe,
        "use a recipe for ibforecast",
    )
    assert isinstance(forecaster, IBForecast)
    rows = []
    for part, windows in (("validation", parts.validation), ("test", parts.test)):
        own = masks_of(forecaster, windows)
        usual = usual_mask(own, forecaster.config.allowance)
        order = torch.randperm(len(own), generator=torch.Generator().manual_seed(cell.seed)).to(own.device)
        masks = {"own": own, "another": own[order], "usual": usual.expand_as(own)}
        rows.append(
            {
                "measure": "choice",
                "part": part,
                "windows": len(own),
                **{name: float(errors_through(forecaster, windows, mask).mean()) for name, mask in masks.items()},
                "unusual": float((own & ~usual).sum() / own.sum()),
            }
        )
    return rows
