"""docs/results.md is what the ledger and the benchmarks give."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast_lab.experiments.aims import AIMS, MET, MISSED, NOT_RUN, TOPICS, Aim
from ibforecast_lab.experiments.frame import select
from ibforecast_lab.experiments.ledger import Cell, Record
from ibforecast_lab.experiments.page import FORMS, NAMES, PAGE, page, printed
from ibforecast_lab.experiments.plans import FITTED, SEEDS
from ibforecast_lab.experiments.quoted import BENCH, CELLS, RIVALS, TRIALS, best_rival, rows_of_rivals, stacked
from ibforecast_lab.experiments.sheet import NONE, Sheet
from ibforecast_lab.experiments.tables.errors import OVERALL

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def text(sheets: dict[str, Sheet], values: dict[str, float], records: list[Record]) -> str:
    return page(sheets, values, records, ROOT / BENCH, ROOT / TRIALS)


def test_the_page_of_results_is_what_is_generated(text: str) -> None:
    assert (ROOT / PAGE).read_text("utf8") == text, "run: python -m ibforecast_lab.experiments.page"


def test_every_place_of_the_page_is_filled(text: str) -> None:
    assert "{{" not in text


@given(st.floats(0, 100))
def test_a_bound_is_rounded_up_by_less_than_a_digit(value: float) -> None:
    assert value - 1e-6 <= float(FORMS["up"](value)) < value + 0.1 + 1e-6


def test_a_miss_of_0_639_points_is_within_0_7() -> None:
    assert FORMS["points_up"](0.00639) == "0.7"


def test_a_cell_is_level_with_its_best_rival_only_if_both_were_run_with_several_seeds(sheets: dict[str, Sheet]) -> None:
    best = [best_rival(sheets, *cell, "mse") for cell in CELLS]
    once = [row["seeds"] == 1 and row["model"] not in FITTED for row in best]
    assert [row["default_is"] == "one seed" for row in best] == once


def test_a_fitted_model_is_a_rival_like_any_other(sheets: dict[str, Sheet]) -> None:
    cell, metric = ("ETTh1", 720), "mse"
    ridge = next(row for row in rows_of_rivals(sheets, *cell) if row["model"] == "ridge")
    assert ridge["seeds"] == 1
    assert ridge["default_is"] in ("ahead", "level", "behind")
    assert best_rival(sheets, *cell, metric)[metric] <= ridge[metric]


def test_every_rival_that_was_run_in_all_cells_has_a_line_in_the_first_table(
    sheets: dict[str, Sheet], text: str
) -> None:
    means = select(sheets["accuracy"].rows, data=OVERALL, source="ledger", other_budget=None)
    lines = [f"| {NAMES[row['model']]} |" for row in means if row["model"] in RIVALS]
    assert "| ridge regression (`ridge`) |" in lines
    assert [line for line in lines if line not in text] == []


def test_every_aim_is_on_the_page(text: str) -> None:
    assert [aim.words for aim in AIMS if f"| {aim.words} |" not in text] == []


@pytest.mark.parametrize("least", [False, True])
def test_an_aim_is_met_only_if_its_number_is_within_the_limit(least: bool) -> None:
    aim = Aim("words", "a", 2.0, ".2f", least)
    assert [aim.verdict({"a": value}) for value in (1.0, 2.0, 3.0)] == [
        MISSED if least else MET,
        MET,
        MET if least else MISSED,
    ]
    assert aim.verdict({}) == NOT_RUN


def test_an_aim_whose_number_lacks_parts_is_not_called_met_or_missed_too_soon() -> None:
    outcomes = {
        rest: [
            Aim("words", "a", 2.0, ".2f", True, "parts", 8, rest).verdict({"a": a, "parts": 5.0}) for a in (3.0, 1.0)
        ]
        for rest in ("extreme", "count", "time")
    }
    assert outcomes == {
        "extreme": ["met so far", MISSED],
        "count": [MET, "not shown yet"],
        "time": ["likely met", MISSED],
    }
    assert Aim("words", "a", 2.0, ".2f", True, "parts", 8, "count").verdict({"a": 1.0, "parts": 8.0}) == MISSED


def test_a_tally_is_missed_if_its_missing_parts_are_too_few() -> None:
    aim = Aim("words", "a", 4, "n", True, "parts", 10, "tally")
    assert [aim.verdict({"a": a, "parts": 9.0}) for a in (4.0, 3.0, 2.0)] == [MET, "not shown yet", MISSED]


def test_a_mean_of_some_parts_is_met_or_missed_so_far() -> None:
    aim = Aim("words", "a", 1.0, ".2f", False, "parts", 10, "mean")
    assert [aim.verdict({"a": a, "parts": 9.0}) for a in (0.5, 1.5)] == ["met so far", "**missed so far**"]


def test_an_aim_without_a_number_has_a_reason(text: str, values: dict[str, float]) -> None:
    missing = [aim for aim in AIMS if aim.name not in values]
    assert missing
    assert [aim.words for aim in missing if f"| {aim.words} | – | not run: {aim.reason} |" not in text] == []


def test_an_aim_that_nothing_is_counted_says_among_how_many(text: str) -> None:
    assert re.search(r"\| a million scrambled windows: [^|]*\| 0 of 1,\d{3},\d{3} \| met \|", text)


def test_the_aims_of_every_topic_are_counted(text: str, values: dict[str, float]) -> None:
    lines = re.findall(r"^\| \[.+\]\(#(.+)\) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert [sum(map(int, counts)) for _, *counts in lines] == [len(aims) for aims in TOPICS.values()]
    last = re.search(r"^\| all \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    assert last
    assert sum(map(int, last.groups())) == len(AIMS)
    verdicts = [aim.verdict(values) for aim in AIMS]
    assert int(last[2]) == sum("missed" in verdict for verdict in verdicts)
    assert int(last[4]) == verdicts.count(NOT_RUN)


def test_planted_truth_is_shown_for_settings_that_were_chosen_by_error_as_well(values: dict[str, float]) -> None:
    for mode in ("pulse", "decoy", "trend"):
        by_error, by_recovery = (
            values[name]
            for name in (f"results/planted/by_error/{mode}/auroc", f"support_recovery/{mode}/framed/native/auroc")
        )
        assert 0.5 < by_error < by_recovery


def test_no_two_headings_of_the_page_are_the_same(text: str) -> None:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert len(headings) == len(set(headings))


def test_no_two_aims_have_the_same_words() -> None:
    words = [aim.words for aims in TOPICS.values() for aim in aims]
    repeated = {word for word in words if words.count(word) > 1}
    assert repeated == set()


def test_the_page_names_what_has_no_record(
    text: str, sheets: dict[str, Sheet], values: dict[str, float], records: list[Record], tmp_path: Path
) -> None:
    assert "LightGBM on the 20 cells" in text
    for path in (ROOT / BENCH).glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "torture.json").write_text('{"measures": {}}')
    without = page(sheets, values, records, tmp_path, ROOT / TRIALS)
    assert "- the part `scrambled` of `make torture`" in without
    assert "- the part `scrambled` of `make torture`" not in text


def test_a_part_of_the_attacks_without_a_record_says_so(
    sheets: dict[str, Sheet], values: dict[str, float], records: list[Record], tmp_path: Path
) -> None:
    for path in (ROOT / BENCH).glob("*.json"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "torture.json").write_text('{"measures": {}}')
    assert page(sheets, values, records, tmp_path, ROOT / TRIALS).count("| no record |") == 7


def test_a_table_is_one_sentence_until_something_of_it_was_run() -> None:
    first, second = ({"data": data, "mse": NOT_RUN, "seeds": NONE} for data in ("a", "b"))
    assert printed([first, second]).startswith("Nothing of this was run")
    assert printed([first, second | {"mse": "0.3"}]).splitlines()[-1] == "| b | 0.3 | – |"


def test_cells_that_ended_long_before_the_others_are_of_another_run(records: list[Record]) -> None:
    cells = [Cell("Weather", 96, "default", seed) for seed in SEEDS]
    first, second, third = (one for one in records if one.cell in cells)
    ends = ("2026-01-01T00:00:00+00:00", "2026-01-01T00:01:00+00:00", "2026-01-01T00:01:20+00:00")
    run = [
        replace(one, finished=end, seconds=seconds)
        for one, end, seconds in zip((first, second, third), ends, (10.0, 20.0, 30.0), strict=True)
    ]
    numbers = {name.rpartition("/")[2]: value for name, value in stacked(run).items() if "/default/" in name}
    assert numbers == {"cells": 2, "seconds": 50, "span": 20, "first": 50, "wall": 70}
