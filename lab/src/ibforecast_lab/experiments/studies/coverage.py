"""Do intervals keep their level? Coverage and width on test windows, calibrated on validation windows."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import require
from ibforecast.evaluate.conformal import inside, quantiles, scales, scores, tracked
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts

MEASURED = (80, 95)


def study(forecaster: Forecaster, parts: Parts, cell: Cell) -> list[dict[str, Any]]:
    """Measure both variants: widths as calibrated, and tracked from the first validation to the last test window.

    The widths at a window depend only on values known when it ended. Windows between the two parts are tracked too.
    """
    require(
        parts.support is None,
        "coverage needs windows that follow each other in time",
        cell.data,
        "use a data set of the catalogue",
    )
    first, test = int(parts.validation.starts[0]), parts.test
    every_score = scores(forecaster, test.at(range(first, int(test.starts[-1]) + 1)))
    measured, scale = every_score[-len(test) :], scales(forecaster, test)
    rows = []
    for level, start in zip(MEASURED, quantiles(scores(forecaster, parts.validation), MEASURED), strict=True):
        rows.append(_row("plain", level, measured, start[None], scale))
        rows.append(_row("adaptive", level, measured, tracked(start, every_score, level)[-len(test) - 1 : -1], scale))
    return rows


def _row(
    variant: str,
    level: int,
    measured: Float[Tensor, "window horizon channel"],
    half_widths: Float[Tensor, "#window horizon channel"],
    scale: Float[Tensor, "window channel"],
) -> dict[str, Any]:
    """Return the coverage of all values and of the worst channel, and the mean width in standardised units."""
    covered = inside(measured, half_widths).double()
    return {
        "measure": "coverage",
        "variant": variant,
        "level": level,
        "windows": len(measured),
        "coverage": round(float(covered.nanmean()), 6),
        "worst_channel": round(float(covered.nanmean(dim=(0, 1)).min()), 6),
        "width": round(float((2 * half_widths * scale[:, None]).double().mean()), 6),
    }
