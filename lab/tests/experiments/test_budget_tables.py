"""The trade-off, the ablations and the sensitivity: from made-up records to tables and figures."""

import json
import re
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ibforecast.cli.main import main
from ibforecast.core.errors import DataError
from ibforecast_lab.experiments.figures import drawn
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast_lab.experiments.plans import OPEN, PLANS
from ibforecast_lab.experiments.run import recipe_of
from ibforecast_lab.experiments.sheet import FORMATS, Sheet
from ibforecast_lab.experiments.studies.budgets import BUDGETS
from ibforecast_lab.experiments.tables import TABLES
from ibforecast_lab.experiments.tables.ablations import OF_THE_PAPER, places
from ibforecast_lab.experiments.variants import VARIANTS

LABELS = ["tradeoff", "ablations", "sensitivity"]
SEEDS = (2024, 2025, 2026)


def record(cell: Cell, mse: float = 0.4, open_rate: float = 0.2, rows: list[dict[str, Any]] | None = None) -> Record:
    scores, numbers = Scores(10, mse, 2 * mse, open_rate, open_rate), (10, 0, 1, 2, 1, 1.0, 10.0)
    recipe = recipe_of(cell)
    settings = {"config": asdict(recipe.config), "train": asdict(recipe.train)}
    proof = ("r", "d", 1, "c", "CPU", {}, "now")
    return Record(cell, recipe.forecaster, scores, scores, *numbers, settings, *proof, rows or [])


def native(
    model: str, mse: float = 0.4, comp: float = 0.9, suff: float = 0.1, open_rate: float = 0.2, **where: Any
) -> Record:
    cell = Cell(**{"data": "ETTh1", "horizon": 96, "seed": 2024, **where}, recipe=model, study="native")
    way = {"gating": "regated", "space": "frame", "shift": "squared", "aggregate": "ratio_of_means", "left_out": 0}
    numbers = {"comprehensiveness": comp, "clipped_comprehensiveness": min(comp, 1.0), "sufficiency": suff}
    return record(cell, mse, open_rate, [{"measure": "fidelity", "explainer": "native", **way, **numbers}])


def any_budget(seed: int, *errors: float) -> Record:
    """Return the record of an any-budget model with these test errors, from the smallest budget to the largest."""
    rows = [
        {
            "measure": "budget",
            "budget": budget,
            "part": part,
            "windows": 10,
            "mse": error if part == "test" else 99.0,  # a table must not show validation errors
            "mae": 2 * error,
            "open_rate": budget,
            "largest_open_rate": budget,
        }
        for budget, error in zip(BUDGETS, errors, strict=False)
        for part in ("validation", "test")
    ]
    return record(Cell("ETTh1", 96, "any-budget", seed, study="budgets"), rows=rows)


def lines(sheet: Sheet, **where: str) -> list[dict[str, str]]:
    every = [dict(zip(sheet.header, line, strict=True)) for line in sheet.body]
    return [line for line in every if all(line[name] == value for name, value in where.items())]


def rows(sheet: Sheet, **where: Any) -> list[dict[str, Any]]:
    return [row for row in sheet.rows if all(row[name] == value for name, value in where.items())]


def some_of_each() -> list[Record]:
    return [
        record(Cell("ETTh1", 96, OPEN, 2024), 0.4, 1.0),
        native("sealed", budget=0.05, open_rate=0.05, mse=0.5),
        native("sealed"),
        native("sealed+no-phase", 0.5),
        native("paper-sparse+prior=0.5", 0.42),
        any_budget(2024, 0.55, 0.5),
    ]


def texts(svg: bytes) -> set[str]:
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode()))


# --- Every label ---


@pytest.mark.parametrize("label", LABELS)
def test_every_label_is_shown_in_every_format_with_records_and_without(tmp_path: Path, label: str) -> None:
    ledger = Ledger(tmp_path / "ledger" / "ledger.jsonl.zst")
    for one in some_of_each():
        ledger.write(one)
    for form, packed in product(FORMATS, (ledger.packed, tmp_path / "none.zst")):
        shown = CliRunner().invoke(main, ["show", label, "--format", form, "--ledger", str(packed)])
        assert shown.exit_code == 0, shown.output
        if form == "json":
            keys = [list(row) for row in json.loads(shown.stdout)]
            assert all(key == keys[0] for key in keys)


