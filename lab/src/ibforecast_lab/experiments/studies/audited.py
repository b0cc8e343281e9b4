"""Can post-hoc explanations of a pretrained model be relied on? The product's audit of a guest."""

from dataclasses import asdict
from typing import Any

import torch

from ibforecast.audit import audit_guest
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.rivals.pretrained import Pretrained

WINDOWS, BUDGET, BATCH = 64, 0.2, 16
AUDITED = ("occlusion", "saliency", "integrated_gradients")


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure how faithful maps of a fifth of the values are, and random ones, on evenly spaced test windows."""
    if not isinstance(forecaster, Pretrained):
        raise UsageError("the audit of a guest needs a pretrained model", cell.recipe, "try chronos-2")
    test = parts.test
    window, _ = test.take(test.starts[evenly_spaced(WINDOWS, len(test)).to(test.starts.device)])
    values = window.values.where(window.observed, torch.nan)
    rows = []
    for name in AUDITED:
        audit = audit_guest(forecaster.module, values, EXPLAINERS[name], budget=BUDGET, batch=BATCH)
        for explainer, fidelity in ((name, audit.fidelity), (f"chance, for {name}", audit.chance)):
            rows.append(
                {"measure": "audited", "explainer": explainer, "score": fidelity.clipped_score} | asdict(fidelity)
            )
    return rows
