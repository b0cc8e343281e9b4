"""The seasonal naive forecast: repeat the last cycle of the look-back."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.naive import longest_repeatable, repeated
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.fitted import Fitted


@dataclass(frozen=True)
class SeasonalNaiveConfig(Sizes):
    """`further_cycles` may be repeated if the cycle does not fit into the look-back."""

    further_cycles: tuple[int, ...] = ()


class SeasonalNaive(Fitted):
    """The longest cycle that fits into the look-back, repeated; the last value if none fits."""

    def __init__(self, config: SeasonalNaiveConfig) -> None:
        super().__init__()
        self.horizon = config.horizon
        self.cycle = longest_repeatable((config.cycle, *config.further_cycles), config.look_back)

    def fit(self, training: Windows) -> None:
        """Do nothing: there is nothing to learn."""

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Repeat the last cycle of the observed values."""
        return repeated(window, self.cycle, self.horizon)
