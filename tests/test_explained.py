"""Verification of explained forecasts: a true one passes, and every change fails at the right check."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.core.samples import as_single, assert_same_bits, changed

from ibforecast import ExplainedForecast, IBForecaster, UsageError, Verification, VerificationError
from ibforecast.core.errors import DataError
from ibforecast.core.standardiser import Standardiser

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
CHECKS = ("document", "weights", "names", "times", "budget", "replay", "scramble", "rerun")


def table(kind: Callable[[dict[str, Any]], Any] = pd.DataFrame) -> Any:
    """Make three channels; the second has a gap in its oldest patch and in its truth."""
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


# --- True explanations ---


def test_a_true_explanation_passes_every_check(explanation: ExplainedForecast) -> None:
    verification = explanation.verify()
    assert verification
    assert tuple(check.name for check in verification.checks) == CHECKS
    assert str(verification).count("ok ") == len(CHECKS)
    assert "give the forecast (36 values), bit for bit" in str(verification)


@pytest.mark.parametrize("row", range(LOOK_BACK - 1, ROWS, 50))
def test_every_window_verifies_within_its_budget(model: IBForecaster, row: int) -> None:
    explained = model.explain(table(), table()["when"][row])
    assert explained.verify()
    assert explained.open_count == 3


def test_the_json_gives_the_same_explanation_bit_for_bit(explanation: ExplainedForecast, loaded: IBForecaster) -> None:
    again = ExplainedForecast.from_json(explanation.to_json())
    assert np.isnan(explanation.history).any()
    assert np.isnan(explanation.truth).any()
    assert_same_bits(again, explanation)
    assert loaded.verify(again)


def test_bits_are_counted_against_the_prior_of_the_model(explanation: ExplainedForecast, model: IBForecaster) -> None:
    assert explanation.prior == model.fitted.config.objective.prior == 0.2
    assert explanation.bits[explanation.missing].tolist() == [0]
    assert explanation.rate_bits == pytest.approx(explanation.bits.sum())
    assert explanation.rate_bits > 0


def test_an_explanation_without_its_model_says_how_to_verify_it(explanation: ExplainedForecast) -> None:
    read = ExplainedForecast.from_json(explanation.to_json())
    with pytest.raises(UsageError, match=r"verifying needs the model that gave .*; use model\.verify\(explanation\)"):
        read.verify()


def test_an_explanation_of_another_model_is_refused(explanation: ExplainedForecast, model: IBForecaster) -> None:
    other = IBForecaster(HORIZON, LOOK_BACK, 0.25, recipe=model.recipe, seed=1, device="cpu").fit(table())
    verification = other.verify(explanation)
    assert failures(verification) == {"weights"}
    assert explanation.weights_sha256[:12] in str(verification)
    assert other.fitted.weights_sha256[:12] in str(verification)


def test_an_explanation_with_a_gap_in_the_truth_verifies(model: IBForecaster) -> None:
    assert model.explain(table(), AT).verify()
    assert model.explain(table()).verify()


# --- Changed explanations ---


def last_bit(values: np.ndarray, *place: int) -> np.ndarray:
    changed = values.copy()
    changed[place] = np.nextafter(changed[place], np.inf)
    return changed


def put(values: np.ndarray, place: Any, value: Any) -> np.ndarray:
    changed = values.copy()
    changed[place] = value
    return changed


def first_open(explained: ExplainedForecast) -> tuple[int, int]:
    patch, column = np.argwhere(explained.mask)[0]
    return int(patch), int(column)


def first_closed(explained: ExplainedForecast) -> tuple[int, int]:
    patch, column = np.argwhere(~explained.mask & ~explained.missing)[0]
    return int(patch), int(column)


def step_in(token: tuple[int, int]) -> tuple[int, int]:
    return token[0] * PATCH_LEN + 5, token[1]


def swapped(values: np.ndarray, token: tuple[int, int]) -> np.ndarray:
    row, column = step_in(token)
    return put(values, ([row, row + 1], column), values[[row + 1, row], column])


ALL_AFTER_BUDGET = {"replay", "scramble", "rerun"}
LAST_BIT = "a forecast by its last bit"
Change = Callable[[ExplainedForecast], dict[str, Any]]


def closed_in(it: ExplainedForecast, mask: np.ndarray) -> dict[str, Any]:
    """Return a copy with another mask, without the evidence of the tokens it closes."""
    return {"mask": mask, "evidence": np.where(mask.repeat(PATCH_LEN, axis=0), it.evidence, np.float32(0))}


TOUCHED: dict[str, tuple[Change, set[str]]] = {
    LAST_BIT: (lambda it: {"forecast": last_bit(it.forecast, 7, 1)}, ALL_AFTER_BUDGET),
    "a forecast that cannot be": (lambda it: {"forecast": put(it.forecast, (0, 0), 1e300)}, ALL_AFTER_BUDGET),
    "an open gate closed": (lambda it: closed_in(it, put(it.mask, first_open(it), False)), ALL_AFTER_BUDGET),
    "a closed gate opened": (
        lambda it: {"mask": put(it.mask, first_closed(it), True)},
        {"budget", *ALL_AFTER_BUDGET},
    ),
    "one gate for another": (
        lambda it: closed_in(it, put(put(it.mask, first_open(it), False), first_closed(it), True)),
        ALL_AFTER_BUDGET,
    ),
    "a missing token said to be there": (
        lambda it: {"history": np.nan_to_num(it.history, nan=40.0), "missing": np.zeros_like(it.missing)},
        {"rerun"},
    ),
    "evidence": (lambda it: {"evidence": put(it.evidence, step_in(first_open(it)), 0.5)}, {"replay", "rerun"}),
    "a level": (lambda it: {"level": put(it.level, 1, it.level[1] + 0.01)}, ALL_AFTER_BUDGET),
    "a scale": (lambda it: {"scale": put(it.scale, 1, it.scale[1] * 1.01)}, ALL_AFTER_BUDGET),
    "the profile of an hour forecast": (
        lambda it: {"profile": put(it.profile, (it.phase[-1], 1), 0.5)},
        ALL_AFTER_BUDGET,
    ),
    "a profile of another length": (
        lambda it: {
            "profile": np.tile(it.profile, (2, 1)),
            "cycles": (48,),
            "phase": it.clock.phase(0, LOOK_BACK + HORIZON, 48),
        },
        {"names"},
    ),
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
        lambda it: {
            "history": put(it.history, step_in(first_closed(it)), np.nan),
            "missing": put(it.missing, first_closed(it), True),
        },
        {"rerun"},
    ),
    "a probability": (lambda it: {"probability": put(it.probability, first_closed(it), 0.9)}, {"rerun"}),
    "the weights' name": (lambda it: {"weights_sha256": "0" * 64}, {"weights"}),
    "the budget": (lambda it: {"budget": 0.5}, {"names"}),
    "the prior": (lambda it: {"prior": 0.25}, {"names"}),
    "a channel's name": (lambda it: {"channels": ("wind", "load", "heat")}, {"names"}),
    "the units": (lambda it: {"units": Standardiser(it.units.mean + 1, it.units.std)}, {"names"}),
    "the size of the units": (lambda it: {"units": Standardiser(it.units.mean, it.units.std * 2)}, {"names"}),
}


@pytest.mark.parametrize("name", TOUCHED)
def test_every_changed_field_fails_at_the_right_check(
    explanation: ExplainedForecast, loaded: IBForecaster, name: str
) -> None:
    change, expected = TOUCHED[name]
    touched = changed(explanation, **change(explanation))
    assert failures(loaded.verify(touched.to_json(), exact=True)) == expected
    with pytest.raises(VerificationError, match=r"an explanation must be true") as caught:
        touched.verify(exact=True)
    assert all(f"FAILED {check}" in str(caught.value) for check in expected)


@pytest.mark.parametrize("name", sorted(set(TOUCHED) - {LAST_BIT}))
def test_changes_are_not_mistaken_for_rounding(explanation: ExplainedForecast, name: str) -> None:
    change, _ = TOUCHED[name]
    with pytest.raises(VerificationError):
        changed(explanation, **change(explanation)).verify()


def test_the_profile_of_an_hour_outside_the_forecast_cannot_be_changed(
    explanation: ExplainedForecast, loaded: IBForecaster
) -> None:
    hour = int(explanation.phase[LOOK_BACK]) - 1
    touched = changed(explanation, profile=last_bit(explanation.profile, hour, 0))
    assert {"rerun"} <= failures(loaded.verify(touched, exact=True)) <= {"rerun", "scramble"}


def test_phases_that_do_not_match_the_times_are_refused(explanation: ExplainedForecast) -> None:
    closed = np.flatnonzero(~explanation.mask.any(axis=1))
    assert len(closed), "no patch is closed in all channels: choose another window"
    step = int(closed[0]) * PATCH_LEN + 5
    for phase in (
        (explanation.phase + 1) % 24,
        put(explanation.phase, -1, 0),
        put(explanation.phase, step, (explanation.phase[step] + 9) % 24),
    ):
        with pytest.raises(DataError, match="phase of an explanation must follow from the times"):
            changed(explanation, phase=phase)


@pytest.mark.parametrize("touch", ["left out", "added", "changed"])
def test_evidence_in_the_document_cannot_be_changed(
    explanation: ExplainedForecast, loaded: IBForecaster, touch: str
) -> None:
    document = json.loads(explanation.to_json())
    tokens = document["explanation"]["evidence"]
    if touch == "changed":
        tokens[0]["deviation"][0] = 0.5
        assert failures(loaded.verify(json.dumps(document))) == {"document"}
        return
    if touch == "left out":
        tokens.pop()
    else:
        patch, column = first_closed(explanation)
        tokens.append({"patch": patch, "channel": explanation.channels[column], "deviation": [1.0] * PATCH_LEN})
    with pytest.raises(DataError, match=r"explanation\.evidence must have the type and shape of this field"):
        loaded.verify(json.dumps(document))


def test_a_changed_document_is_not_verified(explanation: ExplainedForecast, loaded: IBForecaster) -> None:
    document = json.loads(explanation.to_json())
    document["truth"][0][0] += 1
    for text in (json.dumps(document), json.dumps(document).encode()):
        verification = loaded.verify(text)
        assert failures(verification) == {"document"}
        assert "must match its fingerprint" in str(verification)


# --- The table ---


def test_rows_are_compared_with_the_table_or_a_note_says_that_they_were_not(
    explanation: ExplainedForecast, loaded: IBForecaster
) -> None:
    assert explanation.verify(table()).notes == ()
    (note,) = explanation.verify().notes
    assert "made-up table would pass" in note
    other = table()
    other.loc[ROWS - HORIZON - 5, "load"] += 1
    assert failures(loaded.verify(explanation, other)) == {"table"}
    longer = table()
    longer.loc[ROWS - 4, "wind"] = 1.0  # a value that was missing from the truth is now present
    assert failures(loaded.verify(explanation, longer)) == {"table"}
    verdict = loaded.verify(explanation, table()[: ROWS - HORIZON - 10])
    assert failures(verdict) == {"table"}
    assert "it has no window from" in str(verdict)


def test_a_table_with_later_rows_still_confirms_the_explanation(model: IBForecaster, loaded: IBForecaster) -> None:
    early = model.explain(table()[: ROWS - HORIZON])
    assert early.truth is None
    assert loaded.verify(early, table())
    some = model.explain(table()[: ROWS - HORIZON + 5], AT)
    assert some.truth is not None
    assert loaded.verify(some, table())
    assert loaded.verify(model.explain(table(), AT), table())
    assert failures(loaded.verify(model.explain(table(), AT), table()[: ROWS - HORIZON + 5])) == {"table"}


# --- Another machine ---


def test_last_bits_may_differ_on_another_machine_and_the_check_reports_it(
    explanation: ExplainedForecast, model: IBForecaster
) -> None:
    nudge = 1e-7 * explanation.units.std * explanation.scale
    nudged = replace(explanation, forecast=as_single(explanation.forecast + nudge, explanation.units))
    verification = nudged.verify()
    (replay,) = (check for check in verification.checks if check.name == "replay")
    assert "differs by up to 1.2e-07 scales; rounding on this machine explains" in replay.detail
    assert failures(model.verify(nudged, exact=True)) == ALL_AFTER_BUDGET


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_another_forecast_is_not_mistaken_for_another_machine(explanation: ExplainedForecast, size: float) -> None:
    nudge = put(np.zeros_like(explanation.forecast), (3, 0), size * explanation.units.std[0] * explanation.scale[0])
    with pytest.raises(VerificationError, match=r"FAILED replay.*rounding on this machine explains"):
        replace(explanation, forecast=explanation.forecast + nudge).verify()


# --- As a table, in words, as a picture ---


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)],
    ids=["pandas", "polars", "pyarrow"],
)
def test_the_table_has_one_row_per_token_and_the_users_kind(
    model: IBForecaster, kind: Callable[[dict[str, Any]], Any], expected: type
) -> None:
    explained = model.explain(table(kind), AT)
    rows = explained.to_table()
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
    assert len(rows) == explained.mask.size == 12


def test_the_table_agrees_with_the_arrays(explanation: ExplainedForecast) -> None:
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


def test_the_words_say_how_much_was_read_and_what_was_missing(explanation: ExplainedForecast) -> None:
    lines = explanation.in_words(full=True).splitlines()
    assert lines[:2] == [
        f"Forecast of 2023-01-17 04:00 to 2023-01-17 15:00, made at {AT}.",
        "It read 3 of 12 tokens: 25 % of the window, where the budget allows 25 %; "
        f"its gates carry {explanation.rate_bits:.1f} bits beyond their prior.",
    ]
    read, *rest = lines[2:]
    opened = explanation.mask.any(axis=0)
    assert [f"{name} (" in read for name in explanation.channels] == opened.tolist()
    assert rest[-1] == "Not readable because of missing values: wind (1 of 4 patches)."


@pytest.mark.parametrize(("name", "begins"), [("why.svg", b"<svg"), ("why.html", b"<!doctype html>")])
def test_a_picture_is_written_to_the_given_path(
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
