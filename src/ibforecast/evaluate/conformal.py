"""How wide an interval must be: split conformal by step and channel, and its variant that follows a drift.

A score is an error in units of its window's own scale σ. Scores of windows that were not trained on give the widths;
if those windows and the next are exchangeable, the truth lies within the interval of a level at least that often.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Predictor
from ibforecast.core.errors import require
from ibforecast.data.windows import Windows

Level = int | float
"""How often the truth is to lie within an interval, in percent."""

LEVELS = (*range(5, 90, 5), *range(90, 100))
"""The levels whose quantiles are kept, in percent; one in between gets the next above."""

PACE = 0.02
"""By how much of its calibrated width a tracked interval grows when it is missed; chosen on validation windows."""


@dataclass(frozen=True)
class Calibration:
    """Quantiles of the scores of windows not trained on, by level (`LEVELS`), step and channel.

    A quantile is infinite where there are too few windows for its level. `since` is the first moment these windows
    forecast: what a table holds from there on was not trained on.
    """

    quantiles: Float[Tensor, "level horizon channel"]
    windows: int
    since: str

    @classmethod
    def of(cls, scores: Float[Tensor, "window horizon channel"], since: str) -> "Calibration":
        """Keep what intervals need of these scores."""
        return cls(quantiles(scores, LEVELS), len(scores), since)

    @property
    def highest_level(self) -> int:
        """The highest level there were windows enough for at every step, 0 where for none."""
        enough = self.quantiles.isfinite().all(dim=2).all(dim=1).tolist()
        return max((level for level, finite in zip(LEVELS, enough, strict=True) if finite), default=0)

    def half_width(self, level: Level) -> Float[Tensor, "horizon channel"]:
        """How far an interval of this level reaches to either side of the forecast, in units of the scale."""
        return self.quantiles[next(place for place, known in enumerate(LEVELS) if known >= level)]


def checked_levels(level: Level | Sequence[Level]) -> tuple[float, ...]:
    """One level or several as percentages in rising order, each once; one that cannot be is refused."""
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
    """|error| / σ of every window and channel that is forecast, on the CPU.

    NaN where the truth is missing, or a channel's whole look-back, of which nothing can be made.
    """
    targets = windows.values.shape[1] - windows.past
    found = [torch.empty(0, windows.horizon, targets)]
    for window, target in windows.batches(batch):
        off = (predictor(window).values - target.values).abs() / predictor.context(window).scale[:, None]
        known = target.observed & window.observed.any(dim=1, keepdim=True)
        found.append(off.where(known, torch.nan)[..., :targets].cpu())
    return torch.cat(found)


def quantiles(
    scores: Float[Tensor, "window horizon channel"], levels: Sequence[Level]
) -> Float[Tensor, "level horizon channel"]:
    """The ⌈(n+1)·level⌉-th smallest of the n known scores of each step and channel; infinite where n is too small."""
    share = torch.tensor(levels, dtype=torch.float64)[:, None] / 100
    return torch.stack([_ranked(step, share) for step in scores.unbind(dim=1)], dim=1)


def _ranked(scores: Float[Tensor, "window channel"], share: Float[Tensor, "level 1"]) -> Float[Tensor, "level channel"]:
    known = (~scores.isnan()).sum(dim=0)
    place = ((known + 1) * share - 1e-9).ceil().long()  # what rounding adds to a whole number is not counted
    ranked = scores.sort(dim=0).values  # NaN comes last
    return ranked.gather(0, (place - 1).clamp(max=len(scores) - 1)).where(place <= known, torch.inf)


def tracked(
    start: Float[Tensor, "horizon channel"], scores: Float[Tensor, "window horizon channel"], level: Level
) -> Float[Tensor, "window_and_next horizon channel"]:
    """Half-widths in force at each of these consecutive windows and at the one after them, beginning with `start`.

    A step whose truth has become known, that is only after so many windows, widens its interval if it was missed and
    narrows it a little if it was not, in such a proportion that misses average to what the level allows, drift or not.
    """
    windows, horizon, _ = scores.shape
    missed_at, step = 1 - level / 100, torch.arange(horizon)
    widths = start.repeat(horizon + windows + 1, 1, 1)  # the first `horizon` stand before the first window
    known = torch.cat([scores.new_full((horizon, *start.shape), torch.nan), scores])
    for now in range(horizon + 1, len(widths)):
        told = now - 1 - step
        late, then = known[told, step], widths[told, step]
        change = (late > then).to(late.dtype) - missed_at
        widths[now] = (widths[now - 1] + PACE * start * change.where(~late.isnan(), 0.0)).clamp(min=0.0)
    return widths[horizon:]


def inside(
    scores: Float[Tensor, "window horizon channel"], half_widths: Float[Tensor, "#window horizon channel"]
) -> Float[Tensor, "window horizon channel"]:
    """1 where the truth lies within the interval, 0 where it does not, NaN where it is not known."""
    return (scores <= half_widths).to(scores.dtype).where(~scores.isnan(), torch.nan)


@torch.no_grad()
def scales(predictor: Predictor, windows: Windows, batch: int = 1024) -> Float[Tensor, "window target"]:
    """σ of every window and channel that is forecast, on the CPU: what turns a half-width into the data's units."""
    found = [predictor.context(window).scale.cpu() for window, _ in windows.batches(batch)]
    return torch.cat(found)[:, : windows.values.shape[1] - windows.past]
