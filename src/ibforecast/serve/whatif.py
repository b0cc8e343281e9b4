"""Exact what-ifs: another mask or other evidence with the context held, and the forecast the readout gives."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float64

from ibforecast import checks
from ibforecast.core.account import Account
from ibforecast.core.errors import DataError, UsageError
from ibforecast.core.tokens import closed_to_zero, spread
from ibforecast.data.standardiser import Standardiser
from ibforecast.model.config import allowance
from ibforecast.serve import wire
from ibforecast.serve.refusals import reading
from ibforecast.zoo.saved import FittedModel

OWN = "mask and evidence are those of the explanation"
OTHER = "a what-if: mask or evidence were chosen by hand, so this is not the model's own explanation"


def replay(name: str, fitted: FittedModel, account: Account, asked: wire.WhatIf) -> wire.Replayed:
    """Compute the forecast that the readout gives to a mask and evidence, in the explanation's own context."""
    with reading("explanation"):
        check_fits(fitted, account)
    with reading("mask"):
        mask = _mask(fitted, account, asked.mask, asked.beyond_budget)
    with reading("evidence"):
        evidence, closed = _evidence(fitted, account, mask, asked.evidence)
    explanation = replace(checks.explanation_of(account), mask=mask, evidence=evidence)
    with torch.no_grad():
        values = fitted.network.replay(explanation)
    forecast = checks.in_units(values, Standardiser(account.mean, account.std))
    if not np.isfinite(forecast).all():
        with reading("evidence"):
            raise DataError("evidence must be of a size the model can compute with", "no number", "edit by less")
    allowed, opened = _allowance(fitted, account), int(mask.sum())
    same = np.array_equal(mask[0].numpy(), account.mask) and np.array_equal(evidence[0].numpy(), account.evidence)
    return wire.Replayed(
        model=name,
        forecast=forecast.tolist(),
        shift=_shifts(account, forecast),
        what_if=not same,
        note=OWN if same else OTHER,
        open_count=opened,
        open_rate=opened / mask[0].numel(),
        allowance=allowed,
        within_budget=opened <= allowed,
        closed_edits=closed,
        same_bits=bool((forecast.view(np.int64) == account.forecast.view(np.int64)).all()),
    )


def check_fits(fitted: FittedModel, account: Account) -> None:
    """Refuse an explanation that is not of this model, or holds what no explanation holds."""
    told, held, config = account.weights_sha256, fitted.weights_sha256, fitted.config
    if told != held:
        raise UsageError(
            "an explanation must come from the model that replays it",
            f"weights {told[:12]!r}, where this model has {held[:12]!r}",
            "name the model that gave it",
        )
    shape = (account.channels, account.look_back, account.horizon, account.patch_len, len(account.profile))
    if shape != (fitted.channels, config.look_back, config.horizon, config.patch_len, config.cycle):
        raise DataError("an explanation must have the channels and lengths of its model", "others", "export it again")
    if not fitted.config.gate.any_budget and account.budget != config.budget:
        raise DataError(
            f"an explanation must have its model's budget, {config.budget:g}", f"{account.budget:g}", "export it again"
        )
    numbers = (account.mean, account.std, account.level, account.scale, account.profile, account.evidence)
    if not all(np.isfinite(some).all() for some in (*numbers, account.forecast)):
        raise DataError("an explanation must hold finite numbers", "others", "export it again")


def _mask(
    fitted: FittedModel, account: Account, asked: list[list[int]] | None, beyond_budget: bool
) -> Bool[torch.Tensor, "1 patch channel"]:
    patches, channels = account.mask.shape
    if asked is not None and [len(row) for row in asked] != [channels] * patches:
        told = f"{len(asked)} rows of {sorted({len(row) for row in asked})[:4]}"
        raise UsageError(f"mask must have {patches} rows, one per patch, of {channels} gates", told, "send all")
    mask = account.mask if asked is None else np.array(asked, dtype=bool)
    if len(unreadable := np.argwhere(mask & account.missing)):
        patch, column = unreadable[0]
        raise UsageError(
            "a token with a missing step must stay closed",
            f"patch {patch} of {account.channels[column]!r} open",
            "close it",
        )
    allowed, opened = _allowance(fitted, account), int(mask.sum())
    if opened > allowed and not beyond_budget:
        raise UsageError(
            f"a mask must keep the budget of {account.budget:g}, {allowed} of {mask.size} tokens",
            f"{opened} open",
            f"close {opened - allowed}, or say beyond_budget",
        )
    return torch.from_numpy(mask.copy())[None]


