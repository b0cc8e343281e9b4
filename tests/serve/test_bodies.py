"""Large bodies: they are read off the event loop, and their size is limited before anything is built from them."""

import io
import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from ibforecast.core.document import parse as parse_document
from ibforecast.core.errors import DataError
from ibforecast.data.limits import MOST_COLUMNS
from ibforecast.serve import bodies, intake, wire

JSON = {"content-type": "application/json"}


def padded(document: dict[str, Any], size: int = 2 * bodies.SMALL) -> bytes:
    """Return a document as JSON of at least a given size."""
    return json.dumps(document).encode() + b" " * size


def refusal(answer: Any, status: int, field: str) -> str:
    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.text
    return str(answer.json()["error"])


def test_the_service_answers_while_it_reads_a_large_body(
    make: Any, desk: Any, listen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slowly(*arguments: Any) -> Any:
        begun.set()
        assert may_end.wait(20), "nothing else was answered in the meantime"
        return bodies.parse(*arguments)

    monkeypatch.setattr(intake, "parse", slowly)
    with listen(make()) as (_, url), ThreadPoolExecutor(1) as threads:
        body = padded({"table": desk.columns()})
        pending = threads.submit(httpx.post, f"{url}/explain", content=body, headers=JSON, timeout=60)
        assert begun.wait(20)
        assert httpx.get(f"{url}/health", timeout=10).status_code == 200
        assert httpx.get(f"{url}/models", timeout=10).status_code == 200
        assert not pending.done()
        may_end.set()
        assert pending.result().status_code == 200


def test_a_large_body_is_read_like_a_small_one(client: Any, desk: Any) -> None:
    question = {"table": desk.columns(), "at": "2023-01-10 05:00"}
    small, large = (
        client.post("/explain", content=body, headers=JSON) for body in (json.dumps(question), padded(question))
    )
    assert small.status_code == large.status_code == 200
    assert small.content == large.content
    text = large.json()["explanations"][0]
    assert client.post("/verify", content=padded({"explanation": text}), headers=JSON).json()["verified"]


def test_a_table_of_too_many_columns_is_refused_in_every_form(client: Any) -> None:
    names = [f"c{number}" for number in range(MOST_COLUMNS + 1)]
    line = ",".join(names)
    quoted = ",".join(f'"{name}\n"' for name in names)
    for table in (
        {name: [1] for name in names},
        dict.fromkeys(names, 1),
        [dict.fromkeys(names, 1)],
        [{name: 1} for name in names],
    ):
        assert f"at most {MOST_COLUMNS} columns" in refusal(client.post("/explain", {"table": table}), 413, "table")
    for text in (f"{line}\n", f"{quoted}\n", line.replace(",", ";") + "\n"):
        assert f"at most {MOST_COLUMNS} columns" in refusal(client.post("/explain", {"table": text}), 413, "body")
        assert f"at most {MOST_COLUMNS} columns" in refusal(client.post("/tables", content=text), 413, "body")
    file = io.BytesIO()
    parquet.write_table(pa.table({name: [1] for name in names}), file)
    assert f"at most {MOST_COLUMNS} columns" in refusal(client.post("/tables", content=file.getvalue()), 413, "body")


def test_a_future_of_too_many_columns_is_refused(client: Any, desk: Any) -> None:
    future = {f"c{number}": [1] for number in range(MOST_COLUMNS + 1)}
    refusal(client.post("/explain", {"table": desk.columns(), "future": future}), 413, "future")


def test_a_body_of_too_many_lists_is_refused_before_it_is_read(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_loosely", lambda body: pytest.fail("the body was read"))
    body = b'{"table":[' + b"{}," * bodies.MOST_NESTED + b"{}]}"
    refusal(client.post("/explain", content=body, headers=JSON), 413, "body")


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (wire.AboutTable, {"table": [1] * 1000}),
        (wire.Scramble, {"explanation": "", "values": [["x"] * 1000] * 1000}),
        (wire.WhatIf, {"explanation": "", "mask": [[7] * 1000] * 1000}),
        (wire.WhatIf, {"explanation": "", "evidence": [{}] * 1000}),
    ],
    ids=["table", "values", "mask", "evidence"],
)
def test_the_first_invalid_entry_of_a_list_ends_its_validation(kind: Any, document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(document)
    assert caught.value.error_count() <= 3  # one for each form that a table may have


def test_of_many_unknown_fields_the_first_is_named(client: Any) -> None:
    document = {"table": "demo"} | {f"unknown {number}": 1 for number in range(5000)}
    refusal(client.post("/explain", document), 422, "unknown 0")


def test_a_repeated_key_among_many_is_found_soon() -> None:
    names = [f'"{number}":0' for number in range(100_000)]
    begun = time.perf_counter()
    parse_document("{" + ",".join(names) + "}")
    single = time.perf_counter() - begun
    begun = time.perf_counter()
    with pytest.raises(DataError, match="'99999' twice"):
        parse_document("{" + ",".join([*names, names[-1]]) + "}")
    assert time.perf_counter() - begun < 30 * single + 1


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/xml", "application/jsonlines"])
def test_a_body_that_is_not_said_to_be_json_is_refused(client: Any, desk: Any, content_type: str) -> None:
    body = json.dumps({"table": desk.columns()})
    answer = client.post("/explain", content=body, headers={"content-type": content_type})
    assert "body must be JSON" in refusal(answer, 422, "body")


def test_the_description_names_every_body(client: Any) -> None:
    described = client.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    for path, name in (("/explain", "AboutTable"), ("/replay", "WhatIf"), ("/models/reload", "Reload")):
        schema = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": f"#/components/schemas/{name}"}
        assert schemas[name]["type"] == "object"
    assert "Edit" in schemas
    assert "$defs" not in json.dumps(described)


def test_a_service_that_reads_a_large_body_stops_soon(desk: Any, command: Any) -> None:
    row = {"when": "2023-01-01 00:00", "load": 1.5, "wind": 2.5, "heat": 3.5}
    body = json.dumps({"table": [row] * 150_000}).encode()
    with command(str(desk.town)) as (process, url), ThreadPoolExecutor(1) as threads:
        pending = threads.submit(httpx.post, f"{url}/explain", content=body, headers=JSON, timeout=60)
        while "requests_in_flight 2.0\n" not in httpx.get(f"{url}/metrics", timeout=30).text and not pending.done():
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0
        assert pending.result().status_code == 422
