"""An explained forecast proves itself: what is true passes, and whatever is touched fails at the right check."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ibforecast.core.account import Account

from ibforecast import ExplainedForecast, IBForecaster, UsageError, Verification, VerificationError
from ibforecast.core.files import sha256, to_json

ROWS, LOOK_BACK, HORIZON, PATCH_LEN = 400, 48, 12, 12
TINY = """
[model.gate]
width = 16
[model.readout]
width = 16
[train]
epochs = 2
batch = 64
"""
CHECKS = ("document", "weights", "names", "budget", "replay", "scramble", "rerun")


def table(kind: Callable[[dict[str, Any]], Any] = pd.DataFrame) -> Any:
    """Three channels, of which the second has a gap in its oldest patch and in its truth."""
    hour, noise = np.arange(ROWS), np.random.default_rng(5).normal(size=(ROWS, 3))
    values = (np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * noise) * (20.0, 3.0, 0.5) + (900.0, 40.0, -2.0)
    values[[ROWS - HORIZON - LOOK_BACK + 3, ROWS - 4], 1] = np.nan
    when = np.datetime64("2023-01-01", "us") + hour * np.timedelta64(1, "h")
    return kind({"when": when} | dict(zip(("load", "wind", "heat"), values.T, strict=True)))


AT = "2023-01-17 03:00"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY)
    return IBForecaster(HORIZON, LOOK_BACK, 0.25, recipe=str(path), device="cpu").fit(table())


@pytest.fixture(scope="module")
def loaded(model: IBForecaster, tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    folder = tmp_path_factory.mktemp("saved") / "model"
    model.save(folder)
    return IBForecaster.load(folder, device="cpu")


@pytest.fixture(scope="module")
def explanation(model: IBForecaster) -> ExplainedForecast:
    return model.explain(table(), AT)


def failures(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.passed}


# --- What is true ---


def test_a_true_explanation_passes_every_check(explanation: ExplainedForecast) -> None:
    verification = explanation.verify()
    assert verification
    assert tuple(check.name for check in verification.checks) == CHECKS
    assert str(verification).count("ok ") == len(CHECKS)
    assert "bit for bit (36 values)" in str(verification)


@pytest.mark.parametrize("row", range(LOOK_BACK - 1, ROWS, 50))
def test_every_window_is_true_within_its_budget(model: IBForecaster, row: int) -> None:
    told = model.explain(table(), table()["when"][row])
    assert told.verify()
    assert told.open_count == 3


def test_the_json_gives_back_the_same_explanation_to_the_last_bit(
    explanation: ExplainedForecast, loaded: IBForecaster
) -> None:
    again = ExplainedForecast.from_json(explanation.to_json())
    assert np.isnan(explanation.history).any()
    assert np.isnan(explanation.truth).any()
    for field in fields(Account):
        told, kept = getattr(explanation, field.name), getattr(again, field.name)
        same = told.tobytes() == kept.tobytes() if isinstance(told, np.ndarray) else told == kept
        assert same, field.name
    assert loaded.verify(again)


def test_bits_are_counted_against_the_prior_of_the_model(explanation: ExplainedForecast, model: IBForecaster) -> None:
    assert explanation.prior == model.fitted.config.objective.prior == 0.2
    assert explanation.bits[explanation.missing].tolist() == [0]
    assert explanation.rate_bits == pytest.approx(explanation.bits.sum())
    assert explanation.rate_bits > 0


def test_a_document_from_before_the_prior_was_disclosed_is_still_verified(
    explanation: ExplainedForecast, loaded: IBForecaster
) -> None:
    document = json.loads(replace(explanation, prior=None).to_json()) | {"format_version": 1}
    for name in ("prior", "rate_bits", "in_words", "sha256"):
        del document[name]
    sealed = document | {"sha256": sha256(to_json(document))}
    verification = loaded.verify(Account.from_json(to_json(sealed).decode()))
    assert verification
    assert "channels, lengths, units and budget are the model's" in str(verification)
    assert "budget, prior are the model's" in str(explanation.verify())


def test_an_explanation_without_its_model_says_how_to_verify_it(explanation: ExplainedForecast) -> None:
    alone = ExplainedForecast.from_json(explanation.to_json())
    with pytest.raises(UsageError, match=r"needs the model \(.*none at hand\); use model\.verify\(it\)"):
        alone.verify()


def test_an_explanation_of_another_model_is_told_apart(explanation: ExplainedForecast, model: IBForecaster) -> None:
    other = IBForecaster(HORIZON, LOOK_BACK, 0.25, recipe=model.recipe, seed=1, device="cpu").fit(table())
    verification = other.verify(explanation)
    assert failures(verification) == {"weights"}
    assert explanation.weights_sha256[:12] in str(verification)
    assert other.fitted.weights_sha256[:12] in str(verification)


def test_what_follows_a_gap_in_the_truth_is_still_true(model: IBForecaster) -> None:
    assert model.explain(table(), AT).verify()
    assert model.explain(table()).verify()


# --- What was touched ---


def last_bit(values: np.ndarray, *place: int) -> np.ndarray:
    changed = values.copy()
    changed[place] = np.nextafter(changed[place], np.inf)
    return changed


def put(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


def first_open(told: Account) -> tuple[int, int]:
    patch, column = np.argwhere(told.mask)[0]
    return int(patch), int(column)


def first_closed(told: Account) -> tuple[int, int]:
    patch, column = np.argwhere(~told.mask & ~told.missing)[0]
    return int(patch), int(column)


def step_in(token: tuple[int, int]) -> tuple[int, int]:
    return token[0] * PATCH_LEN + 5, token[1]


def swapped(values: np.ndarray, token: tuple[int, int]) -> np.ndarray:
    row, column = step_in(token)
    return put(values, ([row, row + 1], column), values[[row + 1, row], column])


ALL_AFTER_BUDGET = {"replay", "scramble", "rerun"}
Change = Callable[[Account], dict[str, Any]]
TOUCHED: dict[str, tuple[Change, set[str]]] = {
    "a forecast by its last bit": (lambda it: {"forecast": last_bit(it.forecast, 7, 1)}, ALL_AFTER_BUDGET),
    "a forecast that is no number": (lambda it: {"forecast": put(it.forecast, (0, 0), 1e300)}, ALL_AFTER_BUDGET),
    "an open gate closed": (lambda it: {"mask": put(it.mask, first_open(it), False)}, ALL_AFTER_BUDGET),
    "a closed gate opened": (
        lambda it: {"mask": put(it.mask, first_closed(it), True)},
        {"budget", *ALL_AFTER_BUDGET},
    ),
    "one gate for another": (
        lambda it: {"mask": put(put(it.mask, first_open(it), False), first_closed(it), True)},
        ALL_AFTER_BUDGET,
    ),
    "an open token said to be missing": (
        lambda it: {"missing": put(it.missing, first_open(it), True)},
        {"budget", "rerun"},
    ),
    "a missing token said to be there": (lambda it: {"missing": np.zeros_like(it.missing)}, {"rerun"}),
    "evidence": (lambda it: {"evidence": put(it.evidence, step_in(first_open(it)), 0.5)}, {"replay", "rerun"}),
    "a level": (lambda it: {"level": put(it.level, 1, it.level[1] + 0.01)}, ALL_AFTER_BUDGET),
    "a scale": (lambda it: {"scale": put(it.scale, 1, it.scale[1] * 1.01)}, ALL_AFTER_BUDGET),
    "a scale of nothing": (lambda it: {"scale": put(it.scale, 1, 0.0)}, ALL_AFTER_BUDGET),
    "the profile of an hour forecast": (
        lambda it: {"profile": put(it.profile, (it.phase[-1], 1), 0.5)},
        ALL_AFTER_BUDGET,
    ),
    "a profile of another length": (lambda it: {"profile": np.tile(it.profile, (2, 1)), "cycles": (48,)}, {"names"}),
    "every phase": (lambda it: {"phase": (it.phase + 1) % 24}, ALL_AFTER_BUDGET),
    "the phase of a step forecast": (lambda it: {"phase": put(it.phase, -1, 0)}, ALL_AFTER_BUDGET),
    "history where it was read": (
        lambda it: {"history": put(it.history, step_in(first_open(it)), 0.1)},
        {"scramble", "rerun"},
    ),
    "history where it was not read": (
        lambda it: {"history": put(it.history, step_in(first_closed(it)), 0.1)},
        {"rerun"},
    ),
    "two steps swapped where it was not read": (
        lambda it: {"history": swapped(it.history, first_closed(it))},
        {"rerun"},
    ),
    "a gap where it was not read": (
        lambda it: {"history": put(it.history, step_in(first_closed(it)), np.nan)},
        {"rerun"},
    ),
    "a probability": (lambda it: {"probability": put(it.probability, first_closed(it), 0.9)}, {"rerun"}),
    "the weights' name": (lambda it: {"weights_sha256": "0" * 64}, {"weights"}),
    "the budget": (lambda it: {"budget": 0.5}, {"names"}),
    "the prior": (lambda it: {"prior": 0.25}, {"names"}),
    "a channel's name": (lambda it: {"channels": ("wind", "load", "heat")}, {"names"}),
    "the units": (lambda it: {"mean": it.mean + 1}, {"names"}),
    "the size of the units": (lambda it: {"std": it.std * 2}, {"names"}),
}


@pytest.mark.parametrize("name", TOUCHED)
def test_whatever_is_touched_fails_at_the_right_check(
    explanation: ExplainedForecast, loaded: IBForecaster, name: str
) -> None:
    change, expected = TOUCHED[name]
    touched = replace(explanation, **change(explanation))
    assert failures(loaded.verify(Account.from_json(touched.to_json()))) == expected
    with pytest.raises(VerificationError, match=r"must be the truth; it is not") as caught:
        touched.verify()
    assert all(f"FAILED {check}" in str(caught.value) for check in expected)


def test_the_phase_of_a_step_that_was_not_read_cannot_be_touched(
    explanation: ExplainedForecast, loaded: IBForecaster
) -> None:
    closed = np.flatnonzero(~explanation.mask.any(axis=1))
    assert len(closed), "no patch is closed in all channels: choose another window"
    step = int(closed[0]) * PATCH_LEN + 5
    phase = put(explanation.phase, step, (explanation.phase[step] + 9) % 24)
    assert failures(loaded.verify(replace(explanation, phase=phase))) == {"rerun"}


def test_the_profile_of_an_hour_that_is_not_forecast_cannot_be_touched(
    explanation: ExplainedForecast, loaded: IBForecaster
) -> None:
    hour = int(explanation.phase[LOOK_BACK]) - 1
    touched = replace(explanation, profile=last_bit(explanation.profile, hour, 0))
    assert {"rerun"} <= failures(loaded.verify(touched)) <= {"rerun", "scramble"}


@pytest.mark.parametrize("touch", ["left out", "added", "changed"])
def test_evidence_in_the_document_cannot_be_touched(
    explanation: ExplainedForecast, loaded: IBForecaster, touch: str
) -> None:
    document = json.loads(explanation.to_json())
    told = document["explanation"]["evidence"]
    if touch == "left out":
        told.pop()
    elif touch == "added":
        patch, column = first_closed(explanation)
        channel = explanation.channels[column]
        told.append({"patch": patch, "channel": channel, "deviation": [1.0] * PATCH_LEN})
    else:
        told[0]["deviation"][0] += 0.5
    assert failures(loaded.verify(Account.from_json(json.dumps(document)))) == {"document", "replay", "rerun"}


@pytest.mark.parametrize(("part", "name"), [("window", "times"), ("window", "frequency")])
def test_what_the_forecast_does_not_depend_on_cannot_be_touched_in_the_document_either(
    explanation: ExplainedForecast, loaded: IBForecaster, part: str, name: str
) -> None:
    document = json.loads(explanation.to_json())
    place = document[part]
    place[name] = [place[name][0], f"{place[name][1]}!", *place[name][2:]] if name == "times" else f"{place[name]}!"
    assert failures(loaded.verify(Account.from_json(json.dumps(document)))) == {"document"}


# --- Another machine ---


ELSEWHERE = {"torch": "2.13.0+other", "processor": "abacus", "threads": "3"}


def test_last_bits_may_differ_on_another_machine_and_the_check_says_so(
    explanation: ExplainedForecast, model: IBForecaster
) -> None:
    nudge = 1e-7 * explanation.std * explanation.scale
    nudged = replace(explanation, computed_with=ELSEWHERE, forecast=explanation.forecast + nudge)
    verification = nudged.verify()
    (replay,) = (check for check in verification.checks if check.name == "replay")
    assert "differ in 36 values, at most 1" in replay.detail
    assert replay.detail.endswith("computed on another machine or version")
    assert failures(model.verify(replace(nudged, computed_with=explanation.computed_with))) == ALL_AFTER_BUDGET


def test_the_same_bits_from_another_machine_pass_without_a_remark(explanation: ExplainedForecast) -> None:
    assert "another machine" not in str(replace(explanation, computed_with=ELSEWHERE).verify())


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_another_machine_is_no_excuse_for_another_forecast(explanation: ExplainedForecast, size: float) -> None:
    nudge = put(np.zeros_like(explanation.forecast), (3, 0), size * explanation.std[0] * explanation.scale[0])
    nudged = replace(explanation, computed_with=ELSEWHERE, forecast=explanation.forecast + nudge)
    with pytest.raises(VerificationError, match=r"FAILED replay.*another machine"):
        nudged.verify()


@pytest.mark.parametrize("name", sorted(set(TOUCHED) - {"a forecast by its last bit"}))
def test_another_machine_is_no_excuse_for_what_was_touched(explanation: ExplainedForecast, name: str) -> None:
    change, _ = TOUCHED[name]
    with pytest.raises(VerificationError):
        replace(explanation, computed_with=ELSEWHERE, **change(explanation)).verify()


# --- As a table, in words, as a picture ---


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)],
    ids=["pandas", "polars", "pyarrow"],
)
def test_the_table_has_one_row_per_token_and_is_of_the_users_kind(
    model: IBForecaster, kind: Callable[[dict[str, Any]], Any], expected: type
) -> None:
    told = model.explain(table(kind), AT)
    rows = told.to_table()
    assert isinstance(rows, expected)
    columns = rows.column_names if isinstance(rows, pa.Table) else list(rows.columns)
    assert columns == [
        "channel",
        "start",
        "end",
        "open",
        "probability",
        "bits",
        "missing",
        "mean_deviation",
        "largest_deviation",
        "values",
    ]
    assert len(rows) == told.mask.size == 12


def test_the_table_says_what_the_arrays_say(explanation: ExplainedForecast) -> None:
    rows = explanation.to_table()
    assert rows["open"].tolist() == explanation.mask.T.ravel().tolist()
    assert rows["bits"].tolist() == explanation.bits.T.ravel().tolist()
    assert rows["missing"].tolist() == explanation.missing.T.ravel().tolist() == [False] * 4 + [True] + [False] * 7
    assert rows["channel"].tolist() == [name for name in ("load", "wind", "heat") for _ in range(4)]
    values = np.array([[np.nan if one is None else one for one in row] for row in rows["values"]])
    np.testing.assert_array_equal(values.reshape(3, LOOK_BACK).T, explanation.history)
    patch, column = first_open(explanation)
    row = rows.iloc[column * 4 + patch]
    read = explanation.evidence[patch * PATCH_LEN : (patch + 1) * PATCH_LEN, column]
    assert row["mean_deviation"] == pytest.approx(read.mean(), abs=1e-4)
    assert row["largest_deviation"] == pytest.approx(read[abs(read).argmax()], abs=1e-4)
    assert (row["start"], row["end"]) == (
        explanation.times[patch * PATCH_LEN],
        explanation.times[(patch + 1) * PATCH_LEN - 1],
    )


def test_the_words_say_how_much_was_read_where_and_what_was_missing(explanation: ExplainedForecast) -> None:
    said = explanation.in_words(full=True).splitlines()
    assert said[:2] == [
        f"Forecast of 2023-01-17 04:00 to 2023-01-17 15:00, made at {AT}.",
        "It read 3 of 12 tokens: 25 % of the window, where the budget allows 25 %; "
        f"its gates tell {explanation.rate_bits:.1f} bits beyond their prior.",
    ]
    read, *rest = said[2:]
    opened = explanation.mask.any(axis=0)
    assert [f"{name} (" in read for name in explanation.channels] == opened.tolist()
    assert rest[-1] == "Not readable because of missing values: wind (1 of 4 patches)."


@pytest.mark.parametrize(("name", "begins"), [("why.svg", b"<svg"), ("why.html", b"<!doctype html>")])
def test_a_picture_is_written_to_the_path_that_is_given(
    explanation: ExplainedForecast, tmp_path: Path, name: str, begins: bytes
) -> None:
    path = explanation.plot(tmp_path / name)
    assert path == tmp_path / name
    assert path.read_bytes()[:15].lower().startswith(begins)


def test_a_picture_of_another_kind_is_refused_and_nothing_written(
    explanation: ExplainedForecast, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png, \.svg or \.html \(got 'why\.bmp'\); try 'why\.png'"):
        explanation.plot(tmp_path / "why.bmp")
    assert not list(tmp_path.iterdir())
