"""The product's audit of a guest accepts the post-hoc explainers of the laboratory."""

import pytest
import torch
from torch import Tensor

from ibforecast.audit import audit_guest
from ibforecast.core.contracts import Explainer
from ibforecast_lab.explainers.occlusion import Occlusion
from ibforecast_lab.explainers.saliency import Saliency

WINDOWS, LOOK_BACK, CHANNELS = 20, 24, 3


def reads_the_end(values: Tensor) -> Tensor:
    """Forecast every channel by the last four steps of the first one."""
    return values[:, -4:, :1].repeat(1, 2, values.shape[2])


@pytest.mark.parametrize("explainer", [Occlusion(patch_len=1), Saliency()], ids=["occlusion", "saliency"])
def test_the_audit_of_a_function_that_reads_four_points_is_perfect(explainer: Explainer) -> None:
    values = torch.randn(WINDOWS, LOOK_BACK, CHANNELS, generator=torch.Generator().manual_seed(0))
    audit = audit_guest(reads_the_end, values, explainer, budget=4 / (LOOK_BACK * CHANNELS), batch=8)
    assert audit.score == pytest.approx(1, abs=1e-6)
