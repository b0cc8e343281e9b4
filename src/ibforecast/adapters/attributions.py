"""Explanations in the forms of captum and shap: by how much every token moves the forecast away from the context's."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from ibforecast import checks
from ibforecast.core.account import Account
from ibforecast.core.errors import MissingExtraError, UsageError, require
from ibforecast.core.tokens import closed_to_zero
from ibforecast.data.standardiser import Standardiser
from ibforecast.forecaster import IBForecaster


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each open token adds to a forecast, in the table's units; `base` and all of them add up to the forecast.

    `base` is the forecast of the context alone, every gate closed. The value of a token is its Shapley value: how much
    the forecast moves when the token's gate opens, context held, averaged over orders in which the gates could open.
    Each such move is exact. A closed token adds nothing and is not listed; `places` tells patch and channel of the
    others.
    """

    account: Account
    base: Float64[np.ndarray, "horizon channel"]
    places: Int64[np.ndarray, "open 2"]
    values: Float64[np.ndarray, "open horizon channel"]

    def to_captum(self, step: int, channel: str) -> Float[Tensor, "1 look_back input_channel"]:
        """Attribute one forecast value to the look-back, as captum's `attribute(window, target=(step, channel))` would.

        `step` counts from 0. A token's value is shared evenly by its steps, so that all of them add up to the forecast
        value less its `base`.
        """
        account = self.account
        require(0 <= step < account.horizon, f"step must lie below {account.horizon}", str(step), "count from 0")
        shared = np.zeros(account.history.shape)
        for (patch, column), value in zip(self.places, self.values[:, step, self._column(channel)], strict=True):
            first = patch * account.patch_len
            shared[first : first + account.patch_len, column] = value / account.patch_len
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
        account, tokens = self.account, list(self.account.tokens())
        names = account.channels if channels is None else tuple(channels)
        columns = [self._column(name) for name in names]
        values = np.zeros((account.horizon, len(tokens), len(columns)))
        for (patch, column), value in zip(self.places, self.values, strict=True):
            values[:, column * len(account.mask) + patch] = value[:, columns]
        told = [[value for value in token.values if value is not None] for token in tokens]
        means = np.array([np.mean(some) if some else np.nan for some in told])
        return Explanation(
            values,
            base_values=self.base[:, columns],
            data=np.tile(means, (account.horizon, 1)),
            feature_names=[f"{token.channel} {token.start} to {token.end}" for token in tokens],
            output_names=list(names),
        )

    def _column(self, channel: str) -> int:
        channels = self.account.channels
        require(channel in channels, "channel must be one of the forecast's", repr(channel), f"try {channels[0]!r}")
        return channels.index(channel)


@torch.no_grad()
def contributions(model: IBForecaster, account: Account, orders: int = 8, seed: int = 0) -> Contributions:
    """Find out what each open token adds to a forecast, by opening the gates of its explanation one after the other.

    So many `orders` are drawn, and each is taken forwards and backwards. Where the readout is linear every order gives
    the same; otherwise more orders bring the values closer to the mean over all. They add up whatever their number.
    """
    require(orders >= 1, "orders must be at least 1", str(orders), "try 8")
    if account.weights_sha256 != model.fitted.weights_sha256:
        raise UsageError(
            "an explanation must come from the model at hand",
            f"weights {account.weights_sha256[:12]}, where this model has {model.fitted.weights_sha256[:12]}",
            "give the model that made it",
        )
    held, units = checks.explanation_of(account), Standardiser(account.mean, account.std)

    def forecast(mask: Bool[np.ndarray, "patch channel"]) -> Float64[np.ndarray, "horizon channel"]:
        opened = torch.from_numpy(mask)[None]
        chosen = replace(held, mask=opened, evidence=closed_to_zero(opened, held.evidence))
        return checks.in_units(model.fitted.network.replay(chosen), units)

    places = np.argwhere(account.mask)
    base = forecast(np.zeros_like(account.mask))
    values = np.zeros((len(places), *base.shape))
    random = np.random.default_rng(seed)
    for drawn in [random.permutation(len(places)) for _ in range(orders)]:
        for order in (drawn, drawn[::-1]):
            mask, before = np.zeros_like(account.mask), base
            for number in order:
                mask[tuple(places[number])] = True
                after = forecast(mask)
                values[number] += after - before
                before = after
    return Contributions(account, base, places, values / (2 * orders))
