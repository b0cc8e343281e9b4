"""The explainers applied to a forecaster: its own, and for our models all others too."""

import torch

from ibforecast.core.contracts import Explainer, Forecaster
from ibforecast.core.explanation import Explanation
from ibforecast.core.window import Window
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.explainers.integrated_gradients import IntegratedGradients
from ibforecast_lab.explainers.occlusion import Occlusion
from ibforecast_lab.explainers.timing import VARIANTS


@torch.no_grad()
def explainers_of(forecaster: Forecaster, window: Window) -> dict[str, Explainer]:
    """Return the native explainer and, if forecasts come with an explanation, the explainers it must beat.

    These are the paper's, TIMING in its three settings, IG also from the baseline that deletion uses in measures of
    fidelity, and occlusion in blocks of the forecaster's patch length.
    """
    explanation: Explanation | None = forecaster(window).explanation
    if explanation is None:
        return {"native": EXPLAINERS["native"]}
    plain = {name: explainer for name, explainer in EXPLAINERS.items() if name != "timing"}
    return {
        **plain,
        **{f"timing_{name}": explainer for name, explainer in VARIANTS.items()},
        "integrated_gradients_reference": IntegratedGradients(baseline="reference"),
        "occlusion": Occlusion(patch_len=window.values.shape[1] // explanation.mask.shape[1]),
    }
