"""Receipts in the formats of captum and shap: what every input adds to a forecast, in the table's units."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ibforecast.core.errors import MissingExtraError, names_of
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.limits import LIMIT
from ibforecast.core.receipt import UNREAD, Step, column_of, places, require_step


def to_captum(
    explained: ExplainedForecast, channel: str, step: Step = "mean"
) -> Float[Tensor, "1 look_back input_channel"]:
    """Attribute one number of a forecast to the look-back, as captum's `attribute(window)` would.

    `channel` and `step` are those of a receipt. The amount of a token is divided evenly among its steps. These amounts,
    and those of what is known ahead, of values that were not read and of limits, add up to the forecast minus the
    calendar.
    """
    require_step(explained, step)
    attribution, length = np.zeros(explained.history.shape), explained.explanation.patch_len
    amounts = explained.amounts(channel).at(step).read[:, 0]
    for (patch, column), amount in zip(places(explained), amounts.tolist(), strict=True):
        attribution[explained.steps(patch), column] = amount / length
    return torch.from_numpy(attribution)[None]


def to_shap(explained: ExplainedForecast, channels: Sequence[str] | None = None) -> Any:
    """Return receipts as a `shap.Explanation`: samples are steps ahead, outputs channels (None: all forecast ones).

    Features are all tokens, channel by channel and oldest first, then covariates known ahead and, if there are any, the
    values that were not read (of a model that is not sealed) and the limits of the forecast. A token that was not read
    has the value 0. The base value is the calendar; it and all values add up to the forecast. `data` is the mean of
    each token, and each covariate, in the table's units.
    """
    try:
        from shap import Explanation
    except ModuleNotFoundError as error:
        raise MissingExtraError("shap", "shap") from error
    forecast_names = (name for name in explained.channels if name not in explained.past)
    names = names_of("channels", forecast_names if channels is None else channels)
    tokens, horizon, patches = list(explained.tokens()), explained.horizon, len(explained.explanation.mask)
    # `tokens()` lists all patches of a channel before the next channel.
    opened = [column * patches + patch for patch, column in places(explained)]
    unread, limited = [] if explained.sealed else [UNREAD], [] if explained.limits is None else [LIMIT]
    features = [f"{token.channel} {token.start} to {token.end}" for token in tokens]
    features += [*explained.covariates, *unread, *limited]
    values = np.zeros((horizon, len(features), len(names)))
    for number, amounts in enumerate(explained.amounts_of(names).values()):
        values[:, opened, number] = amounts.read.T
        values[:, len(tokens) : len(tokens) + len(amounts.known), number] = amounts.known.T
        if amounts.unread is not None:
            values[:, features.index(UNREAD), number] = amounts.unread
        if amounts.limit is not None:
            values[:, -1, number] = amounts.limit
    data = np.full((horizon, len(features)), np.nan)
    observed = [[value for value in token.values if value is not None] for token in tokens]
    data[:, : len(tokens)] = [np.mean(steps) if steps else np.nan for steps in observed]
    if explained.known is not None:
        data[:, len(tokens) : len(tokens) + len(explained.covariates)] = explained.known[explained.look_back :]
    forecast = explained.forecast[:, [column_of(explained, name) for name in names]]
    return Explanation(
        values,
        # The calendar, with what rounding in single precision leaves: as in a receipt, everything adds up.
        base_values=forecast - values.sum(axis=1),
        data=data,
        feature_names=features,
        output_names=list(names),
    )
