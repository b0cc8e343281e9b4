"""Shapes and types in signatures are checked whenever a test runs."""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers, and the processes they start, share the cores
# Verification also computes with two threads. An idle thread of OpenMP spins by default, which takes a core from the
# other worker: two thirds of the time of a refused verification.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from jaxtyping import install_import_hook

install_import_hook(["ibforecast", "ibforecast_lab"], "beartype.beartype")

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("house", deadline=None)  # timings never fail a test
settings.load_profile("house")


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
