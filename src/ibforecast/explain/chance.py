"""Chance: the floor every explainer has to clear."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.window import Window
from ibforecast.explain.subject import graded


@dataclass(frozen=True)
class Chance(Explainer):
    """Grades every value by a number drawn uniformly from [0, 1), each on its own; the predictor is not asked."""

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value at random."""
        drawn = torch.rand(window.values.shape, generator=generator, device=generator.device)
        return Importance(graded(window, drawn.to(window.values)), forwards=0)
