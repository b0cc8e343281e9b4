"""An audit reports the measures, fails if it must, and is saved with its model."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from ibforecast import DataError, IBForecaster, ModelFileError, UsageError
from ibforecast import audit as auditing
from ibforecast.audit import FILE, Audit, FidelityAudit, audit_guest, saved_audit
from ibforecast.core import document as documents
from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.explanation import Explanation
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.fidelity import (
    Fidelity,
    Measure,
    every_fidelity,
    every_shift,
    native_importance,
    native_points,
)
from ibforecast.model.network import IBForecast
from ibforecast.model.stage2_score import GateNetwork

ROWS, LOOK_BACK, HORIZON, PATCH_LEN = 400, 48, 12, 12
TEST_WINDOWS = 69
TINY = """
[model]
budget = 0.25
[model.gate]
kind = "{kind}"
width = 16
[model.readout]
width = 16
[model.objective]
prior = 0.3
[train]
epochs = 2
batch = 64
"""


def table(rows: int = ROWS, gaps: Any = ()) -> pd.DataFrame:
    hour, noise = np.arange(rows), np.random.default_rng(5).normal(size=(rows, 3))
    values = (np.sin(2 * np.pi * hour / 24)[:, None] + 0.3 * noise) * (20.0, 3.0, 0.5) + (900.0, 40.0, -2.0)
    for chosen in gaps:
        values[chosen] = np.nan
    when = pd.date_range("2023-01-01", periods=rows, freq="h")
    return pd.DataFrame({"when": when, "load": values[:, 0], "wind": values[:, 1], "heat": values[:, 2]})


def fitted(folder: Path, kind: str = "exact") -> IBForecaster:
    (folder / "tiny.toml").write_text(TINY.format(kind=kind))
    return IBForecaster(HORIZON, LOOK_BACK, recipe=str(folder / "tiny.toml"), device="cpu").fit(table())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    return fitted(tmp_path_factory.mktemp("exact"))


@pytest.fixture(scope="module")
def reluctant(tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    """A model that may leave every gate closed."""
    return fitted(tmp_path_factory.mktemp("threshold"), "threshold")


@pytest.fixture(scope="module")
def audit(model: IBForecaster) -> Audit:
    return model.audit(table())


def windows_of(model: IBForecaster) -> Windows:
    fitted = model.fitted
    series = model.open(table()).series
    starts = fitted.split.starts("test", LOOK_BACK, HORIZON)
    return Windows.of(series, fitted.standardiser, fitted.config.cycle, starts, LOOK_BACK, HORIZON)


# --- Contents ---


def test_the_scores_equal_those_of_the_measures(model: IBForecaster, audit: Audit) -> None:
    network, windows = model.fitted.network, windows_of(model)
    window = windows.look_backs(windows.starts)
    with torch.no_grad():
        explanation: Explanation = network(window).explanation
    shifts = every_shift(network, window, native_importance(explanation), native_points(explanation))
    rows = {(row.measure, row.aggregate): row.fidelity for row in every_fidelity([shifts])}
    assert audit.fidelity == rows[Measure(), "ratio_of_means"]
    assert audit.frozen == rows[Measure(gating="frozen"), "ratio_of_means"]
    assert audit.all_deleted == pytest.approx(float(shifts[Measure()].all_deleted.mean()))
    assert audit.score == audit.fidelity.clipped_comprehensiveness - audit.fidelity.sufficiency <= 1


def test_with_the_mask_held_the_map_is_perfect_and_chance_scores_less(audit: Audit) -> None:
    assert (audit.frozen.comprehensiveness, audit.frozen.sufficiency) == (1, 0)
    assert audit.chance.clipped_score < audit.score
    assert audit.chance.windows == audit.windows == audit.available == TEST_WINDOWS


def test_the_errors_equal_those_of_evaluate(model: IBForecaster, audit: Audit) -> None:
    evaluation = model.evaluate(table())
    for name in ("mse", "mae", "open_rate", "largest_open_rate", "budget", "windows", "split"):
        assert getattr(audit, name) == getattr(evaluation, name), name
    assert audit.points == audit.open_rate * audit.points_of == 36


def test_the_rate_is_the_mean_over_the_explanations(model: IBForecaster) -> None:
    audit = model.audit(table(), windows=4)
    starts = windows_of(model).starts[evenly_spaced(4, TEST_WINDOWS)].tolist()
    rates = [model.explain(table(), table()["when"][start + LOOK_BACK - 1]).rate_bits for start in starts]
    assert audit.rate_bits == pytest.approx(np.mean(rates), rel=1e-5)
    assert (audit.windows, audit.available, audit.prior) == (4, TEST_WINDOWS, 0.3)
    assert len(set(rates)) == 4


def test_an_honest_model_changes_no_bit_and_its_sensitivity_is_reported(audit: Audit) -> None:
    assert audit.changed_bits == 0
    assert audit.compared == TEST_WINDOWS * HORIZON * 3
    assert audit.scrambled == TEST_WINDOWS * (12 - 3) * PATCH_LEN
    assert audit.gates_relative >= 0
    assert audit.relative > 0
    assert 0 < audit.masks_changed <= 1


def test_an_audit_is_repeatable_and_leaves_the_model_unchanged(model: IBForecaster, audit: Audit) -> None:
    network = model.fitted.network
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    network.train()
    random = torch.get_rng_state()
    again = model.audit(table())
    assert network.training
    network.eval()
    assert replace(again, finished=audit.finished) == audit
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)


def test_the_batch_size_changes_nothing(model: IBForecaster, audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing, "BATCH", 16)
    other = model.audit(table())
    assert other.score == pytest.approx(audit.score, abs=1e-5)
    assert (other.changed_bits, other.masks, other.empty) == (0, audit.masks, audit.empty)
    assert other.rate_bits == pytest.approx(audit.rate_bits, rel=1e-5)


def test_the_text_contains_every_result(audit: Audit) -> None:
    text = audit.in_words()
    assert text.startswith("Audit of 69 of 69 windows (test): 25.0 % read, at most 25.0 % of a window (budget 25.0 %).")
    for scores in (audit.fidelity, audit.frozen, audit.chance):
        cells = (scores.clipped_score, scores.clipped_comprehensiveness, scores.comprehensiveness, scores.sufficiency)
        assert "".join(f"{cell:>10.3f}" for cell in cells) in text
    assert "certificate   0 bits changed, context and mask held (2,484 forecast values" in text
    assert f"{100 * audit.relative:.1f} % of the squared shift" in text
    assert f"rate          {audit.rate_bits:.1f} bits per window beyond a prior of 0.3" in text
    assert f"MSE {audit.mse:.4f}, MAE {audit.mae:.4f}" in text
    assert "note" not in text


def test_a_good_score_that_means_little_comes_with_a_note(audit: Audit) -> None:
    assert "note: everything is read" in replace(audit, open_rate=1.0).in_words()
    assert "note: the mask is the same in every window" in replace(audit, masks=1).in_words()
    assert "note: nothing is read in 3 of the windows" in replace(audit, empty=3).in_words()


# --- Shortfalls ---


def with_scores(audit: Audit, comprehensiveness: float, sufficiency: float) -> Audit:
    return replace(audit, fidelity=Fidelity(comprehensiveness, min(comprehensiveness, 1.0), sufficiency, 69))


def test_a_score_equal_to_the_bar_passes(audit: Audit) -> None:
    good = with_scores(audit, 1.25, 0.25)
    assert (good.score, good.fidelity.score) == (0.75, 1.0)
    assert good.passed(0.75)
    assert not good.passed(0.7501)
    assert not good.passed(), "the usual bar is 0.9"


@pytest.mark.parametrize(
    ("scores", "remedy"), [((0.3, 0.1), "absence_weight"), ((0.9, 0.6), "consistency_weight")], ids=["lost", "kept"]
)
def test_a_shortfall_names_the_part_that_falls_short(audit: Audit, scores: tuple[float, float], remedy: str) -> None:
    (shortfall,) = with_scores(audit, *scores).shortfalls(0.5)
    assert shortfall.rule == "fidelity must be at least 0.5"
    assert f"{scores[0] - scores[1]:.4f}: comprehensiveness {scores[0]:.4f} less" in shortfall.value
    assert remedy in shortfall.remedy
    assert str(shortfall) == f"{shortfall.rule} (got {shortfall.value}); {shortfall.remedy}"


def favour_small_deviations(self: GateNetwork, deviation: Tensor) -> Tensor:
    """Return the logits of a gate that opens the smallest deviations, and so the deleted tokens first."""
    batch, look_back, channel = deviation.shape
    return -deviation.abs().reshape(batch, look_back // PATCH_LEN, PATCH_LEN, channel).mean(dim=2)


def test_a_gate_that_opens_deleted_tokens_is_detected(model: IBForecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GateNetwork, "forward", favour_small_deviations)
    audit = model.audit(table())
    assert audit.frozen.clipped_score == 1, "the score is perfect with the mask held"
    assert audit.fidelity.sufficiency > 0.9
    (shortfall,) = audit.shortfalls(0.9)
    assert "given only its evidence the gate opens something else" in shortfall.remedy


@pytest.mark.parametrize("size", [1e-6, 1.0])
def test_a_replay_that_remembers_the_window_is_detected(
    model: IBForecaster, monkeypatch: pytest.MonkeyPatch, size: float
) -> None:
    seen: list[Tensor] = []
    context, replay = IBForecast.forward, IBForecast.replay

    def forward(self: IBForecast, window: Any, held: Any = None) -> Any:
        seen[:] = [window.values]
        return context(self, window, held)

    def peek(self: IBForecast, explanation: Explanation) -> Tensor:
        return replay(self, explanation) * (1 + size * seen[0].mean(dim=(1, 2), keepdim=True))

    monkeypatch.setattr(IBForecast, "forward", forward)
    monkeypatch.setattr(IBForecast, "replay", peek)
    audit = model.audit(table())
    assert audit.changed_bits > 0
    assert not audit.passed(0.0), "a changed bit fails at any bar"
    shortfall = audit.shortfalls(0.0)[-1]
    assert shortfall.rule == "no bit of a forecast may change, context and mask held"
    assert f"{audit.scramble_bits} on scrambling" in shortfall.value


def test_a_model_that_reads_nothing_has_no_fidelity_and_passes_no_bar(
    reluctant: IBForecaster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(GateNetwork, "forward", lambda self, deviation: favour_small_deviations(self, deviation) - 1)
    audit = reluctant.audit(table())
    assert (audit.empty, audit.open_rate, audit.points, audit.changed_bits) == (TEST_WINDOWS, 0, 0, 0)
    assert np.isnan(audit.score)
    assert not audit.passed(0.0)
    (shortfall,) = audit.shortfalls(0.0)
    assert shortfall.value.startswith("undefined: no forecast moves even with everything deleted, with nothing read")
    assert "larger budget" in shortfall.remedy
    assert audit.in_words().count("undefined") == 14
    written = json.dumps(audit.document(), allow_nan=False)
    assert json.loads(written)["score"] is None
    reluctant.save(tmp_path / "model")
    audit.save(tmp_path / "model")
    kept = saved_audit(tmp_path / "model", audit.weights_sha256)
    assert kept is not None
    assert np.isnan(kept.score)


def test_a_model_that_reads_only_deleted_windows_has_the_lowest_score(
    reluctant: IBForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GateNetwork, "forward", lambda self, deviation: favour_small_deviations(self, deviation) + 1e-3)
    audit = reluctant.audit(table())
    assert audit.empty == TEST_WINDOWS
    assert (audit.fidelity.comprehensiveness, audit.fidelity.sufficiency) == (0, 1)
    (shortfall,) = audit.shortfalls(0.0)
    assert "-1.0000" in shortfall.value
    assert "nothing read in 69 of 69 windows" in shortfall.value


def test_a_model_that_forecasts_only_the_pattern_has_no_fidelity(
    model: IBForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = (HORIZON, 3)
    monkeypatch.setattr(
        IBForecast,
        "replay",
        lambda self, explanation: explanation.context.restore(torch.zeros(len(explanation.mask), *shape)),
    )
    audit = model.audit(table())
    (shortfall,) = audit.shortfalls(0.0)
    assert shortfall.value == "undefined: no forecast moves even with everything deleted"
    assert audit.all_deleted == 0


# --- Windows ---


def test_only_windows_that_observe_every_channel_are_audited(model: IBForecaster) -> None:
    gaps = [(slice(120, 125), 0), (slice(200, 260), 1)]
    audit = model.audit(table(gaps=gaps), "all", 50)
    assert audit.available < len(table()) - LOOK_BACK - HORIZON + 1
    assert audit.available == model.evaluate(table(gaps=gaps), "all").windows
    assert (audit.windows, audit.changed_bits, audit.frozen.clipped_score) == (50, 0, 1)
    assert audit.table_sha256 != model.audit(table(), "all", 2).table_sha256


def test_too_few_windows_are_refused(model: IBForecaster) -> None:
    with pytest.raises(UsageError, match=r"needs a second window .+ \(got windows=1\); try 1024"):
        model.audit(table(), windows=1)
    one = table(LOOK_BACK + HORIZON)
    with pytest.raises(DataError, match=r"at least 2 windows .+ \(got 1 of 1\); .+ more rows"):
        model.audit(one, "all")
    with pytest.raises(DataError, match=r"\(got none of 341\)"):
        model.audit(table(gaps=[(slice(None), 1)]), "all")
    two = model.audit(table(LOOK_BACK + HORIZON + 1), "all")
    assert (two.windows, two.available) == (2, 2)


def test_a_part_must_come_from_the_training_table(model: IBForecaster) -> None:
    with pytest.raises(UsageError, match='use split="all"'):
        model.audit(table(ROWS - 1))


@pytest.mark.parametrize("bar", [-0.1, 1.1, float("nan")])
def test_an_invalid_bar_is_refused(audit: Audit, bar: float) -> None:
    with pytest.raises(UsageError, match=r"must lie in \[0, 1\]"):
        audit.passed(bar)


# --- Saved with its model ---


@pytest.fixture
def folder(model: IBForecaster, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


def test_an_audit_is_saved_with_its_model_and_read_back(model: IBForecaster, audit: Audit, folder: Path) -> None:
    weights = model.fitted.weights_sha256
    assert saved_audit(folder, weights) is None
    assert audit.save(folder, 0.5) == folder / FILE
    assert saved_audit(folder, weights) == audit
    document = json.loads((folder / FILE).read_text())
    assert (document["min_fidelity"], document["passed"], document["score"]) == (0.5, audit.passed(0.5), audit.score)
    content = document["audit"]
    assert (content["weights_sha256"], content["table_sha256"]) == (weights, model.fitted.summary.data_sha256)
    assert content["ibforecast_version"]
    assert content["finished"].endswith("+00:00")
    assert IBForecaster.load(folder).fitted.weights_sha256 == weights
    replace(audit, mse=9.0).save(folder)
    assert saved_audit(folder, weights) == replace(audit, mse=9.0)
    assert sorted(path.name for path in folder.iterdir()) == [
        FILE,
        "intervals.safetensors",
        "model.json",
        "weights.safetensors",
    ]


def test_an_audit_of_other_weights_is_ignored(audit: Audit, folder: Path) -> None:
    audit.save(folder)
    assert saved_audit(folder, "0" * 64) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"passed": false', '"passed": true').replace('"score": ', '"score": 1'),
        lambda text: text[:-9],
        lambda text: "[]",
        lambda text: text.replace('"version": 1', '"version": 2'),
    ],
    ids=["edited", "cut off", "something else", "newer"],
)
def test_an_edited_audit_is_refused(audit: Audit, folder: Path, change: Callable[[str], str]) -> None:
    path = audit.save(folder)
    path.write_text(change(path.read_text()))
    with pytest.raises(ModelFileError, match=rf"{FILE} must be as it was written .+; audit again"):
        saved_audit(folder, audit.weights_sha256)


@pytest.mark.parametrize("change", [{"score": 0.5}, {"passed": None}, {"approved_by": "the regulator"}], ids=str)
def test_an_audit_that_states_more_than_it_measured_is_refused(
    audit: Audit, folder: Path, change: dict[str, Any]
) -> None:
    path = audit.save(folder)
    content = {name: each for name, each in json.loads(path.read_text()).items() if name != "sha256"}
    kind, version = content.pop("format"), content.pop("version")
    path.write_text(documents.write(kind, version, content | change))
    with pytest.raises(ModelFileError, match="must follow from its measurements"):
        saved_audit(folder, audit.weights_sha256)
    path.write_text(documents.write(kind, version, content))
    assert saved_audit(folder, audit.weights_sha256) == audit


def test_an_audit_is_saved_only_with_a_model(audit: Audit, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="save the model first"):
        audit.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- Guests ---

STEPS, CHANNELS = 24, 3


def values(batch: int = 20, seed: int = 0) -> Tensor:
    return torch.randn(batch, STEPS, CHANNELS, generator=torch.Generator().manual_seed(seed)) + 5


def reads_the_end(window: Tensor) -> Tensor:
    """Forecast every channel by the last four steps of the first, twice."""
    return window[:, -4:, :1].repeat(1, 2, window.shape[2])


def the_end(batch: int = 20) -> Tensor:
    """Return the map of the values that `reads_the_end` reads, with a negative sign."""
    importance = torch.zeros(batch, STEPS, CHANNELS)
    importance[:, -4:, 0] = -1
    return importance


BUDGET = 4 / (STEPS * CHANNELS)


def test_the_map_of_the_values_that_are_read_scores_one_and_its_opposite_minus_one() -> None:
    right = audit_guest(reads_the_end, values(), the_end(), budget=BUDGET)
    assert (right.score, right.points, right.points_of) == (1, 4, STEPS * CHANNELS)
    assert right.passed(1.0)
    wrong = audit_guest(reads_the_end, values(), 1 + the_end(), budget=BUDGET)
    assert (wrong.fidelity.comprehensiveness, wrong.fidelity.sufficiency, wrong.score) == (0, 1, -1)
    assert right.chance == wrong.chance
    assert -1 <= right.chance.score < 0.5
    (shortfall,) = wrong.shortfalls()
    assert "try another map" in shortfall.remedy


def test_the_scores_of_a_guest_are_printed_in_words() -> None:
    text = audit_guest(reads_the_end, values(), the_end(), budget=BUDGET).in_words().splitlines()
    assert text[0] == "Fidelity over 20 windows; a map names 4 of 72 points."
    assert text[2].split() == ["the", "map", "1.000", "1.000", "1.000", "0.000"]
    assert text[3].startswith("chance ")


def test_numpy_and_batches_give_the_same_scores() -> None:
    whole = audit_guest(reads_the_end, values(), the_end(), budget=BUDGET)
    array = np.asarray(values())
    array.flags.writeable = False
    parts = audit_guest(reads_the_end, array, the_end().numpy(), budget=BUDGET, batch=7)
    assert parts.fidelity == whole.fidelity


class Steepness(Explainer):
    """An explainer that grades every value by the gradient of the forecast's energy."""

    def explain(self, predictor: Predictor, window: Window, share: Tensor, generator: torch.Generator) -> Importance:
        with torch.enable_grad():
            values = window.values.clone().requires_grad_()
            energy = predictor.relaxed(replace(window, values=values)).square().sum()
        return Importance(torch.autograd.grad(energy, values)[0].abs(), forwards=1, backwards=1)


