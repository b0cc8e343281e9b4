"""Tables of the service: upload, list, removal, moments and history."""

import gzip
import io
import json
import shutil
from concurrent.futures import CancelledError
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from ibforecast import demo_table
from ibforecast.cli.serve import command as serve_command
from ibforecast.core.errors import DataError, UsageError
from ibforecast.serve.history import history
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings


def as_parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.assign(when=pd.to_datetime(frame["when"])).to_parquet(buffer)
    return buffer.getvalue()


def test_an_upload_may_be_csv_gzip_or_parquet(client: Any, desk: Any) -> None:
    text = desk.table.read_bytes()
    for content in (text, gzip.compress(text, mtime=0), as_parquet(desk.frame)):
        response = client.post("/tables?name=my%20table.csv", content=content)
        assert response.status_code == 201
        table = response.json()["table"]
        assert (table["name"], table["kind"], table["rows"]) == ("my table.csv", "upload", 400)
        assert table["channels"] == ["load", "wind", "heat"]
        assert (table["first"], table["last"], table["frequency"]) == ("2023-01-01 00:00", "2023-01-17 15:00", "1h")
        assert response.json()["models"] == {"town": None}
        explained = client.post("/explain", {"table": table["id"]}).json()["explanations"][0]
        assert explained["forecast"] == desk.model().explain(desk.table).forecast.tolist()


def test_a_table_sent_as_columns_or_rows_is_read_like_a_data_frame(client: Any, desk: Any) -> None:
    hours = pd.date_range("2023-01-01", periods=1100, freq="h").strftime("%Y-%m-%d %H:%M").tolist()
    large = {name: (cells * 3)[:1100] for name, cells in desk.columns().items()} | {"when": hours}
    small = {name: cells[:60] for name, cells in large.items()}
    for columns in (small, large):
        expected = json.loads(desk.model().explain(pd.DataFrame(columns)).to_json())
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for table in (columns, rows):
            assert client.post("/explain", {"table": table}).json()["explanations"] == [expected]


def test_rows_with_few_common_names_are_refused_before_a_table_is_made(client: Any) -> None:
    rows = [{f"k{number}": 1} for number in range(4000)]
    response = client.post("/explain", {"table": rows})
    assert (response.status_code, response.json()["field"]) == (413, "table")
    assert "must be at most 8388608 (got 4000 rows of 4000 names)" in response.json()["error"]
    assert "rows with the same names" in response.json()["hint"]


def test_rows_may_leave_out_missing_values(client: Any, desk: Any) -> None:
    columns = desk.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    sparse = [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
    assert sparse != rows
    whole, left_out = (client.post("/explain", {"table": table}).json()["explanations"] for table in (rows, sparse))
    assert left_out == whole


def test_the_same_content_has_the_same_identifier(client: Any, desk: Any) -> None:
    one, again = (client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"] for _ in range(2))
    assert one == again


def test_an_upload_that_no_model_can_read_is_kept_with_the_reasons(both: Any) -> None:
    text = "date,a\n" + "".join(f"2020-01-{day:02},{day}\n" for day in range(1, 29))
    response = both.post("/tables", content=text)
    assert response.status_code == 201
    assert set(response.json()["models"]) == {"town", "dial"}
    assert "must be in the table" in response.json()["models"]["town"]
    refusal = both.post("/explain", {"model": "town", "table": response.json()["table"]["id"]})
    assert (refusal.status_code, refusal.json()["field"]) == (422, "table")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be whole and well formed"),
        (b"a,b\n1,2\n", "must have a time column"),
        (b"date,a\n2020-01-01,1\n2020-01-02,x\n2020-01-03,3\n", "(got row 1: 'x' at 2020-01-02 00:00 in 'a')"),
        (b"PAR1 and so on", "a .parquet file must be whole"),
        (gzip.compress(b"date,a\n", mtime=0)[:-9], "cut off"),
        (b"\x1f\x8b\x08nonsense", "a gzip file must be whole"),
        (b"\x00\x01\x02\x03", ""),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_an_invalid_upload_is_refused_with_the_message_of_the_library(
    client: Any, content: bytes, message: str
) -> None:
    response = client.post("/tables?name=../../etc/broken.csv", content=content)
    assert response.status_code == 422
    assert response.json()["field"] == "body"
    assert message in response.json()["error"]
    assert "/" not in response.json()["error"]


def test_a_table_that_is_too_large_unpacked_is_refused_before_unpacking(make: Any, over: Any) -> None:
    client = over(make(max_unpacked=100_000))
    bomb = gzip.compress(b"date,a\n" + b"2020-01-01,1\n" * 1_000_000, mtime=0)
    assert len(bomb) < 50_000
    long = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=50_000, freq="h"), "a": np.zeros(50_000)})
    for content in (bomb, as_parquet(long)):
        response = client.post("/tables", content=content)
        assert response.status_code == 413
        assert "at most 100000 bytes when unpacked" in response.json()["error"]


