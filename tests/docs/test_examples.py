"""Examples run from top to bottom, and their pages have them all; one of them is the code of its page."""

import ast
import json
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


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    """The code cells of the notebook."""
    notebook = json.loads((EXAMPLES / "first_five_minutes.ipynb").read_text("utf8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_runs_from_top_to_bottom(
    cells: list[dict[str, Any]],
    training: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, *code = ("".join(cell["source"]) for cell in cells)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ibforecast.zoo.stages.train", training)  # one epoch
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, text in enumerate(code):
        exec(compile(text, f"cell {number}", "exec"), namespace)
    printed = capsys.readouterr().out
    for shown in ("8,760 rows x 6 channels", "best naive forecast", "\nCalendar: ", "\nok     unread: "):
        assert shown in printed
    assert list(namespace["forecast"].filter(like="wind_kw")) == ["wind_kw", "wind_kw-lo-80", "wind_kw-hi-80"]
    assert len(namespace["forecast"]) == 24
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert "IBForecaster, fitted" in namespace["model"]._repr_html_()
    assert "Mean forecast of 2023-10-20" in namespace["why"]._repr_html_()


def installed_by(cell: dict[str, Any]) -> str:
    """Run the first cell up to the line for pip; return what that line would install."""
    code, _, line = "".join(cell["source"]).rpartition("\n")
    namespace: dict[str, Any] = {}
    exec(compile(code, "first cell", "exec"), namespace)
    command, _, comment = line.partition("  # ")
    assert command.startswith("%pip install --quiet ")
    assert comment
    return command.removeprefix("%pip install --quiet ").strip('"').format(source=namespace["source"])


def test_the_notebook_installs_its_clone_or_else_a_wheel_next_to_it(
    cells: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    assert installed_by(cells[0]) == f"{ROOT}[plot]"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="upload ibforecast-"):
        installed_by(cells[0])
    wheel = tmp_path / "ibforecast-0.1.0-py3-none-any.whl"
    wheel.touch()
    assert installed_by(cells[0]) == f"{wheel}[plot]"


def test_the_notebook_is_kept_without_outputs(cells: list[dict[str, Any]]) -> None:
    assert [cell["id"] for cell in cells if cell["outputs"] or cell["execution_count"] is not None] == []
