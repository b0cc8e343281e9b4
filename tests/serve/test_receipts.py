"""Receipts and drivers over HTTP: the numbers of the library, sums to the last digit, and refusals."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest

from ibforecast import ExplainedForecast, IBForecaster, receipts
from ibforecast.core.receipt import Amounts
from ibforecast.drivers import By
from ibforecast.plots.page import moment
from ibforecast.serve import bodies
from ibforecast.serve.receipts import EXPLANATIONS_KEPT
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings

HORIZON = 12
AT = "2023-01-15 11:00"


@pytest.fixture(scope="module")
def own(desk: Any) -> ExplainedForecast:
    return desk.model().explain(desk.table, AT)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def additive(desk: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed model with an additive readout, a channel that is not forecast and a covariate."""
    path = tmp_path_factory.mktemp("additive") / "model"
    model = IBForecaster(HORIZON, 48, epochs=1, recipe="additive", past=["wind"], future=["heat"], device="cpu")
    model.fit(desk.table).save(path)
    return path


@pytest.fixture(scope="module")
def itemised_by(desk: Any, additive: Path, over: Any) -> Iterator[Any]:
    service = Service({"additive": additive}, Settings())
    yield over(service)
    service.close()


def refusal(answer: Any, status: int, field: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    document: dict[str, Any] = answer.json()
    assert document["field"] == field
    return document


def assert_equal_to_the_librarys(receipt: dict[str, Any], own: ExplainedForecast) -> None:
    channel, step = receipt["channel"], receipt["step"]
    expected = own.itemised(channel, step)
    assert receipt["parts"] == [asdict(part) for part in expected.parts(own)]
    assert (receipt["forecast"], receipt["error"]) == (expected.forecast, expected.error)
    assert receipt["words"] == own.in_words(channel, step)


def test_receipts_of_a_document_and_of_a_table_are_those_of_the_library(
    client: Any, desk: Any, own: ExplainedForecast
) -> None:
    of_table = client.post("/receipts", {"table": desk.columns(), "at": AT, "channel": "wind", "step": 3}).json()
    of_document = client.post("/receipts", {"explanation": own.to_json(), "channel": "wind", "step": 3}).json()
    assert of_table == of_document
    assert (of_table["model"], of_table["at"], of_table["sha256"]) == ("town", AT, own.sha256)
    (receipt,) = of_table["receipts"]
    assert (receipt["channel"], receipt["step"]) == ("wind", 3)
    assert_equal_to_the_librarys(receipt, own)


def test_by_default_the_mean_of_every_channel_is_itemised(client: Any, own: ExplainedForecast) -> None:
    answer = client.post("/receipts", {"explanation": json.loads(own.to_json())}).json()
    assert [(each["channel"], each["step"]) for each in answer["receipts"]] == [(name, "mean") for name in own.channels]
    for receipt in answer["receipts"]:
        assert_equal_to_the_librarys(receipt, own)


@pytest.mark.parametrize("step", ["every", "mean"])
def test_amounts_add_up_to_the_last_digit_at_every_step_of_every_channel(
    client: Any, itemised_by: Any, desk: Any, additive: Path, step: str
) -> None:
    for service, model in ((client, desk.model()), (itemised_by, IBForecaster.load(additive))):
        for at in (AT, "2023-01-10 04:00"):
            answer = service.post("/receipts", {"table": desk.columns(), "at": at, "step": step})
            explained, listed = model.explain(desk.table, at), json.loads(answer.text, parse_float=Decimal)["receipts"]
            names = [name for name in explained.channels if name not in explained.past]
            assert len(listed) == len(names) * (HORIZON if step == "every" else 1)
            for receipt in listed:
                assert sum(part["amount"] for part in receipt["parts"]) == receipt["forecast"]
            for receipt in answer.json()["receipts"]:
                assert_equal_to_the_librarys(receipt, explained)


def test_a_budget_and_a_list_of_channels_can_be_sent(both: Any, desk: Any) -> None:
    question = {"model": "dial", "table": desk.columns(), "budget": 0.5, "channel": ["heat", "load", "heat"]}
    answer = both.post("/receipts", question).json()
    explained = IBForecaster.load(desk.dial).explain(desk.table, budget=0.5)
    assert [receipt["channel"] for receipt in answer["receipts"]] == ["heat", "load"]
    for receipt in answer["receipts"]:
        assert_equal_to_the_librarys(receipt, explained)
    again = both.post("/receipts", {"explanation": explained.to_json(), "channel": ["heat", "load"]}).json()
    assert again == answer


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"channel": "rain"}, "channel"),
        ({"channel": ["load", "rain"]}, "channel"),
        ({"channel": []}, "channel"),
        ({"channel": 7}, "channel"),
        ({"step": 0}, "step"),
        ({"step": HORIZON + 1}, "step"),
        ({"step": "median"}, "step"),
        ({"step": True}, "step"),
        ({"step": 1.5}, "step"),
        ({"table": None}, "explanation"),
        ({"explanation": "{}"}, "explanation"),
        ({"at": "2031-01-01"}, "at"),
        ({"budget": 0.5}, "budget"),
        ({"model": "village"}, "model"),
        ({"steps": 3}, "steps"),
    ],
)
def test_invalid_requests_are_refused_with_field_rule_value_and_remedy(
    client: Any, desk: Any, changes: dict[str, Any], field: str
) -> None:
    refused = refusal(client.post("/receipts", {"table": desk.columns()} | changes), 422, field)
    assert refused["hint"]
    assert "got" in refused["error"]


