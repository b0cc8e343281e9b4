"""Receipts for captum and shap: they are the receipt's amounts, add up to the forecast, and can be drawn."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from ibforecast import ExplainedForecast, IBForecaster, UsageError
from ibforecast.adapters.attributions import to_captum, to_shap
from ibforecast.core.receipt import UNREAD

pd = pytest.importorskip("pandas")
HORIZON, PATCH = 4, 3


def table(rows: int = 160) -> Any:
    random = np.random.default_rng(3)
    values = np.cumsum(random.normal(size=(rows, 3)), axis=0) * (5.0, 0.1, 1.0) + (100.0, -3.0, 0.0)
    values[rows - 5, 2] = np.nan
    times = pd.date_range("2020-01-05", periods=rows, freq="D")
    known = pd.DataFrame({"day": pd.date_range("2020-01-05", periods=rows + HORIZON, freq="D")})
    known["price"] = random.normal(size=rows + HORIZON)
    return known.merge(
        pd.DataFrame({"day": times, "load": values[:, 0], "heat": values[:, 1], "wind": values[:, 2]}), how="left"
    )


@pytest.fixture(scope="module", params=["any-budget", "sealed", "additive"])
def explained(request: pytest.FixtureRequest) -> ExplainedForecast:
    settings: dict[str, Any] = {"patch_len": PATCH, "future": ["price"], "past": ["wind"], "epochs": 2}
    model = IBForecaster(HORIZON, 12, 0.5, recipe=request.param, device="cpu", **settings).fit(table())
    return model.explain(table())


def test_captum_attributions_are_the_amounts_of_the_receipt(explained: ExplainedForecast) -> None:
    attributed = to_captum(explained, "heat", 3)
    assert attributed.shape == (1, *explained.history.shape)
    read = torch.tensor(explained.mask).repeat_interleave(PATCH, dim=0)
    assert (attributed[0][~read] == 0).all()
    patches = attributed[0].reshape(-1, PATCH, 3)
    assert (patches == patches[:, :1]).all()
    receipt = explained.itemised("heat", 3)
    np.testing.assert_allclose(patches.sum(dim=1)[torch.tensor(explained.mask)], receipt.read, atol=1e-4)
    rest = receipt.calendar + sum(receipt.known) + (receipt.unread or 0.0)
    assert attributed.sum().item() == pytest.approx(receipt.forecast - rest, abs=1e-3)


def test_captum_attributions_are_of_the_mean_by_default(explained: ExplainedForecast) -> None:
    steps = [to_captum(explained, "load", step) for step in range(1, HORIZON + 1)]
    torch.testing.assert_close(to_captum(explained, "load"), torch.stack(steps).mean(dim=0))


@pytest.fixture
def shap() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap's own warnings, about matplotlib and numba
        yield pytest.importorskip("shap", reason="needs shap: pip install 'ibforecast[shap]'")


def test_the_calendar_and_all_values_add_up_to_the_forecast(explained: ExplainedForecast, shap: Any) -> None:
    explanation = to_shap(explained)
    assert isinstance(explanation, shap.Explanation)
    assert explanation.output_names == ["load", "heat"]
    total = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(total, explained.forecast[:, :2], rtol=1e-12)
    calendar = np.stack([explained.amounts(name).calendar for name in ("load", "heat")], axis=1)
    np.testing.assert_allclose(explanation.base_values, calendar, atol=1e-3)


def test_shap_features_are_tokens_covariates_and_unread_values(explained: ExplainedForecast, shap: Any) -> None:
    explanation, tokens = to_shap(explained, ["heat", "load"]), list(explained.tokens())
    others = ["price", *([] if explained.sealed else [UNREAD])]
    assert explanation.shape == (HORIZON, len(tokens) + len(others), 2)
    assert explanation.feature_names[len(tokens) :] == others
    assert explanation.feature_names[5] == f"heat {tokens[5].start} to {tokens[5].end}"
    closed = [number for number, token in enumerate(tokens) if not token.open]
    assert (explanation.values[:, closed] == 0).all()
    heat, (patch, column) = explained.amounts("heat"), np.argwhere(explained.mask)[0]
    np.testing.assert_array_equal(explanation.values[:, column * len(explained.mask) + patch, 0], heat.read[0])
    np.testing.assert_array_equal(explanation.values[:, len(tokens), 0], heat.known[0])
    if heat.unread is not None:
        np.testing.assert_array_equal(explanation.values[:, -1, 0], heat.unread)
    np.testing.assert_allclose(explanation.data[0, 0], explained.history[:PATCH, 0].mean())
    assert explained.known is not None
    np.testing.assert_array_equal(explanation.data[:, len(tokens)], explained.known[explained.look_back :, 0])


def test_shap_can_plot_the_values(explained: ExplainedForecast, shap: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    load = to_shap(explained, ["heat", "load"])[:, :, "load"]
    for axes in (shap.plots.waterfall(load[0], show=False), shap.plots.bar(load, show=False)):
        assert axes.get_figure() is not None
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("channel", ["cold", "wind", "price"])
def test_a_channel_that_is_not_forecast_is_refused(explained: ExplainedForecast, channel: str, shap: Any) -> None:
    for attribute in (lambda: to_captum(explained, channel), lambda: to_shap(explained, [channel])):
        with pytest.raises(UsageError, match=rf"must be one that is forecast \(got '{channel}'\); try 'load'"):
            attribute()


@pytest.mark.parametrize("step", [0, 5])
def test_a_step_after_the_horizon_is_refused(explained: ExplainedForecast, step: int) -> None:
    with pytest.raises(UsageError, match=rf"steps ahead from 1 to 4 \(got {step}\)"):
        to_captum(explained, "load", step)


def test_an_explanation_without_its_model_is_refused(explained: ExplainedForecast) -> None:
    read = ExplainedForecast.from_json(explained.to_json())
    with pytest.raises(UsageError, match="needs the model that gave the explanation"):
        to_captum(read, "load")
