"""ONNX export: one file, the same masks bit for bit, and a runner that needs no PyTorch."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from tests.core.samples import with_next_numbers

from ibforecast import DataError, ExplainedForecast, IBForecaster, MissingExtraError, ModelFileError, UsageError
from ibforecast.adapters import onnx_export
from ibforecast.adapters.onnx import NOT_BOUND, OnnxForecaster
from ibforecast.adapters.onnx_export import export
from ibforecast.adapters.onnx_file import BLANK, CARD, FINGERPRINT, FORMAT, VERSION, stamped
from ibforecast.core import document
from ibforecast.core.explanation import FIELDS
from ibforecast.core.standardiser import Standardiser
from ibforecast.core.verdict import Verification
from ibforecast.core.verification import ROUNDED
from ibforecast.core.window import Window
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.engine import TorchEngine
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import network_of
from ibforecast.zoo.saved import FittedModel, TrainingSummary

LOOK_BACK, HORIZON, PATCH_LEN, CYCLE = 48, 12, 6, 24
CHANNELS = ("load", "wind", "heat", "rain")
COVARIATES = ("price", "holiday")
ROWS, PATCHES, TOKENS = 60, LOOK_BACK // PATCH_LEN, LOOK_BACK // PATCH_LEN * len(CHANNELS)
APART = 1e-4
"""By how much the logits must differ that decide what is read, so that rounding, large in a stuck channel, cannot."""

SMALL = {"width": 16, "heads": 2}
ANY_BUDGET = "capped, within, mlp, mean"
WITH_COVARIATES = "exact, joint, cross-channel, weighted, two cycles and covariates"
SEALED = "sealed, seasonal, by channel"
SEALED_WITH_COVARIATES = "sealed, seasonal, cross-channel, two cycles and covariates"
SEALED_ANY_BUDGET = "sealed, weighted, any budget"
CHOOSING = "choosing, seasonal, by channel"
ALL_SEALED = (SEALED, SEALED_WITH_COVARIATES, SEALED_ANY_BUDGET)
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
    WITH_COVARIATES: {
        "gate": GateConfig("exact", "joint", **SMALL),
        "readout": ReadoutConfig("phase", width=16, cross_channel=True),
        "frame": "weighted",
        "further_cycles": (36,),
        "past": 1,
        "future": len(COVARIATES),
    },
    SEALED: {
        "sealed": True,
        "gate": GateConfig("exact", "none", recent=2, every=3),
        "readout": ReadoutConfig("phase", width=16, by_channel=True),
        "frame": "seasonal",
    },
    SEALED_WITH_COVARIATES: {
        "sealed": True,
        "gate": GateConfig("exact", "none", recent=2, every=3),
        "readout": ReadoutConfig("phase", width=16, cross_channel=True),
        "frame": "seasonal",
        "further_cycles": (36,),
        "past": 1,
        "future": len(COVARIATES),
    },
    SEALED_ANY_BUDGET: {
        "sealed": True,
        "gate": GateConfig("exact", "none", recent=2, any_budget=True),
        "readout": ReadoutConfig("linear"),
        "frame": "weighted",
    },
    CHOOSING: {
        "level_from": "reading",
        "gate": GateConfig("exact", "mixing", width=16, recent=1, every=3),
        "readout": ReadoutConfig("phase", width=16, by_channel=True),
        "objective": ObjectiveConfig(rate_weight=0.0, consistency_weight=0.0),
        "frame": "seasonal",
    },
}
USUAL = {
    "gate": GateConfig("exact", "joint", **SMALL),
    "readout": ReadoutConfig("phase", width=16),
    "frame": "weighted",
}


def fitted(**settings: Any) -> FittedModel:
    """Make a model with random weights; fixed scores of a gate are drawn with many ties."""
    usual = {"patch_len": PATCH_LEN, "budget": 0.3} | settings
    config = ModelConfig(LOOK_BACK, HORIZON, len(CHANNELS), CYCLE, **usual)
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        network = network_of(config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 0.1 * torch.randn(parameter.shape)
            if config.gate.attention == "none":
                network.score.bias.copy_(torch.randint(-1, 3, network.score.bias.shape))
            if config.sealed:  # it reads the newest row, so that a table of what it reads ends there
                network.score.bias[-1, 0] = 3
    covariates = COVARIATES[: config.future]
    return FittedModel(
        network=network,
        standardiser=Standardiser(np.array([900.0, 40, -2, 0.125]), np.array([20.0, 3, 0.5, 1.75])),
        layout=Layout(
            time="when",
            channels=CHANNELS,
            shape="wide",
            frequency="1h",
            missing_values=(-99.0,),
            past=CHANNELS[len(CHANNELS) - config.past :],
            future=covariates,
        ),
        origin="2023-01-01T00:00:00.000000",
        split=Split(40, 50, 60),
        summary=TrainingSummary("exact", "", "", ROWS, 1, "cpu", 0.0, 1, 1, 1, 0.5),
        known=Standardiser(np.array([30.0, 0]), np.array([4.0, 0.5])) if covariates else None,
    )


def windows(config: ModelConfig, count: int, seed: int) -> Window:
    """Make random windows: some with gaps, some with a constant channel, one with a gap in every token."""
    random, steps = torch.Generator().manual_seed(seed), LOOK_BACK + HORIZON
    values = torch.randn(count, LOOK_BACK, len(CHANNELS), generator=random).cumsum(dim=1) / 3
    values[count // 3 : count // 2, :, 1] = 0.7
    observed = torch.rand(values.shape, generator=random) > 0.02 * torch.rand(count, 1, 1, generator=random)
    observed[-1, ::PATCH_LEN] = False
    first = torch.randint(0, config.period, (count, 1), generator=random)
    known = torch.randn(count, steps, config.future, generator=random) if config.future else None
    phase = (first + torch.arange(steps)) % config.period
    return Window(values.where(observed, torch.zeros(())), observed, phase, known=known)


def arrays(window: Window) -> dict[str, np.ndarray]:
    """Return the inputs of the graph for a batch."""
    inputs = {"values": window.values, "observed": window.observed, "phase": window.phase}
    known = {} if window.known is None else {"known": window.known}
    return {name: tensor.numpy() for name, tensor in (inputs | known).items()}


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
    """Return a function that makes a runner of a kind; exporting takes seconds, so each kind is exported once."""

    @cache
    def make(kind: str) -> OnnxForecaster:
        export(fitted(**KINDS[kind]), folder / f"{kind}.onnx")
        return OnnxForecaster(folder / f"{kind}.onnx")

    return make


@pytest.fixture(scope="module")
def explained(runner: OnnxForecaster) -> ExplainedForecast:
    return runner.explain(numbers(), HOURS)


def failures(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.passed}


# --- The graph compared with the network ---


def decided(network: IBForecast, window: Window) -> np.ndarray:
    """Mark the windows whose mask does not depend on rounding; exact ties are allowed."""
    config = network.config
    if config.gate.kind in ("open", "newest") or config.gate.attention == "none":
        return np.ones(len(window.values), dtype=bool)
    logits = network.score(network.decompose(window)[1]).masked_fill(network.missing(window), -1e30).flatten(1)
    ranked = logits.sort(dim=1, descending=True).values
    gap = ranked[:, config.allowance - 1] - ranked[:, config.allowance]
    clear = (gap > APART) | (ranked[:, config.allowance - 1] == -1e30)
    return (clear if config.gate.kind == "exact" else clear & (logits.abs() > APART).all(dim=1)).numpy()


@torch.no_grad()
def assert_alike(network: IBForecast, runner: OnnxForecaster) -> None:
    for count, seed in ((1, 0), (2, 1), (400, 2)):
        window = windows(network.config, count, seed)
        forecast, clear = network(window), decided(network, window)
        explanation, values = runner.run_batch(**arrays(window))
        reference = forecast.explanation.numpy()
        assert clear.mean() > 0.98
        assert explanation.context.cycles == network.config.cycles
        np.testing.assert_array_equal(explanation.mask[clear], reference.mask[clear])
        assert (explanation.evidence[~explanation.mask.repeat(PATCH_LEN, axis=1)] == 0).all()
        for field in FIELDS:
            mine, other = field.of(explanation), field.of(reference)
            if other is None:
                assert mine is None
                continue
            assert mine.dtype == other.dtype == field.kind
            shown = clear if field.name in ("mask", "evidence") else slice(None)
            tolerance = APART if field.name in ("probability", "evidence") else 1e-5
            if field.name in ("level", "scale", "probability", "evidence"):
                np.testing.assert_allclose(mine[shown], other[shown], rtol=1e-7, atol=tolerance)
            else:
                np.testing.assert_array_equal(mine[shown], other[shown])
        np.testing.assert_allclose(values[clear], forecast.values.numpy()[clear], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_gate_readout_and_frame_matches_the_network(
    kind: str, runners: Callable[[str], OnnxForecaster]
) -> None:
    assert_alike(fitted(**KINDS[kind]).network, runners(kind))


def test_the_default_kind_matches_the_network(usual: FittedModel, runner: OnnxForecaster) -> None:
    assert_alike(usual.network, runner)


def test_ties_are_broken_as_in_the_network() -> None:
    """The kind without attention has integer scores, so the budget ends in the middle of a tie."""
    bias = fitted(**KINDS["threshold, none, linear, none"]).network.score.bias.flatten()
    ranked = bias.sort(descending=True).values
    allowed = int(0.3 * TOKENS)
    assert ranked[allowed - 1] == ranked[allowed] > 0


@pytest.mark.parametrize("kind", ["usual", ANY_BUDGET, WITH_COVARIATES])
def test_the_file_is_one_graph_whose_inputs_and_outputs_follow_the_field_table(
    kind: str, path: Path, folder: Path, runners: Callable[[str], OnnxForecaster]
) -> None:
    facts = OnnxForecaster(path).facts if kind == "usual" else runners(kind).facts
    graph = onnx.load(path if kind == "usual" else folder / f"{kind}.onnx")
    onnx.checker.check_model(graph, full_check=True)
    assert [(entry.domain, entry.version) for entry in graph.opset_import] == [("", onnx_export.OPSET)]
    computed = [field for field in FIELDS if not field.given and (not field.needs or getattr(facts, field.needs))]
    held = [f"held_{field.name}" for field in computed if field.replayed]
    switches = ["hold", "replay", "through", *(["allowance"] if facts.any_budget else [])]
    known = ["known"] if facts.covariates else []
    window = ["values", "observed", "phase", *known]
    assert [output.name for output in graph.graph.output] == ["forecast", *(field.name for field in computed)]
    assert [value.name for value in graph.graph.input] == [*window, *held, *switches]
    optional = {weight.name for weight in graph.graph.initializer}
    assert [value.name for value in graph.graph.input if value.name not in optional] == window
    sizes = {"*batch": "batch", "look_back": LOOK_BACK, "steps": LOOK_BACK + HORIZON, "patch": PATCHES}
    sizes |= {"channel": len(CHANNELS), "covariate": len(COVARIATES), "horizon": HORIZON}
    sizes |= {"cycle": sum(facts.cycles), "first_cycle": facts.cycles[0]}
    kinds = {"bool": onnx.TensorProto.BOOL, "int64": onnx.TensorProto.INT64, "float32": onnx.TensorProto.FLOAT}
    shapes = {
        value.name: (
            [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim],
            value.type.tensor_type.elem_type,
        )
        for value in (*graph.graph.input, *graph.graph.output)
    }
    for field in FIELDS:
        if field.name in shapes:
            assert shapes[field.name] == ([sizes[axis] for axis in field.axes], kinds[field.kind]), field.name
    assert shapes["values"] == (["batch", LOOK_BACK, len(CHANNELS)], onnx.TensorProto.FLOAT)
    assert shapes["observed"] == (["batch", LOOK_BACK, len(CHANNELS)], onnx.TensorProto.BOOL)
    assert shapes["forecast"] == (["batch", HORIZON, len(CHANNELS)], onnx.TensorProto.FLOAT)


def test_the_file_does_not_contain_the_path_it_was_written_to(path: Path) -> None:
    assert b"ibforecast/" not in path.read_bytes()
    assert b"/home" not in path.read_bytes()
    assert path.stat().st_size < len(fitted(**USUAL).weights) + 25_000


def test_exporting_leaves_the_model_unchanged(usual: FittedModel, path: Path, model: IBForecaster) -> None:
    network = model.fitted.network
    assert not network.training
    assert network.decompose.profile.requires_grad
    assert replace(model.fitted).weights_sha256 == usual.weights_sha256


# --- Forecasts and explanations ---


def assert_same_but_for_rounding(mine: ExplainedForecast, reference: ExplainedForecast) -> None:
    """Compare an explanation with the library's: words, times and masks are equal, numbers within 1e-5."""
    own, other = (json.loads(explained.to_json()) for explained in (mine, reference))
    assert own.keys() == other.keys()
    for part in ("format", "version", "budget", "open_count", "open_rate", "prior", "window", "units", "known_units"):
        assert own[part] == other[part]
    assert own["truth"] == other["truth"]
    assert own["weights_sha256"] == other["weights_sha256"]
    for part, names in (("explanation", ("mask", "missing")), ("context", ("phase", "cycles", "profile", "response"))):
        assert [own[part][name] for name in names] == [other[part][name] for name in names]
    for name in ("level", "scale", "evidence", "probability"):
        np.testing.assert_allclose(getattr(mine, name), getattr(reference, name), atol=1e-5)
    std = mine.units.std
    np.testing.assert_allclose(mine.forecast / std, reference.forecast / std, rtol=0, atol=1e-5)


