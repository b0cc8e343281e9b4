"""The ONNX door: one file, the same masks to the bit, and a runner that needs no PyTorch."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
import torch
from ibforecast.core.account import Account

from ibforecast import DataError, IBForecaster, MissingExtraError, ModelFileError, UsageError
from ibforecast.adapters import onnx_export
from ibforecast.adapters.onnx import OUTPUTS, OnnxForecaster
from ibforecast.adapters.onnx_export import export
from ibforecast.adapters.onnx_file import CARD, SEAL, UNSEALED, sealed
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.verification import Verification
from ibforecast.core.window import Window
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.zoo.saved import FittedModel, TrainingSummary

LOOK_BACK, HORIZON, PATCH_LEN, CYCLE = 48, 12, 6, 24
CHANNELS = ("load", "wind", "heat", "rain")
ROWS, PATCHES, TOKENS = 60, LOOK_BACK // PATCH_LEN, LOOK_BACK // PATCH_LEN * len(CHANNELS)
APART = 1e-4
"""By how much the logits must differ that decide what is read, so that rounding, large in a stuck channel, cannot."""

SMALL = {"width": 16, "heads": 2}
ANY_BUDGET = "capped, within, mlp, mean"
KINDS: dict[str, dict[str, Any]] = {
    ANY_BUDGET: {
        "gate": GateConfig("capped", "within", recent=0, any_budget=True, **SMALL),
        "readout": ReadoutConfig("mlp", width=16),
        "frame": "mean",
    },
    "threshold, none, linear, none": {
        "gate": GateConfig("threshold", "none"),
        "readout": ReadoutConfig("linear"),
        "frame": "none",
    },
    "open, none, cross-channel, mean": {
        "gate": GateConfig("open", "none"),
        "readout": ReadoutConfig("phase", width=16, cross_channel=True, by_channel=True),
        "frame": "mean",
        "budget": 1.0,
    },
    "newest, none, linear, weighted": {
        "gate": GateConfig("newest", "none"),
        "readout": ReadoutConfig("linear"),
        "frame": "weighted",
        "profile": False,
    },
}
USUAL = {
    "gate": GateConfig("exact", "joint", **SMALL),
    "readout": ReadoutConfig("phase", width=16),
    "frame": "weighted",
}


def fitted(**settings: Any) -> FittedModel:
    """A model with weights drawn at random, the fixed scores of a kind of gate in many ties."""
    usual = {"patch_len": PATCH_LEN, "budget": 0.3} | settings
    config = ModelConfig(LOOK_BACK, HORIZON, len(CHANNELS), CYCLE, **usual)
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        network = IBForecast(config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 0.1 * torch.randn(parameter.shape)
            if config.gate.attention == "none":
                network.score.bias.copy_(torch.randint(-1, 3, network.score.bias.shape))
    return FittedModel(
        network=network,
        standardiser=Standardiser(np.array([900.0, 40, -2, 0.125]), np.array([20.0, 3, 0.5, 1.75])),
        layout=Layout(time="when", channels=CHANNELS, shape="wide", frequency="1h", missing_values=(-99.0,)),
        origin="2023-01-01T00:00:00.000000",
        split=Split(40, 50, 60),
        summary=TrainingSummary("exact", "", "", ROWS, 1, "cpu", 0.0, 1, 1, 1, 0.5),
    )


def windows(count: int, seed: int) -> Window:
    """Random windows, some with gaps, some with a channel that stands still, one with a gap in every token."""
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(count, LOOK_BACK, len(CHANNELS), generator=random).cumsum(dim=1) / 3
    values[count // 3 : count // 2, :, 1] = 0.7
    observed = torch.rand(values.shape, generator=random) > 0.02 * torch.rand(count, 1, 1, generator=random)
    observed[-1, ::PATCH_LEN] = False
    first = torch.randint(0, CYCLE, (count, 1), generator=random)
    return Window(
        values.where(observed, torch.zeros(())), observed, (first + torch.arange(LOOK_BACK + HORIZON)) % CYCLE
    )


def numbers(rows: int = ROWS) -> np.ndarray:
    hour, noise = np.arange(rows)[:, None], np.random.default_rng(5).normal(size=(rows, len(CHANNELS)))
    return (np.sin(hour / 24 * 2 * np.pi + np.arange(4)) + 0.3 * noise) * (20, 3, 0.5, 1.75) + (900, 40, -2, 0.125)


def frame(values: np.ndarray | None = None, first: str = "2023-03-25", **times: Any) -> pd.DataFrame:
    values = numbers() if values is None else values
    when = pd.date_range(first, periods=len(values), freq="h", **times)
    return pd.DataFrame({"when": when} | dict(zip(CHANNELS, values.T, strict=True)))


def values_of(table: pd.DataFrame) -> np.ndarray:
    return table[list(CHANNELS)].to_numpy()


HOURS = frame()["when"].to_numpy()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("onnx")


@pytest.fixture(scope="module")
def usual(folder: Path) -> FittedModel:
    fresh = fitted(**USUAL)
    fresh.save(folder / "model")
    return fresh


@pytest.fixture(scope="module")
def model(usual: FittedModel, folder: Path) -> IBForecaster:
    return IBForecaster.load(folder / "model", device="cpu")


@pytest.fixture(scope="module")
def path(model: IBForecaster, folder: Path) -> Path:
    model.to_onnx(folder / "model.onnx")
    return folder / "model.onnx"


@pytest.fixture(scope="module")
def runner(path: Path) -> OnnxForecaster:
    return OnnxForecaster(path)


@pytest.fixture(scope="module")
def runners(folder: Path) -> Callable[[str], OnnxForecaster]:
    """A runner for each of the kinds; exporting takes seconds, so once is enough."""

    @cache
    def make(kind: str) -> OnnxForecaster:
        export(fitted(**KINDS[kind]), folder / f"{kind}.onnx")
        return OnnxForecaster(folder / f"{kind}.onnx")

    return make


@pytest.fixture(scope="module")
def told(runner: OnnxForecaster) -> Account:
    return runner.explain(numbers(), HOURS)


def failures(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.passed}


# --- The graph against the network ---


def decided(network: IBForecast, window: Window) -> np.ndarray:
    """Mark the windows in which no two logits that rounding could confuse decide what is read; equal ones may."""
    config = network.config
    if config.gate.kind in ("open", "newest") or config.gate.attention == "none":
        return np.ones(len(window.values), dtype=bool)
    logits = network.score(network.decompose(window)[1]).masked_fill(network._missing(window), -1e30).flatten(1)
    ranked = logits.sort(dim=1, descending=True).values
    gap = ranked[:, config.allowance - 1] - ranked[:, config.allowance]
    clear = (gap > APART) | (ranked[:, config.allowance - 1] == -1e30)
    return (clear if config.gate.kind == "exact" else clear & (logits.abs() > APART).all(dim=1)).numpy()


@torch.no_grad()
def assert_alike(network: IBForecast, runner: OnnxForecaster) -> None:
    for count, seed in ((1, 0), (2, 1), (400, 2)):
        window = windows(count, seed)
        forecast, clear = network(window), decided(network, window)
        outputs = runner.run(window.values.numpy(), window.observed.numpy(), window.phase.numpy())
        explanation = forecast.explanation
        assert clear.mean() > 0.98
        np.testing.assert_array_equal(outputs.mask[clear], explanation.mask.numpy()[clear])
        np.testing.assert_array_equal(outputs.missing, explanation.missing)
        np.testing.assert_allclose(outputs.probability, explanation.probability, atol=APART)
        np.testing.assert_allclose(outputs.evidence[clear], explanation.evidence.numpy()[clear], atol=APART)
        assert (outputs.evidence[~outputs.mask.repeat(PATCH_LEN, axis=1)] == 0).all()
        np.testing.assert_allclose(outputs.level, explanation.context.level, atol=1e-5)
        np.testing.assert_allclose(outputs.scale, explanation.context.scale, atol=1e-5)
        np.testing.assert_array_equal(outputs.profile, explanation.context.profile)
        np.testing.assert_allclose(outputs.forecast[clear], forecast.values.numpy()[clear], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_gate_readout_and_frame_gives_the_networks_masks_and_forecasts(
    kind: str, runners: Callable[[str], OnnxForecaster]
) -> None:
    assert_alike(fitted(**KINDS[kind]).network, runners(kind))


def test_the_usual_kind_gives_the_networks_masks_and_forecasts(usual: FittedModel, runner: OnnxForecaster) -> None:
    assert_alike(usual.network, runner)


def test_equal_scores_are_told_apart_as_the_network_does_it() -> None:
    """The kind without attention scores in whole numbers, so the budget ends in the middle of a tie."""
    bias = fitted(**KINDS["threshold, none, linear, none"]).network.score.bias.flatten()
    ranked = bias.sort(descending=True).values
    allowed = int(0.3 * TOKENS)
    assert ranked[allowed - 1] == ranked[allowed] > 0


def test_the_file_is_one_graph_with_an_open_batch_and_a_pinned_opset(path: Path) -> None:
    graph = onnx.load(path)
    onnx.checker.check_model(graph, full_check=True)
    assert [(entry.domain, entry.version) for entry in graph.opset_import] == [("", onnx_export.OPSET)]
    shapes = {
        given.name: [axis.dim_param or axis.dim_value for axis in given.type.tensor_type.shape.dim]
        for given in (*graph.graph.input, *graph.graph.output)
    }
    assert shapes["values"] == shapes["observed"] == shapes["evidence"] == ["batch", LOOK_BACK, len(CHANNELS)]
    assert shapes["phase"] == ["batch", LOOK_BACK + HORIZON]
    assert shapes["forecast"] == ["batch", HORIZON, len(CHANNELS)]
    assert shapes["mask"] == shapes["probability"] == shapes["missing"] == ["batch", PATCHES, len(CHANNELS)]
    assert [output.name for output in graph.graph.output] == list(OUTPUTS)
    assert {given.name for given in graph.graph.input} - {weight.name for weight in graph.graph.initializer} == {
        "values",
        "observed",
        "phase",
    }


def test_the_file_does_not_tell_where_it_was_written(path: Path) -> None:
    assert b"ibforecast/" not in path.read_bytes()
    assert b"/home" not in path.read_bytes()
    assert path.stat().st_size < len(fitted(**USUAL).weights) + 25_000


def test_exporting_leaves_the_model_as_it_was(usual: FittedModel, path: Path, model: IBForecaster) -> None:
    network = model.fitted.network
    assert not network.training
    assert network.decompose.profile.requires_grad
    assert replace(model.fitted).weights_sha256 == usual.weights_sha256


# --- Forecasts and explanations ---


def test_a_forecast_is_the_librarys_and_its_explanation_the_same_document(
    model: IBForecaster, told: Account, runner: OnnxForecaster
) -> None:
    reference = model.explain(frame())
    mine, other = (json.loads(account.to_json()) for account in (told, reference))
    for part in ("format", "format_version", "budget", "open_count", "open_rate", "prior", "window", "truth"):
        assert mine[part] == other[part]
    assert mine["explanation"]["mask"] == other["explanation"]["mask"]
    assert mine["context"]["phase"] == other["context"]["phase"]
    assert mine["model"]["weights_sha256"] == other["model"]["weights_sha256"]
    assert list(mine["model"]["computed_with"]) == ["onnxruntime", "processor", "threads"]
    assert mine.keys() == other.keys()
    for name in ("level", "scale", "profile", "evidence", "probability"):
        np.testing.assert_allclose(getattr(told, name), getattr(reference, name), atol=1e-5)
    np.testing.assert_allclose(told.forecast / told.std, reference.forecast / told.std, rtol=0, atol=1e-5)
    assert runner.predict(numbers(), HOURS).tobytes() == told.forecast.tobytes()


def test_gaps_and_marks_for_missing_values_are_read_as_the_library_reads_them(
    model: IBForecaster, runner: OnnxForecaster
) -> None:
    values = numbers()
    values[[20, 30, 41, 59], [0, 1, 2, 3]] = [np.nan, -99.0, np.nan, -99.0]
    mine, reference = runner.explain(values, frame()["when"].to_numpy()), model.explain(frame(values))
    np.testing.assert_array_equal(mine.missing, reference.missing)
    np.testing.assert_array_equal(mine.mask, reference.mask)
    np.testing.assert_array_equal(mine.history, reference.history)
    np.testing.assert_allclose(mine.forecast / mine.std, reference.forecast / mine.std, rtol=0, atol=1e-5)
    assert mine.missing.sum() == 4
    assert runner.verify(mine)
    assert model.verify(mine)


def test_only_the_last_look_back_counts(runner: OnnxForecaster, told: Account) -> None:
    table = frame()[-LOOK_BACK:]
    again = runner.explain(values_of(table), table["when"].to_numpy())
    assert again.to_json() == told.to_json()


@pytest.mark.parametrize(
    "times",
    [
        lambda when: when.to_numpy(),
        lambda when: when.to_numpy().astype("datetime64[s]"),
        lambda when: when.astype(str).tolist(),
        lambda when: when.tolist(),
        lambda when: [datetime.fromisoformat(str(time)) for time in when],
    ],
    ids=["datetime64", "seconds", "texts", "timestamps", "datetimes"],
)
def test_times_may_be_given_in_many_ways(
    runner: OnnxForecaster, told: Account, times: Callable[[pd.Series], Any]
) -> None:
    again = runner.explain(values_of(frame()), times(frame()["when"]))
    assert (again.times, again.phase.tolist()) == (told.times, told.phase.tolist())


def reseal(content: onnx.ModelProto, target: Path, card: str | None = None) -> None:
    entries = {entry.key: entry.value for entry in content.metadata_props} | {SEAL: UNSEALED}
    onnx.helper.set_model_props(content, entries | ({} if card is None else {CARD: card}))
    target.write_bytes(sealed(content.SerializeToString()))


def with_card(path: Path, target: Path, **changes: Any) -> OnnxForecaster:
    """The same model with something else on its card."""
    content = onnx.load(path)
    card = next(entry.value for entry in content.metadata_props if entry.key == CARD)
    reseal(content, target, json.dumps(json.loads(card) | changes))
    return OnnxForecaster(target)


@pytest.mark.parametrize("first", ["2023-03-24 21:00", "2023-10-27 12:00"])
def test_phases_and_labels_follow_the_clock_of_the_models_zone(
    path: Path, usual: FittedModel, first: str, tmp_path: Path
) -> None:
    zoned = replace(usual, layout=replace(usual.layout, zone="Europe/Berlin"))
    zoned.save(tmp_path / "model")
    table = frame(first=first, tz="Europe/Berlin")
    mine = with_card(path, tmp_path / "zoned.onnx", zone="Europe/Berlin").explain(values_of(table), table["when"])
    reference = IBForecaster.load(tmp_path / "model", device="cpu").explain(table)
    assert mine.times == reference.times
    assert mine.phase.tolist() == reference.phase.tolist()
    assert len({time[-6:] for time in mine.times}) == 2


def test_a_model_that_counts_rows_goes_on_counting_them(path: Path, usual: FittedModel, tmp_path: Path) -> None:
    table = frame().drop(index=[3, 40])
    origin = np.datetime_as_string(table["when"].to_numpy()[5].astype("datetime64[us]"))
    by_row = replace(usual, layout=replace(usual.layout, irregular="by_row"), origin=str(origin))
    by_row.save(tmp_path / "model")
    runner = with_card(path, tmp_path / "by_row.onnx", by_row=True, origin=by_row.origin)
    mine = runner.explain(values_of(table), table["when"].to_numpy())
    reference = IBForecaster.load(tmp_path / "model", device="cpu").explain(table)
    assert (mine.times, mine.phase.tolist()) == (reference.times, reference.phase.tolist())


def test_rows_that_cannot_be_counted_from_the_origin_are_refused(path: Path, tmp_path: Path) -> None:
    runner = with_card(path, tmp_path / "by_row.onnx", by_row=True, origin="2023-03-20T05:00:00.000000")
    table = frame().drop(index=[3, 40])
    with pytest.raises(DataError, match="rows read by number must be counted from the first one of training"):
        runner.explain(values_of(table), table["when"].to_numpy())


# --- Verification ---


def test_an_explanation_passes_every_check_bit_for_bit_where_it_was_made(runner: OnnxForecaster, told: Account) -> None:
    verification = runner.verify(Account.from_json(told.to_json()))
    assert verification
    assert [check.name for check in verification.checks] == [
        "document",
        "weights",
        "names",
        "budget",
        "replay",
        "scramble",
        "rerun",
    ]
    assert str(verification).count("bit for bit") == 2


def test_the_library_and_the_runner_verify_each_others_explanations(
    model: IBForecaster, runner: OnnxForecaster, told: Account
) -> None:
    for verification in (model.verify(Account.from_json(told.to_json())), runner.verify(model.explain(frame()))):
        assert verification, str(verification)


def opened_another(account: Account) -> dict[str, Any]:
    """One token fewer and another instead."""
    mask = account.mask.copy()
    mask[tuple(np.argwhere(account.mask)[0])] = False
    mask[tuple(np.argwhere(~account.mask)[0])] = True
    return {"mask": mask}


AFTER_BUDGET = {"replay", "scramble", "rerun"}
TAMPERED: dict[str, tuple[Callable[[Account], dict[str, Any]], set[str]]] = {
    "forecast": (lambda told: {"forecast": told.forecast + 1e-9 * told.std}, AFTER_BUDGET),
    "mask": (opened_another, AFTER_BUDGET),
    "everything open": (lambda told: {"mask": np.ones_like(told.mask)}, {"budget", *AFTER_BUDGET}),
    "evidence": (lambda told: {"evidence": told.evidence * np.float32(1.001)}, {"replay", "rerun"}),
    "level": (lambda told: {"level": told.level + np.float32(0.01)}, AFTER_BUDGET),
    "profile": (lambda told: {"profile": told.profile + np.float32(0.01)}, AFTER_BUDGET),
    "probability": (lambda told: {"probability": told.probability * np.float32(0.5)}, {"rerun"}),
    "document": (lambda told: {"intact": False}, {"document"}),
    "weights": (lambda told: {"weights_sha256": "0" * 64}, {"weights"}),
    "units": (lambda told: {"std": told.std * 2}, {"names"}),
    "budget": (lambda told: {"budget": 0.9}, {"names"}),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_tampered_with_is_found(runner: OnnxForecaster, told: Account, what: str) -> None:
    change, expected = TAMPERED[what]
    assert failures(runner.verify(replace(told, **change(told)))) == expected


def test_a_changed_past_is_found_whether_it_was_read_or_not(runner: OnnxForecaster, told: Account) -> None:
    for read in (True, False):
        patch, column = np.argwhere(told.mask == read)[0]
        history = told.history.copy()
        history[patch * PATCH_LEN, column] += told.std[column]
        expected = {"scramble", "rerun"} if read else {"rerun"}
        assert failures(runner.verify(replace(told, history=history))) == expected


def test_a_file_whose_closed_tokens_leak_is_found_out(path: Path, tmp_path: Path) -> None:
    """Take out of the graph the step that puts zeros in place of what is closed."""
    content = onnx.load(path)
    makers = {name: node for node in content.graph.node for name in node.output}
    evidence = makers["evidence"]
    zeros = makers[evidence.input[2]]
    assert (evidence.op_type, zeros.op_type) == ("Where", "Where")
    evidence.input[2] = zeros.input[1]
    reseal(content, tmp_path / "leaky.onnx")
    runner = OnnxForecaster(tmp_path / "leaky.onnx")
    told = runner.explain(numbers(), HOURS)
    assert failures(runner.verify(told)) == {"scramble"}


# --- Any budget ---


def test_the_budget_of_a_model_for_any_can_be_turned(
    runners: Callable[[str], OnnxForecaster], runner: OnnxForecaster, told: Account
) -> None:
    network, any_budget, window = fitted(**KINDS[ANY_BUDGET]).network, runners(ANY_BUDGET), windows(50, 4)
    table = (numbers(), HOURS)
    for budget in (0.1, 0.3, 1.0):
        turned = any_budget.at_budget(budget)
        outputs = turned.run(window.values.numpy(), window.observed.numpy(), window.phase.numpy())
        reference = network.with_budget(budget)
        clear = decided(reference, window) if budget < 1 else np.ones(50, dtype=bool)
        np.testing.assert_array_equal(outputs.mask[clear], reference(window).explanation.mask.numpy()[clear])
        assert outputs.mask.sum(axis=(1, 2)).max() <= reference.config.allowance == turned.facts.allowance
        explanation = any_budget.explain(*table, budget=budget)
        assert (explanation.budget, explanation.open_rate <= budget) == (budget, True)
        assert any_budget.verify(explanation)
        assert any_budget.predict(*table, budget=budget).tobytes() == explanation.forecast.tobytes()
    assert any_budget.facts.budget == 0.3
    assert failures(any_budget.verify(replace(any_budget.explain(*table, budget=1.0), budget=0.1))) == {
        "budget",
        "rerun",
    }
    assert runner.predict(*table, budget=0.3).tobytes() == told.forecast.tobytes()


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (0.0, r"budget must lie in \(0, 1\] \(got budget=0.0\); try 0.2"),
        (1.5, r"budget must lie in \(0, 1\] \(got budget=1.5\); try 0.2"),
        (0.01, r"must allow at least one token \(got budget=0.01 of 32\); try 0.2"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(
    runners: Callable[[str], OnnxForecaster], budget: float, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        runners(ANY_BUDGET).at_budget(budget)


@pytest.mark.parametrize("budget", [5.0, 0.0, -1.0, 0.001, float("nan")])
def test_an_explanation_of_a_budget_that_cannot_be_fails_its_check_without_raising(
    runners: Callable[[str], OnnxForecaster], runner: OnnxForecaster, budget: float
) -> None:
    for model in (runners(ANY_BUDGET), runner):
        account = replace(model.explain(numbers(), HOURS), budget=budget)
        assert failures(model.verify(account)) == {"names"}


def test_the_budget_of_a_model_for_one_cannot_be_turned(runner: OnnxForecaster) -> None:
    with pytest.raises(UsageError, match=r"only in a model trained for any \(got budget=0.5, trained for 0.3\); fit"):
        runner.predict(numbers(), HOURS, budget=0.5)


# --- Without PyTorch ---

WITHOUT = ("torch", "onnx", "onnxscript", "pyarrow", "narwhals", "safetensors", "pandas", "polars", "click", "tqdm")
ALONE = f"""
import sys
for name in {WITHOUT!r}:
    sys.modules[name] = None  # importing it fails
