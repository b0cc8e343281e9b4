"""The release: built, inspected, and installed without the source tree."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ibforecast"
DATA = sorted(
    str(path.relative_to(PACKAGE.parent))
    for path in PACKAGE.rglob("*")
    if path.is_file() and path.suffix not in {".py", ".pyc"}
)
TRY = """
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import ibforecast
from ibforecast import IBForecaster
from ibforecast.zoo.recipes import names

assert Path(ibforecast.__file__).is_relative_to(sys.prefix), ibforecast.__file__
assert "quick" in names()
hours = np.arange(300)
load = np.sin(2 * np.pi * hours / 24) + np.random.default_rng(0).normal(0, 0.3, 300)
table = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=300, freq="h"), "load": load})
table.to_csv("load.csv", index=False)
model = IBForecaster(12, 48, 0.3, recipe="quick", epochs=1).fit(table)
model.save("model")
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=plain | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel built from it."""
    pytest.importorskip("build", reason="needs the build tools: pip install build hatchling")
    pytest.importorskip("hatchling", reason="needs the build tools: pip install build hatchling")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def test_the_package_contains_data_files() -> None:
    for wanted in ("ibforecast/py.typed", "ibforecast/recipes/quick.toml", "ibforecast/plots/explorer/index.html"):
        assert wanted in DATA


def test_wheel_and_sdist_contain_every_file_of_the_package(built: tuple[Path, Path]) -> None:
    sdist, wheel = built
    modules = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*.py")}
    with zipfile.ZipFile(wheel) as file:
        inside = set(file.namelist())
    assert {*DATA, *modules} <= inside
    assert not [
        name
        for name in inside
        if name.startswith(("tests/", "docs/", "lab/", "ibforecast_lab/")) or name.endswith(".pyc")
    ]
    with tarfile.open(sdist) as file:
        shipped = {name.partition("/")[2] for name in file.getnames()}
    assert {f"src/{name}" for name in (*DATA, *modules)} <= shipped
    assert {"README.md", "LICENSE", "CHANGELOG.md", "mkdocs.yml", "docs/index.md", "pyproject.toml"} <= shipped
    assert {"CONTRIBUTING.md", "Makefile", "constraints.txt", ".ci/run", ".pre-commit-config.yaml"} <= shipped
    assert {"benchmarks/__main__.py", "results/README.md", "results/tables/accuracy.md"} <= shipped
    assert any(name.startswith("results/ledger/") for name in shipped)


def test_the_wheel_metadata_names_requirements_and_python_versions(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        facts = Parser().parsestr(file.read(name).decode())
    classifiers = facts.get_all("Classifier", [])
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(classifiers)
    assert facts["Requires-Python"] == ">=3.11"
    assert {"plot", "serve", "onnx", "sktime", "docs"} <= set(facts.get_all("Provides-Extra", []))


def test_the_wheel_works_without_the_source_tree(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Install into a new environment, which shares only the required libraries."""
    venv.create(tmp_path / "clean", with_pip=False, symlinks=True)
    python = tmp_path / "clean" / "bin" / "python"
    home = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    pip = ("-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--disable-pip-version-check")
    run(sys.executable, *pip, built[1], cwd=tmp_path)
    (home / "lent.pth").write_text(sysconfig.get_path("purelib"))
    run(python, "-W", "error", "-c", TRY, cwd=tmp_path, OMP_NUM_THREADS="1")
    command = tmp_path / "clean" / "bin" / "ibforecast"
    run(command, "explain", "model", "load.csv", "--out", "why.json", cwd=tmp_path, OMP_NUM_THREADS="1")
    assert "bit for bit" in run(command, "verify", "model", "why.json", cwd=tmp_path, OMP_NUM_THREADS="1")
    run(command, "report", "model", "load.csv", "--out", "report.html", cwd=tmp_path, OMP_NUM_THREADS="1")
    assert (tmp_path / "report.html").is_file()
