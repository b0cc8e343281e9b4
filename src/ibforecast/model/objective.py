"""The terms of the training objective. Paper: Eq. 9, L."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from ibforecast.core.window import Target
from ibforecast.layers.masked import mean_where
from ibforecast.model.config import ObjectiveConfig

SMALLEST_ERROR = 1e-12
"""The divisor of a gain is at least this large."""


def fit(forecast: Float[Tensor, "batch horizon channel"], target: Target, knobs: ObjectiveConfig) -> Float[Tensor, ""]:
    """Return the error over the observed part of the target, of the kind `knobs.loss` names. Paper: Eq. 9, ‖Ŷ − Y‖².

    "mse" is the mean square, "mae" the mean absolute error, and "frequency" mixes the mean absolute error with that of
    the spectrum over the horizon: (1 − α) mae + α mean |rfft(Ŷ − Y)|.
    """
    error = (forecast - target.values).where(target.observed, forecast.new_zeros(()))
    if knobs.loss == "mse":
        return mean_where(error**2, target.observed)
    absolute = mean_where(error.abs(), target.observed)
    if knobs.loss == "mae":
        return absolute
    share, spectrum = knobs.frequency_share, torch.fft.rfft(error, dim=1)
    mixed: Tensor = (1 - share) * absolute + share * spectrum.abs().mean()
    return mixed


def rate(logits: Float[Tensor, "batch patch channel"], prior: float) -> Float[Tensor, ""]:
    """Return the mean over tokens of KL(Bern(p) ‖ Bern(π)), in nats. Paper: Eq. 9, KL."""
    return token_rate(logits, prior).mean()


def token_rate(logits: Float[Tensor, "*shape"], prior: float) -> Float[Tensor, "*shape"]:
    """Return KL(Bern(p) ‖ Bern(π)) of each token, in nats, from its logit. Paper: Eq. 9, KL."""
    log_open, log_closed = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
    prior_logit = torch.logit(torch.tensor(prior, dtype=torch.float64)).item()
    # log p − log π = (log(1−p) − log(1−π)) + (ℓ − logit π): this form loses fewer digits where p is near π.
    log_prior_closed = torch.log1p(-torch.tensor(prior, dtype=torch.float64)).item()
    return log_open.exp() * (logits - prior_logit) + log_closed - log_prior_closed


def budget(opened: Float[Tensor, "batch patch channel"], allowed: float) -> Float[Tensor, ""]:
    """Return the squared distance of the mean opening from the budget. Paper: Eq. 9, (p̄ − ρ)²."""
    return (opened.mean() - allowed) ** 2


def contiguity(mask: Float[Tensor, "batch patch channel"]) -> Float[Tensor, ""]:
    """Return the mean absolute difference of neighbouring gates of a channel. Paper: Eq. 9, TV."""
    return (mask[:, 1:] - mask[:, :-1]).abs().mean() if mask.shape[1] > 1 else mask.sum() * 0


def consistency(
    margin: Float[Tensor, "batch patch channel"],
    mask: Float[Tensor, "batch patch channel"],
    missing: Bool[Tensor, "batch patch channel"],
) -> Float[Tensor, ""]:
    """Return the cross-entropy between the mask and the gates when they see only the evidence.

    Missing tokens are left out, because no gate decides on them; margins are clamped, so that no term is infinite.
    """
    doubt = margin.masked_fill(missing, 0.0).clamp(-30, 30)
    return mean_where(binary_cross_entropy_with_logits(doubt, mask, reduction="none"), ~missing)


def absence(
    margin: Float[Tensor, "batch patch channel"],
    mask: Float[Tensor, "batch patch channel"],
    missing: Bool[Tensor, "batch patch channel"],
) -> Float[Tensor, ""]:
    """Return the cross-entropy of gates that see no evidence, which must not open a closed token in its place."""
    closed = (mask == 0) & ~missing
    return mean_where(softplus(margin.where(closed, margin.new_zeros(())).clamp(-30, 30)), closed)


def exchange(
    before: Float[Tensor, " batch"],
    after: Float[Tensor, " batch"],
    opened: Float[Tensor, " batch"],
    closed: Float[Tensor, " batch"],
) -> Float[Tensor, ""]:
    """Return −mean g σ(ℓᵢ − ℓⱼ), where token j was open and token i closed, and g is the gain of exchanging them.

    g = (before − after) / mean(before), where `before` is the error of each window with its own mask and `after` with
    j closed and i open. Descending raises the logit of a token that would have been worth reading, also one that the
    gates never open.
    """
    gain = ((before - after) / before.mean().clamp(min=SMALLEST_ERROR)).detach()
    return -(gain * torch.sigmoid(closed - opened)).mean()


def squared_by_window(forecast: Float[Tensor, "batch horizon channel"], target: Target) -> Float[Tensor, " batch"]:
    """Return the mean squared error of each window over the observed part of its target; 0 if nothing is observed."""
    squares = ((forecast - target.values) ** 2).where(target.observed, forecast.new_zeros(()))
    return squares.sum(dim=(1, 2)) / target.observed.sum(dim=(1, 2)).clamp(min=1)


def departure(
    logits: Float[Tensor, "batch patch channel"],
    bias: Float[Tensor, "*tokens"],
    missing: Bool[Tensor, "batch patch channel"],
) -> Float[Tensor, ""]:
    """Return the mean square of what the gate network adds to its bias: the distance from one mask for all windows."""
    return mean_where((logits - bias) ** 2, ~missing)
