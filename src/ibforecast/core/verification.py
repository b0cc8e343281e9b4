"""Is an explanation true? The checks it goes through, whatever runs the model; the only home of verification.

Nothing a document says about how it was computed is trusted. Phases follow from its times and the model's clock. The
checks demand equal bits first; where another machine, runtime or version computed the explanation, the last digits
may differ by what rounding does to this window on the verifier's own machine, and the verdict names that tolerance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int64

from ibforecast.core.calendar import Clock
from ibforecast.core.errors import DataError, IBForecastError, UsageError, VerificationError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import FIELDS, Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.signatures import is_signed_by
from ibforecast.core.verdict import Check, Verification

LAST_DIGIT = 2.0**-23
"""The spacing of single-precision numbers, relative to their size."""

LARGEST_ROUNDING = 1e-4
"""The most that is ever put down to rounding, in scales: beyond, a window cannot be verified on another machine."""

DRAWS, ROUNDINGS = 4, 16
"""How often the history's last digits are changed to see what rounding does, and how many times that is tolerated."""

NOT_COMPARED = (
    "table: history, times, truth and what was known ahead were not compared with a table, so an explanation of a "
    "made-up table would pass; give the table to compare them"
)
NOT_CHECKED = "signature: it is signed, but no public key was given to check who signed it"

Values = Float64[np.ndarray, "look_back channel"]
Future = Float64[np.ndarray, "horizon channel"]


@runtime_checkable
class Engine(Protocol):
    """Whatever can run a model on one window: PyTorch, or a runtime that does not know it."""

    @property
    def facts(self) -> ModelFacts:
        """What the model says of itself."""

    def at_budget(self, budget: float) -> "Engine":
        """Return the same model under another budget."""

    def variants(self) -> Sequence["Engine"]:
        """Return the same model in every way this machine may compute it, such as with other numbers of threads."""

    def run(
        self, history: Values, phase: Int64[np.ndarray, " steps"], known: Float64[np.ndarray, "steps covariate"] | None
    ) -> tuple[Explanation[np.ndarray], Future]:
        """Run the whole model on values in the table's units; return its explanation and forecast."""

    def replay(self, explanation: Explanation[np.ndarray]) -> Future:
        """Compute the forecast from an explanation alone."""

    def hold(self, history: Values, explanation: Explanation[np.ndarray]) -> Future:
        """Compute the forecast from these values, with the context and the mask of an explanation."""


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
) -> Verification:
    """Go through the checks; those that need a matching model are left out where the model does not match.

    `original` holds the table's own rows, `exact` forbids any tolerance, `key` is the public key of who must have
    signed it.
    """
    engine = _at_budget_of(engine, explained)
    facts = engine.facts
    checks = [
        Check("document", True, f"complete, consistent, content {explained.sha256[:12]}"),
        _weights(facts, explained),
        _names(facts, explained),
        _times(facts, explained, original),
    ]
    if original is not None:
        checks.append(_table(original, explained))
    if key is not None:
        checks.append(_signature(explained, key))
    notes = [NOT_COMPARED] if original is None else []
    if key is None and explained.signature is not None:
        notes.append(NOT_CHECKED)
    if checks[1].passed and checks[2].passed:
        checks += [_budget(facts, explained), *_recomputed(engine, explained, exact)]
    return Verification(tuple(checks), tuple(notes))


def refuted(error: IBForecastError) -> Verification:
    """Return the verdict on a document that contradicts itself."""
    return Verification((Check("document", False, str(error)),))


def read(text: str | bytes) -> ExplainedForecast | Verification:
    """Read a document to be verified: the explanation, or the verdict where its content was changed."""
    try:
        return ExplainedForecast.from_json(text)
    except VerificationError as error:
        return refuted(error)


def _at_budget_of(engine: Engine, explained: ExplainedForecast) -> Engine:
    """Return the model under the explanation's budget, if it can keep it; otherwise as it is: the names will differ."""
    try:
        return engine.at_budget(explained.budget)
    except UsageError:
        return engine


def _weights(facts: ModelFacts, explained: ExplainedForecast) -> Check:
    named, own = explained.weights_sha256, facts.weights_sha256
    detail = f"{own[:12]} gave it" if named == own else f"it names {named[:12]}, this model has {own[:12]}"
    return Check("weights", named == own, detail)


