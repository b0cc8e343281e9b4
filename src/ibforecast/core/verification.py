"""Verification: the checks that decide whether an explanation is true, for any runtime of the model.

No statement of a document about how it was computed is trusted. Phases follow from its times and the model's clock. The
checks first require equal bits. If another machine, runtime or version computed the explanation, sums may differ by the
effect of rounding on this window on the verifier's own machine; the verdict names that tolerance. Everything that is
not a sum has the same bits on every machine, so it must be equal.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64, Int64

from ibforecast.core.calendar import Clock
from ibforecast.core.errors import DataError, IBForecastError, UsageError, VerificationError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import FIELDS, Explanation, Field
from ibforecast.core.facts import ModelFacts
from ibforecast.core.receipt import Amounts, Receipt, column_of, decimals_for, places, receipt_of, unrounded
from ibforecast.core.signatures import is_signed_by
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.verdict import Check, Verification

LAST_DIGIT = 2.0**-23
"""The spacing of single-precision numbers, relative to their size."""

LARGEST_ROUNDING = 1e-4
"""The largest difference attributed to rounding, in scales; above it, only the same machine can verify a window."""

DRAWS, ROUNDINGS = 4, 16
"""How often the last digits of the history are changed to measure rounding, and which multiple is tolerated."""

LARGEST_NOISE = 1e30
"""Noise is made larger than all values up to this size; beyond it, noise would be infinite in single precision."""

NOT_COMPARED = (
    "table: history, times, truth and what was known ahead were not compared with a table, so an explanation of a "
    "made-up table would pass; give the table to compare them"
)
NOT_ITEMISED = (
    "this runtime computes no receipts, so those of the document are not confirmed; verify with the model folder"
)
NOT_CHECKED = "signature: it has one, which was not checked; give the public key of the expected signer"
ROUNDED = (
    "rounding: some last digits are not those of this machine, but another processor, library or version may round so; "
    "exact refuses every difference"
)

LAST_UNITS = 2.0
"""By how many units of its last digit an amount may differ: rounding of single precision, and of the remainder.

The differences of rounding have either sign. So those of the places of a channel, added up in any stretch of time, may
be this many units times the square root of the number of places; otherwise many small ones could move a printed sum."""

TEXT_ROUNDING = 4.0
"""How many units of the last binary digit a value of a table may differ by: libraries read decimal text differently."""

TINY = 1e-300
"""Replaces a tolerance of zero, so that a difference can be divided by it."""

Sizes = Float64[np.ndarray, " _"]
PerChannel = dict[str, Sizes]
"""Differences by the name of the array: one for each channel, or a single one.

They stay separate because one noisy channel must not raise the tolerance of the others."""

Values = Float64[np.ndarray, "look_back channel"]
Future = Float64[np.ndarray, "horizon channel"]


Itemised = Callable[[ExplainedForecast], Iterable[Amounts]]
"""What computes the amounts of the receipts that an explanation contains, in the same order, whatever they state."""


@runtime_checkable
class Engine(Protocol):
    """Anything that can run a model on one window: PyTorch or another runtime."""

    @property
    def facts(self) -> ModelFacts:
        """The facts about the model."""

    def at_budget(self, budget: float) -> "Engine":
        """Return the same model under another budget."""

    def variants(self) -> Sequence["Engine"]:
        """Return the same model in every way this machine can compute it, such as with other numbers of threads."""

    def run(
        self, history: Values, phase: Int64[np.ndarray, " steps"], known: Float64[np.ndarray, "steps covariate"] | None
    ) -> tuple[Explanation[np.ndarray], Future]:
        """Run the whole model on values in the table's units; return its explanation and forecast."""

    def replay(self, explanation: Explanation[np.ndarray]) -> Future:
        """Compute the forecast from only an explanation."""

    def hold(self, history: Values, explanation: Explanation[np.ndarray]) -> Future:
        """Compute the forecast from these values, with the context and the mask of an explanation."""

    def through(
        self,
        history: Values,
        phase: Int64[np.ndarray, " steps"],
        known: Float64[np.ndarray, "steps covariate"] | None,
        mask: Bool[np.ndarray, "patch channel"],
    ) -> tuple[Explanation[np.ndarray], Future]:
        """Run the model on these values through a given mask; level and scale are computed again.

        The probabilities of the explanation are 1 and 0, because nothing is chosen.
        """


