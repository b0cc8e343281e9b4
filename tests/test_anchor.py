"""Anchors: naive forecasts blended into those of a model, disclosed, checked, and part of every receipt."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.adapters.test_spreadsheet import CLOSE, Program, by_formulas, in_stds
from tests.properties.test_receipts import KINDS, Units, assert_true, departures, desk, every_kind, explained
from torch.utils._python_dispatch import TorchDispatchMode

from ibforecast import DataError, IBForecaster
from ibforecast.adapters.onnx import OnnxForecaster
from ibforecast.core.anchors import LINE, MEDIAN, NEWEST, anchor_names
from ibforecast.core.context import effect
from ibforecast.core.errors import UsageError
from ibforecast.core.window import Window
from ibforecast.data.windows import Windows
from ibforecast.engine import TorchEngine
from ibforecast.fitting import fit as fit_with
from ibforecast.fitting import settings_of
from ibforecast.layers import naive
from ibforecast.model.config import ModelConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import network_of
from ibforecast.receipts import weights
from ibforecast.use import Desk
from ibforecast.zoo.anchoring import SHARES, anchored, grown, steadied, training_medians

HORIZON, LOOK_BACK = 6, 48
RECIPE = """
extends = "{}"
[model.readout]
width = 16
[train]
epochs = 1
"""


def make_table(rows: int = 500) -> pd.DataFrame:
    random, hour = np.random.default_rng(3), np.arange(rows)
    return pd.DataFrame(
        {
            "when": pd.date_range("2024-02-01", periods=rows, freq="h"),
            "stairs": np.repeat(random.normal(size=rows // 50), 50) * 10,
            "wave": 20 + 5 * np.sin(2 * np.pi * hour / 24) + random.normal(size=rows),
            "noise": random.normal(size=rows),
        }
    )


def fit(folder: Path, recipe: str, table: pd.DataFrame | None = None, **settings: Any) -> IBForecaster:
    path = folder / f"tiny-{recipe}.toml"
    path.write_text(RECIPE.format(recipe) + ("second_epochs = 1\n" if recipe == "choosing" else ""))
    model = IBForecaster(HORIZON, LOOK_BACK, recipe=str(path), device="cpu", **settings)
    return model.fit(make_table() if table is None else table)


@pytest.fixture(scope="module", params=["sealed", "additive", "choosing"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    return fit(tmp_path_factory.mktemp("anchor"), request.param)


def blend_of(model: IBForecaster) -> np.ndarray:
    anchor = model.fitted.network.decompose.anchor
    assert anchor is not None
    return anchor.blend.numpy()


def test_a_channel_of_stairs_repeats_its_newest_value_and_noise_does_not(model: IBForecaster) -> None:
    blend = blend_of(model)
    assert blend[0, 0] == 1.0
    assert blend[0, 2] < 1.0
    explained = model.explain(make_table())
    newest = np.flatnonzero(explained.explanation.mask[:, 0])[-1]
    assert (explained.forecast[:, 0] == pytest.approx(explained.history[newest, 0], rel=1e-6)) is True


def test_the_blend_is_among_the_shares_that_are_tried(model: IBForecaster) -> None:
    blend = blend_of(model)
    assert set(np.unique(blend)) <= {0.0, *SHARES}
    assert (blend.sum(axis=0) <= 1).all()


def test_an_anchored_explanation_passes_every_check(model: IBForecaster) -> None:
    explained = model.explain(make_table())
    assert model.verify(explained, make_table())
    assert model.verify(explained.to_json(), make_table(), exact=True)


def test_receipts_of_an_anchored_channel_add_up_and_name_the_anchor(model: IBForecaster) -> None:
    explained = model.explain(make_table())
    for step in ("mean", 1, HORIZON):
        assert all(explained.itemised(channel, step).adds_up for channel in explained.channels)
    assert f"Anchor: 100% {NEWEST}." in explained.in_words("stairs")
    receipt = explained.receipt("stairs")
    read = receipt[receipt["part"] == "read"]
    # The whole forecast is one value, so that no other adds anything.
    assert (read["amount"].abs() > 1e-3).sum() <= 1


def anchored_desk(channels: int, look_back: int, kind: str = "additive", medians: bool = False) -> Desk:
    """Build a model with arbitrary weights, medians of training, and an arbitrary share of every naive forecast."""
    plain = desk(kind, [Units(3.0, 2.0)] * channels, look_back=look_back)
    network = network_of(replace(plain.fitted.config, anchored=True, medians=medians)).eval()
    random = torch.Generator().manual_seed(4)
    blend = torch.rand(len(anchor_names((5,), look_back, medians)), channels, generator=random) / (8 if medians else 4)
    weights = {**plain.fitted.network.state_dict(), "decompose.anchor.blend": blend}
    if medians:
        weights["decompose.anchor.medians"] = torch.randn(6, channels, generator=random)
    network.load_state_dict(weights)
    return Desk(replace(plain.fitted, network=network), "cpu", "pandas")


def test_the_weights_of_an_anchor_give_its_forecast() -> None:
    model = anchored_desk(3, 12)
    explanation = explained(model, departures(model, 5))
    columns, anchor = range(3), explanation.explanation.context.anchor
    values = explanation.units.standardise(explanation.history)
    with_anchor = weights(TorchEngine(model.fitted), explanation, columns)
    model.fitted.network.decompose.anchor = None
    without = weights(TorchEngine(model.fitted), explanation, columns)
    for column in columns:
        read = with_anchor[column].read
        kept = 1 - explanation.explanation.context.anchored[column]
        own = with_anchor[column].linear - kept * without[column].linear
        assert own.T @ values[read.step, read.channel] == pytest.approx(anchor[:, column], abs=1e-5)
        assert np.abs(own[read.channel != column]).max() < 1e-7


@every_kind
def test_receipts_with_any_share_of_medians_of_training_add_up(kind: str) -> None:
    model = anchored_desk(3, 12, kind, medians=True)
    explanation = explained(model, departures(model, 5))
    assert len(explanation.explanation.context.blend) == len(anchor_names((5,), 12, medians=True))
    assert_true(model, explanation, list(model.fitted.channels))


class Largest(TorchDispatchMode):
    """Records the size of the largest tensor that is computed."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.size = max(self.size, result.numel())
        return result


