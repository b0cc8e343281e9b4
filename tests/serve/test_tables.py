"""Tables that are kept: taken in, listed, forgotten in turn, and looked over as a whole."""

import gzip
import io
import json
from concurrent.futures import CancelledError
from threading import Event
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from ibforecast import demo_table
from ibforecast.serve.history import history


def as_parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.assign(when=pd.to_datetime(frame["when"])).to_parquet(buffer)
    return buffer.getvalue()


def test_an_upload_may_be_csv_gzipped_or_parquet(client: Any, desk: Any) -> None:
    text = desk.table.read_bytes()
    for content in (text, gzip.compress(text, mtime=0), as_parquet(desk.frame)):
        answer = client.post("/tables?name=my%20table.csv", content=content)
        assert answer.status_code == 201
        table = answer.json()["table"]
        assert (table["name"], table["kind"], table["rows"]) == ("my table.csv", "upload", 400)
        assert table["channels"] == ["load", "wind", "heat"]
        assert (table["first"], table["last"], table["frequency"]) == ("2023-01-01 00:00", "2023-01-17 15:00", "1h")
        assert answer.json()["models"] == {"town": None}
        explained = client.post("/explain", {"table": table["id"]}).json()["explanations"][0]
        assert explained["forecast"] == desk.model().explain(desk.table).forecast.tolist()


def test_a_table_sent_as_columns_or_as_rows_is_read_as_the_library_reads_it(client: Any, desk: Any) -> None:
    hours = pd.date_range("2023-01-01", periods=1100, freq="h").strftime("%Y-%m-%d %H:%M").tolist()
    large = {name: (cells * 3)[:1100] for name, cells in desk.columns().items()} | {"when": hours}
    small = {name: cells[:60] for name, cells in large.items()}
    for columns in (small, large):
        expected = json.loads(desk.model().explain(pd.DataFrame(columns)).to_json())
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        for table in (columns, rows):
            assert client.post("/explain", {"table": table}).json()["explanations"] == [expected]


def test_rows_with_few_names_in_common_are_refused_before_they_become_a_table(client: Any) -> None:
    rows = [{f"k{number}": 1} for number in range(4000)]
    answer = client.post("/explain", {"table": rows})
    assert (answer.status_code, answer.json()["field"]) == (413, "table")
    assert "must be at most 8388608 (got 4000 rows of 4000 names)" in answer.json()["error"]
    assert "rows with the same names" in answer.json()["hint"]


def test_rows_may_leave_out_what_is_missing(client: Any, desk: Any) -> None:
    columns = desk.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    sparse = [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
    assert sparse != rows
    whole, left_out = (client.post("/explain", {"table": table}).json()["explanations"] for table in (rows, sparse))
    assert left_out == whole


def test_the_same_content_has_the_same_name(client: Any, desk: Any) -> None:
    one, again = (client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"] for _ in range(2))
    assert one == again


def test_an_upload_that_no_model_reads_is_kept_and_says_why(both: Any) -> None:
    text = "date,a\n" + "".join(f"2020-01-{day:02},{day}\n" for day in range(1, 29))
    answer = both.post("/tables", content=text)
    assert answer.status_code == 201
    assert set(answer.json()["models"]) == {"town", "dial"}
    assert "must be in the table" in answer.json()["models"]["town"]
    refused = both.post("/explain", {"model": "town", "table": answer.json()["table"]["id"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "table")


@pytest.mark.parametrize(
    ("content", "answered"),
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
def test_a_broken_upload_is_refused_in_the_librarys_own_words(client: Any, content: bytes, answered: str) -> None:
    answer = client.post("/tables?name=../../etc/broken.csv", content=content)
    assert answer.status_code == 422
    assert answer.json()["field"] == "body"
    assert answered in answer.json()["error"]
    assert "/" not in answer.json()["error"]


def test_a_table_that_unpacks_to_too_much_is_refused_before_it_is(make: Any, over: Any) -> None:
    client = over(make(max_unpacked=100_000))
    bomb = gzip.compress(b"date,a\n" + b"2020-01-01,1\n" * 1_000_000, mtime=0)
    assert len(bomb) < 50_000
    long = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=50_000, freq="h"), "a": np.zeros(50_000)})
    for content in (bomb, as_parquet(long)):
        answer = client.post("/tables", content=content)
        assert answer.status_code == 413
        assert "at most 100000 bytes when unpacked" in answer.json()["error"]


def parquet_of(columns: dict[str, Any], **settings: Any) -> bytes:
    rows = len(next(iter(columns.values())))
    when = pd.date_range("2020-01-01", periods=rows, freq="h")
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"when": when, "a": np.zeros(rows)} | columns), buffer, **settings)
    return buffer.getvalue()


