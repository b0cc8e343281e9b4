"""Examples run from top to bottom, and their pages have them all; one of them is the code of its page."""

import ast
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.docs.test_blocks import blocks

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def test_the_metered_source_is_the_code_of_its_page() -> None:
    example = (EXAMPLES / "metered_source.py").read_text("utf8")
    page = blocks((ROOT / "docs" / "metered.md").read_text("utf8"))
    code = "\n".join(block.text for block in page if block.kind == "python")
    assert [ast.dump(node) for node in ast.parse(example).body[1:]] == [ast.dump(node) for node in ast.parse(code).body]


def test_the_page_of_examples_has_them_all() -> None:
    page = (ROOT / "docs" / "examples.md").read_text("utf8")
    assert [
        path.name for path in EXAMPLES.iterdir() if path.is_file() and f"../examples/{path.name})" not in page
    ] == []


def hours(start: str, count: int, **channels: float) -> pd.DataFrame:
    """A table of hours in which every channel is positive noise around a mean."""
    random = np.random.default_rng(0)
    noise = {name: mean * random.lognormal(0, 0.5, count) for name, mean in channels.items()}
    return pd.DataFrame({"date": pd.date_range(start, periods=count, freq="h").astype(str)} | noise)


TABLES = {
    "energy_prices.py": hours(
        "2017-10-10", 900, **{"Wind power forecast": 900.0, "Ampirion zonal load forecast": 2e4, "price": 40.0}
    ),
    "river_flow.py": hours("1987-01-01", 1000, P_mm=0.3, Q_mm=0.2),
    "shop_sales.py": None,
}


@pytest.mark.parametrize("name", TABLES)
def test_an_example_prints_a_receipt_and_verifies_it(
    name: str, training: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if (table := TABLES[name]) is not None:
        table.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.setattr("ibforecast.zoo.stages.train", training)  # one epoch
    monkeypatch.setattr(sys, "argv", [name] if table is None else [name, str(tmp_path / "table.csv")])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("mean absolute error ")
    assert "\nCalendar: " in printed
    assert ("\nKnown ahead: " in printed) == (name != "river_flow.py")
    assert printed.endswith("\nverified: True\n")
