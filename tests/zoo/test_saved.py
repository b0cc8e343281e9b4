"""A loaded model equals the saved one bit for bit; a damaged one is refused with the reason."""

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch.overrides import TorchFunctionMode

from ibforecast.core import document as documents
from ibforecast.core import folders
from ibforecast.core.errors import ModelFileError, UsageError
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.window import Window
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import network_of
from ibforecast.train.config import TrainConfig
from ibforecast.zoo import saved
from ibforecast.zoo.saved import DOCUMENT, FORMAT, VERSION, WEIGHTS, FittedModel, TrainingSummary, load
from ibforecast.zoo.stages import Contest, NoContest

RULE_VALUE_REMEDY = r"(?s)^.+ \(.+\); .+"


def fitted_model(seed: int = 0, **settings: Any) -> FittedModel:
    config = ModelConfig(
        look_back=12,
        horizon=5,
        channels=2,
        cycle=7,
        patch_len=3,
        budget=0.3,
        gate=GateConfig(width=4, heads=2),
        readout=ReadoutConfig(width=6),
        objective=ObjectiveConfig(prior=0.2),
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        network = IBForecast(replace(config, **settings)).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    summary = TrainingSummary(
        recipe="default",
        recipe_sha256="a" * 64,
        data_sha256="b" * 64,
        rows=100,
        seed=2024,
        device="cpu",
        seconds=1.5,
        windows=60,
        epochs=3,
        best_epoch=2,
        validation_error=1 / 3,
    )
    return FittedModel(
        network=network,
        standardiser=Standardiser(np.array([1 / 3, -2e-7]), np.array([0.1, 1e9 / 7])),
        layout=Layout(time="date", channels=("load", "temp °C"), frequency="1h", missing_values=(-9999.0,)),
        origin="2020-01-01T00:00:00.000000",
        split=Split(70, 80, 100),
        summary=summary,
    )


def window() -> Window:
    random = torch.Generator().manual_seed(1)
    values = torch.randn(3, 12, 2, generator=random)
    observed = torch.rand(3, 12, 2, generator=random) > 0.05
    return Window(values, observed, torch.arange(17).expand(3, -1) % 7)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fitted_model().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"frame": "weighted", "readout": ReadoutConfig(width=6, cross_channel=True)},
        {"profile": False, "readout": ReadoutConfig(kind="linear"), "gate": GateConfig(width=4, heads=2, recent=0)},
        {"readout": ReadoutConfig(kind="mlp", width=6), "gate": GateConfig(kind="threshold", width=4, heads=2)},
    ],
)
@torch.no_grad()
def test_a_loaded_model_gives_the_same_forecast_and_mask_bit_for_bit(tmp_path: Path, settings: dict[str, Any]) -> None:
    model = fitted_model(**settings)
    model.save(tmp_path / "deep" / "model")
    again = load(tmp_path / "deep" / "model")
    one, other = model.network(window()), again.network(window())
    assert one.explanation is not None
    assert other.explanation is not None
    assert torch.equal(one.values.view(torch.int32), other.values.view(torch.int32))
    assert torch.equal(one.explanation.mask, other.explanation.mask)
    assert not again.network.training


def test_a_loaded_model_has_the_contest_and_the_schedule_of_its_training(tmp_path: Path) -> None:
    model = fitted_model()
    summary = replace(model.summary, contest=Contest(1 / 3, 0.3, 0.02, 12.5), schedule=TrainConfig(second_epochs=5))
    replace(model, summary=summary).save(tmp_path / "model")
    again = load(tmp_path / "model").summary
    assert again == summary
    assert isinstance(again.contest, Contest)
    assert str(again.contest).startswith("choosing: a choosing reader was 10.0% better")


def test_a_loaded_model_has_the_reason_why_a_contest_has_no_outcome(tmp_path: Path) -> None:
    model = fitted_model()
    stopped = replace(model, summary=replace(model.summary, no_contest=NoContest("out of time")))
    stopped.save(tmp_path / "model")
    assert load(tmp_path / "model").summary == stopped.summary
    assert stopped.weights_sha256 != model.weights_sha256


def test_parts_of_a_training_that_older_models_do_not_have_are_left_out_of_a_document() -> None:
    model = fitted_model()
    older = replace(model, summary=replace(model.summary, contest=Contest(1.0, 0.9, 0.02, 12.5)))
    training = json.loads(older.files()[DOCUMENT])["training"]
    assert "no_contest" not in training
    assert not {"windows", "varied"} & set(training["contest"])
    newer = replace(
        older, summary=replace(older.summary, contest=Contest(1.0, 0.9, 0.02, 12.5, windows=30, varied=0.1))
    )
    contest = json.loads(newer.files()[DOCUMENT])["training"]["contest"]
    assert (contest["windows"], contest["varied"]) == (30, 0.1)


