"""Explanations in the formats of captum and shap: how far each token moves the forecast from the context's forecast."""

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
    """The contribution of each open token to a forecast, in the table's units.

    `base` is the forecast of the explanation's context, with every gate closed; `base` and all contributions add up to
    the forecast. The value of a token is its Shapley value: how far the forecast moves when the token's gate opens,
    averaged over the orders in which the gates could open. Each move is computed exactly, in the same context. A closed
    token adds nothing and is not listed; `places` has the patch and the channel of each open one. In a sealed model
    this is all: `base` too depends only on what was read. In any other, a closed token may have moved `base` or the
    choice of the open ones.
    """

    explained: ExplainedForecast
    base: Float64[np.ndarray, "horizon channel"]
    places: Int64[np.ndarray, "open 2"]
    values: Float64[np.ndarray, "open horizon channel"]

    def to_captum(self, step: int, channel: str) -> Float[Tensor, "1 look_back input_channel"]:
        """Attribute one forecast value to the look-back, as captum's `attribute(window, target=(step, channel))` would.

        `step` counts from 0. The value of a token is divided evenly among its steps; the sum of all is the forecast
        value minus its `base`.
        """
        explained = self.explained
        require(0 <= step < explained.horizon, f"step must lie below {explained.horizon}", str(step), "count from 0")
        attribution = np.zeros(explained.history.shape)
        for (patch, column), value in zip(self.places, self.values[:, step, self._column(channel)], strict=True):
            first = patch * explained.explanation.patch_len
            attribution[first : first + explained.explanation.patch_len, column] = (
                value / explained.explanation.patch_len
            )
        return torch.from_numpy(attribution)[None]

    def to_shap(self, channels: Sequence[str] | None = None) -> Any:
        """Return the values as a `shap.Explanation`: samples are steps ahead, features tokens, outputs channels.

        All tokens are features, channel by channel and oldest first; a closed one has the value 0. `data` is the mean
        of each token in the table's units. `channels` limits the outputs.
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
            # `tokens()` lists all patches of a channel before the next channel.
            values[:, column * len(explained.explanation.mask) + patch] = value[:, columns]
        observed = [[value for value in token.values if value is not None] for token in tokens]
        means = np.array([np.mean(steps) if steps else np.nan for steps in observed])
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
    """Compute what each open token adds to a forecast, by opening the gates of its explanation one by one.

    `orders` random orders are drawn, and each is used forwards and backwards. If the readout is linear, every order
    gives the same values; otherwise more orders bring them closer to the mean over all orders. With any number of
    orders the values add up to the forecast.
    """
    require(orders >= 1, "orders must be at least 1", str(orders), "try 8")
    if explained.weights_sha256 != model.fitted.weights_sha256:
        raise UsageError(
            "an explanation must come from this model",
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
        # Of two tokens, each opens first in one of both orders, so that what they add together is shared evenly.
        for order in (drawn, drawn[::-1]):
            mask, before = np.zeros_like(explained.explanation.mask), base
            for number in order:
                mask[tuple(places[number])] = True
                after = forecast(mask)
                values[number] += after - before
                before = after
    return Contributions(explained, base, places, values / (2 * orders))
