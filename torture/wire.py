"""A light client: one connection, raw requests, whole answers."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

Address = tuple[str, int]
"""A host and a port."""


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


@dataclass(frozen=True)
class Wire:
    """A connection to the service; `own` is the address of this end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    own: Address

    async def __call__(self, sent: bytes) -> Reply:
        """Send a request, and return the answer."""
        self.writer.write(sent)
        return await answered(self.reader)


@asynccontextmanager
async def connected(port: int, host: str) -> AsyncIterator[Wire]:
    """Connect from an address of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0), limit=2**22)
    try:
        yield Wire(reader, writer, writer.get_extra_info("sockname"))
    finally:
        writer.close()


def clients_of(pid: int, port: int) -> set[Address]:
    """Return the other ends of the connections that a process has at a port of this machine; empty if it ended."""
    sockets = set()
    try:
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # it was closed meanwhile
                sockets.add(str(each.readlink()))
    except OSError:
        return set()
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = [line for line in lines if f"socket:[{line[9]}]" in sockets and line[1].endswith(f":{port:04X}")]
    return {_address(line[2]) for line in own}


def _address(text: str) -> Address:
    """Read an address as the kernel writes it: four bytes in the order of the machine, and a port."""
    host, _, port = text.partition(":")
    return socket.inet_ntoa(int(host, 16).to_bytes(4, sys.byteorder)), int(port, 16)