@dataclass(frozen=True, eq=False)
class Original:
    """The rows of the table an explanation claims to be about."""

    clock: Clock
    history: Values
    truth: Future | None
    known: Float64[np.ndarray, "steps covariate"] | None = None


def verify(
    engine: Engine,
    explained: ExplainedForecast,
    original: Original | None = None,
    *,
    exact: bool = False,
    key: bytes | None = None,
    itemised: Itemised | None = None,
) -> Verification:
    """Run the checks; without matching weights and names, leave out those that run the model.

    `original` contains the table's own rows, `exact` forbids any tolerance, and `key` is the public key of the expected
    signer. `itemised` computes the receipts of this explanation, if the runtime can.
    """
    try:  # built again, so that changes made in place and cached values do not count
        explained = replace(explained, host=None)
    except DataError as error:
        return refuted(error)
    engine = _at_budget_of(engine, explained)
    facts = engine.facts
    checks = [
        Check("document", True, f"complete, consistent, content {explained.sha256[:12]}"),
        _weights(facts, explained),
        _names(facts, explained),
        _times(facts, explained, original),
    ]
    notes = [NOT_COMPARED] if original is None else []
    if original is not None:
        checks.append(_table(original, explained, exact))
        notes += _unstated_truth(original, explained)
    if key is not None:
        checks.append(_signature(explained, key))
    if key is None and explained.signature is not None:
        notes.append(NOT_CHECKED)
    if checks[1].passed and checks[2].passed:
        recomputed, same_bits = _recomputed(engine, explained, exact)
        checks += [_budget(facts, explained), *recomputed]
        notes += [ROUNDED] if not same_bits and all(check.passed for check in recomputed) else []
        notes += [] if exact else _rounded_otherwise(engine, explained)
        checks += [_unread(engine, explained)] if facts.sealed else []
        checks += [_reading(engine, explained)] if facts.chooses else []
        checks += [_receipts(explained, itemised, exact)] if explained.receipts else []
    return Verification(tuple(checks), tuple(notes))


def refuted(error: IBForecastError) -> Verification:
    """Return the verdict on an invalid document."""
    return Verification((Check("document", False, str(error)),))


def read(source: ExplainedForecast | str | bytes) -> ExplainedForecast | Verification:
    """Return the explanation, read from its document if it is text, or the verdict if the content was changed."""
    if isinstance(source, ExplainedForecast):
        return source
    if not isinstance(source, str | bytes):
        raise UsageError("only an explanation or its document can be verified", type(source).__name__, "give one")
    try:
        return ExplainedForecast.from_json(source)
    except VerificationError as error:
        return refuted(error)


def _at_budget_of(engine: Engine, explained: ExplainedForecast) -> Engine:
    """Return the model under the explanation's budget, or unchanged if it cannot take it: `names` will then fail."""
    try:
        return engine.at_budget(explained.budget)
    except UsageError:
        return engine


def _weights(facts: ModelFacts, explained: ExplainedForecast) -> Check:
    named, own = explained.weights_sha256, facts.weights_sha256
    # All digits, because a forger can try models until the first ones agree.
    detail = (
        f"it names the fingerprint of this model, {own}" if named == own else f"it names {named}, this model is {own}"
    )
    return Check("weights", named == own, detail)


def _names(facts: ModelFacts, explained: ExplainedForecast) -> Check:
    """Compare the facts about the model with those in the explanation."""
    stated: dict[str, Any] = {
        "channels": explained.channels,
        "past": explained.past,
        "covariates": explained.covariates,
        "look_back": explained.look_back,
        "horizon": explained.horizon,
        "patch_len": explained.explanation.patch_len,
        "cycles": explained.explanation.context.cycles,
        "frequency": str(explained.clock.frequency),
        "numbered": explained.clock.numbered,
        "zone": explained.clock.zone,
        "by_row": explained.clock.by_row,
        "budget": explained.budget,
        "prior": explained.prior,
        "sealed": explained.sealed,
        "zero_at": explained.zero_at,
    }
    differing = [name for name, value in stated.items() if value != getattr(facts, name)]
    for name in ("units", "known_units", "limits"):
        ours, theirs = getattr(facts, name), getattr(explained, name)
        same = ours is theirs or (ours is not None and theirs is not None and ours.same_as(theirs))
        differing += [] if same else [name]
    same = (
        f"channels, lengths, calendar, units,{' limits,' * (facts.limits is not None)} budget and prior are the model's"
    )
    return Check("names", not differing, f"not the model's: {', '.join(differing)}" if differing else same)


