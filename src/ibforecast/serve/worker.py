"""One thread per model that computes windows, one of each waiting client in every turn.

Windows that can be computed in one pass are: those of a turn, and others that wait. No request waits for a pass to
fill: a turn takes the requests that arrived while the thread was busy.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from ibforecast.serve.clients import CLIENT

MOST_AT_ONCE = 32

T = TypeVar("T")
P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Shared(Generic[P, R, T]):
    """A window that can be computed in one pass with others of the same `group`, and gets the bits it gets by itself.

    `compute` takes what `prepare` returns, of several windows; `finish` takes both of one window.
    """

    group: Hashable | None
    """None: this window shares no pass."""
    prepare: Callable[[], P]
    compute: Callable[[list[P]], list[R]]
    finish: Callable[[P, R], T]

    def __call__(self) -> T:
        """Compute the window by itself."""
        prepared = self.prepare()
        return self.finish(prepared, self.compute([prepared])[0])


@dataclass(frozen=True, eq=False)
class _Request:
    """The windows of a request that are not yet computed, and where the results go."""

    windows: deque[Callable[[], Any]]
    results: list[Any]
    done: "asyncio.Future[list[Any]]"
    loop: asyncio.AbstractEventLoop
    client: str

    @property
    def group(self) -> Hashable | None:
        """The group of its next window; None if that shares no pass."""
        window = self.windows[0] if self.windows else None
        return window.group if isinstance(window, Shared) else None

    @property
    def is_over(self) -> bool:
        """Whether no window is left, or nobody waits for the results."""
        return not self.windows or self.done.cancelled()

    def compute_next(self, work: Callable[[], Any] | None = None) -> None:
        """Compute one window; deliver the results after the last one, or the error of the first that fails.

        `work` computes it instead of the window itself, because it was begun before.
        """
        window = self.windows.popleft()
        try:
            self.results.append((work or window)())
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

    The requests of one client take turns too, so a long request delays neither other clients nor short requests. At
    most `together` windows are computed in one pass.

    The thread starts with the first window; once the worker is closed, it ends when no window is left.
    """

    def __init__(self, name: str, threads: int, on_turn: Callable[[int], None], together: int = 1) -> None:
        self._name, self._threads, self._on_turn, self._together = name, threads, on_turn, together
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
            if self._thread is None:
                self._thread = Thread(target=self._work, name=f"windows of {self._name}", daemon=True)
                self._thread.start()
        # Not at once: others that arrived in the same round of the event loop then share its first pass.
        loop.call_soon(self._wake)
        return await request.done

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

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
        torch.set_num_threads(self._threads)  # holds only for the thread that calls it
        with np.errstate(all="ignore"):  # clients may send numbers of any size; results are checked later
            while turn := self._next_turn():
                self._on_turn(len(turn))
                for request, work in self._begun([request for request in turn if not request.is_over]):
                    if not request.is_over:
                        request.compute_next(work)

    def _begun(self, turn: list[_Request]) -> Iterator[tuple[_Request, Callable[[], Any] | None]]:
        """Yield the requests of a turn, once for each window in it, with what is left to do for that window."""
        group, seen = _group_of(turn), Counter[_Request]()
        if group is None or self._together < 2 or len(turn) < 2:
            yield from ((request, None) for request in turn)
            return
        windows: list[Any] = []
        for request in turn:
            windows.append(request.windows[seen[request]])
            seen[request] += 1
        shared = [place for place, request in enumerate(turn) if request.group == group]
        left = dict(zip(shared, self._compute_together([windows[place] for place in shared]), strict=True))
        yield from ((request, left.get(place)) for place, request in enumerate(turn))

    def _compute_together(self, windows: list[Shared[Any, Any, Any]]) -> list[Callable[[], Any]]:
        """Compute windows in as few passes as possible; return what is left to do for each.

        That is the whole window if it cannot be prepared or a pass fails: by itself it fails with its own error.
        """
        left: list[Callable[[], Any]] = list(windows)
        prepared = []
        for place, window in enumerate(windows):
            with suppress(Exception):
                prepared.append((place, window.prepare()))
        while prepared:
            # A power of two, because only these numbers of windows were tried when the model was loaded.
            count = 2 ** (min(len(prepared), self._together).bit_length() - 1)
            some, prepared = prepared[:count], prepared[count:]
            with suppress(Exception):
                results = windows[0].compute([each for _, each in some])
                for (place, own), result in zip(some, results, strict=True):
                    left[place] = partial(windows[place].finish, own, result)
        return left

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
            return self._filled(turn)

    def _filled(self, turn: list[_Request]) -> list[_Request]:
        """Return a turn with further windows for its pass: one of each request that waits, then the next of each."""
        group, taken, room = _group_of(turn), Counter(turn), self._together - len(turn)
        riders = [request for request in self._waiting if group is not None and request.group == group]
        while room > 0 and riders:
            riders = [request for request in riders if len(request.windows) > taken[request]][:room]
            turn, room = turn + riders, room - len(riders)
            taken.update(riders)
        return turn


def _group_of(turn: list[_Request]) -> Hashable | None:
    """Return the group of the windows that share the pass of a turn; None if none do."""
    return next((request.group for request in turn if request.group is not None), None)
