"""docs/results.md is what the ledger and the benchmarks give."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.page import AIMS, FORMS, PAGE, page
from ibforecast_lab.experiments.quoted import CELLS, best_rival
from ibforecast_lab.experiments.sheet import Sheet

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def text(sheets: dict[str, Sheet], values: dict[str, float], records: list[Record]) -> str:
    return page(sheets, values, records)


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
    assert {row["default_is"] for row in best if row["seeds"] == 1} <= {"one seed"}
    assert all(row["default_is"] != "one seed" for row in best if row["seeds"] != 1)


def test_an_aim_is_met_only_if_its_number_is_within_the_limit(
    sheets: dict[str, Sheet], values: dict[str, float], records: list[Record]
) -> None:
    for aim, name, limit, _ in AIMS:
        for value, word in ((limit, "met"), (1.01 * limit, "**missed**")):
            (line,) = (line for line in page(sheets, values | {name: value}, records).splitlines() if aim in line)
            assert line.endswith(f"| {word} |")