@pytest.mark.parametrize("label", LABELS)
def test_a_table_has_a_line_for_every_cell_of_its_plan(label: str) -> None:
    planned = {replace(cell, seed=0) for cell in PLANS[label].cells()}
    once = len(planned) + (9 * (len(BUDGETS) - 1) if label == "tradeoff" else 0)  # one record, six budgets
    for records in ([], some_of_each()):
        sheet = TABLES[label](records)
        assert len(sheet.body) == once
        assert {len(line) for line in sheet.body} == {len(sheet.header)}
    assert all("not run" in line for line in TABLES[label]([]).body)


# --- The trade-off ---


def test_a_model_for_any_budget_is_compared_with_the_model_trained_for_each() -> None:
    alone = [native("sealed", 0.5, budget=0.05, seed=seed, open_rate=0.04) for seed in SEEDS]
    dense = [record(Cell("ETTh1", 96, OPEN, seed), 0.4, 1.0) for seed in SEEDS]
    dial = [any_budget(seed, 0.55, 0.5, 0.45, 0.44, 0.43, 0.42) for seed in SEEDS]
    sheet = TABLES["tradeoff"]([*alone, *dense, *dial])
    (smallest,) = rows(sheet, model="any-budget", budget=0.05, source="ledger")
    assert smallest["seeds"] == 3
    assert smallest["mse"] == pytest.approx(0.55)
    assert smallest["mse_over_own"] == pytest.approx(0.1)
    assert smallest["mse_over_dense"] == pytest.approx(0.375)
    (largest,) = rows(sheet, model="any-budget", budget=1.0)
    assert largest["mse_over_own"] == largest["mse_over_dense"] == pytest.approx(0.05)
    (unmatched,) = rows(sheet, model="any-budget", budget=0.1)
    assert unmatched["mse_over_own"] is None
    (line,) = lines(sheet, data="ETTh1", horizon="96", model="any-budget", budget="5%")
    assert (line["read"], line["MSE"], line["MSE over the model for this budget"]) == (
        "5.0%",
        "0.550 ± 0.000",
        "+10.0%",
    )
    (own,) = lines(sheet, data="ETTh1", horizon="96", model="sealed", budget="5%")
    assert (own["read"], own["most read"], own["MSE over gates open"]) == ("4.0%", "4.0%", "+25.0%")
    assert own["MSE over the model for this budget"] == "–"


def test_the_same_run_under_two_studies_counts_once_and_the_spread_is_over_seeds() -> None:
    twice = [record(Cell("ETTh1", 96, "sealed", 2024), 0.4), native("sealed", 0.4)]
    sheet = TABLES["tradeoff"]([*twice, record(Cell("ETTh1", 96, "sealed", 2025), 0.5)])
    (row,) = rows(sheet, model="sealed", source="ledger")
    assert (row["seeds"], row["budget"]) == (2, 0.2)
    assert row["mse"] == pytest.approx(0.45)
    assert row["mse_std"] == pytest.approx(0.1 / 2**0.5)


def test_published_shares_are_in_the_line_of_the_papers_model_in_separate_columns() -> None:
    sheet = TABLES["tradeoff"]([])
    (line,) = lines(sheet, data="ETTm1", horizon="192", model="paper-sparse", budget="20%")
    assert (line["MSE over gates open"], line["published MSE over dense"]) == ("–", "+3.5%")
    assert {line["published MSE over dense"] for line in lines(sheet, model="sealed")} == {"–"}
    assert {row["source"] for row in sheet.rows} == {"published"}


def test_runs_outside_the_plan_are_not_in_the_trade_off() -> None:
    beyond = [record(Cell("ETTh2", 192, "sealed", 1)), record(Cell("ETTh1", 720, "choosing", 1))]
    others = [
        record(Cell("ETTh1", 96, "tqnet", 1)),
        native("sealed+no-phase"),
        record(Cell("ETTh1", 96, "any-budget", 1)),
    ]
    assert rows(TABLES["tradeoff"]([*beyond, *others]), source="ledger") == []


def test_the_figure_names_every_model_and_what_was_not_run() -> None:
    shown = texts(drawn("tradeoff", some_of_each(), "svg"))
    assert {"sealed", "any-budget", "static-newest", "gates open", "horizon 336", "ETTm1, MAE"} <= shown
    assert "not run: sealed at" in shown
    assert any(text.startswith("10/35/50 %") for text in shown)
    assert "not run" in shown


# --- Ablations ---


