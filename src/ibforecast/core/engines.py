"""Where the same work is done to many items: in this process, in several of this machine, or on a Ray cluster.

All of them take items one by one as they have room for them, so that no more are in memory than are worked on, and
give back each item with its result, or with None and the reason why there is none.
"""

import multiprocessing
import os
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait as wait_for
from typing import Any, TypeVar

from ibforecast.core.errors import MissingExtraError, UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")
Done = Iterator[tuple[Item, Result | None, str]]

RETRIES = 5
LOST = "its process died, perhaps for want of memory; give it more, or run fewer side by side"


class Workers(ABC):
    """Whatever does the same work to many items."""

    @abstractmethod
    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Give back the items as they are done, in whatever order."""


@dataclass(frozen=True)
class Here(Workers):
    """One after the other, in this process."""

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Give back the items in their order."""
        for item in items:
            yield item, work(item), ""


HERE = Here()


@dataclass(frozen=True)
class Processes(Workers):
    """So many processes of this machine side by side. A script must start them under `if __name__ == "__main__":`."""

    jobs: int

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise UsageError("jobs must be at least 1", self.jobs, f"try {os.cpu_count()}, one per core")

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Give back the items as they are done.

        A process that dies takes all others of its pool along. What was under way is then done again, one item at a
        time, so that only the one that kills its process is lost.
        """
        queue, suspects = iter(items), list[Any]()
        while True:
            yield from self._until_one_dies(queue, work, suspects)
            if not suspects:
                return
            for item in suspects:
                lost = list[Any]()
                yield from Processes(1)._until_one_dies(iter([item]), work, lost)
                yield from ((item, None, LOST) for item in lost)
            suspects.clear()

    def _until_one_dies(
        self, queue: Iterator[Item], work: Callable[[Item], Result], under_way: list[Item]
    ) -> Done[Item, Result]:
        """Work through the queue; should a process die, stop and leave what was under way in the list."""
        pool = ProcessPoolExecutor(self.jobs, multiprocessing.get_context("spawn"), _end_with_parent)
        running: dict[Future[Result], Item] = {}
        try:
            while True:
                for item in islice(queue, 0 if under_way else 2 * self.jobs - len(running)):
                    try:
                        running[pool.submit(work, item)] = item
                    except BrokenProcessPool:
                        under_way.append(item)
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    item, error = running.pop(future), future.exception()
                    if isinstance(error, BrokenProcessPool):
                        under_way.append(item)
                    elif error is not None:
                        yield item, None, "".join(traceback.format_exception_only(error)).strip()
                    else:
                        yield item, future.result(), ""
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True)
class Ray(Workers):
    """One task per item on a Ray cluster; without an address, one on this machine.

    Tasks and not a Ray Data pipeline: a data set is retried, counted and given up block by block, and here every
    item is to fail, be tried again and be kept on its own.
    """

    address: str | None = None
    cpus_per_item: float = 1.0
    gpus_per_item: float = 0.0

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Give back the items as they are done; one whose worker or node dies is done again elsewhere."""
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("ray", "ray") from error
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, include_dashboard=False)
        cpus, gpus = self.cpus_per_item, self.gpus_per_item
        task: Any = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_call)
        shared, queue, running = ray.put(work), iter(items), dict[Any, Item]()
        while True:
            room = 2 * int(ray.cluster_resources().get("CPU", 1)) - len(running)  # type: ignore[no-untyped-call]
            running |= {task.remote(shared, item): item for item in islice(queue, max(room, 0))}
            if not running:
                return
            (done,), _ = ray.wait(list(running), num_returns=1)
            result, lost = None, ""
            try:
                result = ray.get(done)
            except ray.exceptions.RayError as error:
                lost = str(error).strip().splitlines()[-1]
            yield running.pop(done), result, lost


def _call(work: Callable[[Item], Result], item: Item) -> Result:
    return work(item)


def _end_with_parent() -> None:
    """End this process when the one that started it is killed; it would wait for work forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