def test_a_loaded_model_has_the_same_configuration_layout_and_summary(folder: Path) -> None:
    model, again = fitted_model(), load(folder)
    assert again.config == model.config
    assert again.layout == model.layout
    assert again.channels == ("load", "temp °C")
    assert (again.origin, again.split, again.summary) == (model.origin, model.split, model.summary)
    assert again.even is model.even is True
    assert np.array_equal(again.standardiser.mean, model.standardiser.mean)
    assert np.array_equal(again.standardiser.std, model.standardiser.std)
    assert again.weights_sha256 == model.weights_sha256


def test_a_model_saved_again_has_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    load(folder).save(tmp_path / "again")
    for name in (DOCUMENT, WEIGHTS):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_different_weights_have_different_fingerprints() -> None:
    assert fitted_model(0).weights_sha256 == fitted_model(0).weights_sha256
    assert fitted_model(0).weights_sha256 != fitted_model(1).weights_sha256


def test_a_saved_model_contains_only_tensors_and_json(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == [DOCUMENT, WEIGHTS]
    with safe_open(folder / WEIGHTS, framework="pt") as tensors:
        assert set(tensors.keys()) == set(fitted_model().network.state_dict())
    document = json.loads((folder / DOCUMENT).read_text())
    assert (document["format"], document["version"]) == (FORMAT, VERSION)
    assert {"config", "training", "weights", "sha256"} <= document.keys()


def test_loading_never_unpickles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **settings: object) -> None:
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    load(folder)


def test_loading_leaves_the_global_generator_unchanged(folder: Path) -> None:
    state = torch.get_rng_state()
    load(folder)
    assert torch.equal(torch.get_rng_state(), state)


def refusal_of(folder: Path) -> str:
    with pytest.raises(ModelFileError, match=RULE_VALUE_REMEDY) as refusal:
        load(folder)
    return str(refusal.value)


@pytest.mark.parametrize("place", [0, 8, 40, -1, -500])
def test_weights_with_a_single_changed_byte_are_refused(folder: Path, place: int) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[place] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    assert "fingerprint" in refusal_of(folder)


@pytest.mark.parametrize("kept", [0, 7, 200, -1])
def test_truncated_weights_are_refused(folder: Path, kept: int) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:kept])
    assert f"{len(content)} bytes" in refusal_of(folder)


def test_weights_with_bytes_appended_are_refused(folder: Path) -> None:
    with (folder / WEIGHTS).open("ab") as file:
        file.write(b"\0")
    assert "bytes" in refusal_of(folder)