def test_an_ablation_is_listed_under_its_recipe_in_words() -> None:
    seeds = [native("sealed+no-phase", 0.4 + seed / 1e4, comp=1.1, suff=0.2, seed=seed) for seed in SEEDS]
    sheet = TABLES["ablations"](seeds)
    (line,) = lines(sheet, data="ETTh1", recipe="sealed", change="− phase in the readout")
    assert (line["seeds"], line["read"], line["comp"]) == ("3", "20.0%", "1.100")
    assert line["score"] == "0.800 ± 0.000"
    (row,) = rows(sheet, source="ledger")
    assert (row["model"], row["recipe"], row["seeds"]) == ("sealed+no-phase", "sealed", 3)
    assert row["mse"] == pytest.approx(0.6025)
    assert lines(sheet, recipe="static-newest")[0]["change"] == "static mask"


def test_every_row_of_the_papers_table_belongs_to_one_of_ours() -> None:
    sheet = TABLES["ablations"]([])
    printed = {row["model"]: row for row in rows(sheet, source="published")}
    counterparts = {OF_THE_PAPER.get(model) for _, _, model in places()} - {None}
    assert counterparts == printed.keys() == {"ibforecast"} | {name for name in VARIANTS if name in printed}
    (gated,) = lines(sheet, recipe="paper-sparse", change="− gated base")
    assert (gated["MSE"], gated["published MSE"], gated["published score"]) == ("not run", "0.382", "-1.000")
    assert lines(sheet, recipe="factors", change="− diversity")[0]["published read"] == "14.5%"
    assert {line["published MSE"] for line in lines(sheet, recipe="sealed")} == {"–"}


def test_a_perfect_score_has_the_reason_why_it_says_nothing() -> None:
    opened = native("paper-sparse+no-budget", comp=1.0, suff=0.0, open_rate=1.0)
    sheet = TABLES["ablations"]([opened, native("static-newest", comp=1.0, suff=0.0), native("choosing", comp=1.0)])
    assert lines(sheet, recipe="paper-sparse", change="− budget")[0]["score"] == "1.000 (nothing left out)"
    assert lines(sheet, recipe="static-newest")[0]["score"] == "1.000 (by construction)"
    assert lines(sheet, recipe="choosing", change="–")[0]["score"] == "0.900"


def test_another_budget_is_no_ablation() -> None:
    assert rows(TABLES["ablations"]([native("sealed", budget=0.05)]), source="ledger") == []


def test_the_dots_name_what_was_not_run() -> None:
    shown = texts(drawn("ablations", some_of_each(), "svg"))
    assert {"sealed", "− phase in the readout", "− cycle Q (not run)", "static-newest (not run)", "published"} <= shown


# --- Sensitivity ---


def test_a_change_is_relative_to_the_unchanged_recipe_on_the_same_seeds() -> None:
    default = [native("paper-sparse", 0.4, seed=2024), native("paper-sparse", 0.5, seed=2025)]
    changed = [native("paper-sparse+prior=0.5", 0.44, seed=2024), native("paper-sparse+prior=0.5", 9.0, seed=2026)]
    sheet = TABLES["sensitivity"]([*default, *changed, native("paper-sparse", 0.36, budget=0.5, open_rate=0.5)])
    (prior,) = rows(sheet, setting="prior", source="ledger")
    assert (prior["recipe"], prior["value"], prior["seeds"]) == ("paper-sparse", 0.5, 2)
    assert prior["mse_change"] == pytest.approx(0.1)
    (budget,) = rows(sheet, setting="budget", source="ledger")
    assert (budget["value"], budget["mse_change"], budget["open_rate"]) == (0.5, pytest.approx(-0.1), 0.5)
    (line,) = lines(sheet, data="ETTh1", recipe="paper-sparse", setting="prior (π)", value="0.5")
    assert (line["change of MSE"], line["published change of MSE"]) == ("+10.0%", "± 3%")
    (line,) = lines(sheet, data="ETTh1", recipe="paper-sparse", setting="default")
    assert (line["change of MSE"], line["published change of MSE"]) == ("+0.0%", "–")


def test_without_the_unchanged_recipe_there_is_no_change() -> None:
    sheet = TABLES["sensitivity"]([native("paper-sparse+prior=0.5", data="Weather")])
    (row,) = rows(sheet, source="ledger")
    assert (row["mse"], row["mse_change"]) == (0.4, None)
    assert drawn("sensitivity", [native("paper-sparse+prior=0.5")], "svg")
    with pytest.raises(DataError, match="a figure needs records"):
        drawn("sensitivity", [native("paper-sparse")], "svg")


