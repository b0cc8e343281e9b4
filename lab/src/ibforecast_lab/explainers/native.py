"""The model's own explanation, if it has one."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.contracts import Explainer, Importance, Predictor, SelfExplaining
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.explain.subject import at_rest, graded


@dataclass(frozen=True)
class Native(Explainer):
    """Reads the importance a self-explaining forecaster gives along with its forecast, in one pass."""

    def explain(
        self, predictor: Predictor, window: Window, share: Float[Tensor, " batch"], generator: torch.Generator
    ) -> Importance:
        """Grade every look-back value as the model does itself."""
        if not isinstance(predictor, SelfExplaining):
            raise UsageError(
                "a native explanation needs a forecaster that explains itself",
                type(predictor).__name__,
                "use an explainer that works with any predictor, such as occlusion",
            )
        with at_rest(predictor):
            return Importance(graded(window, predictor.importance(window)), forwards=1)
