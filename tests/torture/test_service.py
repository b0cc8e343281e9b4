"""A service under attack gives the answers of the library; `make torture` attacks it for minutes."""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from torture.service import Library, service
from torture.wire import Lost, Reply, answered, request

from ibforecast.serve.app import create_app
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hostile clients have an address of their own")


def test_a_service_under_attack_gives_no_wrong_answer() -> None:
    found = service(0.05, 0, clients=8)
    assert found["broken"] == []
    assert found["answers"] > 0
    assert found["kills"] > 0


def answer_of(app: Any, sent: bytes) -> Reply:
    """Pass the bytes of a request to an application; return its answer."""
    head, _, body = sent.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, path, _ = first.decode().split()
    route, _, query = path.partition("?")
    messages: list[Any] = []

    async def receive() -> Any:
        if messages or parts:
            await asyncio.Event().wait()  # the client stays
        parts.append(body)
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        messages.append(message)

    parts: list[bytes] = []
    headers = [(name.lower().strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"},
        **{"path": route, "raw_path": route.encode(), "query_string": query.encode(), "headers": headers},
        **{"root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}},
    }
    asyncio.run(app(scope, receive, send))
    return Reply(messages[0]["status"], {}, b"".join(each.get("body", b"") for each in messages[1:]))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("served"), tables=1)


@pytest.fixture(scope="module")
def app(library: Library) -> Iterator[Any]:
    own = Service(library.paths, Settings())
    yield create_app(own)
    own.close()


def test_every_kind_of_wrong_answer_is_noticed(library: Library, app: Any) -> None:
    seen = set()
    for question in library.questions:
        if question.kind in seen:
            continue
        seen.add(question.kind)
        reply = answer_of(app, question.sent(None))
        assert (reply.status, question.flaw(reply.body, 0)) == (200, ""), question.kind
        for old, new in ((b"1", b"2"), (b"true", b"false"), (b"false", b"true"), (b"\x40", b"\x41")):
            if (wrong := reply.body.replace(old, new)) != reply.body:
                try:
                    noticed = bool(question.flaw(wrong, 0))
                except Exception:  # an answer that cannot be read is wrong
                    noticed = True
                if noticed:
                    break
        else:
            pytest.fail(f"no wrong answer to {question.kind} was noticed")
    assert len(seen) == 8


def test_an_answer_of_another_version_of_a_model_is_noticed(library: Library, app: Any) -> None:
    for question in [each for each in library.questions if each.model == "replaced"]:
        body = answer_of(app, question.sent(None)).body
        assert question.flaw(body, 0) == ""
        assert question.flaw(body, 1)


def test_an_answer_that_is_cut_off_is_lost() -> None:
    async def read(content: bytes) -> Reply:
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        return await answered(reader)

    whole = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
    assert asyncio.run(read(whole)) == Reply(200, {"content-length": "4"}, b"body")
    for content in (b"", whole[:20], whole[:-1]):
        with pytest.raises(Lost):
            asyncio.run(read(content))
    assert request("GET", "/health").endswith(b"\r\n\r\n")