import numpy as np
from ibforecast.adapters.onnx import OnnxForecaster
runner = OnnxForecaster(sys.argv[1])
values = np.load(sys.argv[2])
times = np.datetime64("2023-03-25") + np.arange(len(values)) * np.timedelta64(1, "h")
told = runner.explain(values, times)
assert (runner.predict(values, times) == told.forecast).all()
assert runner.verify(type(told).from_json(told.to_json()))
assert not any(name.split(".")[0] == "torch" and module for name, module in sys.modules.items())
print(told.to_json())
"""


def test_the_runner_needs_onnxruntime_and_numpy_and_no_pytorch(path: Path, told: Account, tmp_path: Path) -> None:
    np.save(tmp_path / "values.npy", numbers())
    command = [sys.executable, "-W", "error", "-c", ALONE, str(path), str(tmp_path / "values.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(told.to_json())


# --- What cannot be ---

ENDLESS, SILENT = numbers(), numbers()
ENDLESS[7, 2], SILENT[-LOOK_BACK:, 1] = np.inf, np.nan
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "too few rows": (numbers(47), HOURS[:47], r"must have look_back = 48 rows before it \(got 47\); give earlier rows"),
    "a channel too few": (
        numbers()[:, :3],
        HOURS,
        r"a column for each of 'load', 'wind', 'heat', 'rain' \(got shape \(60, 3\)\); give rows by channels",
    ),
    "a channel silent in the window": (SILENT, HOURS, r"at least once in the window \(got nothing in 'wind'"),
    "infinity": (ENDLESS, HOURS, r"values must be finite \('heat' has row 7: inf\); mend them"),
    "text": ([["calm"] * 4] * 60, HOURS, r"must hold numbers \(got .*calm.*\); write NaN"),
    "other times than rows": (numbers(), HOURS[1:], r"must have a time \(got 60 rows, 59 times\); give one per row"),
    "no time": (numbers(), ["teatime"] * 60, r"must be datetimes or ISO texts \(got 'teatime'\); try"),
    "a number for a time": (numbers(), np.arange(60), r"must be datetimes or ISO texts \(got 0\); try"),
    "not a time": (numbers(), np.full(60, np.datetime64("NaT")), r"every row must have a time \(got one without\)"),
    "a zone the model does not know": (
        numbers(),
        frame(tz="UTC")["when"],
        r"times have no zone .*leave out the offset",
    ),
    "steps back": (numbers(), HOURS[::-1], r"times must increase \(got a step back in row 1\); sort the rows"),
    "uneven steps": (
        numbers(),
        np.delete(frame(numbers(61))["when"].to_numpy(), 30),
        r"even steps, here of 1h \(got 2023-03-26T07:\S+ in row 30 where 2023-03-26T06:\S+ belongs\); give a missing",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_history_that_cannot_be_forecast_from_is_refused(runner: OnnxForecaster, what: str) -> None:
    history, times, message = REFUSED[what]
    for verb in (runner.predict, runner.explain):
        with pytest.raises(DataError, match=message):
            verb(history, times)


def test_an_hour_the_clock_showed_twice_must_come_with_its_offset(path: Path, tmp_path: Path) -> None:
    runner = with_card(path, tmp_path / "zoned.onnx", zone="Europe/Berlin")
    wall = frame(first="2023-10-28 12:00")["when"].to_numpy()
    with pytest.raises(DataError, match=r"exactly once \(got 2023-10-29T02:00:00.*\); give the times with their off"):
        runner.predict(numbers(), wall)


WINDOW = windows(3, 0)
BAD_BATCHES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "values of another shape": (
        {"values": WINDOW.values[:, 1:].numpy()},
        UsageError,
        r"values must be float32 of shape \(3, 48, 4\) \(got float32 of shape \(3, 47, 4\)\); reshape it",
    ),
    "numbers for observed": ({"observed": np.ones((3, 48, 4))}, UsageError, r"observed must be bool .*\(got float64"),
    "too few phases": (
        {"phase": np.zeros((3, 48), dtype=np.int64)},
        UsageError,
        r"phase must be int64 of shape \(3, 60",
    ),
    "fractions for phases": ({"phase": np.zeros((3, 60))}, UsageError, r"phase must be int64 .*\(got float64"),
    "not a number": (
        {"values": np.full((3, 48, 4), np.nan, dtype=np.float32)},
        DataError,
        r"observed values must be finite \(got some that are not\); mark them as not observed",
    ),
}


@pytest.mark.parametrize("what", BAD_BATCHES)
def test_a_batch_the_graph_was_not_made_for_is_refused(runner: OnnxForecaster, what: str) -> None:
    change, error, message = BAD_BATCHES[what]
    given = {"values": WINDOW.values.numpy(), "observed": WINDOW.observed.numpy(), "phase": WINDOW.phase.numpy()}
    with pytest.raises(error, match=message):
        runner.run(**(given | change))


def test_what_is_not_observed_may_be_anything(runner: OnnxForecaster) -> None:
    values, observed, phase = (part.numpy() for part in (WINDOW.values, WINDOW.observed, WINDOW.phase))
    spoilt = np.where(observed, values, np.float32(np.nan))
    one, other = runner.run(values, observed, phase), runner.run(spoilt, observed, phase)
    assert one.forecast.tobytes() == other.forecast.tobytes()


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a bit flipped": (flipped, r"must match its own fingerprint \(it was changed, .*\); export it again"),
    "cut off": (
        lambda content: content[:-2000],
        r"ibforecast's and whole \(got .*no fingerprint of ours\); write it with",
    ),
    "something added": (lambda content: content + b"\0", "must match its own fingerprint"),
    "another card": (lambda content: content.replace(b'"wind"', b'"wine"'), "must match its own fingerprint"),
    "no ONNX at all": (lambda content: b"forecast: sunny", "ibforecast's and whole"),
    "empty": (lambda content: b"", "ibforecast's and whole"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_refused(path: Path, tmp_path: Path, what: str) -> None:
    change, message = DAMAGE[what]
    (tmp_path / "model.onnx").write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelFileError, match=message):
        OnnxForecaster(tmp_path / "model.onnx")


def test_a_file_that_is_not_there_newer_or_of_a_strange_graph_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"must be a file \(got .*nowhere.onnx, where there is none\); check"):
        OnnxForecaster(tmp_path / "nowhere.onnx")
    with pytest.raises(ModelFileError, match=r"up to format version 1 \(got .*version 2\); upgrade ibforecast"):
        with_card(path, tmp_path / "newer.onnx", format_version=2)
    content = onnx.load(path)
    content.graph.node[0].op_type = "Divine"
    reseal(content, tmp_path / "strange.onnx")
    with pytest.raises(ModelFileError, match=r"onnxruntime must be able to run the file \(got .*Divine.*\); upgrade"):
        OnnxForecaster(tmp_path / "strange.onnx")


def test_a_file_is_not_written_over_another_unasked(model: IBForecaster, path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"must not replace what is there \(got .*\); choose another path or overwrite"
    ):
        model.to_onnx(path)


def test_a_number_of_threads_that_cannot_be_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match=r"threads must be at least 1 \(got 0\); try 1"):
        OnnxForecaster(path, threads=0)


@pytest.mark.parametrize("library", ["onnxruntime", "onnxscript"])
def test_without_the_libraries_it_says_what_to_install(
    path: Path, usual: FittedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"this needs .*{library}.* pip install 'ibforecast\[onnx\]'"):
        OnnxForecaster(path) if library == "onnxruntime" else export(usual, tmp_path / "model.onnx")
