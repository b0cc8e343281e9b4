"""Answers of the service verify bit for bit under concurrent requests, and what-ifs are exact."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ibforecast import ExplainedForecast
from ibforecast.cli.main import run
from ibforecast.engine import TorchEngine

MOMENT = "2023-01-10 05:00"


@pytest.fixture(scope="module")
def explained(client: Any, desk: Any) -> dict[str, Any]:
    document: dict[str, Any] = client.post("/explain", {"table": desk.columns(), "at": MOMENT}).json()["explanations"][
        0
    ]
    return document


def bits(values: Any) -> bytes:
    return np.array(values, dtype=np.float64).tobytes()


def test_thirty_two_concurrent_answers_verify_bit_for_bit(
    client: Any, desk: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moments = desk.frame["when"][60::10].tolist()[:32]
    question = {"table": desk.columns()}
    answers = client.together(*(("POST", "/explain", {"json": question | {"at": at}}) for at in moments))
    assert len(moments) == 32
    assert [answer.status_code for answer in answers] == [200] * 32
    model = desk.model()
    for at, answer in zip(moments, answers, strict=True):
        (document,) = answer.json()["explanations"]
        assert document == json.loads(model.explain(desk.table, at).to_json())
        checked = model.verify(ExplainedForecast.from_json(json.dumps(document)))
        assert bool(checked)
        assert [
            check.detail.count("bit for bit") for check in checked.checks if check.name in ("replay", "scramble")
        ] == [
            1,
            1,
        ]
    (tmp_path / "why.json").write_text(json.dumps(document))
    with pytest.raises(SystemExit) as stop:
        run(["verify", str(desk.town), str(tmp_path / "why.json")])
    assert stop.value.code == 0
    assert "give the forecast (36 values), bit for bit" in capsys.readouterr().out


def test_replaying_an_unchanged_explanation_gives_its_forecast_bit_for_bit(
    client: Any, explained: dict[str, Any]
) -> None:
    mask = explained["explanation"]["mask"]
    for question in ({}, {"mask": mask}, {"mask": mask, "evidence": explained["explanation"]["evidence"]}):
        replayed = client.post("/replay", {"explanation": explained} | question).json()
        assert bits(replayed["forecast"]) == bits(explained["forecast"])
        assert replayed["same_bits"] is True
        assert replayed["what_if"] is False
        assert replayed["note"] == "mask and evidence are those of the explanation"
        assert [shift["largest"] for shift in replayed["shift"]] == [0, 0, 0]
        assert replayed["open_count"] == explained["open_count"]


def read(document: dict[str, Any]) -> ExplainedForecast:
    return ExplainedForecast.from_json(json.dumps(document))


def by_hand(desk: Any, document: dict[str, Any], mask: Any) -> Any:
    """Return the forecast of the network's readout for a mask, from only the explanation."""
    engine, explained = TorchEngine(desk.model().fitted), read(document)
    chosen = np.array(mask, dtype=bool)
    return engine.hold(explained.history, replace(explained.explanation, mask=chosen))


def test_a_toggled_gate_equals_the_output_of_the_network(client: Any, desk: Any, explained: dict[str, Any]) -> None:
    own = np.array(explained["explanation"]["mask"])
    patch, column = np.argwhere(own)[0]
    other = own.copy()
    other[patch, column] = 0
    replayed = client.post("/replay", {"explanation": explained, "mask": other.tolist()}).json()
    forecast = by_hand(desk, explained, other)
    assert bits(replayed["forecast"]) == bits(forecast)
    assert replayed["what_if"] is True
    assert replayed["same_bits"] is False
    assert "not the model's own explanation" in replayed["note"]
    shift = forecast - np.array(explained["forecast"])
    for place, stated in enumerate(replayed["shift"]):
        most = np.abs(shift[:, place]).argmax()
        assert stated["largest"] == shift[most, place]
        assert stated["mean_absolute"] == pytest.approx(np.abs(shift[:, place]).mean())
        assert stated["mean"] == pytest.approx(shift[:, place].mean())
    assert replayed["shift"][column]["in_scales"] > 0
    swapped = other.copy()
    swapped[tuple(np.argwhere(own == 0)[0])] = 1
    replayed = client.post("/replay", {"explanation": explained, "mask": swapped.tolist()}).json()
    assert bits(replayed["forecast"]) == bits(by_hand(desk, explained, swapped))


def test_a_mask_beyond_the_budget_is_refused_unless_allowed_explicitly(
    client: Any, desk: Any, explained: dict[str, Any]
) -> None:
    everything = np.ones_like(explained["explanation"]["mask"])
    refused = client.post("/replay", {"explanation": explained, "mask": everything.tolist()})
    assert refused.status_code == 422
    assert refused.json()["field"] == "mask"
    assert "a mask must keep the budget of 0.25, 3 of 12 tokens (got 12 open)" in refused.json()["error"]
    assert "beyond_budget" in refused.json()["hint"]
    question = {"explanation": explained, "mask": everything.tolist(), "beyond_budget": True}
    replayed = client.post("/replay", question).json()
    assert bits(replayed["forecast"]) == bits(by_hand(desk, explained, everything))
    assert (replayed["within_budget"], replayed["allowance"], replayed["open_rate"]) == (False, 3, 1.0)


