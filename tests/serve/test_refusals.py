"""Refusals name field, value and remedy; limits are enforced, and no internals leak."""

import json
import math
import socket
from collections.abc import Callable
from typing import Any

import pytest

from ibforecast.core import running

Change = Callable[[dict[str, list[Any]]], Any]


def refusal(answer: Any, status: int, field: str | None) -> str:
    """Check status and field, and return the error and its hint."""
    words = answer.json()
    assert answer.status_code == status, words
    assert set(words) == {"version", "error", "hint", "field"}
    assert words["field"] == field, words
    return f"{words['error']}; {words['hint']}"


def test_an_invalid_table_is_refused_with_the_librarys_message(client: Any, desk: Any) -> None:
    columns = desk.columns()
    cases: dict[str, Any] = {
        "the time column 'when' must be in the table (got 'load')": {"load": [1, 2, 3]},
        "the channel 'wind' must be in the table": {name: columns[name] for name in ("when", "load", "heat")},
        "did you mean 'winds'?": {("winds" if name == "wind" else name): cells for name, cells in columns.items()},
        "timestamps must increase": columns | {"when": columns["when"][::-1]},
        "even steps, here of 1h (got row 3: 2023-01-01 05:00": columns
        | {"when": [*columns["when"][:3], *columns["when"][5:], "2023-01-17 16:00", "2023-01-17 17:00"]},
        "(got row 1: 'broken'": columns | {"load": [1.0, "broken", *columns["load"][2:]]},
        "(got row 2: inf": columns | {"load": [1.0, 2.0, math.inf, *columns["load"][3:]]},
        "columns must have the same length (got 400 in 'when', 2 in 'load'": columns | {"load": [1.0, 2.0]},
        "look_back = 48 rows before it (got 20)": desk.columns(rows=20),
        "must have rows and columns (got 0 x 0)": {},
        "(got 0 x 0); fill it": [],
        "got nothing in 'heat'": columns | {"heat": [None] * 400},
        "every row must have a time": columns | {"when": [None, *columns["when"][1:]]},
        "of a size the model can compute with": columns | {"load": [1e300] * 400},
        "(got row 0: '[1]'": columns | {"load": [[1], *columns["load"][1:]]},
        "must have one meaning where ';' is between the columns (got row 0: '1.250'": "when;load\n2023-01-01;1.250\n",
        "id of a table kept here (got 5)": 5,
    }
    for words, table in cases.items():
        body = json.dumps({"table": table})
        answer = client.post("/explain", content=body, headers={"content-type": "application/json"})
        assert words in refusal(answer, 422, "table")


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2031-01-01", "the nearest is 2023-01-17 15:00"),
        ("yesterday", "must be an ISO time (got 'yesterday'); try '2023-01-17 15:00'"),
        ("2023-01-10 05:00+01:00", "have no zone"),
        ("0001-01-01T00:00:00", "the nearest is 2023-01-01 00:00"),
        ("2023-01-01 05:00", "look_back = 48 rows before it (got 6)"),
        ([], "at must name a moment"),
        (["2023-01-10 05:00", "never"], "must be an ISO time (got 'never')"),
        (7, "an ISO time or a list of them (got 7)"),
    ],
    ids=str,
)
def test_an_invalid_moment_is_refused_by_name(client: Any, desk: Any, at: Any, words: str) -> None:
    assert words in refusal(client.post("/explain", {"table": desk.columns(), "at": at}), 422, "at")


@pytest.mark.parametrize("budget", [0, -1, 1.5])
def test_an_invalid_budget_is_refused_by_name(client: Any, desk: Any, budget: float) -> None:
    refusal(client.post("/explain", {"table": desk.columns(), "budget": budget}), 422, "budget")


def test_missing_unknown_and_newer_fields_are_named(client: Any, desk: Any) -> None:
    assert "table must be sent (got none)" in refusal(client.post("/explain", {}), 422, "table")
    refusal(client.post("/explain", {"table": desk.columns(), "tabel": 1}), 422, "tabel")
    assert "(got 2)" in refusal(client.post("/explain", {"table": desk.columns(), "version": 2}), 422, "version")
    refusal(client.post("/verify", {}), 422, "explanation")
    assert "choose among town" in refusal(
        client.post("/explain", {"table": desk.columns(), "model": "tow"}), 422, "model"
    )