def test_the_weights_of_another_model_are_refused(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(fitted_model(seed=9).weights)
    assert "fingerprint" in refusal_of(folder)


def edit_document(folder: Path, edit: Callable[[dict[str, Any]], None], sealed: bool = False) -> None:
    """Change the document; with `sealed`, also its fingerprint."""
    document = json.loads((folder / DOCUMENT).read_text())
    edit(document)
    if sealed:
        document.pop("sha256")
        document["sha256"] = documents.fingerprint(document)
    (folder / DOCUMENT).write_text(json.dumps(document))


def test_a_document_rewritten_with_the_same_content_is_accepted(folder: Path) -> None:
    before = load(folder)
    document = json.loads((folder / DOCUMENT).read_text())
    (folder / DOCUMENT).write_text(json.dumps(dict(reversed(document.items())), indent=3))
    again = load(folder)
    assert (again.config, again.layout, again.summary) == (before.config, before.layout, before.summary)


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document["config"].update(budget=0.9),
        lambda document: document["standardisation"]["mean"].__setitem__(0, 0.0),
        lambda document: document["layout"].update(channels=["temp °C", "load"]),
        lambda document: document["split"].update(test_end=90),
        lambda document: document["training"].update(seed=1),
        lambda document: document["weights"].update(sha256="0" * 64),
        lambda document: document.update(note="hello"),
        lambda document: document.pop("origin"),
    ],
)
def test_an_edited_document_is_refused(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    edit_document(folder, edit)
    assert "must match its fingerprint (got content changed" in refusal_of(folder)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_document_with_a_number_that_is_not_finite_is_refused(folder: Path, number: str) -> None:
    text = (folder / DOCUMENT).read_text()
    changed = re.sub(r'"budget":[\d.]+', f'"budget":{number}', text, count=1)
    assert changed != text
    (folder / DOCUMENT).write_text(changed)
    assert "a number must be finite" in refusal_of(folder)


def test_a_document_without_a_fingerprint_is_refused(folder: Path) -> None:
    edit_document(folder, lambda document: document.pop("sha256"))
    assert "must name its fingerprint" in refusal_of(folder)
    edit_document(folder, lambda document: document["training"].update(validation_error=float("nan")))
    assert "a number must be finite" in refusal_of(folder)


def test_a_repeated_key_is_refused(folder: Path) -> None:
    text = (folder / DOCUMENT).read_text()
    (folder / DOCUMENT).write_text(text.replace('"budget":', '"budget":0.9,"budget":', 1))
    assert "a key must appear once" in refusal_of(folder)


def test_a_file_of_another_name_is_refused(folder: Path) -> None:
    edit_document(folder, lambda document: document["weights"].update(file="x" * 3000), sealed=True)
    assert "weights.safetensors and intervals.safetensors" in refusal_of(folder)


@pytest.mark.parametrize(
    "edit",
    [
        lambda document: document["config"].update(budget=1.5),
        lambda document: document["config"].update(unknown_setting=1),
        lambda document: document["config"].update(horizon=6),
        lambda document: document["config"].update(look_back="12"),
        lambda document: document["config"]["gate"].update(kind="soft"),
        lambda document: document["config"].update(gate=3),
        lambda document: document.update(config=[]),
        lambda document: document.pop("config"),
        lambda document: document.pop("standardisation"),
        lambda document: document.pop("training"),
        lambda document: document["training"].pop("epochs"),
        lambda document: document["split"].update(fourth=1),
        lambda document: document["split"].update(train_end="1"),
        lambda document: document["split"].update(test_end=0),
        lambda document: document.update(origin=5),
        lambda document: document.update(even="yes"),
        lambda document: document.update(layout={"chanels": ["a"]}),
        pytest.param(lambda document: document.pop("weights")),
        pytest.param(lambda document: document["weights"].pop("bytes")),
    ],
)
def test_an_incomplete_document_with_a_valid_fingerprint_is_refused(
    folder: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    edit_document(folder, edit, sealed=True)
    assert "complete" in refusal_of(folder)


CLAIMS: dict[str, Callable[[dict[str, Any]], object]] = {
    "channels": lambda config: config.update(channels=10**8),
    "a horizon": lambda config: config.update(horizon=10**6),
    "a cycle": lambda config: config.update(cycle=10**6),
    "a look-back": lambda config: config.update(look_back=10**6, patch_len=1),
    "a readout": lambda config: config["readout"].update(width=16_384),
    "a gate": lambda config: config["gate"].update(width=16_384),
    "layers": lambda config: config["gate"].update(width=1_024, layers=1_000),
    "more cycles": lambda config: config.update(further_cycles=[99_991, 99_989]),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_document_that_claims_a_huge_network_is_refused_before_it_is_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch, claim: str
) -> None:
    text = (folder / DOCUMENT).read_bytes()
    content = documents.read(text, FORMAT, VERSION, ModelFileError)
    CLAIMS[claim](content["config"])
    (folder / DOCUMENT).write_text(documents.write(FORMAT, VERSION, content))
    made: list[int] = []

    def build(config: ModelConfig) -> IBForecast:
        with Sizes(made):
            return network_of(config)

    monkeypatch.setattr(saved, "network_of", build)
    with pytest.raises(ModelFileError, match=RULE_VALUE_REMEDY):
        load(folder)
    assert max(made, default=0) < 10**7


@pytest.mark.parametrize("version", [VERSION + 1, 99, "1", None])
def test_a_model_of_a_newer_format_is_refused_with_the_remedy(folder: Path, version: Any) -> None:
    edit_document(folder, lambda document: document.update(version=version), sealed=True)
    message = refusal_of(folder)
    assert f"up to version {VERSION} (got version {version!r}" in message
    assert message.endswith("upgrade ibforecast")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"format": "ibforecast.explanation"}'])
def test_an_invalid_document_is_refused(folder: Path, content: bytes) -> None:
    (folder / DOCUMENT).write_bytes(content)
    assert DOCUMENT in refusal_of(folder)


def test_a_truncated_document_is_refused(folder: Path) -> None:
    content = (folder / DOCUMENT).read_bytes()
    (folder / DOCUMENT).write_bytes(content[: len(content) // 2])
    assert "valid JSON" in refusal_of(folder)


@pytest.mark.parametrize("name", [DOCUMENT, WEIGHTS])
def test_a_model_with_a_missing_file_is_refused_with_its_name(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert name in refusal_of(folder)


def test_a_path_that_is_not_a_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("no model")
    for path in (tmp_path / "empty", tmp_path / "file.txt", tmp_path / "nowhere"):
        assert str(path) in refusal_of(path)


class Sizes(TorchFunctionMode):
    """Records how many numbers each tensor has that is made."""

    def __init__(self, made: list[int]) -> None:
        super().__init__()
        self.made = made

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.made.append(result.numel())
        return result


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_model_is_replaced_only_with_overwrite(folder: Path) -> None:
    before = contents(folder)
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY):
        fitted_model(seed=1).save(folder)
    assert contents(folder) == before
    fitted_model(seed=1).save(folder, overwrite=True)
    assert load(folder).weights_sha256 == fitted_model(seed=1).weights_sha256
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_only_a_model_may_be_overwritten(tmp_path: Path) -> None:
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("a file")
    before = contents(tmp_path)
    for path in (other, tmp_path / "file"):
        with pytest.raises(UsageError, match="only a model may be overwritten"):
            fitted_model().save(path, overwrite=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("file", [WEIGHTS, DOCUMENT])
def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    write = saved.write_atomically

    def fail(path: Path, content: bytes) -> None:
        if path.name == file:
            raise OSError("disk full")
        write(path, content)

    monkeypatch.setattr(saved, "write_atomically", fail)
    with pytest.raises(OSError, match="disk full"):
        fitted_model().save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", [WEIGHTS, DOCUMENT])
def test_an_overwrite_that_fails_leaves_the_old_model_unchanged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    before, write = contents(folder.parent), saved.write_atomically

    def fail(path: Path, content: bytes) -> None:
        if path.name == file:
            raise OSError("disk full")
        write(path, content)

    monkeypatch.setattr(saved, "write_atomically", fail)
    with pytest.raises(OSError, match="disk full"):
        fitted_model(seed=1).save(folder, overwrite=True)
    assert contents(folder.parent) == before


@pytest.fixture
def by_renames(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that cannot exchange two folders in one step."""
    monkeypatch.setattr(folders, "exchanged", lambda one, other: False)


@pytest.mark.usefixtures("by_renames")
def test_an_overwrite_that_fails_at_the_last_rename_leaves_the_old_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rename = contents(folder.parent), Path.rename

    def fail(path: Path, to: Path) -> Path:
        if Path(to) == folder and path.name != folders.ASIDE:
            raise OSError("no permission")
        return rename(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", fail)
        with pytest.raises(OSError, match="no permission"):
            fitted_model(seed=1).save(folder, overwrite=True)
    assert contents(folder.parent) == before


@pytest.mark.usefixtures("by_renames")
def test_an_overwrite_interrupted_at_the_last_rename_leaves_the_old_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rename = contents(folder.parent), Path.rename

    def interrupt(path: Path, to: Path) -> Path:
        if Path(to) == folder and path.name != folders.ASIDE:
            raise KeyboardInterrupt
        return rename(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fitted_model(seed=1).save(folder, overwrite=True)
    assert contents(folder.parent) == before


@pytest.mark.usefixtures("by_renames")
def test_an_old_model_that_cannot_be_restored_is_kept_under_another_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, rename = contents(folder), Path.rename

    def fail(path: Path, to: Path) -> Path:
        if Path(to) == folder:
            raise OSError("no permission")
        return rename(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", fail)
        with pytest.raises(OSError, match="no permission"):
            fitted_model(seed=1).save(folder, overwrite=True)
    assert old[WEIGHTS] in contents(folder.parent).values()


def test_other_users_can_read_a_saved_model(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o755
    assert (folder / WEIGHTS).stat().st_mode & 0o777 == 0o644


def test_temporary_folders_of_living_and_of_other_processes_stay(folder: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    names = {
        f".model.{folders.HOST}-{int(ended.stdout)}.a1": False,
        f".other.{folders.HOST}-{int(ended.stdout)}.a1": False,
        f".model.{folders.HOST}-{os.getpid()}.a1": True,
        f".model.{folders.HOST}-1.a1": True,
        f".model.elsewhere-{int(ended.stdout)}.a1": True,
        f"model.{folders.HOST}-{int(ended.stdout)}.a1": True,
        ".model.backup": True,
    }
    for name in names:
        (folder.parent / name).mkdir()
    fitted_model().save(folder, overwrite=True)
    assert {name: (folder.parent / name).exists() for name in names} == names
