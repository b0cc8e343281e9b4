"""Check shapes and types in signatures in every test, and skip test files that need a package that is not installed."""

import ast
import importlib.util
import os
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers, and the processes they start, share the cores
# Verification also computes with two threads. An idle thread of OpenMP spins by default, which takes a core from the
# other worker: two thirds of the time of a refused verification.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from jaxtyping import install_import_hook

install_import_hook(["ibforecast", "ibforecast_lab"], "beartype.beartype")

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

from ibforecast.core.errors import MissingExtraError  # noqa: E402

# Timings never fail a test. Every run draws other examples, so half of the usual number is enough for one run.
settings.register_profile("house", deadline=None, max_examples=20)
settings.load_profile("house")


OPTIONAL = {
    *(
        "captum",
        "cryptography",
        "fastapi",
        "httpx",
        "ibforecast_lab",
        "mlflow",
        "neuralforecast",
        "onnx",
        "onnxruntime",
        "openpyxl",
        "optuna",
    ),
    *("pandas", "playwright", "polars", "ray", "schemathesis", "shap", "sklearn", "sktime", "utilsforecast", "uvicorn"),
}
"""Packages a test file may import although the product does not need them. All of them belong to the extra `dev`."""


def missing_packages(file: Path) -> list[str]:
    """Return the optional packages that a file imports at its top level and that are not installed."""
    names = set()
    for node in ast.parse(file.read_text("utf8")).body if file.is_file() else ():
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    packages = OPTIONAL & {name.partition(".")[0] for name in names}
    return sorted(name for name in packages if importlib.util.find_spec(name) is None)


class Skipped(pytest.File):
    """A test file, or a folder with its conftest.py, that needs packages that are not installed."""

    def __init__(self, *, missing: list[str], **node: Any) -> None:
        super().__init__(**node)
        self.missing = missing

    def collect(self) -> Iterator[pytest.Item]:
        """Skip, and name the packages."""
        pytest.skip(f"needs {', '.join(self.missing)}: pip install 'ibforecast[dev]'", allow_module_level=True)


# One rule here and not a line in every file: an import that fails in a conftest.py would end the whole run.
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> Skipped | None:
    """Replace a test file that cannot be imported."""
    missing = missing_packages(module_path)
    return Skipped.from_parent(parent, path=module_path, missing=missing) if missing else None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> Skipped | None:
    """Replace a folder whose conftest.py cannot be imported."""
    missing = missing_packages(path / "conftest.py")
    return Skipped.from_parent(parent, path=path, missing=missing) if missing else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test that meets a missing extra. Where all packages are installed, that is a failure."""
    try:
        return (yield)
    except MissingExtraError as error:
        if all(importlib.util.find_spec(name) for name in OPTIONAL):
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True, scope="session")
def _one_thread_per_worker() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of benchmark files, or a skip that says what is missing."""
    folder = os.environ.get("IBFORECAST_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the benchmark files: set IBFORECAST_DATA to their folder")
    return Path(folder)


@dataclass
class Training:
    """Training for the documentation: the demo model is trained once and stored, every other one for an epoch."""

    train: Any
    kept: dict[str, Any] = field(default_factory=dict)
    whole: bool = False

    def __call__(self, network: Any, training: Any, validation: Any, config: Any, *more: Any) -> Any:
        """Train a network, or restore the weights of the same training."""
        first = [float(weights.double().sum()) for weights in network.state_dict().values()]
        key = f"{config} {len(training)} {float(training.values.double().nansum())} {first}"
        if self.whole:
            outcome = self.train(network, training, validation, config, *more)
            weights = {name: weight.clone() for name, weight in network.state_dict().items()}
            self.kept[key] = outcome, weights
        elif key in self.kept:
            outcome, weights = self.kept[key]
            network.load_state_dict(weights)
            network.eval()
        else:
            outcome = self.train(network, training, validation, replace(config, epochs=1), *more)
        return outcome


@pytest.fixture(scope="session")
def training() -> Training:
    """Return the training of the documentation, with the weights that it stored in this session."""
    from ibforecast.train.loop import train

    return Training(train)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, training: Training) -> Path:
    """The folder that `ibforecast demo` writes, next to the document it prints, `demo.json`.

    Tests that use it are in the group "pages": one worker trains it.
    """
    folder = tmp_path_factory.mktemp("docs") / "demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ibforecast.zoo.stages.train", training)
        training.whole = True
        from ibforecast.cli.main import main

        with redirect_stdout(StringIO()) as printed:
            main(["demo", "--out", str(folder), "--json"], standalone_mode=False)
        training.whole = False
    folder.with_suffix(".json").write_text(printed.getvalue())
    return folder
