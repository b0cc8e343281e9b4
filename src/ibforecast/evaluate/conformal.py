"""The widths of intervals: split conformal by step and channel, and its variant that follows a drift.

A score is an error in units of its window's own scale σ. The widths come from the scores of windows that were not
trained on. If those windows and the next are exchangeable, an interval contains the truth at least as often as its
level says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Predictor
from ibforecast.core.errors import require
from ibforecast.data.windows import Windows

Level = int | float
"""How often an interval should contain the truth, in percent."""

LEVELS = (*range(5, 90, 5), *range(90, 100))
"""The levels whose quantiles are kept, in percent; for a level in between, the next higher one is used."""

FEW_WINDOWS = 20
"""With fewer windows, a calibration has a warning: a level of 95 % needs 19, and one of 80 % is off by 9 points."""

USUAL_LEVEL = 80
"""The level, in percent, by which a warning describes how far off levels may be."""

PACE = 0.02
"""The share of its calibrated width by which a tracked interval adapts; chosen on validation windows."""


@dataclass(frozen=True)
class Calibration:
    """Quantiles of the scores of windows not trained on, by level (`LEVELS`), step and channel.

    A quantile is infinite if there are too few windows for its level. `since` is the first moment these windows
    forecast: rows from there on were not trained on.
    """

    quantiles: Float[Tensor, "level horizon channel"]
    windows: int
    since: str

    @classmethod
    def of(cls, scores: Float[Tensor, "window horizon channel"], since: str) -> "Calibration":
        """Return the calibration from these scores."""
        return cls(quantiles(scores, LEVELS), len(scores), since)

    @property
    def highest_level(self) -> int:
        """The highest level with enough windows for every step and channel; 0 if there is none."""
        enough = self.quantiles.isfinite().all(dim=2).all(dim=1).tolist()
        return max((level for level, finite in zip(LEVELS, enough, strict=True) if finite), default=0)

    @property
    def warning(self) -> str:
        """A line on how few windows affect the intervals, and what to do; empty if there are enough."""
        if self.windows >= FEW_WINDOWS:
            return ""
        # How often an interval of n windows contains the truth has a beta distribution; this is its spread.
        share = USUAL_LEVEL / 100
        points = round(100 * sqrt(share * (1 - share) / (self.windows + 2)))
        windows = "1 window" if self.windows == 1 else f"{self.windows} windows"
        return (
            f"intervals are rough: they were calibrated on only {windows}, "
            f"so their highest level is {self.highest_level} %, and one of {USUAL_LEVEL} % may contain the truth about "
            f"{points} points less or more often than that; give a longer table or a larger validation part, or "
            "calibrate again on later rows (ibforecast calibrate)"
        )

    def half_width(self, level: Level) -> Float[Tensor, "horizon channel"]:
        """Return how far an interval of this level reaches on either side of the forecast, in units of the scale."""
        return self.quantiles[next(place for place, known in enumerate(LEVELS) if known >= level)]


def checked_levels(level: Level | Sequence[Level]) -> tuple[float, ...]:
    """Return one or several levels as percentages in increasing order, without repeats; refuse invalid ones."""
    levels = sorted({float(one) for one in ([level] if isinstance(level, int | float) else level)})
    wrong = [one for one in levels if not 1 <= one <= LEVELS[-1]]
    fraction = bool(wrong) and 1 <= 100 * wrong[0] <= LEVELS[-1]
    require(
        bool(levels) and not wrong,
        f"a level must be a percentage from 1 to {LEVELS[-1]}",
        f"{wrong[0]:g}" if wrong else "none",
        f"try {100 * wrong[0]:g}" if fraction else "try [80, 95]",
    )
    return tuple(levels)


@torch.no_grad()
def scores(predictor: Predictor, windows: Windows, batch: int = 1024) -> Float[Tensor, "window horizon target"]:
    """Return |error| / σ of every window and forecast channel, on the CPU.

    A score is NaN if the truth is missing, or if the channel has no value where it could be read.
    """
    targets = windows.values.shape[1] - windows.past
    parts = [torch.empty(0, windows.horizon, targets)]  # so that no windows at all give an empty result
    batch = windows.at_once(batch)
    reads = torch.split(windows.read(), batch)  # one empty part if there are no windows
    for (window, target), read in zip(windows.batches(batch), reads, strict=False):
        off = (predictor(window).values - target.values).abs() / predictor.context(window).scale[:, None]
        known = target.observed & read[:, None]
        parts.append(off.where(known, torch.nan)[..., :targets].cpu())
    return torch.cat(parts)


def quantiles(
    scores: Float[Tensor, "window horizon channel"], levels: Sequence[Level]
) -> Float[Tensor, "level horizon channel"]:
    """Return the ⌈(n+1)·level⌉-th smallest of the n known scores per step and channel; infinity if n is too small."""
    share = torch.tensor(levels, dtype=torch.float64)[:, None] / 100
    return torch.stack([_ranked(step, share) for step in scores.unbind(dim=1)], dim=1)


def _ranked(scores: Float[Tensor, "window channel"], share: Float[Tensor, "level 1"]) -> Float[Tensor, "level channel"]:
    known = (~scores.isnan()).sum(dim=0)
    place = ((known + 1) * share - 1e-9).ceil().long()  # rounding may lift a whole number slightly above itself
    ranked = scores.sort(dim=0).values  # NaN comes last
    return ranked.gather(0, (place - 1).clamp(max=len(scores) - 1)).where(place <= known, torch.inf)


def tracked(
    start: Float[Tensor, "horizon channel"], scores: Float[Tensor, "window horizon channel"], level: Level
) -> Float[Tensor, "window_and_next horizon channel"]:
    """Return the half-widths at each of these consecutive windows and at the next one, beginning with `start`.

    The truth of step h, counted from 0, is known h + 1 windows later. The interval of that step then widens if it
    missed the truth and narrows a little if it did not. The proportion of the two makes the misses average to what the
    level allows, even if the data drift.
    """
    windows, horizon, _ = scores.shape
    missed_at, step = 1 - level / 100, torch.arange(horizon)
    widths = start.repeat(horizon + windows + 1, 1, 1)  # the first `horizon` precede the first window
    known = torch.cat([scores.new_full((horizon, *start.shape), torch.nan), scores])
    for now in range(horizon + 1, len(widths)):
        made = now - 1 - step  # for each step, the latest window whose truth is known
        late, then = known[made, step], widths[made, step]
        change = (late > then).to(late.dtype) - missed_at
        widths[now] = (widths[now - 1] + PACE * start * change.where(~late.isnan(), 0.0)).clamp(min=0.0)
    return widths[horizon:]


def inside(
    scores: Float[Tensor, "window horizon channel"], half_widths: Float[Tensor, "#window horizon channel"]
) -> Float[Tensor, "window horizon channel"]:
    """Return 1 where the interval contains the truth, 0 where it does not, NaN where the truth is unknown."""
    return (scores <= half_widths).to(scores.dtype).where(~scores.isnan(), torch.nan)


@torch.no_grad()
def scales(predictor: Predictor, windows: Windows, batch: int = 1024) -> Float[Tensor, "window target"]:
    """Return σ of every window and forecast channel, on the CPU: it converts half-widths to the data's units."""
    parts = [predictor.context(window).scale.cpu() for window, _ in windows.batches(batch)]
    return torch.cat(parts)[:, : windows.values.shape[1] - windows.past]
