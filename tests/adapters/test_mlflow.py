"""Models in MLflow: logged to a local store and loaded again, they forecast and itemise as before."""

import asyncio
import csv
import io
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import mlflow
import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml

from ibforecast import ExplainedForecast, IBForecaster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # mlflow's, about its own type hints
    from mlflow.pyfunc import scoring_server

    from ibforecast.adapters.mlflow import log_explanation, log_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore:.*An input example was not provided")  # mlflow's own

HORIZON, LOOK_BACK = 4, 24
RECIPE = """
extends = "additive"
[model.readout]
width = 8
[train]
epochs = 1
batch = 64
"""


def make_table(kind: Any = pd.DataFrame) -> Any:
    hour, noise = np.arange(200), np.random.default_rng(1).normal(size=(200, 3))
    values = np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * noise
    when = np.datetime64("2023-01-01", "us") + hour * np.timedelta64(1, "h")
    return kind({"when": when} | dict(zip(("load", "heat", "wind"), values.T, strict=True)))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    recipe = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    recipe.write_text(RECIPE)
    return IBForecaster(HORIZON, LOOK_BACK, recipe=str(recipe), past=["wind"], device="cpu").fit(make_table())


@pytest.fixture
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A local store in a folder of the test: MLflow offers others only with a database or a server."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    yield
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def folder(model: IBForecaster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model"
    save_model(model, path)
    return path


@pytest.mark.usefixtures("_store")
def test_a_logged_model_forecasts_as_before(model: IBForecaster) -> None:
    with mlflow.start_run():
        info = log_model(model)
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    pd.testing.assert_frame_equal(loaded.predict(make_table()), model.predict(make_table()), check_exact=True)


@pytest.mark.usefixtures("_store")
def test_an_explanation_is_among_the_artifacts_of_the_run(model: IBForecaster) -> None:
    explained = model.explain(make_table())
    with mlflow.start_run() as run:
        log_model(model, explained=explained)
        log_explanation(explained, "again")
    for name in ("explanation", "again"):
        local = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=name))
        assert {path.name for path in local.iterdir()} == {"why.json", "why.png", "receipt.csv"}
        assert (local / "why.png").read_bytes().startswith(b"\x89PNG")
        assert model.verify(ExplainedForecast.from_json((local / "why.json").read_text("utf8")))
        rows = list(csv.DictReader(io.StringIO((local / "receipt.csv").read_text("utf8"))))
        for channel in ("load", "heat"):
            total = sum(float(row["amount"]) for row in rows if row["forecast"] == channel)
            assert total == pytest.approx(explained.itemised(channel).forecast, abs=1e-9)


def test_receipts_are_returned_on_request(model: IBForecaster, folder: Path) -> None:
    loaded, at = mlflow.pyfunc.load_model(str(folder)), "2023-01-08 03:00"
    for params, step in (({}, "mean"), ({"step": 3}, 3)):
        rows = loaded.predict(make_table(), params={"receipt": True, "at": at} | params)
        assert rows["forecast"].unique().tolist() == ["load", "heat"]
        for channel, part in rows.groupby("forecast"):
            expected = model.explain(make_table(), at).receipt(channel, step)
            pd.testing.assert_frame_equal(part.drop(columns="forecast").reset_index(drop=True), expected)


def test_a_forecast_can_be_of_an_earlier_moment(model: IBForecaster, folder: Path) -> None:
    at = "2023-01-08 03:00"
    forecast = mlflow.pyfunc.load_model(str(folder)).predict(make_table(), params={"at": at})
    pd.testing.assert_frame_equal(forecast, model.predict(make_table(), at), check_exact=True)


def test_tables_of_other_kinds_keep_their_kind(model: IBForecaster, folder: Path) -> None:
    loaded = mlflow.pyfunc.load_model(str(folder))
    table = make_table(pl.DataFrame)
    assert loaded.predict(table).equals(model.predict(table))
    assert isinstance(loaded.predict(table, params={"receipt": True}), pl.DataFrame)


# --- Served ---