def test_forecasts_and_explanations_equal_those_of_the_library(
    model: IBForecaster, explained: ExplainedForecast, runner: OnnxForecaster
) -> None:
    assert_same_but_for_rounding(explained, model.explain(frame()))
    assert runner.predict(numbers(), HOURS).tobytes() == explained.forecast.tobytes()


def test_gaps_and_missing_value_markers_are_read_as_in_the_library(model: IBForecaster, runner: OnnxForecaster) -> None:
    values = numbers()
    values[[20, 30, 41, 59], [0, 1, 2, 3]] = [np.nan, -99.0, np.nan, -99.0]
    mine, reference = runner.explain(values, frame()["when"].to_numpy()), model.explain(frame(values))
    np.testing.assert_array_equal(mine.missing, reference.missing)
    np.testing.assert_array_equal(mine.mask, reference.mask)
    np.testing.assert_array_equal(mine.history, reference.history)
    std = mine.units.std
    np.testing.assert_allclose(mine.forecast / std, reference.forecast / std, rtol=0, atol=1e-5)
    assert mine.missing.sum() == 4
    assert runner.verify(mine)
    assert model.verify(mine)


def test_only_the_last_look_back_matters(runner: OnnxForecaster, explained: ExplainedForecast) -> None:
    table = frame()[-LOOK_BACK:]
    again = runner.explain(values_of(table), table["when"].to_numpy())
    assert again.to_json() == explained.to_json()


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
def test_times_may_have_many_types(
    runner: OnnxForecaster, explained: ExplainedForecast, times: Callable[[pd.Series], Any]
) -> None:
    again = runner.explain(values_of(frame()), times(frame()["when"]))
    assert (again.times, again.phase.tolist()) == (explained.times, explained.phase.tolist())