def test_an_explainer_can_compute_the_map() -> None:
    score = audit_guest(reads_the_end, values(), Steepness(), budget=BUDGET, batch=8).score
    assert score == pytest.approx(1, abs=1e-6)


def test_a_gap_is_filled_with_the_mean_and_is_never_a_point() -> None:
    windows, importance = values(), the_end()
    windows[:, -1, 0] = torch.nan
    importance[:, 0, 1] = -0.5
    seen: list[Tensor] = []

    def forecast(shown: Tensor) -> Tensor:
        seen.append(shown)
        return reads_the_end(shown)

    audit = audit_guest(forecast, windows, importance, budget=BUDGET)
    assert audit.score == pytest.approx(1, abs=1e-5), "three of the four points, and one that does not matter"
    assert not any(shown.isnan().any() for shown in seen)
    torch.testing.assert_close(seen[0][:, -1, 0], windows[:, :-1, 0].mean(dim=1))


def test_a_module_is_run_in_evaluation_mode_and_left_unchanged() -> None:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.9)

        def forward(self, window: Tensor) -> Tensor:
            assert not self.training
            return self.dropout(reads_the_end(window))

    network = Network().train()
    assert audit_guest(network, values(), the_end(), budget=BUDGET).score == 1
    assert network.dropout.training


