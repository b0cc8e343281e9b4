"""The pictures, which several tests of the documentation use."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def pictures() -> ModuleType:
    """The module docs/pictures.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def drawn(pictures: ModuleType) -> Any:
    """The fingerprints that are kept with the pictures."""
    return json.loads(pictures.FINGERPRINTS.read_text("utf8"))


@pytest.fixture(scope="session")
def _same_machine(pictures: ModuleType, drawn: Any) -> None:
    here, there = pictures.machine(), drawn["machine"]
    if here != there:
        pytest.skip(f"the last digits of a fit depend on the machine: pictures were drawn on {there}, this is {here}")
