"""The documentation site builds without a warning, and its pages load nothing from other hosts."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: every warning is an error, such as a dead link or a page left out."""
    pytest.importorskip("mkdocs", reason="needs the documentation tools: pip install 'ibforecast[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loaded = re.compile(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//|<link[^>]+href=[\"']?(?:https?:)?//")
    assert [page.name for page in site.glob("*.html") if loaded.search(page.read_text("utf8"))] == []


def test_the_reference_has_the_public_names(site: Path) -> None:
    reference = (site / "api.html").read_text("utf8")
    for name in ("forecaster.IBForecaster.fit", "core.explained.ExplainedForecast.verify", "core.errors.DataError"):
        assert f'id="ibforecast.{name}"' in reference
    assert 'id="ibforecast.forecaster.IBForecaster._with"' not in reference


def test_links_that_leave_the_pages_become_the_paths_of_their_files() -> None:
    spec = importlib.util.spec_from_file_location("links", ROOT / "docs" / "links.py")
    assert spec is not None
    assert spec.loader is not None
    links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(links)
    markdown = links.on_page_markdown(
        "[core/sizes.py](../src/core/sizes.py), [all of it](../results) and [here](tour.md)"
    )
    assert markdown == "`src/core/sizes.py`, all of it (`results`) and [here](tour.md)"
    assert links.on_page_markdown("```\n[a](../b)\n```") == "```\n[a](../b)\n```"
