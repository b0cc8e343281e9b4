"""What closed tokens can do: nothing with context and mask held, and how much once gates and frame may react.

The first is the certificate, exact and conditional; the second is what it does not promise, measured beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from ibforecast.core.context import Context
from ibforecast.core.contracts import Accountable, Predictor
from ibforecast.core.errors import require
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.fidelity import shift_size
from ibforecast.evaluate.verification import changed_bits, replays


@dataclass(frozen=True)
class Certificate:
    """Bits of each window's forecast that changed: on replaying it, and on scrambling what was closed.

    `compared` is how many forecast values were looked at, `scrambled` how many closed points held noise.
    """

    replay_bits: Int64[Tensor, " window"]
    scramble_bits: Int64[Tensor, " window"]
    compared: int
    scrambled: int

    @property
    def holds(self) -> bool:
        """Whether not a single bit changed."""
        return not (self.replay_bits.any() or self.scramble_bits.any())


@dataclass(frozen=True)
class Sensitivity:
    """Squared shift of each window's forecast, in units of its scale, when closed tokens come from another window.

    `gates_free`: the context is held and the gates decide anew. `all_free`: level and scale react as well.
    `all_deleted` is the yardstick: everything deleted, context held, gates free.
    """

    gates_free: Float64[Tensor, " window"]
    all_free: Float64[Tensor, " window"]
    all_deleted: Float64[Tensor, " window"]
    mask_changed: Bool[Tensor, " window"]

    @property
    def relative(self) -> float:
        """Mean shift with everything free over the mean all-deleted shift; NaN where nothing moves at all."""
        return float(self.all_free.sum() / self.all_deleted.sum())

    @property
    def gates_relative(self) -> float:
        """The same with the context held: what the gates alone pass on."""
        return float(self.gates_free.sum() / self.all_deleted.sum())

    @property
    def masks_changed(self) -> float:
        """Fraction of windows whose mask is another one, everything free."""
        return float(self.mask_changed.double().mean())


@torch.no_grad()
def certificate(
    forecaster: Accountable, windows: Windows, generator: torch.Generator, batch: int = 1024
) -> Certificate:
    """Replay every window's forecast, as it is and with noise in its closed tokens, context and mask held.

    Batches are compared with batches of the same shape, so nothing but the closed tokens can make a difference.
    """
    replayed, moved, compared, closed = [], [], 0, 0
    for window, _ in windows.batches(batch):
        forecast = forecaster(window)
        explanation = _explained(forecast.explanation, forecaster)
        again, noisy = replays(forecaster, window, explanation, generator)
        replayed.append(changed_bits(again, forecast.values))
        moved.append(changed_bits(noisy, again))
        compared += again.numel()
        closed += int((~explanation.mask).sum()) * (window.values.shape[1] // explanation.mask.shape[1])
    return Certificate(torch.cat(replayed), torch.cat(moved), compared, closed)


def resampled(
    window: Window, explanation: Explanation, donor: Window, donor_context: Context
) -> Float[Tensor, "batch look_back channel"]:
    """The window with the deviations of another one in its closed tokens, at its own level, scale and season.

    So every closed token holds what such a token does hold in this data, steps in their order and channels together;
    where the donor has a gap, it follows the pattern.
    """
    context, look_back = explanation.context, window.values.shape[1]
    deviation = donor_context.remove(donor.values).where(donor.observed, donor.values.new_zeros(()))
    moved = context.reference(look_back) + context.scale[:, None] * deviation
    return window.values.where(spread(explanation.mask, look_back // explanation.mask.shape[1]), moved)


@torch.no_grad()
def end_to_end(predictor: Predictor, windows: Windows, generator: torch.Generator, batch: int = 1024) -> Sensitivity:
    """Put other windows' deviations into the closed tokens of every window and forecast it again, all free to react.

    Every window gets one donor, drawn from all others before the first batch: sizes of batches change nothing.
    """
    total = len(windows)
    require(total >= 2, "resampling needs a second window", f"{total} windows", "measure more of them")
    donors = (torch.arange(total) + torch.randint(1, total, (total,), generator=generator)) % total
    parts: list[Sensitivity] = []
    for first, (window, _) in zip(range(0, total, batch), windows.batches(batch), strict=True):
        donor = windows.look_backs(windows.starts[donors[first : first + batch].to(windows.starts.device)])
        forecast = predictor(window)
        explanation = _explained(forecast.explanation, predictor)
        held = explanation.context
        other = replace(window, values=resampled(window, explanation, donor, predictor.context(donor)))
        nothing = replace(window, values=held.reference(window.values.shape[1]))
        free = predictor(other)
        parts.append(
            Sensitivity(
                gates_free=shift_size(predictor(other, held).values, forecast.values, held.scale).cpu(),
                all_free=shift_size(free.values, forecast.values, held.scale).cpu(),
                all_deleted=shift_size(predictor(nothing, held).values, forecast.values, held.scale).cpu(),
                mask_changed=(free.explanation.mask != explanation.mask).flatten(1).any(dim=1).cpu(),
            )
        )
    return _joined(parts)


def _joined(parts: Sequence[Sensitivity]) -> Sensitivity:
    return Sensitivity(
        torch.cat([part.gates_free for part in parts]),
        torch.cat([part.all_free for part in parts]),
        torch.cat([part.all_deleted for part in parts]),
        torch.cat([part.mask_changed for part in parts]),
    )


def _explained(explanation: Explanation | None, predictor: Predictor) -> Explanation:
    require(
        explanation is not None,
        "scrambling what was not read needs forecasts that say what was",
        f"a {type(predictor).__name__} without explanation",
        "measure a forecaster that explains itself",
    )
    assert explanation is not None
    return explanation
