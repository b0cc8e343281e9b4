"""Sealed models in the service: what they read, forecasts from nothing else, and scrambling with nothing held."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ibforecast import DataError, IBForecaster
from ibforecast.core.explained import ExplainedForecast
from ibforecast.serve.service import Service
from ibforecast.serve.settings import Settings
from ibforecast.serve.tables import starts

LOOK_BACK, HORIZON = 48, 12
MOMENT = "2023-01-10 05:00"
RECIPE = """
[model]
patch_len = 1
budget = 0.1
sealed = true
frame = "seasonal"
[model.gate]
attention = "none"
recent = 3
every = 8
[model.readout]
width = 16
cross_channel = true
[train]
epochs = 1
batch = 64
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sealed")
    (made / "sealed.toml").write_text(RECIPE)
    return made


def fit(folder: Path, table: Any, name: str, **more: Any) -> Path:
    model = IBForecaster(HORIZON, LOOK_BACK, cycle=24, recipe=str(folder / "sealed.toml"), device="cpu", **more)
    model.fit(table).save(folder / name)
    return folder / name


@pytest.fixture(scope="module")
def service(folder: Path, desk: Any) -> Iterator[Service]:
    paths = {"sealed": fit(folder, desk.table, "sealed"), "town": desk.town}
    built = Service(paths, Settings())
    yield built
    built.close()


@pytest.fixture(scope="module")
def client(service: Service, over: Any) -> Any:
    return over(service)


@pytest.fixture(scope="module")
def model(service: Service) -> IBForecaster:
    return service.models.get("sealed").forecaster


@pytest.fixture(scope="module")
def explained(client: Any, desk: Any) -> dict[str, Any]:
    return explain(client, desk.columns())


def explain(client: Any, table: Any, at: str | None = MOMENT, model: str = "sealed") -> dict[str, Any]:
    answer = client.post("/explain", {"model": model, "table": table, "at": at})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()["explanations"][0]
    return document


def bits(values: Any) -> bytes:
    return np.array(values, dtype=np.float64).tobytes()


