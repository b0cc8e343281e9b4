"""Names of numbers: unique, complete, and equal to the tables."""

import pytest

from ibforecast_lab.experiments.facts import facts, name_of
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables import TABLES


@pytest.mark.parametrize("label", TABLES)
def test_no_two_rows_of_a_table_have_the_same_name(label: str, sheets: dict[str, Sheet]) -> None:
    sheet = sheets[label]
    assert sheet.keys
    names = [tuple(name_of(row, sheet.keys)) for row in sheet.rows]
    assert len(set(names)) == len(names)


def test_a_number_is_that_of_its_row(sheets: dict[str, Sheet]) -> None:
    named = facts(sheets)
    (ours,) = (row for row in sheets["accuracy"].rows if (row["data"], row["model"]) == ("Overall", "steady"))
    assert named["accuracy/Overall/steady/mse"] == ours["mse"]
    assert named["accuracy/Overall/tqnet/published/mae"] == 0.364
    assert named["cost/any/ibforecast/integrated_gradients/published/forwards"] > 0


def test_the_facts_that_texts_quote_have_these_names(sheets: dict[str, Sheet]) -> None:
    named = facts(sheets)
    assert named["cost/ETTh1/96/steady/occlusion/cuda/forwards"] == 57
    assert named["cost/Weather/96/steady/occlusion/cpu/forwards"] == 169
    assert named["fidelity_by_budget/ETTh1/96/sealed/0.2/score_by_window"] == 1.0
    root, squared = (named[f"certificate/ETTh1/96/steady/sensitivity_{unit}"] for unit in ("root", "squared"))
    assert root == pytest.approx(squared**0.5, rel=1e-3)
