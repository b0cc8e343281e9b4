"""Hostile clients of the service: each attacks once and returns what the service did wrong; empty if nothing."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ibforecast.serve.arrow import STREAM
from torture.wire import answered, request

HOST = "127.0.0.2"
SECONDS = 20.0
"""The longest time for one attack."""

Attack = Callable[[int, str | None, random.Random, Callable[[], bool]], Awaitable[str]]
"""Called with the port, the token, dice, and what returns whether to go on."""


@dataclass(frozen=True)
class Line:
    """A connection of a hostile client, the token of the service, dice, and what says whether to go on."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str | None
    dice: random.Random
    lasts: Callable[[], bool]


Talk = Callable[[Line], Awaitable[str]]

ATTACKS: dict[str, Attack] = {}


def attack(talk: Talk) -> Talk:
    """Enter an attack under its name; it gets a connection of its own."""

    async def run(port: int, token: str | None, dice: random.Random, lasts: Callable[[], bool]) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(HOST, 0))
        try:
            async with asyncio.timeout(SECONDS):
                return await talk(Line(reader, writer, token, dice, lasts))
        finally:
            writer.close()

    ATTACKS[talk.__name__.replace("_", " ")] = run
    return talk


async def _expect(reader: asyncio.StreamReader, *statuses: int) -> str:
    """Read an answer; return what is wrong with it. A busy service may refuse instead."""
    reply = await answered(reader)
    if reply.status not in (*statuses, 429, 503):
        return f"{reply.status} instead of {' or '.join(map(str, statuses))}: {reply.body[:200]!r}"
    if not json.loads(reply.body).get("error"):
        return f"{reply.status} without an error: {reply.body[:200]!r}"
    return ""


async def _silent(reader: asyncio.StreamReader, lasts: Callable[[], bool]) -> None:
    """Wait until the service closes the connection, or the attack is over."""
    while lasts():
        try:
            async with asyncio.timeout(0.2):
                if not await reader.read(4096):
                    return
        except TimeoutError:
            continue


HEAD = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@attack
async def half_a_head(line: Line) -> str:
    """Send the start of a head, and no more."""
    line.writer.write(HEAD[: line.dice.randrange(1, len(HEAD))])
    await _silent(line.reader, line.lasts)
    return ""


@attack
async def slow_head(line: Line) -> str:
    """Send a head byte by byte."""
    for place in range(len(HEAD)):
        if not line.lasts() or line.reader.at_eof():
            break
        line.writer.write(HEAD[place : place + 1])
        await asyncio.sleep(0.1)
    return ""


@attack
async def slow_body(line: Line) -> str:
    """Send a body byte by byte."""
    line.writer.write(request("POST", "/explain", b" " * 5000, token=line.token)[:-5000])
    while line.lasts() and not line.reader.at_eof():
        line.writer.write(b" ")
        await asyncio.sleep(0.1)
    return ""


@attack
async def announced_body(line: Line) -> str:
    """Announce a body of a gigabyte."""
    head = request("POST", "/explain", b"{}", token=line.token)[:-2].replace(b"Length: 2\r", b"Length: 1000000000\r")
    line.writer.write(head)
    return await _expect(line.reader, 413)


@attack
async def huge_body(line: Line) -> str:
    """Send more than is allowed, in pieces of unknown number."""
    bearer = f"Authorization: Bearer {line.token}\r\n" if line.token else ""
    line.writer.write(HEAD + f"{bearer}Transfer-Encoding: chunked\r\n\r\n".encode())
    piece = b"100000\r\n" + b"[" * 2**20 + b"\r\n"
    for _ in range(18):
        line.writer.write(piece)
        await asyncio.wait_for(line.writer.drain(), SECONDS)
    return await _expect(line.reader, 413)


@attack
async def garbage(line: Line) -> str:
    """Send bytes that are no request."""
    line.writer.write(line.dice.randbytes(line.dice.randrange(1, 4000)) + b"\r\n\r\n")
    await _silent(line.reader, line.lasts)
    return ""


@attack
async def wrong_token(line: Line) -> str:
    """Ask with another token, or from another site."""
    if line.token is not None:
        line.writer.write(
            request(
                "GET", "/models", token=line.dice.choice([None, "another token", line.token[:-1], line.token + "x"])
            )
        )
        return await _expect(line.reader, 401)
    line.writer.write(request("GET", "/models").replace(b"Host: localhost", b"Host: evil.example"))
    return await _expect(line.reader, 403)


@attack
async def malformed_json(line: Line) -> str:
    """Send bodies that are not what they should be."""
    bodies = [
        b"{",
        b"[" * 100_000,
        b'{"table": {"time": ["2024-01-01"], "load": [1e999]}}',
        b'{"table": "no such table", "model": "one"}',
        b'{"table": {"time": [1, 2], "load": ["x", {}]}, "model": "one"}',
        b'{"model": 7, "table": []}',
        json.dumps({"table": [{f"name {n}": n} for n in range(3000)], "model": "one"}).encode(),
        line.dice.randbytes(2000),
    ]
    path = line.dice.choice(["/explain", "/forecast", "/verify", "/receipts", "/replay"])
    line.writer.write(request("POST", path, line.dice.choice(bodies), token=line.token))
    return await _expect(line.reader, 413, 422)


@attack
async def malformed_arrow(line: Line) -> str:
    """Send streams that are none."""
    body = b"\xff\xff\xff\xff" + line.dice.randbytes(line.dice.randrange(1, 3000))
    line.writer.write(request("POST", "/forecast?form=arrow&model=one", body, STREAM, line.token))
    return await _expect(line.reader, 413, 422)


@attack
async def gone_before_the_answer(line: Line) -> str:
    """Request much, and disconnect while it is computed or sent."""
    body = json.dumps({"table": "demo", "model": "one", "step": "every"}).encode()
    for _ in range(3):
        line.writer.write(
            request("POST", line.dice.choice(["/explain", "/receipts", "/forecast"]), body, token=line.token)
        )
    await asyncio.sleep(line.dice.uniform(0, 0.2))
    if line.dice.random() < 0.5:
        await line.reader.read(line.dice.randrange(1, 2000))
    line.writer.transport.abort()
    return ""


@attack
async def several_at_once(line: Line) -> str:
    """Send requests without waiting for answers, the last one cut off."""
    whole = request("GET", "/models", token=line.token)
    line.writer.write(whole * 20 + whole[: line.dice.randrange(1, len(whole))])
    for number in range(20):
        reply = await answered(line.reader)
        if reply.status != 200:
            return f"{reply.status} to request {number} of 20"
    return ""
