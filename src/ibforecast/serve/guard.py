"""What stands before every route: who may ask, how much, and what becomes of whatever goes wrong."""

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ibforecast.serve.metrics import Metrics
from ibforecast.serve.refusals import Refused, log
from ibforecast.serve.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

GONE = 499
"""The status under which a request is counted whose client went away."""

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


class Gone(Exception):  # noqa: N818
    """The client went away before its request was whole."""


class _Answer:
    """The way back to the client: remembers how far the answer got, and adds what every answer carries."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status, self.begun, self.complete = GONE, False, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.begun = message["status"], True
            message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Answer with an error, unless an answer has begun."""
        if self.begun:
            return
        body = refused.body()
        headers = {"content-type": "application/json", "content-length": str(len(body))} | refused.headers
        told = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self({"type": "http.response.start", "status": refused.status, "headers": told})
        await self({"type": "http.response.body", "body": body})


class Guard:
    """Lets in what may come in, whole and within the limits; frees the work of clients that went away.

    `is_open` tells of a path whether it may be asked for without the token.
    """

    def __init__(self, app: App, settings: Settings, metrics: Metrics, is_open: Callable[[str], bool]) -> None:
        self._app, self._settings, self._metrics, self._is_open = app, settings, metrics, is_open
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, answer = time.perf_counter(), _Answer(send)
        self._metrics.in_flight += 1
        try:
            await self._serve(scope, receive, answer)
        except Refused as refused:
            await answer.refuse(refused)
        except Gone:
            pass
        except Exception as error:
            log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            await answer.refuse(Refused(500, "something went wrong in the service", "its log says more"))
        finally:
            self._metrics.in_flight -= 1
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.finished(route, answer.status, time.perf_counter() - begun)

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        self._check_addressee(headers)
        self._check_token(scope["path"], headers)
        if scope["method"] == "GET" and not scope["path"].endswith("/history"):
            await self._run(scope, b"", receive, answer)
            return
        if self._at_work >= self._settings.max_concurrent:
            raise Refused(
                429,
                f"at most {self._settings.max_concurrent} requests may be at work at a time (got one more)",
                "try again in a moment",
                headers={"retry-after": "1"},
            )
        self._at_work += 1
        try:
            await self._run(scope, await self._body(headers, receive), receive, answer)
        finally:
            self._at_work -= 1

    def _check_addressee(self, headers: dict[bytes, str]) -> None:
        """Refuse pages of other sites, also those that give their own name this machine's address."""
        host = headers.get(b"host", "")
        known = self._settings.hosts
        if known is not None and _hostname(f"//{host}") not in known:
            raise Refused(
                403, f"the service answers to {', '.join(sorted(known))} alone (got {host!r})", "use one of these names"
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
            raise Refused(403, f"the service answers its own pages alone (got origin {origin!r})", "ask without a page")

    def _check_token(self, path: str, headers: dict[bytes, str]) -> None:
        token = self._settings.token
        if token is None or self._is_open(path):
            return
        kind, _, told = headers.get(b"authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(told.strip().encode("latin-1"), token.encode()):
            raise Refused(
                401,
                "a request must carry the service's token (got none, or another)",
                "send the header Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer"},
            )

    async def _body(self, headers: dict[bytes, str], receive: Receive) -> bytes:
        """The whole body; one that is too large is refused as soon as that is known."""
        length = headers.get(b"content-length", "")
        self._check_length(int(length) if length.isdecimal() else 0)
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self._settings.body_seconds):
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
                f"a body must arrive within {self._settings.body_seconds:g} s (got {size} bytes by then)",
                "send it faster, or in parts",
                headers={"connection": "close"},
            ) from error
        return b"".join(parts)

    def _check_length(self, size: int) -> None:
        most = self._settings.max_body
        if size > most:
            raise Refused(
                413,
                f"a body must have at most {most} bytes (got {size} or more)",
                "send fewer rows, or raise --max-body",
                "body",
                {"connection": "close"},
            )

    async def _run(self, scope: Scope, body: bytes, receive: Receive, answer: _Answer) -> None:
        """Answer, unless the client goes away first: then its work is cancelled."""
        left = asyncio.ensure_future(_departure(receive))
        sent = False

        async def again() -> Message:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            await asyncio.wait({left})
            return {"type": "http.disconnect"}

        work = asyncio.ensure_future(self._app(scope, again, answer))
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not answer.complete:
                work.cancel()
                await asyncio.wait({work})
                answer.status = GONE
                return
            await work
        finally:
            left.cancel()
            work.cancel()


async def _departure(receive: Receive) -> None:
    """Wait until the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _hostname(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
