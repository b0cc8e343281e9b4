"""The fidelity of a map: how far a forecast moves without the top-ranked points, and with only those.

Matched-budget fidelity with the paper's three corrections. Every map may name as many points as the native mask reads
in that window. The context is held. Deleted values become the model's own reference μ + σQ. docs/measures.md
explains the options and their defaults. Paper: tab:fidelity.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Accountable, Predictor
from ibforecast.core.errors import require, require_choice
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import closed_to_zero, spread
from ibforecast.core.window import Window

Shift = Literal["squared", "absolute", "l2"]
Space = Literal["frame", "output"]
Gating = Literal["regated", "frozen"]
Aggregate = Literal["ratio_of_means", "mean_of_ratios"]

LookBack = Float[Tensor, "batch look_back channel"]
Future = Float[Tensor, "batch horizon channel"]

SMALLEST_SHARE = 1e-3
"""A window whose all-deleted shift is at most this share of the mean is left out of a mean of ratios."""


@dataclass(frozen=True)
class Measure:
    """How the shift of a forecast is measured: its norm, its space, and whether gates run again or are held.

    `shift`: mean square, mean absolute value or Euclidean norm over horizon and channels. `space`: in units of the
    window's own scale ("frame"), or as forecast ("output"). `gating`: the forecaster decides again what to read of the
    perturbed window ("regated"), or its first mask is held ("frozen").
    """

    shift: Shift = "squared"
    space: Space = "frame"
    gating: Gating = "regated"

    def __post_init__(self) -> None:
        require_choice("shift", self.shift, get_args(Shift))
        require_choice("space", self.space, get_args(Space))
        require_choice("gating", self.gating, get_args(Gating))


@dataclass(frozen=True)
class Fidelity:
    """The scores of a map over a set of windows.

    All scores are NaN if no forecast moved even when everything was deleted. `left_out` is the number of windows whose
    forecast moved too little for a ratio.
    """

    comprehensiveness: float
    clipped_comprehensiveness: float
    sufficiency: float
    windows: int
    left_out: int = 0

    @property
    def score(self) -> float:
        """Comprehensiveness minus sufficiency."""
        return self.comprehensiveness - self.sufficiency

    @property
    def clipped_score(self) -> float:
        """Clipped comprehensiveness minus sufficiency: at most 1."""
        return self.clipped_comprehensiveness - self.sufficiency


@dataclass(frozen=True)
class Shifts:
    """How far each window's forecast moves: without its top points, with only these, and with everything deleted."""

    deleted: Float64[Tensor, " window"]
    kept: Float64[Tensor, " window"]
    all_deleted: Float64[Tensor, " window"]

    @classmethod
    def joined(cls, parts: Sequence["Shifts"]) -> "Shifts":
        """Join batches; every window counts once, for any size of its batch."""
        return cls(
            torch.cat([part.deleted for part in parts]),
            torch.cat([part.kept for part in parts]),
            torch.cat([part.all_deleted for part in parts]),
        )

    def fidelity(self, aggregate: Aggregate = "ratio_of_means", smallest_share: float = SMALLEST_SHARE) -> Fidelity:
        """Average over windows: the ratio of means, or the mean of the ratios of the windows that have one.

        Each window is clipped separately, so that an excess in one window cannot offset a shortfall in another.
        """
        require_choice("aggregate", aggregate, get_args(Aggregate))
        average = self._ratio_of_means if aggregate == "ratio_of_means" else self._mean_of_ratios
        moved = self.all_deleted > smallest_share * self.all_deleted.mean()
        return Fidelity(
            comprehensiveness=average(self.deleted, moved),
            clipped_comprehensiveness=average(self.deleted.minimum(self.all_deleted), moved),
            sufficiency=average(self.kept, moved),
            windows=len(moved),
            left_out=0 if aggregate == "ratio_of_means" else int((~moved).sum()),
        )

    def _ratio_of_means(self, part: Float64[Tensor, " window"], moved: Bool[Tensor, " window"]) -> float:
        return float(part.sum() / self.all_deleted.sum())

    def _mean_of_ratios(self, part: Float64[Tensor, " window"], moved: Bool[Tensor, " window"]) -> float:
        return float((part / self.all_deleted)[moved].mean())


@dataclass(frozen=True)
class Perturbed:
    """Forecasts of windows as they are, without their top points, with only these, and with everything deleted."""

    whole: Future
    deleted: Future
    kept: Future
    all_deleted: Future
    scale: Float[Tensor, "batch channel"]

    def shifts(self, shift: Shift = "squared", space: Space = "frame") -> Shifts:
        """Return how far the perturbed forecasts are from the unperturbed one."""
        unit = self.scale if space == "frame" else torch.ones_like(self.scale)
        return Shifts(
            *(shift_size(other, self.whole, unit, shift) for other in (self.deleted, self.kept, self.all_deleted))
        )


