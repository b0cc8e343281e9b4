"""The ledger of the checkout, read once for all tests."""

from pathlib import Path

import pytest

from ibforecast_lab.experiments.ledger import LEDGER, Ledger, Record
from ibforecast_lab.experiments.quoted import BENCH, quoted
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables import sheets_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def records() -> list[Record]:
    if not (ROOT / LEDGER).exists():
        pytest.skip("needs the ledger of a checkout")
    return Ledger(ROOT / LEDGER).records()


@pytest.fixture(scope="session")
def sheets(records: list[Record]) -> dict[str, Sheet]:
    return sheets_of(records)


@pytest.fixture(scope="session")
def values(sheets: dict[str, Sheet], records: list[Record]) -> dict[str, float]:
    """Every number that a page may quote."""
    return quoted(sheets, records, ROOT / BENCH)