def test_the_receipt_of_an_anchored_model_needs_no_more_memory_than_ten_windows() -> None:
    model = anchored_desk(60, 48)
    explanation = explained(model, departures(model, 5))
    with Largest() as largest:
        assert explanation.itemised("channel 7").adds_up
    assert largest.size <= 10 * 60 * 48


def test_a_forged_anchor_is_refused(model: IBForecaster) -> None:
    table = make_table()
    true = model.explain(table)
    context = true.explanation.context
    for lie in ({"anchor": context.anchor + 0.01}, {"blend": context.blend * 0.75}, {"anchor": None, "blend": None}):
        forged = replace(true, explanation=replace(true.explanation, context=replace(context, **lie)))
        verdict = model.verify(forged.to_json(), table)
        assert not verdict
        assert {check.name for check in verdict.checks if not check.passed} >= {"rerun"}


def test_an_anchor_without_a_blend_is_refused(model: IBForecaster) -> None:
    explained = model.explain(make_table())
    context = explained.explanation.context
    with pytest.raises(DataError, match="if and only if there is a blend"):
        replace(explained, explanation=replace(explained.explanation, context=replace(context, blend=None)))


def test_onnx_gives_the_anchored_forecast(model: IBForecaster, tmp_path: Path) -> None:
    table = make_table()
    model.to_onnx(tmp_path / "model.onnx")
    runner = OnnxForecaster(tmp_path / "model.onnx")
    forecast = runner.predict(table[["stairs", "wave", "noise"]].to_numpy(), table["when"].to_numpy())
    assert forecast == pytest.approx(model.explain(table).forecast, rel=1e-4, abs=1e-4)