def _allowance(fitted: FittedModel, account: Account) -> int:
    """Tokens that may be open: by the model's budget, or the explanation's own where the model is for any."""
    return allowance(account.budget, account.mask.size) if fitted.config.gate.any_budget else fitted.config.allowance


def _evidence(
    fitted: FittedModel, account: Account, mask: Bool[torch.Tensor, "1 patch channel"], edits: Sequence[wire.Edit]
) -> tuple[torch.Tensor, int]:
    """The evidence under a mask, and how many edits are of closed tokens.

    What the explanation has open is its own evidence; what is opened now is what the history deviates by, with the
    context held.
    """
    explanation, patch_len = checks.explanation_of(account), account.patch_len
    own = spread(explanation.mask, patch_len)
    tokens = explanation.evidence.where(own, _deviation(fitted, account, account.history))
    edited = account.history.copy()
    places = [_place(account, edit) for edit in edits]
    for edit, (steps, column) in zip(edits, places, strict=True):
        if edit.values is not None:
            edited[steps, column] = edit.values
    deviation = _deviation(fitted, account, edited)
    for edit, (steps, column) in zip(edits, places, strict=True):
        given = edit.deviation
        tokens[0, steps, column] = deviation[0, steps, column] if given is None else torch.tensor(given)
    closed = sum(not mask[0, edit.patch, account.channels.index(edit.channel)] for edit in edits)
    return closed_to_zero(mask, tokens), closed


def _deviation(
    fitted: FittedModel, account: Account, history: Float64[np.ndarray, "look_back channel"]
) -> torch.Tensor:
    """What is left of a history once the explanation's own context is removed."""
    window = checks.window_of(history, account.phase, Standardiser(account.mean, account.std))
    with torch.no_grad():
        _, deviation = fitted.network.decompose(window, checks.explanation_of(account).context)
    found: torch.Tensor = deviation.clone()
    return found


def _place(account: Account, edit: wire.Edit) -> tuple[slice, int]:
    patches, patch_len = len(account.mask), account.patch_len
    if edit.channel not in account.channels:
        raise UsageError(
            "channel must be one of the explanation's",
            repr(edit.channel),
            f"choose among {', '.join(account.channels[:8])}",
        )
    if edit.patch >= patches:
        raise UsageError(f"patch must be below {patches}", edit.patch, "the oldest is 0")
    given = [content for content in (edit.deviation, edit.values) if content is not None]
    if len(given) != 1 or len(given[0]) != patch_len:
        told = f"{len(given)} of them, with {[len(content) for content in given]} numbers"
        raise UsageError(f"an edit must give deviation or values, {patch_len} of them", told, "give one")
    first = edit.patch * patch_len
    return slice(first, first + patch_len), account.channels.index(edit.channel)


def _shifts(account: Account, forecast: Float64[np.ndarray, "horizon channel"]) -> list[wire.Shift]:
    shift = forecast - account.forecast
    largest = shift[np.abs(shift).argmax(axis=0), np.arange(shift.shape[1])]
    scales = np.maximum(account.std * account.scale, 1e-30)
    return [
        wire.Shift(channel=channel, mean=mean, mean_absolute=absolute, largest=most, in_scales=abs(most) / scale)
        for channel, mean, absolute, most, scale in zip(
            account.channels,
            shift.mean(axis=0).tolist(),
            np.abs(shift).mean(axis=0).tolist(),
            largest.tolist(),
            scales.tolist(),
            strict=True,
        )
    ]