def _names(facts: ModelFacts, explained: ExplainedForecast) -> Check:
    """Compare everything the model says of itself with what the explanation says."""
    said: dict[str, Any] = {
        "channels": explained.channels,
        "past": explained.past,
        "covariates": explained.covariates,
        "look_back": explained.look_back,
        "horizon": explained.horizon,
        "patch_len": explained.explanation.patch_len,
        "cycles": explained.explanation.context.cycles,
        "frequency": str(explained.clock.frequency),
        "zone": explained.clock.zone,
        "by_row": explained.clock.by_row,
        "budget": explained.budget,
        "prior": explained.prior,
    }
    apart = [name for name, value in said.items() if value != getattr(facts, name)]
    for name in ("units", "known_units"):
        ours, theirs = getattr(facts, name), getattr(explained, name)
        same = ours is theirs or (ours is not None and theirs is not None and ours.same_as(theirs))
        apart += [] if same else [name]
    same = "channels, lengths, calendar, units, budget and prior are the model's"
    return Check("names", not apart, f"not the model's: {', '.join(apart)}" if apart else same)


def _times(facts: ModelFacts, explained: ExplainedForecast, original: Original | None) -> Check:
    """Check that the phases follow from the times; where rows are counted, that the number of the first one does."""
    row, counted = explained.clock.row, "the number of the first row, which sets the phases,"
    if row is None:
        return Check("times", not facts.by_row, "every phase follows from its time and the model's clock")
    if original is not None:
        own = original.clock.row
        return Check("times", own == row, f"{counted} is {row}" + ("" if own == row else f", in the table {own}"))
    try:
        own = facts.clock(explained.clock.stamps).offset
    except DataError:
        return Check("times", False, f"{counted} does not follow from the times here; give the table")
    detail = "follows from the times" if own == row else f"is {row}, by the times {own}; give the table if it has gaps"
    return Check("times", own == row, f"{counted} {detail}")


def _table(original: Original, explained: ExplainedForecast) -> Check:
    apart = [] if np.array_equal(original.clock.stamps, explained.clock.stamps) else ["times"]
    for name in ("history", "known"):
        ours, theirs = getattr(original, name), getattr(explained, name)
        if not _same(ours, theirs):
            apart.append(name)
    if not _is_part_of(explained.truth, original.truth):
        apart.append("truth")
    same = "history, times, truth and what was known ahead are the table's own"
    return Check("table", not apart, f"not the table's: {', '.join(apart)}" if apart else same)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other, equal_nan=True))


def _is_part_of(truth: Future | None, now: Future | None) -> bool:
    """Whether a truth is what the table held up to some step: it may have grown since, but says the same."""
    if truth is None:
        return True
    steps = int(np.flatnonzero(~np.isnan(truth).all(axis=1)).max(initial=-1)) + 1
    return now is not None and _same(truth[:steps], now[:steps])


def _signature(explained: ExplainedForecast, key: bytes) -> Check:
    if explained.signature is None:
        return Check("signature", False, "it is not signed")
    signed = is_signed_by(explained.sha256, explained.signature, key)
    return Check("signature", signed, "signed by the key given" if signed else "not signed by the key given")


def _budget(facts: ModelFacts, explained: ExplainedForecast) -> Check:
    detail = f"{explained.open_count} tokens open, {facts.allowance} allowed, none of them missing"
    return Check("budget", explained.open_count <= facts.allowance, detail)


def _recomputed(engine: Engine, explained: ExplainedForecast, exact: bool) -> list[Check]:
    """Compute the forecast again: from the explanation, with closed tokens scrambled, and from the history."""
    apart = None
    for variant in engine.variants():
        differences = _differences(variant, explained)
        if not any(differences.values()):
            return _checks(explained, differences, 0.0)
        apart = apart or differences
    assert apart is not None
    return _checks(explained, apart, 0.0 if exact else ROUNDINGS * _rounding(engine, explained))


def _differences(engine: Engine, explained: ExplainedForecast) -> dict[str, float]:
    """By how much everything that is computed again differs from what the explanation says, in scales."""
    explanation, history, units = explained.explanation, explained.history, engine.facts.units
    size = 10 * (np.abs(np.nan_to_num(units.standardise(history))).max() + 1)
    noise = units.to_units(size * np.random.default_rng(0).standard_normal(history.shape))
    # A model that remembered the last window it saw would repeat it, so it is shown noise first.
    engine.run(noise, explanation.context.phase, explained.known)
    replayed = engine.replay(explanation)
    read = explanation.mask.repeat(explanation.patch_len, axis=0)
    unmoved = engine.hold(np.where(read, history, noise), explanation)
    again, forecast = _rerun(engine, explained)
    return {
        "replay": _shift(explained, replayed),
        "scramble": _shift(explained, unmoved),
        **_apart(explanation, again),
        "forecast": _shift(explained, forecast),
    }


