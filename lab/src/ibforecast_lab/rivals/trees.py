"""LightGBM through mlforecast: boosted trees on lags, one model for every channel and every step of the horizon.

mlforecast makes the lags and the direct targets from the training rows and fits LightGBM with its default settings. A
model reads all values of the look-back of its own channel, but no other channel and no value before the window. It also
reads the phase of the first step of the forecast and, if there are any, the covariates known ahead at all steps of the
horizon. Values are standardised. A missing value is NaN, which LightGBM treats as missing. Nothing is selected on
validation windows.

`MLForecast.predict` forecasts only from the end of its table. To forecast from every window, the same features are
taken from the windows and given to the fitted models in batches.

With `together` all channels share one model per step, with the number of the channel as a feature. This is for tables
with many channels, where one model for each would take hours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from ibforecast.core.errors import MissingExtraError
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.layers.frame import InstanceFrame
from ibforecast_lab.rivals.fitted import Fitted

Columns = dict[str, Float32[np.ndarray, " row"]]
"""Features by the names that mlforecast gives them."""


@dataclass(frozen=True)
class TreesConfig(Sizes):
    """`together`: whether all channels share the models."""

    together: bool = False


@dataclass(frozen=True)
class _Group:
    """The models of some channels, one for each step, and the names of their features in order."""

    channels: Sequence[int]
    features: Sequence[str]
    models: Sequence[Any]

    def predict(self, columns: Columns) -> Float32[np.ndarray, "row horizon"]:
        features = np.stack([columns[name] for name in self.features], axis=1)
        # Through the booster, because the scikit-learn interface warns of features without names.
        return np.stack([model.booster_.predict(features) for model in self.models], axis=1).astype(np.float32)


class Trees(Fitted):
    """Direct forecasts by boosted trees; channels that are only read are forecast as 0, their mean in training."""

    libraries = ("mlforecast", "lightgbm")

    def __init__(self, config: TreesConfig) -> None:
        super().__init__()
        self.config = config
        self.groups: list[_Group] = []

    def fit(self, training: Windows) -> None:
        """Fit the models of every channel that is forecast."""
        forecast = range(self.config.channels - training.past)
        groups = [forecast] if self.config.together else [range(channel, channel + 1) for channel in forecast]
        self.groups = [self._fitted(training, channels) for channels in groups]

    def predict(
        self, values: Float[Tensor, "batch look_back channel"], frame: InstanceFrame, window: Window
    ) -> Float[Tensor, "batch horizon channel"]:
        """Forecast from the observed values, the phase and the covariates known ahead."""
        look_back, channels = self.config.look_back, self.config.channels
        observed = window.values.where(window.observed, torch.nan).cpu().numpy()
        known = None if window.known is None else window.known[:, look_back:].cpu().numpy()
        ahead = self._ahead(window.phase[:, look_back].cpu().numpy(), known)
        forecast = np.zeros((len(observed), self.config.horizon, channels), np.float32)
        for group in self.groups:
            for channel in group.channels:
                lags = {f"lag{lag}": observed[:, look_back - lag, channel] for lag in range(1, look_back + 1)}
                number = {"channel": np.full(len(observed), channel, np.float32)}
                forecast[:, :, channel] = group.predict(ahead | lags | number)
        return torch.from_numpy(forecast).to(values.device)

    def _fitted(self, training: Windows, channels: Sequence[int]) -> _Group:
        import pandas as pd

        try:
            from lightgbm import LGBMRegressor
            from mlforecast import MLForecast
        except ImportError as error:
            raise MissingExtraError("mlforecast with lightgbm", "trees") from error

        look_back, horizon = self.config.look_back, self.config.horizon
        rows = int(training.starts.max()) + look_back + horizon
        # mlforecast refuses NaN, so a missing value is infinite until the lags are made.
        values = training.values.where(training.observed, torch.inf)[:rows, list(channels)].cpu().numpy()
        known = None if training.known is None else training.known.cpu().numpy()
        steps = np.arange(rows)[:, None] + np.arange(horizon)
        ahead = self._ahead(
            training.phase[:rows].cpu().numpy(), None if known is None else known[steps.clip(max=len(known) - 1)]
        )
        number = np.repeat(np.array(channels, np.float32), rows)
        table = pd.DataFrame(
            {"unique_id": number.astype(np.int64), "ds": np.tile(steps[:, 0], len(channels)), "y": values.T.ravel()}
            | {name: np.tile(column, len(channels)) for name, column in ahead.items()}
            | {"channel": number}
        )
        lags = MLForecast({"trees": LGBMRegressor(verbosity=-1)}, freq=1, lags=list(range(1, look_back + 1)))
        features, targets = lags.preprocess(
            table, static_features=[], max_horizon=horizon, return_X_y=True, as_numpy=True
        )
        features[np.isinf(features)] = np.nan
        targets[np.isinf(targets)] = np.nan
        models = lags.fit_models(features, targets).models_["trees"]
        return _Group(channels, lags.ts.features_order_, models if horizon > 1 else [models])

    def _ahead(self, phase: Any, known: Float32[np.ndarray, "row horizon covariate"] | None) -> Columns:
        """Return the features that are known at the first step of the forecast: its phase, and all covariates."""
        columns = {"phase": (phase % self.config.cycle).astype(np.float32)}
        if known is None:
            return columns
        return columns | {
            f"known{covariate}_{step}": known[:, step, covariate]
            for covariate in range(known.shape[2])
            for step in range(known.shape[1])
        }
