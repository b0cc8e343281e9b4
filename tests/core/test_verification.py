"""Verification with any engine: each check fails for its own reason, and the verdict names what was not checked.

The engine here is a model of a few lines in numpy, so that each way to cheat is a change of one line.
"""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.core.samples import CHANNELS, CYCLE, HORIZON, PATCH_LEN, as_single, changed, hourly

from ibforecast.core.calendar import Clock
from ibforecast.core.context import Context
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.explanation import Explanation
from ibforecast.core.facts import ModelFacts
from ibforecast.core.limits import Limits
from ibforecast.core.signatures import new_keys, sign
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.verdict import Check, Verification
from ibforecast.core.verification import NOT_CHECKED, NOT_COMPARED, ROUNDED, Engine, Original, read, verify

PATCHES = 4
LOOK_BACK = PATCHES * PATCH_LEN
STEPS = LOOK_BACK + HORIZON
RECOMPUTED = {"replay", "scramble", "rerun"}
PROFILE = np.random.default_rng(2).normal(size=(CYCLE, 3)).astype(np.float32)
UNITS = Standardiser(np.array([10.0, 200.0, -3.0]), np.array([2.0, 30.0, 0.5]))
FACTS = ModelFacts(
    weights_sha256="ab" * 32,
    channels=CHANNELS,
    past=(),
    covariates=(),
    look_back=LOOK_BACK,
    horizon=HORIZON,
    patch_len=PATCH_LEN,
    cycles=(CYCLE,),
    frequency="1h",
    zone=None,
    by_row=False,
    even=True,
    origin="2020-01-01",
    numbered=False,
    missing_values=(),
    budget=0.25,
    any_budget=False,
    sealed=False,
    chooses=False,
    anchored=False,
    prior=0.2,
    units=UNITS,
    known_units=None,
)


@dataclass(frozen=True)
class Toy:
    """A model that reads the newest patch of each channel and repeats its mean deviation."""

    facts: ModelFacts = FACTS

    def at_budget(self, budget: float) -> Engine:
        return replace(self, facts=self.facts.at_budget(budget))

    def variants(self) -> Sequence[Engine]:
        return [self]

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        values = self.facts.units.standardise(history).astype(np.float32)
        level, scale = np.nanmean(values, axis=0), np.nanstd(values, axis=0) + np.float32(0.1)
        context = Context(level, scale, phase, PROFILE)
        missing = np.isnan(values).reshape(PATCHES, PATCH_LEN, -1).any(axis=1)
        mask = (np.arange(PATCHES) == PATCHES - 1)[:, None] & ~missing
        evidence = self.evidence(values, mask, context)
        explanation = Explanation(mask, evidence, np.where(mask, 0.75, 0.25).astype(np.float32), missing, context)
        return explanation, self.replay(explanation)

    def evidence(self, values: np.ndarray, mask: np.ndarray, context: Context[np.ndarray]) -> np.ndarray:
        deviation = np.nan_to_num(context.remove(values))
        return np.where(mask.repeat(PATCH_LEN, axis=0), deviation, np.float32(0))

    def replay(self, explanation: Explanation[np.ndarray]) -> np.ndarray:
        future = np.broadcast_to(explanation.evidence[-PATCH_LEN:].mean(axis=0), (HORIZON, 3))
        return self.facts.units.to_units(explanation.context.restore(future).astype(np.float64))

    def hold(self, history: np.ndarray, explanation: Explanation[np.ndarray]) -> np.ndarray:
        values = self.facts.units.standardise(history).astype(np.float32)
        evidence = self.evidence(values, explanation.mask, explanation.context)
        return self.replay(replace(explanation, evidence=evidence))

    def through(
        self, history: np.ndarray, phase: np.ndarray, known: Any, mask: np.ndarray
    ) -> tuple[Explanation[np.ndarray], np.ndarray]:
        own, _ = self.run(history, phase, known)
        values, mask = self.facts.units.standardise(history).astype(np.float32), mask & ~own.missing
        evidence = self.evidence(values, mask, own.context)
        explanation = replace(own, mask=mask, probability=mask.astype(np.float32), evidence=evidence)
        return explanation, self.replay(explanation)


