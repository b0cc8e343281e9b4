"""Ways to forge an explanation. Each takes a true document with its rows and model, and returns a false one.

The forger knows the format: `sealed` makes every derived statement agree with the lie and computes its fingerprint,
if the document can still be read.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ibforecast.core import document as documents
from ibforecast.core import reading, receipt
from ibforecast.core.errors import IBForecastError
from ibforecast.core.explained import FORMAT, VERSION, ExplainedForecast
from ibforecast.core.writing import STATEMENTS
from ibforecast.engine import TorchEngine

Document = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """A true explanation, its document, and the model that made it."""

    explained: ExplainedForecast
    engine: TorchEngine
    other_weights: str

    @property
    def document(self) -> Document:
        """Return a new copy of the true document."""
        content: Document = json.loads(self.explained.to_json())
        return content


@dataclass(frozen=True)
class Case:
    """A model with a true explanation, and the four doors: functions that return whether a text is verified."""

    kind: str
    folder: Path
    scene: Scene
    table: pd.DataFrame
    doors: dict[str, Callable[[str, bool], bool]]
    verifies: Callable[[str], bool]
    """Whether a text passes the strictest verification: with the table, and without any tolerance."""


@dataclass(frozen=True)
class Forgery:
    """A kind of lie: `make` returns the text of a false document, None if the kind does not apply to the model.

    `needs_table` marks lies about the table itself, which a verifier can detect only with the table.
    """

    name: str
    make: Callable[[Scene], str | None]
    needs_table: bool = False


FORGERIES: list[Forgery] = []


def forgery(needs_table: bool = False) -> Callable[[Callable[[Scene], Any]], Callable[[Scene], Any]]:
    """Register a kind of forgery; its result is sealed unless it is text."""

    def register(make: Callable[[Scene], Any]) -> Callable[[Scene], Any]:
        def text(scene: Scene) -> str | None:
            lie = make(scene)
            if lie is None or isinstance(lie, str):
                return lie
            return lie.to_json() if isinstance(lie, ExplainedForecast) else sealed(lie)

        FORGERIES.append(Forgery(make.__name__, text, needs_table))
        return make

    return register


def sealed(lie: Document) -> str:
    """Write a false document with matching statements and fingerprint, if it can be read."""
    content = {name: value for name, value in lie.items() if name not in ("format", "version", "sha256", *STATEMENTS)}
    try:
        plain = copy.deepcopy(content)
        receipts = tuple(map(receipt.read, plain.pop("receipts", [])))
        explained = ExplainedForecast(**reading.explanation(plain), receipts=receipts)
    except (IBForecastError, TypeError, ValueError):
        return json.dumps(lie | {"sha256": documents.fingerprint(content)})
    again = json.loads(explained.to_json())
    return json.dumps(lie | {name: again[name] for name in ("sha256", *STATEMENTS)})


def rerun(scene: Scene, **changes: Any) -> ExplainedForecast:
    """Return the model's own explanation of a changed window: a consistent lie."""
    changed = replace(scene.explained, **changes)
    phase = changed.explanation.context.phase
    explanation, forecast = scene.engine.run(changed.history, phase, changed.known)
    return replace(changed, explanation=explanation, forecast=forecast)


# --- the forecast ---


@forgery()
def a_forecast_moved_by_a_whole_scale(scene: Scene) -> Any:
    explained = scene.explained
    return replace(explained, forecast=explained.forecast + explained.units.std * explained.scale)


@forgery()
def a_forecast_moved_by_one_value(scene: Scene) -> Any:
    forecast = scene.explained.forecast.copy()
    forecast[3, 0] *= 1.001
    return replace(scene.explained, forecast=forecast)


@forgery()
def a_forecast_one_step_late(scene: Scene) -> Any:
    return replace(scene.explained, forecast=np.roll(scene.explained.forecast, 1, axis=0))


