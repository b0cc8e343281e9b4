"""The built page in the package matches its sources."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ibforecast.plots.page import EXPLORER

PAGE = Path(__file__).parents[2] / "page"


def test_the_committed_bundle_matches_its_sources(tmp_path: Path) -> None:
    if not (PAGE / "node_modules" / "esbuild").is_dir():
        pytest.skip("building the page needs its packages: npm --prefix page ci")
    node = shutil.which("node")
    if node is None:
        pytest.skip("building the page needs Node")
    subprocess.run([node, PAGE / "build.js", tmp_path], check=True, timeout=120)
    built, committed = (
        {path.name: path.read_text("utf8") for path in folder.iterdir()} for folder in (tmp_path, EXPLORER)
    )
    assert built == committed, "the bundle is stale: run `make page`"


def test_the_bundle_contains_the_licence_of_uplot() -> None:
    script = (EXPLORER / "explorer.js").read_text("utf8")
    assert "Copyright (c) 2022 Leon Sorokin" in script
    assert "The above copyright notice and this permission notice shall be included" in script


def test_the_lock_file_names_no_package_host() -> None:
    lock = PAGE / "package-lock.json"
    assert '"integrity"' in lock.read_text("utf8")
    assert '"resolved"' not in lock.read_text("utf8")
