"""The parts of the attack on nodes and processes; `make torture` runs it on Ray."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from torture.distributed import HERE, ROWS, Noted, _descendants, _flaws, _megabytes, _processes, _series, _starts

from ibforecast.fleet.members import Member

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs the processes of Linux")

DONE: dict[str, Any] = {"states": {"forecast": 3}, "failed": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three series and a forecast of two steps for each."""
    parquet.write_table(_series(3, ROWS, 0), tmp_path / "short.parquet")
    parquet.write_table(_series(3, 2, 0), tmp_path / "out.parquet")
    return tmp_path


def test_every_start_of_an_item_is_noted(tmp_path: Path) -> None:
    items = [Member(name, None) for name in ("a b", "c", "c")]
    done = list(Noted(HERE, tmp_path / "notes").run(items, lambda member: member.name))
    assert [result for _, result, _ in done] == ["a b", "c", "c"]
    assert _starts(tmp_path / "notes") == {"a b": 1, "c": 2}
    assert _processes(tmp_path / "notes") == {str(os.getpid())}


def test_a_whole_forecast_has_no_flaws(folder: Path) -> None:
    assert _flaws(folder, "out", DONE) == []


def test_series_that_are_missing_doubled_or_failed_and_files_that_were_left_are_noticed(folder: Path) -> None:
    whole = parquet.read_table(folder / "out.parquet")
    parquet.write_table(whole.slice(2), folder / "out.parquet")
    assert _flaws(folder, "out", DONE) == ["1 series are missing"]
    parquet.write_table(pa.concat_tables([whole, whole.slice(4)]), folder / "out.parquet")
    assert _flaws(folder, "out", DONE) == ["series with {2, 4} rows"]
    parquet.write_table(whole, folder / "out.parquet")
    (folder / ".out.checkpoint").touch()
    assert _flaws(folder, "out", DONE | {"failed": ["a: lost"]}) == ["failed: ['a: lost']", "left: ['.out.checkpoint']"]


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process and the one that it started."""
    program = "import subprocess as s; child = s.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        yield process.pid, child
        for number in (process.pid, child):
            os.kill(number, 9)


def test_the_processes_below_a_process_and_their_memory_are_found(family: tuple[int, int]) -> None:
    process, child = family
    assert _descendants(process) == [child]
    assert {process, child} <= set(_descendants(os.getpid()))
    assert _megabytes(os.getpid()) > 50
    assert _megabytes(2**30) == 0
