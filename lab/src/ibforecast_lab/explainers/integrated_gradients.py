"""Integrated gradients: what each value adds to the energy on the straight path from a baseline to the window."""

from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.errors import require, require_choice
from ibforecast.core.window import Window
from ibforecast.explain.subject import Baseline, Subject, Values, at_rest
from ibforecast_lab.explainers.relaxation import gradient


@dataclass(frozen=True)
class IntegratedGradients(Explainer):
    """(X − X′) times the mean gradient at the midpoints of `steps` equal parts of the path (Sundararajan et al. 2017).

    The baseline X′ is each channel's mean over the window, or the "reference" that fidelity deletes to. `chunk`
    copies of the batch are run at once; it changes memory and speed, not the result.
    """

    steps: int = 32
    baseline: Baseline = "mean"
    chunk: int = 8

    def __post_init__(self) -> None:
        require(self.steps >= 1, "steps must be at least 1", f"steps={self.steps}", "try 32")
        require(self.chunk >= 1, "chunk must be at least 1", f"chunk={self.chunk}", "try 8")
        require_choice("baseline", self.baseline, get_args(Baseline))

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value by the size of its attribution."""
        with at_rest(predictor):
            subject = Subject.of(predictor, window)
            return subject.importance(self.attribution(subject), forwards=self.steps, backwards=self.steps)

    def attribution(self, subject: Subject) -> Values:
        """Attribute the gain in energy over the baseline; the signed attributions of a window add up to it."""
        start = subject.baseline(self.baseline)
        path, slopes = subject.values - start, torch.zeros_like(start)
        midpoints = (torch.arange(self.steps).to(path) + 0.5) / self.steps
        for some in torch.split(midpoints[:, None, None, None], self.chunk):
            slopes += gradient(subject, start + some * path).sum(dim=0)
        return path * slopes / self.steps