def history() -> np.ndarray:
    return UNITS.to_units(np.random.default_rng(3).normal(size=(LOOK_BACK, 3)))


def truth() -> np.ndarray:
    return UNITS.to_units(np.random.default_rng(4).normal(size=(HORIZON, 3)))


def explain(engine: Any = None, values: np.ndarray | None = None, clock: Clock | None = None) -> ExplainedForecast:
    """Return an engine's explained forecast of a window."""
    engine, values, clock = engine or Toy(), history() if values is None else values, clock or hourly(STEPS)
    explanation, forecast = engine.run(values, clock.phase(0, STEPS, CYCLE), None)
    return ExplainedForecast.of(engine.facts, explanation, forecast, values, clock, truth())


def original(**changes: Any) -> Original:
    """Return the rows of the table."""
    return replace(Original(hourly(STEPS), history(), truth()), **changes)


def failures(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.passed}


def detail(verification: Verification, name: str) -> str:
    (check,) = (check for check in verification.checks if check.name == name)
    return check.detail


# --- True explanations ---


def test_a_true_explanation_passes_every_check_in_order_bit_for_bit() -> None:
    assert isinstance(Toy(), Engine)
    private, public = new_keys()
    explained = explain()
    signed = replace(explained, signature=sign(explained.sha256, private))
    verification = verify(Toy(), signed, original(), key=public, exact=True)
    assert verification, str(verification)
    assert [check.name for check in verification.checks] == [
        "document",
        "weights",
        "names",
        "times",
        "table",
        "signature",
        "budget",
        "replay",
        "scramble",
        "rerun",
    ]
    assert all(detail(verification, name).endswith("bit for bit") for name in RECOMPUTED)
    assert verification.notes == ()


def test_an_explanation_of_a_window_with_gaps_passes() -> None:
    values = history()
    values[[2, 7], 0] = np.nan
    assert verify(Toy(), explain(values=values), exact=True)


# --- Each check fails for its own reason ---


def forecast_moved(explained: ExplainedForecast) -> ExplainedForecast:
    return replace(explained, forecast=explained.forecast + explained.units.std)


def another_mask(explained: ExplainedForecast) -> ExplainedForecast:
    """Open one patch of a channel instead of another, with a matching forecast."""
    mask = explained.mask.copy()
    mask[:, 0] = mask[::-1, 0]
    values = UNITS.standardise(explained.history).astype(np.float32)
    explanation = replace(explained.explanation, mask=mask, evidence=Toy().evidence(values, mask, explained.context))
    return replace(explained, explanation=explanation, forecast=Toy().replay(explanation))


def false_evidence(explained: ExplainedForecast) -> ExplainedForecast:
    explanation = replace(explained.explanation, evidence=explained.evidence * 2)
    return replace(explained, explanation=explanation, forecast=Toy().replay(explanation))


