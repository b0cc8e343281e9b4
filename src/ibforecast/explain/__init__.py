"""Explainers: from any predictor and a batch of windows to a graded map of what its forecasts went by.

They know the contract and no concrete model, leave the predictor as they found it, and say how often they ran it.
Each is a frozen dataclass of its settings; `EXPLAINERS` holds them by the names the published tables use, at their
defaults. A stranger's model comes in as a `guest.Guest`, a stranger's map as a `guest.GivenMap`.
"""

from ibforecast.core.contracts import Explainer
from ibforecast.explain.chance import Chance
from ibforecast.explain.dynamask import Dynamask
from ibforecast.explain.extremal_mask import ExtremalMask
from ibforecast.explain.integrated_gradients import IntegratedGradients
from ibforecast.explain.native import Native
from ibforecast.explain.occlusion import Occlusion
from ibforecast.explain.saliency import Saliency
from ibforecast.explain.timing import Timing

EXPLAINERS: dict[str, Explainer] = {
    "occlusion": Occlusion(),
    "timing": Timing(),
    "integrated_gradients": IntegratedGradients(),
    "saliency": Saliency(),
    "dynamask": Dynamask(),
    "extremal_mask": ExtremalMask(),
    "chance": Chance(),
    "native": Native(),
}
"""Every explainer at its default settings: a literal table, so that nothing is found by searching."""