@forgery()
def a_forecast_shortened_to_half_its_steps(scene: Scene) -> Any:
    lie = scene.document
    lie["forecast"] = lie["forecast"][: len(lie["forecast"]) // 2]
    return lie


@forgery()
def a_forecast_and_its_times_shortened_together(scene: Scene) -> Any:
    lie, half = scene.document, scene.explained.horizon // 2
    lie["forecast"] = lie["forecast"][:-half]
    lie["truth"] = lie["truth"] and lie["truth"][:-half]
    lie["window"]["times"] = lie["window"]["times"][:-half]
    lie["window"]["known"] = lie["window"]["known"] and lie["window"]["known"][:-half]
    lie["context"]["phase"] = lie["context"]["phase"][:-half]
    return lie


@forgery()
def a_forecast_without_one_of_its_numbers(scene: Scene) -> Any:
    lie = scene.document
    lie["forecast"][0][0] = None
    return lie


@forgery()
def a_forecast_that_is_infinite(scene: Scene) -> Any:
    return scene.explained.to_json().replace('"forecast": [[', '"forecast": [[1e999,', 1)


@forgery()
def a_forecast_written_as_text(scene: Scene) -> Any:
    lie = scene.document
    lie["forecast"][0][0] = str(lie["forecast"][0][0])
    return lie


@forgery()
def a_forecast_for_a_channel_that_is_only_read(scene: Scene) -> Any:
    if not scene.explained.past:
        return None
    lie = scene.document
    for row in lie["forecast"]:
        row[-1] = 1.0
    return lie


# --- times and phases ---


@forgery()
def phases_twelve_hours_off_with_times_in_another_spelling(scene: Scene) -> Any:
    lie = _with_false_phase(scene, 12)
    lie["window"]["times"] = [time.replace("-", "/", 2) for time in lie["window"]["times"]]
    return lie


@forgery()
def phases_twelve_hours_off_with_true_times(scene: Scene) -> Any:
    return _with_false_phase(scene, 12)


@forgery()
def phases_off_by_one_step(scene: Scene) -> Any:
    return _with_false_phase(scene, 1)


def _with_false_phase(scene: Scene, by: int) -> Document:
    """Return the document of the model's explanation at another phase, with the original times."""
    explained, context = scene.explained, scene.explained.explanation.context
    phase = (context.phase + by) % scene.engine.facts.period
    explanation, forecast = scene.engine.run(explained.history, phase, explained.known)
    lie = scene.document
    for field, array in explanation.arrays():
        if field.name not in ("evidence", "known"):
            lie[field.part][field.name] = array.tolist()
    lie["explanation"]["evidence"] = [
        {
            "patch": int(patch),
            "channel": explained.channels[column],
            "deviation": explanation.evidence[explained.steps(patch), column].tolist(),
        }
        for patch, column in np.argwhere(explanation.mask).tolist()
    ]
    lie["forecast"] = [[None if np.isnan(value) else value for value in row] for row in forecast.tolist()]
    return lie


@forgery()
def an_impossible_date(scene: Scene) -> Any:
    lie = scene.document
    lie["window"]["times"][0] = "2023-02-30" + lie["window"]["times"][0][10:]
    return lie


@forgery()
def a_repeated_time(scene: Scene) -> Any:
    lie = scene.document
    lie["window"]["times"][5] = lie["window"]["times"][4]
    return lie if scene.explained.clock.row is None else None


@forgery()
def decreasing_times(scene: Scene) -> Any:
    lie = scene.document
    lie["window"]["times"] = lie["window"]["times"][::-1]
    return lie


@forgery()
def times_moved_by_five_hours_with_phases_as_they_were(scene: Scene) -> Any:
    lie = scene.document
    moved = replace(scene.explained.clock, stamps=scene.explained.clock.stamps + np.timedelta64(5, "h"))
    lie["window"]["times"] = list(moved.labels(0, len(moved.stamps)))
    return lie


@forgery()
def times_moved_by_five_hours_with_phases_to_match(scene: Scene) -> Any:
    clock = scene.explained.clock
    moved = replace(
        clock, stamps=clock.stamps + np.timedelta64(5, "h"), row=None if clock.row is None else clock.row + 5
    )
    lie = json.loads(scene.explained.to_json())
    lie["window"]["times"] = list(moved.labels(0, len(moved.stamps)))
    lie["window"]["row"] = moved.row
    lie["context"]["phase"] = moved.phase(0, len(moved.stamps), scene.engine.facts.period).tolist()
    return lie


@forgery(needs_table=True)
def times_moved_by_a_whole_period(scene: Scene) -> Any:
    clock, steps = scene.explained.clock, scene.engine.facts.period
    by = clock.frequency.seconds * steps * np.timedelta64(1, "s")
    moved = replace(clock, stamps=clock.stamps - by, row=None if clock.row is None else clock.row - steps)
    lie = scene.document
    lie["window"]["times"], lie["window"]["row"] = list(moved.labels(0, len(moved.stamps))), moved.row
    return lie


@forgery()
def an_offset_that_the_zone_does_not_have(scene: Scene) -> Any:
    lie = scene.document
    lie["window"]["times"] = [f"{time[:16]}-11:00" for time in lie["window"]["times"]]
    return lie


@forgery()
def another_zone_with_offsets_to_match(scene: Scene) -> Any:
    if scene.explained.clock.zone is None:
        return None
    lie = scene.document
    moved = replace(scene.explained.clock, zone="Asia/Tokyo")
    lie["window"]["zone"] = "Asia/Tokyo"
    lie["window"]["times"] = list(moved.labels(0, len(moved.stamps)))
    lie["context"]["phase"] = moved.phase(0, len(moved.stamps), scene.engine.facts.period).tolist()
    return lie


@forgery()
def another_frequency(scene: Scene) -> Any:
    lie = scene.document
    lie["window"]["frequency"] = "2h"
    return lie


@forgery()
def dates_replaced_by_numbers(scene: Scene) -> Any:
    lie, clock = scene.document, replace(scene.explained.clock, numbered=True)
    lie["window"]["times"], lie["window"]["frequency"] = list(clock.labels(0, len(clock.stamps))), clock.step
    return lie


@forgery()
def times_of_the_forecast_moved_by_twenty_minutes(scene: Scene) -> Any:
    lie, clock, now = scene.document, scene.explained.clock, scene.explained.look_back
    stamps = clock.stamps.copy()
    stamps[now:] += np.timedelta64(20, "m")
    lie["window"]["times"] = list(replace(clock, stamps=stamps).labels(0, len(stamps)))
    return lie


def _all_times_moved(scene: Scene, minutes: int) -> Any:
    """Move every time by less than a step, so that phases stay."""
    clock = scene.explained.clock
    return replace(scene.explained, clock=replace(clock, stamps=clock.stamps + np.timedelta64(minutes, "m")))


@forgery()
def all_times_moved_by_twenty_minutes(scene: Scene) -> Any:
    return _all_times_moved(scene, 20)


@forgery(needs_table=True)
def all_times_moved_by_fifty_nine_minutes(scene: Scene) -> Any:
    return _all_times_moved(scene, 59)


@forgery()
def a_false_first_row_number(scene: Scene) -> Any:
    lie, clock = scene.document, scene.explained.clock
    lie["window"]["row"] = 7 if clock.row is None else clock.row + 1
    row, steps = lie["window"]["row"], len(clock.stamps)
    lie["context"]["phase"] = [(row + step) % scene.engine.facts.period for step in range(steps)]
    return lie


@forgery()
def a_false_first_row_number_with_everything_to_match(scene: Scene) -> Any:
    clock = scene.explained.clock
    if clock.row is None:
        return None
    moved = replace(clock, row=clock.row + 3)
    phase = moved.phase(0, len(moved.stamps), scene.engine.facts.period)
    explanation, forecast = scene.engine.run(scene.explained.history, phase, scene.explained.known)
    return replace(scene.explained, clock=moved, explanation=explanation, forecast=forecast)


# --- mask, evidence, context ---


@forgery()
def a_closed_token_opened_with_values_of_the_history(scene: Scene) -> Any:
    explanation = scene.explained.explanation
    closed = np.argwhere(~explanation.mask & ~explanation.missing).tolist()
    if not len(closed):
        return None
    patch, column = closed[0]
    deviation = scene.engine.deviation(scene.explained.history, explanation)[0].numpy()
    mask, evidence = explanation.mask.copy(), explanation.evidence.copy()
    mask[patch, column] = True
    steps = scene.explained.steps(patch)
    evidence[steps, column] = deviation[steps, column]
    return replace(scene.explained, explanation=replace(explanation, mask=mask, evidence=evidence))


@forgery()
def an_open_token_closed(scene: Scene) -> Any:
    explanation = scene.explained.explanation
    patch, column = np.argwhere(explanation.mask)[0].tolist()
    mask, evidence = explanation.mask.copy(), explanation.evidence.copy()
    mask[patch, column] = False
    evidence[scene.explained.steps(patch), column] = 0
    return replace(scene.explained, explanation=replace(explanation, mask=mask, evidence=evidence))


@forgery()
def an_open_token_closed_with_a_forecast_to_match(scene: Scene) -> Any:
    explanation = scene.explained.explanation
    mask = np.zeros_like(explanation.mask)
    nothing = replace(explanation, mask=mask, evidence=np.zeros_like(explanation.evidence))
    return replace(scene.explained, explanation=nothing, forecast=scene.engine.replay(nothing))


@forgery()
def another_token_read_with_a_forecast_to_match(scene: Scene) -> Any:
    explanation = scene.explained.explanation
    closed = np.argwhere(~explanation.mask & ~explanation.missing).tolist()
    if not len(closed):
        return None
    (away, from_column), (patch, column) = np.argwhere(explanation.mask)[-1].tolist(), closed[-1]
    deviation = scene.engine.deviation(scene.explained.history, explanation)[0].numpy()
    mask, evidence = explanation.mask.copy(), explanation.evidence.copy()
    mask[away, from_column], mask[patch, column] = False, True
    evidence[scene.explained.steps(away), from_column] = 0
    evidence[scene.explained.steps(patch), column] = deviation[scene.explained.steps(patch), column]
    moved = replace(explanation, mask=mask, evidence=evidence)
    return replace(scene.explained, explanation=moved, forecast=scene.engine.replay(moved))


@forgery()
def evidence_of_other_values_with_a_forecast_to_match(scene: Scene) -> Any:
    explanation = scene.explained.explanation
    other = replace(explanation, evidence=(explanation.evidence * np.float32(1.5)).astype(np.float32))
    return replace(scene.explained, explanation=other, forecast=scene.engine.replay(other))


@forgery()
def false_evidence_before_the_true_one(scene: Scene) -> Any:
    lie = scene.document
    tokens = lie["explanation"]["evidence"]
    tokens.insert(0, tokens[0] | {"deviation": [9.0] * len(tokens[0]["deviation"])})
    return lie


@forgery()
def a_repeated_token_of_evidence(scene: Scene) -> Any:
    lie = scene.document
    lie["explanation"]["evidence"].append(lie["explanation"]["evidence"][-1])
    return lie


@forgery()
def evidence_for_a_closed_token(scene: Scene) -> Any:
    lie, mask = scene.document, scene.explained.explanation.mask
    closed = np.argwhere(~mask).tolist()
    if not len(closed):
        return None
    token = copy.deepcopy(lie["explanation"]["evidence"][0])
    token |= {"patch": closed[0][0], "channel": scene.explained.channels[closed[0][1]]}
    lie["explanation"]["evidence"].append(token)
    return lie


@forgery()
def evidence_for_a_patch_that_does_not_exist(scene: Scene) -> Any:
    lie = scene.document
    lie["explanation"]["evidence"][0]["patch"] = 4000
    return lie


@forgery()
def evidence_for_a_negative_patch(scene: Scene) -> Any:
    lie = scene.document
    lie["explanation"]["evidence"][0]["patch"] -= scene.explained.explanation.mask.shape[0]
    return lie


@forgery()
def evidence_in_more_digits_than_single_precision_has(scene: Scene) -> Any:
    lie = scene.document
    lie["explanation"]["evidence"][0]["deviation"][0] += 1e-12
    return lie


@forgery()
def a_mask_of_numbers(scene: Scene) -> Any:
    lie = scene.document
    lie["explanation"]["mask"] = [[0.001 if gate else 0 for gate in row] for row in lie["explanation"]["mask"]]
    return lie


@forgery()
def a_mask_of_ones_and_zeros(scene: Scene) -> Any:
    lie = scene.document
    lie["explanation"]["mask"] = [[int(gate) for gate in row] for row in lie["explanation"]["mask"]]
    return lie


@forgery()
def missing_values_that_are_not_missing(scene: Scene) -> Any:
    lie, mask = scene.document, scene.explained.explanation.mask
    closed = np.argwhere(~mask).tolist()
    if not len(closed):
        return None
    patch, column = closed[-1]
    lie["explanation"]["missing"][patch][column] = True
    return lie


@forgery()
def probabilities_that_grade_the_tokens_the_other_way(scene: Scene) -> Any:
    explanation = scene.explained.explanation
    graded = (1 - explanation.probability).astype(np.float32)
    return replace(scene.explained, explanation=replace(explanation, probability=graded))


def _with_context(scene: Scene, **changes: Any) -> ExplainedForecast:
    """Return a document with a false context and the forecast that follows from it."""
    explanation = scene.explained.explanation
    other = replace(explanation, context=replace(explanation.context, **changes))
    return replace(scene.explained, explanation=other, forecast=scene.engine.replay(other))


@forgery()
def a_level_moved_by_a_tenth_of_a_scale_with_a_forecast_to_match(scene: Scene) -> Any:
    context = scene.explained.explanation.context
    return _with_context(scene, level=(context.level + np.float32(0.1) * context.scale).astype(np.float32))


@forgery()
def a_scale_doubled_with_a_forecast_to_match(scene: Scene) -> Any:
    return _with_context(scene, scale=(scene.explained.explanation.context.scale * 2).astype(np.float32))


@forgery()
def a_profile_made_flat_with_a_forecast_to_match(scene: Scene) -> Any:
    return _with_context(scene, profile=np.zeros_like(scene.explained.explanation.context.profile))


@forgery()
def a_false_response_to_covariates_with_a_forecast_to_match(scene: Scene) -> Any:
    response = scene.explained.explanation.context.response
    return None if response is None else _with_context(scene, response=(response + 1).astype(np.float32))


@forgery()
def cycles_in_another_order(scene: Scene) -> Any:
    lie = scene.document
    cycles = lie["context"]["cycles"]
    lie["context"]["cycles"] = cycles[::-1] if len(cycles) > 1 else [cycles[0] // 2, cycles[0] - cycles[0] // 2]
    return lie


# --- the window ---


@forgery()
def an_open_token_of_the_history_changed(scene: Scene) -> Any:
    explained = scene.explained
    patch, column = np.argwhere(explained.explanation.mask)[0].tolist()
    history = explained.history.copy()
    history[explained.steps(patch), column] += explained.units.std[column]
    return replace(explained, history=history)


@forgery()
def the_whole_history_changed(scene: Scene) -> Any:
    return replace(scene.explained, history=scene.explained.history + scene.explained.units.std)


@forgery(needs_table=True)
def another_history_with_everything_to_match(scene: Scene) -> Any:
    return rerun(scene, history=scene.explained.history + scene.explained.units.std)


@forgery(needs_table=True)
def closed_history_replaced_by_random_walks_of_the_same_mean_and_spread(scene: Scene) -> Any:
    explained, random = scene.explained, np.random.default_rng(3)
    closed = ~explained.explanation.mask.repeat(explained.explanation.patch_len, axis=0) & ~np.isnan(explained.history)
    history = explained.history.copy()
    for column, steps in enumerate(closed.T):
        if steps.sum() > 2:
            own, walk = history[steps, column], random.normal(size=int(steps.sum())).cumsum()
            history[steps, column] = (walk - walk.mean()) / walk.std() * own.std() + own.mean()
    return rerun(scene, history=history)


@forgery(needs_table=True)
def a_truth_that_is_the_forecast(scene: Scene) -> Any:
    return replace(scene.explained, truth=scene.explained.forecast.copy())


@forgery(needs_table=True)
def a_truth_with_a_value_removed(scene: Scene) -> Any:
    truth = scene.explained.truth
    if truth is None:
        return None
    truth = truth.copy()
    truth[2, 0] = np.nan
    return replace(scene.explained, truth=truth)


@forgery()
def covariates_changed(scene: Scene) -> Any:
    known = scene.explained.known
    if known is None:
        return None
    lie = scene.document
    lie["window"]["known"][-1][0] += 1
    return lie


@forgery(needs_table=True)
def covariates_changed_with_everything_to_match(scene: Scene) -> Any:
    known = scene.explained.known
    if known is None:
        return None
    other = scene.document
    other["window"]["known"] = (known + 1).tolist()
    explanation, forecast = scene.engine.run(
        scene.explained.history, scene.explained.explanation.context.phase, known + 1
    )
    return replace(scene.explained, known=known + 1, explanation=explanation, forecast=forecast)


@forgery()
def a_forecast_moved_when_rounding_decides_the_mask(scene: Scene) -> Any:
    """At the edge between two masks the last digits of a history change a lot, which must not excuse a lie."""
    explained, engine = scene.explained, scene.engine
    phase, one = explained.explanation.context.phase, explained.history
    other = one[::-1] + explained.units.std * np.where(np.isnan(one), np.nan, 1.0)
    other = np.where(np.isnan(one), np.nan, np.nan_to_num(other, nan=0.0))

    def between(share: float) -> Any:
        return engine.run(one + share * (other - one), phase, explained.known)

    own, low, high = explained.explanation.mask, 0.0, 1.0
    if (between(high)[0].mask == own).all():
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (between(middle)[0].mask == own).all() else (low, middle)
    explanation, forecast = between(low)
    history = one + low * (other - one)
    moved = forecast + 2 * explained.units.std * explanation.context.scale
    return replace(explained, history=history, explanation=explanation, forecast=moved)


@forgery()
def gates_stated_when_the_model_gives_nan(scene: Scene) -> Any:
    """A value too large for single precision in a past channel does not change the forecast."""
    explained = scene.explained
    if not explained.past:
        return None
    history = explained.history.copy()
    history[[-20, -30], -1] = 1e25, np.nan
    explanation, forecast = scene.engine.run(history, explained.explanation.context.phase, explained.known)
    context = explanation.context
    stated = replace(
        explanation,
        probability=np.where(explanation.missing, 0, 0.999).astype(np.float32),
        evidence=np.nan_to_num(explanation.evidence),
        context=replace(context, level=np.nan_to_num(context.level), scale=np.full_like(context.scale, 7)),
    )
    return replace(explained, history=history, explanation=stated, forecast=forecast)


@forgery()
def a_forecast_moved_next_to_a_flat_sensor(scene: Scene) -> Any:
    """A flat channel far from its mean rounds coarsely, which must not excuse changes in the others."""
    explained = scene.explained
    history = explained.history.copy()
    history[:, 1] = np.where(np.isnan(history[:, 1]), np.nan, explained.units.mean[1] + 30 * explained.units.std[1])
    explanation, forecast = scene.engine.run(history, explained.explanation.context.phase, explained.known)
    moved = forecast.copy()
    moved[:, 0] += 0.003 * explained.units.std[0] * explanation.context.scale[0]
    return replace(explained, history=history, explanation=explanation, forecast=moved)


@forgery()
def a_scale_so_large_that_differences_vanish(scene: Scene) -> Any:
    lie = scene.document
    lie["context"]["scale"] = [float(np.float32(1e20))] * len(lie["context"]["scale"])
    lie["forecast"] = [[None if value is None else 123456.0 for value in row] for row in lie["forecast"]]
    return lie


# --- names, units, budget ---


@forgery()
def a_renamed_channel(scene: Scene) -> Any:
    text = scene.explained.channels[0]
    return sealed(json.loads(scene.explained.to_json().replace(f'"{text}"', '"price"')))


@forgery()
def channels_in_another_order(scene: Scene) -> Any:
    lie = scene.document
    first, second, *rest = lie["window"]["channels"]
    lie["window"]["channels"] = [second, first, *rest]
    for token in lie["explanation"]["evidence"]:
        token["channel"] = {first: second, second: first}.get(token["channel"], token["channel"])
    return lie


@forgery()
def units_ten_times_as_large(scene: Scene) -> Any:
    lie = scene.document
    lie["units"]["std"] = [10 * spread for spread in lie["units"]["std"]]
    return lie


@forgery()
def units_history_and_forecast_ten_times_as_large(scene: Scene) -> Any:
    explained, units = scene.explained, scene.explained.units
    tens = {"mean": units.mean * 10, "std": units.std * 10}
    return replace(
        explained, units=replace(units, **tens), history=explained.history * 10, forecast=explained.forecast * 10
    )


@forgery()
def a_larger_budget(scene: Scene) -> Any:
    return replace(scene.explained, budget=min(1.0, 2 * scene.explained.budget))


@forgery()
def a_slightly_larger_budget_that_allows_the_same_tokens(scene: Scene) -> Any:
    return replace(scene.explained, budget=scene.explained.budget * (1 + 1e-6))


@forgery()
def a_prior_so_small_that_bits_are_infinite(scene: Scene) -> Any:
    lie = scene.document
    lie["prior"] = 5e-324
    return lie


@forgery()
def another_prior(scene: Scene) -> Any:
    return replace(scene.explained, prior=scene.explained.prior * 0.9)


@forgery()
def the_weights_fingerprint_of_another_model(scene: Scene) -> Any:
    return replace(scene.explained, weights_sha256=scene.other_weights)


@forgery()
def a_malformed_weights_fingerprint(scene: Scene) -> Any:
    lie = scene.document
    lie["weights_sha256"] = "verified"
    return lie


# --- statements and form ---


def _stated(scene: Scene, name: str, value: Any) -> str:
    return json.dumps(scene.document | {name: value})


@forgery()
def a_false_number_of_open_tokens(scene: Scene) -> Any:
    return _stated(scene, "open_count", scene.explained.open_count - 1)


@forgery()
def a_false_share_of_the_window(scene: Scene) -> Any:
    return _stated(scene, "open_rate", scene.explained.open_rate / 2)


@forgery()
def a_false_number_of_bits(scene: Scene) -> Any:
    return _stated(scene, "rate_bits", scene.explained.rate_bits + 1e-6)


@forgery()
def a_word_changed(scene: Scene) -> Any:
    return _stated(scene, "in_words", scene.document["in_words"].replace("Forecast of", "Certain forecast of"))


@forgery()
def a_sentence_added(scene: Scene) -> Any:
    return _stated(scene, "in_words", scene.document["in_words"] + "\nApproved.")


@forgery()
def a_fingerprint_of_other_content(scene: Scene) -> Any:
    return _stated(scene, "sha256", scene.other_weights)


@forgery()
def no_fingerprint(scene: Scene) -> Any:
    return json.dumps({name: value for name, value in scene.document.items() if name != "sha256"})


@forgery()
def a_duplicate_member_with_a_false_forecast_first(scene: Scene) -> Any:
    return scene.explained.to_json().replace('"forecast": ', '"forecast": [[0.0]], "forecast": ', 1)


@forgery()
def a_duplicate_member_with_false_words_first(scene: Scene) -> Any:
    return scene.explained.to_json().replace('"in_words": ', '"in_words": "All is well.", "in_words": ', 1)


@forgery()
def a_duplicate_member_with_a_false_budget_last(scene: Scene) -> Any:
    return scene.explained.to_json().replace('"prior": ', '"budget": 0.01, "prior": ', 1)


@forgery()
def an_unknown_member(scene: Scene) -> Any:
    return scene.document | {"approved_by": "the regulator"}


@forgery()
def an_unknown_nested_member(scene: Scene) -> Any:
    lie = scene.document
    lie["context"]["note"] = "nothing else was read"
    return lie


@forgery()
def a_member_left_out(scene: Scene) -> Any:
    lie = scene.document
    del lie["context"]["scale"]
    return lie


@forgery()
def text_in_place_of_a_signature(scene: Scene) -> Any:
    return json.dumps(scene.document | {"signature": "Approved by the regulator."})


@forgery()
def a_budget_of_four_hundred_digits(scene: Scene) -> Any:
    return json.dumps(scene.document | {"budget": 10**400})


@forgery()
def a_newer_version(scene: Scene) -> Any:
    return _stated(scene, "version", VERSION + 1)


@forgery()
def another_format(scene: Scene) -> Any:
    return _stated(scene, "format", f"{FORMAT}.draft")


@forgery()
def a_truncated_document(scene: Scene) -> Any:
    return scene.explained.to_json()[:-40]


# --- receipts, and tricks with names and numbers ---


def _with_receipts(scene: Scene, step: Any = 1) -> Document:
    content: Document = json.loads(scene.explained.with_receipts(step=step).to_json())
    return content


@forgery()
def a_receipt_of_another_step(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    lie["receipts"] = [other | {"step": 1} for other in _with_receipts(scene, 2)["receipts"]]
    return lie


@forgery()
def a_receipt_of_the_mean_as_that_of_a_step(scene: Scene) -> Any:
    lie = _with_receipts(scene, "mean")
    lie["receipts"] = [one | {"step": 1} for one in lie["receipts"]]
    return lie


@forgery()
def receipts_of_two_channels_exchanged(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    if len(lie["receipts"]) < 2:
        return None
    first, second, *_ = lie["receipts"]
    first["channel"], second["channel"] = second["channel"], first["channel"]
    return lie


@forgery()
def two_amounts_of_a_receipt_changed_so_that_it_still_adds_up(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    one, digit = lie["receipts"][0], 10.0
    one["calendar"], one["read"][0] = round(one["calendar"] + digit, 9), round(one["read"][0] - digit, 9)
    return lie


@forgery()
def a_standard_error_of_zero(scene: Scene) -> Any:
    return _with_error(scene, 0.0)


@forgery()
def a_standard_error_of_a_tenth(scene: Scene) -> Any:
    return _with_error(scene, 0.1)


def _with_error(scene: Scene, share: float) -> Document | None:
    """State a share of the standard error of the receipt; None if it has none."""
    lie = _with_receipts(scene)
    for each in lie["receipts"]:
        if not each["error"]:
            return None
        each["error"] *= share
    return lie


@forgery()
def a_receipt_that_is_given_twice(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    false = copy.deepcopy(lie["receipts"][0])
    false["calendar"], false["forecast"] = false["calendar"] + 50, false["forecast"] + 50
    lie["receipts"].append(false)
    return lie


@forgery()
def a_receipt_with_a_huge_amount_and_its_opposite(scene: Scene) -> Any:
    """As floating-point numbers the two cancel, and so would anything added to one of them."""
    lie = _with_receipts(scene)
    one = lie["receipts"][0]
    one["calendar"], one["read"][0] = one["calendar"] + 1e18, one["read"][0] - 1e18
    return lie


@forgery()
def a_receipt_of_a_history_that_no_model_can_compute_with(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    for cells in lie["window"]["history"]:
        cells[0] = None if cells[0] is None else 1e308
    return lie


@forgery()
def a_receipt_for_a_step_beyond_the_horizon(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    lie["receipts"][0]["step"] = scene.explained.horizon + 1
    return lie


@forgery()
def a_receipt_for_a_step_that_is_a_boolean(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    lie["receipts"][0]["step"] = True
    return lie


@forgery()
def a_channel_whose_name_only_looks_the_same(scene: Scene) -> Any:
    """A Cyrillic a in place of the Latin one."""
    name = next(name for name in scene.explained.channels if "a" in name)
    alike = name.replace("a", "\u0430")
    return sealed(json.loads(scene.explained.to_json().replace(f'"{name}"', f'"{alike}"')))


@forgery()
def a_channel_with_an_invisible_character(scene: Scene) -> Any:
    name = scene.explained.channels[0]
    return sealed(json.loads(scene.explained.to_json().replace(f'"{name}"', f'"{name}\u200b"')))


@forgery()
def a_repeated_key_in_another_spelling(scene: Scene) -> Any:
    """Escaped letters give the same key to a reader of JSON, and another one to a search in the text."""
    return scene.explained.to_json().replace('"forecast": ', '"f\\u006frecast": [[0.0]], "forecast": ', 1)


@forgery()
def a_repeated_key_inside_the_context(scene: Scene) -> Any:
    return scene.explained.to_json().replace('"level":', '"level":[0.0],"level":', 1)


@forgery()
def an_unread_value_that_becomes_missing(scene: Scene) -> Any:
    lie, history = scene.document, scene.explained.history
    patch_len = scene.explained.explanation.patch_len
    closed = np.argwhere(~scene.explained.explanation.mask.repeat(patch_len, axis=0) & ~np.isnan(history)).tolist()
    if not closed:
        return None
    row, column = closed[0]
    lie["window"]["history"][row][column] = None
    return lie


@forgery()
def the_sign_of_every_number_of_the_forecast_changed(scene: Scene) -> Any:
    return replace(scene.explained, forecast=-scene.explained.forecast)


@forgery()
def units_moved_with_level_and_forecast_to_match(scene: Scene) -> Any:
    """Mean and history move by the same amount: the standardised window is the same, and so is all that follows."""
    explained, units = scene.explained, scene.explained.units
    by = 3 * units.std
    moved = replace(units, mean=units.mean + by)
    return replace(explained, units=moved, history=explained.history + by, forecast=explained.forecast + by)


@forgery()
def a_budget_written_as_a_denormal_more(scene: Scene) -> Any:
    return replace(scene.explained, budget=float(np.nextafter(scene.explained.budget, 2)))


def _decimals(scene: Scene, one: Document) -> int:
    column = receipt.column_of(scene.explained, one["channel"])
    return receipt.decimals_for(scene.explained, column, one["step"])


@forgery()
def amounts_with_digits_beyond_the_last_that_is_stated(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    one = lie["receipts"][0]
    digits = _decimals(scene, one) + 1
    one["calendar"] = round(one["calendar"] + 10.0**-digits, digits)
    one["read"][0] = round(one["read"][0] - 10.0**-digits, digits)
    return lie


@forgery()
def amounts_each_within_rounding_that_together_move_a_sum_to_the_calendar(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    one, open_tokens = lie["receipts"][0], receipt.places(scene.explained)
    digits, column = _decimals(scene, one), open_tokens[0][1]
    numbers = [number for number, (_, own) in enumerate(open_tokens) if own == column]
    if len(numbers) < 4:
        return None
    for number in numbers:
        one["read"][number] = round(one["read"][number] - 2 * 10.0**-digits, digits)
    one["calendar"] = round(one["calendar"] + 2 * len(numbers) * 10.0**-digits, digits)
    return lie


@forgery()
def amounts_of_all_channels_moved_by_one_unit_of_their_last_digit(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    one, count = lie["receipts"][0], len(receipt.places(scene.explained))
    unit, digits = 10.0 ** -_decimals(scene, one), _decimals(scene, one)
    if count < 5:
        return None
    one["read"] = [round(amount - unit, digits) for amount in one["read"]]
    one["calendar"] = round(one["calendar"] + count * unit, digits)
    return lie


@forgery()
def a_second_receipt_of_a_number_with_amounts_within_rounding(scene: Scene) -> Any:
    lie = _with_receipts(scene)
    lie["receipts"].append(copy.deepcopy(lie["receipts"][0]))
    return lie


@forgery()
def shares_of_an_anchor_moved_by_their_last_digit(scene: Scene) -> Any:
    """They are numbers of the model, which no rounding of another machine can change."""
    blend = scene.explained.explanation.context.blend
    return None if blend is None else _with_context(scene, blend=np.nextafter(blend, np.float32(2)))


@forgery()
def covariates_known_ahead_of_which_there_are_none(scene: Scene) -> Any:
    if scene.explained.covariates:
        return None
    lie = scene.document
    lie["window"]["known"] = [[] for _ in lie["window"]["times"]]
    lie["known_units"] = {"mean": [], "std": []}
    return lie


@forgery()
def cycles_whose_common_period_no_number_can_hold(scene: Scene) -> Any:
    lie, primes = scene.document, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
    lie["context"]["cycles"] = primes
    lie["context"]["profile"] = [[0.0] * len(scene.explained.channels)] * sum(primes)
    return lie


@forgery()
def a_receipt_of_the_mean_of_numbers_that_no_float_can_add(scene: Scene) -> Any:
    lie = _with_receipts(scene, "mean")
    for numbers in lie["forecast"]:
        numbers[0] = 1.7e308
    return lie