def test_the_axis_of_the_figure_has_each_data_sets_own_setting() -> None:
    shown = texts(drawn("sensitivity", some_of_each(), "svg"))
    assert {"1e-4", "5e-3", "the unchanged recipe", "ETTm1", "contiguity weight λ_tv", "most steps"} <= shown
    assert "84" in shown  # the sealed recipe's own number of steps, which no cell of the plan names


# --- Studies that contain others ---


def test_a_study_serves_one_it_contains_unless_that_was_run_itself(tmp_path: Path) -> None:
    alone = native("sealed", comp=0.7)
    measurements = [
        *native("sealed", comp=0.8).measurements,
        {"measure": "fidelity", "explainer": "occlusion"},
        {"measure": "rate"},
    ]
    whole = record(replace(alone.cell, study="explanations"), rows=measurements)
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    ledger.write(whole)
    answer = ledger.read(alone.cell)
    assert answer is not None
    assert answer.cell == whole.cell
    assert ledger.read(replace(alone.cell, study="coverage")) is None
    (line,) = lines(TABLES["ablations"]([whole]), data="ETTh1", recipe="sealed", change="–")
    assert (line["seeds"], line["comp"]) == ("1", "0.800")
    for records in ([whole, alone], [alone, whole]):
        (line,) = lines(TABLES["ablations"](records), data="ETTh1", recipe="sealed", change="–")
        assert (line["seeds"], line["comp"]) == ("1", "0.700")


# --- The learned gate compared with a fixed mask ---


@pytest.mark.parametrize(
    ("fixed", "learned_is", "change"),
    [((0.45, 0.47), "ahead", "-10.9%"), ((0.35, 0.37), "behind", "+13.9%"), ((0.40, 0.44), "level", "-2.4%")],
)
def test_a_gate_is_ahead_only_by_more_than_the_spread(fixed: tuple[float, float], learned_is: str, change: str) -> None:
    records = [
        *(record(Cell("ETTh2", 96, "choosing", seed), error) for seed, error in zip(SEEDS, (0.40, 0.42), strict=False)),
        native("choosing", data="ETTh2", mse=9.0, budget=0.5),
        *(native("sealed", data="ETTh2", mse=one, seed=seed) for seed, one in zip(SEEDS, fixed, strict=False)),
        record(Cell("ETTh2", 96, "sealed", SEEDS[0]), fixed[0]),
    ]
    sheet = TABLES["fixed_mask"](records)
    (line,) = lines(sheet, data="ETTh2", horizon="96", budget="20%")
    assert (line["seeds"], line["read"], line["learned is"], line["change"]) == ("2", "20.0%", learned_is, change)
    (absent,) = lines(sheet, data="ETTh2", horizon="96", budget="5%")
    assert (absent["MSE"], absent["MSE of a fixed mask"], absent["learned is"]) == ("not run", "not run", "–")


def test_exchanging_masks_shows_whether_the_gate_chooses() -> None:
    rows = [
        {"measure": "choice", "part": part, "own": 0.4, "another": error, "usual": 0.42, "unusual": 0.25}
        for part, error in (("validation", 9.0), ("test", 0.5))
    ]
    exchanged = record(Cell("ETTm2", 96, "choosing", 2024, 0.1, study="choice"), 0.4, rows=rows)
    of_fixed = record(Cell("ETTm2", 96, "sealed", 2024, 0.1, study="choice"), 0.5, rows=[{**rows[1], "unusual": 0.0}])
    sheet = TABLES["fixed_mask"]([exchanged, of_fixed])
    (line,) = lines(sheet, data="ETTm2", horizon="96", budget="10%")
    assert (line["MSE"], line["unusual"]) == ("0.400", "25.0%")
    assert (line["MSE with another's mask"], line["MSE with the usual mask"]) == ("0.500", "0.420")
    (absent,) = lines(sheet, data="ETTm2", horizon="96", budget="5%")
    assert absent["unusual"] == "not run"


def test_a_comparison_of_one_seed_is_marked() -> None:
    records = [native("choosing", mse=0.4, budget=0.05), native("sealed", mse=0.9, budget=0.05)]
    (line,) = lines(TABLES["fixed_mask"](records), data="ETTh1", horizon="96", budget="5%")
    assert (line["seeds"], line["change"], line["learned is"]) == ("1", "-55.6%", "one seed")
