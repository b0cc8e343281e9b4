"""Do mask optimisers converge? Recovery of the planted support after more and more steps, and what still changes."""

from dataclasses import asdict, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.explainers.dynamask import Dynamask
from ibforecast_lab.measures.recovery import recovery

WINDOWS = 64
STEPS = (60, 125, 250, 500, 1000)
"""Fractions of the default of both optimisers, the default, and twice that."""

OPTIMISERS = ("dynamask", "extremal_mask")


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Fit masks to the first test windows, with each number of steps; compare them with those of the most steps."""
    if parts.support is None:
        raise UsageError("convergence is measured on planted support", cell.data, "use framed-pulse")
    window, truth = parts.test.look_backs(parts.test.starts[:WINDOWS]), parts.support[:WINDOWS]
    share = truth.float().mean(dim=(1, 2))
    rows = []
    for name in OPTIMISERS:
        optimiser = EXPLAINERS[name]
        assert isinstance(optimiser, Dynamask)
        maps = {}
        for steps in STEPS:
            generator = torch.Generator(window.values.device).manual_seed(cell.seed)
            maps[steps] = replace(optimiser, steps=steps).explain(forecaster, window, share, generator).values
        for steps, grades in maps.items():
            areas = asdict(recovery(grades, truth).pooled)
            agreement = same_choice(grades, maps[STEPS[-1]], share)
            rows.append({"measure": "convergence", "explainer": name, "steps": steps, "agreement": agreement} | areas)
    return rows


def same_choice(
    one: Float[Tensor, "batch look_back channel"],
    other: Float[Tensor, "batch look_back channel"],
    share: Float[Tensor, " batch"],
) -> float:
    """Return the share of the highest grades of one map, as many as the window's share allows, that the other names."""
    shared, named = 0, 0
    for mine, theirs, part in zip(one.flatten(1), other.flatten(1), share.tolist(), strict=True):
        count = round(part * len(mine))
        best = [set(grades.argsort(descending=True, stable=True)[:count].tolist()) for grades in (mine, theirs)]
        shared, named = shared + len(best[0] & best[1]), named + count
    return shared / max(named, 1)