def _times(facts: ModelFacts, explained: ExplainedForecast, original: Original | None) -> Check:
    """Check that the phases follow from the times or, if rows are counted, that the number of the first row does."""
    row, counted = explained.clock.row, "the number of the first row, which sets the phases,"
    follows = "every phase follows from its time and the model's clock"
    if row is None and original is None and not facts.by_row and not facts.clock(explained.clock.stamps).on_grid:
        return Check(
            "times", False, f"{follows}, but times lie between the steps that follow {facts.origin}; give the table"
        )
    if row is None:
        return Check("times", not facts.by_row, follows)
    if original is not None:
        own = original.clock.row
        return Check("times", own == row, f"{counted} is {row}" + ("" if own == row else f", in the table {own}"))
    try:
        replace(explained.clock, by_row=False).check_steps()
        clock = facts.clock(explained.clock.stamps)
        own, on_grid = clock.offset, replace(clock, by_row=False).on_grid
    except DataError:
        own, on_grid = 0, False
    if not on_grid:
        return Check("times", False, f"{counted} does not follow from the times here; give the table")
    detail = "follows from the times" if own == row else f"is {row}, by the times {own}; give the table if it has gaps"
    return Check("times", own == row, f"{counted} {detail}")


def _table(original: Original, explained: ExplainedForecast, exact: bool) -> Check:
    """Compare with the rows of the table, unless `exact` up to how a library reads decimal text."""
    differing = [] if np.array_equal(original.clock.stamps, explained.clock.stamps) else ["times"]
    steps, truth, now = _observed(explained.truth), explained.truth, original.truth
    compared = {
        "history": (original.history, explained.history),
        "known": (original.known, explained.known),
        # The table may have grown since, so the truth is compared up to its last observed step.
        "truth": (now if now is None else now[:steps], truth if truth is None else truth[:steps]),
    }
    if not steps:
        del compared["truth"]
    apart = {name: _apart(*values) for name, values in compared.items()}
    differing += [name for name, roundings in apart.items() if roundings > (0.0 if exact else TEXT_ROUNDING)]
    same = "history, times, truth and what was known ahead are the table's own"
    if any(apart.values()):
        same += ", up to the rounding of text; read CSV files with pandas as float_precision='round_trip' for none"
    if original.clock.stamps[0] != explained.clock.stamps[0]:
        differing[0] = f"times, it has no window from {explained.times[0]} to {explained.at}"
    return Check("table", not differing, f"not the table's: {', '.join(differing)}" if differing else same)


def _apart(one: Any, other: Any) -> float:
    """Return the largest difference of two arrays, in last binary digits; infinite if only one has a number."""
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    if one.shape != other.shape or (np.isnan(one) != np.isnan(other)).any():
        return np.inf
    size = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(over="ignore"):  # two huge numbers of opposite sign are infinitely apart
        return float(np.nan_to_num(np.abs(one - other) / np.spacing(size), nan=0.0, posinf=np.inf).max(initial=0.0))


def _unstated_truth(original: Original, explained: ExplainedForecast) -> list[str]:
    """Return a note if the table contains more of the truth than the explanation."""
    stated, known = (_observed(truth) for truth in (explained.truth, original.truth))
    more = f"truth: the explanation has that of {stated} steps, the table that of {known} of {explained.horizon}"
    return [more] if known > stated else []


def _observed(truth: Future | None) -> int:
    """Return the number of steps up to the last one with a value."""
    return 0 if truth is None else int(np.flatnonzero(~np.isnan(truth).all(axis=1)).max(initial=-1)) + 1


def _signature(explained: ExplainedForecast, key: bytes) -> Check:
    if explained.signature is None:
        return Check("signature", False, "it is not signed")
    signed = is_signed_by(explained.sha256, explained.signature, key)
    return Check("signature", signed, "signed by the key given" if signed else "not signed by the key given")


def _budget(facts: ModelFacts, explained: ExplainedForecast) -> Check:
    detail = f"{explained.open_count} tokens open, {facts.allowance} allowed, none of them missing"
    return Check("budget", explained.open_count <= facts.allowance, detail)


