"""Models with the same weights and other units or limits: the service keeps their answers apart."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ibforecast import DataError, IBForecaster, UsageError
from ibforecast.core.comparison import compare
from ibforecast.core.limits import Limits
from ibforecast.core.standardiser import Standardiser

LIMITS = Limits(np.full(3, -np.inf), np.array([900.0, np.inf, np.inf]), np.zeros(3, dtype=bool))


@pytest.fixture(scope="module")
def alike(desk: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model, the same in other units, as in a global fleet, and the same with a limit."""
    fitted = desk.model().fitted
    units = Standardiser(fitted.standardiser.mean + 1, fitted.standardiser.std * 2)
    folder = tmp_path_factory.mktemp("alike")
    for name, model in (("other", replace(fitted, standardiser=units)), ("limited", replace(fitted, limits=LIMITS))):
        model.save(folder / name)
    return {"town": desk.town, "other": folder / "other", "limited": folder / "limited"}


def test_an_explanation_is_checked_by_the_model_whose_units_it_states(
    alike: dict[str, Path], desk: Any, make: Any, over: Any
) -> None:
    client = over(make({name: alike[name] for name in ("town", "other")}))
    for name in ("town", "other"):
        explained = IBForecaster.load(alike[name], device="cpu").explain(desk.table)
        answer = client.post("/verify", {"explanation": explained.to_json()}).json()
        assert (answer["model"], answer["verified"]) == (name, True)
    refused = client.post("/replay", {"explanation": explained.to_json(), "model": "town"})
    assert refused.status_code == 422
    assert f"weights {explained.weights_sha256[:12]}, where this model has" in refused.json()["error"]


def test_an_explanation_is_checked_by_the_model_whose_limits_it_states(
    alike: dict[str, Path], desk: Any, make: Any, over: Any
) -> None:
    for order in (("town", "limited"), ("limited", "town")):
        client = over(make({name: alike[name] for name in order}))
        for name in order:
            explained = IBForecaster.load(alike[name], device="cpu").explain(desk.table)
            for sent in (explained.to_json(), explained.with_receipts(["load"]).to_json()):
                answer = client.post("/verify", {"explanation": sent}).json()
                assert (answer["model"], answer["verified"]) == (name, True)
            answer = client.post("/receipts", {"explanation": explained.to_json(), "channel": "load"})
            assert (answer.status_code, answer.json()["model"]) == (200, name)
            refused = client.post("/replay", {"explanation": explained.to_json(), "model": order[name == order[0]]})
            assert refused.status_code == 422
            assert f"weights {explained.weights_sha256[:12]}, where this model has" in refused.json()["error"]


def test_answers_of_models_that_differ_in_their_limits_say_so(
    alike: dict[str, Path], desk: Any, make: Any, over: Any
) -> None:
    client = over(make({name: alike[name] for name in ("town", "limited")}))
    described = {model["name"]: model["limits"] for model in client.get("/models").json()["models"]}
    stated = {"low": [None] * 3, "high": [900.0, None, None], "whole": [False] * 3}
    assert described == {"town": None, "limited": stated}
    for name, limits in described.items():
        answer = client.post("/forecast?form=arrow", {"table": desk.columns(), "model": name})
        written = pa.ipc.open_stream(answer.content).schema.metadata.get(b"limits")
        assert (written and json.loads(written)) == limits


def test_the_histories_of_models_with_the_same_weights_are_their_own(
    alike: dict[str, Path], desk: Any, make: Any, over: Any
) -> None:
    client = over(make(alike))
    table = client.post("/tables", content=desk.table.read_bytes()).json()["table"]["id"]
    errors = {
        name: client.get(f"/tables/{table}/history", params={"model": name, "windows": 8}).json()["squared_error"]
        for name in alike
    }
    assert errors["town"] != errors["other"]
    assert errors["town"] != errors["limited"], "errors are those of the forecasts that users get"


def test_a_model_with_other_limits_counts_as_changed(alike: dict[str, Path], make: Any, tmp_path: Path) -> None:
    IBForecaster.load(alike["town"], device="cpu").save(tmp_path / "model")
    service = make({"model": tmp_path / "model"})
    assert service.models.reload(["model"]) == []
    IBForecaster.load(alike["limited"], device="cpu").save(tmp_path / "model", overwrite=True)
    assert service.models.reload(["model"]) == ["model"]


@pytest.mark.parametrize("name", ["other", "limited"])
def test_explanations_with_other_units_or_limits_are_not_compared_or_itemised(
    name: str, alike: dict[str, Path], desk: Any
) -> None:
    own, other = (IBForecaster.load(alike[each], device="cpu") for each in ("town", name))
    one, two = own.explain(desk.table), other.explain(desk.table)
    for first, second in ((one, two), (two, one)):
        with pytest.raises(UsageError, match="only explanations of one model can be compared"):
            compare(first, second, "load")
    with pytest.raises((UsageError, DataError), match="where this model has"):
        own.desk.amounts(two, [0])