def answer_to(body: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> httpx.Response:
    """Return the answer of the application that `mlflow models serve` runs."""
    monkeypatch.setenv("_MLFLOW_IS_IN_SERVING_ENVIRONMENT", "true")  # MLflow sets it too, and would leave it set
    app = scoring_server.init(mlflow.pyfunc.load_model(str(folder)))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://served") as client:
            return await client.post("/invocations", json=body, timeout=60)

    return asyncio.run(ask())


def with_gaps() -> pd.DataFrame:
    table = make_table()
    table.loc[190:193, "heat"] = np.nan
    table["wind"] = np.where(np.arange(200) < 5, np.nan, table["wind"])
    return table


@pytest.mark.parametrize("table", [make_table(), with_gaps()], ids=["complete", "gaps"])
@pytest.mark.parametrize("form", ["dataframe_split", "dataframe_records"])
def test_a_served_model_answers_with_the_forecast(
    model: IBForecaster, folder: Path, table: pd.DataFrame, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = "2023-01-08 03:00"
    rows = json.loads(table.to_json(orient=form.removeprefix("dataframe_"), date_format="iso", double_precision=15))
    for params, moment in (({}, None), ({"at": at}, at)):
        answer = answer_to({form: rows, "params": params}, folder, monkeypatch)
        assert answer.status_code == 200, answer.text
        forecast, expected = pd.DataFrame(answer.json()["predictions"]), model.predict(table, moment)
        assert pd.to_datetime(forecast.pop("when")).tolist() == expected.pop("when").tolist()
        pd.testing.assert_frame_equal(forecast, expected, rtol=1e-6)


def test_a_served_model_answers_with_receipts_that_add_up(
    model: IBForecaster, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"dataframe_split": json.loads(make_table().to_json(orient="split", date_format="iso"))}
    answer = answer_to(body | {"params": {"receipt": True, "step": 2}}, folder, monkeypatch)
    assert answer.status_code == 200, answer.text
    rows = pd.DataFrame(answer.json()["predictions"])
    for channel, part in rows.groupby("forecast"):
        expected = model.explain(make_table()).itemised(channel, 2)
        assert part["amount"].sum() == pytest.approx(expected.forecast, abs=1e-6)
        assert len(part) == len(expected.amounts)


def test_a_served_model_says_what_is_wrong_with_a_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"dataframe_split": json.loads(make_table().drop(columns="heat").to_json(orient="split", date_format="iso"))}
    answer = answer_to(body, folder, monkeypatch)
    assert answer.status_code == 400
    assert "heat" in answer.text


def test_the_input_example_is_the_body_of_a_request(
    model: IBForecaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(model, tmp_path / "model", input_example=make_table().tail(LOOK_BACK))
    body = json.loads((tmp_path / "model" / "serving_input_example.json").read_text("utf8"))
    answer = answer_to(body, tmp_path / "model", monkeypatch)
    assert answer.status_code == 200, answer.text
    forecast = pd.DataFrame(answer.json()["predictions"])
    np.testing.assert_allclose(forecast["load"], model.predict(make_table())["load"], rtol=1e-6)


def test_the_forecaster_itself_can_be_taken_out(model: IBForecaster, folder: Path) -> None:
    raw = mlflow.pyfunc.load_model(str(folder)).get_raw_model()
    assert isinstance(raw, IBForecaster)
    assert raw.verify(model.explain(make_table()), make_table())


def test_the_folder_contains_no_pickle_and_names_the_module_that_reads_it(folder: Path) -> None:
    stored = {path.suffix for path in (folder / "data").rglob("*") if path.is_file()}
    assert stored == {".json", ".safetensors"}
    assert not [path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle", ".pt", ".joblib")]
    described = yaml.safe_load((folder / "MLmodel").read_text("utf8"))["flavors"]["python_function"]
    assert described["loader_module"] == "ibforecast.adapters.mlflow"


def test_a_folder_that_was_changed_is_refused(model: IBForecaster, tmp_path: Path) -> None:
    save_model(model, tmp_path / "model")
    (weights,) = (tmp_path / "model" / "data").rglob("weights.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(Exception, match="weights"):
        mlflow.pyfunc.load_model(str(tmp_path / "model"))
