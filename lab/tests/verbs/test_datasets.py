"""ibforecast datasets: the list, the path of one file, and names that are not in the catalogue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ibforecast_lab.data.catalogue import CATALOGUE

Call = Callable[..., Any]


@pytest.fixture
def etth1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of ETTh1, the only one on this machine."""
    monkeypatch.setenv("IBFORECAST_DATA", str(tmp_path))
    monkeypatch.setenv("IBFORECAST_CACHE", str(tmp_path / "cache"))
    path = tmp_path / CATALOGUE["ETTh1"].file
    path.write_text("")
    return path


def test_the_data_sets_are_listed_with_their_paths(call: Call, etth1: Path) -> None:
    outcome = call("datasets", "--json")
    paths = {row["name"]: row["path"] for row in outcome.document}
    assert (outcome.code, outcome.err) == (0, "")
    assert list(paths) == list(CATALOGUE)
    assert (paths["ETTh1"], paths["Weather"]) == (str(etth1), None)
    lines = {line.split()[0]: line for line in call("datasets").out.splitlines()}
    assert list(lines) == ["name", *CATALOGUE]
    assert lines["ETTh1"].endswith(str(etth1))
    assert lines["Weather"].endswith("not on this machine")


@pytest.mark.parametrize("name", ["ETTh1", "etth1"])
def test_the_path_is_all_that_is_printed(call: Call, etth1: Path, name: str) -> None:
    outcome = call("datasets", "--path", name)
    assert (outcome.code, outcome.out, outcome.err) == (0, f"{etth1}\n", "")
    assert call("datasets", "--path", name, "--json").document == {"name": "ETTh1", "path": str(etth1)}


def test_the_path_of_a_file_that_is_not_on_this_machine_is_an_error(call: Call, etth1: Path) -> None:
    outcome = call("datasets", "--path", "Weather")
    assert (outcome.code, outcome.out) == (3, "")
    assert "Weather must be in one of the folders that are searched (got none of Weather.csv.gz" in outcome.err
    assert f"in {etth1.parent} and " in outcome.err
    assert "run: ibforecast datasets --download Weather" in outcome.err


@pytest.mark.parametrize("option", ["--path", "--download"])
def test_an_unknown_name_is_refused_with_the_closest_one(call: Call, option: str) -> None:
    outcome = call("datasets", option, "ETTh9")
    assert (outcome.code, outcome.out) == (2, "")
    assert "must be in the catalogue (got 'ETTh9')" in outcome.err
    assert "did you mean" in outcome.err