TEXT = pa.array(["x" * 1000] * 1000)
REPEATED = {
    "text": TEXT,
    "text of a long kind": TEXT.cast(pa.large_string()),
    "bytes": TEXT.cast(pa.binary()),
    "a category": TEXT.dictionary_encode(),
    "bytes of one length": TEXT.cast(pa.binary()).cast(pa.binary(1000)),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_text_that_parquet_stores_once_counts_as_often_as_it_is_there(make: Any, over: Any, kind: str) -> None:
    content = parquet_of({"note.s": REPEATED[kind]})
    assert len(content) < 20_000
    answer = over(make(max_unpacked=900_000)).post("/tables", content=content)
    assert (answer.status_code, answer.json()["field"]) == (413, "body")
    assert "at most 900000 bytes when unpacked" in answer.json()["error"]


def test_text_that_fits_is_no_hindrance(make: Any, over: Any, desk: Any) -> None:
    frame = desk.frame.assign(note=["x" * 1000, None] * 200)
    answer = over(make(max_unpacked=300_000)).post("/tables", content=as_parquet(frame))
    assert (answer.status_code, answer.json()["models"]) == (201, {"town": None})
    buffer = io.BytesIO()
    desk.frame.to_parquet(buffer, row_group_size=100)  # its times as text, in several groups
    answer = over(make(max_unpacked=300_000)).post("/tables", content=buffer.getvalue())
    assert (answer.status_code, answer.json()["models"]) == (201, {"town": None})


def test_parquet_of_unknown_size_is_refused(client: Any) -> None:
    prefixed = {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}}
    for content, answered in (
        (parquet_of({"note": pa.array([[0.0] * 1000] * 50)}), "lists or structs in 'note.list.element'"),
        (parquet_of({"note": pa.array([{"inner": "x"}] * 50)}), "lists or structs in 'note.inner'"),
        (parquet_of({"note": pa.array(["1"] * 50, pa.json_())}), "got extension<arrow.json> in 'note'"),
        (parquet_of({"note": TEXT}, **prefixed), "its text plain or as a dictionary"),
    ):
        answer = client.post("/tables", content=content)
        assert (answer.status_code, answer.json()["field"]) == (422, "body")
        assert answered in answer.json()["error"]


def test_parquet_with_a_name_twice_is_refused(client: Any) -> None:
    buffer = io.BytesIO()
    parquet.write_table(pa.table([TEXT, TEXT], names=["note", "note"]), buffer)
    answer = client.post("/tables", content=buffer.getvalue())
    assert answer.status_code == 422
    assert "names must differ (got 'note' more than once)" in answer.json()["error"]


def test_the_upload_unused_longest_makes_room(make: Any, over: Any, desk: Any) -> None:
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
    gone = client.get(f"/tables/{second}/moments")
    assert gone.status_code == 404
    assert "upload it to /tables" in gone.json()["hint"]


def test_the_list_ends_with_the_demo(client: Any) -> None:
    last = client.get("/tables").json()["tables"][-1]
    assert (last["id"], last["kind"]) == ("demo", "demo")
    assert last["channels"] == list(demo_table().series.channels)


def test_a_name_that_could_be_a_path_is_never_read(client: Any, desk: Any) -> None:
    for path in (str(desk.table), "table.csv", "../town/model.json"):
        refused = client.post("/explain", {"table": path})
        assert (refused.status_code, refused.json()["field"]) == (422, "table")
        assert "must be kept by the service" in refused.json()["error"]


def test_the_moments_that_can_be_explained_are_listed(client: Any, desk: Any) -> None:
    kept = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    answered = client.get(f"/tables/{kept}/moments?model=town&list=true").json()
    assert (answered["first"], answered["last"], answered["step"]) == ("2023-01-02 23:00", "2023-01-17 15:00", "1h")
    assert (answered["count"], answered["unreadable"]) == (353, 0)
    assert answered["moments"] == desk.frame["when"][47:].tolist()
    assert client.get(f"/tables/{kept}/moments").json()["moments"] is None
    first = client.post("/explain", {"table": kept, "at": [answered["first"], answered["last"]]})
    assert first.status_code == 200


def test_moments_in_a_long_gap_are_left_out(client: Any, desk: Any) -> None:
    frame = desk.frame
    frame.loc[100:160, "heat"] = np.nan
    kept = client.post("/tables", content=frame.to_csv(index=False)).json()["table"]["id"]
    answered = client.get(f"/tables/{kept}/moments?list=true").json()
    assert answered["unreadable"] == 61 - 47
    assert answered["count"] == 353 - 14
    lost = frame["when"][150]
    assert lost not in answered["moments"]
    assert client.post("/explain", {"table": kept, "at": lost}).status_code == 422
    assert client.post("/explain", {"table": kept, "at": frame["when"][146]}).status_code == 200


def test_a_table_without_a_window_is_refused(client: Any, desk: Any) -> None:
    lines = desk.table.read_text().splitlines()[:30]
    kept = client.post("/tables", content="\n".join(lines)).json()["table"]["id"]
    for page in ("moments", "history"):
        refused = client.get(f"/tables/{kept}/{page}")
        assert refused.status_code == 422
        assert "look_back = 48 rows" in refused.json()["error"]


def test_a_history_tells_how_often_gates_open_and_how_errors_run(client: Any, desk: Any) -> None:
    kept = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    answered = client.get(f"/tables/{kept}/history?windows=20").json()
    assert (answered["windows"], answered["available"]) == (20, 353)
    assert (answered["moments"][0], answered["moments"][-1]) == ("2023-01-02 23:00", "2023-01-17 15:00")
    model = desk.model()
    explained = [model.explain(desk.table, at) for at in answered["moments"]]
    masks = np.mean([explanation.mask for explanation in explained], axis=0)
    assert np.allclose(answered["open_frequency"], masks)
    assert np.allclose(answered["open_rate"], [explanation.open_rate for explanation in explained])
    errors = [
        np.nanmean(((explanation.forecast - explanation.truth) / explanation.units.std) ** 2)
        for explanation in explained[:-1]
    ]
    assert np.allclose(answered["squared_error"][:-1], errors, rtol=1e-4)
    assert answered["squared_error"][-1] is None
    assert answered["absolute_error"][-1] is None
    assert answered == client.get(f"/tables/{kept}/history?windows=20").json()


def test_a_history_nobody_waits_for_ends_early(service: Any, desk: Any) -> None:
    model = service.models.get("town")
    stopped = Event()
    stopped.set()
    with pytest.raises(CancelledError):
        history(model, "mine", model.open(desk.frame), 20, stopped)
