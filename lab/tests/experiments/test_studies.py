"""The rows of the studies, on small windows of every kind of data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ibforecast.core.contracts import Forecaster
from ibforecast.core.errors import UsageError
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import train
from ibforecast.zoo.recipes import Recipe
from ibforecast_lab.data import framed
from ibforecast_lab.data.standin import STAND_INS
from ibforecast_lab.experiments.frame import frame
from ibforecast_lab.experiments.ledger import HOLDER, Cell, Ledger, Record
from ibforecast_lab.experiments.parts import FRAMED, Parts, fingerprint_of, parts_of, sizes_of
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.run import missing_from, recipe_of, run
from ibforecast_lab.experiments.studies import STUDIES, cost, explanations, recovery
from ibforecast_lab.experiments.studies import explainers as room
from ibforecast_lab.experiments.tables.errors import by_horizon
from ibforecast_lab.explainers import EXPLAINERS
from ibforecast_lab.explainers.dynamask import Dynamask
from ibforecast_lab.explainers.extremal_mask import ExtremalMask
from ibforecast_lab.measures.unread import KINDS
from ibforecast_lab.recipes import resolve

CPU = torch.device("cpu")
PULSE = Cell("framed-pulse", 24, "framed", 1, study="recovery")
POST_HOC = {"occlusion", "saliency", "dynamask", "extremal_mask", "chance", "integrated_gradients"}


@pytest.fixture(autouse=True)
def _few_windows_and_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "FIDELITY_WINDOWS", 12)
    monkeypatch.setattr(explanations, "GATE_WINDOWS", 9)
    monkeypatch.setattr(recovery, "WINDOWS", 12)
    monkeypatch.setattr(cost, "WINDOWS", 2)
    monkeypatch.setattr(cost, "REPEATS", 1)
    short = {"dynamask": Dynamask(steps=2), "extremal_mask": ExtremalMask(steps=2)}
    monkeypatch.setattr(room, "EXPLAINERS", EXPLAINERS | short)


@pytest.fixture(scope="module")
def parts() -> Parts:
    every = parts_of(PULSE, CPU, with_calendar=False)
    assert every.support is not None
    return replace(every, test=replace(every.test, starts=every.test.starts[:30]), support=every.support[:30])


def ours(budget: float = 0.25) -> Forecaster:
    settings: dict[str, Any] = {"budget": budget, "gate": {"width": 8, "heads": 2}, "readout": {"width": 16}}
    return resolve("steady", sizes_of(PULSE), **settings).build(1).eval()


def trained(recipe: str, parts: Parts, **settings: Any) -> Forecaster:
    """Train a small model for one epoch."""
    forecaster = resolve(recipe, sizes_of(PULSE), readout={"width": 16}, **settings).build(1)
    train(forecaster, parts.training, parts.validation, TrainConfig(epochs=1, batch=512), seed=1)
    return forecaster.eval()


def rival() -> Forecaster:
    return resolve("dlinear", sizes_of(PULSE)).build(1).eval()


def by_measure(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {kind: [row for row in rows if row["measure"] == kind] for kind in {row["measure"] for row in rows}}


@pytest.mark.parametrize("name", FRAMED)
def test_the_parts_of_a_cell_are_the_generated_windows_unchanged(name: str) -> None:
    cell = Cell(name, 24, "framed", 1)
    cut, (train, _, test) = parts_of(cell, CPU, with_calendar=False), framed.splits(FRAMED[name])
    assert (len(cut.training), len(cut.validation), len(cut.test)) == (4000, 1000, 1000)
    window, target = cut.training.take(cut.training.starts[7:8])
    assert torch.equal(window.values[0], torch.from_numpy(train.window[7]))
    assert torch.equal(target.values[0], torch.from_numpy(train.target[7]))
    assert cut.support is not None
    assert torch.equal(cut.support, torch.from_numpy(test.support))


def test_every_generated_data_set_has_a_different_fingerprint() -> None:
    assert len({fingerprint_of(name) for name in FRAMED}) == len(FRAMED)


def test_a_stand_in_is_cut_into_parts_like_the_data_it_replaces() -> None:
    cell = Cell("Solar-stand-in", 96, "sealed", 1)
    cut, facts = parts_of(cell, CPU, with_calendar=False), STAND_INS["Solar-stand-in"]
    assert cut.training.values.shape == (facts.rows, facts.channels)
    assert len(cut.test) == 10417


def test_a_study_of_our_model_measures_every_explainer_in_every_way(parts: Parts) -> None:
    rows = by_measure(explanations.study(ours(), parts, PULSE))
    ways = {(row["explainer"], row["gating"], row["space"], row["shift"], row["aggregate"]) for row in rows["fidelity"]}
    assert len(ways) == len(rows["fidelity"]) == 24 * 11
    assert {name for name, *_ in ways} >= POST_HOC | {"native", "timing_defaults", "integrated_gradients_reference"}
    assert rows["windows"][0]["indices"].split()[0] == "0"
    assert len(rows["windows"][0]["indices"].split()) == 12


def test_the_native_map_is_complete_and_sufficient_if_its_mask_is_frozen(parts: Parts) -> None:
    rows = explanations.study(ours(), parts, PULSE)
    native = [row for row in rows if row.get("explainer") == "native" and row["gating"] == "frozen"]
    assert {(row["comprehensiveness"], row["sufficiency"]) for row in native} == {(1.0, 0.0)}


def test_a_study_counts_bits_over_all_test_windows_and_finds_none_changed(parts: Parts) -> None:
    (row,) = by_measure(explanations.study(ours(), parts, PULSE))["certificate"]
    assert (row["windows"], row["replay_bits"], row["scramble_bits"]) == (30, 0, 0)
    assert row["compared"] == 30 * 24 * 4


def test_a_study_of_a_sealed_model_counts_no_change_with_nothing_held(parts: Parts) -> None:
    rows = by_measure(explanations.study(trained("sealed", parts), parts, PULSE))
    (fixed,), (free,) = rows["certificate"], rows["sensitivity"]
    assert (fixed["windows"], fixed["replay_bits"], fixed["scramble_bits"]) == (30, 0, 0)
    assert fixed["scrambled"] > 0
    assert (free["relative"], free["gates_relative"], free["masks_changed"]) == (0, 0, 0)
    counts = {row.pop("kind"): row for row in rows["unread"]}
    assert tuple(counts) == KINDS
    none = {"measure": "unread", "windows": 30, "masks": 0, "contexts": 0, "forecasts": 0, "changed": 0}
    assert all(row == none for row in counts.values())


def test_a_study_of_a_conditional_model_counts_the_windows_that_change_with_nothing_held(parts: Parts) -> None:
    gate = {"width": 8, "heads": 2}
    rows = by_measure(explanations.study(trained("steady", parts, gate=gate), parts, PULSE))
    (free,) = rows["sensitivity"]
    assert free["relative"] > 0
    assert [row["kind"] for row in rows["unread"]] == [*KINDS]
    assert all(row["contexts"] == row["forecasts"] == row["changed"] == 30 for row in rows["unread"])
    assert any(row["masks"] for row in rows["unread"])


def test_gate_frequencies_average_to_the_open_rate(parts: Parts) -> None:
    rows = by_measure(explanations.study(ours(), parts, PULSE))
    frequency = torch.tensor(rows["gate_frequency"][0]["frequency"])
    assert frequency.shape == (8, 4)
    assert frequency.mean() == pytest.approx(0.25, abs=1e-4)
    (gates,) = rows["gate_map"]
    assert torch.equal(torch.tensor(gates["probability"]) > 0.5, torch.tensor(gates["mask"]).bool())


def test_a_rival_is_studied_by_its_own_map_at_the_same_number_of_points(parts: Parts) -> None:
    rows = by_measure(explanations.study(rival(), parts, PULSE))
    assert {row["explainer"] for row in rows["fidelity"]} == {"native"}
    assert {row["gating"] for row in rows["fidelity"]} == {"regated"}
    window = parts.test.look_backs(parts.test.starts[:2])
    assert explanations.points_of(rival(), window).tolist() == [6 * 12, 6 * 12]  # ⌊0.2 · 8 · 4⌋ patches


def test_the_truth_has_perfect_recovery_and_chance_has_half(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    from ibforecast.explain.guest import GivenMap

    assert parts.support is not None
    maps = {"native": GivenMap(parts.support[:12].float()), "chance": EXPLAINERS["chance"]}
    monkeypatch.setattr(recovery, "explainers_of", lambda forecaster, window: maps)
    truth, chance = recovery.study(ours(), parts, PULSE)
    assert (truth["auroc"], truth["aup"], truth["aur"]) == (1.0, pytest.approx(1.0, abs=0.6), 1.0)
    assert chance["auroc"] == pytest.approx(0.5, abs=0.05)


def test_recovery_needs_something_planted(parts: Parts) -> None:
    with pytest.raises(UsageError, match="use framed-pulse"):
        recovery.study(ours(), replace(parts, support=None), PULSE)


def test_cost_counts_the_passes_of_each_explainer(parts: Parts) -> None:
    rows = {row["explainer"]: row for row in cost.study(ours(), parts, PULSE)}
    assert (rows["native"]["forwards"], rows["native"]["backwards"]) == (1, 0)
    assert (rows["saliency"]["forwards"], rows["saliency"]["backwards"]) == (1, 1)
    assert rows["occlusion"]["forwards"] == 1 + 8 * 4
    assert all(row["forward_equivalents"] > 0 and row["device"] == "cpu" for row in rows.values() if row["forwards"])


def test_the_record_of_a_study_serves_the_plain_cell_and_is_counted_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def short(cell: Cell) -> Recipe:
        recipe = recipe_of(replace(cell, recipe="dlinear"))
        return replace(recipe, train=TrainConfig(epochs=1, batch=512))

    monkeypatch.setattr("ibforecast_lab.experiments.run.recipe_of", short)
    record = run(PULSE, CPU)
    assert record.cell.key == "framed-pulse-96-24-framed-s1-recovery"
    assert [row["explainer"] for row in record.measurements if "explainer" in row] == ["native"]
    assert record.data_sha256 == fingerprint_of("framed-pulse")
    plain = replace(record, cell=replace(record.cell, study=""))

    def rows(*records: Record) -> list[dict[str, Any]]:
        return by_horizon(frame(records), ("framed-pulse",))

    (row,) = rows(record, plain)
    assert row["seeds"] == 1
    assert rows(record) == rows(plain) == [row]
    for other in ({"budget": 0.1}, {"recipe": "framed+no-profile"}):
        assert rows(replace(record, cell=replace(record.cell, **other))) == []
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    ledger.write(record)
    assert ledger.read(plain.cell) == record
    assert ledger.read(replace(plain.cell, study="cost")) is None
    assert missing_from(ledger, [plain.cell, record.cell]) == []


@pytest.mark.parametrize(("study", "holder"), HOLDER.items())
def test_the_rows_of_a_study_are_in_the_study_that_contains_it(parts: Parts, study: str, holder: str) -> None:
    part, whole = (STUDIES[name](ours(), parts, PULSE) for name in (study, holder))
    assert part == [row for row in whole if row.get("explainer") == study]


@pytest.mark.parametrize("label", [label for label, plan in PLANS.items() if plan.study])
def test_every_studied_label_has_a_study_and_recipes_for_its_cells(label: str) -> None:
    for cell in PLANS[label].cells():
        assert cell.study in STUDIES or (label, cell.study) == ("tables", "")  # only errors of other models are shown
        assert recipe_of(cell).config.horizon == cell.horizon
