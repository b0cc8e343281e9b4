"""Build the release, read its contents, and install it in an environment without the sources."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ibforecast"
LAB = ROOT / "lab" / "src" / "ibforecast_lab"
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

assert Path(ibforecast.__file__).is_relative_to(sys.prefix), ibforecast.__file__
hours = np.arange(300)
load = np.sin(2 * np.pi * hours / 24) + np.random.default_rng(0).normal(0, 0.3, 300)
table = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=300, freq="h"), "load": load})
table.to_csv("load.csv", index=False)
model = IBForecaster(12, 48, 0.3, recipe="any-budget", epochs=1).fit(table)
model.save("model")
"""


def attempt(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    plain |= {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=cwd, env=plain | environment, capture_output=True, text=True, check=False)


def run(*command: str | Path, cwd: Path) -> str:
    done = attempt(*command, cwd=cwd)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


class Release(NamedTuple):
    """The files of a release."""

    sdist: Path
    wheel: Path
    lab_wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Build the sdist, the wheel from it, and the wheel of the laboratory."""
    pytest.importorskip("build", reason="needs the build tools: pip install build hatchling")
    pytest.importorskip("hatchling", reason="needs the build tools: pip install build hatchling")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out / "product", ROOT, cwd=out)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", out / "lab", ROOT / "lab", cwd=out)
    (sdist,), (wheel,), (lab_wheel,) = out.glob("product/*.tar.gz"), out.glob("product/*.whl"), out.glob("lab/*.whl")
    return Release(sdist, wheel, lab_wheel)


def inside(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(file.read(name).decode())


def environment(folder: Path, *wheels: Path) -> Path:
    """Install wheels in a new environment and return its folder of commands.

    The libraries are those of the environment of the tests, linked one by one: without `ibforecast` itself, whose
    sources and entry points would be visible otherwise.
    """
    venv.create(folder / "clean", with_pip=False, symlinks=True)
    commands = folder / "clean" / "bin"
    pip = ("-m", "pip", "--python", commands / "python", "install", "--no-deps", "--no-index")
    run(sys.executable, *pip, "--disable-pip-version-check", *wheels, cwd=folder)
    libraries = folder / "libraries"
    libraries.mkdir()
    for library in Path(sysconfig.get_path("purelib")).iterdir():
        if "ibforecast" not in library.name and library.suffix != ".pth":
            (libraries / library.name).symlink_to(library)
    home = run(commands / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    (Path(home.strip()) / "libraries.pth").write_text(str(libraries))
    return commands


def test_there_is_data_that_must_ship() -> None:
    for wanted in ("ibforecast/py.typed", "ibforecast/recipes/default.toml", "ibforecast/plots/explorer/index.html"):
        assert wanted in DATA


def test_wheel_and_sdist_contain_every_file_of_the_package(built: Release) -> None:
    modules = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*.py")}
    assert {*DATA, *modules} <= inside(built.wheel)
    with tarfile.open(built.sdist) as file:
        shipped = {name.partition("/")[2] for name in file.getnames()}
    assert {f"src/{name}" for name in (*DATA, *modules)} <= shipped
    assert {"README.md", "LICENSE", "CHANGELOG.md", "mkdocs.yml", "docs/index.md", "pyproject.toml"} <= shipped
    assert {"CONTRIBUTING.md", "Makefile", "constraints.txt", ".pre-commit-config.yaml"} <= shipped
    assert {".ci/run", ".ci/prose.py", ".ci/prose.txt", "benchmarks/__main__.py"} <= shipped
    assert {"lab/pyproject.toml", "lab/LICENSE", "lab/src/ibforecast_lab/__init__.py"} <= shipped
    assert not [name for name in shipped if name.startswith("results/ledger")]


def test_the_wheel_contains_the_product_and_nothing_of_the_laboratory(built: Release) -> None:
    names = inside(built.wheel)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"ibforecast"}
    assert not [name for name in names if name.endswith(".pyc") or "ledger" in name]
    rivals = {path.name for folder in ("rivals", "recipes") for path in (LAB / folder).iterdir() if path.is_file()}
    assert {"dlinear.py", "dlinear.toml"} <= rivals
    assert not {Path(name).name for name in names} & (rivals - {"__init__.py"})


def test_the_wheel_of_the_laboratory_contains_its_package_its_recipes_and_the_licence(built: Release) -> None:
    names = inside(built.lab_wheel)
    files = {str(path.relative_to(LAB.parent)) for path in LAB.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert files <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"ibforecast_lab"}
    assert [name for name in names if name.endswith("/LICENSE")]
    assert metadata(built.lab_wheel)["Version"] == metadata(built.wheel)["Version"]


def test_the_wheel_states_its_needs_and_the_versions_it_supports(built: Release) -> None:
    facts = metadata(built.wheel)
    supported = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
    assert supported <= set(facts.get_all("Classifier", []))
    assert facts["Requires-Python"] == ">=3.11"
    assert {"plot", "serve", "onnx", "sktime", "docs", "lab"} <= set(facts.get_all("Provides-Extra", []))


def test_the_wheel_works_without_the_sources_and_without_the_laboratory(built: Release, tmp_path: Path) -> None:
    commands = environment(tmp_path, built.wheel)
    run(commands / "python", "-W", "error", "-c", TRY, cwd=tmp_path)
    command = commands / "ibforecast"
    run(command, "explain", "model", "load.csv", "--out", "why.json", cwd=tmp_path)
    assert "bit for bit" in run(command, "verify", "model", "why.json", cwd=tmp_path)
    run(command, "report", "model", "load.csv", "--out", "report.html", cwd=tmp_path)
    assert (tmp_path / "report.html").is_file()
    missing = attempt(command, "show", "accuracy", cwd=tmp_path)
    assert missing.returncode == 2
    assert "ibforecast_lab" in missing.stderr
    assert "pip install . ./lab" in missing.stderr


def test_the_laboratory_adds_a_verb_when_it_is_installed_next_to_the_product(built: Release, tmp_path: Path) -> None:
    command = environment(tmp_path, built.wheel, built.lab_wheel) / "ibforecast"
    names = {row["name"] for row in json.loads(run(command, "datasets", "--json", cwd=tmp_path))}
    assert {"ETTh1", "Electricity"} <= names
