"""ibforecast dossier: the files it writes, what it prints, and what it refuses before any work."""

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibforecast.core import document

Call = Callable[..., Any]


def test_the_page_is_written_and_weaknesses_are_printed(desk: Any, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "about.html"
    outcome = call("dossier", desk.model, desk.table, "--windows", 4, "--purpose", "To buy energy", "--out", out)
    assert outcome.code == 0
    assert outcome.err.strip() == f"dossier written to {out}"
    page = out.read_text("utf8")
    assert "To buy energy" in page
    assert f"ibforecast explain {desk.model.name} {desk.table.name} --at" in page
    assert "Only 4 windows were measured, so the errors are uncertain." in outcome.out.splitlines()


def test_its_commands_give_the_fingerprint_that_it_states(
    desk: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(desk.table, tmp_path)
    shutil.copytree(desk.model, tmp_path / desk.model.name)
    monkeypatch.chdir(tmp_path)
    assert call("dossier", desk.model.name, desk.table.name, "--windows", 4).code == 0
    page = html.unescape((tmp_path / "dossier.html").read_text("utf8"))
    for command in re.findall("ibforecast ((?:explain|verify) .*)", page):
        assert call(*shlex.split(command)).code == 0
    written = json.loads((tmp_path / "why.json").read_text("utf8"))["sha256"]
    assert f"Explanation {written}." in page
    assert f"must have the fingerprint {written} " in page


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
