"""ibforecast dossier: the files it writes, what it prints, and what it refuses before any work."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ibforecast.core import document

Call = Callable[..., Any]


def test_the_page_is_written_and_weaknesses_are_printed(desk: Any, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "about.html"
    outcome = call("dossier", desk.model, desk.table, "--windows", 4, "--purpose", "To buy energy", "--out", out)
    assert outcome.code == 0
    assert outcome.err.strip() == f"dossier written to {out}"
    html = out.read_text("utf8")
    assert "To buy energy" in html
    assert f"ibforecast explain {desk.model.name} {desk.table.name} --at" in html
    assert "Only 4 windows were measured, so the errors are uncertain." in outcome.out.splitlines()


def test_json_prints_the_document(desk: Any, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "about.json"
    outcome = call("dossier", desk.model, desk.table, "--windows", 4, "--out", out, "--json")
    assert document.read(outcome.out, "ibforecast.dossier", 1)["replay"]["model"] == desk.model.name
    assert json.loads(out.read_text("utf8")) == outcome.document


def test_another_ending_is_refused_before_any_work(call: Call, tmp_path: Path) -> None:
    outcome = call("dossier", "no-model", "no-table.csv", "--out", tmp_path / "about.pdf")
    assert outcome.code == 2
    assert "a dossier must end in .html or .json (got 'about.pdf')" in outcome.err
    assert "try 'about.html'" in outcome.err