def only(cells: list[dict[str, Any]], columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the window of a table with null in every cell that is not listed."""
    last = columns["when"].index(MOMENT)
    wanted = {(cell["channel"], cell["time"]) for cell in cells}
    window = {name: cells[last + 1 - LOOK_BACK : last + 1] for name, cells in columns.items()}
    return {
        name: [
            cell if name == "when" or (name, when) in wanted else None
            for cell, when in zip(window[name], window["when"], strict=True)
        ]
        for name in window
    }


def test_the_card_of_a_model_says_whether_it_is_sealed(client: Any) -> None:
    models = client.get("/models").json()["models"]
    assert {model["name"]: model["sealed"] for model in models} == {"sealed": True, "town": False}


def test_the_listed_cells_are_those_of_the_library(client: Any, model: IBForecaster) -> None:
    answer = client.get("/models/sealed/reads", params={"at": MOMENT}).json()
    assert answer["cells"] == model.reads(MOMENT).to_dict("records")
    assert (answer["model"], answer["at"], answer["look_back"]) == ("sealed", MOMENT, LOOK_BACK)
    assert answer["weights_sha256"] == model.fitted.weights_sha256
    assert answer["complete"] is True
    untimed = client.get("/models/sealed/reads").json()
    assert untimed["at"] is None
    assert {cell["time"] for cell in untimed["cells"]} == {None}
    assert [cell["steps_back"] for cell in untimed["cells"]] == [cell["steps_back"] for cell in answer["cells"]]


def test_only_a_sealed_model_lists_its_cells(client: Any) -> None:
    refused = client.get("/models/town/reads", params={"at": MOMENT})
    assert (refused.status_code, refused.json()["field"]) == (422, "model")
    assert "only a sealed model reads places that are known before it reads" in refused.json()["error"]
    assert "sealed=True" in refused.json()["hint"]


def test_the_cells_of_a_model_that_is_not_loaded_are_not_found(client: Any) -> None:
    missing = client.get("/models/elsewhere/reads")
    assert (missing.status_code, missing.json()["field"]) == (404, "model")
    assert "choose among sealed, town" in missing.json()["hint"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(at=st.text(max_size=30))
@example(at="")
@example(at="0001-01-01")
@example(at="9999-12-31 23:59:59")
@example(at="2023-01-10 05:00+02:00")
def test_any_moment_is_answered_or_refused(client: Any, at: str) -> None:
    answer = client.get("/models/sealed/reads", params={"at": at})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert answer.json()["field"] == "at"


def test_a_table_with_only_the_listed_cells_gives_the_same_forecast_bit_for_bit(
    client: Any, desk: Any, explained: dict[str, Any]
) -> None:
    reading = client.get("/models/sealed/reads", params={"at": MOMENT}).json()
    sparse = only(reading["cells"], desk.columns())
    filled = sum(cell is not None for name in ("load", "wind", "heat") for cell in sparse[name])
    assert filled == len(reading["cells"]) < 0.11 * 3 * LOOK_BACK
    (forecast,) = client.post("/forecast", {"model": "sealed", "table": sparse, "at": MOMENT}).json()["forecasts"]
    assert bits(forecast["values"]) == bits(explained["forecast"])
    again = explain(client, sparse)
    assert bits(again["forecast"]) == bits(explained["forecast"])
    for name in ("mask", "evidence", "probability"):
        assert again["explanation"][name] == explained["explanation"][name]
    assert again["weights_sha256"] == reading["weights_sha256"]
    verdict = client.post("/verify", {"explanation": again, "table": sparse, "exact": True}).json()
    assert verdict["verified"] is True
    assert verdict["checks"][-1]["name"] == "unread"


def test_a_row_may_omit_every_cell_that_is_not_read(client: Any, desk: Any, explained: dict[str, Any]) -> None:
    reading = client.get("/models/sealed/reads", params={"at": MOMENT}).json()
    sparse = only(reading["cells"], desk.columns())
    rows = [
        {name: cells[step] for name, cells in sparse.items() if cells[step] is not None} for step in range(LOOK_BACK)
    ]
    assert bits(explain(client, rows)["forecast"]) == bits(explained["forecast"])


def test_a_forecast_without_one_of_the_listed_cells_is_another(
    client: Any, desk: Any, explained: dict[str, Any]
) -> None:
    reading = client.get("/models/sealed/reads", params={"at": MOMENT}).json()
    sparse = only(reading["cells"][1:], desk.columns())
    assert bits(explain(client, sparse)["forecast"]) != bits(explained["forecast"])


def test_whole_rows_may_be_absent_if_the_model_fills_gaps(folder: Path, desk: Any, make: Any, over: Any) -> None:
    client = over(make({"sealed": fit(folder, desk.table, "filled", irregular="fill")}))
    cells = client.get("/models/sealed/reads", params={"at": MOMENT}).json()["cells"]
    sparse = pd.DataFrame(only(cells, desk.columns()))
    ends = [0, LOOK_BACK - 1]
    kept = sparse[sparse[["load", "wind", "heat"]].notna().any(axis=1) | sparse.index.isin(ends)]
    assert len(kept) < LOOK_BACK
    rows = [{name: cell for name, cell in row.items() if cell == cell} for row in kept.to_dict("records")]
    assert bits(explain(client, rows)["forecast"]) == bits(explain(client, desk.columns())["forecast"])


def test_moments_need_only_the_places_that_are_read(client: Any, desk: Any, model: IBForecaster) -> None:
    frame = desk.frame
    unread = ~model.fitted.cells[:, 2]
    assert unread.any()
    frame.loc[100 : 100 + LOOK_BACK - 1, "heat"] = frame["heat"][100 : 100 + LOOK_BACK].where(~unread)
    frame.loc[200:260, "heat"] = np.nan
    table = client.post("/tables", content=frame.to_csv(index=False)).json()["table"]["id"]
    listed = client.get(f"/tables/{table}/moments", params={"model": "sealed", "list": True}).json()["moments"]
    rows = range(LOOK_BACK - 1, len(frame))
    answers = {frame["when"][row]: forecasts(client, table, frame["when"][row]) for row in rows if 90 < row < 320}
    assert {moment for moment in listed if moment in answers} == {
        moment for moment, status in answers.items() if status
    }
    assert not all(answers.values())
    assert frame["when"][100 + LOOK_BACK - 1] in listed
    some = client.get(f"/tables/{table}/history", params={"model": "sealed", "windows": 8}).json()
    assert some["available"] == len(listed)


def forecasts(client: Any, table: str, moment: str) -> bool:
    status = client.post("/forecast", {"model": "sealed", "table": table, "at": moment}).status_code
    assert status in (200, 422)
    return bool(status == 200)


def test_a_channel_observed_only_where_it_is_not_read_is_refused(client: Any, desk: Any, model: IBForecaster) -> None:
    window = desk.frame[:LOOK_BACK]
    window.loc[model.fitted.cells[:, 2], "heat"] = np.nan
    table = client.post("/tables", content=window.to_csv(index=False)).json()["table"]["id"]
    refused = client.get(f"/tables/{table}/moments", params={"model": "sealed"})
    assert refused.status_code == 422
    assert "observed at least once, where it is read" in refused.json()["error"]
    assert client.get(f"/tables/{table}/moments", params={"model": "town"}).json()["count"] == 1


@pytest.mark.parametrize("name", ["sealed", "town"])
def test_the_starts_are_those_that_the_desk_accepts(service: Service, desk: Any, name: str) -> None:
    check_starts(service.models.get(name).forecaster, desk.frame, gaps=0.95)


def test_the_starts_of_longer_patches_need_a_complete_patch_of_every_channel(folder: Path, desk: Any) -> None:
    check_starts(IBForecaster.load(fit(folder, desk.table, "patched", patch_len=4)), desk.frame, gaps=0.3)


def check_starts(model: IBForecaster, frame: pd.DataFrame, gaps: float) -> None:
    random = np.random.default_rng(3)
    for column in ("load", "wind", "heat"):
        frame.loc[random.random(len(frame)) < gaps, column] = np.nan
    series, accepted = model.open(frame).series, []
    for start in range(len(frame) - LOOK_BACK + 1):
        with suppress(DataError):
            accepted.append(model.desk.start_of(series, start + LOOK_BACK - 1))
    assert 0 < len(accepted) < len(frame) - LOOK_BACK
    assert starts(series, model.fitted).tolist() == accepted


def noise(document: dict[str, Any], size: float = 100.0) -> list[list[float]]:
    history = np.array(document["window"]["history"], dtype=np.float64)
    drawn: list[list[float]] = (size * np.random.default_rng(1).standard_normal(history.shape)).tolist()
    return drawn


SCRAMBLES = {
    "noise": noise,
    "huge": lambda document: noise(document, 1e300),
    "largest": lambda document: [[1.7e308, -1.7e308, 1e-308]] * LOOK_BACK,
    "nothing": lambda document: [[None] * 3] * LOOK_BACK,
    "values of other times": lambda document: document["window"]["history"][::-1],
}


@pytest.mark.parametrize("kind", SCRAMBLES)
def test_scrambling_what_a_sealed_model_did_not_read_changes_no_bit(
    client: Any, explained: dict[str, Any], kind: str
) -> None:
    question = {"explanation": explained, "values": SCRAMBLES[kind](explained)}
    answer = client.post("/rerun", question).json()
    assert (answer["sealed"], answer["same_bits"], answer["changed"]) == (True, True, [])
    assert bits(answer["forecast"]) == bits(explained["forecast"])
    assert [shift["largest"] for shift in answer["shift"]] == [0, 0, 0]
    mask = np.array(explained["explanation"]["mask"])
    assert answer["replaced"] == mask.size - mask.sum()
    assert answer["note"].startswith("nothing was held")
    assert answer["note"].endswith("the same, bit for bit")


def test_last_digits_of_another_machine_are_no_change(client: Any, explained: dict[str, Any]) -> None:
    there = ExplainedForecast.from_json(json.dumps(explained))
    there = replace(there, forecast=np.nextafter(there.forecast, np.inf))
    question = {"explanation": json.loads(there.to_json()), "values": noise(explained)}
    answer = client.post("/rerun", question).json()
    assert (answer["same_bits"], answer["changed"]) == (True, [])
    assert bits(answer["forecast"]) == bits(explained["forecast"]) != bits(there.forecast.tolist())


def test_shifts_are_measured_in_scales_that_the_service_computes(client: Any, desk: Any) -> None:
    document = explain(client, desk.columns(), model="town")
    there = ExplainedForecast.from_json(json.dumps(document))
    own = there.explanation
    wider = replace(own, context=replace(own.context, scale=own.context.scale * np.float32(1000)))
    forged = json.loads(replace(there, explanation=wider).to_json())
    question = {"model": "town", "values": noise(document)}
    honest, other = (client.post("/rerun", question | {"explanation": one}).json() for one in (document, forged))
    assert [shift["in_scales"] for shift in honest["shift"]] == [shift["in_scales"] for shift in other["shift"]]
    scales = dict(zip(there.channels, there.units.std * own.context.scale, strict=True))
    for shift in honest["shift"]:
        assert shift["in_scales"] == pytest.approx(abs(shift["largest"]) / scales[shift["channel"]])


def test_scrambling_with_nothing_held_moves_a_model_that_looks_at_everything(client: Any, desk: Any) -> None:
    document = explain(client, desk.columns(), model="town")
    answer = client.post("/rerun", {"explanation": document, "values": noise(document)}).json()
    assert (answer["model"], answer["sealed"], answer["same_bits"]) == ("town", False, False)
    assert {"level", "scale", "forecast"} <= set(answer["changed"])
    assert "missing" not in answer["changed"]
    assert answer["note"].startswith("nothing was held")
    assert "forecast changed" in answer["note"]
    assert max(shift["in_scales"] for shift in answer["shift"]) > 0


def test_what_ifs_of_a_model_that_is_not_sealed_still_hold_the_context(client: Any, desk: Any) -> None:
    document = explain(client, desk.columns(), model="town")
    mask, values = np.array(document["explanation"]["mask"]), noise(document)
    length = LOOK_BACK // len(mask)
    edits = [
        {"patch": patch, "channel": ("load", "wind", "heat")[column], "values": [row[column] for row in rows]}
        for patch, column in np.argwhere(mask == 0).tolist()
        for rows in (values[patch * length : (patch + 1) * length],)
    ]
    answer = client.post("/replay", {"explanation": document, "evidence": edits}).json()
    assert (answer["closed_edits"], answer["same_bits"]) == (len(edits), True)


def test_values_that_were_read_and_gaps_stay_as_they_are(client: Any, desk: Any, model: IBForecaster) -> None:
    moment = desk.frame["when"][353]
    document = explain(client, desk.columns(), moment)
    missing = np.array(document["explanation"]["missing"])
    assert (missing.astype(bool) & model.fitted.cells).any()
    answer = client.post("/rerun", {"explanation": document, "values": noise(document)}).json()
    assert answer["same_bits"] is True
    mask = np.array(document["explanation"]["mask"])
    assert answer["replaced"] == mask.size - mask.sum() - missing.sum()
    untouched = client.post("/rerun", {"explanation": document, "values": document["window"]["history"]}).json()
    assert (untouched["replaced"], untouched["same_bits"]) == (0, True)


def test_covariates_known_ahead_are_needed_in_addition_to_the_cells(
    folder: Path, desk: Any, make: Any, over: Any
) -> None:
    client = over(make({"sealed": fit(folder, desk.table, "driven", past=["wind"], future=["heat"])}))
    document, columns = explain(client, desk.columns()), desk.columns()
    answer = client.post("/rerun", {"explanation": document, "values": [[1e30, -1e30]] * LOOK_BACK}).json()
    assert (answer["same_bits"], answer["changed"]) == (True, [])
    assert [shift["channel"] for shift in answer["shift"]] == ["load"]
    reading = client.get("/models/sealed/reads", params={"at": MOMENT}).json()
    assert {cell["channel"] for cell in reading["cells"]} == {"load", "wind"}
    sparse, last = only(reading["cells"], columns), columns["when"].index(MOMENT)
    ahead = {name: columns[name][last + 1 : last + 1 + HORIZON] for name in ("when", "heat")}
    question = {"table": sparse | {"heat": columns["heat"][last + 1 - LOOK_BACK : last + 1]}, "future": ahead}
    (forecast,) = client.post("/forecast", question).json()["forecasts"]
    assert bits([row[0] for row in forecast["values"]]) == bits([row[0] for row in document["forecast"]])


def test_values_of_another_shape_and_explanations_of_other_models_are_refused(
    client: Any, explained: dict[str, Any]
) -> None:
    short = client.post("/rerun", {"explanation": explained, "values": noise(explained)[1:]})
    assert (short.status_code, short.json()["field"]) == (422, "values")
    assert "values must have 48 rows, one per step, of 3 channels (got 47 rows of [3])" in short.json()["error"]
    other = client.post("/rerun", {"explanation": explained, "values": noise(explained), "model": "town"})
    assert (other.status_code, other.json()["field"]) == (422, "explanation")
    text = f'{{"explanation": {{}}, "values": [[{"NaN"}]]}}'
    invalid = client.post("/rerun", content=text, headers={"content-type": "application/json"})
    assert invalid.status_code == 422


def test_values_that_a_model_cannot_compute_with_are_refused(client: Any, desk: Any) -> None:
    document = explain(client, desk.columns(), model="town")
    refused = client.post("/rerun", {"explanation": document, "values": [[1e308] * 3] * LOOK_BACK})
    assert (refused.status_code, refused.json()["field"]) == (422, "values")
    assert "of a size the model can compute with" in refused.json()["error"]


def test_the_metrics_count_readings_by_route_and_reruns_as_windows(
    folder: Path, make: Any, over: Any, explained: dict[str, Any]
) -> None:
    client = over(make({"sealed": folder / "sealed"}))
    client.get("/models/sealed/reads")
    client.get("/models/elsewhere/reads")
    client.post("/rerun", {"explanation": explained, "values": noise(explained)})
    samples = {
        (sample.name.removeprefix("ibforecast_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    assert samples["requests_total", "/models/{name}/reads", "200"] == 1
    assert samples["requests_total", "/models/{name}/reads", "404"] == 1
    assert samples["requests_total", "/rerun", "200"] == 1
    assert samples["windows_total", "sealed"] == 1
