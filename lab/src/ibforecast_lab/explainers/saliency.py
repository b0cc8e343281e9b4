"""Saliency: how steeply the forecast's energy depends on each value."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.window import Window
from ibforecast.explain.subject import Subject, at_rest
from ibforecast_lab.explainers.relaxation import gradient


@dataclass(frozen=True)
class Saliency(Explainer):
    """The size of the gradient, |∂ ½‖Ŷ‖² / ∂X|, on the soft surrogate (Simonyan et al. 2014)."""

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value by one forward and one backward pass."""
        with at_rest(predictor):
            subject = Subject.of(predictor, window)
            return subject.importance(gradient(subject, subject.values[None])[0], forwards=1, backwards=1)
