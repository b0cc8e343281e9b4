"""Work whose disk fails ends with a documented error and is done again to the same bits; `make torture` goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the disk fails in a copy of a process")

QUICK = ("save", "overwrite by renames", "ledger")

SILENT = """
from ibforecast.core import files
files.DISK_ERRORS = ()
"""
"""A library that does not know the errors of a disk."""


def attacked(most: int, names: tuple[str, ...], kinds: tuple[str, ...] = (), first: str = "") -> dict[str, Any]:
    """Run the attack in a process of its own: one with threads cannot be copied."""
    call = f"storage(9, 0, {names}, {kinds}, {most})"
    program = f"{first}\nimport json; from torture.storage import storage; print(json.dumps({call}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_work_whose_disk_fails_is_whole_and_done_again_to_the_same_bits() -> None:
    found = attacked(13, QUICK)
    assert found["broken"] == []
    assert found["points"] == 13
    assert sum(found["ended_with_an_error"].values()) > 3


def test_a_fault_without_a_message_is_noticed() -> None:
    assert attacked(2, ("ledger",), ("broken",), SILENT)["broken"]
