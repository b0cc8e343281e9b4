"""Workers: the same results wherever the work is done, and a process that dies costs one item."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ibforecast import MissingExtraError, UsageError
from ibforecast.core import workers
from ibforecast.core.workers import LOST
from ibforecast.fleet import Fleet, Here, Processes, Ray

Make = Callable[..., Any]


def test_a_dying_process_loses_only_the_item_that_killed_it() -> None:
    items = [0, signal.SIGKILL, 0, 0]
    done = list(Processes(1).run(items, signal.raise_signal))
    assert sorted(item for item, _, _ in done) == sorted(items)
    assert [item for item, _, lost in done if lost] == [signal.SIGKILL]
    assert {lost for _, _, lost in done} == {"", LOST}


def test_an_error_in_a_process_is_reported_with_its_item() -> None:
    done = {item: (result, lost) for item, result, lost in Processes(1).run(["1", "one", "3"], int)}
    assert (done["1"], done["3"], done["one"][0]) == ((1, ""), (3, ""), None)
    assert done["one"][1].startswith("ValueError: invalid literal for int()")


def test_items_are_taken_only_as_workers_become_free() -> None:
    taken: list[int] = []

    def items() -> Any:
        for item in range(20):
            taken.append(item)
            yield item

    for number, _ in enumerate(Processes(1).run(items(), abs), start=1):
        assert len(taken) <= number + 2


def test_items_end_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 0.0, 59.0, 60.0])
    monkeypatch.setattr(workers.time, "monotonic", lambda: next(now))
    assert list(workers.until("abcd", minutes=1.0)) == ["a", "b"]


@pytest.mark.parametrize("jobs", [0, -1, 10**20])
def test_a_number_of_processes_that_cannot_be_started_is_refused(jobs: int) -> None:
    with pytest.raises(UsageError, match="jobs must be from 1 to 1024"):
        Processes(jobs)


@pytest.mark.parametrize("gpus", [-1.0, float("nan"), float("inf")])
def test_a_share_of_a_gpu_is_a_number(gpus: float) -> None:
    with pytest.raises(UsageError, match="gpus_per_item must be 0 or more"):
        Ray(gpus_per_item=gpus)


INTERRUPTED = """
import signal
import time
from ibforecast.fleet import Processes

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts jobs in the background without one
    for number, _ in enumerate(Processes(2).run([0.01, *[3600.0] * 5], time.sleep)):
        print("first", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held here")
def test_an_interrupt_ends_the_processes_at_once_and_only_the_parent_says_so(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to every process of its group."""
    path = tmp_path / "script.py"
    path.write_text(INTERRUPTED, "utf8")
    with subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "first\n"
        os.killpg(parent.pid, signal.SIGINT)
        try:
            _, said = parent.communicate(timeout=120)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
    assert parent.returncode != 0
    assert said.count("Traceback") == 1, said
    assert said.rstrip().endswith("KeyboardInterrupt")


def test_a_missing_ray_is_reported_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"ibforecast\[ray\]"):
        list(Ray().run([1], abs))


def test_several_processes_give_the_same_fleet_as_one(series: Make, forecaster: Make, tmp_path: Path) -> None:
    tables = {f"s{seed}": series(seed) for seed in range(3)} | {"short": series(4, rows=20)}
    here, apart = Fleet(tmp_path / "here"), Fleet(tmp_path / "apart")
    alike = [
        [(outcome.name, outcome.state, outcome.validation_error, outcome.message) for outcome in outcomes]
        for outcomes in (here.fit(tables, forecaster(), Here()), apart.fit(tables, forecaster(), Processes(2)))
    ]
    assert alike[0] == alike[1]
    for name in ("s0", "s1", "s2"):
        assert here.model(name).fitted.weights_sha256 == apart.model(name).fitted.weights_sha256
    forecasts = [fleet.predict(tables, engine=engine) for fleet, engine in ((here, Here()), (apart, Processes(1)))]
    assert forecasts[0].table().equals(forecasts[1].table())
