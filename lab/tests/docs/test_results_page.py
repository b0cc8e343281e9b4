"""docs/results.md is what the ledger and the benchmarks give."""

from pathlib import Path

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.page import PAGE, page

ROOT = Path(__file__).parents[3]


def test_the_page_of_results_is_what_is_generated(values: dict[str, float], records: list[Record]) -> None:
    remedy = "run: python -m ibforecast_lab.experiments.page"
    assert (ROOT / PAGE).read_text("utf8") == page(values, records), remedy


def test_every_place_of_the_page_is_filled(values: dict[str, float], records: list[Record]) -> None:
    assert "{{" not in page(values, records)
