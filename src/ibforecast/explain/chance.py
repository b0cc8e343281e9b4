"""Chance: the score every explainer must exceed."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.window import Window
from ibforecast.explain.subject import graded


@dataclass(frozen=True)
class Chance(Explainer):
    """Grades every value by an independent random number from [0, 1), without running the predictor."""

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value at random."""
        drawn = torch.rand(window.values.shape, generator=generator, device=generator.device)
        return Importance(graded(window, drawn.to(window.values)), forwards=0)
