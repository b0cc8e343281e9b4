"""One thread per model that computes windows, one of each waiting client in every turn.

No request waits for a batch to fill: a turn takes the requests that arrived while the thread was busy.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, TypeVar

import numpy as np
import torch

from ibforecast.serve.clients import CLIENT

MOST_AT_ONCE = 32

T = TypeVar("T")


@dataclass(frozen=True)
class _Request:
    """The windows of a request that are not yet computed, and where the results go."""

    windows: deque[Callable[[], Any]]
    results: list[Any]
    done: "asyncio.Future[list[Any]]"
    loop: asyncio.AbstractEventLoop
    client: str

    @property
    def is_over(self) -> bool:
        """Whether no window is left, or nobody waits for the results."""
        return not self.windows or self.done.cancelled()

    def compute_next(self) -> None:
        """Compute one window; deliver the results after the last one, or the error of the first that fails."""
        try:
            self.results.append(self.windows.popleft()())
        except Exception as error:
            self.windows.clear()
            self._settle(self.done.set_exception, error)
        else:
            if not self.windows:
                self._settle(self.done.set_result, self.results)

    def _settle(self, settle: Callable[[Any], None], outcome: Any) -> None:
        def deliver() -> None:
            if not self.done.done():
                settle(outcome)

        try:
            self.loop.call_soon_threadsafe(deliver)
        except RuntimeError:
            return  # the loop is closed, so nobody waits


class Worker:
    """Computes windows in its own thread: one of every waiting client, then the next of each, and so on.

    The requests of one client take turns too, so a long request delays neither other clients nor short requests.

    The thread starts with the first window; once the worker is closed, it ends when no window is left.
    """

    def __init__(self, name: str, threads: int, on_turn: Callable[[int], None]) -> None:
        self._name, self._threads, self._on_turn = name, threads, on_turn
        self._waiting: deque[_Request] = deque()
        self._changed = Condition()
        self._thread: Thread | None = None
        self._closing = False

    async def compute(self, windows: Sequence[Callable[[], T]]) -> list[T]:
        """Compute windows and return their results in order; if cancelled, skip the remaining ones."""
        if not windows:
            return []
        loop = asyncio.get_running_loop()
        request = _Request(deque(windows), [], loop.create_future(), loop, CLIENT.get())
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()
            if self._thread is None:
                self._thread = Thread(target=self._work, name=f"windows of {self._name}", daemon=True)
                self._thread.start()
        return await request.done

    def close(self) -> None:
        """End the thread once all accepted windows are computed; later windows are still computed."""
        with self._changed:
            self._closing = True
            self._changed.notify()

    def join(self) -> None:
        """Wait for the thread to end."""
        if (thread := self._thread) is not None:
            thread.join()

    def _work(self) -> None:
        torch.set_num_threads(self._threads)  # counts only for the thread that calls it
        with np.errstate(all="ignore"):  # clients may send numbers of any size; results are checked later
            while turn := self._next_turn():
                self._on_turn(len(turn))
                for request in turn:
                    if not request.is_over:
                        request.compute_next()

    def _next_turn(self) -> list[_Request]:
        """Wait for requests and return those of the next turn; none if the worker is closed and no request waits."""
        with self._changed:
            while True:
                self._waiting = deque(request for request in self._waiting if not request.is_over)
                if self._waiting or self._closing:
                    break
                self._changed.wait()
            first = {request.client: request for request in reversed(self._waiting)}  # the oldest of each client
            turn = list(first.values())[:MOST_AT_ONCE]
            # Behind all others, so that a long request cannot keep short ones waiting.
            others = (request for request in self._waiting if first[request.client] is not request)
            self._waiting = deque([*others, *list(first.values())[MOST_AT_ONCE:], *turn])
            if not turn:
                self._thread = None
            return turn
