"""The effect of closed tokens: none with context and mask held, and some if gates and frame react.

The first is the certificate, exact and conditional. The second is the end-to-end sensitivity, which the certificate
does not bound and which is therefore measured.
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
    """Bits of each window's forecast that changed: on replaying it, and on scrambling closed tokens.

    `compared` is the number of forecast values compared, `scrambled` the number of closed points set to noise.
    """

    replay_bits: Int64[Tensor, " window"]
    scramble_bits: Int64[Tensor, " window"]
    compared: int
    scrambled: int

    @property
    def holds(self) -> bool:
        """Whether no bit changed."""
        return not (self.replay_bits.any() or self.scramble_bits.any())


@dataclass(frozen=True)
class Sensitivity:
    """Squared shift of each window's forecast, in units of its scale, when closed tokens come from another window.

    `gates_free`: the context is held and the gates decide again. `all_free`: level and scale react as well.
    `all_deleted` is the reference: everything deleted, context held, gates free.
    """

    gates_free: Float64[Tensor, " window"]
    all_free: Float64[Tensor, " window"]
    all_deleted: Float64[Tensor, " window"]
    mask_changed: Bool[Tensor, " window"]

    @property
    def relative(self) -> float:
        """Mean shift with everything free over the mean all-deleted shift; NaN if nothing moves."""
        return float(self.all_free.sum() / self.all_deleted.sum())

    @property
    def gates_relative(self) -> float:
        """The same with the context held: the effect of only the gates."""
        return float(self.gates_free.sum() / self.all_deleted.sum())

    @property
    def masks_changed(self) -> float:
        """Fraction of windows whose mask changes with everything free."""
        return float(self.mask_changed.double().mean())


@torch.no_grad()
def certificate(
    forecaster: Accountable, windows: Windows, generator: torch.Generator, batch: int = 1024
) -> Certificate:
    """Replay every window's forecast, unchanged and with noise in its closed tokens, with context and mask held.

    Batches are compared with batches of the same shape, so that only the closed tokens can make a difference.
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
    """Return the window with the deviations of another one in its closed tokens, at its own level, scale and season.

    Every closed token then contains realistic values, with steps in order and channels from the same moment; gaps of
    the donor become the seasonal pattern.
    """
    context, look_back = explanation.context, window.values.shape[1]
    deviation = donor_context.remove(donor.values).where(donor.observed, donor.values.new_zeros(()))
    moved = context.reference(look_back) + context.scale[:, None] * deviation
    return window.values.where(spread(explanation.mask, look_back // explanation.mask.shape[1]), moved)


@torch.no_grad()
def end_to_end(predictor: Predictor, windows: Windows, generator: torch.Generator, batch: int = 1024) -> Sensitivity:
    """Forecast every window again with another window's deviations in its closed tokens, everything free to react.

    Every window gets one donor, drawn from all others before the first batch, so the size of batches has no effect.
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
        "scrambling closed tokens needs forecasts with explanations",
        f"a {type(predictor).__name__} without explanation",
        "measure a forecaster that explains itself",
    )
    assert explanation is not None
    return explanation
