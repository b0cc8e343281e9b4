"""Anchors: naive forecasts blended into those of a model, disclosed, checked, and part of every receipt."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.properties.test_receipts import Units, departures, desk, explained
from torch.utils._python_dispatch import TorchDispatchMode

from ibforecast import DataError, IBForecaster
from ibforecast.adapters.onnx import OnnxForecaster
from ibforecast.core.anchors import LINE, NEWEST, anchor_names
from ibforecast.data.windows import Windows
from ibforecast.engine import TorchEngine
from ibforecast.layers import naive
from ibforecast.model.config import ModelConfig
from ibforecast.model.reading import network_of
from ibforecast.receipts import weights
from ibforecast.use import Desk
from ibforecast.zoo.anchoring import SHARES, anchored

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


def fit(folder: Path, recipe: str, **settings: Any) -> IBForecaster:
    path = folder / f"tiny-{recipe}.toml"
    path.write_text(RECIPE.format(recipe))
    return IBForecaster(HORIZON, LOOK_BACK, recipe=str(path), device="cpu", **settings).fit(make_table())


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


def anchored_desk(channels: int, look_back: int) -> Desk:
    """Build an additive model with arbitrary weights and an arbitrary share of every naive forecast."""
    plain = desk("additive", [Units(3.0, 2.0)] * channels, look_back=look_back)
    network = network_of(replace(plain.fitted.config, anchored=True)).eval()
    random = torch.Generator().manual_seed(4)
    blend = torch.rand(len(anchor_names((5,), look_back)), channels, generator=random) / 4
    network.load_state_dict({**plain.fitted.network.state_dict(), "decompose.anchor.blend": blend})
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
