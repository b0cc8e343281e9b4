"""CycleNet: subtract a learned seasonal table, forecast the rest by one small map over time, add the table again."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.errors import require_choice
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class CycleNetConfig(Sizes):
    """`backbone`: "linear" is one linear map, "mlp" has a hidden layer of `width`; "mlp" is the published column."""

    backbone: Literal["linear", "mlp"] = "mlp"
    width: int = 512
    normalise: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("backbone", self.backbone, ("linear", "mlp"))
        self.require_positive("width")


class CycleNet(Rival):
    """Normalise, subtract the profile, map look-back to horizon, add the profile, denormalise.

    All channels share the backbone. Our own model with open gates is CycleNet, so both use the same code for the
    context.
    """

    stackable = True

    def __init__(self, config: CycleNetConfig) -> None:
        super().__init__()
        self.frame = InstanceFrame.unbiased if config.normalise else InstanceFrame.neutral
        self.profile = nn.Parameter(torch.zeros(config.cycle, config.channels))
        self.backbone: nn.Module = nn.Linear(config.look_back, config.horizon)
        if config.backbone == "mlp":
            enter, leave = nn.Linear(config.look_back, config.width), nn.Linear(config.width, config.horizon)
            self.backbone = nn.Sequential(enter, nn.ReLU(), leave)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from complete values and the phase of every step."""
        context = Context(frame.level[:, 0], frame.scale[:, 0], window.phase, self.profile)
        deviation = context.remove(values)
        future: Tensor = self.backbone(deviation.transpose(1, 2)).transpose(1, 2)
        return context.restore(future)

    def context(self, window: Window) -> Context:
        """Return the window's frame and the learned profile."""
        return replace(super().context(window), profile=self.profile)
