"""What is under results/tables is what the ledger gives."""

from pathlib import Path

import pytest

from ibforecast_lab.experiments.ledger import Ledger
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.render import tables
from ibforecast_lab.experiments.tables import TABLES

RESULTS = Path(__file__).parents[3] / "results"


def test_every_label_has_a_plan_and_a_table() -> None:
    assert PLANS.keys() == TABLES.keys()


@pytest.mark.skipif(not (RESULTS / "ledger").is_dir(), reason="needs the ledger of a checkout, results/ledger")
def test_every_table_is_what_the_ledger_renders_today() -> None:
    made = tables(Ledger(RESULTS / "ledger").records())
    kept = {path.name: path.read_bytes() for path in (RESULTS / "tables").iterdir()}
    others = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    assert not others, f"run make results: {', '.join(others)}"