LIES: dict[str, tuple[Callable[[ExplainedForecast], ExplainedForecast], set[str], str]] = {
    "other weights": (
        lambda it: replace(it, weights_sha256="cd" * 32),
        {"weights"},
        "it names cdcdcdcdcdcd",
    ),
    "another channel": (
        lambda it: replace(it, channels=("delta", *CHANNELS[1:])),
        {"names"},
        "not the model's: channels",
    ),
    "another budget": (lambda it: replace(it, budget=0.26), {"names"}, "not the model's: budget"),
    "another prior": (lambda it: replace(it, prior=0.21), {"names"}, "not the model's: prior"),
    "other units": (
        lambda it: replace(it, units=Standardiser(UNITS.mean + 1, UNITS.std)),
        {"names"},
        "not the model's: units",
    ),
    "another zone": (
        lambda it: replace(it, clock=hourly(STEPS, zone="UTC")),
        {"names"},
        "not the model's: zone",
    ),
    "a forecast moved": (forecast_moved, RECOMPUTED, "differs by up to"),
    "another mask": (another_mask, {"rerun"}, "differs in mask, evidence, forecast"),
    "false evidence": (false_evidence, {"scramble", "rerun"}, "in evidence, forecast"),
    "another probability": (
        lambda it: changed(it, probability=it.probability / 2),
        {"rerun"},
        "differs by up to 3.8e-01 scales in probability",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_false_field_fails_its_own_check_with_the_reason(name: str) -> None:
    lie, expected, reason = LIES[name]
    explained = ExplainedForecast.from_json(lie(explain()).to_json())
    for exact in (False, True):
        verification = verify(Toy(), explained, original(), exact=exact)
        assert failures(verification) == expected
        assert reason in str(verification)


@pytest.mark.parametrize("name", ["other weights", "another channel"])
def test_nothing_is_recomputed_with_a_different_model(name: str) -> None:
    verification = verify(Toy(), LIES[name][0](explain()))
    assert [check.name for check in verification.checks] == ["document", "weights", "names", "times"]


def test_more_open_tokens_than_the_budget_fail_even_if_the_model_opens_them() -> None:
    greedy = Toy(replace(FACTS, budget=0.2))
    verification = verify(greedy, explain(greedy))
    assert failures(verification) == {"budget"}
    assert detail(verification, "budget") == "3 tokens open, 2 allowed, none of them missing"


# --- Models that cheat ---


class Remembering(Toy):
    """A model that adds a statistic of the last window it saw to the forecast."""

    last: ClassVar[list[float]] = [0.0]

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        self.last[0] = float(np.nanmean(history))
        return super().run(history, phase, known)

    def replay(self, explanation: Explanation[np.ndarray]) -> np.ndarray:
        return super().replay(explanation) + self.last[0]


class Peeking(Toy):
    """A model that reads a closed token when the mask is held."""

    def hold(self, history: np.ndarray, explanation: Explanation[np.ndarray]) -> np.ndarray:
        return super().hold(history, explanation) + history[0, 0] * 1e-3


class Unexplained(Toy):
    """A model whose forecast does not follow from its explanation."""

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        explanation, forecast = super().run(history, phase, known)
        return explanation, forecast + 1


@pytest.mark.parametrize(
    ("model", "expected"),
    [(Remembering(), {"replay", "scramble"}), (Peeking(), {"scramble"}), (Unexplained(), {"replay", "scramble"})],
)
def test_a_model_that_cheats_fails_every_time(model: Toy, expected: set[str]) -> None:
    for _ in range(2):
        assert failures(verify(model, explain(model))) == expected


# --- Tolerance ---


@dataclass(frozen=True)
class Elsewhere(Toy):
    """The same model on a machine that rounds the level differently."""

    by: float = 1e-7

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        explanation, _ = super().run(history, phase, known)
        context = replace(explanation.context, level=explanation.context.level + np.float32(self.by))
        values = self.facts.units.standardise(history).astype(np.float32)
        explanation = replace(explanation, context=context, evidence=self.evidence(values, explanation.mask, context))
        return explanation, self.replay(explanation)


def test_rounding_on_another_machine_passes_with_a_note_unless_exact_is_set() -> None:
    explained = explain(Elsewhere())
    verification = verify(Toy(), explained)
    assert verification, str(verification)
    assert "rounding on this machine explains" in detail(verification, "rerun")
    assert "bit for bit" not in detail(verification, "rerun")
    assert verification.notes == (NOT_COMPARED, ROUNDED)
    assert verify(Toy(), explain()).notes == (NOT_COMPARED,)
    strict = verify(Toy(), explained, exact=True)
    assert "rerun" in failures(strict)
    assert "no difference is allowed" in detail(strict, "rerun")
    assert verify(Elsewhere(), explained, exact=True)


@pytest.mark.parametrize("by", [1e-4, 1e-2, 1.0])
def test_differences_larger_than_rounding_fail(by: float) -> None:
    verification = verify(Toy(), explain(Elsewhere(by=by)))
    assert "rerun" in failures(verification)
    assert "rounding on this machine explains" in detail(verification, "rerun")


@pytest.mark.parametrize("cell", [(0, 0), (1, 1), (2, 2)])
@pytest.mark.parametrize("digit", range(10))
def test_a_forecast_with_another_last_digit_fails(cell: tuple[int, int], digit: int) -> None:
    """Rounding cannot explain it: a model computes in single precision, and so no number of its is as near as that."""
    explained = explain()
    forecast = explained.forecast.copy()
    printed = repr(float(forecast[cell]))
    assert len(printed) > 12
    forecast[cell] = float(f"{printed[:-1]}{digit}")
    lie = replace(explained, forecast=forecast)
    verification, true = verify(Toy(), lie), forecast[cell] == explained.forecast[cell]
    assert failures(verification) == (set() if true else {"replay"})
    assert true or "differs in a number that is not of single precision" in detail(verification, "replay")


def test_a_forecast_moved_by_one_step_of_single_precision_passes_with_a_note_unless_exact_is_set() -> None:
    explained, column = explain(), 1
    single = np.nextafter(UNITS.standardise(explained.forecast).astype(np.float32)[0, column], np.float32(9))
    forecast = explained.forecast.copy()
    forecast[0, column] = UNITS.to_units(np.full(3, np.float64(single)))[column]
    assert 0 < abs(forecast - explained.forecast).max() < 1e-5 * UNITS.std[column]
    verification = verify(Toy(), replace(explained, forecast=forecast))
    assert verification, str(verification)
    assert ROUNDED in verification.notes
    assert not verify(Toy(), replace(explained, forecast=forecast), exact=True)


@pytest.mark.parametrize("units", [UNITS, replace(UNITS, mean=UNITS.mean * 1e6), replace(UNITS, std=UNITS.std * 1e-7)])
def test_every_forecast_of_a_model_is_of_single_precision(units: Standardiser) -> None:
    """Also if the mean takes most of its digits."""
    toy = Toy(replace(FACTS, units=units))
    for seed in range(50):
        rows = units.to_units(np.random.default_rng(seed).normal(size=(LOOK_BACK, 3)))
        assert verify(toy, explain(toy, rows), exact=True)


@pytest.mark.parametrize(("name", "place"), [("evidence", (-1, 0)), ("level", 0), ("scale", 2), ("profile", (0, 0))])
def test_what_is_no_sum_must_match_exactly(name: str, place: Any) -> None:
    """The evidence follows from the stated context value by value, and a profile is a number of the model."""
    explained = explain()
    array = getattr(explained, name).copy()
    array[place] += np.float32(4e-7)  # less than rounding explains
    assert "rerun" in failures(verify(Toy(), changed(explained, **{name: array})))


def test_a_mask_must_match_exactly() -> None:
    explained = explain(Elsewhere())
    assert failures(verify(Toy(), another_mask(explained))) >= {"rerun"}


def test_a_whole_number_that_rounding_decides_otherwise_is_noted() -> None:
    """Move the units of a channel so that its forecast is half a whole number, up to rounding."""
    to_half = np.array([0.5 - explain().forecast[0, 0] % 1, 0.0, 0.0])
    rows, units = history() + to_half, replace(UNITS, mean=UNITS.mean + to_half)
    limits = Limits(np.full(3, -np.inf), np.full(3, np.inf), np.array([True, False, False]))
    toy = Toy(replace(FACTS, units=units, limits=limits))
    explained = explain(toy, rows)
    first, cell = explained.computed[0, 0], (0, 0)
    assert abs(first - np.floor(first) - 0.5) < 1e-6
    other = explained.computed.copy()
    other[cell] = np.floor(first) + 0.5 + (1e-6 if first <= np.floor(first) + 0.5 else -1e-6)
    other = as_single(other, units)
    moved = replace(explained, unlimited=other, forecast=limits.apply(other))
    assert abs(moved.forecast[cell] - explained.forecast[cell]) == 1
    verification = verify(toy, moved, original(history=rows))
    assert verification, str(verification)
    without_table, note = verification.notes
    assert without_table == ROUNDED
    assert note.startswith("whole numbers: ")
    assert f"is {explained.forecast[cell]:g} here, not {moved.forecast[cell]:g}; a last digit decides" in note
    assert not verify(toy, moved, exact=True)
    assert not verify(toy, explained).notes[1:]


def test_bits_of_any_variant_of_the_engine_pass_as_exact() -> None:
    class Several(Toy):
        def variants(self) -> Sequence[Engine]:
            return [Toy(), Elsewhere()]

    verification = verify(Several(), explain(Elsewhere()), exact=True)
    assert verification
    assert all(detail(verification, name).endswith("bit for bit") for name in RECOMPUTED)
    assert not verify(Toy(), explain(Elsewhere()), exact=True)


# --- The table ---


def test_without_a_table_a_note_names_what_was_not_compared() -> None:
    assert verify(Toy(), explain()).notes == (NOT_COMPARED,)
    assert "made-up table would pass" in str(verify(Toy(), explain()))
    made_up = explain(values=history() * 2)
    assert verify(Toy(), made_up)
    assert failures(verify(Toy(), made_up, original())) == {"table"}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"history": history() + 1e-9}, "history"),
        ({"clock": replace(hourly(STEPS), stamps=hourly(STEPS).stamps + np.timedelta64(CYCLE, "h"))}, "times"),
        ({"truth": truth() + 1e-9}, "truth"),
        ({"truth": None}, "truth"),
        ({"truth": np.vstack([truth()[:-1], np.full((1, 3), np.nan)])}, "truth"),
        ({"known": np.ones((STEPS, 1))}, "known"),
    ],
)
def test_rows_that_differ_from_the_table_are_named(change: dict[str, Any], name: str) -> None:
    verification = verify(Toy(), explain(), original(**change))
    assert failures(verification) == {"table"}
    assert detail(verification, "table").startswith(f"not the table's: {name}")
    assert verification.notes == ()


