"""DLinear: a moving average splits the window into trend and remainder; a linear map over time forecasts each."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ibforecast.core.contracts import SelfExplaining
from ibforecast.core.errors import require
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.layers.frame import InstanceFrame
from ibforecast.layers.masked import filled_with_mean
from ibforecast_lab.rivals.rival import Rival


@dataclass(frozen=True)
class DLinearConfig(Sizes):
    """`kernel` is the odd number of steps the moving average spans."""

    kernel: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("kernel")
        require(self.kernel % 2 == 1, "kernel must be odd", f"kernel={self.kernel}", f"try {self.kernel + 1}")


class DLinear(Rival, SelfExplaining):
    """Two linear maps over time, shared by all channels: the published numbers at look-back 96 have no individual maps.

    The whole model is affine, so its explanation is exact: every forecast is `effective_weights` times the window
    plus a bias.
    """

    stackable = True
    average: Float[Tensor, "look_back look_back"]

    def __init__(self, config: DLinearConfig) -> None:
        super().__init__()
        self.config = config
        self.trend = nn.Linear(config.look_back, config.horizon)
        self.remainder = nn.Linear(config.look_back, config.horizon)
        self.register_buffer("average", moving_average(config.look_back, config.kernel), persistent=False)

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast trend and remainder separately and add them."""
        rows = values.transpose(1, 2)
        trend = rows @ self.average.T
        future: Tensor = self.trend(trend) + self.remainder(rows - trend)
        return future.transpose(1, 2)

    def effective_weights(self) -> Float[Tensor, "horizon look_back"]:
        """Fold average and maps into one matrix, W_eff = W_r (I − A) + W_t A."""
        return self.remainder.weight + (self.trend.weight - self.remainder.weight) @ self.average

    def importance(self, window: Window) -> Float[Tensor, "batch look_back channel"]:
        """Return the mean over h of |W_eff[h, t] (x[t, c] − window mean of c)|; zero if x[t, c] is missing."""
        # Distances from the mean, because with the values themselves the level would dominate the ranking.
        values = filled_with_mean(window.values, window.observed)
        distance = (values - values.mean(dim=1, keepdim=True)).abs()
        return self.effective_weights().abs().mean(dim=0)[:, None] * distance


def moving_average(look_back: int, kernel: int) -> Float[Tensor, "look_back look_back"]:
    """Return the matrix A of a centred moving average that repeats the first and last values at the ends."""
    padded = functional.pad(torch.eye(look_back)[None], (kernel // 2, kernel // 2), mode="replicate")
    return functional.avg_pool1d(padded, kernel, stride=1)[0].T.contiguous()
