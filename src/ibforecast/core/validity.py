"""The rules for a valid explained forecast, checked whenever one is built, so that none contradicts itself."""

import re
from typing import Any

import numpy as np

from ibforecast.core import receipt
from ibforecast.core.anchors import anchor_names
from ibforecast.core.cycles import LARGEST_PERIOD, period
from ibforecast.core.errors import DataError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.hours import SPAN
from ibforecast.core.signatures import is_signature

REMEDY = "use it as the model returned it"


def check(explained: ExplainedForecast) -> None:
    """Refuse an explained forecast whose parts do not fit each other; the error names the part."""
    _check_shapes(explained)
    _check_names(explained)
    _check_numbers(explained)
    _check_times(explained)
    _check_tokens(explained)
    _check_known(explained)
    _check_anchor(explained)
    _check_limits(explained)
    numbers = [(each.channel, each.step) for each in explained.receipts]
    _require(len(set(numbers)) == len(numbers), "receipts", "be of different numbers", "two of one number")
    for each in explained.receipts:
        receipt.check(explained, each)


def _require(holds: Any, name: str, rule: str, got: Any) -> None:
    if not bool(holds):
        raise DataError(f"{name} of an explanation must {rule}", got, REMEDY)


def _check_shapes(explained: ExplainedForecast) -> None:
    explanation = explained.explanation
    _require(explanation.mask.ndim == 2, "the mask", "be of one window", f"{explanation.mask.ndim} axes")
    (patches, channels), (look_back, _) = explanation.mask.shape, explanation.evidence.shape
    steps = len(explanation.context.phase)
    _require(look_back % patches == 0, "patches", "divide the look-back", f"{patches} of {look_back} steps")
    _require(0 < look_back < steps, "the horizon", "have a step", f"{steps} steps, look-back {look_back}")
    shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
        "history": (explained.history, (look_back, channels)),
        "forecast": (explained.forecast, (steps - look_back, channels)),
        "truth": (explained.truth, (steps - look_back, channels)),
        "channels": (explained.channels, (channels,)),
        "times": (explained.clock.stamps, (steps,)),
        "mean": (explained.units.mean, (channels,)),
        "std": (explained.units.std, (channels,)),
        "known": (explained.known, (steps, len(explained.covariates))),
    }
    for name, (array, shape) in shapes.items():
        actual = shape if array is None else np.shape(array)
        _require(actual == shape, name, f"have the shape {shape}", actual)
    for field, array in explanation.arrays():
        _require(array.dtype == field.kind, field.name, f"have the type {field.kind}", array.dtype)


def _check_names(explained: ExplainedForecast) -> None:
    channels, past = explained.channels, explained.past
    columns = (*channels, *explained.covariates)
    _require(len(set(columns)) == len(columns), "names", "differ from each other", columns)
    _require(past == channels[len(channels) - len(past) :], "past", "name the last channels", past)
    _require(len(past) < len(channels), "past", "leave a channel to forecast", past)
    _require(
        re.fullmatch("[0-9a-f]{64}", explained.weights_sha256),
        "weights_sha256",
        "be a SHA-256",
        explained.weights_sha256,
    )
    _require(all(map(SPAN.fullmatch, explained.zero_at)), "zero_at", "have times of the day", explained.zero_at)
    signature = explained.signature
    _require(signature is None or is_signature(signature), "signature", "be 64 bytes in base64", f"{signature!r:.40}")


def _check_numbers(explained: ExplainedForecast) -> None:
    _require(0 < explained.budget <= 1, "budget", "lie in (0, 1]", explained.budget)
    _require(0 < explained.prior < 1, "prior", "lie in (0, 1)", explained.prior)
    _require(np.isfinite(explained.rate_bits), "prior", "give a finite number of bits", explained.prior)
    _require(not np.isinf(explained.history).any(), "history", "be finite or missing", "an infinite value")
    _require(
        explained.truth is None or not np.isinf(explained.truth).any(), "truth", "be finite or missing", "infinity"
    )
    _require(
        (np.isfinite(explained.forecast) == explained.is_forecast).all() and not np.isinf(explained.forecast).any(),
        "forecast",
        "be finite for every channel, except for those in past, which have none",
        "another value, as for a history that is not in the units of training",
    )
    spreads = {"std": explained.units.std, "scale": explained.explanation.context.scale}
    if explained.known_units is not None:
        spreads["known_units.std"] = explained.known_units.std
    for name, array in spreads.items():
        _require((array > 0).all(), name, "be positive", array[~(array > 0)][:1])
    for field, array in explained.explanation.arrays():
        _require(np.isfinite(array).all(), field.name, "be finite", "a value that is not")
    for name, array in (("mean", explained.units.mean), ("std", explained.units.std)):
        _require(np.isfinite(array).all(), name, "be finite", "a value that is not")


