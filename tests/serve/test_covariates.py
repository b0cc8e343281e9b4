"""A model with past and future covariates and two cycles behind the service."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.engine import TorchEngine
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings

LOOK_BACK, HORIZON, ROWS = 48, 12, 600
CHANNELS, COVARIATES = ("load", "heat", "wind"), ("price", "holiday")
RECIPE = """
[model]
budget = 0.25
[model.gate]
width = 16
[model.readout]
width = 16
cross_channel = true
[train]
epochs = 1
batch = 64
"""
MOMENT = "2023-01-10 05:00"


@dataclass(frozen=True)
class Town:
    """A fitted model and its table: `load` and `heat` are forecast, `wind` is read, the covariates are known ahead."""

    folder: Path
    table: pd.DataFrame
    future: pd.DataFrame

    def model(self) -> IBForecaster:
        return IBForecaster.load(self.folder, device="cpu")


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    folder = tmp_path_factory.mktemp("covariates")
    (folder / "tiny.toml").write_text(RECIPE)
    steps, random = np.arange(ROWS + HORIZON), np.random.default_rng(4)
    when = pd.date_range("2023-01-01", periods=len(steps), freq="h").strftime("%Y-%m-%d %H:%M")
    price, holiday = 30 + 4 * random.normal(size=len(steps)), (steps // 24 % 9 == 4).astype(float)
    waves = np.sin(2 * np.pi * steps / 24) + 0.5 * np.sin(2 * np.pi * steps / 168)
    values = {
        name: size * (waves + 0.3 * random.normal(size=len(steps)) - holiday)
        for name, size in zip(CHANNELS, (20.0, 3.0, 0.5), strict=True)
    }
    table = pd.DataFrame({"when": when} | values | {"price": price, "holiday": holiday})
    model = IBForecaster(
        HORIZON,
        LOOK_BACK,
        cycle=(24, 168),
        recipe=str(folder / "tiny.toml"),
        device="cpu",
        past=["wind"],
        future=list(COVARIATES),
    )
    model.fit(table[:ROWS]).save(folder / "model")
    return Town(folder / "model", table[:ROWS], table[ROWS:][["when", *COVARIATES]])


@pytest.fixture(scope="module")
def client(town: Town, over: Any) -> Iterator[Any]:
    service = Service({"town": town.folder}, Settings())
    yield over(service)
    service.close()


@pytest.fixture(scope="module")
def kept(client: Any, town: Town) -> str:
    answer = client.post("/tables?name=town.csv", content=town.table.to_csv(index=False))
    assert (answer.status_code, answer.json()["models"]) == (201, {"town": None})
    assert answer.json()["table"]["channels"] == list(CHANNELS)
    return str(answer.json()["table"]["id"])


def columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    return {str(name): column.tolist() for name, column in table.items()}


@pytest.fixture(scope="module")
def question(town: Town) -> dict[str, Any]:
    """A request for a forecast from the end of the table."""
    return {"table": columns(town.table), "future": columns(town.future)}


@pytest.fixture(scope="module")
def document(client: Any, question: dict[str, Any]) -> dict[str, Any]:
    (explained,) = client.post("/explain", question).json()["explanations"]
    return dict(explained)


def failures(verdict: dict[str, Any]) -> list[str]:
    return [check["name"] for check in verdict["checks"] if not check["passed"]]


def test_the_description_of_a_model_has_covariates_and_cycles(client: Any) -> None:
    (card,) = client.get("/models").json()["models"]
    assert (card["channels"], card["past"], card["covariates"]) == (list(CHANNELS), ["wind"], list(COVARIATES))
    assert card["cycles"] == [24, 168]


def test_moments_end_where_the_covariates_end(client: Any, town: Town, kept: str) -> None:
    moments = client.get(f"/tables/{kept}/moments?list=true").json()
    when = town.table["when"].tolist()
    assert moments["moments"] == when[LOOK_BACK - 1 : ROWS - HORIZON]
    assert client.post("/explain", {"table": kept, "at": moments["last"]}).status_code == 200
    refused = client.post("/explain", {"table": kept, "at": when[ROWS - HORIZON]})
    assert (refused.status_code, refused.json()["field"]) == (422, "at")


def test_a_history_has_the_errors_of_the_forecast_channels(client: Any, town: Town, kept: str) -> None:
    history = client.get(f"/tables/{kept}/history?windows=9").json()
    model = town.model()
    explained = [model.explain(town.table, at) for at in history["moments"]]
    assert history["channels"] == list(CHANNELS)
    assert np.allclose(history["open_frequency"], np.mean([one.mask for one in explained], axis=0))
    assert np.allclose(history["open_rate"], [one.open_rate for one in explained])
    for name, power in (("squared_error", 2), ("absolute_error", 1)):
        errors = [np.nanmean(np.abs((one.forecast - one.truth) / one.units.std) ** power) for one in explained]
        assert np.allclose(history[name], errors, rtol=1e-4)


def test_forecasts_and_explanations_equal_the_librarys(
    client: Any, town: Town, question: dict[str, Any], document: dict[str, Any]
) -> None:
    expected = town.model().explain(town.table, future=town.future)
    assert document == json.loads(expected.to_json())
    assert document["window"]["covariates"] == list(COVARIATES)
    assert document["context"]["cycles"] == [24, 168]
    (forecast,) = client.post("/forecast", question).json()["forecasts"]
    assert forecast["values"] == document["forecast"]
    assert [row[2] for row in forecast["values"]] == [None] * HORIZON
    assert forecast["channels"] == list(CHANNELS)


def test_covariates_may_be_columns_rows_or_text_and_belong_to_a_stored_table(
    client: Any, town: Town, question: dict[str, Any], document: dict[str, Any], kept: str
) -> None:
    for future in (question["future"], town.future.to_dict("records"), town.future.to_csv(index=False)):
        for table in (question["table"], kept):
            assert client.post("/explain", {"table": table, "future": future}).json()["explanations"] == [document]


def test_a_future_that_is_missing_or_incomplete_is_refused(client: Any, town: Town, question: dict[str, Any]) -> None:
    missing = client.post("/explain", {"table": question["table"]})
    assert missing.status_code == 422
    assert "a forecast needs 'price', 'holiday' up to its last step" in missing.json()["error"]
    for wrong in (columns(town.future.drop(columns="price")), columns(town.future[1:]), "when,price\n"):
        refused = client.post("/explain", question | {"future": wrong})
        assert (refused.status_code, refused.json()["field"]) == (422, "future")


def test_an_explanation_is_verified_with_its_table_and_covariates(
    client: Any, town: Town, question: dict[str, Any], document: dict[str, Any], kept: str
) -> None:
    without_table = client.post("/verify", {"explanation": document, "exact": True}).json()
    assert without_table["verified"] is True
    assert "what was known ahead were not compared with a table" in without_table["notes"][0]
    for table in (question["table"], kept):
        claim = {"explanation": document, "table": table, "future": question["future"], "exact": True}
        verdict = client.post("/verify", claim).json()
        assert (verdict["verified"], verdict["notes"]) == (True, []), verdict
    other = columns(town.future.assign(price=town.future["price"] + 1))
    verdict = client.post("/verify", {"explanation": document, "table": kept, "future": other}).json()
    assert (verdict["verified"], failures(verdict)) == (False, ["table"])


def test_a_replay_of_an_unchanged_explanation_changes_no_bit(client: Any, document: dict[str, Any]) -> None:
    replayed = client.post("/replay", {"explanation": document}).json()
    assert (replayed["same_bits"], replayed["what_if"]) == (True, False)
    assert replayed["forecast"] == document["forecast"]
    assert [shift["channel"] for shift in replayed["shift"]] == ["load", "heat"]


def test_a_what_if_equals_the_output_of_the_network(client: Any, town: Town, document: dict[str, Any]) -> None:
    explained = ExplainedForecast.from_json(json.dumps(document))
    engine, patch_len = TorchEngine(town.model().fitted), explained.patch_len
    patch, column = (int(place) for place in np.argwhere(explained.mask)[0])
    steps = slice(patch * patch_len, (patch + 1) * patch_len)
    history = explained.history.copy()
    history[steps, column] += explained.units.std[column]
    edit = {"patch": patch, "channel": explained.channels[column], "values": history[steps, column].tolist()}
    replayed = client.post("/replay", {"explanation": document, "evidence": [edit]}).json()
    expected = engine.hold(history, explained.explanation)
    forecast = np.array(replayed["forecast"], dtype=np.float64)
    assert forecast.tobytes() == np.where(np.isnan(expected), np.nan, expected).tobytes()
    assert replayed["what_if"] is True
    assert replayed["same_bits"] is False