def test_a_moment_does_not_belong_to_a_document(client: Any, own: ExplainedForecast) -> None:
    refusal(client.post("/receipts", {"explanation": own.to_json(), "at": AT}), 422, "at")


def test_a_channel_that_is_not_forecast_has_no_receipt(itemised_by: Any, desk: Any) -> None:
    question = {"table": desk.columns(), "at": AT, "channel": "wind"}
    refused = refusal(itemised_by.post("/receipts", question), 422, "channel")
    assert "one that is forecast" in refused["error"]
    assert "'load'" in refused["hint"]


def test_an_altered_document_is_refused(client: Any, own: ExplainedForecast) -> None:
    document = json.loads(own.to_json())
    document["forecast"][0][0] += 1.0
    refused = refusal(client.post("/receipts", {"explanation": document}), 422, "explanation")
    assert "fingerprint" in refused["error"]


def test_an_altered_document_with_a_new_fingerprint_is_refused(client: Any, own: ExplainedForecast) -> None:
    forged = replace(own, forecast=own.forecast + own.units.std, host=None)
    assert ExplainedForecast.from_json(forged.to_json()).sha256 == forged.sha256
    refused = refusal(client.post("/receipts", {"explanation": forged.to_json()}), 422, "explanation")
    assert "must be true" in refused["error"]


def test_a_document_of_another_model_is_refused(client: Any, desk: Any) -> None:
    other = IBForecaster.load(desk.dial).explain(desk.table)
    refusal(client.post("/receipts", {"explanation": other.to_json()}), 422, "explanation")


