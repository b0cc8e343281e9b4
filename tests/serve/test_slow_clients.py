"""Slow and hostile clients: they give way, and honest ones are answered meanwhile."""

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from ibforecast.serve import guard
from ibforecast.serve.app import create_app
from ibforecast.serve.clients import Crowd, Turns
from ibforecast.serve.metrics import Metrics
from ibforecast.serve.settings import Settings

HEAD = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
HALF = b"GET /health HTTP/1.1\r\nHost: loc"


@contextmanager
def opened(url: str, count: int, sent: bytes, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Open connections from an address of this machine, and send the beginning of a request on each."""
    place, _, port = url.removeprefix("http://").partition(":")
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(
                socket.create_connection((place, int(port)), timeout=20, source_address=(source, 0))
            )
            connection.sendall(sent)
            connections.append(connection)
        yield connections


def answered(connection: socket.socket) -> bytes:
    """Return what arrives on a connection until it is closed."""
    received = b""
    try:
        while part := connection.recv(4096):
            received += part
    except ConnectionResetError:
        pass
    return received


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    finally:
        connection.settimeout(20)


def test_a_head_that_does_not_arrive_in_time_ends_the_connection(make: Any, listen: Any) -> None:
    with listen(make(head_seconds=0.2)) as (_, url), opened(url, 3, HALF) as half, opened(url, 1, b"") as silent:
        for connection in [*half, *silent]:
            assert answered(connection) == b""


def test_single_bytes_do_not_prolong_the_time_of_a_head(make: Any, listen: Any) -> None:
    with listen(make(head_seconds=0.3)) as (_, url), opened(url, 1, HALF) as (connection,):
        deadline = time.monotonic() + 20
        while is_open(connection):
            assert time.monotonic() < deadline
            try:
                connection.sendall(b"a")
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.02)


def test_a_connection_in_use_outlives_the_time_of_a_head(make: Any, listen: Any) -> None:
    with listen(make(head_seconds=0.5)) as (_, url), opened(url, 1, b"") as (connection,):
        for _ in range(6):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in connection.recv(4096)
            time.sleep(0.15)


def test_many_half_sent_heads_do_not_keep_others_waiting(make: Any, listen: Any) -> None:
    with listen(make(max_waiting=8, head_seconds=60.0)) as (_, url), opened(url, 40, HALF) as connections:
        for _ in range(5):
            assert httpx.get(f"{url}/health", timeout=10).status_code == 200
        assert sum(map(is_open, connections)) <= 8


def test_a_crowd_makes_room_among_its_own(make: Any, listen: Any) -> None:
    with (
        listen(make(max_waiting=8, head_seconds=60.0)) as (_, url),
        opened(url, 2, HALF, "127.0.0.2") as honest,
        opened(url, 40, HALF) as hostile,
    ):
        assert httpx.get(f"{url}/health", timeout=10).status_code == 200
        for connection in honest:
            assert is_open(connection)
            connection.sendall(b"alhost\r\n\r\n")
            assert b" 200 " in connection.recv(4096)
        assert sum(map(is_open, hostile)) <= 8


def test_slow_bodies_do_not_take_the_place_of_whole_ones(make: Any, desk: Any, listen: Any) -> None:
    service = make(max_concurrent=4)
    with listen(service) as (_, url), opened(url, 12, HEAD) as connections:
        for _ in range(3):
            answer = httpx.post(f"{url}/explain", json={"table": desk.columns()}, timeout=20)
            assert answer.status_code == 200
        assert all(b" 408 " in answered(connection) for connection in connections[:8])


def test_one_client_leaves_places_for_others(make: Any, over: Any, desk: Any, slow_down: Any) -> None:
    service = make(max_concurrent=8)
    slow_down(service, 0.1)
    question = ("POST", "/explain", {"json": {"table": desk.columns()}})
    answers = over(service).together(*[question] * 12)
    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [429] * 5
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert "at most 7 requests of one client" in refused.json()["error"]


def test_as_many_clients_as_there_are_places_are_never_refused(make: Any, listen: Any) -> None:
    with listen(make(max_concurrent=4)) as (_, url), ThreadPoolExecutor(4) as threads:

        def ask(number: int) -> set[int]:
            with httpx.Client(timeout=30) as client:
                return {client.post(f"{url}/models/reload", json={"models": []}).status_code for _ in range(50)}

        assert set.union(*threads.map(ask, range(4))) == {200}


def test_the_oldest_of_the_client_with_the_most_gives_way() -> None:
    gone: list[str] = []
    crowd = Crowd(3)

    def enter(client: str, name: str) -> None:
        crowd.enter(client, name, lambda: gone.append(name))

    for client, name in (("b", "b1"), ("a", "a1"), ("a", "a2"), ("a", "a3")):
        enter(client, name)
    assert gone == ["a1"]
    crowd.leave("a", "a2")
    crowd.leave("a", "a2")
    enter("a", "a4")
    assert gone == ["a1"]
    enter("b", "b2")
    assert gone == ["a1", "b1"]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_times_that_never_or_always_end_are_refused(make: Any, seconds: float) -> None:
    with pytest.raises(Exception, match="head_seconds must be positive"):
        make(head_seconds=seconds)


def test_a_connection_that_closes_during_the_answer_is_no_failure(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service, logged = make(), []
    monkeypatch.setattr(guard.log, "error", lambda *words, **options: logged.append(words))
    app = create_app(service)
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"},
        **{"path": "/health", "raw_path": b"/health", "query_string": b"", "headers": [(b"host", b"localhost")]},
        **{"root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}},
    }

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    def answered(problem: str) -> None:
        async def send(message: Any) -> None:
            raise RuntimeError(problem)

        asyncio.run(app(scope, receive, send))

    answered("unable to perform operation on <TCPTransport closed=True>; the handler is closed")
    assert logged == []
    counted = service.metrics.registry.get_sample_value
    assert counted("ibforecast_requests_total", {"route": "/health", "status": "499"}) == 1
    answered("a mistake")
    assert logged == [("%s %s failed", "GET", "/health")]


def test_requests_that_arrive_together_let_others_pass_between_them() -> None:
    journal: list[str] = []

    async def take(turns: Turns, name: str) -> None:
        await turns.next()
        journal.append(name)

    async def pass_by() -> None:
        for _ in range(3):
            journal.append("short")
            await asyncio.sleep(0)

    async def ask() -> None:
        turns = Turns()
        tasks = [asyncio.ensure_future(take(turns, name)) for name in "abcd"]
        tasks.append(asyncio.ensure_future(pass_by()))
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await take(turns, "late")

    asyncio.run(ask())
    assert [each for each in journal if each != "short"] == ["a", "c", "d", "late"]
    assert journal.index("short") == 1, "the first takes its turn at once, the others wait for the next round"
    assert "short" in journal[journal.index("c") : journal.index("d")]


def test_a_client_that_leaves_as_its_request_ends_is_no_failure() -> None:
    problems: list[Any] = []
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0)  # the guard waits for the client to leave
        left.set()
        await asyncio.sleep(0)  # it left, and the guard does not know yet
        raise guard.Gone

    async def receive() -> Any:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        problems.append(message)

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        await guard.Guard(app, Settings(), Metrics(), lambda path: True)(scope, receive, send)
        await asyncio.sleep(0.01)

    left = asyncio.Event()
    asyncio.run(ask())
    assert problems == []
