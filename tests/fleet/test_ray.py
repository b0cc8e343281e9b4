"""A fleet on a real Ray on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ibforecast.fleet import Fleet, Ray

ray = pytest.importorskip("ray", reason="needs the ray extra")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own warnings

Make = Callable[..., Any]


@pytest.fixture
def decoys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Work, with a cluster that is stopped in the end, in a folder with files that no worker may import."""
    folder = tmp_path / "decoys"
    folder.mkdir()
    for name in ("ibforecast", "torch", "pyarrow", "numpy", "random"):
        (folder / f"{name}.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(folder)
    yield
    ray.shutdown()


def test_ray_gives_the_same_fleet_as_one_process_and_imports_nothing_from_the_working_folder(
    decoys: None, series: Make, forecaster: Make, tmp_path: Path
) -> None:
    tables = {f"s{seed}": series(seed) for seed in range(6)} | {"short": series(4, rows=20)}
    here, there = Fleet(tmp_path / "here"), Fleet(tmp_path / "there")
    here.fit(tables, forecaster())
    outcomes = there.fit(tables, forecaster(), Ray())
    assert [outcome.state for outcome in outcomes] == ["fitted"] * 6 + ["failed"]
    assert "at least one window" in outcomes[-1].message
    assert [outcome.state for outcome in there.fit(tables, forecaster(), Ray())] == ["kept"] * 6 + ["failed"]
    assert here.predict(tables).table().equals(there.predict(tables, engine=Ray()).table())
