"""Does a model choose what it reads? Its errors with each window's own mask, another window's, and one for all."""

from typing import Any

import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import require
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.model.network import IBForecast
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts, steps_per_day
from ibforecast_lab.measures.choice import block_means, blocks_of, errors_through, masks_of, usual_mask


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure the errors and the share of unusual tokens among those read, on all validation and test windows.

    In addition to the mean over windows, each error is averaged over blocks of windows, for intervals. Windows overlap
    if their starts are closer than the horizon, and days differ from each other. So a block is as long as the horizon
    or a day, whichever is longer.
    """
    require(
        isinstance(forecaster, IBForecast),
        "a study of the choice needs a model with gates",
        cell.recipe,
        "use a recipe for ibforecast",
    )
    assert isinstance(forecaster, IBForecast)
    steps = max(steps_per_day(cell.data), cell.horizon)
    rows = []
    for part, windows in (("validation", parts.validation), ("test", parts.test)):
        own = masks_of(forecaster, windows)
        usual = usual_mask(own, forecaster.config.allowance)
        order = torch.randperm(len(own), generator=torch.Generator().manual_seed(cell.seed)).to(own.device)
        masks = {"own": own, "another": own[order], "usual": usual.expand_as(own)}
        errors = {name: errors_through(forecaster, windows, mask) for name, mask in masks.items()}
        _check_own(forecaster, windows, errors["own"], cell)
        block = blocks_of(windows, steps)
        rows.append(
            {
                "measure": "choice",
                "part": part,
                "windows": len(own),
                **{name: float(error.mean()) for name, error in errors.items()},
                "unusual": float((own & ~usual).sum() / own.sum()),
                "blocks": {
                    "steps": steps,
                    "windows": torch.bincount(block).tolist(),
                    **{name: _short(block_means(error, block)) for name, error in errors.items()},
                },
            }
        )
    return rows


def _check_own(forecaster: IBForecast, windows: Windows, own: torch.Tensor, cell: Cell) -> None:
    """Refuse a model whose level and scale come from something else than `read_through` assumes."""
    expected = accuracy(forecaster, windows).squared_error
    require(
        torch.allclose(own, expected, rtol=1e-3, atol=1e-6),
        "a window read through its own mask must have its own error",
        f"a difference of up to {float((own - expected).abs().max()):.2g} with {cell.recipe}",
        "extend read_through in measures/choice.py to this kind of model",
    )


def _short(values: torch.Tensor) -> list[float]:
    """Return values with six significant digits, because a record has hundreds of them."""
    return [float(f"{value:.6g}") for value in values.tolist()]