def parquet_of(columns: dict[str, Any], **settings: Any) -> bytes:
    rows = len(next(iter(columns.values())))
    when = pd.date_range("2020-01-01", periods=rows, freq="h")
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"when": when, "a": np.zeros(rows)} | columns), buffer, **settings)
    return buffer.getvalue()


TEXT = pa.array(["x" * 1000] * 1000)
REPEATED = {
    "text": TEXT,
    "large text": TEXT.cast(pa.large_string()),
    "bytes": TEXT.cast(pa.binary()),
    "a category": TEXT.dictionary_encode(),
    "bytes of one length": TEXT.cast(pa.binary()).cast(pa.binary(1000)),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_repeated_text_in_parquet_counts_at_its_unpacked_size(make: Any, over: Any, kind: str) -> None:
    content = parquet_of({"note.s": REPEATED[kind]})
    assert len(content) < 20_000
    response = over(make(max_unpacked=900_000)).post("/tables", content=content)
    assert (response.status_code, response.json()["field"]) == (413, "body")
    assert "at most 900000 bytes when unpacked" in response.json()["error"]


def test_text_within_the_limit_is_accepted(make: Any, over: Any, desk: Any) -> None:
    frame = desk.frame.assign(note=["x" * 1000, None] * 200)
    response = over(make(max_unpacked=300_000)).post("/tables", content=as_parquet(frame))
    assert (response.status_code, response.json()["models"]) == (201, {"town": None})
    buffer = io.BytesIO()
    desk.frame.to_parquet(buffer, row_group_size=100)  # times as text, in several row groups
    response = over(make(max_unpacked=300_000)).post("/tables", content=buffer.getvalue())
    assert (response.status_code, response.json()["models"]) == (201, {"town": None})


def test_parquet_of_unknown_size_is_refused(client: Any) -> None:
    prefixed = {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}}
    for content, message in (
        (parquet_of({"note": pa.array([[0.0] * 1000] * 50)}), "lists or structs in 'note.list.element'"),
        (parquet_of({"note": pa.array([{"inner": "x"}] * 50)}), "lists or structs in 'note.inner'"),
        (parquet_of({"note": pa.array(["1"] * 50, pa.json_())}), "got extension<arrow.json> in 'note'"),
        (parquet_of({"note": TEXT}, **prefixed), "its text plain or as a dictionary"),
    ):
        response = client.post("/tables", content=content)
        assert (response.status_code, response.json()["field"]) == (422, "body")
        assert message in response.json()["error"]


def test_parquet_with_a_repeated_name_is_refused(client: Any) -> None:
    buffer = io.BytesIO()
    parquet.write_table(pa.table([TEXT, TEXT], names=["note", "note"]), buffer)
    response = client.post("/tables", content=buffer.getvalue())
    assert response.status_code == 422
    assert "names must differ (got 'note' more than once)" in response.json()["error"]


def test_the_least_recently_used_upload_is_removed_first(make: Any, over: Any, desk: Any) -> None:
    client = over(make(max_tables=2))
    text = desk.table.read_text()

    def upload(rows: int) -> str:
        lines = text.splitlines()[: rows + 1]
        return str(client.post("/tables", content="\n".join(lines) + "\n").json()["table"]["id"])

    first, second = upload(100), upload(101)
    assert client.get(f"/tables/{first}/moments").status_code == 200
    third = upload(102)
    listed = [table["id"] for table in client.get("/tables").json()["tables"] if table["kind"] == "upload"]
    assert listed == [first, third]
    missing = client.get(f"/tables/{second}/moments")
    assert missing.status_code == 404
    assert "upload it to /tables" in missing.json()["hint"]


def test_the_list_ends_with_the_demo(client: Any) -> None:
    last = client.get("/tables").json()["tables"][-1]
    assert (last["id"], last["kind"]) == ("demo", "demo")
    assert last["channels"] == list(demo_table().series.channels)


def test_a_path_is_never_read_as_a_table(client: Any, desk: Any) -> None:
    for path in (str(desk.table), "table.csv", "../town/model.json"):
        refusal = client.post("/explain", {"table": path})
        assert (refusal.status_code, refusal.json()["field"]) == (422, "table")
        assert "must be kept by the service" in refusal.json()["error"]


def test_the_moments_that_can_be_explained_are_listed(client: Any, desk: Any) -> None:
    table_id = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    body = client.get(f"/tables/{table_id}/moments?model=town&list=true").json()
    assert (body["first"], body["last"], body["step"]) == ("2023-01-02 23:00", "2023-01-17 15:00", "1h")
    assert (body["count"], body["unreadable"]) == (353, 0)
    assert body["moments"] == desk.frame["when"][47:].tolist()
    assert client.get(f"/tables/{table_id}/moments").json()["moments"] is None
    first = client.post("/explain", {"table": table_id, "at": [body["first"], body["last"]]})
    assert first.status_code == 200