def _recomputed(engine: Engine, explained: ExplainedForecast, exact: bool) -> tuple[list[Check], bool]:
    """Compute the forecast again: from the explanation, with closed tokens scrambled, and from the history.

    Return the checks, and whether all bits are equal.
    """
    first = None
    for variant in engine.variants():
        differences = _differences(variant, explained)
        if not any(sizes.any() for sizes in differences.values()):
            return _checks(explained, differences, {}), True
        first = first or differences
    assert first is not None
    return _checks(explained, first, {} if exact else _tolerances(engine, explained)), False


def _unread(engine: Engine, explained: ExplainedForecast) -> Check:
    """Replace everything that was not read and run the whole model again, with nothing held.

    A missing value stays missing: filling a gap in a place that is read would change what is read.
    """
    own, forecast = _rerun(engine, explained)
    changed = []
    for name, history in _scrambled(engine.facts, explained).items():
        with np.errstate(over="ignore"):  # single precision cannot represent the largest of these values
            again, values = engine.run(history, explained.explanation.context.phase, explained.known)
        if not _same_results(own, forecast, replace(again, missing=own.missing), values):
            changed.append(name)
    return _scrambled_check("unread", "nothing held", "mask, context and forecast", changed)


def _reading(engine: Engine, explained: ExplainedForecast) -> Check:
    """Replace everything that was not read and run the model again through the mask of the explanation.

    The result must be that of the whole model, which chose its mask: one that computed level or forecast in another way
    when the mask is given would otherwise pass.
    """
    own, forecast = _rerun(engine, explained)
    phase, mask, changed = explained.explanation.context.phase, explained.explanation.mask, []
    for name, history in {"the values themselves": explained.history, **_scrambled(engine.facts, explained)}.items():
        with np.errstate(over="ignore"):  # single precision cannot represent the largest of these values
            again, values = engine.through(history, phase, explained.known, mask)
        # Probabilities say how the mask was chosen, and here it is given.
        again = replace(again, missing=own.missing, probability=own.probability)
        if not _same_results(own, forecast, again, values):
            changed.append(name)
    return _scrambled_check("reading", "the mask held", "level, scale, evidence and forecast", changed)


def _same_results(
    own: Explanation[np.ndarray], forecast: Future, again: Explanation[np.ndarray], values: Future
) -> bool:
    """Return whether two runs of a model gave the same explanation and forecast, bit for bit."""
    moved = any(sizes.any() for sizes in _field_differences(own, again).values())
    return not moved and np.array_equal(forecast, values, equal_nan=True)


def _scrambled_check(name: str, held: str, results: str, changed: list[str]) -> Check:
    """Return the check that replacing unread values changed nothing; `changed` are the replacements that did."""
    claim = f"every unread value replaced by noise, by nothing, by ±1e30 and by others of the window, {held}"
    detail = f"another result with {', '.join(changed)}" if changed else f"the same {results}, bit for bit"
    return Check(name, not changed, f"{claim}: {detail}")


def _scrambled(facts: ModelFacts, explained: ExplainedForecast) -> dict[str, Values]:
    """Return histories that differ from that of an explanation only where nothing was read."""
    history, random = explained.history, np.random.default_rng(2)
    unread = ~explained.explanation.mask.repeat(explained.explanation.patch_len, axis=0)
    observed = unread & ~np.isnan(history)
    noise = facts.units.to_units(10 * random.standard_normal(history.shape))
    shuffled = np.where(np.isnan(history), noise, history)[random.permutation(len(history))]
    replacements = {"noise": noise, "+1e30": np.full_like(history, 1e30), "-1e30": np.full_like(history, -1e30)}
    scrambled = {name: np.where(observed, values, history) for name, values in replacements.items()}
    return scrambled | {
        "values of other times": np.where(observed, shuffled, history),
        "nothing": np.where(unread, np.nan, history),
    }


