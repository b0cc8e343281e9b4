"""Occlusion: how far the forecast moves when one block of one channel is replaced by the reference."""

from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.errors import require, require_choice
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.explain.subject import Space, Subject, at_rest


@dataclass(frozen=True)
class Occlusion(Explainer):
    """Replaces each block of `patch_len` steps by the reference and grades it by the mean squared forecast shift.

    It needs no gradients: the predictor itself, with its hard decisions, is run once per block in the context of the
    intact window. The shift is measured in units of the window's scale or of the forecast, depending on `space`.
    `chunk` copies of the batch are run at once. With `chunk` 1 a value that cannot matter is graded exactly zero,
    otherwise zero up to rounding.
    """

    patch_len: int = 12
    space: Space = "frame"
    chunk: int = 8

    def __post_init__(self) -> None:
        require(self.patch_len >= 1, "patch_len must be at least 1", f"patch_len={self.patch_len}", "try 12")
        require(self.chunk >= 1, "chunk must be at least 1", f"chunk={self.chunk}", "try 8")
        require_choice("space", self.space, get_args(Space))

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value by the grade of its block."""
        batch, look_back, channels = window.values.shape
        fitting = [str(steps) for steps in range(1, look_back) if look_back % steps == 0]
        require(
            look_back % self.patch_len == 0,
            "patch_len must divide look_back",
            f"patch_len={self.patch_len}, look_back={look_back}",
            f"try one of {', '.join(fitting)}",
        )
        numbers = torch.arange(look_back // self.patch_len * channels, device=window.values.device)
        block = spread(numbers.view(1, -1, channels), self.patch_len)
        with at_rest(predictor):
            subject = Subject.of(predictor, window)
            intact = subject.forecast(subject.values[None])[0]
            shifts = []
            for some in torch.split(numbers[:, None, None, None], self.chunk):
                occluded = subject.reference.where(block == some, subject.values)
                shifts.append(subject.shift(intact, subject.forecast(occluded), self.space))
            grades = torch.cat(shifts).T.reshape(batch, -1, channels)
            return subject.importance(spread(grades, self.patch_len), forwards=len(numbers) + 1)
