"""The studies for many cells: only the native map, one model at every budget, and exchanged masks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ibforecast.core.context import Context
from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation
from ibforecast.core.window import Window
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.model.network import IBForecast
from ibforecast_lab.data.catalogue import CATALOGUE
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts, parts_of, sizes_of, steps_per_day
from ibforecast_lab.experiments.studies import budgets, choice, explanations, native
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.measures.choice import usual_mask
from ibforecast_lab.networks.ablations import SoftForecast
from ibforecast_lab.recipes import resolve

CPU = torch.device("cpu")
CELL = Cell("framed-pulse", 24, "any-budget", 1)
SMALL: dict[str, Any] = {"gate": {"width": 8, "heads": 2}, "readout": {"width": 16}}


@pytest.fixture(autouse=True)
def _few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "FIDELITY_WINDOWS", 12)
    monkeypatch.setattr(explanations, "explainers_of", lambda forecaster, window: {"native": EXPLAINERS["native"]})


@pytest.fixture(scope="module")
def parts() -> Parts:
    every = parts_of(CELL, CPU, with_calendar=False)
    few = {
        part: replace(getattr(every, part), starts=getattr(every, part).starts[:30]) for part in ("validation", "test")
    }
    return replace(every, **few)


def ours(recipe: str) -> Forecaster:
    return resolve(recipe, sizes_of(CELL), **SMALL).build(1).eval()


def test_the_light_study_has_the_same_rows_of_the_native_map_as_the_full_one(parts: Parts) -> None:
    whole = explanations.study(ours("steady"), parts, CELL)
    light = native.study(ours("steady"), parts, CELL)
    assert light == [row for row in whole if row["measure"] == "fidelity"]
    assert {row["explainer"] for row in light} == {"native"}
    assert len(light) == 24


def test_a_forecaster_that_cannot_be_replayed_has_no_mask_to_freeze(parts: Parts) -> None:
    config = resolve("steady", sizes_of(CELL), **SMALL).config
    rows = native.study(SoftForecast(config).eval(), parts, CELL)
    assert {row["gating"] for row in rows} == {"regated"}
    assert all(row["sufficiency"] > 0 for row in rows)


def test_one_model_is_measured_at_every_budget_and_never_reads_more(parts: Parts) -> None:
    forecaster = ours("any-budget")
    rows = budgets.study(forecaster, parts, CELL)
    assert [(row["budget"], row["part"]) for row in rows] == [
        (budget, part) for budget in budgets.BUDGETS for part in ("validation", "test")
    ]
    test = [row for row in rows if row["part"] == "test"]
    assert all(0 < row["open_rate"] <= row["largest_open_rate"] <= row["budget"] for row in test)
    assert test[-1]["open_rate"] == 1
    assert [row["open_rate"] for row in test] == sorted(row["open_rate"] for row in test)
    own, errors = test[budgets.BUDGETS.index(0.2)], accuracy(forecaster, parts.test)
    assert (own["mse"], own["mae"], own["windows"]) == (errors.mse, errors.mae, 30)


def test_the_model_keeps_its_budget(parts: Parts) -> None:
    forecaster = ours("any-budget")
    before = accuracy(forecaster, parts.test).open_rate
    budgets.study(forecaster, parts, CELL)
    assert torch.equal(accuracy(forecaster, parts.test).open_rate, before)


@pytest.mark.parametrize("recipe", ["steady", "dlinear"])
def test_a_model_for_one_budget_is_refused(parts: Parts, recipe: str) -> None:
    forecaster = ours("steady") if recipe == "steady" else resolve(recipe, sizes_of(CELL)).build(1)
    with pytest.raises(UsageError, match="use recipe any-budget"):
        budgets.study(forecaster, parts, replace(CELL, recipe=recipe))


@pytest.mark.parametrize("recipe", ["steady", "static-fixed"])
def test_a_model_has_its_own_error_with_its_own_mask_and_a_fixed_mask_with_any(
    recipe: str, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecaster, numbers = ours(recipe), ("own", "another", "usual", "unusual")
    rows = choice.study(forecaster, parts, CELL)
    assert [(row["part"], row["windows"]) for row in rows] == [("validation", 30), ("test", 30)]
    for row, windows in zip(rows, (parts.validation, parts.test), strict=True):
        assert row["own"] == accuracy(forecaster, windows).mse
        fixed = row["own"] == row["another"] == row["usual"]
        assert fixed == (recipe == "static-fixed") == (row["unusual"] == 0)
    monkeypatch.setattr("ibforecast_lab.measures.choice.BATCH", 7)
    for row, same in zip(choice.study(forecaster, parts, CELL), rows, strict=True):
        assert [row[name] for name in numbers] == pytest.approx([same[name] for name in numbers], rel=1e-5)


@pytest.mark.parametrize("recipe", ["steady", "sealed"])
def test_the_errors_of_blocks_average_to_those_of_all_windows(parts: Parts, recipe: str) -> None:
    # Windows of the benchmark are apart from each other. Here they start at every second step, as in a real table.
    near = replace(parts, test=replace(parts.test, starts=torch.arange(0, 130, 2)))
    row = {row["part"]: row for row in choice.study(ours(recipe), near, CELL)}["test"]
    blocks = row["blocks"]
    assert (blocks["steps"], blocks["windows"]) == (CELL.horizon, [12] * 5 + [5])
    for name in ("own", "another", "usual"):
        assert np.average(blocks[name], weights=blocks["windows"]) == pytest.approx(row[name], rel=1e-5)
        assert all(value == float(f"{value:.6g}") for value in blocks[name])


@pytest.mark.parametrize(("data", "steps"), [("ETTh1", 24), ("ETTm1", 96), ("Weather", 144), ("framed-pulse", 1)])
def test_a_block_is_at_least_a_day(data: str, steps: int) -> None:
    assert steps_per_day(data) == steps


@pytest.mark.parametrize(("frequency", "steps"), [("30min", 48), ("1d", 1), ("1w", 1), ("1mo", 1)])
def test_a_step_of_a_day_or_more_is_a_day(monkeypatch: pytest.MonkeyPatch, frequency: str, steps: int) -> None:
    monkeypatch.setitem(CATALOGUE, "table", replace(CATALOGUE["ETTh1"], frequency=frequency))
    assert steps_per_day("table") == steps


def test_a_model_with_another_source_of_its_level_is_refused(parts: Parts) -> None:
    class OfTheNewest(IBForecast):
        """A network that takes its context from the newer half of the window."""

        def read(self, window: Window, held: Context | None = None) -> Explanation:
            newer = window.observed.clone()
            newer[:, : newer.shape[1] // 2] = False
            return super().read(window, self.context(replace(window, observed=newer)))

    forecaster = OfTheNewest(resolve("steady", sizes_of(CELL), **SMALL).config).eval()
    with pytest.raises(UsageError, match="a window read through its own mask must have its own error"):
        choice.study(forecaster, parts, CELL)


def test_the_usual_mask_contains_the_tokens_open_most_often_and_the_earlier_of_equals() -> None:
    masks = torch.tensor([[[1, 0], [1, 0]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]], dtype=torch.bool)
    assert usual_mask(masks, 1).tolist() == [[True, False], [False, False]]
    assert usual_mask(masks, 2).tolist() == [[True, True], [False, False]]
    assert usual_mask(masks, 3).tolist() == [[True, True], [True, False]]


def test_a_missing_token_stays_closed_in_the_mask_of_another_window(parts: Parts) -> None:
    forecaster, windows = ours("static-fixed"), parts.test
    observed = windows.observed.clone()
    gap = int(windows.starts[3]) + windows.look_back - 1
    observed[gap] = False
    with_gap = replace(parts, test=replace(windows, observed=observed))
    row = {row["part"]: row for row in choice.study(forecaster, with_gap, CELL)}["test"]
    assert row["own"] == accuracy(forecaster, with_gap.test).mse
    values = windows.values.clone()
    values[gap] = 1e6
    other = replace(parts, test=replace(windows, observed=observed, values=values))
    assert {row["part"]: row for row in choice.study(forecaster, other, CELL)}["test"] == row


def test_a_model_without_gates_is_refused(parts: Parts) -> None:
    with pytest.raises(UsageError, match=r"the choice needs a model with gates \(got dlinear\)"):
        choice.study(resolve("dlinear", sizes_of(CELL)).build(1), parts, replace(CELL, recipe="dlinear"))
