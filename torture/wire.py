"""A light client: one connection, raw requests, whole answers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass


class Lost(Exception):  # noqa: N818
    """A connection ended before an answer was complete."""


@dataclass(frozen=True)
class Reply:
    """A whole answer; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def request(
    method: str, path: str, body: bytes = b"", kind: str = "application/json", token: str | None = None
) -> bytes:
    """Return the bytes of a request."""
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    typed = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{bearer}{typed}\r\n".encode() + body


async def answered(reader: asyncio.StreamReader) -> Reply:
    """Read one answer."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except asyncio.IncompleteReadError as error:
        raise Lost(f"closed after {len(error.partial)} bytes") from error
    return Reply(int(head[0].split()[1]), headers, body)


@asynccontextmanager
async def connected(port: int, host: str) -> AsyncIterator[Callable[[bytes], Awaitable[Reply]]]:
    """Connect from an address of this machine; yield what sends a request and returns the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0), limit=2**22)

    async def send(sent: bytes) -> Reply:
        writer.write(sent)
        return await answered(reader)

    try:
        yield send
    finally:
        writer.close()