def test_moments_in_a_long_gap_are_left_out(client: Any, desk: Any) -> None:
    frame = desk.frame
    frame.loc[100:160, "heat"] = np.nan
    table_id = client.post("/tables", content=frame.to_csv(index=False)).json()["table"]["id"]
    body = client.get(f"/tables/{table_id}/moments?list=true").json()
    assert body["unreadable"] == 61 - 47
    assert body["count"] == 353 - 14
    unreadable = frame["when"][150]
    assert unreadable not in body["moments"]
    assert client.post("/explain", {"table": table_id, "at": unreadable}).status_code == 422
    assert client.post("/explain", {"table": table_id, "at": frame["when"][146]}).status_code == 200


def test_a_table_without_a_window_is_refused(client: Any, desk: Any) -> None:
    lines = desk.table.read_text().splitlines()[:30]
    table_id = client.post("/tables", content="\n".join(lines)).json()["table"]["id"]
    for page in ("moments", "history"):
        refusal = client.get(f"/tables/{table_id}/{page}")
        assert refusal.status_code == 422
        assert "look_back = 48 rows" in refusal.json()["error"]


def test_a_history_contains_the_open_frequency_and_the_errors(client: Any, desk: Any) -> None:
    table_id = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    body = client.get(f"/tables/{table_id}/history?windows=20").json()
    assert (body["windows"], body["available"]) == (20, 353)
    assert (body["moments"][0], body["moments"][-1]) == ("2023-01-02 23:00", "2023-01-17 15:00")
    model = desk.model()
    explained = [model.explain(desk.table, at) for at in body["moments"]]
    masks = np.mean([explanation.mask for explanation in explained], axis=0)
    assert np.allclose(body["open_frequency"], masks)
    assert np.allclose(body["open_rate"], [explanation.open_rate for explanation in explained])
    errors = [
        np.nanmean(((explanation.forecast - explanation.truth) / explanation.units.std) ** 2)
        for explanation in explained[:-1]
    ]
    assert np.allclose(body["squared_error"][:-1], errors, rtol=1e-4)
    assert body["squared_error"][-1] is None
    assert body["absolute_error"][-1] is None
    assert body == client.get(f"/tables/{table_id}/history?windows=20").json()


def test_a_cancelled_history_ends_early(service: Any, desk: Any) -> None:
    model = service.models.get("town")
    stopped = Event()
    stopped.set()
    with pytest.raises(CancelledError):
        history(model, "mine", model.open(desk.frame), 20, stopped)


# --- Tables that the service is started with ---


def test_a_table_of_the_command_line_is_on_the_shelf_under_its_file_name(desk: Any, command: Any) -> None:
    with command(str(desk.town), str(desk.table)) as (_, url):
        first = httpx.get(f"{url}/tables").json()["tables"][0]
        assert (first["id"], first["name"], first["kind"], first["rows"]) == ("table.csv", "table.csv", "opened", 400)
        moments = httpx.get(f"{url}/tables/table.csv/moments").json()
        assert moments["last"] == first["last"] == desk.frame["when"].iloc[-1]
        answer = httpx.post(f"{url}/explain", json={"table": "table.csv"}, timeout=60)
        assert answer.json()["explanations"][0] == json.loads(desk.model().explain(desk.table).to_json())


def test_uploads_do_not_push_out_an_opened_table(desk: Any, over: Any) -> None:
    service = Service({"town": desk.town}, Settings(max_tables=1), [desk.table])
    try:
        client, lines = over(service), desk.table.read_text().splitlines(keepends=True)
        for rows in (100, 200):
            assert client.post("/tables", content="".join(lines[:rows])).status_code == 201
        assert [table["kind"] for table in client.get("/tables").json()["tables"]] == ["opened", "upload", "demo"]
        assert client.get("/tables/table.csv/moments").status_code == 200
    finally:
        service.close()


def test_a_table_that_no_model_can_read_is_refused_at_the_start(desk: Any, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("when,price\n2023-01-01,1\n2023-01-02,2\n")
    with pytest.raises(DataError, match=r"one that a model can read \(got other.csv: town: the channel 'load' must be"):
        Service({"town": desk.town}, Settings(), [other])


def test_two_tables_of_one_name_are_refused(desk: Any, tmp_path: Path) -> None:
    shutil.copy(desk.table, tmp_path / "table.csv")
    with pytest.raises(UsageError, match="different names"):
        Service({"town": desk.town}, Settings(), [desk.table, tmp_path / "table.csv"])


def test_serving_a_table_needs_a_model(desk: Any) -> None:
    with pytest.raises(UsageError, match="serve needs a model"):
        serve_command.main([str(desk.table)], standalone_mode=False)
