"""Are the explanations true? Fidelity of every explainer, certificate, sensitivity, unread values, rate and gates."""

from math import isnan
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ibforecast.core.budget import allowance
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.contracts import Accountable, Explainer, Forecaster
from ibforecast.core.explanation import Explanation
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.fidelity import FidelityRow, every_fidelity, every_shift, native_importance, native_points
from ibforecast.evaluate.information import rate_bits
from ibforecast.evaluate.sensitivity import certificate, end_to_end
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.studies.explainers import explainers_of
from ibforecast_lab.explainers.native import Native
from ibforecast_lab.measures.unread import reactions

FIDELITY_WINDOWS, GATE_WINDOWS, BATCH = 1024, 512, 256
BUDGET, PATCH_LEN, PRIOR = 0.2, 12, 0.2
"""The budget and patch length for forecasters without a budget, and the prior of the rate."""


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure fidelity on evenly spaced test windows, and promises on all of them."""
    chosen = evenly_spaced(FIDELITY_WINDOWS, len(parts.test))
    windows = spaced(parts.test)
    rows = [{"measure": "windows", "of": len(parts.test), "indices": " ".join(map(str, chosen.tolist()))}]
    for name, explainer in explainers_of(forecaster, windows.look_backs(windows.starts[:1])).items():
        rows += [flat(name, row) for row in fidelity(forecaster, windows, explainer, cell.seed)]
    if isinstance(forecaster, Accountable):
        rows += promises(forecaster, parts, cell)
        rows += _gates(forecaster, parts.test)
    return rows


def promises(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure on all test windows what closed tokens and unread values can change, and the rate."""
    assert isinstance(forecaster, Accountable)
    return _promised(forecaster, parts.test, cell.seed) + _unread(forecaster, parts.test, cell.seed)


def spaced(test: Windows) -> Windows:
    """Return the evenly spaced test windows on which fidelity is measured."""
    chosen = evenly_spaced(FIDELITY_WINDOWS, len(test))
    return test.at(test.starts[chosen.to(test.starts.device)].cpu().numpy())


def fidelity(forecaster: Forecaster, windows: Windows, explainer: Explainer, seed: int) -> list[FidelityRow]:
    """Measure an explainer's maps in every way, at the budget of each window's native mask."""
    generator = torch.Generator(windows.values.device).manual_seed(seed)
    batches = []
    for window, _ in windows.batches(BATCH):
        points = points_of(forecaster, window)
        share = points / window.values[0].numel()
        importance = explainer.explain(forecaster, window, share, generator).values
        if isinstance(forecaster, Accountable) and isinstance(explainer, Native):
            importance = native_importance(forecaster(window).explanation)  # among equal values, open tokens first
        batches.append(every_shift(forecaster, window, importance, points))
    return every_fidelity(batches)


@torch.no_grad()
def points_of(forecaster: Forecaster, window: Window) -> Int[Tensor, " batch"]:
    """Return the number of points that a map may name in each window: those that the native mask reads, or a budget."""
    explanation: Explanation | None = forecaster(window).explanation
    if explanation is not None:
        return native_points(explanation)
    batch, look_back, channels = window.values.shape
    points = allowance(BUDGET, look_back // PATCH_LEN * channels) * PATCH_LEN
    return torch.full((batch,), points, device=window.values.device)


def _promised(forecaster: Accountable, test: Windows, seed: int) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    fixed, free = certificate(forecaster, test, generator), end_to_end(forecaster, test, generator)
    with torch.no_grad():
        bits = torch.cat([rate_bits(forecaster(window).explanation, PRIOR) for window, _ in test.batches(BATCH)])
    return [
        {
            "measure": "certificate",
            "windows": len(test),
            "replay_bits": int(fixed.replay_bits.sum()),
            "scramble_bits": int(fixed.scramble_bits.sum()),
            "compared": fixed.compared,
            "scrambled": fixed.scrambled,
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


def _unread(forecaster: Accountable, test: Windows, seed: int) -> list[dict[str, Any]]:
    """Count the windows that change when their unread values are replaced and nothing is held, by kind."""
    return [
        {
            "measure": "unread",
            "kind": kind,
            "windows": len(test),
            "masks": int(reaction.mask.sum()),
            "contexts": int(reaction.context.sum()),
            "forecasts": int(reaction.forecast.sum()),
            "changed": int(reaction.anything.sum()),
        }
        for kind, reaction in reactions(forecaster, test, torch.Generator().manual_seed(seed)).items()
    ]


@torch.no_grad()
def _gates(forecaster: Accountable, test: Windows) -> list[dict[str, Any]]:
    """Measure how often each gate opens over evenly spaced windows, and the gates of the middle window."""
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
    """Return the fidelity of an explainer as a row of a record."""
    measured = row.fidelity
    numbers = {
        "comprehensiveness": measured.comprehensiveness,
        "clipped_comprehensiveness": measured.clipped_comprehensiveness,
        "sufficiency": measured.sufficiency,
    }
    return {
        "measure": "fidelity",
        "explainer": explainer,
        "gating": row.measure.gating,
        "space": row.measure.space,
        "shift": row.measure.shift,
        "aggregate": row.aggregate,
        "left_out": measured.left_out,
    } | {name: None if isnan(value) else round(value, 6) for name, value in numbers.items()}
