"""Variants of recipes: their names, their settings, and their separate records in the ledger."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import sizes_of
from ibforecast_lab.experiments.plans import CHOICE, CHOOSING, MAIN, ONE_MASK, PLANS, SUITE, SWEPT
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.studies import STUDIES
from ibforecast_lab.experiments.tables.tradeoff import ORDER, places
from ibforecast_lab.experiments.variants import JOIN, NETWORKS, SWEEPS, VARIANTS, split_name, varied, words_for
from ibforecast_lab.networks.ablations import SoftForecast
from ibforecast_lab.recipes import names, resolve

SIZES = Sizes(96, 96, 7, 24)
SHORT = Sizes(96, 96, 7, 96)
LABELS = ("tradeoff", "ablations", "sensitivity")


def place(cell: Cell) -> tuple[str, int, str]:
    return cell.data, cell.horizon, cell.recipe


@pytest.mark.parametrize("label", LABELS)
def test_every_cell_of_the_labels_has_its_own_study_recipe_and_file(label: str) -> None:
    cells = PLANS[label].cells()
    assert len({cell.key for cell in cells}) == len(set(cells)) == len(cells)
    for cell in cells:
        assert re.fullmatch(r"[\w.+=-]+", cell.key)
        assert not cell.study or cell.study in STUDIES
        recipe = recipe_of(cell)
        assert recipe.config.horizon == cell.horizon
        assert cell.budget in (None, recipe.config.budget)


def test_every_variant_is_run_by_some_label() -> None:
    run = {
        model.partition(JOIN)[2] for whole in PLANS.values() for plan in (whole, *whole.also) for model in plan.models
    }
    assert run - {""} == VARIANTS.keys()


@pytest.mark.parametrize("sizes", [SIZES, SHORT])
def test_with_open_gates_only_the_fit_is_learned(sizes: Sizes) -> None:
    whole, opened = (varied(name, sizes).config for name in ("choosing", "choosing+open"))
    assert opened.gate == replace(whole.gate, kind="open", attention="none")
    assert (opened.budget, opened.level_from) == (1.0, "window")
    weights = {name: value for name, value in vars(opened.objective).items() if name.endswith("_weight")}
    assert set(weights.values()) == {0.0}
    changed = {"objective": whole.objective, "gate": whole.gate, "budget": whole.budget, "level_from": "reading"}
    assert replace(opened, **changed) == whole


def test_choosing_and_a_fixed_mask_are_compared_on_every_table_of_the_suite() -> None:
    cells = CHOICE.cells()
    places = {(table.name, horizon) for table in SUITE.values() for horizon in table.horizons}
    assert len(cells) == len(set(cells)) == len(places) * 2 * 3
    assert {(cell.data, cell.horizon) for cell in cells} == places
    assert {cell.recipe for cell in cells} == {CHOOSING, ONE_MASK}
    assert {cell.study for cell in cells} == {"choice"}


def test_a_variant_changes_the_fingerprint_and_no_two_share_one() -> None:
    models = {model for label in LABELS for plan in (PLANS[label], *PLANS[label].also) for model in plan.models}
    recipes = {model: varied(model, SIZES, "ETTh1") for model in models}
    assert len({recipe.sha256 for recipe in recipes.values()}) == len(models)
    for model, recipe in recipes.items():
        base, variant = split_name(model)
        assert recipe.name == model
        assert (recipe.train == resolve(base, SIZES, "ETTh1").train) == (not variant or not VARIANTS[variant].train)


@pytest.mark.parametrize("name", names())
def test_a_recipe_without_a_variant_is_unchanged(name: str) -> None:
    assert varied(name, SIZES, "ETTm1") == resolve(name, SIZES, "ETTm1")
    assert Cell("ETTm1", 96, name, 2024).key == f"ETTm1-96-96-{name}-s2024"
    assert words_for(name) == name


def test_settings_of_a_variant_replace_those_of_the_data_set() -> None:
    whole, changed = (varied(name, SHORT, "ETTm1").config for name in ("paper-sparse", "paper-sparse+rate_weight=0.5"))
    assert (whole.objective.rate_weight, changed.objective.rate_weight) == (0.02, 0.5)
    assert changed.objective.consistency_weight == whole.objective.consistency_weight
    assert changed.gate == whole.gate


def test_an_explicit_budget_replaces_that_of_a_variant() -> None:
    assert varied("paper-sparse+no-budget", SIZES).config.budget == 1.0
    assert varied("paper-sparse+no-budget", SIZES, budget=0.5).config.budget == 0.5
    assert varied("paper-sparse", SIZES, budget=0.5).config.budget == 0.5


def test_a_network_without_a_recipe_is_built_under_its_own_name() -> None:
    recipe = varied("paper-sparse+no-hard-gates", SIZES)
    assert recipe.forecaster in NETWORKS
    forecaster = recipe.build(1)
    assert isinstance(forecaster, SoftForecast)
    again = {name: tensor.sum() for name, tensor in recipe.build(1).state_dict().items()}
    assert again == {name: tensor.sum() for name, tensor in forecaster.state_dict().items()}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("steady+no-fase", "did you mean 'no-phase'"),
        ("steady+quicker", "choose among no-gated-base"),
        ("factors+no-phase", "must be a variant of a recipe for ibforecast"),
        ("sealed+no-diversity", "must use known settings"),
        ("exactly+no-phase", "recipe must be one that ships"),
    ],
)
def test_an_unknown_variant_is_refused_with_a_remedy(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        varied(name, SIZES)


def test_your_own_recipe_may_be_at_any_path(tmp_path: Path) -> None:
    own = tmp_path / "steady+mine" / "own.toml"
    own.parent.mkdir()
    own.write_text('forecaster = "ibforecast"\n')
    assert varied(str(own), SIZES).config.budget == 0.2
    assert re.fullmatch(r"ETTh1-96-96-own\.\w{8}-s1", Cell("ETTh1", 96, str(own), 1).key)


def test_every_sweep_changes_a_setting_that_has_an_effect() -> None:
    for cell in PLANS["sensitivity"].cells():
        base = recipe_of(Cell(cell.data, cell.horizon, split_name(cell.recipe)[0], cell.seed))
        recipe = recipe_of(cell)
        if split_name(cell.recipe)[1] or cell.budget is not None:
            assert recipe.sha256 != base.sha256, cell.key
        if "prior" in cell.recipe:
            assert recipe.config.objective.rate_weight > 0, cell.key
    assert {setting for settings in SWEPT.values() for setting in settings} == set(SWEEPS)


def test_the_trade_off_is_run_at_the_budgets_that_are_shown() -> None:
    planned = {(*place(cell), recipe_of(cell).config.budget) for cell in PLANS["tradeoff"].cells()}
    shown = set(places())
    assert {one for one in shown if one[2] != "any-budget"} == {one for one in planned if one[2] != "any-budget"}
    assert {model for _, _, model, _ in shown} == set(ORDER)


def test_labels_share_their_cells() -> None:
    tradeoff, ablations, sensitivity = (set(PLANS[label].cells()) for label in LABELS)
    budgets = {cell for cell in sensitivity if cell.budget is not None}
    assert len(sensitivity & tradeoff & budgets) == 3 * (4 + 2)
    assert len(sensitivity & ablations) == 5
    assert tradeoff & set(PLANS["accuracy"].cells()) == {cell for cell in tradeoff if not cell.study}


def test_a_plan_of_several_parts_is_narrowed_in_all_of_them() -> None:
    narrowed = PLANS["tradeoff"].narrowed(("ETTm1",), (96,), ("sealed", "any-budget", "paper"), (1,))
    assert {cell.key for cell in narrowed.cells()} == {
        "ETTm1-96-96-paper-s1",
        "ETTm1-96-96-sealed-s1-native",
        *(f"ETTm1-96-96-sealed-b{budget}-s1-native" for budget in (0.05, 0.1, 0.35, 0.5)),
        "ETTm1-96-96-any-budget-s1-budgets",
    }
    assert set(PLANS["sensitivity"].narrowed().cells()) == set(PLANS["sensitivity"].cells())
    with pytest.raises(UsageError, match="model must belong to the label"):
        PLANS["ablations"].narrowed(models=("sealed+prior=0.5",))


@pytest.mark.parametrize("data", MAIN)
def test_the_default_recipe_does_not_depend_on_the_name_of_a_benchmark(data: str) -> None:
    sizes = sizes_of(Cell(data, 96, DEFAULT, 0))
    assert resolve(DEFAULT, sizes, data) == resolve(DEFAULT, sizes)