def test_in_output_units_a_channel_counts_by_the_size_of_its_values() -> None:
    def forecast(window: Tensor) -> Tensor:
        return window[:, -4:]

    windows = values() * torch.tensor([100.0, 1.0, 1.0])
    framed, plain = (
        audit_guest(forecast, windows, the_end(), budget=BUDGET, space=kind) for kind in ("frame", "output")
    )
    assert framed.score < 0.0
    assert plain.score > 0.99


def test_a_function_that_ignores_its_window_has_no_fidelity() -> None:
    audit = audit_guest(lambda window: torch.zeros(len(window), 5, CHANNELS), values(), the_end())
    assert isinstance(audit, FidelityAudit)
    (shortfall,) = audit.shortfalls(0.0)
    assert shortfall.value == "undefined: no forecast moves even with everything deleted"
    assert audit.in_words().count("undefined") == 8
    assert audit.document()["audit"]["fidelity"]["sufficiency"] is None


def test_a_nan_forecast_has_no_fidelity() -> None:
    (shortfall,) = audit_guest(lambda window: window[:, :2] * torch.nan, values(), the_end()).shortfalls(0.0)
    assert shortfall.value == "undefined: forecasts are not numbers"


def with_an_unobserved_channel() -> Tensor:
    windows = values()
    windows[3, :, 1] = torch.nan
    return windows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"importance": the_end(21)}, r"grade every value of the windows \(got \(21, 24, 3\) for \(20, 24, 3\)\)"),
        ({"importance": the_end()[..., 0]}, r"\(20, 24\) for \(20, 24, 3\)"),
        ({"importance": the_end() / 0}, "must be finite"),
        ({"budget": 0.0}, r"budget must lie in \(0, 1\]"),
        ({"budget": 1.5}, r"budget must lie in \(0, 1\]"),
        ({"budget": 0.001}, "at least one point"),
        ({"values": with_an_unobserved_channel()}, "every channel must be observed"),
        ({"values": values(0), "importance": the_end(0)}, "needs a window"),
        ({"function": lambda window: window[:, :, 0]}, "must forecast"),
    ],
    ids=[
        "rows",
        "axes",
        "NaN",
        "nothing",
        "too much",
        "less than a point",
        "an unobserved channel",
        "no windows",
        "shape",
    ],
)
def test_a_guest_that_cannot_be_audited_is_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"function": reads_the_end, "values": values(), "importance": the_end()} | change
    with pytest.raises(UsageError, match=message):
        audit_guest(**arguments)
