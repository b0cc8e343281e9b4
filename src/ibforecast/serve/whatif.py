"""Exact what-ifs: the forecast from another mask or evidence in the same context, or from other unread values."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float32, Float64

from ibforecast.core.errors import DataError, UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.writing import nullable
from ibforecast.engine import TorchEngine
from ibforecast.serve import wire
from ibforecast.serve.refusals import reading
from ibforecast.zoo.saved import FittedModel

OWN = "mask and evidence are those of the explanation"
OTHER = "a what-if: mask or evidence were chosen by hand, so this is not the model's own explanation"

NOTHING_HELD = "nothing was held, the whole model ran again:"
SAME = "mask, context, evidence and forecast are the same, bit for bit"

Mask = Bool[np.ndarray, "patch channel"]
Future = Float64[np.ndarray, "horizon channel"]


def replay(name: str, fitted: FittedModel, explained: ExplainedForecast, question: wire.WhatIf) -> wire.Replayed:
    """Compute the forecast of the readout from a mask and evidence, in the context of the explanation."""
    with reading("explanation"):
        engine = _engine(fitted, explained)
    with reading("mask"):
        mask = _mask(engine, explained, question.mask, question.beyond_budget)
    with reading("evidence"):
        evidence, closed = _evidence(engine, explained, mask, question.evidence)
    computed = engine.replay(replace(explained.explanation, mask=mask, evidence=evidence))
    _check_finite(explained, computed, "evidence")
    forecast = engine.facts.limited(computed)
    allowed, opened, own = engine.facts.allowance, int(mask.sum()), explained.explanation
    same = np.array_equal(mask, own.mask) and np.array_equal(evidence, own.evidence)
    return wire.Replayed(
        model=name,
        forecast=nullable(forecast),
        shift=_shifts(explained, engine.facts.units.std * own.context.scale, forecast, explained.forecast),
        what_if=not same,
        note=OWN if same else OTHER,
        open_count=opened,
        open_rate=opened / mask.size,
        allowance=allowed,
        within_budget=opened <= allowed,
        closed_edits=closed,
        same_bits=np.array_equal(computed, explained.computed, equal_nan=True),
    )


def rerun(name: str, fitted: FittedModel, explained: ExplainedForecast, question: wire.Scramble) -> wire.Rerun:
    """Run the whole model on the window, and again with other values where nothing was read, and compare both.

    Both runs are made here, because another machine may have computed the last digits of the explanation differently.
    """
    with reading("explanation"):
        engine = _engine(fitted, explained)
    with reading("values"):
        history = _scrambled(explained, question.values)
    phase = explained.explanation.context.phase
    own, computed = engine.run(explained.history, phase, explained.known)
    again, computed_again = engine.run(history, phase, explained.known)
    _check_finite(explained, computed_again, "values")
    before, forecast = map(engine.facts.limited, (computed, computed_again))
    # A value that was removed is missing now; that is what was sent, not what the model made of it.
    arrays = ((row, array) for row, array in again.arrays() if row.name != "missing")
    changed = [row.name for row, array in arrays if not np.array_equal(array, row.of(own))]
    changed += [] if np.array_equal(computed_again, computed, equal_nan=True) else ["forecast"]
    return wire.Rerun(
        model=name,
        sealed=fitted.config.sealed,
        forecast=nullable(forecast),
        # In scales that were computed here: with its own, a document could make a shift look small.
        shift=_shifts(explained, engine.facts.units.std * own.context.scale, forecast, before),
        replaced=int(((history != explained.history) & ~np.isnan(explained.history)).sum()),
        changed=changed,
        same_bits=not changed,
        note=f"{NOTHING_HELD} {' and '.join(changed)} changed" if changed else f"{NOTHING_HELD} {SAME}",
    )


def _engine(fitted: FittedModel, explained: ExplainedForecast) -> TorchEngine:
    """Return the model with the budget of an explanation that it made; refuse any other explanation."""
    engine = TorchEngine(fitted)
    if other := engine.facts.difference(explained.weights_sha256, explained.units):
        raise UsageError(
            "an explanation must come from the model that replays it", other, "name the model that made it"
        )
    engine = engine.at_budget(explained.budget)
    facts = engine.facts
    shape = (explained.channels, explained.look_back, explained.horizon, explained.patch_len, explained.cycles)
    if shape != (facts.channels, facts.look_back, facts.horizon, facts.patch_len, facts.cycles):
        raise DataError("an explanation must have the channels and lengths of its model", shape, "explain again")
    return engine


def _mask(engine: TorchEngine, explained: ExplainedForecast, sent: list[list[int]] | None, beyond_budget: bool) -> Mask:
    """Return the mask of the what-if: the one that was sent, or else the explanation's own."""
    own, missing = explained.explanation.mask, explained.explanation.missing
    patches, channels = own.shape
    if sent is not None and [len(row) for row in sent] != [channels] * patches:
        got = f"{len(sent)} rows of {sorted({len(row) for row in sent})[:4]}"
        raise UsageError(f"mask must have {patches} rows, one per patch, of {channels} gates", got, "send all")
    mask = own if sent is None else np.array(sent, dtype=bool)
    if len(unreadable := np.argwhere(mask & missing)):
        patch, column = unreadable[0]
        raise UsageError(
            "a token with a missing step must stay closed",
            f"patch {patch} of {explained.channels[column]!r} open",
            "close it",
        )
    allowed, opened = engine.facts.allowance, int(mask.sum())
    if opened > allowed and not beyond_budget:
        raise UsageError(
            f"a mask must keep the budget of {explained.budget:g}, {allowed} of {mask.size} tokens",
            f"{opened} open",
            f"close {opened - allowed}, or set beyond_budget",
        )
    return mask


