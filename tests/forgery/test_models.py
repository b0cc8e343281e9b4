"""The fingerprint that explanations name covers all of a model; an ONNX file claims no more than it can show."""

import copy
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from safetensors.numpy import load, save
from tests.forgery.conftest import AT_ROW, REFUSED
from tests.forgery.forgeries import Case, sealed

from ibforecast import IBForecaster
from ibforecast.adapters import onnx_file
from ibforecast.adapters.onnx import OnnxForecaster
from ibforecast.core import document as documents
from ibforecast.core.errors import DataError, ModelFileError
from ibforecast.core.information import token_bits

Document = dict[str, Any]
Change = Callable[[Document], object]


def swap_channels(model: Document) -> None:
    model["layout"]["channels"] = [model["layout"]["channels"][0], *model["layout"]["channels"][:0:-1]]


def other_limits(model: Document) -> None:
    count = len(model["layout"]["channels"])
    model["limits"] = {"low": [899.0] + [None] * (count - 1), "high": [901.0] + [None] * (count - 1)}
    model["limits"]["whole"] = [False] * count


def other_counting(model: Document) -> None:
    by_row = model["layout"]["irregular"] == "by_row"
    model["layout"].update(irregular="error" if by_row else "by_row", numbered=False)


def other_contest(model: Document) -> None:
    model["training"]["contest"] = {"sealed": 0.001, "choosing": 0.5, "margin": 0.02, "seconds": 1.0}


CHANGES: dict[str, Change] = {
    "channels exchanged": swap_channels,
    "a spread three times as large": lambda model: model["standardisation"]["std"].__setitem__(0, 60.0),
    "a mean moved": lambda model: model["standardisation"]["mean"].__setitem__(0, 100.0),
    "limits that hold any forecast": other_limits,
    "a smaller budget": lambda model: model["config"].update(budget=0.1),
    "another zone": lambda model: model["layout"].update(zone="Asia/Tokyo"),
    "rows counted in another way": other_counting,
    "numbers in place of times": lambda model: model["layout"].update(numbered=True),
    "another origin": lambda model: model.update(origin="2022-10-20T00:00:00.000000"),
    "other marks for missing values": lambda model: model["layout"].update(missing_values=[-1.0]),
    "another split": lambda model: model["split"].update(train_end=model["split"]["train_end"] - 7),
    "an invented validation error": lambda model: model["training"].update(validation_error=0.001),
    "an invented contest": other_contest,
    "another table": lambda model: model["training"].update(data_sha256="0" * 64),
    "more epochs": lambda model: model["training"].update(epochs=500),
}


def forged(case: Case, folder: Path, change: Change) -> Path:
    """Copy the folder of a model, with its true weights and a model.json that was changed and fingerprinted again."""
    shutil.copytree(case.folder / "model", folder)
    content = json.loads((folder / "model.json").read_text("utf8"))
    before = copy.deepcopy(content)
    change(content)
    assert content != before
    body = {name: value for name, value in content.items() if name not in ("format", "version", "sha256")}
    (folder / "model.json").write_text(documents.write(content["format"], content["version"], body), "utf8")
    return folder


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_model_with_the_true_weights_and_another_meaning_has_another_fingerprint(
    case: Case, change: Change, tmp_path: Path
) -> None:
    try:
        model = IBForecaster.load(forged(case, tmp_path / "model", change), device="cpu")
    except REFUSED:
        return  # not a model at all
    assert model.fitted.weights_sha256 != case.scene.explained.weights_sha256
    verification = model.verify(case.scene.explained.to_json())
    assert "weights" in {check.name for check in verification.checks if not check.passed}


AS_SAVED = "the model.json of a saved model must be what saving the model writes"


def numbers_as_text(content: Document) -> None:
    content["standardisation"]["mean"] = [str(mean) for mean in content["standardisation"]["mean"]]


SPELLINGS: dict[str, Change] = {
    "an unknown member": lambda model: model.update(approved_by="the regulator"),
    "an unknown member of the training": lambda model: model["training"].update(approved_by="the regulator"),
    "a number as text": numbers_as_text,
    "another name for the file of the weights": lambda model: model["weights"].update(file="other.safetensors"),
}


@pytest.mark.parametrize("change", SPELLINGS.values(), ids=SPELLINGS)
def test_a_model_that_saving_would_not_write_is_not_loaded(case: Case, change: Change, tmp_path: Path) -> None:
    """What is dropped or converted when a model is read would be stated by the folder and be in no fingerprint."""
    folder = forged(case, tmp_path / "model", change)
    shutil.copy(folder / "weights.safetensors", folder / "other.safetensors")
    with pytest.raises(REFUSED):
        IBForecaster.load(folder, device="cpu")