def _rounded_otherwise(engine: Engine, explained: ExplainedForecast) -> list[str]:
    """Return a note if numbers of the forecast are rounded to other whole numbers here: they are close to a half."""
    limits = explained.limits
    if limits is None or not limits.whole.any():
        return []
    _, computed = _rerun(engine, explained)
    own, stated = limits.apply(computed), explained.forecast
    moved = np.argwhere(limits.whole & ~np.isnan(stated) & (own != stated))
    ahead = explained.times[explained.look_back :]
    listed = [
        f"{explained.channels[column]!r} at {ahead[step]} is {own[step, column]:g} here, not {stated[step, column]:g}"
        for step, column in moved[:3].tolist()
    ]
    more = [f"{len(moved) - len(listed)} more"] * (len(moved) > len(listed))
    return [f"whole numbers: {'; '.join([*listed, *more])}; a last digit decides"] if listed else []


def _receipts(explained: ExplainedForecast, itemised: Itemised | None, exact: bool) -> Check:
    """Compute every receipt again and compare all amounts; that they add up was checked when it was read."""
    if itemised is None:
        return Check("receipts", False, NOT_ITEMISED)
    count = len(explained.receipts)
    claim = f"{count} receipt{'s add' if count > 1 else ' adds'} up to the forecast, with the amounts of the model"
    worst = 0.0
    try:
        for stated, amounts in zip(explained.receipts, itemised(explained), strict=True):
            own = receipt_of(explained, amounts, stated.channel, stated.step)
            unit = 10.0 ** -decimals_for(explained, column_of(explained, stated.channel), stated.step)
            with np.errstate(over="ignore"):  # huge amounts are infinitely apart
                apart = np.rint((np.array(stated.amounts) - own.amounts) / unit)  # amounts are whole units
            same = not apart.any() and own.error == stated.error
            if not same and (exact or not _same_up_to_rounding(explained, amounts, own, stated, unit)):
                return Check("receipts", False, f"{claim}: not those of {stated.channel!r}, {stated.step}")
            worst = max(worst, float(np.abs(apart).max()))
    except VerificationError as error:  # its own amounts do not add up to a forecast that is not its own
        return Check("receipts", False, f"{claim}: {error}")
    apart_by = f"; the last digit differs by up to {worst:.0f}" if worst else ""
    return Check("receipts", True, f"{claim}, to the last digit{apart_by}")


def _same_up_to_rounding(
    explained: ExplainedForecast, amounts: Amounts, own: Receipt, stated: Receipt, unit: float
) -> bool:
    """Return whether rounding explains the differences between two receipts of one number.

    Amounts that add up are all rounded at one threshold, so what rounding has added to them lies within one unit. On
    another machine it lies within one unit of amounts that single precision moves by up to `noise`: they are sums of
    differences of forecasts.
    """
    exact = np.array(unrounded(explained, amounts, own.channel, own.step))
    std = float(explained.units.std[column_of(explained, own.channel)])
    noise = ROUNDINGS * LAST_DIGIT * (std + float(np.abs(exact[1:]).max(initial=0.0)))
    ours, theirs = np.array(own.amounts), np.array(stated.amounts)
    some = (ours != 0) | (theirs != 0)  # an amount of zero stays zero, whatever the threshold
    some[0] = True
    with np.errstate(all="ignore"):  # differences that are not finite are refused
        added = float(np.ptp((theirs - exact)[some]))
        allowed = max(unit, float(np.ptp((ours - exact)[some]))) + 2 * noise
        drift = _drift(explained, theirs - ours, len(stated.read))
    return added <= allowed and drift <= LAST_UNITS * unit + 2 * noise and _same_error(own.error, stated.error, noise)


def _drift(explained: ExplainedForecast, apart: Sizes, count: int) -> float:
    """Return the largest sum of differences over a stretch of amounts of one kind, divided by the root of their number.

    The kinds are the `count` places that were read, those of each channel, and the covariates known ahead.
    """
    read, known = apart[1 : 1 + count], apart[1 + count : 1 + count + len(explained.covariates)]
    columns, largest = np.array([column for _, column in places(explained)]), 0.0
    for amounts in (read, known, *(read[columns == column] for column in np.unique(columns))):
        sums = np.cumsum(np.append(0.0, amounts))
        largest = max(largest, float(sums.max() - sums.min()) / max(1, len(amounts)) ** 0.5)
    return largest


def _same_error(own: float | None, stated: float | None, noise: float) -> bool:
    """Return whether a standard error is the model's, up to rounding, and never 0 if the model's is not."""
    if own is None or stated is None:
        return own is stated
    return abs(own - stated) <= noise and (stated == 0.0) == (own == 0.0)