def test_the_rounding_of_decimal_text_passes_with_a_remark_unless_exact_is_set() -> None:
    other = np.nextafter(history(), np.inf)
    verification = verify(Toy(), explain(), original(history=other))
    assert verification, str(verification)
    assert "up to the rounding of text" in detail(verification, "table")
    assert "float_precision='round_trip'" in detail(verification, "table")
    assert failures(verify(Toy(), explain(), original(history=other), exact=True)) == {"table"}
    assert "rounding" not in detail(verify(Toy(), explain(), original()), "table")
    further = history() * (1 + 8 * np.finfo(float).eps)
    assert failures(verify(Toy(), explain(), original(history=further))) == {"table"}
    outlier = Toy(replace(FACTS, units=replace(UNITS, std=UNITS.std * 1e17)))  # as one huge value of training gives
    assert failures(verify(outlier, explain(outlier), original(history=history() + 0.1))) == {"table"}
    infinite = history()
    infinite[0, 0] = 1e308
    assert failures(verify(Toy(), explain(), original(history=infinite))) == {"table"}


@pytest.mark.parametrize("steps", range(HORIZON + 1))
def test_a_table_with_later_rows_still_confirms_the_truth(steps: int) -> None:
    early = truth()
    early[steps:] = np.nan
    explained = replace(explain(), truth=early if steps else None)
    assert verify(Toy(), explained, original())
    holes = truth()
    holes[0, 0] = np.nan
    if steps:
        assert failures(verify(Toy(), explained, original(truth=holes))) == {"table"}
        early[0, 0] = np.nan
        assert failures(verify(Toy(), replace(explained, truth=early), original())) == {"table"}