def test_with_several_models_one_must_be_named(both: Any, desk: Any) -> None:
    words = refusal(both.post("/explain", {"table": desk.columns()}), 422, "model")
    assert words == "model must be one that is loaded (got None); choose among town, dial"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1", b"\xff\xfe", b'{"table": NaN', b"[" * 100_000, b'"text"', b"null", b'{"table": 1e999}'],
    ids=lambda body: repr(body[:12]),
)
def test_a_body_that_is_not_a_request_is_refused(client: Any, body: bytes) -> None:
    answer = client.post("/explain", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_a_plain_form_post_is_refused(client: Any, desk: Any) -> None:
    body = json.dumps({"table": desk.columns()})
    assert client.post("/explain", content=body, headers={"content-type": "text/plain"}).status_code == 422


def test_invalid_unicode_is_refused_and_not_a_server_error(client: Any, desk: Any) -> None:
    headers = {"content-type": "application/json"}
    for body in (r'{"table": "\ud800"}', r'{"table": "a\n\ud800"}', r'{"table": {"\ud800": ["\udfff"]}}'):
        refusal(client.post("/explain", content=body.encode(), headers=headers), 422, "table")
    refusal(client.post("/explain", content=rb'{"table": "demo", "at": "\ud800"}', headers=headers), 422, "table")


@pytest.mark.parametrize(
    ("explanation", "words"),
    [
        ("", "valid JSON"),
        ("[" * 100_000, "valid JSON (got maximum recursion depth"),
        ("[" * 50 + "]" * 50, "must not be nested deeply"),
        ({}, "must have the format 'ibforecast.explanation' (got None)"),
        ({"format": "ibforecast.explanation"}, "up to version 1 (got version None)"),
        ({"format": "ibforecast.explanation", "version": 99}, "up to version 1 (got version 99); upgrade ibforecast"),
        ({"format": "ibforecast.explanation", "version": 1}, "must name its fingerprint"),
        ({"format": "ibforecast.explanation", "version": 1, "sha256": "0"}, "must have the member weights_sha256"),
        (5, "the document of /explain or its text (got 5)"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_invalid_explanation_is_refused(client: Any, explanation: Any, words: str) -> None:
    for route in ("/verify", "/replay"):
        assert words in refusal(client.post(route, {"explanation": explanation}), 422, "explanation")


def test_an_explanation_of_wrong_types_is_refused_and_not_a_server_error(client: Any, desk: Any) -> None:
    text = desk.model().explain(desk.table).to_json()
    for place, name, value in (
        (None, "weights_sha256", 5),
        (None, "computed_with", [[1, 2]]),
        ("window", "channels", [1, 2, 3]),
        ("window", "patch_len", "12"),
        ("window", "times", None),
        ("context", "phase", [1e300] * 60),
        ("context", "scale", [0, 0, 0]),
        (None, "budget", "all"),
        (None, "budget", []),
        (None, "prior", 7),
        (None, "forecast", None),
        (None, "truth", "later"),
    ):
        document = json.loads(text)
        (document[place] if place else document)[name] = value
        for route in ("/verify", "/replay"):
            assert name in refusal(client.post(route, {"explanation": document}), 422, "explanation"), (place, name)


@pytest.mark.parametrize("route", ["/verify", "/replay"])
@pytest.mark.parametrize("as_text", [False, True], ids=["an object", "text"])
def test_an_explanation_with_a_duplicate_key_is_refused(client: Any, desk: Any, route: str, as_text: bool) -> None:
    """A person could read one value and the service the other."""
    text = desk.model().explain(desk.table).to_json()
    headers = {"content-type": "application/json"}
    for place in ('"forecast": ', '"mask":', '"history":'):
        twice = text.replace(place, f"{place}null,{place}", 1)
        assert twice != text
        body = json.dumps({"explanation": twice}) if as_text else f'{{"explanation": {twice}}}'
        error = refusal(client.post(route, content=body, headers=headers), 422, "explanation")
        assert f"a key must appear once in an object (got '{place.strip().strip(':')[1:-1]}' twice)" in error
    twice = f'{{"explanation": {json.dumps(text)}, "explanation": {json.dumps(text)}}}'
    assert "'explanation' twice" in refusal(client.post(route, content=twice, headers=headers), 422, "explanation")


# --- Limits ---


def test_a_body_that_is_too_large_is_refused_by_content_length(make: Any, over: Any, desk: Any) -> None:
    client = over(make(max_body=2000))
    words = refusal(client.post("/explain", {"table": desk.columns()}), 413, "body")
    assert "at most 2000 bytes" in words
    assert "--max-body" in words


def test_a_body_that_is_too_large_is_refused_while_it_streams(make: Any, over: Any) -> None:
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while sent < 10**9:
            sent += 1000
            yield b"x" * 1000

    refusal(over(make(max_body=5000)).post("/tables", content=endless()), 413, "body")
    assert sent <= 10**7


def test_more_moments_than_allowed_are_refused(make: Any, over: Any, desk: Any) -> None:
    client = over(make(max_windows=2))
    moments = ["2023-01-10 05:00"] * 3
    assert "at most 2 moments (got 3)" in refusal(client.post("/explain", {"table": "demo", "at": moments}), 413, "at")
    assert client.post("/explain", {"table": desk.columns(), "at": moments[:2]}).status_code == 200


def test_the_size_of_an_answer_is_limited(make: Any, over: Any, desk: Any) -> None:
    client = over(make(max_numbers=1000))
    question = {"table": desk.columns(), "at": ["2023-01-10 05:00"] * 4}
    assert "at most 3 moments" in refusal(client.post("/explain", question), 413, "at")


def test_the_size_of_a_history_is_limited(make: Any, over: Any) -> None:
    client = over(make(max_history=4))
    refusal(client.get("/tables/demo/history?windows=5"), 413, "windows")
    refusal(client.get("/tables/demo/history?windows=0"), 422, "windows")


def test_requests_beyond_the_concurrency_limit_are_refused(make: Any, over: Any, desk: Any, slow_down: Any) -> None:
    service = make(max_concurrent=2)
    slow_down(service, 0.2)
    client, question = over(service), ("POST", "/explain", {"json": {"table": desk.columns()}})
    answers = client.together(*[question] * 5, ("GET", "/health", {}), ("GET", "/metrics", {}))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 429, 429, 429]
    busy = next(answer for answer in answers if answer.status_code == 429)
    assert "at most 2 requests" in refusal(busy, 429, None)
    assert busy.headers["retry-after"] == "1"
    assert client.post("/explain", {"table": desk.columns()}).status_code == 200


# --- Access ---


def test_a_service_with_a_token_requires_it(make: Any, over: Any) -> None:
    client = over(make(token="open sesame"))
    assert client.get("/health").status_code == 200
    assert client.get("/openapi.json").status_code == 200
    for path in ("/models", "/metrics", "/tables", "/tables/demo/moments"):
        for headers in ({}, {"authorization": "open sesame"}, {"authorization": "Bearer open says me"}):
            answer = client.get(path, headers=headers)
            assert "Authorization: Bearer" in refusal(answer, 401, None)
            assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/models", headers={"authorization": "Bearer open sesame"}).status_code == 200
    assert client.get("/models", headers={"authorization": "bearer open sesame"}).status_code == 200
    assert client.get("/models", headers={"authorization": b"Bearer \xff\xfe"}).status_code == 401


def test_requests_from_other_sites_are_refused(client: Any) -> None:
    assert client.get("/health", headers={"origin": "http://localhost"}).status_code == 200
    for origin in ("http://evil.example", "null", "http://localhost:9000", "http://[", ""):
        refusal(client.get("/health", headers={"origin": origin}), 403, None)


def test_a_foreign_host_name_is_refused(make: Any, over: Any) -> None:
    client = over(make(hosts=frozenset({"localhost", "127.0.0.1", "::1"})))
    for host, status in (("localhost:80", 200), ("127.0.0.1", 200), ("[::1]:8000", 200), ("evil.example", 403)):
        assert client.get("/health", headers={"host": host}).status_code == status
    assert client.get("/health", headers={"host": "[::1"}).status_code == 400


@pytest.mark.parametrize(
    "host", ["evil.example@localhost", "localhost@evil.example", "localhost/", "local host", "localhost:", "a:b:c", ""]
)
def test_a_host_that_is_not_a_plain_name_is_refused(make: Any, over: Any, host: str) -> None:
    for limits in ({"hosts": frozenset({"localhost"})}, {}):
        refusal(over(make(**limits)).get("/health", headers={"host": host}), 400, None)


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-length", "content-type"])
def test_a_header_that_decides_must_be_sent_once(make: Any, listen: Any, name: str) -> None:
    values = {"host": "localhost", "origin": "http://localhost", "content-length": "0"}
    line = f"{name}: {values.get(name, 'x')}\r\n"
    lines = line * 2 if name == "host" else f"host: localhost\r\n{line * 2}"
    with listen(make(hosts=frozenset({"localhost"}))) as (_, url):
        place, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((place, int(port)), timeout=20) as connection:
            connection.sendall(f"GET /health HTTP/1.1\r\n{lines}\r\n".encode())
            assert b" 400 " in connection.recv(4096)


def test_a_server_error_reveals_no_internals(make: Any, over: Any, desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **more: Any) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(running, "entering", fail)
    answer = over(make()).post("/explain", {"table": desk.columns()})
    assert "see the log of the service" in refusal(answer, 500, None)
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_every_answer_has_the_security_headers(client: Any) -> None:
    for path in ("/health", "/nowhere", "/tables/nowhere/moments"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_unknown_paths_and_methods_are_refused(client: Any) -> None:
    assert "GET /nowhere" in refusal(client.get("/nowhere"), 404, None)
    assert client.ask("DELETE", "/explain").status_code == 405
