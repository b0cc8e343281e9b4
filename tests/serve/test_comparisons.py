"""Comparisons over HTTP: the changes of the library, from documents or from a table, and refusals."""

import json
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any

import pytest

from ibforecast import ExplainedForecast
from ibforecast.core.comparison import compare

HORIZON = 12
AT, BEFORE = "2023-01-15 11:00", "2023-01-14 11:00"


@pytest.fixture(scope="module")
def own(desk: Any) -> tuple[ExplainedForecast, ExplainedForecast]:
    """The explanations of a moment and of the day before."""
    return desk.model().explain(desk.table, AT), desk.model().explain(desk.table, BEFORE)


def refusal(answer: Any, status: int, field: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    document: dict[str, Any] = answer.json()
    assert document["field"] == field
    return document


@pytest.mark.parametrize("step", ["mean", 1, HORIZON])
def test_a_comparison_is_that_of_the_library_and_adds_up(
    client: Any, desk: Any, own: tuple[ExplainedForecast, ExplainedForecast], step: Any
) -> None:
    of_table = {"table": desk.columns(), "at": AT, "other_at": BEFORE, "channel": "wind", "step": step}
    documents = {
        "explanation": own[0].to_json(),
        "other": json.loads(own[1].to_json()),
        "channel": "wind",
        "step": step,
    }
    answer, again = client.post("/compare", of_table), client.post("/compare", documents)
    assert answer.status_code == again.status_code == 200
    assert answer.json() == again.json()
    expected, sent = compare(*own, "wind", step), answer.json()
    assert sent["changes"] == [asdict(change) for change in expected.changes]
    assert sent["reasons"] == [asdict(reason) for reason in expected.reasons()]
    assert sent["words"] == expected.in_words()
    assert (sent["at"], sent["other_at"], sent["step"], sent["model"]) == (AT, BEFORE, step, "town")
    assert (sent["sha256"], sent["other_sha256"]) == (own[0].sha256, own[1].sha256)
    numbers = json.loads(answer.text, parse_float=Decimal, parse_int=Decimal)
    assert sum(change["change"] for change in numbers["changes"]) == numbers["difference"]
    assert numbers["forecast"] - numbers["other_forecast"] == numbers["difference"]


def test_by_default_a_forecast_is_compared_with_that_of_the_day_before(client: Any, desk: Any) -> None:
    answer = client.post("/compare", {"table": desk.columns(), "at": AT, "channel": "load"}).json()
    assert (answer["at"], answer["other_at"], answer["step"]) == (AT, BEFORE, "mean")


def test_two_moments_of_a_kept_table_can_be_compared(client: Any, desk: Any) -> None:
    kept = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    answer = client.post("/compare", {"table": kept, "at": AT, "channel": "load"}).json()
    sent = client.post("/compare", {"table": desk.columns(), "at": AT, "channel": "load"}).json()
    assert answer == sent


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"channel": "rain"}, "channel"),
        ({"channel": None}, "channel"),
        ({"channel": ["load"]}, "channel"),
        ({"step": 0}, "step"),
        ({"step": HORIZON + 1}, "step"),
        ({"step": "every"}, "step"),
        ({"at": "2031-01-01"}, "at"),
        ({"other_at": "2031-01-01"}, "other_at"),
        ({"other_at": "2023-01-01 00:00"}, "other_at"),
        ({"at": "2023-01-02 23:00"}, "other_at"),  # the first moment of all: there is none a day before
        ({"budget": 0.5}, "budget"),
        ({"other": "{}"}, "other"),
        ({"table": None}, "explanation"),
        ({"explanation": "{}"}, "explanation"),
        ({"model": "village"}, "model"),
        ({"with": AT}, "with"),
    ],
)
def test_invalid_requests_are_refused_with_field_rule_value_and_remedy(
    client: Any, desk: Any, changes: dict[str, Any], field: str
) -> None:
    question = {"table": desk.columns(), "at": AT, "channel": "load"} | changes
    refused = refusal(client.post("/compare", question), 422, field)
    assert refused["hint"]
    assert "got" in refused["error"]


def test_the_rule_of_a_refusal_is_that_of_a_comparison(client: Any, desk: Any) -> None:
    question = {"table": desk.columns(), "channel": "load", "step": "every"}
    assert refusal(client.post("/compare", question), 422, "step")["error"].startswith(
        'step must be as the wire format says, a number of steps ahead or "mean" (got'
    )


def test_two_documents_are_needed_and_moments_do_not_belong_to_them(
    client: Any, own: tuple[ExplainedForecast, ExplainedForecast]
) -> None:
    question = {"explanation": own[0].to_json(), "channel": "load"}
    refusal(client.post("/compare", question), 422, "other")
    both = question | {"other": own[1].to_json()}
    refusal(client.post("/compare", both | {"other_at": BEFORE}), 422, "other_at")
    assert client.post("/compare", both).status_code == 200


def test_a_forged_document_is_refused_by_its_own_field(
    client: Any, own: tuple[ExplainedForecast, ExplainedForecast]
) -> None:
    forged = replace(own[1], forecast=own[1].forecast + own[1].units.std, host=None).to_json()
    question = {"explanation": own[0].to_json(), "other": forged, "channel": "load"}
    assert "must be true" in refusal(client.post("/compare", question), 422, "other")["error"]
    question = {"explanation": forged, "other": own[0].to_json(), "channel": "load"}
    refusal(client.post("/compare", question), 422, "explanation")
    changed = json.loads(own[1].to_json())
    changed["forecast"][0][0] += 1.0
    question = {"explanation": own[0].to_json(), "other": changed, "channel": "load"}
    assert "fingerprint" in refusal(client.post("/compare", question), 422, "other")["error"]


def test_comparisons_keep_the_limits_of_the_service(make: Any, over: Any, desk: Any, slow_down: Any) -> None:
    service = make(max_concurrent=1)
    slow_down(service, 0.3)
    question = ("POST", "/compare", {"json": {"table": desk.columns(), "channel": "load"}})
    answers = over(service).together(question, question, ("GET", "/health", {}))
    assert [answer.status_code for answer in answers] == [200, 429, 200]
    refusal(over(make(max_windows=1)).post("/compare", question[2]["json"]), 413, "at")


def test_comparisons_are_described_and_counted(client: Any, desk: Any) -> None:
    document = client.get("/openapi.json").json()
    body = document["paths"]["/compare"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/ComparisonOf"}
    assert "other_at" in document["components"]["schemas"]["ComparisonOf"]["properties"]
    client.post("/compare", {"table": desk.columns(), "channel": "load"})
    assert 'ibforecast_requests_total{route="/compare",status="200"}' in client.get("/metrics").text