# --- Counted rows ---


def counted(row: int) -> Clock:
    return hourly(STEPS, by_row=True, row=row)


def test_the_first_row_number_follows_from_the_times_if_training_was_even() -> None:
    toy = Toy(replace(FACTS, by_row=True, origin="2019-12-31"))
    assert verify(toy, explain(toy, clock=counted(24)))
    verification = verify(toy, explain(toy, clock=counted(25)))
    assert failures(verification) == {"times"}
    assert "is 25, by the times 24" in detail(verification, "times")


def test_if_training_was_uneven_the_first_row_number_needs_the_table() -> None:
    toy = Toy(replace(FACTS, by_row=True, even=False, origin="2019-12-31"))
    explained = explain(toy, clock=counted(20))
    verification = verify(toy, explained)
    assert failures(verification) == {"times"}
    assert "does not follow from the times here; give the table" in detail(verification, "times")
    assert verify(toy, explained, original(clock=counted(20)))
    other = verify(toy, explained, original(clock=counted(26)))
    assert failures(other) == {"times"}
    assert "is 20, in the table 26" in detail(other, "times")


def test_an_explanation_by_clock_fails_for_a_model_that_counts_rows() -> None:
    toy = Toy(replace(FACTS, by_row=True))
    assert failures(verify(toy, explain(Toy()))) == {"names", "times"}