def _evidence(
    engine: TorchEngine, explained: ExplainedForecast, mask: Mask, edits: Sequence[wire.Edit]
) -> tuple[Float32[np.ndarray, "look_back channel"], int]:
    """Return the evidence of a mask, and the number of edits of closed tokens.

    A token that is open in the explanation keeps its evidence. A token that is opened now gets the deviation of the
    history from the context.
    """
    explanation, patch_len = explained.explanation, explained.explanation.patch_len
    read = explanation.mask.repeat(patch_len, axis=0)
    tokens = np.where(read, explanation.evidence, engine.deviation(explained.history, explanation)[0].numpy())
    edited = explained.history.copy()
    places = [_place(explained, edit) for edit in edits]
    for edit, place in zip(edits, places, strict=True):
        if edit.values is not None:
            edited[place] = edit.values
    deviation = engine.deviation(edited, explanation)[0].numpy()
    for edit, place in zip(edits, places, strict=True):
        tokens[place] = deviation[place] if edit.deviation is None else edit.deviation
    closed = sum(not mask[edit.patch, column] for edit, (_, column) in zip(edits, places, strict=True))
    return np.where(mask.repeat(patch_len, axis=0), tokens, np.float32(0)), closed


def _place(explained: ExplainedForecast, edit: wire.Edit) -> tuple[slice, int]:
    """Return the steps and the column of an edit."""
    patches, patch_len = len(explained.explanation.mask), explained.explanation.patch_len
    if edit.channel not in explained.channels:
        known = ", ".join(explained.channels[:8])
        raise UsageError("channel must be one of the explanation's", repr(edit.channel), f"choose among {known}")
    if edit.patch >= patches:
        raise UsageError(f"patch must be below {patches}", edit.patch, "the oldest is 0")
    contents = [content for content in (edit.deviation, edit.values) if content is not None]
    if len(contents) != 1 or len(contents[0]) != patch_len:
        got = f"{len(contents)} of them, with {[len(content) for content in contents]} numbers"
        raise UsageError(f"an edit must have deviation or values, {patch_len} of them", got, "send one of both")
    return explained.steps(edit.patch), explained.channels.index(edit.channel)


def _scrambled(
    explained: ExplainedForecast, sent: list[list[float | None]]
) -> Float64[np.ndarray, "look_back channel"]:
    """Return the history with the values that were sent, where a value was observed and not read."""
    own = explained.history
    if [len(row) for row in sent] != [own.shape[1]] * len(own):
        got = f"{len(sent)} rows of {sorted({len(row) for row in sent})[:4]}"
        raise UsageError(f"values must have {len(own)} rows, one per step, of {own.shape[1]} channels", got, "send all")
    read = explained.explanation.mask.repeat(explained.explanation.patch_len, axis=0)
    # A gap is not filled: in a place of the fixed mask the new value would be read.
    return np.where(read | np.isnan(own), own, np.array(sent, dtype=np.float64))


def _check_finite(explained: ExplainedForecast, forecast: Future, field: str) -> None:
    if not np.isfinite(forecast[:, explained.is_forecast]).all():
        with reading(field):
            raise DataError(
                f"{field} must be of a size the model can compute with",
                "a forecast that is not a number",
                "use smaller values",
            )


def _shifts(
    explained: ExplainedForecast, scales: Float64[np.ndarray, " channel"], forecast: Future, before: Future
) -> list[wire.Shift]:
    """Return how far the forecast of each channel moved; channels that are not forecast are left out."""
    shift, shifts = forecast - before, []
    for column in np.flatnonzero(explained.is_forecast):
        moved = shift[:, column]
        largest = float(moved[np.abs(moved).argmax()])
        shifts.append(
            wire.Shift(
                channel=explained.channels[column],
                mean=float(moved.mean()),
                mean_absolute=float(np.abs(moved).mean()),
                largest=largest,
                in_scales=abs(largest) / float(scales[column]),
            )
        )
    return shifts