def restamp(content: onnx.ModelProto, target: Path, card: str | None = None) -> None:
    entries = {entry.key: entry.value for entry in content.metadata_props} | {FINGERPRINT: BLANK}
    onnx.helper.set_model_props(content, entries | ({} if card is None else {CARD: card}))
    target.write_bytes(stamped(content.SerializeToString()))


def with_card(path: Path, target: Path, version: int = VERSION, **changes: Any) -> OnnxForecaster:
    """Write the same model with other facts on its card."""
    content = onnx.load(path)
    card = document.read(next(entry.value for entry in content.metadata_props if entry.key == CARD), FORMAT, VERSION)
    restamp(content, target, document.write(FORMAT, version, card | {"facts": card["facts"] | changes}))
    return OnnxForecaster(target)


@pytest.mark.parametrize("first", ["2023-03-24 21:00", "2023-10-27 12:00"])
def test_phases_and_labels_follow_the_clock_in_the_models_zone(
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


def test_a_model_that_counts_rows_continues_the_count(path: Path, usual: FittedModel, tmp_path: Path) -> None:
    table = frame().drop(index=[3, 40])
    origin = np.datetime_as_string(table["when"].to_numpy()[5].astype("datetime64[us]"))
    by_row = replace(usual, layout=replace(usual.layout, irregular="by_row"), origin=str(origin))
    by_row.save(tmp_path / "model")
    runner = with_card(path, tmp_path / "by_row.onnx", by_row=True, origin=by_row.origin)
    mine = runner.explain(values_of(table), table["when"].to_numpy())
    reference = IBForecaster.load(tmp_path / "model", device="cpu").explain(table)
    assert (mine.times, mine.phase.tolist()) == (reference.times, reference.phase.tolist())


def test_rows_off_the_grid_of_the_origin_are_refused(path: Path, tmp_path: Path) -> None:
    runner = with_card(path, tmp_path / "by_row.onnx", by_row=True, origin="2023-03-20T05:00:00.000000")
    table = frame().drop(index=[3, 40])
    with pytest.raises(DataError, match="rows read by number must be counted from the first one of training"):
        runner.explain(values_of(table), table["when"].to_numpy())


# --- Verification ---


def test_an_explanation_passes_every_check_bit_for_bit_with_its_own_runner(
    runner: OnnxForecaster, explained: ExplainedForecast
) -> None:
    verification = runner.verify(ExplainedForecast.from_json(explained.to_json()))
    assert verification
    assert [check.name for check in verification.checks] == [
        "document",
        "weights",
        "names",
        "times",
        "budget",
        "replay",
        "scramble",
        "rerun",
    ]
    assert str(verification).count("bit for bit") == 3


def test_an_explanation_of_a_choosing_model_is_checked_through_its_mask(
    runners: Callable[[str], OnnxForecaster],
) -> None:
    runner = runners(CHOOSING)
    explained = runner.explain(numbers(), HOURS)
    verification = runner.verify(explained)
    assert verification, str(verification)
    assert verification.checks[-1].name == "reading"
    # The mask is given, and so it is not the one that this history would lead to.
    phase, mask = explained.explanation.context.phase, np.roll(explained.mask, 1, axis=0)
    through, forecast = runner.through(explained.history, phase, None, mask)
    np.testing.assert_array_equal(through.mask, mask & ~through.missing)
    reference, values = TorchEngine(fitted(**KINDS[CHOOSING])).through(explained.history, phase, None, mask)
    np.testing.assert_array_equal(through.probability, reference.probability)
    np.testing.assert_allclose(through.evidence, reference.evidence, rtol=0, atol=APART)
    np.testing.assert_allclose(forecast, values, rtol=0, atol=1e-3)


def test_library_and_runner_verify_each_others_explanations(
    model: IBForecaster, runner: OnnxForecaster, explained: ExplainedForecast
) -> None:
    for verification in (
        model.verify(ExplainedForecast.from_json(explained.to_json())),
        runner.verify(model.explain(frame())),
    ):
        assert verification, str(verification)


HIDDEN = f"truth: the explanation has that of 0 steps, the table that of {HORIZON} of {HORIZON}"


def test_the_library_verifies_windows_whose_level_is_many_scales_from_the_mean(
    model: IBForecaster, runner: OnnxForecaster
) -> None:
    """There the last digit of the level is large, and random changes of the last digits cancel in it."""
    units, verified = model.fitted.standardiser, 0
    for seed in range(20):
        quiet = 2 + 0.1 * np.random.default_rng(seed).normal(size=(LOOK_BACK, len(CHANNELS)))
        verified += bool(model.verify(runner.explain(units.to_units(quiet), HOURS[-LOOK_BACK:])))
    assert verified >= 19  # no tolerance covers every window of every other processor


def test_an_explanation_is_compared_with_the_rows_passed_to_verify(runner: OnnxForecaster) -> None:
    values, hours = numbers(ROWS + HORIZON), frame(numbers(ROWS + HORIZON))["when"].to_numpy()
    explained = runner.explain(values[:ROWS], hours[:ROWS])
    future = values[ROWS:]
    true = runner.verify(explained, values[:ROWS], hours[:ROWS], truth=future)
    assert true, str(true)
    assert (true.checks[4].name, true.notes) == ("table", (HIDDEN, NOT_BOUND.format(runner.sha256)))
    assert "made-up table" in runner.verify(explained).notes[0]
    other = values[:ROWS].copy()
    other[-1, 0] += 1
    assert failures(runner.verify(explained, other, hours[:ROWS])) == {"table"}
    assert failures(runner.verify(explained, values[1 : ROWS + 1], hours[1 : ROWS + 1])) == {"table"}
    made_up = replace(explained, truth=future + 1)
    assert failures(runner.verify(made_up, values[:ROWS], hours[:ROWS], truth=future)) == {"table"}


def test_marks_of_missing_values_in_the_truth_are_read_as_in_a_table(
    model: IBForecaster, runner: OnnxForecaster
) -> None:
    values = numbers(ROWS + HORIZON)
    values[ROWS + 1, 1] = -99.0
    table = frame(values)
    explained, hours = model.explain(table, at=table["when"][ROWS - 1]), table["when"].to_numpy()
    assert explained.truth is not None
    assert np.isnan(explained.truth[1, 1])
    verification = runner.verify(explained, values[:ROWS], hours[:ROWS], truth=values[ROWS:])
    assert verification, str(verification)
    made_up = replace(explained, truth=values[ROWS:])
    assert "table" in failures(runner.verify(made_up, values[:ROWS], hours[:ROWS], truth=values[ROWS:]))


Changed = Callable[[ExplainedForecast], ExplainedForecast]


def within(explained: ExplainedForecast, **changes: Any) -> ExplainedForecast:
    """Return the same forecast with other arrays in its explanation."""
    return replace(explained, explanation=replace(explained.explanation, **changes))


def in_context(explained: ExplainedForecast, **changes: Any) -> ExplainedForecast:
    return within(explained, context=replace(explained.explanation.context, **changes))


def opened_another(explained: ExplainedForecast) -> ExplainedForecast:
    """Close one token and open another instead."""
    mask = explained.mask.copy()
    mask[tuple(np.argwhere(explained.mask)[0])] = False
    mask[tuple(np.argwhere(~explained.mask)[0])] = True
    return within(explained, mask=mask, evidence=explained.evidence * mask.repeat(PATCH_LEN, axis=0))


AFTER_BUDGET = {"replay", "scramble", "rerun"}
TAMPERED: dict[str, tuple[Changed, set[str]]] = {
    "forecast": (lambda own: replace(own, forecast=own.forecast + 1e-3 * own.units.std), AFTER_BUDGET),
    "mask": (opened_another, AFTER_BUDGET),
    "everything open": (lambda own: within(own, mask=np.ones_like(own.mask)), {"budget", *AFTER_BUDGET}),
    "evidence": (lambda own: within(own, evidence=own.evidence * np.float32(1.01)), {"replay", "rerun"}),
    "level": (lambda own: in_context(own, level=own.level + np.float32(0.01)), AFTER_BUDGET),
    "profile": (lambda own: in_context(own, profile=own.profile + np.float32(0.01)), AFTER_BUDGET),
    "probability": (lambda own: within(own, probability=own.probability * np.float32(0.5)), {"rerun"}),
    "weights": (lambda own: replace(own, weights_sha256="0" * 64), {"weights"}),
    "units": (lambda own: replace(own, units=Standardiser(own.units.mean, own.units.std * 2)), {"names"}),
    "prior": (lambda own: replace(own, prior=0.5), {"names"}),
    "budget": (lambda own: replace(own, budget=0.9), {"names"}),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_changed_explanation_fails_its_checks(
    runner: OnnxForecaster, explained: ExplainedForecast, what: str
) -> None:
    change, expected = TAMPERED[what]
    assert failures(runner.verify(change(explained))) == expected


def test_a_changed_text_fails_the_document_check(runner: OnnxForecaster, explained: ExplainedForecast) -> None:
    assert runner.verify(explained.to_json())
    content = json.loads(explained.to_json())
    content["forecast"][0][0] += 1
    assert failures(runner.verify(json.dumps(content))) == {"document"}


def test_last_digits_may_differ_unless_exact_is_set(runner: OnnxForecaster, explained: ExplainedForecast) -> None:
    changed = with_next_numbers(explained)
    assert "rounding on this machine explains" in str(runner.verify(changed))
    assert runner.verify(changed)
    assert failures(runner.verify(changed, exact=True)) == AFTER_BUDGET
    assert runner.verify(explained, exact=True)


def test_a_changed_history_is_detected_in_open_and_closed_tokens(
    runner: OnnxForecaster, explained: ExplainedForecast
) -> None:
    for read in (True, False):
        patch, column = np.argwhere(explained.mask == read)[0]
        history = explained.history.copy()
        history[patch * PATCH_LEN, column] += explained.units.std[column]
        expected = {"scramble", "rerun"} if read else {"rerun"}
        assert failures(runner.verify(replace(explained, history=history))) == expected


def without_zeros(path: Path, target: Path, only_the_readout: bool) -> OnnxForecaster:
    """Remove the step of the graph that zeroes closed tokens, for all its readers or only for the readout.

    If only the readout sees the closed tokens, the output `evidence` keeps its zeros.
    """
    content = onnx.load(path)
    makers = {name: node for node in content.graph.node for name in node.output}
    evidence = makers["evidence"]
    zeros = makers[evidence.input[2]]
    assert (evidence.op_type, zeros.op_type) == ("Where", "Where")
    if only_the_readout:
        leak = onnx.helper.make_node("Where", [*evidence.input[:2], zeros.input[1]], ["leak"])
        for node in content.graph.node:
            for number, name in enumerate(node.input):
                if name == "evidence":
                    node.input[number] = "leak"
        content.graph.node.insert(list(content.graph.node).index(evidence), leak)
    else:
        evidence.input[2] = zeros.input[1]
    restamp(content, target)
    return OnnxForecaster(target)


def test_a_file_whose_readout_sees_closed_tokens_fails_its_checks(path: Path, tmp_path: Path) -> None:
    runner = without_zeros(path, tmp_path / "leaky.onnx", only_the_readout=True)
    assert failures(runner.verify(runner.explain(numbers(), HOURS))) == {"replay", "scramble"}


def test_a_file_whose_evidence_shows_closed_tokens_gives_no_explanation(path: Path, tmp_path: Path) -> None:
    runner = without_zeros(path, tmp_path / "leaky.onnx", only_the_readout=False)
    with pytest.raises(DataError, match="evidence of an explanation must be zero in closed tokens"):
        runner.explain(numbers(), HOURS)


# --- Covariates and several cycles ---


def ahead(rows: int = ROWS) -> np.ndarray:
    """Make covariates for the rows of a table and the horizon."""
    steps, random = np.arange(rows + HORIZON), np.random.default_rng(8)
    return np.stack([30 + 4 * random.normal(size=len(steps)), (steps % 30 < 5).astype(float)], axis=1)


@pytest.fixture(scope="module")
def driven(folder: Path) -> IBForecaster:
    """The model with covariates, run with PyTorch."""
    fitted(**KINDS[WITH_COVARIATES]).save(folder / "driven")
    return IBForecaster.load(folder / "driven", device="cpu")


@pytest.fixture(scope="module")
def driven_runner(runners: Callable[[str], OnnxForecaster]) -> OnnxForecaster:
    return runners(WITH_COVARIATES)


def driven_table(rows: int = ROWS) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a table with covariates, and their values after its end."""
    known = pd.DataFrame(ahead(rows), columns=list(COVARIATES))
    return pd.concat([frame(numbers(rows)), known[:rows]], axis=1), pd.concat(
        [frame(numbers(rows + HORIZON))[["when"]], known], axis=1
    )[rows:]


def test_a_model_with_covariates_and_two_cycles_matches_the_library(
    driven: IBForecaster, driven_runner: OnnxForecaster
) -> None:
    table, future = driven_table()
    mine = driven_runner.explain(numbers(), HOURS, known=ahead())
    assert mine.cycles == (CYCLE, 36)
    assert (mine.past, mine.covariates) == (("rain",), COVARIATES)
    assert np.isnan(mine.forecast[:, 3]).all()
    assert_same_but_for_rounding(mine, driven.explain(table, future=future))
    assert driven_runner.predict(numbers(), HOURS, known=ahead()).tobytes() == mine.forecast.tobytes()
    other = driven_runner.predict(numbers(), HOURS, known=ahead() + 1)
    assert (np.abs(other - mine.forecast)[:, :3] > 0).all()


def test_library_and_runner_verify_each_others_explanations_with_covariates(
    driven: IBForecaster, driven_runner: OnnxForecaster
) -> None:
    table, future = driven_table()
    mine, reference = driven_runner.explain(numbers(), HOURS, known=ahead()), driven.explain(table, future=future)
    again = driven_runner.verify(mine, numbers(), HOURS, known=ahead(), exact=True)
    not_bound = (NOT_BOUND.format(driven_runner.sha256),)
    verdicts = {
        "own": (again, not_bound),
        "by the library": (driven.verify(mine.to_json(), table, future=future), ()),
        "the library's": (driven_runner.verify(reference.to_json(), numbers(), HOURS, known=ahead()), not_bound),
    }
    for verdict, notes in verdicts.values():
        assert verdict, str(verdict)
        assert set(notes) <= set(verdict.notes) <= {*notes, ROUNDED}  # the other engine may round differently
    assert failures(driven_runner.verify(mine, numbers(), HOURS, known=ahead() + 1)) == {"table"}
    other = driven_runner.explain(numbers(), HOURS, known=ahead() + 1)
    forged = replace(other, forecast=mine.forecast)
    assert failures(driven_runner.verify(forged)) == AFTER_BUDGET
    response = mine.response * np.float32(1.01)
    assert failures(driven_runner.verify(in_context(mine, response=response))) == AFTER_BUDGET


@pytest.mark.parametrize(
    "known",
    [None, ahead()[:-1], ahead()[:, :1], np.full((ROWS + HORIZON, 2), np.nan)],
    ids=["none", "a step too few", "a covariate too few", "missing values"],
)
def test_covariates_known_ahead_must_be_complete(driven_runner: OnnxForecaster, known: Any) -> None:
    with pytest.raises(DataError, match=r"known must have a row for every moment .* and columns 'price', 'holiday'"):
        driven_runner.predict(numbers(), HOURS, known=known)


def test_a_model_without_covariates_refuses_values_known_ahead(runner: OnnxForecaster) -> None:
    with pytest.raises(UsageError, match="only a model with covariates"):
        runner.predict(numbers(), HOURS, known=ahead())


# --- Sealed models ---


Inputs = dict[str, np.ndarray]
REPLACED: dict[str, Callable[[Inputs], tuple[np.ndarray, np.ndarray]]] = {
    "noise": lambda one: (10 * np.random.default_rng(9).normal(size=one["values"].shape), one["observed"]),
    "nothing": lambda one: (np.full_like(one["values"], np.nan), np.zeros_like(one["observed"])),
    "NaN marked as observed": lambda one: (np.full_like(one["values"], np.nan), np.ones_like(one["observed"])),
    "+1e30": lambda one: (np.full_like(one["values"], 1e30), np.ones_like(one["observed"])),
    "-1e30": lambda one: (np.full_like(one["values"], -1e30), np.ones_like(one["observed"])),
    "+infinity": lambda one: (np.full_like(one["values"], np.inf), np.ones_like(one["observed"])),
    "-infinity": lambda one: (np.full_like(one["values"], -np.inf), np.ones_like(one["observed"])),
    "another window": lambda one: (np.roll(one["values"], 1, axis=0), np.roll(one["observed"], 1, axis=0)),
}


@pytest.fixture(scope="module")
def sealed_models(folder: Path) -> Callable[[str], IBForecaster]:
    """Return a function that loads a sealed kind with PyTorch."""

    @cache
    def make(kind: str) -> IBForecaster:
        fitted(**KINDS[kind]).save(folder / kind)
        return IBForecaster.load(folder / kind, device="cpu")

    return make


def raw_outputs(path: Path, inputs: Inputs) -> dict[str, bytes]:
    """Run a graph with onnxruntime only; leave out the marks of missing tokens, which follow what is observed."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = zip(names, session.run(names, inputs), strict=True)
    return {name: array.tobytes() for name, array in outputs if name != "missing"}


def unread_replaced(inputs: Inputs, kept: np.ndarray, places: np.ndarray, how: str) -> Inputs:
    """Replace the values that are not `kept`, and what is observed outside the `places` that are read."""
    values, observed = REPLACED[how](inputs)
    return inputs | {
        "values": np.where(kept, inputs["values"], values).astype(np.float32),
        "observed": np.where(places, inputs["observed"], observed),
    }


@pytest.mark.parametrize("how", REPLACED)
@pytest.mark.parametrize("kind", ALL_SEALED)
def test_the_graph_of_a_sealed_model_does_not_depend_on_unread_inputs(
    kind: str, how: str, runners: Callable[[str], OnnxForecaster], folder: Path
) -> None:
    runner, path = runners(kind), folder / f"{kind}.onnx"
    inputs = arrays(windows(fitted(**KINDS[kind]).config, 64, 7))
    explanation, _ = runner.run_batch(**inputs)
    read = explanation.mask.repeat(PATCH_LEN, axis=1)
    assert (read & ~runner.cells).sum() == 0 < (runner.cells & ~read).sum()  # some places are closed by a gap
    before = raw_outputs(path, inputs)
    # Values next to a gap, in a place that the gap closed, are not read either.
    assert raw_outputs(path, unread_replaced(inputs, read, runner.cells, how)) == before
    again, forecast = runner.run_batch(**unread_replaced(inputs, runner.cells, runner.cells, how))
    assert forecast.tobytes() == before["forecast"]
    arrays_again = {field.name: array.tobytes() for field, array in again.arrays() if field.name in before}
    assert arrays_again == {name: content for name, content in before.items() if name != "forecast"}


def test_a_graph_that_is_not_sealed_depends_on_values_it_did_not_open(path: Path, runner: OnnxForecaster) -> None:
    inputs = arrays(windows(fitted(**USUAL).config, 64, 7))
    read = runner.run_batch(**inputs)[0].mask.repeat(PATCH_LEN, axis=1)
    after = raw_outputs(path, unread_replaced(inputs, read, read, "noise"))
    before = raw_outputs(path, inputs)
    assert all(after[name] != before[name] for name in ("forecast", "mask", "level"))


def sealed_arguments(kind: str) -> dict[str, Any]:
    return {"known": ahead()} if kind == SEALED_WITH_COVARIATES else {}


def sealed_tables(kind: str, values: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return a table of these values, and its covariates after the end, as the library takes them."""
    if kind != SEALED_WITH_COVARIATES:
        return frame(values), None
    table, future = driven_table()
    return table.assign(**dict(zip(CHANNELS, values.T, strict=True))), future


def only_read(runner: OnnxForecaster, values: np.ndarray) -> np.ndarray:
    """Return a history with NaN wherever the model does not read."""
    sparse = np.full_like(values, np.nan)
    for cell in runner.reads():
        column, row = CHANNELS.index(cell.channel), len(values) - 1 - cell.steps_back
        sparse[row, column] = values[row, column]
    return sparse


def gapped(runner: OnnxForecaster) -> np.ndarray:
    """Return a history with a gap in a place that is read."""
    values = numbers()
    step, column = np.argwhere(runner.cells)[0]
    values[ROWS - LOOK_BACK + step, column] = np.nan
    return values


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with a gap where it reads"])
@pytest.mark.parametrize("kind", ALL_SEALED)
def test_a_history_with_only_the_read_values_gives_the_same_forecast(
    kind: str, gaps: bool, runners: Callable[[str], OnnxForecaster], sealed_models: Callable[[str], IBForecaster]
) -> None:
    runner, model, known = runners(kind), sealed_models(kind), sealed_arguments(kind)
    values = gapped(runner) if gaps else numbers()
    sparse = only_read(runner, values)
    assert np.isfinite(sparse[-LOOK_BACK:]).mean() <= 0.3
    whole, explained = (runner.explain(one, HOURS, **known) for one in (values, sparse))
    assert runner.predict(sparse, HOURS, **known).tobytes() == whole.forecast.tobytes() == explained.forecast.tobytes()
    for name in ("mask", "evidence", "probability", "level", "scale"):
        assert getattr(explained, name).tobytes() == getattr(whole, name).tobytes(), name
    verification = runner.verify(explained.to_json(), sparse, HOURS, exact=True, **known)
    assert verification, str(verification)
    assert verification.checks[-1].name == "unread"
    table, future = sealed_tables(kind, sparse)
    reference = model.explain(table, future=future)
    assert_same_but_for_rounding(explained, reference)
    for verdict in (
        model.verify(explained.to_json(), table, future=future),
        runner.verify(reference.to_json(), sparse, HOURS, **known),
    ):
        assert verdict, str(verdict)


@pytest.mark.parametrize("at", [None, "2023-03-27 11:00"])
@pytest.mark.parametrize("kind", ALL_SEALED)
def test_the_runner_lists_the_cells_that_the_library_lists(
    kind: str,
    at: str | None,
    runners: Callable[[str], OnnxForecaster],
    sealed_models: Callable[[str], IBForecaster],
) -> None:
    cells = [asdict(cell) for cell in runners(kind).reads(at)]
    assert cells == sealed_models(kind).reads(at).to_dict("records")
    assert len(cells) == runners(kind).facts.allowance * PATCH_LEN
    assert {cell["time"] is None for cell in cells} == {at is None}


@pytest.mark.parametrize("budget", [None, 0.07])
@pytest.mark.parametrize("kind", ALL_SEALED)
def test_a_reader_of_the_runner_gives_the_forecast_of_the_whole_history(
    kind: str,
    budget: float | None,
    runners: Callable[[str], OnnxForecaster],
    sealed_models: Callable[[str], IBForecaster],
) -> None:
    budget = budget if kind == SEALED_ANY_BUDGET else None
    runner, values, known = runners(kind), numbers(), sealed_arguments(kind)
    over_window = {"known": ahead()[-LOOK_BACK - HORIZON :]} if known else {}
    reader = runner.reader(HOURS[-1], budget=budget, **over_window)
    table, future = sealed_tables(kind, values)
    whole_future = None if future is None else pd.concat([table, future])
    other = sealed_models(kind).reader(HOURS[-1], budget=budget, future=whole_future)
    assert reader.asks == other.asks
    answers = {cell: values[-1 - cell.steps_back, CHANNELS.index(cell.channel)] for cell in reader.asks}
    reader.answer(answers)
    other.answer(answers)
    whole = runner.explain(values, HOURS, budget=budget, **known)
    assert reader.predict().tobytes() == reader.explain().forecast.tobytes() == whole.forecast.tobytes()
    sparse = only_read(runner.at_budget(budget), values)
    assert reader.explain().to_json() == runner.explain(sparse, HOURS, budget=budget, **known).to_json()
    assert runner.verify(reader.explain(), sparse, HOURS, exact=True, **known)
    full = sealed_models(kind).explain(table, future=future, budget=budget)
    assert other.explain().forecast.tobytes() == full.forecast.tobytes()


def test_only_a_sealed_runner_has_a_reader(runner: OnnxForecaster) -> None:
    with pytest.raises(UsageError, match="only a sealed model reads places that are known before it reads"):
        runner.reader(HOURS[-1])


def test_only_a_sealed_runner_lists_its_cells(runner: OnnxForecaster) -> None:
    with pytest.raises(UsageError, match="only a sealed model reads places that are known before it reads"):
        runner.reads()


def test_a_channel_that_is_empty_where_it_is_read_is_refused_as_in_the_library(
    runners: Callable[[str], OnnxForecaster], sealed_models: Callable[[str], IBForecaster]
) -> None:
    runner, values = runners(SEALED), numbers()
    column = int(runner.cells.any(axis=0).argmax())
    window = values[-LOOK_BACK:]
    window[runner.cells[:, column], column] = np.nan
    assert np.isfinite(window[:, column]).any()
    messages = []
    for predict in (lambda: runner.predict(values, HOURS), lambda: sealed_models(SEALED).predict(frame(values))):
        with pytest.raises(DataError, match=r"at least once in the window, where it is read \(got nothing in") as error:
            predict()
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_a_sealed_model_for_any_budget_needs_only_what_it_reads_within_the_requested_budget(
    runners: Callable[[str], OnnxForecaster], sealed_models: Callable[[str], IBForecaster]
) -> None:
    runner, model, budget = runners(SEALED_ANY_BUDGET), sealed_models(SEALED_ANY_BUDGET), 0.07
    narrow = runner.at_budget(budget)
    assert narrow.cells.sum() < runner.cells.sum()
    assert (runner.cells & narrow.cells == narrow.cells).all()
    sparse = only_read(narrow, numbers())
    assert runner.predict(sparse, HOURS, budget=budget).tobytes() == narrow.predict(numbers(), HOURS).tobytes()
    np.testing.assert_array_equal(
        model.predict(frame(sparse), budget=budget)[list(CHANNELS)],
        model.predict(frame(), budget=budget)[list(CHANNELS)],
    )
    with pytest.raises(DataError, match="where it is read"):
        runner.predict(sparse, HOURS)
    with pytest.raises(DataError, match="where it is read"):
        model.predict(frame(sparse))


def test_a_file_that_only_claims_to_be_sealed_fails_the_check_of_unread_values(path: Path, tmp_path: Path) -> None:
    runner = with_card(path, tmp_path / "claimed.onnx", sealed=True)
    explained = runner.explain(numbers(), HOURS)
    assert explained.sealed
    assert failures(runner.verify(explained)) == {"unread"}


@pytest.mark.parametrize("size", [1e30, 1e300])
def test_values_too_large_for_single_precision_are_refused_as_in_the_library(
    size: float, runner: OnnxForecaster, model: IBForecaster
) -> None:
    values = numbers()
    values[-1, 0] = size
    messages = []
    for verb in (
        lambda: runner.predict(values, HOURS),
        lambda: runner.explain(values, HOURS),
        lambda: model.predict(frame(values)),
    ):
        with pytest.raises(DataError, match=r"of a size the model can compute with \(got 1e\+30+ in ") as error:
            verb()
        messages.append(str(error.value))
    assert len(set(messages)) == 1


def test_a_sealed_model_refuses_large_values_only_where_it_reads(
    runners: Callable[[str], OnnxForecaster],
) -> None:
    runner, whole = runners(SEALED), numbers()
    for read in (True, False):
        values = numbers()
        step, column = np.argwhere(runner.cells == read)[-1]
        values[ROWS - LOOK_BACK + step, column] = 1e300
        if read:
            with pytest.raises(DataError, match="of a size the model can compute with"):
                runner.predict(values, HOURS)
        else:
            assert runner.predict(values, HOURS).tobytes() == runner.predict(whole, HOURS).tobytes()
            assert runner.verify(runner.explain(values, HOURS))


# --- Any budget ---


def test_the_budget_of_a_model_for_any_budget_can_be_changed(
    runners: Callable[[str], OnnxForecaster], runner: OnnxForecaster, explained: ExplainedForecast
) -> None:
    network, any_budget = fitted(**KINDS[ANY_BUDGET]).network, runners(ANY_BUDGET)
    window, table = windows(network.config, 50, 4), (numbers(), HOURS)
    for budget in (0.1, 0.3, 1.0):
        turned = any_budget.at_budget(budget)
        outcome, _ = turned.run_batch(**arrays(window))
        reference = network.with_budget(budget)
        clear = decided(reference, window) if budget < 1 else np.ones(50, dtype=bool)
        np.testing.assert_array_equal(outcome.mask[clear], reference(window).explanation.mask.numpy()[clear])
        assert outcome.open_count.max() <= reference.config.allowance == turned.facts.allowance
        explanation = any_budget.explain(*table, budget=budget)
        assert explanation.budget == reference.config.allowance / TOKENS <= budget
        assert explanation.open_rate <= explanation.budget
        assert any_budget.verify(explanation)
        assert any_budget.predict(*table, budget=budget).tobytes() == explanation.forecast.tobytes()
    assert any_budget.facts.budget == 9 / TOKENS
    assert failures(any_budget.verify(replace(any_budget.explain(*table, budget=1.0), budget=3 / TOKENS))) == {
        "budget",
        "rerun",
    }
    assert runner.predict(*table, budget=0.3).tobytes() == explained.forecast.tobytes()


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (0.0, r"budget must lie in \(0, 1\] \(got budget=0.0\); try 0.2"),
        (1.5, r"budget must lie in \(0, 1\] \(got budget=1.5\); try 0.2"),
        (0.01, r"must allow at least one token \(got 0.01 of 32 tokens\); try 0.2"),
    ],
)
def test_an_invalid_budget_is_refused(runners: Callable[[str], OnnxForecaster], budget: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        runners(ANY_BUDGET).at_budget(budget)


@pytest.mark.parametrize("budget", [0.001, 0.1])
def test_an_explanation_with_another_budget_than_the_models_fails_its_check(
    runners: Callable[[str], OnnxForecaster], runner: OnnxForecaster, budget: float
) -> None:
    for model in (runners(ANY_BUDGET), runner):
        changed = replace(model.explain(numbers(), HOURS), budget=budget)
        assert failures(model.verify(changed)) == {"names"}


@pytest.mark.parametrize("budget", [5.0, 0.0, -1.0, float("nan")])
def test_an_explanation_cannot_be_built_with_an_invalid_budget(explained: ExplainedForecast, budget: float) -> None:
    with pytest.raises(DataError, match=r"budget of an explanation must lie in \(0, 1\]"):
        replace(explained, budget=budget)


def test_the_budget_of_a_model_for_one_budget_cannot_be_changed(runner: OnnxForecaster) -> None:
    with pytest.raises(
        UsageError, match=r"only in a model trained for any budget \(got budget=0.5, trained for 0.3\); fit"
    ):
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
explained = runner.explain(values, times)
assert (runner.predict(values, times) == explained.forecast).all()
assert runner.verify(type(explained).from_json(explained.to_json()))
assert not any(name.split(".")[0] == "torch" and module for name, module in sys.modules.items())
print(explained.to_json())
"""


def test_the_runner_needs_onnxruntime_and_numpy_but_not_pytorch(
    path: Path, explained: ExplainedForecast, tmp_path: Path
) -> None:
    np.save(tmp_path / "values.npy", numbers())
    command = [sys.executable, "-W", "error", "-c", ALONE, str(path), str(tmp_path / "values.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(explained.to_json())


# --- Invalid arguments ---

ENDLESS, SILENT = numbers(), numbers()
ENDLESS[7, 2], SILENT[-LOOK_BACK:, 1] = np.inf, np.nan
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "too few rows": (numbers(47), HOURS[:47], r"there must be 48 rows or more \(got 47\); give earlier rows"),
    "a channel too few": (
        numbers()[:, :3],
        HOURS,
        r"a column for each of 'load', 'wind', 'heat', 'rain' \(got shape \(60, 3\)\); give rows by channels",
    ),
    "a channel silent in the window": (SILENT, HOURS, r"at least once in the window \(got nothing in 'wind'"),
    "infinity": (ENDLESS, HOURS, r"values must be finite \(got inf in row 7 of 'heat'\); correct them"),
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
def test_an_invalid_history_is_refused(runner: OnnxForecaster, what: str) -> None:
    history, times, message = REFUSED[what]
    for verb in (runner.predict, runner.explain):
        with pytest.raises(DataError, match=message):
            verb(history, times)


def test_an_hour_that_the_clock_showed_twice_needs_an_offset(path: Path, tmp_path: Path) -> None:
    runner = with_card(path, tmp_path / "zoned.onnx", zone="Europe/Berlin")
    wall = frame(first="2023-10-28 12:00")["when"].to_numpy()
    with pytest.raises(DataError, match=r"exactly once \(got 2023-10-29T02:00:00.*\); give the times with their off"):
        runner.predict(numbers(), wall)


WINDOW = windows(fitted(**USUAL).config, 3, 0)
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
def test_a_batch_that_does_not_fit_the_graph_is_refused(runner: OnnxForecaster, what: str) -> None:
    change, error, message = BAD_BATCHES[what]
    with pytest.raises(error, match=message):
        runner.run_batch(**(arrays(WINDOW) | change))


def test_unobserved_values_do_not_matter(runner: OnnxForecaster) -> None:
    inputs = arrays(WINDOW)
    changed = np.where(inputs["observed"], inputs["values"], np.float32(np.nan))
    (_, one), (_, other) = runner.run_batch(**inputs), runner.run_batch(**(inputs | {"values": changed}))
    assert one.tobytes() == other.tobytes()


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a bit flipped": (flipped, r"must match its fingerprint \(got .*, which was changed\); export it again"),
    "cut off": (
        lambda content: content[:-2000],
        r"complete and written by ibforecast \(got .*no fingerprint of ibforecast\); write it with",
    ),
    "something added": (lambda content: content + b"\0", "must match its fingerprint"),
    "another card": (lambda content: content.replace(b'"wind"', b'"wine"'), "must match its fingerprint"),
    "no ONNX at all": (lambda content: b"forecast: sunny", "complete and written by ibforecast"),
    "empty": (lambda content: b"", "complete and written by ibforecast"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_file_is_refused(path: Path, tmp_path: Path, what: str) -> None:
    change, message = DAMAGE[what]
    (tmp_path / "model.onnx").write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelFileError, match=message):
        OnnxForecaster(tmp_path / "model.onnx")


def test_a_file_that_is_missing_newer_or_not_runnable_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"must be a file \(got .*nowhere.onnx, where there is no file\); check"):
        OnnxForecaster(tmp_path / "nowhere.onnx")
    with pytest.raises(
        ModelFileError, match=r"reads ibforecast.onnx up to version 1 \(got version 2\); upgrade ibforecast"
    ):
        with_card(path, tmp_path / "newer.onnx", version=2)
    content = onnx.load(path)
    content.graph.node[0].op_type = "Divine"
    restamp(content, tmp_path / "strange.onnx")
    with pytest.raises(ModelFileError, match=r"onnxruntime must be able to run the file \(got .*Divine.*\); upgrade"):
        OnnxForecaster(tmp_path / "strange.onnx")


NO_FACTS: dict[str, Any] = {
    "weights_sha256": 5,
    "channels": "load",
    "look_back": 2**31,
    "horizon": "12",
    "patch_len": 0,
    "cycles": [],
    "frequency": "often",
    "zone": "Europe/Atlantis",
    "origin": "long ago",
    "units": {"mean": [0.0], "std": [0.0]},
    "known_units": {"mean": [], "std": []},
    "limits": {"low": [None], "high": [None], "whole": [False]},
    "zero_at": ["at night"],
    "budget": "0.2",
    "sealed": 1,
}


@pytest.mark.parametrize("name", NO_FACTS)
def test_a_card_with_a_fact_that_no_model_has_is_refused(path: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises((ModelFileError, UsageError)):
        with_card(path, tmp_path / "model.onnx", **{name: NO_FACTS[name]})


def test_an_existing_file_is_replaced_only_with_overwrite(model: IBForecaster, path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"must not replace what is there \(got .*\); choose another path, or pass overwrite=True"
    ):
        model.to_onnx(path)


def test_an_invalid_number_of_threads_is_refused(path: Path) -> None:
    for threads in (0, 100_000):
        with pytest.raises(UsageError, match=rf"threads must be from 1 to 1024 \(got threads={threads}\); try 1"):
            OnnxForecaster(path, threads=threads)


@pytest.mark.parametrize("library", ["onnxruntime", "onnxscript"])
def test_a_missing_library_is_named_with_its_install_command(
    path: Path, usual: FittedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"this needs .*{library}.* pip install 'ibforecast\[onnx\]'"):
        OnnxForecaster(path) if library == "onnxruntime" else export(usual, tmp_path / "model.onnx")
