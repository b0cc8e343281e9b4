"""Are the explanations true? Fidelity of every explainer, certificate, sensitivity, rate, and where gates open."""

from math import isnan
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ibforecast.core.budget import allowance
from ibforecast.core.contracts import Accountable, Explainer, Forecaster
from ibforecast.core.explanation import Explanation
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.chosen import evenly_spaced
from ibforecast.evaluate.fidelity import FidelityRow, every_fidelity, every_shift, native_importance, native_points
from ibforecast.evaluate.information import rate_bits
from ibforecast.evaluate.sensitivity import certificate, end_to_end
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies.explainers import explainers_of
from ibforecast_lab.explainers.native import Native

FIDELITY_WINDOWS, GATE_WINDOWS, BATCH = 1024, 512, 256
BUDGET, PATCH_LEN, PRIOR = 0.2, 12, 0.2
"""What a forecaster without a budget of its own is given, and the prior the rate is counted against."""


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure on evenly spaced test windows, and what must hold always on all of them."""
    chosen = evenly_spaced(FIDELITY_WINDOWS, len(parts.test))
    windows = spaced(parts.test)
    rows = [{"measure": "windows", "of": len(parts.test), "indices": " ".join(map(str, chosen.tolist()))}]
    for name, explainer in explainers_of(forecaster, windows.look_backs(windows.starts[:1])).items():
        rows += [flat(name, row) for row in fidelity(forecaster, windows, explainer, cell.seed)]
    if isinstance(forecaster, Accountable):
        rows += [*_promises(forecaster, parts.test, cell.seed), *_gates(forecaster, parts.test)]
    return rows


def spaced(test: Windows) -> Windows:
    """The test windows that fidelity is measured on, evenly spaced."""
    chosen = evenly_spaced(FIDELITY_WINDOWS, len(test))
    return test.at(test.starts[chosen.to(test.starts.device)].cpu().numpy())


def fidelity(forecaster: Forecaster, windows: Windows, explainer: Explainer, seed: int) -> list[FidelityRow]:
    """Measure an explainer's maps in every way there is, at the budget of each window's native mask."""
    generator = torch.Generator(windows.values.device).manual_seed(seed)
    batches = []
    for window, _ in windows.batches(BATCH):
        points = points_of(forecaster, window)
        share = points / window.values[0].numel()
        importance = explainer.explain(forecaster, window, share, generator).values
        if isinstance(forecaster, Accountable) and isinstance(explainer, Native):
            importance = native_importance(forecaster(window).explanation)  # of equals, the open ones first
        batches.append(every_shift(forecaster, window, importance, points))
    return every_fidelity(batches)


@torch.no_grad()
def points_of(forecaster: Forecaster, window: Window) -> Int[Tensor, " batch"]:
    """How many points of each window a map may name: what the native mask reads, or a budget of whole patches."""
    explanation: Explanation | None = forecaster(window).explanation
    if explanation is not None:
        return native_points(explanation)
    batch, look_back, channels = window.values.shape
    points = allowance(BUDGET, look_back // PATCH_LEN * channels) * PATCH_LEN
    return torch.full((batch,), points, device=window.values.device)


def _promises(forecaster: Accountable, test: Windows, seed: int) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    held, free = certificate(forecaster, test, generator), end_to_end(forecaster, test, generator)
    with torch.no_grad():
        bits = torch.cat([rate_bits(forecaster(window).explanation, PRIOR) for window, _ in test.batches(BATCH)])
    return [
        {
            "measure": "certificate",
            "windows": len(test),
            "replay_bits": int(held.replay_bits.sum()),
            "scramble_bits": int(held.scramble_bits.sum()),
            "compared": held.compared,
            "scrambled": held.scrambled,
        },
        {
            "measure": "sensitivity",
            "windows": len(test),
            "relative": free.relative,
            "gates_relative": free.gates_relative,
            "masks_changed": free.masks_changed,
        },
        {"measure": "rate", "windows": len(test), "prior": PRIOR, "bits": float(bits.mean())},
    ]


@torch.no_grad()
def _gates(forecaster: Accountable, test: Windows) -> list[dict[str, Any]]:
    """How often each gate opens over evenly spaced windows, and the gates of the window in their middle."""
    chosen = evenly_spaced(GATE_WINDOWS, len(test))
    window = test.look_backs(test.starts[chosen.to(test.starts.device)])
    explanation: Explanation = forecaster(window).explanation
    middle = len(chosen) // 2
    return [
        {
            "measure": "gate_frequency",
            "windows": len(chosen),
            "frequency": _rounded(explanation.mask.double().mean(dim=0)),
        },
        {
            "measure": "gate_map",
            "window": int(chosen[middle]),
            "probability": _rounded(explanation.probability[middle]),
            "mask": explanation.mask[middle].int().tolist(),
        },
    ]


def _rounded(table: Float[Tensor, "patch channel"]) -> list[list[float]]:
    return [[round(value, 4) for value in line] for line in table.tolist()]


def flat(explainer: str, row: FidelityRow) -> dict[str, Any]:
    """A measurement of an explainer as a record holds it."""
    found = row.fidelity
    numbers = {
        "comprehensiveness": found.comprehensiveness,
        "clipped_comprehensiveness": found.clipped_comprehensiveness,
        "sufficiency": found.sufficiency,
    }
    return {
        "measure": "fidelity",
        "explainer": explainer,
        "gating": row.measure.gating,
        "space": row.measure.space,
        "shift": row.measure.shift,
        "aggregate": row.aggregate,
        "left_out": found.left_out,
    } | {name: None if isnan(value) else round(value, 6) for name, value in numbers.items()}
