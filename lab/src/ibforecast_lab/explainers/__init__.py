"""Post-hoc explainers: they grade every value of a batch of windows for any predictor.

They use only the contract of a predictor, never a concrete model, leave the predictor unchanged, and report how often
they ran it. Each is a frozen dataclass of its settings. `EXPLAINERS` contains each with its default settings, under its
name in the published tables.
"""

from ibforecast.core.contracts import Explainer
from ibforecast.explain.chance import Chance
from ibforecast_lab.explainers.dynamask import Dynamask
from ibforecast_lab.explainers.extremal_mask import ExtremalMask
from ibforecast_lab.explainers.integrated_gradients import IntegratedGradients
from ibforecast_lab.explainers.native import Native
from ibforecast_lab.explainers.occlusion import Occlusion
from ibforecast_lab.explainers.saliency import Saliency
from ibforecast_lab.explainers.timing import Timing

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
"""Every explainer with its default settings."""