def _differences(engine: Engine, explained: ExplainedForecast) -> PerChannel:
    """Return by how much each recomputed result differs from the explanation."""
    explanation, history, units = explained.explanation, explained.history, engine.facts.units
    size = 10 * (np.abs(np.nan_to_num(units.standardise(history))).clip(max=LARGEST_NOISE).max() + 1)
    noise = units.to_units(size * np.random.default_rng(0).standard_normal(history.shape))
    # The model runs on noise first: one that remembered its last window would otherwise repeat it.
    engine.run(noise, explanation.context.phase, explained.known)
    replayed = engine.replay(explanation)
    read = explanation.mask.repeat(explanation.patch_len, axis=0)
    unmoved = engine.hold(np.where(read, history, noise), explanation)
    own, forecast = _rerun(engine, explained)
    scales, fields = units.std * own.context.scale, _field_differences(own, explanation)
    return {
        "replay": np.where(_is_single(explained.computed, units), _shift(replayed, explained.computed, scales), np.inf),
        "scramble": _shift(unmoved, explained.computed, scales),
        **fields,
        "evidence": np.where(_is_left_of(history, explanation, units), fields["evidence"], np.inf),
        "forecast": _shift(forecast, explained.computed, scales),
    }


def _is_single(forecast: Future, units: Standardiser) -> Bool[np.ndarray, " channel"]:
    """Return in which channels every number is one of single precision in these units, as a network computes them.

    A printed number has more digits than single precision, so hardly any number with another last digit is one.
    """
    with np.errstate(over="ignore"):  # a number too large becomes infinite, and is none
        nearest = units.standardise(forecast).astype(np.float32)
        # Neighbours too, because a large mean takes last digits.
        candidates = [nearest, *(np.nextafter(nearest, np.float32(end)) for end in (-np.inf, np.inf))]
        given = [units.to_units(each.astype(np.float64)) == forecast for each in candidates]
    return np.asarray((np.any(given, axis=0) | np.isnan(forecast)).all(axis=0))


def _is_left_of(
    history: Values, explanation: Explanation[np.ndarray], units: Standardiser
) -> Bool[np.ndarray, " channel"]:
    """Return in which channels the evidence is exactly what the stated context leaves of the values that were read.

    It is computed value by value, so every machine gets the same bits. Only the effects of covariates are summed first.
    """
    context, read = explanation.context, explanation.mask.repeat(explanation.patch_len, axis=0)
    if context.known is not None:
        return np.ones(read.shape[1], dtype=bool)
    with np.errstate(all="ignore"):  # values that were not read may have any size
        left = context.remove(units.standardise(history).astype(np.float32))
    return np.asarray((np.where(read, left, np.float32(0)) == explanation.evidence).all(axis=0))


def _rerun(engine: Engine, explained: ExplainedForecast) -> tuple[Explanation[np.ndarray], Future]:
    """Run the whole model on the window of an explanation."""
    return engine.run(explained.history, explained.explanation.context.phase, explained.known)


def _tolerances(engine: Engine, explained: ExplainedForecast) -> PerChannel:
    """Return how far each result may differ: a multiple of the effect of the last digits of the history.

    The digits move at random, and all up or all down, because random changes of many values cancel in a mean.
    """
    units, random = engine.facts.units, np.random.default_rng(1)
    phase, known = explained.explanation.context.phase, explained.known
    own, values = _rerun(engine, explained)
    scales, largest = units.std * own.context.scale, PerChannel()
    shape = explained.history.shape
    drawn = [random.choice([-LAST_DIGIT, LAST_DIGIT], shape) for _ in range(DRAWS)]
    for moves in (*drawn, np.full(shape, LAST_DIGIT), np.full(shape, -LAST_DIGIT)):
        history = units.to_units(units.standardise(explained.history) * (1 + moves))
        again, forecast = engine.run(history, phase, known)
        changes = _field_differences(own, again) | {"forecast": _shift(forecast, values, scales)}
        # A draw that changes the mask is skipped: its effect is not rounding.
        if all(np.isfinite(sizes).all() for sizes in changes.values()):
            largest = {name: np.maximum(sizes, largest.get(name, LAST_DIGIT)) for name, sizes in changes.items()}
    tolerances = {name: ROUNDINGS * np.minimum(sizes, LARGEST_ROUNDING) for name, sizes in largest.items()}
    return tolerances | dict.fromkeys(("replay", "scramble"), tolerances.get("forecast", np.zeros(1)))