# --- Budgets that can be chosen ---


def test_a_model_for_any_budget_is_checked_at_the_budget_of_the_explanation() -> None:
    toy = Toy(replace(FACTS, any_budget=True, budget=0.5))
    explained = explain(toy.at_budget(0.25))
    assert explained.budget == 0.25
    assert verify(toy, explained)
    # A budget between two numbers of tokens is never stated, so that no two budgets mean the same mask.
    assert failures(verify(toy, replace(explained, budget=0.26))) == {"names"}


# --- Signatures ---


def test_a_signature_is_noted_without_a_key_and_checked_with_one() -> None:
    (private, public), explained = new_keys(), explain()
    signed = replace(explained, signature=sign(explained.sha256, private))
    assert verify(Toy(), signed, original()).notes == (NOT_CHECKED,)
    assert verify(Toy(), signed).notes == (NOT_COMPARED, NOT_CHECKED)
    assert detail(verify(Toy(), signed, key=public), "signature") == "signed by the key given"
    for unsigned, reason in (
        (explained, "it is not signed"),
        (replace(signed, signature=sign("cd" * 32, private)), "not signed by the key given"),
        (replace(signed, signature=base64.b64encode(bytes(64)).decode()), "not signed by the key given"),
    ):
        verification = verify(Toy(), unsigned, key=public)
        assert failures(verification) == {"signature"}
        assert detail(verification, "signature") == reason
    assert failures(verify(Toy(), signed, key=new_keys()[1])) == {"signature"}


# --- Documents ---


def test_a_changed_document_fails_and_an_unreadable_one_raises() -> None:
    text = explain().to_json()
    document = read(text)
    assert isinstance(document, ExplainedForecast)
    assert verify(Toy(), document)
    lie = json.loads(text)
    lie["forecast"][0][0] += 1
    verdict = read(json.dumps(lie))
    assert isinstance(verdict, Verification)
    assert not verdict
    assert [check.name for check in verdict.checks] == ["document"]
    assert "must match its fingerprint" in detail(verdict, "document")
    with pytest.raises(DataError, match="forecast must have the type and shape of this field"):
        read(json.dumps(lie | {"forecast": "fine"}))


def test_a_verdict_is_true_only_if_every_check_passed_and_prints_one_line_each() -> None:
    good, bad = Check("one", True, "fine"), Check("two", False, "broken")
    assert Verification((good,))
    verdict = Verification((good, bad), ("remember",))
    assert not verdict
    assert str(verdict).splitlines() == ["ok     one: fine", "FAILED two: broken", "note   remember"]


# --- Sealed models ---

SEALED = replace(FACTS, sealed=True)


@dataclass(frozen=True)
class SealedToy(Toy):
    """The toy with level and scale from what it reads."""

    facts: ModelFacts = SEALED

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        unread = history.copy()
        unread[:-PATCH_LEN] = np.nan
        explanation, forecast = super().run(unread, phase, known)
        missing = np.isnan(history).reshape(PATCHES, PATCH_LEN, -1).any(axis=1)
        return replace(explanation, missing=missing), forecast


def test_a_sealed_model_is_run_again_on_scrambled_values_with_nothing_held() -> None:
    verification = verify(SealedToy(), explain(SealedToy()), original(), exact=True)
    assert verification
    assert [check.name for check in verification.checks][-1] == "unread"
    assert "nothing held" in detail(verification, "unread")


def test_a_model_that_only_says_it_is_sealed_is_refuted() -> None:
    conditional = Toy(SEALED)
    verification = verify(conditional, explain(conditional))
    assert failures(verification) == {"unread"}
    for name in ("noise", "+1e30", "-1e30", "values of other times", "nothing"):
        assert name in detail(verification, "unread")


