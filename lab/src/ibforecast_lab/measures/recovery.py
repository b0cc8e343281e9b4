"""How well a map recovers the planted support: AUROC, AUP and AUR. Paper: tab:gtmetrics."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from ibforecast.core.errors import require


@dataclass(frozen=True)
class Areas:
    """Three areas under curves for each row of scores; NaN if all cells of the row are true or all are false.

    `auroc` is the probability that a true cell outranks a false one; ties count half. `aup` and `aur` are the areas of
    precision and of recall *against the threshold*, which runs over the scores: both reward high scores, not only a
    good order.
    """

    auroc: Float64[Tensor, " row"]
    aup: Float64[Tensor, " row"]
    aur: Float64[Tensor, " row"]


@dataclass(frozen=True)
class Scores:
    """AUROC, AUP and AUR as three numbers."""

    auroc: float
    aup: float
    aur: float


@dataclass(frozen=True)
class Recovery:
    """Scores of a map: pooled over the cells of all windows, which is the headline, and window by window."""

    pooled: Scores
    by_window: Areas

    @property
    def mean(self) -> Scores:
        """Average over the windows that have both true and false cells."""
        areas = self.by_window
        return Scores(*(float(area.nanmean()) for area in (areas.auroc, areas.aup, areas.aur)))

    @property
    def undefined(self) -> int:
        """Number of windows whose cells are all true or all false."""
        return int(self.by_window.auroc.isnan().sum())


def recovery(
    importance: Float[Tensor, "batch look_back channel"], truth: Bool[Tensor, "batch look_back channel"]
) -> Recovery:
    """Score maps against the planted support, each rescaled to [0, 1] by its own smallest and largest value."""
    require(
        bool(importance.isfinite().all()),
        "importance must be finite",
        "NaN or infinite values",
        "check the explainer for a division by zero",
    )
    require(
        bool(truth.any()) and not bool(truth.all()),
        "truth must mark some cells and not all",
        f"{int(truth.sum())} of {truth.numel()} marked",
        "plant a support, or score other windows",
    )
    scores, marks = to_unit_range(importance).flatten(1), truth.flatten(1)
    pooled = areas(scores.reshape(1, -1), marks.reshape(1, -1))
    return Recovery(Scores(*(float(area) for area in (pooled.auroc, pooled.aup, pooled.aur))), areas(scores, marks))


def to_unit_range(
    importance: Float[Tensor, "batch look_back channel"],
) -> Float64[Tensor, "batch look_back channel"]:
    """Rescale every window's map to [0, 1] by its smallest and largest value; a constant map becomes zero."""
    scores = importance.double()
    low, high = scores.amin(dim=(1, 2), keepdim=True), scores.amax(dim=(1, 2), keepdim=True)
    return ((scores - low) / (high - low)).where(high > low, 0.0)


def areas(scores: Float64[Tensor, "row cell"], truth: Bool[Tensor, "row cell"]) -> Areas:
    """Return the three areas of every row; ties are one threshold, and constant scores give AUP = AUR = 0."""
    thresholds, places = scores.sort(dim=1)
    marks = truth.gather(1, places).double()
    below = torch.searchsorted(thresholds, thresholds)
    up_to = torch.searchsorted(thresholds, thresholds, right=True)
    positives, negatives = marks.sum(dim=1), (1 - marks).sum(dim=1)
    hits = marks.flip(1).cumsum(1).flip(1).gather(1, below)
    precision, recall = hits / (scores.shape[1] - below), hits / positives[:, None]
    # AUROC is the Mann-Whitney statistic; tied cells share the mean of their ranks.
    middle_rank = (below + up_to + 1) / 2
    auroc = ((middle_rank * marks).sum(dim=1) - positives * (positives + 1) / 2) / (positives * negatives)
    both = (positives > 0) & (negatives > 0)
    return Areas(
        *(
            area.where(both, torch.nan)
            for area in (auroc, torch.trapezoid(precision, thresholds), torch.trapezoid(recall, thresholds))
        )
    )
