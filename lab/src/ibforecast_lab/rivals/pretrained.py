"""A pretrained model as a rival: any torch module that forecasts, with weights from this machine.

A maker is a function from a configuration to a module that maps (batch, look_back, channel) to (batch, horizon,
channel). `chronos2` is one of them; a recipe can name another one as "package.module:function". Nothing is downloaded
and nothing is unpickled: weights are safetensors files.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ibforecast.core.errors import DataError, MissingExtraError, UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.fitted import Fitted

FOLDER = "IBFORECAST_WEIGHTS"
"""The environment variable that names the folder in which weights are searched."""


@dataclass(frozen=True)
class PretrainedConfig(Sizes):
    """`maker` builds the module; `weights` is the path of its weights, relative to the folder of weights."""

    maker: str = "chronos2"
    weights: str = "chronos-2"

    @property
    def path(self) -> Path:
        """Path of the weights; refuse one that does not exist."""
        path = Path(os.environ.get(FOLDER, ""), self.weights)
        if not path.exists():
            raise DataError(
                "the weights of a pretrained model must be on this machine",
                f"no {path}",
                f"put them there, or set {FOLDER} to the folder that contains {self.weights}",
            )
        return path


class Pretrained(Fitted):
    """A forecaster that was trained elsewhere. It is used as it is: its module is frozen and in evaluation mode.

    It gets standardised values without a calendar; gaps are filled with the window's mean.
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__()
        self.module = maker_of(config.maker)(config).requires_grad_(False).eval()

    def fit(self, training: Windows) -> None:
        """Do nothing: the model is already trained."""

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast with the module."""
        forecast: Tensor = self.module(values)
        return forecast


def maker_of(name: str) -> Callable[[PretrainedConfig], nn.Module]:
    """Return a maker by its name here, or by the name of its module and its function."""
    if name in MAKERS:
        return MAKERS[name]
    module, _, function = name.partition(":")
    try:
        maker: Callable[[PretrainedConfig], nn.Module] = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"maker must be one of {', '.join(MAKERS)} or the name of a function that can be imported",
            f"{name!r}: {error}",
            'write it as "package.module:function"',
        ) from error
    return maker


# --- Chronos-2 ---


class Chronos2(nn.Module):
    """The median forecast of Chronos-2. All channels of a window form one group, so they inform each other."""

    def __init__(self, model: nn.Module, horizon: int, patch: int, median: int) -> None:
        super().__init__()
        self.model, self.horizon, self.median = model, horizon, median
        self.patches = math.ceil(horizon / patch)

    def forward(self, values: Float[Tensor, "batch look_back channel"]) -> Float[Tensor, "batch horizon channel"]:
        """Forecast all windows at once."""
        batch, _, channels = values.shape
        group = torch.arange(batch, device=values.device).repeat_interleave(channels)
        output = self.model(
            context=values.transpose(1, 2).flatten(0, 1), group_ids=group, num_output_patches=self.patches
        )
        future: Tensor = output.quantile_preds[:, self.median, : self.horizon]
        return future.reshape(batch, channels, self.horizon).transpose(1, 2)


def chronos2(config: PretrainedConfig) -> Chronos2:
    """Load Chronos-2 from a folder with its configuration and its safetensors file."""
    try:
        from chronos import Chronos2Pipeline
    except ImportError as error:
        raise MissingExtraError("chronos-forecasting", "chronos") from error
    pipeline = Chronos2Pipeline.from_pretrained(str(config.path), local_files_only=True, use_safetensors=True)
    longest = pipeline.model_prediction_length
    if config.horizon > longest:
        raise UsageError(
            f"Chronos-2 forecasts at most {longest} steps at once", config.horizon, "use a shorter horizon"
        )
    median = min(range(len(pipeline.quantiles)), key=lambda place: abs(pipeline.quantiles[place] - 0.5))
    return Chronos2(pipeline.model, config.horizon, pipeline.model_output_patch_size, median)


MAKERS: dict[str, Callable[[PretrainedConfig], nn.Module]] = {"chronos2": chronos2}
