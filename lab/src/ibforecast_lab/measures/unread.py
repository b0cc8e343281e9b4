"""Windows that react when every unread value is replaced and the whole model runs again, with nothing held."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import inf, nan

import torch
from jaxtyping import Bool
from torch import Tensor

from ibforecast.core.contracts import Accountable
from ibforecast.core.errors import require
from ibforecast.core.explanation import Forecast
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.verification import changed_bits

Marks = Bool[Tensor, " window"]

CONSTANTS = {"NaN": nan, "+1e30": 1e30, "-1e30": -1e30, "+inf": inf, "-inf": -inf}
KINDS = ("noise", *CONSTANTS, "another window", "mixed", "unobserved")
"""The kinds of replacement, in the order in which `scrambles` yields them."""


@dataclass(frozen=True)
class Reaction:
    """Marks of the windows whose mask, context (level and scale) or forecast changed in any bit.

    `anything` also counts the evidence and the probabilities of the gates.
    """

    mask: Marks
    context: Marks
    forecast: Marks
    anything: Marks


def scrambles(
    window: Window, mask: Bool[Tensor, "batch patch channel"], donor: Window, generator: torch.Generator
) -> Iterator[tuple[str, Window]]:
    """Yield the window with every unread value replaced, once for each kind of replacement.

    A gap stays a gap, because filling one in a place that is read changes what is read; the value that lies in the gap
    is replaced too. "mixed" replaces each value by one of the other kinds at random, "unobserved" removes all of them.
    """
    values = window.values
    read = spread(mask, values.shape[1] // mask.shape[1])
    size = 10 * (values.abs().amax() + 1)
    others = {
        "noise": size * torch.randn(values.shape, generator=generator).to(values),
        **{name: torch.full_like(values, value) for name, value in CONSTANTS.items()},
        "another window": donor.values,
    }
    drawn = torch.randint(len(others), (1, *values.shape), generator=generator).to(values.device)
    others["mixed"] = torch.stack(list(others.values())).gather(0, drawn)[0]
    for name, other in others.items():
        yield name, replace(window, values=values.where(read, other))
    yield "unobserved", replace(window, values=values.where(read, others["NaN"]), observed=window.observed & read)


@torch.no_grad()
def reactions(
    forecaster: Accountable, windows: Windows, generator: torch.Generator, batch: int = 1024
) -> dict[str, Reaction]:
    """Run every window again with its unread values replaced, and mark the windows that react, by kind.

    Batches are compared with batches of the same windows, so that only the unread values can make a difference. The
    donor of each window is drawn from all others.
    """
    total = len(windows)
    require(total >= 2, "scrambling needs a second window", f"{total} windows", "measure more of them")
    donors = (torch.arange(total) + torch.randint(1, total, (total,), generator=generator)) % total
    # Written in place: small results kept between large ones would fragment the memory of a long run.
    marks = torch.zeros(len(KINDS), len(fields(Reaction)), total, dtype=torch.bool)
    for first, (window, _) in zip(range(0, total, batch), windows.batches(batch), strict=True):
        donor = windows.look_backs(windows.starts[donors[first : first + batch].to(windows.starts.device)])
        own = forecaster(window)
        for number, (_, other) in enumerate(scrambles(window, own.explanation.mask, donor, generator)):
            marks[number, :, first : first + batch] = _marks(own, forecaster(other))
    return {kind: Reaction(*each) for kind, each in zip(KINDS, marks, strict=True)}


def _marks(own: Forecast, again: Forecast) -> Bool[Tensor, "4 window"]:
    """Mark the windows of a batch that differ, in the order of the fields of `Reaction`."""
    before, after = own.explanation, again.explanation
    assert before is not None
    assert after is not None
    mask = (before.mask != after.mask).flatten(1).any(dim=1).cpu()
    context = _differ(before.context.level[:, None], after.context.level[:, None])
    context |= _differ(before.context.scale[:, None], after.context.scale[:, None])
    forecast = _differ(own.values, again.values)
    read = _differ(before.evidence, after.evidence) | _differ(before.probability, after.probability)
    return torch.stack([mask, context, forecast, mask | context | forecast | read])


def _differ(one: Tensor, other: Tensor) -> Marks:
    return changed_bits(one, other) > 0