def _shift(forecast: Future, claimed: Future, scales: Float64[np.ndarray, " channel"]) -> Sizes:
    """Return how far each channel of a forecast is from the claimed one, in scales.

    The distance is infinite if only one of them has a number.
    """
    neither = np.isnan(forecast) & np.isnan(claimed)
    with np.errstate(all="ignore"):  # a difference that is not finite counts as infinite
        shifts = np.abs(np.where(neither, 0.0, (forecast - claimed) / scales)).max(axis=0)
    return np.where(np.isfinite(shifts), shifts, np.inf)


def _field_differences(own: Explanation[np.ndarray], claimed: Explanation[np.ndarray]) -> PerChannel:
    """Return by how much each channel of each array differs from the claimed one; infinite if not by rounding.

    All sizes are in the scales that were computed here, except those of probabilities: with its own scales a document
    could make its differences look small.
    """
    differences, infinite = {}, np.full(own.mask.shape[-1], np.inf)
    for field in FIELDS:
        ours, theirs = field.of(own), field.of(claimed)
        if ours is None or theirs is None:
            differences[field.name] = np.zeros(1) if ours is theirs else infinite
        elif ours.shape != theirs.shape:
            differences[field.name] = infinite
        elif _may_round(field, own):
            with np.errstate(all="ignore"):
                sizes = np.abs(ours.astype(np.float64) - theirs) / (own.context.scale if field.in_scales else 1.0)
            largest = sizes.reshape(-1, sizes.shape[-1]).max(axis=0)
            differences[field.name] = np.where(np.isfinite(largest), largest, np.inf)
        else:
            differences[field.name] = np.zeros(1) if (ours == theirs).all() else infinite
    return differences


def _may_round(field: Field, explanation: Explanation[np.ndarray]) -> bool:
    """Return whether an array is computed, so that other machines may round it otherwise.

    The model's own numbers are not, except profiles of several cycles: a later one loses what an earlier one expresses.
    """
    computed = field.batched or len(explanation.context.cycles) > 1
    return field.kind == "float32" and field.computed and not field.given and computed


def _checks(explained: ExplainedForecast, differences: PerChannel, tolerances: PerChannel) -> list[Check]:
    values = f"({int(explained.is_forecast.sum()) * explained.horizon} values)"
    claims = {
        "replay": f"the explanation and its context give the forecast {values}",
        "scramble": f"every closed token scrambled, context and mask held, the forecast stays {values}",
        "rerun": "the whole model, run on this history, gives this context, mask, evidence and forecast",
    }
    rerun = [name for name in differences if name not in claims]
    return [
        _check(name, claim, {one: differences[one] for one in (rerun if name == "rerun" else [name])}, tolerances)
        for name, claim in claims.items()
    ]


def _check(name: str, claim: str, differences: PerChannel, tolerances: PerChannel) -> Check:
    """Compare sizes with their tolerances; the verdict names the tolerance of the largest relative difference."""
    if not any(sizes.any() for sizes in differences.values()):
        return Check(name, True, f"{claim}, bit for bit")
    allowed = {
        one: np.broadcast_to(tolerances.get(one, np.zeros(1)), sizes.shape) for one, sizes in differences.items()
    }
    with np.errstate(all="ignore"):
        shares = {one: sizes / allowed[one].clip(min=TINY) for one, sizes in differences.items()}
    needed = {one: float(share.max()) for one, share in shares.items()}
    worst = max(needed, key=lambda one: needed[one])
    at, at_fault = int(shares[worst].argmax()), [one for one in differences if needed[one] > 1 and one != name]
    largest = max(float(sizes.max()) for sizes in differences.values())
    infinite = "differs in a number that is not of single precision" if name == "replay" else "differs"
    size = f"differs by up to {largest:.1e} scales" if np.isfinite(largest) else infinite
    where = f" in {', '.join(at_fault)}" if at_fault else ""
    limit = f"rounding on this machine explains {allowed[worst][at]:.1e}" if tolerances else "no difference is allowed"
    return Check(name, needed[worst] <= 1, f"{claim}: {size}{where}; {limit}")