def test_weights_in_a_file_that_says_more_than_the_model_are_not_loaded(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(case.folder / "model", folder)
    weights = folder / "weights.safetensors"
    weights.write_bytes(save(load(weights.read_bytes()), {"approved_by": "the regulator"}))
    content = json.loads((folder / "model.json").read_text("utf8"))
    content["weights"]["bytes"] = weights.stat().st_size
    content["weights"]["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
    body = {name: value for name, value in content.items() if name not in ("format", "version", "sha256")}
    (folder / "model.json").write_text(documents.write(content["format"], content["version"], body), "utf8")
    with pytest.raises(ModelFileError, match=AS_SAVED):
        IBForecaster.load(folder, device="cpu")


def nested_spreads(model: Document) -> None:
    model["standardisation"]["std"] = [[std] for std in model["standardisation"]["std"]]


def nested_limits(model: Document) -> None:
    other_limits(model)
    model["limits"]["whole"] = [[] for _ in model["limits"]["whole"]]


SHAPES: dict[str, Change] = {
    "more spreads than channels": lambda model: model["standardisation"]["std"].append(1.0),
    "a list of lists for the spreads": nested_spreads,
    "a list of lists for the limits": nested_limits,
}


@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES)
def test_a_model_whose_numbers_are_not_one_for_each_channel_is_refused(
    case: Case, change: Change, tmp_path: Path
) -> None:
    folder = forged(case, tmp_path / "model", change)
    with pytest.raises(REFUSED):
        IBForecaster.load(folder, device="cpu")


INTERVALS: dict[str, Change] = {
    "a text for the windows": lambda facts: facts.update(windows="10000 (audited)"),
    "fewer windows than none": lambda facts: facts.update(windows=-5),
    "a sentence for the moment": lambda facts: facts.update(since="2030; approved by the regulator"),
    "an unknown member": lambda facts: facts.update(coverage=0.999),
    "a word for a level": lambda facts: facts["levels"].__setitem__(3, "certain"),
    "levels that fall": lambda facts: facts["levels"].reverse(),
    "a level of more than all": lambda facts: facts["levels"].__setitem__(-1, 250),
    "an unknown member and other levels": lambda facts: facts.update(coverage=0.999, levels=[*range(2, 101)]),
}


@pytest.mark.parametrize("change", INTERVALS.values(), ids=INTERVALS)
def test_intervals_that_state_what_no_calibration_gives_are_refused(case: Case, change: Change, tmp_path: Path) -> None:
    folder = forged(case, tmp_path / "model", lambda model: change(model["intervals"]))
    with pytest.raises(ModelFileError):
        IBForecaster.load(folder, device="cpu")


@pytest.mark.parametrize("width", [-1.0, np.nan, "falling", "flat"])
def test_intervals_whose_widths_no_calibration_gives_are_refused(case: Case, width: Any, tmp_path: Path) -> None:
    path = case.folder / "model" / "intervals.safetensors"
    widths = load(path.read_bytes())["quantiles"].copy()
    if width == "falling":
        widths = widths[::-1].copy()
    elif width == "flat":
        widths = widths[..., 0].copy()
    else:
        widths[0, 0, 0] = width
    content = save({"quantiles": widths})
    facts = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    folder = forged(case, tmp_path / "model", lambda model: model["intervals"].update(facts))
    (folder / "intervals.safetensors").write_bytes(content)
    with pytest.raises(REFUSED):
        IBForecaster.load(folder, device="cpu")


def test_a_forged_model_cannot_pass_off_its_explanations_as_those_of_the_true_one(case: Case, tmp_path: Path) -> None:
    change = CHANGES["a spread three times as large"]
    model = IBForecaster.load(forged(case, tmp_path / "model", change), device="cpu")
    explained = model.explain(case.table, case.table["when"][AT_ROW])
    assert model.verify(explained)
    assert not case.doors["python"](explained.to_json(), False)


def test_the_seconds_of_training_and_the_intervals_leave_the_fingerprint(case: Case, tmp_path: Path) -> None:
    named = case.scene.explained.weights_sha256
    later = forged(case, tmp_path / "later", lambda model: model["training"].update(seconds=99.0))
    assert IBForecaster.load(later, device="cpu").fitted.weights_sha256 == named
    without = forged(case, tmp_path / "without", lambda model: model.pop("intervals"))
    assert IBForecaster.load(without, device="cpu").fitted.weights_sha256 == named


def test_the_fingerprint_is_that_of_the_document_without_seconds_and_intervals(case: Case) -> None:
    content = json.loads((case.folder / "model" / "model.json").read_text("utf8"))
    del content["sha256"], content["training"]["seconds"]
    content.pop("intervals", None)
    if content["training"]["contest"]:
        del content["training"]["contest"]["seconds"]
    assert documents.fingerprint(content) == case.scene.explained.weights_sha256


def test_an_onnx_file_does_not_claim_that_its_graph_has_the_weights_on_its_card(case: Case, tmp_path: Path) -> None:
    if case.scene.explained.covariates:
        pytest.skip("covariates change nothing here")
    path = tmp_path / "forged.onnx"
    graph = onnx.load(case.folder / "model.onnx")
    for node in graph.graph.node:
        node.output[:] = ["true" if name == "forecast" else name for name in node.output]
        node.input[:] = ["true" if name == "forecast" else name for name in node.input]
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array(5, dtype=np.float32), "five"))
    graph.graph.node.append(onnx.helper.make_node("Add", ["true", "five"], ["forecast"]))
    card = OnnxForecaster(case.folder / "model.onnx").card.to_json()
    onnx.helper.set_model_props(graph, {onnx_file.CARD: card, onnx_file.FINGERPRINT: onnx_file.BLANK})
    path.write_bytes(onnx_file.stamped(graph.SerializeToString(deterministic=True)))
    runner = OnnxForecaster(path)
    rows = case.table.iloc[: -(12 + 2)]
    times = [moment.isoformat() for moment in rows["when"]]
    explained = runner.explain(rows[list(runner.facts.channels)].to_numpy(), times)
    assert not case.doors["python"](explained.to_json(), False), "the model itself refuses it"
    verification = runner.verify(explained)
    note = next(note for note in verification.notes if note.startswith("weights: "))
    assert "only the card" in note
    assert runner.sha256 in note
    assert not any("computed with" in check.detail for check in verification.checks)
    assert runner.sha256 != OnnxForecaster(case.folder / "model.onnx").sha256


