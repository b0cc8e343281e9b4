"""One thread per model that computes windows, taking turns between the requests that wait.

Windows that arrive together are taken together. Nobody waits for a batch to fill; it fills by itself while the thread
is busy.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

import numpy as np
import torch

MOST_AT_ONCE = 32

T = TypeVar("T")


@dataclass(frozen=True)
class _Request:
    """The windows of a request that are still to be computed, and where the results go."""

    windows: deque[Callable[[], Any]]
    results: list[Any]
    done: "asyncio.Future[list[Any]]"
    loop: asyncio.AbstractEventLoop

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to compute, or nobody is waiting any more."""
        return not self.windows or self.done.cancelled()

    @property
    def next(self) -> Callable[[], Any]:
        """The window whose turn it is."""
        return self.windows[0]

    def compute_next(self) -> None:
        """Compute one window; after the last, or the first that fails, tell whoever waits."""
        try:
            self.results.append(self.windows.popleft()())
        except Exception as error:
            self.windows.clear()
            self._tell(self.done.set_exception, error)
        else:
            if not self.windows:
                self._tell(self.done.set_result, self.results)

    def _tell(self, settle: Callable[[Any], None], outcome: Any) -> None:
        def deliver() -> None:
            if not self.done.done():
                settle(outcome)

        try:
            self.loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            return  # the loop is closed: nobody waits


class Worker:
    """Computes windows in a thread of its own: one of every waiting request, then the next of each, and so on.

    `prepare` sees the windows of a turn before they are computed. The thread is started when there is something to do;
    once the worker is closed it ends when nothing is left.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        on_turn: Callable[[int], None],
        prepare: Callable[[Sequence[Callable[[], Any]]], None] = lambda windows: None,
    ) -> None:
        self._name, self._threads, self._on_turn, self._prepare = name, threads, on_turn, prepare
        self._waiting: deque[_Request] = deque()
        self._changed = Condition()
        self._thread: Thread | None = None
        self._closing = False

    async def compute(self, windows: Sequence[Callable[[], T]]) -> list[T]:
        """Compute these windows and return their results in order; cancelled, the rest of them is left undone."""
        if not windows:
            return []
        loop = asyncio.get_running_loop()
        request = _Request(deque(windows), [], loop.create_future(), loop)
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._work, name=f"windows of {self._name}", daemon=True)
                self._thread.start()
        return await request.done

    def close(self) -> None:
        """Let the thread end once everything accepted is computed; what comes later is computed all the same."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self) -> None:
        """Wait for the thread to end."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        torch.set_num_threads(self._threads)
        with np.errstate(all="ignore"):  # numbers of any size may be sent; what becomes of them is looked at
            while turn := self._next_turn():
                self._on_turn(len(turn))
                with suppress(Exception):  # whatever is wrong shows again when a window is computed
                    self._prepare([request.next for request in turn if not request.is_over])
                for request in turn:
                    if not request.is_over:
                        request.compute_next()

    def _next_turn(self) -> list[_Request]:
        """Wait for requests and let each have one turn; none when there is nothing to wait for."""
        with self._changed:
            while True:
                self._waiting = deque(request for request in self._waiting if not request.is_over)
                if self._waiting or self._closing:
                    break
                self._changed.wait()
            turn = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]
            self._waiting.extend(turn)
            if not turn:
                self._thread = None
            return turn
