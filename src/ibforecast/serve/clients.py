"""Clients, known by their address: how long they may take, and which share of the service each may have."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The address of the client whose request is being answered."""


class Crowd:
    """Connections and requests that wait for their client to send something.

    If there are more than `most`, the client that has the most of them must give one up: the one that waits longest. So
    a client that opens many connections pushes out only its own, and one that sends at once is soon out of the crowd.
    """

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._waiting: dict[str, dict[Hashable, Callable[[], None]]] = {}

    def enter(self, client: str, one: Hashable, give_way: Callable[[], None]) -> None:
        """Add one that waits; call its `give_way` if it must make room."""
        self._waiting.setdefault(client, {})[one] = give_way
        self._size += 1
        if self._size > self._most:
            name = max(self._waiting, key=lambda name: len(self._waiting[name]))
            oldest, make_room = next(iter(self._waiting[name].items()))
            self.leave(name, oldest)
            make_room()

    def leave(self, client: str, one: Hashable) -> None:
        """Remove one that waits no longer, if it is still here."""
        own = self._waiting.get(client, {})
        if own.pop(one, None) is not None:
            self._size -= 1
        if not own:
            self._waiting.pop(client, None)


class Shares:
    """Turns of clients at a pool of threads: each client may have `most` jobs there at a time, and its others wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._turns: dict[str, tuple[asyncio.Semaphore, int]] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn of the client whose request is being answered."""
        client = CLIENT.get()
        semaphore, users = self._turns.get(client, (asyncio.Semaphore(self._most), 0))
        self._turns[client] = semaphore, users + 1
        try:
            async with semaphore:
                yield
        finally:
            _, users = self._turns[client]
            if users > 1:
                self._turns[client] = semaphore, users - 1
            else:
                del self._turns[client]


class Turns:
    """Turns at the event loop: one in each of its rounds, so that a short request waits for none but those before it.

    Without them, all requests that arrived together would be read, one after the other, before the loop goes on.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    async def next(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        if self._taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._taken = True
            loop.call_soon(self._advance, loop)

    def _advance(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._waiting[0].done():  # its request was cancelled
            self._waiting.popleft()
        self._taken = bool(self._waiting)
        if self._waiting:
            self._waiting.popleft().set_result(None)
            loop.call_soon(self._advance, loop)


class PatientProtocol(HttpToolsProtocol):
    """HTTP of one connection, which is dropped if the head of a request does not arrive in time.

    uvicorn only limits the time without a single byte. A connection waits from its start, or from its last answer,
    until the head of the next request is complete; meanwhile it is one of a crowd.
    """

    def __init__(self, *arguments: Any, crowd: Crowd, seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._crowd, self._seconds = crowd, seconds
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_headers_complete(self) -> None:
        """Stop waiting: the head is here."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless its head arrived before this answer was complete."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _wait(self) -> None:
        self._stop_waiting()
        self._unsent = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(self._seconds, self._time_out)
        self._crowd.enter(self._address, self, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._crowd.leave(self._address, self)

    def _time_out(self) -> None:
        """Drop the connection, unless its client is still reading a long answer."""
        if self.transport.get_write_buffer_size() < self._unsent:
            self._wait()
        else:
            self.transport.abort()