def stepped(rows: int = 300) -> pd.DataFrame:
    """Make a channel with a value every five seconds."""
    when = pd.date_range("2024-05-01", periods=rows, freq="5s")
    values = np.sin(np.arange(rows) / 3) + np.random.default_rng(1).normal(size=rows) / 5
    return pd.DataFrame({"when": when, "rpm": values})


def test_times_in_seconds_cannot_be_replaced_by_numbers() -> None:
    settings = {"epochs": 1, "recipe": "static-fixed", "cycle": 12, "patch_len": 6, "device": "cpu"}
    model, table = IBForecaster(6, 24, 0.25, **settings), stepped()
    model.fit(table)
    explained = model.explain(table)
    lie = json.loads(explained.to_json())
    monday = np.datetime64("1970-01-05", "us")
    lie["window"]["times"] = [
        str(int((np.datetime64(time, "us") - monday) / np.timedelta64(1, "s"))) for time in explained.times
    ]
    lie["window"]["frequency"] = "5 steps"
    text = sealed(lie)
    assert model.verify(explained.to_json(), table, exact=True)
    for verification in (model.verify(text), model.verify(text, table, exact=True)):
        assert "not the model's: numbered" in {check.detail for check in verification.checks if not check.passed}


def test_another_table_is_a_failed_check_and_not_an_error(case: Case) -> None:
    model = IBForecaster.load(case.folder / "model", device="cpu")
    kept = case.table.iloc[:200]
    verification = model.verify(case.scene.explained.to_json(), kept)
    failed = {check.name: check.detail for check in verification.checks if not check.passed}
    if case.kind != "by row":
        assert "it has no window from" in failed["table"]
    assert "table" in failed


def test_a_document_must_be_utf_8_without_a_mark(case: Case) -> None:
    text = case.scene.explained.to_json()
    model = IBForecaster.load(case.folder / "model", device="cpu")
    assert model.verify(text.encode())
    for encoding in ("utf-16", "utf-32", "utf-16-le", "utf-8-sig"):
        with pytest.raises(DataError, match="valid JSON"):
            model.verify(text.encode(encoding))


def test_a_prior_as_small_as_a_number_can_be_gives_no_warning() -> None:
    assert np.isinf(token_bits(np.array([0.5, 1.0]), 5e-324)).all()
