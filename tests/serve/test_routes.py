"""The answer of every route, compared with the library."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.core.samples import with_next_numbers

from ibforecast import IBForecaster, __version__
from ibforecast.serve.service import Service

MOMENT = "2023-01-10 05:00"


def failures(verdict: dict[str, Any]) -> list[str]:
    return [check["name"] for check in verdict["checks"] if not check["passed"]]


def test_the_health_route_answers(client: Any) -> None:
    answer = client.get("/health")
    assert answer.status_code == 200
    assert answer.json() == {"version": 1, "status": "ok", "ibforecast": __version__, "models": ["town"]}


def test_a_model_is_described_by_its_inputs_and_promises(client: Any, desk: Any) -> None:
    (explained,) = client.get("/models").json()["models"]
    fitted = desk.model().fitted
    assert explained["name"] == "town"
    assert (explained["look_back"], explained["horizon"], explained["patch_len"], explained["patches"]) == (
        48,
        12,
        12,
        4,
    )
    assert explained["channels"] == ["load", "wind", "heat"]
    assert (explained["frequency"], explained["cycles"], explained["time"]) == ("1h", [24], "when")
    assert (explained["past"], explained["covariates"]) == ([], [])
    assert (explained["budget"], explained["allowance"], explained["any_budget"]) == (0.25, 3, False)
    assert explained["weights_sha256"] == fitted.weights_sha256
    assert explained["training"]["data_sha256"] == fitted.summary.data_sha256
    assert explained["audit"] is None


def test_a_saved_audit_is_shown_if_it_belongs_to_these_weights(desk: Any, make: Any, tmp_path: Path) -> None:
    model = desk.model()
    for name in ("audited", "touched"):
        model.save(tmp_path / name)
        model.audit(desk.table, windows=4).save(tmp_path / name, 0.5)
    written = (tmp_path / "touched" / "audit.json").read_text()
    (tmp_path / "touched" / "audit.json").write_text(written.replace('"windows"', '"widows"', 1))
    IBForecaster.load(desk.dial).save(tmp_path / "other")
    (tmp_path / "other" / "audit.json").write_text(written)
    service: Service = make({name: tmp_path / name for name in ("audited", "touched", "other")})
    audits = {model.name: model.audit for model in service.models}
    assert audits["audited"] == json.loads((tmp_path / "audited" / "audit.json").read_text())
    assert audits["touched"] is None
    assert audits["other"] is None


def test_an_explanation_is_the_librarys_own_document(client: Any, desk: Any) -> None:
    answer = client.post("/explain", {"table": desk.columns(), "at": MOMENT})
    assert answer.status_code == 200
    document = answer.json()
    assert (document["version"], document["model"]) == (1, "town")
    (explained,) = document["explanations"]
    assert explained == json.loads(desk.model().explain(desk.table, MOMENT).to_json())


def test_a_document_is_returned_byte_for_byte_on_request(client: Any, desk: Any) -> None:
    answer = client.post("/explain?form=document", {"table": desk.columns()})
    assert answer.text == desk.model().explain(desk.table).to_json()
    refused = client.post("/explain?form=document", {"table": desk.columns(), "at": [MOMENT, MOMENT]})
    assert (refused.status_code, refused.json()["field"]) == (422, "form")


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/geo+json"])
def test_a_request_gives_the_same_answer_for_every_content_type(client: Any, desk: Any, kind: str) -> None:
    question = {"table": desk.columns(), "at": MOMENT}
    for body, status in ((question, 200), (question | {"at": 5}, 422), (question | {"colour": "red"}, 422)):
        answer = client.post("/explain", content=json.dumps(body), headers={"content-type": kind})
        plain = client.post("/explain", content=json.dumps(body), headers={"content-type": "application/json"})
        assert (answer.status_code, answer.text) == (status, plain.text)


def test_a_forecast_equals_that_of_the_explanation(client: Any, desk: Any) -> None:
    (explained,) = client.post("/forecast", {"table": desk.columns()}).json()["forecasts"]
    explanation = desk.model().explain(desk.table)
    assert explained["at"] == explanation.at
    assert explained["times"] == list(explanation.times[48:])
    assert explained["channels"] == ["load", "wind", "heat"]
    assert np.array(explained["values"]).tobytes() == explanation.forecast.tobytes()


def as_records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def test_a_table_may_be_columns_rows_text_or_a_stored_id(client: Any, desk: Any) -> None:
    text = desk.table.read_text()
    stored = client.post("/tables", content=text).json()["table"]["id"]
    sent = [desk.columns(), as_records(desk.columns()), text, stored]
    answers = [client.post("/explain", {"model": "town", "table": table, "at": MOMENT}) for table in sent]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.text for answer in answers}) == 1


def test_a_row_may_omit_missing_values(client: Any, desk: Any) -> None:
    rows = [
        {name: cell for name, cell in row.items() if cell is not None} for row in as_records(desk.columns(rows=380))
    ]
    (explained,) = client.post("/explain", {"table": rows}).json()["explanations"]
    assert explained == client.post("/explain", {"table": desk.columns(rows=380)}).json()["explanations"][0]
    assert sum(map(sum, explained["explanation"]["missing"])) == 1


def test_several_moments_are_answered_in_the_requested_order(client: Any, desk: Any) -> None:
    moments = ["2023-01-12 03:00", "2023-01-09 00:00", "2023-01-12 03:00"]
    explained = client.post("/explain", {"table": desk.columns(), "at": moments}).json()["explanations"]
    assert [document["window"]["times"][47] for document in explained] == moments
    forecasts = client.post("/forecast", {"table": desk.columns(), "at": moments}).json()["forecasts"]
    assert [forecast["at"] for forecast in forecasts] == moments
    assert [forecast["values"] for forecast in forecasts] == [document["forecast"] for document in explained]


def test_the_budget_of_a_model_for_any_budget_can_be_changed(both: Any, desk: Any) -> None:
    shown = {model["name"]: model["any_budget"] for model in both.get("/models").json()["models"]}
    assert shown == {"town": False, "dial": True}
    question = {"model": "dial", "table": desk.columns(), "budget": 0.5}
    (explained,) = both.post("/explain", question).json()["explanations"]
    assert explained["budget"] == 0.5
    assert explained["open_count"] == 6
    assert both.post("/verify", {"explanation": explained}).json()["verified"] is True
    replayed = both.post("/replay", {"explanation": explained}).json()
    assert (replayed["same_bits"], replayed["allowance"]) == (True, 6)
    refused = both.post("/explain", question | {"model": "town"})
    assert (refused.status_code, refused.json()["field"]) == (422, "budget")
    assert "trained for any" in refused.json()["error"]


def test_an_explanation_is_checked_as_an_object_and_as_text(client: Any, desk: Any) -> None:
    text = client.post("/explain?form=document", {"table": desk.columns()}).text
    for explanation in (text, json.loads(text)):
        verdict = client.post("/verify", {"explanation": explanation}).json()
        assert verdict["verified"] is True
        assert verdict["model"] == "town"
        assert [check["name"] for check in verdict["checks"]] == [
            "document",
            "weights",
            "names",
            "times",
            "budget",
            "replay",
            "scramble",
            "rerun",
        ]


def test_a_changed_document_fails_its_check(client: Any, desk: Any) -> None:
    (document,) = client.post("/explain", {"table": desk.columns()}).json()["explanations"]
    document["forecast"][0][0] += 1
    verdict = client.post("/verify", {"explanation": document}).json()
    assert verdict["verified"] is False
    assert [check["name"] for check in verdict["checks"]] == ["document"]
    assert "must match its fingerprint" in verdict["checks"][0]["detail"]
    refused = client.post("/replay", {"explanation": document})
    assert (refused.status_code, refused.json()["field"]) == (422, "explanation")
    assert "an explanation must be true" in refused.json()["error"]


def test_a_forged_explanation_with_a_matching_fingerprint_fails_its_checks(client: Any, desk: Any) -> None:
    explained = desk.model().explain(desk.table)
    forged = replace(explained, forecast=explained.forecast + 1)
    verdict = client.post("/verify", {"explanation": forged.to_json()}).json()
    assert verdict["verified"] is False
    assert failures(verdict) == ["replay", "scramble", "rerun"]


def test_an_explanation_is_compared_with_a_table_if_one_is_sent(client: Any, desk: Any) -> None:
    (document,) = client.post("/explain", {"table": desk.columns(), "at": MOMENT}).json()["explanations"]
    without_table = client.post("/verify", {"explanation": document}).json()
    assert without_table["verified"] is True
    assert "made-up table would pass" in without_table["notes"][0]
    stored = client.post("/tables", content=desk.table.read_text()).json()["table"]["id"]
    for table in (desk.columns(), stored):
        verdict = client.post("/verify", {"explanation": document, "table": table}).json()
        assert (verdict["verified"], verdict["notes"]) == (True, [])
        assert "table" in [check["name"] for check in verdict["checks"]]
    other = desk.columns()
    other["load"][200] += 1
    verdict = client.post("/verify", {"explanation": document, "table": other}).json()
    assert (verdict["verified"], failures(verdict)) == (False, ["table"])
    verdict = client.post("/verify", {"explanation": document, "table": desk.columns(rows=60)}).json()
    assert (verdict["verified"], failures(verdict)) == (False, ["table"])
    assert any("it has no window from" in check["detail"] for check in verdict["checks"])


def test_last_digits_may_differ_unless_exact_is_set(client: Any, desk: Any) -> None:
    explained = desk.model().explain(desk.table)
    near = with_next_numbers(explained).to_json()
    verdict = client.post("/verify", {"explanation": near}).json()
    assert verdict["verified"] is True
    assert "rounding on this machine explains" in verdict["checks"][-1]["detail"]
    strict = client.post("/verify", {"explanation": near, "exact": True}).json()
    assert failures(strict) == ["replay", "scramble", "rerun"]
    assert client.post("/verify", {"explanation": explained.to_json(), "exact": True}).json()["verified"] is True


def test_an_explanation_is_checked_with_the_model_that_made_it(both: Any, desk: Any) -> None:
    for name in ("town", "dial"):
        (document,) = both.post("/explain", {"model": name, "table": desk.columns()}).json()["explanations"]
        assert both.post("/verify", {"explanation": document}).json()["model"] == name
    strange = replace(desk.model().explain(desk.table), weights_sha256="0" * 64).to_json()
    lost = both.post("/verify", {"explanation": strange})
    assert (lost.status_code, lost.json()["field"]) == (422, "model")
    other = both.post("/verify", {"explanation": strange, "model": "town"}).json()
    assert (other["model"], other["verified"], failures(other)) == ("town", False, ["weights"])


def test_the_metrics_count_requests_and_windows(make: Any, over: Any, desk: Any) -> None:
    client = over(make())
    client.post("/explain", {"table": desk.columns(), "at": [MOMENT] * 3})
    client.post("/explain", {"table": "nowhere"})
    client.get("/nowhere")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    samples = {
        (sample.name.removeprefix("ibforecast_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert samples["requests_total", "/explain", "200"] == 1
    assert samples["requests_total", "/explain", "422"] == 1
    assert samples["requests_total", "other", "404"] == 1
    assert samples["windows_total", "town"] == 3
    assert samples["batch_windows_sum",] == 3
    assert 1 <= samples["batch_windows_count",] <= 3
    assert samples["request_seconds_count", "/explain"] == 2
    assert samples["request_seconds_bucket", "+Inf", "/explain"] == 2
    assert samples["requests_in_flight",] == 1


def test_two_services_in_one_process_have_separate_metrics(make: Any, over: Any, desk: Any) -> None:
    first, second = over(make()), over(make())
    first.post("/explain", {"table": desk.columns(), "at": MOMENT})
    assert 'windows_total{model="town"}' in first.get("/metrics").text
    assert 'windows_total{model="town"}' not in second.get("/metrics").text


def test_the_page_that_describes_the_service_needs_no_other_site(client: Any) -> None:
    described = client.get("/openapi.json")
    assert described.status_code == 200
    assert {"/health", "/models", "/forecast", "/explain", "/verify", "/replay", "/metrics", "/tables"} <= set(
        described.json()["paths"]
    )
    assert client.get("/docs").status_code == 404
    policy = described.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "unsafe" not in policy
