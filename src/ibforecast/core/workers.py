"""Workers that do the same work to many items: in this process, in several local processes, or on a Ray cluster.

All of them take an item from the iterable only when there is room for it, so that few items are in memory at a time.
They yield each item with its result and an empty text, or with None and the reason for the failure.
"""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from math import inf
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any, TypeVar

from ibforecast.core.errors import MissingExtraError, require, require_processes

Item = TypeVar("Item")
Result = TypeVar("Result")
Done = Iterator[tuple[Item, Result | None, str]]

RETRIES = 5
LOST = "its process died, perhaps out of memory; give it more memory, or run fewer jobs at a time"


def until(items: Iterable[Item], minutes: float) -> Iterator[Item]:
    """Yield the items, and none after this many minutes from the first request."""
    end = time.monotonic() + 60 * minutes
    for item in items:
        if time.monotonic() >= end:
            return
        yield item


class Workers(ABC):
    """The base class: anything that does the same work to many items."""

    @abstractmethod
    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Yield the items as they are done, in any order."""


@dataclass(frozen=True)
class Here(Workers):
    """A worker that handles the items one after the other, in this process."""

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Yield the items in their order."""
        for item in items:
            yield item, work(item), ""


HERE = Here()


@dataclass(frozen=True)
class Processes(Workers):
    """A pool of `jobs` local processes. A script must start them under `if __name__ == "__main__":`."""

    jobs: int

    def __post_init__(self) -> None:
        require_processes("jobs", self.jobs)

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Yield the items as they are done.

        A process that dies breaks the whole pool. The items in progress are then repeated one at a time, so that only
        the item that kills its process is lost.
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
        self, queue: Iterator[Item], work: Callable[[Item], Result], in_progress: list[Item]
    ) -> Done[Item, Result]:
        """Work through the queue; if a process dies, stop and append the items in progress to `in_progress`."""
        # Spawned, not forked: a fork copies the locks of running threads, such as those of PyTorch, and may hang.
        context = multiprocessing.get_context("spawn")
        end, held = context.Pipe(duplex=False)
        pool = ProcessPoolExecutor(self.jobs, context, _end_with_parent, (end,))
        running: dict[Future[Result], Item] = {}
        try:
            while True:
                for item in islice(queue, 0 if in_progress else 2 * self.jobs - len(running)):
                    try:
                        with _interrupts_held():
                            running[pool.submit(work, item)] = item
                    except BrokenProcessPool:
                        in_progress.append(item)
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    item, error = running.pop(future), future.exception()
                    if isinstance(error, BrokenProcessPool):
                        in_progress.append(item)
                    elif error is not None:
                        yield item, None, "".join(traceback.format_exception_only(error)).strip()
                    else:
                        yield item, future.result(), ""
        except (KeyboardInterrupt, GeneratorExit):
            held.close()  # ends the processes, which would otherwise finish their items first
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            held.close()
            end.close()


@dataclass(frozen=True)
class Ray(Workers):
    """A Ray cluster that runs one task per item; without an address, a cluster on this machine.

    Tasks are used instead of a Ray Data pipeline because Ray Data retries, counts and abandons whole blocks, whereas
    here every item fails, is retried and is kept independently.
    """

    address: str | None = None
    cpus_per_item: float = 1.0
    gpus_per_item: float = 0.0

    def __post_init__(self) -> None:
        for name in ("cpus_per_item", "gpus_per_item"):
            value = getattr(self, name)
            require(0 <= value < inf, f"{name} must be 0 or more", f"{name}={value}", "leave it out for the default")

    def run(self, items: Iterable[Item], work: Callable[[Item], Result]) -> Done[Item, Result]:
        """Yield the items as they are done; an item whose worker or node dies is repeated elsewhere."""
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("ray", "ray") from error
        if not ray.is_initialized():
            # A job of Ray's client is one whose workers do not import from the working directory of the driver.
            job = ray.job_config.JobConfig(_client_job=True)
            ray.init(address=self.address, job_config=job, log_to_driver=False, include_dashboard=False)
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


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, because one that is interrupted may keep a lock of the pool."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # processes start with the mask of their parent
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(end: Connection) -> None:
    """End this process when its parent is killed or closes the other end; otherwise it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait_for([parent.sentinel, end])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