def shift_size(
    one: Future, other: Future, unit: Float[Tensor, "batch channel"], shift: Shift = "squared"
) -> Float64[Tensor, " batch"]:
    """Return the distance of two forecasts of each window, with each channel in its unit."""
    moved = (one.double() - other.double()) / unit.double()[:, None]
    if shift == "squared":
        return (moved**2).mean(dim=(1, 2))
    return moved.abs().mean(dim=(1, 2)) if shift == "absolute" else torch.linalg.vector_norm(moved, dim=(1, 2))


def native_points(explanation: Explanation) -> Int[Tensor, " batch"]:
    """Return the number of points the native mask reads in each window: the budget of every map."""
    return explanation.open_count * _patch_len(explanation)


def native_importance(explanation: Explanation) -> LookBack:
    """Return the explanation as a map: open tokens rank above closed ones, and by probability within both."""
    return spread(explanation.mask + explanation.probability, _patch_len(explanation))


def _patch_len(explanation: Explanation) -> int:
    return explanation.evidence.shape[1] // explanation.mask.shape[1]


def top_points(
    importance: LookBack, observed: Bool[Tensor, "batch look_back channel"], points: Int[Tensor, " batch"]
) -> Bool[Tensor, "batch look_back channel"]:
    """Mark the `points` most important values of each window, earlier ones first among equals, no missing ones."""
    require(
        bool(importance.isfinite().all()),
        "importance must be finite",
        "NaN or infinite values",
        "check the explainer for divisions by zero",
    )
    order = importance.masked_fill(~observed, -torch.inf).flatten(1).argsort(dim=1, descending=True, stable=True)
    return (order.argsort(dim=1) < points[:, None]).view_as(observed) & observed


@torch.no_grad()
def perturb(
    predictor: Predictor,
    window: Window,
    importance: LookBack,
    points: Int[Tensor, " batch"],
    gating: Gating = "regated",
) -> Perturbed:
    """Forecast the windows with their top points deleted, with only these, and with everything deleted.

    The context, with its frame, is held; `observed` does not change.
    """
    held = predictor.context(window)
    top, reference = top_points(importance, window.observed, points), held.reference(window.values.shape[1])
    forecast = (_regated if gating == "regated" else _frozen)(predictor, window, held)
    return Perturbed(
        whole=forecast(window.values),
        deleted=forecast(reference.where(top, window.values)),
        kept=forecast(window.values.where(top, reference)),
        all_deleted=forecast(reference),
        scale=held.scale,
    )


def _regated(predictor: Predictor, window: Window, held: Context) -> Callable[[LookBack], Future]:
    """Return a function that forecasts other values in the same context, with gates deciding again."""

    def forecast(values: LookBack) -> Future:
        moved: Future = predictor(replace(window, values=values), held).values
        return moved

    return forecast


def _frozen(predictor: Predictor, window: Window, held: Context) -> Callable[[LookBack], Future]:
    """Return a function that forecasts other values with the mask of the unperturbed window."""
    require(
        isinstance(predictor, Accountable),
        "holding the mask needs a forecaster that replays explanations",
        f"a {type(predictor).__name__}",
        'use gating="regated"',
    )
    assert isinstance(predictor, Accountable)
    first: Explanation = predictor(window, held).explanation
    return lambda values: predictor.replay(
        replace(first, evidence=closed_to_zero(first.mask, first.context.remove(values)))
    )


@dataclass(frozen=True)
class FidelityRow:
    """One map's fidelity by one measure."""

    measure: Measure
    aggregate: Aggregate
    fidelity: Fidelity


def every_shift(
    predictor: Predictor, window: Window, importance: LookBack, points: Int[Tensor, " batch"]
) -> dict[Measure, Shifts]:
    """Measure a batch by every measure, from four forecasts with gates run again and four with the mask held.

    A predictor that cannot replay has no mask to hold, so only gates run again.
    """
    gatings = get_args(Gating) if isinstance(predictor, Accountable) else ("regated",)
    forecasts = {gating: perturb(predictor, window, importance, points, gating) for gating in gatings}
    return {
        Measure(shift, space, gating): forecasts[gating].shifts(shift, space)
        for gating, space, shift in product(gatings, get_args(Space), get_args(Shift))
    }


def every_fidelity(batches: Sequence[Mapping[Measure, Shifts]]) -> list[FidelityRow]:
    """Join the batches of `every_shift` and average them both ways: one row per measure and average."""
    return [
        FidelityRow(measure, aggregate, Shifts.joined([batch[measure] for batch in batches]).fidelity(aggregate))
        for measure, aggregate in product(batches[0], get_args(Aggregate))
    ]
