"""Checks before every route, of the sender and of the size of a request; and the response to a failure."""

import asyncio
import hmac
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ibforecast.serve.clients import CLIENT, Crowd, Turns
from ibforecast.serve.metrics import Metrics
from ibforecast.serve.refusals import Refused, log
from ibforecast.serve.settings import Settings

GONE = 499
"""The status under which a request is counted if its client disconnected before the answer was complete."""

RESERVED = 8
"""The share of the places, one in eight, that a client leaves for the others."""

ONCE = (b"host", b"origin", b"authorization", b"content-length", b"content-type")
"""Headers of which a request may have one: a proxy and this service could read different ones."""

PLAIN_HOST = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?", re.ASCII)
CLOSE = {"connection": "close"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]

FAILURE = Refused(500, "something went wrong in the service", remedy="see the log of the service")
"""The answer to a request if the service itself fails; the details are only in the log."""


CLOSED = "handler is closed"
"""What uvloop says of a connection that it closed, before it calls `connection_lost`."""


class Gone(Exception):  # noqa: N818
    """The client disconnected before its request or the answer was complete."""


class _Answer:
    """Sends an answer with the headers that all answers have; its fields say whether it has begun and is complete."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status, self.begun, self.complete = GONE, False, False
        self.on_complete: Callable[[], None] = lambda: None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True
            self.on_complete()
        try:
            await self._send(message)
        except RuntimeError as error:
            if CLOSED not in str(error):
                raise
            await asyncio.sleep(0)  # now the connection says that it is lost
            self.status = GONE
            raise Gone from error


class Guard:
    """Passes on requests that are allowed and within the limits; cancels the work of clients that disconnected.

    `is_open` says whether a path needs no token.
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, is_open: Callable[[str], bool]) -> None:
        self._app, self._settings, self._metrics, self._is_open = app, settings, metrics, is_open
        self._at_work: Counter[str] = Counter()
        self._arriving = Crowd(settings.max_concurrent)
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, answer = time.perf_counter(), _Answer(send)
        with self._metrics.in_flight.track_inprogress():
            try:
                await self._serve(scope, receive, answer)
            except Gone:
                pass
            except Refused as refused:
                await _refuse(refused, scope, receive, answer)
            except Exception as error:
                log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
                await _refuse(FAILURE, scope, receive, answer)
            finally:
                route = getattr(scope.get("route"), "path", "other")
                self._metrics.finished(route, answer.status, time.perf_counter() - begun)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        CLIENT.set((scope.get("client") or ("",))[0])
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        for name in ONCE:
            if sum(name == other for other, _ in scope["headers"]) > 1:
                raise Refused(400, f"{name.decode()} must be sent once", "several", "send one", headers=CLOSE)
        self._check_addressee(headers)
        self._check_token(scope["path"], headers)
        if scope["method"] == "GET" and not scope["path"].endswith(("/history", "/drivers")):
            await self._run(scope, b"", receive, answer)
            return
        self._check_busy()
        body = await self._body(headers, receive)
        # Only now: a client that sends slowly must not take the place of one that has sent everything.
        self._check_busy()
        client = CLIENT.get()
        self._at_work[client] += 1
        with ExitStack() as place:
            place.callback(self._leave, client)
            # The client may send its next request as soon as it has the answer, before this function returns.
            answer.on_complete = place.close
            await self._turns.next()
            await self._run(scope, body, receive, answer)

    def _leave(self, client: str) -> None:
        self._at_work[client] -= 1
        self._at_work += Counter()  # forgets clients without a request

    def _check_busy(self) -> None:
        """Refuse a request if too many are under way, or too many of its client: the rest is for other clients."""
        most = self._settings.max_concurrent
        share = most - most // RESERVED
        own, all_clients = self._at_work[CLIENT.get()], self._at_work.total()
        if all_clients >= most or own >= share:
            limit = f"{most} requests" if all_clients >= most else f"{share} requests of one client"
            raise Refused(
                429,
                f"at most {limit} may be under way at a time",
                "one more",
                "try again in a moment",
                headers={"retry-after": "1"},
            )

    def _check_addressee(self, headers: dict[bytes, str]) -> None:
        """Refuse pages of other sites, also if they point their own host name at this machine."""
        host = headers.get(b"host", "")
        known = self._settings.hosts
        if not PLAIN_HOST.fullmatch(host):
            raise Refused(
                400, "a host must be a name or an address, and a port", repr(host), "send it so", headers=CLOSE
            )
        if known is not None and _hostname(f"//{host}") not in known:
            raise Refused(
                403, f"the host name must be one of {', '.join(sorted(known))}", repr(host), "use one of these names"
            )
        # A browser sends the origin of the page. Programs that are not browsers send none, and are let through.
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            raise Refused(
                403,
                "a request from a page must come from the service's own page",
                f"origin {origin!r}",
                "send it without a page",
            )

    def _check_token(self, path: str, headers: dict[bytes, str]) -> None:
        token = self._settings.token
        if token is None or self._is_open(path):
            return
        kind, _, token_sent = headers.get(b"authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(token_sent.strip().encode("latin-1"), token.encode()):
            raise Refused(
                401,
                "a request must carry the service's token",
                "none, or another",
                "send the header Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer"},
            )

    async def _body(self, headers: dict[bytes, str], receive: Receive) -> bytes:
        """Return the whole body; refuse one that is too large as soon as its size is known."""
        length = headers.get(b"content-length", "")
        self._check_length(int(length) if length.isdecimal() else 0)
        parts, size, more = [], 0, True
        client, one = CLIENT.get(), object()
        try:
            async with asyncio.timeout(self._settings.body_seconds) as limit:
                self._arriving.enter(client, one, partial(_end_now, limit))
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    self._check_length(size)
        except TimeoutError as error:
            raise Refused(
                408,
                f"a body must arrive within {self._settings.body_seconds:g} s, and sooner if many are arriving",
                f"{size} bytes by then",
                "send it faster, or in parts",
                headers=CLOSE,
            ) from error
        finally:
            self._arriving.leave(client, one)
        return b"".join(parts)

    def _check_length(self, size: int) -> None:
        most = self._settings.max_body
        if size > most:
            raise Refused(
                413,
                f"a body must have at most {most} bytes",
                f"{size} or more",
                "send fewer rows, or raise --max-body",
                "body",
                CLOSE,
            )

    async def _run(self, scope: Scope, body: bytes, receive: Receive, answer: _Answer) -> None:
        """Answer the request; cancel the work if the client disconnects first."""
        # Only one reader may call `receive`. Here it watches for a disconnect, and the app gets the body from memory.
        left = asyncio.ensure_future(_departure(receive))
        sent = over = False

        def leave(left: "asyncio.Future[None]") -> None:
            if not (over or answer.complete):
                _end_now(limit)

        async def receive_again() -> Message:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.wait({left})
            return {"type": "http.disconnect"}

        try:
            # In this task: another one would begin only after everything else that waits for the event loop.
            async with asyncio.timeout(None) as limit:
                left.add_done_callback(leave)
                try:
                    await self._app(scope, receive_again, answer)
                finally:
                    over = True
        except Exception:
            if not limit.expired():  # whatever the work raised when it was ended
                raise
            answer.status = GONE
        finally:
            left.cancel()


def response_to(refused: Refused) -> Response:
    """Return the HTTP response to a refused request."""
    return Response(refused.body(), refused.status, refused.headers, "application/json")


async def _refuse(refused: Refused, scope: Scope, receive: Receive, answer: _Answer) -> None:
    """Answer with an error, unless an answer has begun."""
    if not answer.begun:
        await response_to(refused)(scope, receive, answer)


def _end_now(limit: asyncio.Timeout) -> None:
    if not limit.expired():
        limit.reschedule(0.0)


async def _departure(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _hostname(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
