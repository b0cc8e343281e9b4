"""Arrow in both directions: the numbers are those of the JSON way, and a stream cannot unpack to more than allowed."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

from ibforecast import ExplainedForecast
from ibforecast.core import document
from ibforecast.serve.arrow import STREAM

MOMENTS = ["2023-01-10 05:00", "2023-01-12 17:00", "2023-01-17 15:00"]
HEADERS = {"content-type": STREAM}


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def body(desk: Any) -> bytes:
    return stream(pa.table(desk.columns()))


def read(answer: Any) -> pa.Table:
    assert (answer.status_code, answer.headers["content-type"]) == (200, STREAM), answer.text
    return ipc.open_stream(answer.content).read_all()


def arrays(table: pa.Table, name: str, rows: int) -> np.ndarray:
    """Return a column of lists as an array: moment, row, column."""
    return table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(table), rows, -1)


def test_forecasts_from_arrow_are_those_from_json(client: Any, desk: Any, body: bytes) -> None:
    plain = client.post("/forecast", {"table": desk.columns(), "at": MOMENTS}).json()
    query = "&".join(f"at={moment}" for moment in MOMENTS)
    assert client.post(f"/forecast?{query}", content=body, headers=HEADERS).json() == plain
    lean = read(client.post(f"/forecast?form=arrow&{query}", content=body, headers=HEADERS))
    assert lean["at"].to_pylist() == MOMENTS
    values = [forecast["values"] for forecast in plain["forecasts"]]
    assert np.array_equal(arrays(lean, "forecast", 12), np.array(values))
    assert read(client.post("/forecast?form=arrow", {"table": desk.columns(), "at": MOMENTS})).equals(lean)


def test_a_lean_explanation_has_the_arrays_of_the_document(client: Any, desk: Any, body: bytes) -> None:
    answers = client.post("/explain", {"table": desk.columns(), "at": MOMENTS}).json()["explanations"]
    documents = [ExplainedForecast.from_json(json.dumps(answer)) for answer in answers]
    query = "&".join(f"at={moment}" for moment in MOMENTS)
    lean = read(client.post(f"/explain?form=arrow&model=town&{query}", content=body, headers=HEADERS))
    patches = len(documents[0].mask)
    for name, rows in (("forecast", 12), ("mask", patches), ("evidence", 48), ("level", 1), ("scale", 1)):
        expected = np.array([getattr(one, name) for one in documents])
        got = arrays(lean, name, rows).reshape(expected.shape)
        assert got.dtype == expected.dtype
        assert np.array_equal(got, expected), name
    meta = {key.decode(): value.decode() for key, value in lean.schema.metadata.items()}
    assert meta["weights_sha256"] == documents[0].weights_sha256
    assert json.loads(meta["channels"]) == ["load", "wind", "heat"]
    assert (meta["model"], meta["look_back"], meta["horizon"]) == ("town", "48", "12")
    assert int(meta["patch_len"]) * patches == 48
    for fingerprint, one in zip(lean["window_sha256"].to_pylist(), documents, strict=True):
        window = {"channels": list(one.channels), "history": one.history, "times": list(one.times[:48])}
        assert document.fingerprint(window) == fingerprint


def test_fields_of_an_arrow_request_are_checked_like_those_of_json(client: Any, body: bytes) -> None:
    for query, field in (("budget=7", "budget"), ("budget=x", "budget"), ("model=none", "model"), ("at=never", "at")):
        refused = client.post(f"/forecast?{query}", content=body, headers=HEADERS)
        assert (refused.status_code, refused.json()["field"]) == (422, field)


def test_a_stream_that_is_damaged_compressed_or_nested_is_refused(client: Any, desk: Any, body: bytes) -> None:
    columns = pa.table(desk.columns())
    nested = columns.set_column(1, "load", pa.array([[1.0]] * 400))
    repeated = columns.set_column(1, "load", pa.array(["x"] * 400).dictionary_encode())
    cases = {
        "whole and well formed": [b"", b"x" * 100, body[: len(body) // 2], body[:-300]],
        "must not be compressed": [stream(columns, compression=kind) for kind in ("zstd", "lz4")],
        "must hold numbers, times or text": [stream(nested), stream(repeated)],
    }
    for words, contents in cases.items():
        for content in contents:
            refused = client.post("/forecast", content=content, headers=HEADERS)
            assert refused.status_code == 422, words
            assert words in refused.json()["error"]


def test_a_stream_that_is_larger_than_its_body_is_refused(make: Any, over: Any, body: bytes) -> None:
    refused = over(make(max_unpacked=5000)).post("/forecast", content=body, headers=HEADERS)
    assert (refused.status_code, refused.json()["field"]) == (413, "body")


def test_a_name_that_is_not_utf8_is_refused(client: Any, body: bytes) -> None:
    names = json.dumps(ipc.open_stream(body).schema.names)
    spoilt = body.replace(b"load", b"lo\xd2d")
    assert spoilt != body, names
    answer = client.post("/forecast", content=spoilt, headers=HEADERS)
    assert answer.status_code == 422, answer.text
    assert "must be whole and well formed" in answer.text


def test_forecasts_of_many_clients_at_once_are_those_of_the_library_bit_for_bit(
    desk: Any, make: Any, over: Any
) -> None:
    service = make()
    model, moments = desk.model(), desk.frame["when"][60::7].tolist()[:40]
    body = stream(pa.table(desk.columns()))
    asked = [("POST", f"/forecast?form=arrow&at={at}", {"content": body, "headers": HEADERS}) for at in moments]
    several = "&".join(f"at={at}" for at in moments[:11])
    asked.append(("POST", f"/explain?form=arrow&{several}", {"content": body, "headers": HEADERS}))
    *answers, many = [read(answer) for answer in over(service).together(*asked)]
    expected = [model.explain(desk.table, at) for at in moments]
    assert any(own.at.endswith("00:00") for own in expected), "alone, this label would have no time of day"
    for answer, own in zip(answers, expected, strict=True):
        assert answer["at"].to_pylist() == [own.at]
        assert arrays(answer, "forecast", 12).tobytes() == own.forecast.tobytes()
    for name, rows in (("forecast", 12), ("evidence", 48), ("level", 1)):
        assert arrays(many, name, rows).tobytes() == b"".join(getattr(own, name).tobytes() for own in expected[:11])
    counted = service.metrics.registry.get_sample_value
    assert counted("ibforecast_batch_windows_count") < counted("ibforecast_windows_total", {"model": "town"}) == 51


def test_a_small_table_without_moments_is_read_and_refused_like_any_other(client: Any, desk: Any, body: bytes) -> None:
    whole = desk.columns()
    for columns, status in ((whole, 200), ({name: cells for name, cells in whole.items() if name != "wind"}, 422)):
        for path in ("forecast", "explain"):
            sent = client.post(f"/{path}", content=stream(pa.table(columns)), headers=HEADERS)
            assert (sent.status_code, sent.json()) == (status, client.post(f"/{path}", {"table": columns}).json())
            assert sent.json().get("field") == (None if status == 200 else "table")


def test_refusals_of_a_lean_request_are_those_of_any_other(client: Any, body: bytes, make: Any, over: Any) -> None:
    for query, sent in (
        ("at=2031-01-01", body),
        ("at=yesterday", body),
        ("model=none", body),
        ("budget=2", body),
        ("budget=0.5", body),
        ("", body[:-40]),
        ("", b""),
    ):
        answers = [
            client.post(f"/{path}?form=arrow&{query}", content=sent, headers={"content-type": kind})
            for path in ("forecast", "explain")
            for kind in (STREAM, STREAM.upper())
        ]
        answers.append(client.post(f"/explain?{query}", content=sent, headers=HEADERS))
        assert len({(answer.status_code, answer.text) for answer in answers}) == 1, query
        assert answers[0].status_code == 422
    locked = over(make(token="a long secret"))
    assert locked.post("/forecast?form=arrow", content=body, headers=HEADERS).status_code == 401


def test_lean_requests_are_counted_by_route(make: Any, over: Any, body: bytes) -> None:
    service = make()
    assert over(service).post("/forecast?form=arrow", content=body, headers=HEADERS).status_code == 200
    counted = service.metrics.registry.get_sample_value
    assert counted("ibforecast_requests_total", {"route": "/forecast", "status": "200"}) == 1