def test_scrambling_closed_tokens_changes_no_bit_and_an_open_one_does(client: Any, explained: dict[str, Any]) -> None:
    mask, channels = np.array(explained["explanation"]["mask"]), explained["window"]["channels"]
    random = np.random.default_rng(0)

    def edits(places: Any, kind: str) -> list[dict[str, Any]]:
        return [
            {"patch": int(patch), "channel": channels[column], kind: (1e3 * random.normal(size=12)).tolist()}
            for patch, column in places
        ]

    for kind in ("deviation", "values"):
        closed = edits(np.argwhere(mask == 0), kind)
        replayed = client.post("/replay", {"explanation": explained, "evidence": closed}).json()
        assert bits(replayed["forecast"]) == bits(explained["forecast"])
        assert (replayed["closed_edits"], replayed["same_bits"], replayed["what_if"]) == (len(closed), True, False)
        opened = edits(np.argwhere(mask)[:1], kind)
        replayed = client.post("/replay", {"explanation": explained, "evidence": opened}).json()
        assert (replayed["closed_edits"], replayed["same_bits"], replayed["what_if"]) == (0, False, True)


def test_an_edited_value_is_read_by_the_network(client: Any, desk: Any, explained: dict[str, Any]) -> None:
    own = read(explained)
    patch, column = np.argwhere(own.mask)[0]
    steps = slice(12 * patch, 12 * patch + 12)
    history = own.history.copy()
    history[steps, column] += 5
    edit = {"patch": int(patch), "channel": own.channels[column], "values": history[steps, column].tolist()}
    replayed = client.post("/replay", {"explanation": explained, "evidence": [edit]}).json()
    forecast = TorchEngine(desk.model().fitted).hold(history, own.explanation)
    assert bits(replayed["forecast"]) == bits(forecast)


def test_a_missing_token_cannot_be_opened(client: Any, desk: Any) -> None:
    (explained,) = client.post("/explain", {"table": desk.columns(rows=380)}).json()["explanations"]
    missing = np.array(explained["explanation"]["missing"])
    patch, column = np.argwhere(missing)[0]
    mask = np.zeros_like(missing)
    mask[patch, column] = 1
    refused = client.post("/replay", {"explanation": explained, "mask": mask.tolist(), "beyond_budget": True})
    assert refused.json()["error"] == (
        f"a token with a missing step must stay closed (got patch {patch} of 'wind' open)"
    )


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"mask": [[0, 0, 0]]}, "mask", "4 rows, one per patch, of 3 gates (got 1 rows of [3])"),
        ({"mask": [[0, 0], [0], [0], []]}, "mask", "got 4 rows of [0, 1, 2]"),
        ({"mask": [[0, 0, 2]] * 4}, "mask.0.2", "less than or equal to 1 (got 2)"),
        (
            {"evidence": [{"patch": 9, "channel": "load", "values": [0] * 12}]},
            "evidence",
            "patch must be below 4 (got 9)",
        ),
        ({"evidence": [{"patch": 0, "channel": "lod", "values": [0] * 12}]}, "evidence", "(got 'lod')"),
        ({"evidence": [{"patch": 0, "channel": "load"}]}, "evidence", "deviation or values, 12 of them (got 0 of them"),
        (
            {"evidence": [{"patch": 0, "channel": "load", "values": [1]}]},
            "evidence",
            "(got 1 of them, with [1] numbers)",
        ),
        ({"evidence": [{"patch": 0, "channel": "load", "values": [None] * 12}]}, "evidence.0.values.0", "got None"),
    ],
)
def test_an_invalid_what_if_is_refused(
    client: Any, explained: dict[str, Any], change: dict[str, Any], field: str, words: str
) -> None:
    refused = client.post("/replay", {"explanation": explained} | change)
    assert refused.status_code == 422
    assert refused.json()["field"] == field
    assert words in refused.json()["error"]


def test_edits_that_make_the_forecast_overflow_are_refused(client: Any, explained: dict[str, Any]) -> None:
    patch, column = (int(place) for place in np.argwhere(explained["explanation"]["mask"])[0])
    edit = {"patch": patch, "channel": explained["window"]["channels"][column], "deviation": [1e39] * 12}
    refused = client.post("/replay", {"explanation": explained, "evidence": [edit]})
    assert (refused.status_code, refused.json()["field"]) == (422, "evidence")


def test_an_explanation_of_another_model_is_not_replayed(both: Any, desk: Any, explained: dict[str, Any]) -> None:
    refused = both.post("/replay", {"explanation": explained, "model": "dial"})
    assert refused.status_code == 422
    assert "must come from the model that replays it" in refused.json()["error"]
