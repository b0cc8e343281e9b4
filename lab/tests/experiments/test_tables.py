"""From records to tables: plans, rows, sheets, and the two verbs over them."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from click.testing import CliRunner

from ibforecast.cli.main import main
from ibforecast.core.errors import UsageError
from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.standin import STAND_INS, stand_in
from ibforecast_lab.experiments.facts import facts
from ibforecast_lab.experiments.frame import lead
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast_lab.experiments.plans import FORMER, HORIZONS, MAIN, PLANS, SEEDS, plan
from ibforecast_lab.experiments.published import WHOLE_BATCHES
from ibforecast_lab.experiments.sheet import FORMATS
from ibforecast_lab.experiments.tables import TABLES
from ibforecast_lab.experiments.variants import split_name
from ibforecast_lab.recipes import names

FLAT = [
    *("data", "horizon", "model", "budget", "other_budget", "seeds", "mse", "mae", "mse_std", "mae_std", "open_rate"),
    *("validation_mse", "default_is", "default_is_by_mae", "steady_is", "steady_is_by_mae", "dropped_batch", "source"),
]


def record(cell: Cell, mse: float, open_rate: float = 0.2) -> Record:
    scores = Scores(windows=10, mse=mse, mae=2 * mse, open_rate=open_rate, largest_open_rate=open_rate)
    return Record(
        cell=cell,
        forecaster="ibforecast",
        validation=replace(scores, mse=1 + mse),
        test=scores,
        verified_windows=10,
        broken_windows=0,
        parameters=1,
        epochs=2,
        best_epoch=1,
        seconds=1.0,
        windows_per_second=10.0,
        recipe={"config": {"budget": cell.budget or 0.2}, "train": {}},
        recipe_sha256="r",
        data_sha256="d",
        results_version=1,
        commit="c",
        device="CPU",
        versions={},
        finished="now",
    )


def full_grid(recipe: str, mse: float, budget: float | None = None) -> list[Record]:
    return [
        record(Cell(data, horizon, recipe, seed, budget), mse + 0.01 * (seed - 2025) + horizon / 1e4)
        for data in MAIN
        for horizon in HORIZONS
        for seed in SEEDS
    ]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger" / "ledger.jsonl.zst")
    for one in [*full_grid("sealed", 0.3), *full_grid("tqnet", 0.2), record(Cell("ETTh1", 96, "dlinear", 2024), 0.9)]:
        ledger.write(one)
    return ledger


def show(ledger: Ledger, label: str, form: str) -> str:
    outcome = CliRunner().invoke(main, ["show", label, "--format", form, "--ledger", str(ledger.packed)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


@pytest.mark.parametrize(("label", "is_warned"), [("accuracy", True), ("datasets", False)])
def test_a_ledger_without_records_is_a_warning_where_records_are_needed(
    tmp_path: Path, label: str, is_warned: bool
) -> None:
    outcome = CliRunner().invoke(main, ["show", label, "--ledger", str(tmp_path / "none.jsonl.zst")])
    assert outcome.exit_code == 0
    assert ("none.jsonl.zst has no records" in outcome.stderr) == is_warned


# --- Plans ---


def test_the_main_tables_need_every_data_set_horizon_model_and_seed() -> None:
    cells = PLANS["accuracy"].cells()
    at_a_tenth = [cell for cell in cells if cell.budget == 0.1]
    assert {cell.recipe for cell in at_a_tenth} == {DEFAULT}
    assert len(cells) - len(at_a_tenth) == 5 * 4 * len(PLANS["accuracy"].models) * 3
    assert len(cells) == len(set(cells))
    assert {split_name(model)[0] for model in PLANS["accuracy"].models} <= set(names())


def test_a_plan_is_narrowed_to_named_values_and_refuses_unknown_ones() -> None:
    narrowed = plan("per_horizon").narrowed(("Weather",), (96,), ("sealed", "choosing"), (1, 2))
    assert narrowed.cells() == [Cell("Weather", 96, model, seed) for model in ("sealed", "choosing") for seed in (1, 2)]
    for unknown in ({"data": ("Traffic",)}, {"horizons": (97,)}, {"models": ("oracle",)}):
        with pytest.raises(UsageError, match="must belong to the label"):
            plan("per_horizon").narrowed(**unknown)


def test_an_unknown_label_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'accuracy'"):
        plan("acuracy")


# --- Rows ---


def flat(ledger: Ledger, label: str, **where: Any) -> list[dict[str, Any]]:
    rows = TABLES[label](ledger.records()).rows
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def test_rows_average_over_seeds_and_give_their_spread(ledger: Ledger) -> None:
    (row,) = flat(ledger, "per_horizon", data="ETTh1", horizon=96, model="sealed", source="ledger")
    assert (row["seeds"], row["budget"]) == (3, 0.2)
    assert row["mse"] == pytest.approx(0.3096)
    assert row["mae"] == pytest.approx(0.6192)
    assert row["mse_std"] == pytest.approx(0.01)
    assert row["validation_mse"] == pytest.approx(1.3096)


def test_a_mean_over_horizons_needs_all_four_of_them_and_its_spread_is_over_seeds(ledger: Ledger) -> None:
    assert {row["model"] for row in flat(ledger, "accuracy", source="ledger")} == {"sealed", "tqnet"}
    for data in ("ETTh1", "Overall"):
        (row,) = flat(ledger, "accuracy", data=data, model="sealed", source="ledger")
        assert row["mse"] == pytest.approx(0.3 + sum(HORIZONS) / 4e4)
        assert row["mse_std"] == pytest.approx(0.01)
        assert row["seeds"] == 3


def test_a_mean_over_data_sets_needs_all_five_of_them(tmp_path: Path) -> None:
    sheet = TABLES["accuracy"]([one for one in full_grid("sealed", 0.3) if one.cell.data != "Weather"])
    assert {row["data"] for row in sheet.rows if row["source"] == "ledger"} == {*MAIN} - {"Weather"}


def test_a_seed_without_a_horizon_counts_in_the_mean_and_not_in_the_spread() -> None:
    records = [one for one in full_grid("sealed", 0.3) if (one.cell.horizon, one.cell.seed) != (96, 2026)]
    (row,) = [row for row in TABLES["accuracy"](records).rows if (row["data"], row["seeds"]) == ("ETTh1", 2)]
    assert row["mse"] == pytest.approx(0.3 + sum(HORIZONS) / 4e4 - 0.005 / 4)
    assert row["mse_std"] == pytest.approx(0.01 / 2**0.5)


def test_published_rows_are_never_rows_of_the_ledger(ledger: Ledger) -> None:
    published = flat(ledger, "per_horizon", source="published")
    assert published
    assert all(row["seeds"] == 0 and row["open_rate"] is None for row in published)


# --- How a mean compares with another ---


def with_spread(mean: float, spread: float | None, source: str = "ledger") -> dict[str, Any]:
    return {"mse": mean, "mse_std": spread, "source": source}


@pytest.mark.parametrize(
    ("ours", "other", "expected"),
    [
        (with_spread(0.30, 0.01), with_spread(0.32, 0.01), "ahead"),
        (with_spread(0.32, 0.01), with_spread(0.30, 0.01), "behind"),
        (with_spread(0.30, 0.01), with_spread(0.32, 0.03), "level"),
        (with_spread(0.30, 0.03), with_spread(0.32, 0.01), "level"),
        (with_spread(0.30, 0.0), with_spread(0.30, 0.0), "level"),
        (with_spread(0.30, None), with_spread(0.32, 0.01), "one seed"),
        (with_spread(0.30, 0.01), with_spread(0.32, None), "one seed"),
        (with_spread(0.30, 0.01), with_spread(0.32, None, "published"), "ahead"),
        (with_spread(0.30, 0.01), with_spread(0.305, None, "published"), "level"),
        (with_spread(0.30, 0.001), with_spread(0.305, 0.01, "published"), "level"),
        (None, with_spread(0.32, 0.01), None),
    ],
)
def test_a_lead_within_the_spread_of_seeds_is_level(
    ours: dict[str, Any] | None, other: dict[str, Any], expected: str | None
) -> None:
    assert lead(ours, other) == expected


def test_the_larger_score_is_ahead() -> None:
    assert lead(with_spread(0.9, 0.01), with_spread(0.5, 0.01), larger_is_better=True) == "ahead"


# --- Sheets ---


def test_the_numbers_of_cyclenets_authors_are_next_to_our_run_and_in_the_means(ledger: Ledger) -> None:
    rows = [row for row in json.loads(show(ledger, "accuracy", "json")) if row["model"] == "cyclenet-linear"]
    means = {row["data"]: row["mse"] for row in rows if row["source"] == "published"}
    assert means["ETTh1"] == pytest.approx((0.3785 + 0.4266 + 0.4642 + 0.4619) / 4)
    assert means["Overall"] == pytest.approx(mean(means[data] for data in MAIN))
    (cell,) = [
        row
        for row in json.loads(show(ledger, "per_horizon", "json"))
        if (row["data"], row["horizon"], row["model"]) == ("Weather", 720, "cyclenet-linear")
    ]
    assert (cell["mse"], cell["source"]) == (0.3497, "published")


@pytest.mark.parametrize("label", ["accuracy", "per_horizon", "large_channels"])
def test_the_json_is_a_list_of_flat_rows(ledger: Ledger, label: str) -> None:
    rows = json.loads(show(ledger, label, "json"))
    assert rows
    assert all(list(row) == FLAT for row in rows)
    assert {row["source"] for row in rows} <= {"ledger", "published"}


def test_the_csv_has_the_same_rows_as_the_json(ledger: Ledger) -> None:
    rows = list(csv.DictReader(io.StringIO(show(ledger, "per_horizon", "csv"))))
    assert len(rows) == len(json.loads(show(ledger, "per_horizon", "json")))
    assert list(rows[0]) == FLAT


def test_a_rivals_line_is_the_better_of_our_run_and_the_published_number(ledger: Ledger) -> None:
    sheet = TABLES["per_horizon"](ledger.records())
    lines = {tuple(line[:3]): dict(zip(sheet.header, line, strict=True)) for line in sheet.body}
    ours, theirs = lines["ETTh1", "96", "tqnet"], lines["ETTh1", "96", "dlinear"]
    assert (ours["source"], ours["MSE"], ours["MAE"]) == ("ours", "**0.210 ± 0.010**", "0.419 ± 0.020")
    assert (theirs["source"], theirs["seeds"], theirs["MSE"], theirs["MAE"]) == ("published", "–", "0.386", "0.400")
    paper = lines["ETTh1", "96", "IB-Forecast, as published"]
    assert (paper["source"], paper["MSE"]) == ("published", "0.382")
    both = flat(ledger, "per_horizon", data="ETTh1", horizon=96, model="dlinear")
    assert [(row["source"], row["mse"]) for row in both] == [("ledger", 0.9), ("published", 0.386)]


def test_the_error_of_our_default_is_compared_with_every_line() -> None:
    records = [*full_grid(DEFAULT, 0.30), *full_grid("sealed", 0.305), *full_grid("tqnet", 0.2)]
    sheet = TABLES["accuracy"]([*records, *(one for one in full_grid("patchtst", 0.31) if one.cell.seed == 2024)])
    lines = {(line[0], line[2]): dict(zip(sheet.header, line, strict=True)) for line in sheet.body}
    by_mse, by_mae = (f"{DEFAULT} is, by {metric}" for metric in ("MSE", "MAE"))
    leads = {model: lines["Overall", model][by_mse] for model in (DEFAULT, "sealed", "tqnet", "timesnet")}
    assert leads == {DEFAULT: "–", "sealed": "level", "tqnet": "behind", "timesnet": "ahead"}
    assert lines["Overall", "timesnet"][by_mae] == "behind"
    assert lines["ETTh1", "patchtst"][by_mse] == "one seed"
    assert "no more than the larger of the standard deviations" in sheet.note


def test_flat_rows_compare_the_default_and_the_former_default_with_every_model() -> None:
    sheet = TABLES["accuracy"]([*full_grid(DEFAULT, 0.2), *full_grid(FORMER, 0.3), *full_grid("tqnet", 0.25)])
    rows = {row["model"]: row for row in sheet.rows if (row["data"], row["source"]) == ("Overall", "ledger")}
    leads = {model: (row["default_is"], row["steady_is"]) for model, row in rows.items()}
    assert leads == {DEFAULT: (None, "behind"), FORMER: ("ahead", None), "tqnet": ("ahead", "behind")}


def test_runs_at_another_budget_have_lines_and_names_of_their_own() -> None:
    records = [*full_grid(DEFAULT, 0.3, budget=0.1), *full_grid(DEFAULT, 0.2)]
    for label, place in (("accuracy", "Overall"), ("per_horizon", "ETTh1/96")):
        sheet = TABLES[label](records)
        named = facts({label: sheet})
        own, other = (named[f"{label}/{place}/{model}/mse"] for model in (DEFAULT, f"{DEFAULT}/0.1"))
        assert other - own == pytest.approx(0.1)
        lines = {line[2]: dict(zip(sheet.header, line, strict=True)) for line in sheet.body if line[0] == "ETTh1"}
        assert list(lines)[:2] == [DEFAULT, f"{DEFAULT}, budget 0.1"]
        assert lines[f"{DEFAULT}, budget 0.1"][f"{DEFAULT} is, by MSE"] == "ahead"


def test_the_best_and_the_best_interpretable_errors_are_marked_and_missing_ones_are_not_run(ledger: Ledger) -> None:
    text = show(ledger, "accuracy", "md")
    assert "| ETTh1 | mean | tqnet | ours | 20.0% | 3 | **0.234 ± 0.010** |" in text
    assert "| ETTh1 | mean | sealed | ours | 20.0% | 3 | _0.334 ± 0.010_ |" in text
    assert "| ETTh1 | mean | steady | – | – | – | not run |" in text
    assert "| ETTh1 | mean | dlinear | published | – | – | 0.456 | 0.452 |" in text
    assert "| Overall | mean | tqnet |" in text


def test_latex_marks_and_escapes(ledger: Ledger) -> None:
    text = show(ledger, "accuracy", "tex")
    assert r"\textbf{0.234 $\pm$ 0.010}" in text
    assert r"\underline{0.334 $\pm$ 0.010}" in text
    assert r"20.0\%" in text
    assert text.count(r"\\") == 1 + len(TABLES["accuracy"](ledger.records()).body)


@pytest.mark.parametrize("label", list(TABLES))
@pytest.mark.parametrize("form", list(FORMATS))
def test_every_label_can_be_shown_from_an_empty_ledger(tmp_path: Path, label: str, form: str) -> None:
    assert show(Ledger(tmp_path / "none" / "ledger.jsonl.zst"), label, form)


def test_the_statistics_of_the_data_sets_match_the_protocol(tmp_path: Path) -> None:
    text = show(Ledger(tmp_path / "ledger.jsonl.zst"), "datasets", "md")
    assert "| ETTh1 | 7 | 17,420 | 1h | 24 | 8,640 | 2,880 | 2,880 |" in text
    assert "| Weather | 21 | 52,696 | 10min | 144 | 36,887 | 5,270 | 10,539 |" in text


# --- Stand-ins ---


def test_stand_ins_have_the_sizes_of_the_data_they_replace_and_are_named_stand_ins() -> None:
    series = stand_in("Solar-stand-in")
    assert series.values.shape == (52560, 137)
    assert series.sha256 == stand_in("Solar-stand-in").sha256
    assert all(name.endswith("-stand-in") and facts.url == "generated" for name, facts in STAND_INS.items())


def test_a_stand_ins_record_is_shown_under_its_own_name_in_place_of_a_cell_that_was_not_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    for model in ("sealed", "steady"):
        ledger.write(record(Cell("Traffic-stand-in", 96, model, 2024), 0.01))
    text = show(ledger, "large_channels", "md")
    assert "| Traffic-stand-in (generated values) | 96 | sealed | ours | 20.0% | 1 | 0.010" in text
    assert "| Traffic-stand-in (generated values) | 96 | steady | ours | 20.0% | 1 | 0.010" in text
    assert "| Traffic | 96 | steady |" not in text
    assert "| Traffic | 192 | steady | – | – | – | not run |" in text
    published = next(line for line in text.splitlines() if line.startswith("| Traffic | 96 | tqnet | published"))
    assert "**" in published  # the best of the real data set, whatever the error of the stand-in


def test_a_data_set_that_was_run_keeps_its_line_and_the_stand_in_follows(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    for data, mse in (("Solar", 0.2), ("Solar-stand-in", 0.01)):
        ledger.write(record(Cell(data, 96, "default", 2024), mse))
    lines = TABLES["large_channels"](ledger.records()).body
    assert [line[:4] for line in lines if line[1:4] == ["96", "default", "ours"]] == [
        ["Solar", "96", "default", "ours"],
        ["Solar-stand-in (generated values)", "96", "default", "ours"],
    ]
    assert lines[-1][0] == "Solar-stand-in (generated values)"


def test_published_errors_of_fewer_windows_are_marked_in_lines_and_in_flat_rows() -> None:
    sheet = TABLES["accuracy"](full_grid(DEFAULT, 0.295))
    marked = {row["model"] for row in sheet.rows if row["dropped_batch"]}
    assert marked == set(WHOLE_BATCHES) == {"wpmixer", "simpletm", "xpatch"}
    lines = {line[2]: dict(zip(sheet.header, line, strict=True)) for line in sheet.body}
    assert {f"{model} (last batch left out)" for model in WHOLE_BATCHES} <= set(lines)
    assert lines["xpatch (last batch left out)"]["MSE"] == "0.325"
    assert lines[DEFAULT]["MSE"].startswith("**")  # a larger error, but of all windows


# --- Reproduce ---


def test_reproduce_does_not_run_a_cell_with_a_current_record(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ibforecast_lab.experiments.parts import fingerprint_of
    from ibforecast_lab.experiments.run import RESULTS_VERSION, recipe_of

    cell = Cell("ETTh1", 96, "sealed", 2024)
    current = replace(
        record(cell, 0.3),
        recipe_sha256=recipe_of(cell).sha256,
        data_sha256=fingerprint_of("ETTh1"),
        results_version=RESULTS_VERSION,
    )
    Ledger(tmp_path / "ledger.jsonl.zst").write(current)
    words = ["reproduce", "per_horizon", "--data", "ETTh1", "--horizon", "96", "--model", "sealed", "--seeds", "2024"]
    outcome = CliRunner().invoke(main, [*words, "--ledger", str(tmp_path / "ledger.jsonl.zst"), "--json"])
    assert outcome.exit_code == 0
    assert json.loads(outcome.stdout) == {"cells": 1, "run": 0, "failed": {}, "left": 0}
