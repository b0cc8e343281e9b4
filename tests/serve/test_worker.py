"""The worker: fairness, order, failures, cancelled requests, and closing."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ibforecast.serve.clients import CLIENT
from ibforecast.serve.worker import MOST_AT_ONCE, Shared, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker("test", 1, lambda windows: None)
    yield made
    made.close()
    made.join()


def noting(journal: list[Any], entry: Any, seconds: float = 0.0) -> Callable[[], Any]:
    def work() -> Any:
        time.sleep(seconds)
        journal.append(entry)
        return entry

    return work


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.001)


async def compute_for(client: str, worker: Worker, *windows: Callable[[], Any]) -> list[Any]:
    CLIENT.set(client)
    return await worker.compute(windows)


def test_a_client_with_many_requests_delays_another_by_one_window_at_a_time(worker: Worker) -> None:
    journal: list[str] = []

    async def ask() -> None:
        first = noting(journal, "hostile", 0.01)
        hostile = [asyncio.ensure_future(compute_for("hostile", worker, first)) for _ in range(50)]
        await until(lambda: len(journal) > 2)
        begun = len(journal)
        await asyncio.create_task(compute_for("honest", worker, *[noting(journal, "honest")] * 3))
        between = journal[begun : len(journal) - journal[::-1].index("honest")]
        assert between.count("honest") == 3
        assert between.count("hostile") <= 5
        await asyncio.gather(*hostile)

    asyncio.run(ask())
    assert journal.count("hostile") == 50


def test_results_are_in_the_order_of_the_windows(worker: Worker) -> None:
    journal: list[int] = []
    assert asyncio.run(worker.compute([noting(journal, number) for number in range(5)])) == list(range(5))
    assert journal == list(range(5))


def test_a_request_without_windows_does_no_work(worker: Worker) -> None:
    async def ask() -> list[Any]:
        return await asyncio.wait_for(worker.compute([]), 1)

    assert asyncio.run(ask()) == []


def test_a_long_request_does_not_block_short_ones(worker: Worker) -> None:
    journal: list[str] = []

    async def ask() -> None:
        long = asyncio.ensure_future(worker.compute([noting(journal, "long", 0.01)] * 50))
        await until(lambda: len(journal) > 0)
        await asyncio.gather(*(worker.compute([noting(journal, "short")]) for _ in range(3)))
        assert not long.done()
        await long

    asyncio.run(ask())
    assert journal.count("long") == 50
    assert journal.count("short") == 3
    assert journal[-1] == "long"


def test_windows_of_several_clients_are_taken_together_and_computed_one_by_one() -> None:
    turns: list[int] = []
    at_work: list[int] = []
    worker = Worker("test", 1, turns.append)

    def alone() -> None:
        at_work.append(1)
        assert sum(at_work) == 1
        time.sleep(0.001)
        at_work.pop()

    async def ask() -> None:
        await asyncio.gather(*(compute_for(f"client {number}", worker, alone) for number in range(MOST_AT_ONCE + 20)))

    asyncio.run(ask())
    worker.close()
    worker.join()
    assert sum(turns) == MOST_AT_ONCE + 20
    assert 1 < max(turns) <= MOST_AT_ONCE


def test_a_failing_window_ends_only_its_own_request(worker: Worker) -> None:
    journal: list[str] = []

    def fail() -> None:
        raise ValueError("no")

    async def ask() -> list[Any]:
        return await asyncio.gather(
            worker.compute([noting(journal, "before"), fail, noting(journal, "after")]),
            worker.compute([noting(journal, "other")] * 3),
            return_exceptions=True,
        )

    failed, other = asyncio.run(ask())
    assert isinstance(failed, ValueError)
    assert other == ["other"] * 3
    assert "after" not in journal


def test_work_of_a_cancelled_request_is_skipped(worker: Worker) -> None:
    journal: list[int] = []

    async def ask() -> None:
        task = asyncio.ensure_future(worker.compute([noting(journal, number, 0.01) for number in range(100)]))
        await until(lambda: len(journal) > 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done = len(journal)
        await asyncio.sleep(0.05)
        assert len(journal) <= done + 1 < 100

    asyncio.run(ask())


def squared(passes: list[list[int]], number: int) -> Shared[int, int, str]:
    """Return a window that is computed with others; 13 cannot be prepared, 14 not computed, 15 not rendered."""

    def require(number: int, wrong: int) -> int:
        if number == wrong:
            raise ValueError(f"no {wrong}")
        return number

    def compute(numbers: list[int]) -> list[int]:
        passes.append(numbers)
        return [require(each, 14) ** 2 for each in numbers]

    return Shared("squares", lambda: require(number, 13), compute, lambda own, square: f"{require(own, 15)}: {square}")


def answers_of(worker: Worker, *requests: list[Callable[[], Any]]) -> list[Any]:
    """Send requests of one client while the worker is busy; return what each gets."""

    async def ask() -> list[Any]:
        busy = asyncio.ensure_future(worker.compute([lambda: time.sleep(0.05)]))
        await asyncio.sleep(0.01)
        return (await asyncio.gather(busy, *map(worker.compute, requests), return_exceptions=True))[1:]

    answers = asyncio.run(ask())
    worker.close()
    worker.join()
    return answers


def test_windows_that_can_be_are_computed_in_one_pass() -> None:
    passes: list[list[int]] = []
    turns: list[int] = []
    worker = Worker("test", 1, turns.append, together=8)
    requests = [[squared(passes, 10 * first + each) for each in range(first)] for first in (1, 2, 4)]
    answers = answers_of(worker, *requests, [lambda: "another"])
    assert answers == [[f"{10 * n + each}: {(10 * n + each) ** 2}" for each in range(n)] for n in (1, 2, 4)] + [
        ["another"]
    ]
    assert sorted(each for numbers in passes for each in numbers) == [10, 20, 21, 40, 41, 42, 43]
    assert max(map(len, passes)) > 1
    assert {len(numbers) for numbers in passes} <= {1, 2, 4, 8}, "only these numbers of windows were tried"
    assert max(turns) <= 8


@pytest.mark.parametrize("wrong", [13, 14, 15])
def test_a_window_that_fails_in_a_pass_fails_by_itself(wrong: int) -> None:
    passes: list[list[int]] = []
    worker = Worker("test", 1, lambda windows: None, together=8)
    answers = answers_of(worker, *([squared(passes, number)] for number in (1, 2, wrong, 3, 4)))
    failed = answers.pop(2)
    assert isinstance(failed, ValueError)
    assert str(failed) == f"no {wrong}"
    assert answers == [[f"{number}: {number**2}"] for number in (1, 2, 3, 4)]


def test_without_a_trial_no_two_windows_share_a_pass() -> None:
    passes: list[list[int]] = []
    worker = Worker("test", 1, lambda windows: None)
    answers_of(worker, [squared(passes, number) for number in range(5)])
    assert [len(numbers) for numbers in passes] == [1] * 5


def test_a_closed_worker_finishes_its_queue_and_still_accepts_windows() -> None:
    worker = Worker("closed", 1, lambda windows: None)
    journal: list[int] = []

    async def ask() -> None:
        first = asyncio.ensure_future(worker.compute([noting(journal, number, 0.005) for number in range(10)]))
        await until(lambda: len(journal) > 0)
        worker.close()
        assert len(await first) == 10
        await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "windows of closed"])
        assert await worker.compute([noting(journal, 10)]) == [10]

    asyncio.run(ask())
    worker.join()
    assert journal == list(range(11))


def test_an_idle_worker_can_be_joined() -> None:
    worker = Worker("test", 1, lambda windows: None)
    worker.close()
    worker.join()
