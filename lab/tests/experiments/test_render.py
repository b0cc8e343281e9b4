"""Every table and figure renders from the packed ledger of the checkout."""

import json
from pathlib import Path

import pytest

from ibforecast.core.errors import DataError
from ibforecast_lab.experiments.figures import FIGURES, drawn
from ibforecast_lab.experiments.ledger import Ledger, Record, unpacked
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import FORMATS
from ibforecast_lab.experiments.tables import TABLES

LEDGER = Path(__file__).parents[3] / "results" / "ledger.jsonl.zst"

needs_the_ledger = pytest.mark.skipif(not LEDGER.exists(), reason="needs the ledger of a checkout")


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return Ledger(LEDGER).records()


def test_every_label_has_a_plan_and_a_table() -> None:
    assert PLANS.keys() == TABLES.keys()


@needs_the_ledger
@pytest.mark.parametrize("label", TABLES)
def test_every_table_renders_from_the_packed_ledger(records: list[Record], label: str) -> None:
    sheet = TABLES[label](records)
    assert sheet.body
    assert {len(line) for line in sheet.body} == {len(sheet.header)}
    assert all(list(row) == list(sheet.rows[0]) for row in sheet.rows)
    assert all(render(sheet) for render in FORMATS.values())
    assert json.loads(FORMATS["json"](sheet)) == json.loads(json.dumps(sheet.rows))


@needs_the_ledger
@pytest.mark.parametrize("label", FIGURES)
def test_every_figure_renders_from_the_packed_ledger(records: list[Record], label: str) -> None:
    try:
        assert drawn(label, records, "svg")
    except DataError:  # there may be no records yet, but then there must be none
        assert not {record.cell for record in records} & set(PLANS[label].cells())


@needs_the_ledger
def test_the_ledger_of_the_checkout_is_one_small_sorted_file() -> None:
    keys = [record.cell.key for record in unpacked(LEDGER)]
    assert keys == sorted(set(keys))
    assert LEDGER.stat().st_size < 2**20
