"""Work that is killed before a file operation is continued to the same bits; `make torture` kills at every one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

IN_PLACE = """
from ibforecast_lab.experiments import ledger

def write_in_place(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)

ledger.write_atomically = write_in_place
"""
"""A ledger that writes files under their final names."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a process is killed in a copy of it")


def killed(most: int | None, *names: str, first: str = "") -> dict[str, Any]:
    """Run the attack in a process of its own: one with threads cannot be copied."""
    program = f"{first}\nimport json; from torture.kills import kills; print(json.dumps(kills(9, 0, {names}, {most})))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_save_that_is_killed_at_any_operation_leaves_the_old_or_the_new_model() -> None:
    names = ("save", "overwrite", "overwrite by renames")
    found = killed(None, *names)
    assert found["broken"] == []
    assert found["killed_at"] == found["operations"]
    assert all(count > 25 for count in found["operations"].values())


def test_other_work_that_is_killed_is_continued_to_the_same_bits() -> None:
    found = killed(10, "calibrate", "fleet", "fleet again", "ledger", "explain")
    assert found["broken"] == []
    assert found["points"] == 10


def test_a_kill_that_damages_a_file_is_noticed() -> None:
    assert killed(12, "ledger", first=IN_PLACE)["broken"]
