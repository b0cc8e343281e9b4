"""Do explanations recover the planted support? AUROC, AUP and AUR of every explainer on the framed benchmark."""

from dataclasses import asdict
from typing import Any

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import require
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies.explainers import explainers_of
from ibforecast_lab.measures.recovery import recovery

WINDOWS = 256
"""The number of test windows, from the first, as in the paper."""


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Score every explainer. Those that need a budget receive the true share of each window, as in the paper."""
    require(
        parts.support is not None,
        "support recovery needs windows with planted support",
        cell.data,
        "use framed-pulse, framed-decoy or framed-trend",
    )
    assert parts.support is not None
    window, truth = parts.test.look_backs(parts.test.starts[:WINDOWS]), parts.support[:WINDOWS]
    share = truth.float().mean(dim=(1, 2))
    rows = []
    for name, explainer in explainers_of(forecaster, window).items():
        generator = torch.Generator(window.values.device).manual_seed(cell.seed)
        areas = recovery(explainer.explain(forecaster, window, share, generator).values, truth)
        by_window = {f"{measure}_by_window": value for measure, value in asdict(areas.mean).items()}
        rows.append({"measure": "recovery", "explainer": name, **asdict(areas.pooled), **by_window})
    return rows