def test_a_gap_in_a_sealed_window_stays_a_gap() -> None:
    values = history()
    values[2, 0] = np.nan
    assert verify(SealedToy(), explain(SealedToy(), values))


@pytest.mark.parametrize(("facts", "claimed"), [(FACTS, True), (SEALED, False)])
def test_the_promise_of_an_explanation_is_the_models(facts: ModelFacts, claimed: bool) -> None:
    explained = replace(explain(Toy(facts)), sealed=claimed)
    assert "names" in failures(verify(Toy(facts), explained))


def test_the_words_of_a_sealed_explanation_name_the_stronger_promise() -> None:
    assert "Unconditionally: no value that was not read can change" in explain(SealedToy()).in_words()
    assert "Unconditionally" not in explain().in_words()


def test_the_promise_survives_the_document() -> None:
    explained = explain(SealedToy())
    assert ExplainedForecast.from_json(explained.to_json()).sealed
    with pytest.raises(IBForecastError, match="sealed"):
        ExplainedForecast.from_json(explained.to_json().replace('"sealed": true', '"sealed": 1'))


# --- Choosing models ---

CHOOSING = replace(FACTS, chooses=True)


@dataclass(frozen=True)
class ChoosingToy(Toy):
    """The toy that reads the patch with the largest values, and takes level and scale from it."""

    facts: ModelFacts = CHOOSING

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        patches = self.facts.units.standardise(history).reshape(PATCHES, PATCH_LEN, -1)
        largest = np.nan_to_num(np.abs(patches).max(axis=1), nan=-1.0)
        return self.through(history, phase, known, np.arange(PATCHES)[:, None] == largest.argmax(axis=0))

    def through(
        self, history: np.ndarray, phase: np.ndarray, known: Any, mask: np.ndarray
    ) -> tuple[Explanation[np.ndarray], np.ndarray]:
        missing = np.isnan(history).reshape(PATCHES, PATCH_LEN, -1).any(axis=1)
        read = np.where(mask.repeat(PATCH_LEN, axis=0), history, np.nan)
        values = self.facts.units.standardise(read).astype(np.float32)
        context = Context(np.nanmean(values, axis=0), np.nanstd(values, axis=0) + np.float32(0.1), phase, PROFILE)
        evidence = self.evidence(values, mask, context)
        explanation = Explanation(mask, evidence, mask.astype(np.float32), missing, context)
        return explanation, self.replay(explanation)

    def replay(self, explanation: Explanation[np.ndarray]) -> np.ndarray:
        future = np.broadcast_to(explanation.evidence.sum(axis=0), (HORIZON, 3))
        return self.facts.units.to_units(explanation.context.restore(future).astype(np.float64))


def test_a_choosing_model_is_run_again_on_scrambled_values_with_its_mask_held() -> None:
    verification = verify(ChoosingToy(), explain(ChoosingToy()), original(), exact=True)
    assert verification, str(verification)
    assert [check.name for check in verification.checks][-1] == "reading"
    assert "the mask held: the same level, scale, evidence and forecast" in detail(verification, "reading")
    values = history()
    values[2, 0] = np.nan
    assert verify(ChoosingToy(), explain(ChoosingToy(), values))


def test_a_model_with_a_level_of_the_whole_window_that_says_it_chooses_is_refuted() -> None:
    conditional = Toy(CHOOSING)
    verification = verify(conditional, explain(conditional))
    assert failures(verification) == {"reading"}
    for name in ("noise", "+1e30", "-1e30", "values of other times", "nothing"):
        assert name in detail(verification, "reading")
    assert "the values themselves" not in detail(verification, "reading")


class TwoFaced(ChoosingToy):
    """A model that adds something to its forecast, unless the mask is given."""

    def run(self, history: np.ndarray, phase: np.ndarray, known: Any) -> tuple[Explanation[np.ndarray], np.ndarray]:
        explanation, forecast = super().run(history, phase, known)
        return explanation, forecast + 1e-3


def test_a_model_that_computes_differently_when_the_mask_is_given_is_refuted() -> None:
    verification = verify(TwoFaced(), explain(TwoFaced()))
    assert "reading" in failures(verification)
    assert "another result with the values themselves" in detail(verification, "reading")