def _check_limits(explained: ExplainedForecast) -> None:
    limits, computed = explained.limits, explained.unlimited
    _require((limits is None) == (computed is None), "unlimited", "be given if and only if there are limits", "one")
    if limits is None or computed is None:
        return
    flaw = limits.flaw(len(explained.channels))
    _require(not flaw, "limits", "be those of a model", flaw)
    _require(computed.shape == explained.forecast.shape, "unlimited", "have the shape of the forecast", computed.shape)
    _require(
        np.array_equal(limits.apply(computed), explained.forecast, equal_nan=True) and not np.isinf(computed).any(),
        "forecast",
        "be what the model computed, within the limits",
        "another",
    )


def _check_times(explained: ExplainedForecast) -> None:
    clock, context = explained.clock, explained.explanation.context
    cycles, profile, steps = context.cycles, context.profile, len(context.phase)
    _require(min(cycles) > 0 and sum(cycles) == len(profile), "cycles", f"add up to {len(profile)} rows", cycles)
    _require(period(cycles) <= LARGEST_PERIOD, "cycles", f"begin again together within {LARGEST_PERIOD} steps", cycles)
    _require(clock.by_row == (clock.row is not None), "row", "be given if and only if rows are counted", clock.row)
    clock.check_steps()
    phase = clock.phase(0, steps, period(cycles))
    _require(
        (context.phase == phase).all(), "phase", "follow from the times", context.phase[context.phase != phase][:1]
    )


def _check_tokens(explained: ExplainedForecast) -> None:
    explanation, patch_len = explained.explanation, explained.explanation.patch_len
    patches, channels = explanation.mask.shape
    gaps = np.isnan(explained.history).reshape(patches, patch_len, channels).any(axis=1)
    _require((explanation.missing == gaps).all(), "missing", "mark the patches with a missing value", "others")
    _require(not (explanation.mask & gaps).any(), "mask", "leave patches with a missing value closed", "an open one")
    closed = ~explanation.mask.repeat(patch_len, axis=0)
    _require(not explanation.evidence[closed].any(), "evidence", "be zero in closed tokens", "another value")
    fits = (explanation.probability >= 0) & (explanation.probability <= 1)
    _require(fits.all(), "probability", "lie in [0, 1]", explanation.probability[~fits][:1])


def _check_known(explained: ExplainedForecast) -> None:
    context, known, units = explained.explanation.context, explained.known, explained.known_units
    present = {part is not None for part in (known, units, context.known, context.response)}
    _require(present == {bool(explained.covariates)}, "known", "be given if and only if there are covariates", present)
    if known is None or units is None or context.response is None or context.known is None:
        return
    sizes = (len(units.mean), len(units.std))
    _require(set(sizes) == {len(explained.covariates)}, "known_units", "fit the covariates", sizes)
    _require(np.isfinite(known).all(), "known", "be finite", "a value that is not")
    standardised = units.standardise(known).astype(np.float32)
    _require((standardised == context.known).all(), "known", "follow from the table's values", "others")
    _require(len(context.response) == context.cycles[0], "response", "cover the first cycle", len(context.response))


def _check_anchor(explained: ExplainedForecast) -> None:
    context = explained.explanation.context
    anchor, blend = context.anchor, context.blend
    _require((anchor is None) == (blend is None), "anchor", "be given if and only if there is a blend", "one of both")
    if anchor is None or blend is None:
        return
    steps = explained.horizon
    fewer, more = (len(anchor_names(context.cycles, explained.look_back, medians)) for medians in (False, True))
    _require(len(anchor) == steps, "anchor", f"have {steps} steps", len(anchor))
    _require(len(blend) in (fewer, more), "blend", f"have {fewer} or {more} rows", len(blend))
    _require((blend >= 0).all() and (context.anchored <= 1).all(), "blend", "be shares of at most 1 together", "others")