def test_a_saved_model_keeps_its_anchor(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = IBForecaster.load(tmp_path / "model")
    assert (blend_of(again) == blend_of(model)).all()
    assert list(again.fitted.anchors()) == list(model.fitted.anchors())
    assert any(line.startswith(f"100% {NEWEST}, in stairs") for line in again.fitted.anchors())
    assert again.explain(make_table()).to_json() == model.explain(make_table()).to_json()


def test_no_anchor_leaves_the_network_as_it_was() -> None:
    network = network_of(ModelConfig(8, 2, 1, 4, patch_len=2, budget=0.5))
    values = torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    windows = Windows(values, torch.ones(60, 1, dtype=torch.bool), torch.arange(62) % 4, torch.arange(40), 8, 2)
    assert anchored(network, windows, 0.999) is network
    assert anchored(network, windows.at(range(0)), 0.0) is network


def test_naive_forecasts_are_linear_in_the_values() -> None:
    random = torch.Generator().manual_seed(1)
    one, other = torch.randn(2, 5, 12, 3, generator=random).double()
    observed = torch.rand(5, 12, 3, generator=random) > 0.6
    forecasts = [
        lambda values: naive.repeated(values, observed, 1, 7),
        lambda values: naive.repeated(values, observed, 5, 7),
        lambda values: naive.continued(values, observed, 7),
    ]
    for forecast in forecasts:
        assert torch.allclose(forecast(2 * one - 3 * other), 2 * forecast(one) - 3 * forecast(other))


def test_a_straight_line_is_continued_through_gaps() -> None:
    line = torch.arange(12.0)[None, :, None]
    observed = torch.zeros(1, 12, 1, dtype=torch.bool)
    observed[0, [2, 5, 9]] = True
    assert torch.equal(naive.continued(line, observed, 3)[0, :, 0], torch.tensor([12.0, 13.0, 14.0]))
    observed[0, [2, 5]] = False
    assert torch.equal(naive.continued(line, observed, 3)[0, :, 0], torch.tensor([9.0, 9.0, 9.0]))
    assert not naive.continued(line, torch.zeros_like(observed), 3).any()


def test_cycles_that_do_not_fit_have_no_anchor() -> None:
    assert anchor_names((24, 168, 1), 96) == (NEWEST, LINE, "repeats the last 24 steps, as far as they were read")


def make_weeks(rows: int = 800) -> pd.DataFrame:
    """Make a channel with a week, which does not fit into the look-back, and others."""
    return make_table(rows).assign(week=week(np.arange(rows)))


def week(hour: np.ndarray) -> np.ndarray:
    return np.where(hour % 168 < 100, 30.0, 0.0) + hour % 2


@pytest.fixture(scope="module", params=["sealed", "additive", "choosing"])
def weekly(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> IBForecaster:
    """A model that learned only the day."""
    return fit(tmp_path_factory.mktemp("weekly"), request.param, make_weeks(), cycle=24)


def test_a_channel_repeats_the_median_week_of_training_if_a_naive_forecast_was_better(weekly: IBForecaster) -> None:
    assert "100% repeats the medians of training over 168 steps, in week" in list(weekly.fitted.anchors())
    assert "week" not in {each.channel for each in weekly.fitted.summary.behind}
    assert (weekly.fitted.config.cycles, weekly.fitted.config.trained.cycles) == ((24, 168), (24,))
    table = make_weeks()
    ahead = week(np.arange(len(table), len(table) + HORIZON))
    assert weekly.predict(table)["week"].to_numpy() == pytest.approx(ahead, abs=1e-4)


def test_a_model_with_medians_of_training_keeps_every_promise(weekly: IBForecaster, tmp_path: Path) -> None:
    table = make_weeks()
    explained = weekly.explain(table)
    assert weekly.verify(explained, table)
    for step in ("mean", 1, HORIZON):
        assert all(explained.itemised(channel, step).adds_up for channel in explained.channels)
    assert "Anchor: 100% repeats the medians of training over 168 steps." in explained.in_words("week")
    assert weekly.verify(explained.to_json(), table, exact=True)
    weekly.save(tmp_path / "model")
    again = IBForecaster.load(tmp_path / "model")
    assert again.explain(table).to_json() == explained.to_json()
    weekly.to_onnx(tmp_path / "model.onnx")
    runner = OnnxForecaster(tmp_path / "model.onnx")
    values, times = table.drop(columns="when").to_numpy(), table["when"].to_numpy()
    assert runner.predict(values, times) == pytest.approx(explained.forecast, rel=1e-4, abs=1e-4)
    assert runner.verify(explained)


def test_what_is_repeated_from_training_is_the_whole_receipt_of_such_a_channel(weekly: IBForecaster) -> None:
    explained = weekly.explain(make_weeks())
    receipt = explained.itemised("week")
    assert receipt.calendar == receipt.forecast
    assert not any(receipt.read)


def test_the_same_settings_give_the_same_medians_of_training_again(weekly: IBForecaster) -> None:
    again = fit_with(make_weeks(), settings_of(weekly.fitted, "cpu"))
    assert again.weights == weekly.fitted.weights


def test_medians_of_training_leave_all_other_channels_as_they_were(
    weekly: IBForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibforecast.fitting.steadied", lambda network, *_: network)
    plain = fit_with(make_weeks(), settings_of(weekly.fitted, "cpu"))
    assert not plain.config.medians
    columns = [name for name, blended in zip(plain.channels, median_shares(weekly), strict=True) if not blended]
    forecast, other = (
        Desk(fitted, "cpu", "pandas").explain(Desk(fitted, "cpu", "pandas").open(make_weeks()), 0).forecast
        for fitted in (plain, weekly.fitted)
    )
    for name in columns:
        column = plain.channels.index(name)
        assert (forecast[:, column] == other[:, column]).all()
    assert columns


def median_shares(model: IBForecaster) -> np.ndarray:
    """Return the share of medians of training in each channel."""
    config = model.fitted.config
    return blend_of(model)[len(anchor_names(config.cycles, config.look_back)) :].sum(axis=0)


def untrained(rows: int, cycle: int, channels: int) -> tuple[IBForecast, Windows]:
    """Build a network and a series of noise for it, of which the last third is for validation."""
    network = network_of(ModelConfig(8, 2, channels, cycle, patch_len=2, budget=0.5))
    values = torch.randn(rows, channels, generator=torch.Generator().manual_seed(0))
    phase, starts = torch.arange(rows + 2), torch.arange(2 * rows // 3, rows - 10)
    return network, Windows(values, torch.ones_like(values, dtype=torch.bool), phase, starts, 8, 2)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(1, 60), st.integers(1, 9), st.floats(0, 1), st.integers(0, 99))
def test_medians_are_those_of_the_training_rows_at_the_same_phase(
    rows: int, cycle: int, missing: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    network, windows = untrained(90, cycle, 2)
    values, observed = random.normal(size=(90, 2)).astype(np.float32), random.random((90, 2)) >= missing
    windows = replace(windows, values=torch.from_numpy(values), observed=torch.from_numpy(observed))
    medians = training_medians(network, windows, rows, torch.tensor([False, True])).numpy()[:, 0]
    assert len(medians) == 1 + (cycle if cycle > 1 else 0)
    seen = observed[:rows, 1]
    overall = np.median(values[:rows, 1][seen]) if seen.any() else 0.0
    assert medians[0] == pytest.approx(overall, abs=1e-6)
    for phase, value in enumerate(medians[1:]):
        here = values[phase:rows:cycle, 1][observed[phase:rows:cycle, 1]]
        assert value == pytest.approx(np.median(here) if len(here) else overall, abs=1e-6)


def test_a_channel_that_is_nearly_always_the_same_stays_at_its_median() -> None:
    network, windows = untrained(90, 4, 2)
    windows.values[:, 1] = 0.5
    windows.values[::30, 1] = 9.0
    some = windows.at(range(62, 80))
    better = steadied(network, some, 60, torch.tensor([False, True]), (), 0.02)
    assert better.config.medians
    names = anchor_names((4,), 8, medians=True)
    blend, medians = better.decompose.anchor.blend, better.decompose.anchor.medians  # type: ignore[union-attr]
    assert blend[:, 1].tolist() == [float(name == MEDIAN) for name in names]
    assert not blend[:, 0].any()
    assert not medians[:, 0].any()
    assert (better(some.look_backs(some.starts)).values[..., 1] == 0.5).all()


def test_medians_of_training_that_are_not_better_leave_the_network_as_it_was() -> None:
    network, windows = untrained(90, 4, 2)
    every = torch.ones(2, dtype=torch.bool)
    assert steadied(network, windows, 60, every, (8,), 0.999) is network
    assert steadied(network, windows, 60, ~every, (8,), 0.0) is network
    assert steadied(network, windows.at(range(0)), 60, every, (8,), 0.0) is network


def test_effects_of_covariates_are_no_medians_of_training() -> None:
    _, windows = untrained(90, 4, 2)
    network = network_of(ModelConfig(8, 2, 2, 4, patch_len=2, budget=0.5, future=1))
    known, response = torch.randn(92, 1), torch.randn(4, 1, 2)
    network.decompose.response.data = response  # type: ignore[union-attr]
    values = 0.5 + effect(known, response, windows.phase).sum(-2)[:90]
    medians = training_medians(network, replace(windows, values=values, known=known), 60, torch.tensor([True, True]))
    assert torch.allclose(medians, torch.full_like(medians, 0.5), atol=1e-6)


def test_the_formulas_of_a_spreadsheet_have_medians_of_training(tmp_path: Path) -> None:
    model = anchored_desk(3, 12, medians=True)
    explanation = explained(model, departures(model, 5))
    program = Program(explanation.to_spreadsheet(tmp_path / "why.xlsx"))
    assert in_stds(by_formulas(program, explanation) - explanation.forecast, explanation) < CLOSE


def test_a_longer_cycle_changes_no_forecast_until_its_medians_of_training_have_a_share() -> None:
    for kind in KINDS:
        model = anchored_desk(3, 12, kind, medians=True)
        network = model.fitted.network
        values, phase = torch.randn(4, 12, 3), torch.arange(14).expand(4, -1) + 7
        window = Window(values, torch.ones_like(values, dtype=torch.bool), phase)
        with torch.no_grad():
            assert torch.allclose(grown(network, added_cycles=(10,))(window).values, network(window).values, atol=1e-6)


def test_a_model_without_medians_of_training_has_the_document_it_always_had() -> None:
    names = {"medians", "added_cycles"}
    assert not names & desk("sealed", [Units(3.0, 2.0)]).fitted.document()["config"].keys()
    assert anchored_desk(1, 12, medians=True).fitted.document()["config"].keys() & names == {"medians"}


def test_medians_of_training_are_refused_without_an_anchor() -> None:
    for wrong in ({"medians": True}, {"anchored": True, "added_cycles": (24,)}):
        with pytest.raises(UsageError, match="medians need an anchored model"):
            ModelConfig(8, 2, 1, 4, patch_len=2, budget=0.5, **wrong)