def _rerun(engine: Engine, explained: ExplainedForecast) -> tuple[Explanation[np.ndarray], Future]:
    """Run the whole model on the window of an explanation."""
    return engine.run(explained.history, explained.explanation.context.phase, explained.known)


def _rounding(engine: Engine, explained: ExplainedForecast) -> float:
    """Return how far the last digits of the history alone move the results on this machine, in scales."""
    units, random, largest = engine.facts.units, np.random.default_rng(1), LAST_DIGIT
    phase, known = explained.explanation.context.phase, explained.known
    own, values = _rerun(engine, explained)
    for _ in range(DRAWS):
        signs = random.choice([-LAST_DIGIT, LAST_DIGIT], explained.history.shape)
        history = units.to_units(units.standardise(explained.history) * (1 + signs))
        again, forecast = engine.run(history, phase, known)
        apart = _apart(own, again) | {"forecast": _shift(explained, forecast, values)}
        # Another mask is another explanation: what it moves is not rounding.
        if np.isfinite(list(apart.values())).all():
            largest = max(largest, *apart.values())
    return min(largest, LARGEST_ROUNDING)


def _shift(explained: ExplainedForecast, forecast: Future, own: Future | None = None) -> float:
    """Return the largest shift of a forecast from the explanation's or from its `own`, in scales.

    It is infinite where one has a number and the other has none.
    """
    own = explained.forecast if own is None else own
    if not (np.isnan(forecast) == np.isnan(own)).all():
        return np.inf
    return _largest((forecast - own) / (explained.units.std * explained.explanation.context.scale))


def _apart(own: Explanation[np.ndarray], again: Explanation[np.ndarray]) -> dict[str, float]:
    """By how much each array of an explanation differs; infinite for those that rounding cannot change.

    All sizes are in scales, except those of probabilities.
    """
    apart = {}
    for field in FIELDS:
        ours, theirs = field.of(own), field.of(again)
        if ours is None or theirs is None:
            apart[field.name] = 0.0 if ours is theirs else np.inf
        elif ours.shape != theirs.shape:
            apart[field.name] = np.inf
        elif field.kind == "float32" and not field.given:
            divisor = own.context.scale if field.in_scales else 1.0
            apart[field.name] = _largest((theirs.astype(np.float64) - ours) / divisor)
        else:
            apart[field.name] = 0.0 if (ours == theirs).all() else np.inf
    return apart


def _largest(differences: np.ndarray) -> float:
    seen = np.abs(differences[~np.isnan(differences)])
    return float(seen.max(initial=0.0))


def _checks(explained: ExplainedForecast, apart: dict[str, float], tolerance: float) -> list[Check]:
    rerun = {name: size for name, size in apart.items() if name not in ("replay", "scramble")}
    values = f"({int(explained.is_forecast.sum()) * explained.horizon} values)"
    return [
        _check(
            "replay", f"the explanation and its context alone give the forecast {values}", apart["replay"], tolerance
        ),
        _check(
            "scramble",
            f"every closed token scrambled, context and mask held, the forecast stays {values}",
            apart["scramble"],
            tolerance,
        ),
        _check(
            "rerun",
            "the whole model, run on this history, gives this context, mask, evidence and forecast",
            max(rerun.values()),
            tolerance,
            [name for name, size in rerun.items() if size > tolerance],
        ),
    ]


def _check(name: str, claim: str, apart: float, tolerance: float, at_fault: Sequence[str] = ()) -> Check:
    if apart == 0:
        return Check(name, True, f"{claim}, bit for bit")
    passed = apart <= tolerance
    fault = f" in {', '.join(at_fault)}" if at_fault else ""
    size = f"differs by up to {apart:.1e} scales{fault}" if np.isfinite(apart) else f"differs{fault}"
    limit = f"rounding on this machine explains {tolerance:.1e}" if tolerance else "no difference is allowed"
    return Check(name, passed, f"{claim}: {size}; {limit}")
