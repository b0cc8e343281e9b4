"""Names of numbers: unique, complete, and equal to the tables."""

from pathlib import Path
from typing import Any

import pytest

from ibforecast_lab.experiments.facts import KEYS, _keys, facts
from ibforecast_lab.experiments.ledger import Ledger
from ibforecast_lab.experiments.tables import TABLES

LEDGER = Path(__file__).parents[3] / "results" / "ledger.jsonl.zst"

pytestmark = pytest.mark.skipif(not LEDGER.exists(), reason="needs the ledger of a checkout")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict[str, Any]]]:
    records = Ledger(LEDGER).records()
    return {label: table(records).rows for label, table in TABLES.items()}


@pytest.mark.parametrize("label", TABLES)
def test_no_two_rows_of_a_table_have_the_same_name(label: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    names = [tuple(_keys(row, KEYS[label])) for row in rows[label]]
    assert len(set(names)) == len(names)


def test_a_number_is_the_one_of_its_row(rows: dict[str, list[dict[str, Any]]]) -> None:
    named = facts(LEDGER)
    (ours,) = (row for row in rows["accuracy"] if (row["data"], row["model"]) == ("Overall", "steady"))
    assert named["accuracy/Overall/steady/mse"] == ours["mse"]
    assert named["accuracy/Overall/tqnet/published/mae"] == 0.364
    assert named["cost/any/ibforecast/integrated_gradients/published/forwards"] > 0