def test_a_forged_receipt_inside_a_document_is_refused(client: Any, own: ExplainedForecast) -> None:
    with_one = own.with_receipts(["load"])
    (receipt,) = with_one.receipts
    first, second, *others = receipt.read
    assert first != second
    moved = replace(receipt, read=(second, first, *others))  # it still adds up
    forged = replace(with_one, receipts=(moved,), host=None)
    refusal(client.post("/receipts", {"explanation": forged.to_json(), "channel": "load"}), 422, "explanation")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The computations of amounts: the name of the thread and the number of channels of each."""
    seen: list[tuple[str, int]] = []
    amounts = receipts.amounts

    def watched(engine: Any, explained: Any, columns: Any) -> list[Amounts]:
        seen.append((current_thread().name, len(columns)))
        return amounts(engine, explained, columns)

    monkeypatch.setattr(receipts, "amounts", watched)
    return seen


def test_amounts_of_an_explanation_are_computed_once_on_the_models_worker(
    make: Any, over: Any, desk: Any, own: ExplainedForecast, computed: list[tuple[str, int]]
) -> None:
    client = over(make())
    for question in (
        {"table": desk.columns(), "at": AT},
        {"explanation": own.to_json(), "channel": "heat", "step": "every"},
        {"explanation": json.loads(own.to_json()), "channel": "load", "step": 2},
    ):
        assert client.post("/receipts", question).status_code == 200
    assert client.post("/receipts?form=page", {"explanation": own.to_json()}).status_code == 200
    assert computed == [("windows of town", 3)]


def test_only_the_latest_explanations_keep_their_amounts(
    make: Any, over: Any, desk: Any, computed: list[tuple[str, int]]
) -> None:
    client = over(make())
    moments = desk.columns()["when"][100 : 101 + EXPLANATIONS_KEPT]
    for at in (*moments, moments[-1], moments[0]):
        client.post("/receipts", {"table": desk.columns(), "at": at})
    assert len(computed) == len(moments) + 1


def test_receipts_of_a_wide_model_are_itemised_a_few_channels_at_a_time(
    make: Any, over: Any, desk: Any, own: ExplainedForecast, computed: list[tuple[str, int]]
) -> None:
    client = over(make(max_numbers=2 * own.open_count * HORIZON))
    question = {"table": desk.columns(), "at": AT}
    refused = refusal(client.post("/receipts", question), 413, "channel")
    assert "at most 2 channels" in refused["error"]
    for name in ("load", "wind", "heat", "load"):
        (receipt,) = client.post("/receipts", question | {"channel": name}).json()["receipts"]
        assert_equal_to_the_librarys(receipt, own)
    # The third channel made room, so the first was computed again; the library's own are computed in this thread.
    assert [count for thread, count in computed if thread != current_thread().name] == [1, 1, 1, 1]


def test_receipts_of_too_many_steps_are_refused(make: Any, over: Any, desk: Any, own: ExplainedForecast) -> None:
    client = over(make(max_numbers=3 * own.open_count * HORIZON))
    question = {"table": desk.columns(), "at": AT, "step": "every"}
    refused = refusal(client.post("/receipts", question), 413, "step")
    assert "at most" in refused["error"]
    assert client.post("/receipts", question | {"step": 1}).status_code == 200


@pytest.mark.parametrize("channel", [None, "wind"])
def test_the_form_for_the_page_is_what_a_report_contains(
    client: Any, own: ExplainedForecast, channel: str | None
) -> None:
    question = {"explanation": own.to_json()} | ({} if channel is None else {"channel": channel})
    answer = client.post("/receipts?form=page", question).json()
    expected = json.loads(json.dumps(moment(own, channel=channel)))
    kept = [each for each in expected["receipts"] if channel in (None, each["channel"])]
    assert answer == {"scene": expected["scene"], "receipts": kept}


def test_the_form_for_the_page_takes_no_step(client: Any, own: ExplainedForecast) -> None:
    refusal(client.post("/receipts?form=page", {"explanation": own.to_json(), "step": 2}), 422, "step")


@pytest.fixture(scope="module")
def kept(client: Any, desk: Any) -> str:
    answer = client.post("/tables?name=town.csv", content=desk.table.read_bytes()).json()
    return str(answer["table"]["id"])


@pytest.mark.parametrize("channel", [None, "heat"])
def test_drivers_are_those_of_the_library(client: Any, desk: Any, kept: str, channel: str | None) -> None:
    query = "" if channel is None else f"&channel={channel}"
    answer = client.get(f"/tables/{kept}/drivers?windows=7{query}").json()
    own = desk.model().drivers(desk.table, "all", 7, channel)
    assert answer["rows"] == [asdict(row) for row in own.rows]
    assert answer["sources"] == [asdict(source) for source in own.sources()]
    assert (answer["windows"], answer["channels"]) == (own.windows, list(own.channels))
    assert answer["words"] == own.in_words()
    assert (answer["model"], answer["table"]) == ("town", kept)
    assert (answer["by"], answer["groups"], answer["watch"]) == (None, [], {})


@pytest.mark.parametrize(("by", "channel"), [("weekday", None), ("hour", "heat"), ("event", "load")])
def test_drivers_of_groups_are_those_of_the_library(
    client: Any, desk: Any, kept: str, by: By, channel: str | None
) -> None:
    query = f"windows=26&by={by}" + ("" if channel is None else f"&channel={channel}")
    answer = client.get(f"/tables/{kept}/drivers?{query}").json()
    own = desk.model().drivers(desk.table, "all", 26, channel, by)
    grouped = own.by(by)
    assert answer["rows"] == [asdict(row) for row in own.rows]
    assert (answer["by"], answer["windows"]) == (by, 26)
    assert answer["groups"] == [asdict(row) for row in grouped.rows]
    assert answer["watch"] == {name: grouped.watch(name) for name in own.channels}
    assert answer["words"] == grouped.in_words()


@pytest.mark.parametrize(
    ("query", "rule", "got"),
    [
        ("by=year", "by must be as the wire format says, input should be 'quarter', 'month'", "(got 'year')"),
        ("by=", "by must be as the wire format says, input should be 'quarter', 'month'", "(got '')"),
        ("by=month", "windows must be in at least two groups by month", "in 'January')"),
        ("by=event&windows=1", "windows must be in at least two groups by event", "(got all 1 in 'event')"),
    ],
)
def test_groups_that_cannot_be_made_are_refused(client: Any, kept: str, query: str, rule: str, got: str) -> None:
    refused = refusal(client.get(f"/tables/{kept}/drivers?{query}"), 422, "by")
    assert refused["error"].startswith(rule)
    assert refused["error"].endswith(got)
    assert refused["hint"]


def test_drivers_are_computed_once_and_on_no_models_worker(
    make: Any, over: Any, computed: list[tuple[str, int]], desk: Any
) -> None:
    client = over(make())
    kept = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    first, second = (client.get(f"/tables/{kept}/drivers?windows=3").content for _ in range(2))
    assert first == second
    assert len(computed) == 3
    assert all(thread.startswith("drivers") for thread, _ in computed)


def test_drivers_are_refused_beyond_the_limits(make: Any, over: Any, client: Any, kept: str) -> None:
    refusal(client.get(f"/tables/{kept}/drivers?channel=rain"), 422, "channel")
    refusal(client.get("/tables/none/drivers"), 404, "table")
    refusal(client.get(f"/tables/{kept}/drivers?windows=0"), 422, "windows")
    refusal(over(make(max_history=4)).get("/tables/demo/drivers?windows=5"), 413, "windows")


def test_drivers_count_as_requests_under_way(make: Any, over: Any, desk: Any, slow_down: Any) -> None:
    service = make(max_concurrent=1)
    slow_down(service, 0.3)
    client, question = over(service), ("POST", "/receipts", {"json": {"table": desk.columns()}})
    answers = client.together(question, ("GET", "/tables/demo/drivers", {}), ("GET", "/health", {}))
    assert [answer.status_code for answer in answers] == [200, 429, 200]


def test_drivers_of_a_wide_model_need_a_channel(make: Any, over: Any, desk: Any) -> None:
    client = over(make(max_numbers=3 * 3 * 4 * 5 - 1))
    kept = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    refusal(client.get(f"/tables/{kept}/drivers?windows=2"), 413, "channel")
    assert client.get(f"/tables/{kept}/drivers?windows=2&channel=load").status_code == 200
    roomy = over(make(max_numbers=3 * 3 * 4 * 5))
    kept = roomy.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    assert roomy.get(f"/tables/{kept}/drivers?windows=2").status_code == 200
    refusal(roomy.get(f"/tables/{kept}/drivers?windows=2&by=event"), 413, "channel")


def test_the_schema_describes_receipts_and_drivers(client: Any) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert "post" in paths["/receipts"]
    assert "get" in paths["/tables/{id}/drivers"]
    assert set(bodies.RULES) >= {"channel", "step"}
