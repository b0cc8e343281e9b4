"""How far back a forecaster reads: the age of the values that its masks open."""

from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from ibforecast.core.contracts import Accountable, Forecaster
from ibforecast_lab.experiments.ledger import LOOK_BACK, Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies.explanations import spaced
from ibforecast_lab.measures.choice import masks_of


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the masks of evenly spaced test windows."""
    assert isinstance(forecaster, Accountable)
    return [{"measure": "reach"} | reach(masks_of(forecaster, spaced(parts.test)), cell.look_back)]


def reach(masks: Bool[Tensor, "window patch channel"], look_back: int) -> dict[str, float]:
    """Return the mean number of values read and the share of them that is older than the protocol's look-back."""
    patch_len = look_back // masks.shape[1]
    age = look_back - patch_len * torch.arange(masks.shape[1], device=masks.device)
    by_patch = masks.double().sum(dim=(0, 2))
    beyond = by_patch[age > LOOK_BACK].sum() / by_patch.sum().clamp(min=1)
    return {"values": float(by_patch.sum() * patch_len / len(masks)), "beyond": float(beyond)}
