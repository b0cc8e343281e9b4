"""Explanations in the forms of captum and shap: by how much every token moves the forecast away from the context's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from ibforecast.core.errors import MissingExtraError, UsageError, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.engine import TorchEngine
from ibforecast.forecaster import IBForecaster


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each open token adds to a forecast, in the table's units; `base` and all of them add up to the forecast.

    `base` is the forecast of the context alone, every gate closed. The value of a token is its Shapley value: how much
    the forecast moves when the token's gate opens, context held, averaged over orders in which the gates could open.
    Each such move is exact. A closed token adds nothing and is not listed; `places` tells patch and channel of the
    others.
    """

    explained: ExplainedForecast
    base: Float64[np.ndarray, "horizon channel"]
    places: Int64[np.ndarray, "open 2"]
    values: Float64[np.ndarray, "open horizon channel"]

    def to_captum(self, step: int, channel: str) -> Float[Tensor, "1 look_back input_channel"]:
        """Attribute one forecast value to the look-back, as captum's `attribute(window, target=(step, channel))` would.

        `step` counts from 0. A token's value is shared evenly by its steps, so that all of them add up to the forecast
        value less its `base`.
        """
        explained = self.explained
        require(0 <= step < explained.horizon, f"step must lie below {explained.horizon}", str(step), "count from 0")
        shared = np.zeros(explained.history.shape)
        for (patch, column), value in zip(self.places, self.values[:, step, self._column(channel)], strict=True):
            first = patch * explained.explanation.patch_len
            shared[first : first + explained.explanation.patch_len, column] = value / explained.explanation.patch_len
        return torch.from_numpy(shared)[None]

    def to_shap(self, channels: Sequence[str] | None = None) -> Any:
        """Put the values into a `shap.Explanation`: samples are steps ahead, features tokens, outputs channels.

        All tokens are features, channel by channel and oldest first, with 0 for the closed; `data` is a token's mean
        in the table's units. `channels` limits the outputs.
        """
        try:
            from shap import Explanation
        except ModuleNotFoundError as error:
            raise MissingExtraError("shap", "shap") from error
        explained, tokens = self.explained, list(self.explained.tokens())
        names = explained.channels if channels is None else tuple(channels)
        columns = [self._column(name) for name in names]
        values = np.zeros((explained.horizon, len(tokens), len(columns)))
        for (patch, column), value in zip(self.places, self.values, strict=True):
            values[:, column * len(explained.explanation.mask) + patch] = value[:, columns]
        values_of = [[value for value in token.values if value is not None] for token in tokens]
        means = np.array([np.mean(some) if some else np.nan for some in values_of])
        return Explanation(
            values,
            base_values=self.base[:, columns],
            data=np.tile(means, (explained.horizon, 1)),
            feature_names=[f"{token.channel} {token.start} to {token.end}" for token in tokens],
            output_names=list(names),
        )

    def _column(self, channel: str) -> int:
        channels = self.explained.channels
        require(channel in channels, "channel must be one of the forecast's", repr(channel), f"try {channels[0]!r}")
        return channels.index(channel)


@torch.no_grad()
def contributions(model: IBForecaster, explained: ExplainedForecast, orders: int = 8, seed: int = 0) -> Contributions:
    """Find out what each open token adds to a forecast, by opening the gates of its explanation one after the other.

    So many `orders` are drawn, and each is taken forwards and backwards. Where the readout is linear every order gives
    the same; otherwise more orders bring the values closer to the mean over all. They add up whatever their number.
    """
    require(orders >= 1, "orders must be at least 1", str(orders), "try 8")
    if explained.weights_sha256 != model.fitted.weights_sha256:
        raise UsageError(
            "an explanation must come from the model at hand",
            f"weights {explained.weights_sha256[:12]}, where this model has {model.fitted.weights_sha256[:12]}",
            "give the model that made it",
        )
    engine, own = TorchEngine(model.fitted), explained.explanation

    def forecast(mask: Bool[np.ndarray, "patch channel"]) -> Float64[np.ndarray, "horizon channel"]:
        evidence = np.where(mask.repeat(own.patch_len, axis=0), own.evidence, np.float32(0))
        return engine.replay(replace(own, mask=mask, evidence=evidence))

    places = np.argwhere(explained.explanation.mask)
    base = forecast(np.zeros_like(explained.explanation.mask))
    values = np.zeros((len(places), *base.shape))
    random = np.random.default_rng(seed)
    for drawn in [random.permutation(len(places)) for _ in range(orders)]:
        for order in (drawn, drawn[::-1]):
            mask, before = np.zeros_like(explained.explanation.mask), base
            for number in order:
                mask[tuple(places[number])] = True
                after = forecast(mask)
                values[number] += after - before
                before = after
    return Contributions(explained, base, places, values / (2 * orders))
