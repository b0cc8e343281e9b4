"""Attributions per token: they add up to the forecast, closed tokens get zero, and shap and captum can use them."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ibforecast import ExplainedForecast, IBForecaster, UsageError
from ibforecast.adapters.attributions import Contributions, contributions
from ibforecast.engine import TorchEngine

pd = pytest.importorskip("pandas")
HORIZON, PATCH = 4, 3


def table(rows: int = 160) -> Any:
    random = np.random.default_rng(3)
    values = np.cumsum(random.normal(size=(rows, 3)), axis=0) * (5.0, 0.1, 1.0) + (100.0, -3.0, 0.0)
    values[rows - 5, 2] = np.nan
    times = pd.date_range("2020-01-05", periods=rows, freq="D")
    return pd.DataFrame({"day": times, "load": values[:, 0], "heat": values[:, 1], "wind": values[:, 2]})


def fit(recipe: str = "any-budget", budget: float = 0.25) -> IBForecaster:
    model = IBForecaster(HORIZON, 12, budget, patch_len=PATCH, recipe=recipe, epochs=3, device="cpu")
    return model.fit(table())


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return fit()


@pytest.fixture(scope="module")
def explained(model: IBForecaster) -> ExplainedForecast:
    return model.explain(table())


@pytest.fixture(scope="module")
def added(model: IBForecaster, explained: ExplainedForecast) -> Contributions:
    return contributions(model, explained)


def forecast_with(model: IBForecaster, explained: ExplainedForecast, opened: Any) -> Any:
    own = explained.explanation
    mask = np.zeros_like(own.mask)
    for patch, column in opened:
        mask[patch, column] = True
    evidence = np.where(mask.repeat(PATCH, axis=0), own.evidence, np.float32(0))
    return TorchEngine(model.fitted).replay(replace(own, mask=mask, evidence=evidence))


def test_base_and_values_add_up_to_the_forecast(added: Contributions, explained: ExplainedForecast) -> None:
    assert len(added.places) == explained.open_count >= 2
    np.testing.assert_allclose(added.base + added.values.sum(axis=0), explained.forecast, rtol=1e-12)


def test_the_base_is_the_forecast_from_the_context_only(
    model: IBForecaster, explained: ExplainedForecast, added: Contributions
) -> None:
    np.testing.assert_array_equal(added.base, forecast_with(model, explained, []))


def test_values_are_the_mean_change_over_all_orders(model: IBForecaster, explained: ExplainedForecast) -> None:
    many = contributions(model, explained, orders=40)
    orders = list(permutations(range(len(many.places))))
    exact = np.zeros_like(many.values)
    for order in orders:
        for place, number in enumerate(order):
            before, after = (
                forecast_with(model, explained, many.places[list(order[:end])]) for end in (place, place + 1)
            )
            exact[number] += (after - before) / len(orders)
    np.testing.assert_allclose(many.values, exact, atol=0.1 * np.abs(exact).max())


def test_with_a_linear_readout_a_value_is_the_change_from_closing_the_token(tmp_path: Path) -> None:
    recipe = tmp_path / "linear.toml"
    recipe.write_text('[model]\nsealed = false\nframe = "mean"\n[model.readout]\nkind = "linear"\n')
    model = fit(str(recipe))
    explained = model.explain(table())
    one, many = contributions(model, explained, orders=1), contributions(model, explained, orders=5, seed=9)
    np.testing.assert_allclose(one.values, many.values, atol=1e-4)
    for number, place in enumerate(one.places):
        others = [other for other in one.places if not np.array_equal(other, place)]
        np.testing.assert_allclose(
            one.values[number], explained.forecast - forecast_with(model, explained, others), atol=1e-4
        )


def test_captum_attributions_have_the_windows_shape_and_add_up_to_the_change(
    added: Contributions, explained: ExplainedForecast
) -> None:
    attributed = added.to_captum(step=2, channel="heat")
    assert attributed.shape == (1, *explained.history.shape)
    assert attributed.sum().item() == pytest.approx(explained.forecast[2, 1] - added.base[2, 1])
    read = torch.tensor(explained.mask).repeat_interleave(PATCH, dim=0)
    assert (attributed[0][~read] == 0).all()
    patches = attributed[0].reshape(-1, PATCH, 3)
    assert (patches == patches[:, :1]).all()


@pytest.fixture
def shap() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap's own warnings, about matplotlib and numba
        yield pytest.importorskip("shap", reason="needs shap: pip install 'ibforecast[shap]'")


def test_shap_explanations_cover_steps_tokens_and_channels(
    added: Contributions, explained: ExplainedForecast, shap: Any
) -> None:
    explanation = added.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.shape == (HORIZON, explained.mask.size, 3)
    np.testing.assert_allclose(explanation.base_values + explanation.values.sum(axis=1), explained.forecast, rtol=1e-12)
    tokens = list(explained.tokens())
    assert explanation.feature_names[5] == f"heat {tokens[5].start} to {tokens[5].end}"
    closed = [number for number, token in enumerate(tokens) if not token.open]
    assert (explanation.values[:, closed] == 0).all()
    patch, column = added.places[0]
    np.testing.assert_array_equal(explanation.values[:, column * len(explained.mask) + patch], added.values[0])
    np.testing.assert_allclose(explanation.data[0, 0], explained.history[:PATCH, 0].mean())
    assert np.isfinite(explanation.data).all()


def test_shap_can_plot_the_attributions(added: Contributions, shap: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    load = added.to_shap(["heat", "load"])[:, :, "load"]
    assert load.shape == (HORIZON, 12)
    for axes in (shap.plots.waterfall(load[0], show=False), shap.plots.bar(load, show=False)):
        assert axes.get_figure() is not None
    matplotlib.pyplot.close("all")


def test_invalid_arguments_are_refused(model: IBForecaster, explained: ExplainedForecast, added: Contributions) -> None:
    with pytest.raises(UsageError, match=r"come from this model \(got weights 000000000000, where this model has"):
        contributions(model, replace(explained, weights_sha256="0" * 64))
    with pytest.raises(UsageError, match=r"orders must be at least 1 \(got 0\)"):
        contributions(model, explained, orders=0)
    with pytest.raises(UsageError, match=r"channel must be one of the forecast's \(got 'cold'\); try 'load'"):
        added.to_captum(0, "cold")
    with pytest.raises(UsageError, match=r"step must lie below 4 \(got 4\)"):
        added.to_captum(4, "load")


def test_if_no_token_is_open_every_value_is_zero(model: IBForecaster, explained: ExplainedForecast) -> None:
    own = explained.explanation
    closed = replace(own, mask=np.zeros_like(own.mask), evidence=np.zeros_like(own.evidence))
    assert contributions(model, replace(explained, explanation=closed)).values.shape == (0, HORIZON, 3)


def test_attributions_of_a_sealed_model_do_not_depend_on_unread_values() -> None:
    model = fit("sealed", budget=0.5)
    explained = model.explain(table())
    assert explained.sealed
    assert explained.open_count >= 4
    other = table()
    unread = ~explained.mask.repeat(PATCH, axis=0) & ~np.isnan(explained.history)
    rows, columns = np.nonzero(unread)
    for row, column in zip(rows, columns, strict=True):
        other.iloc[len(other) - len(unread) + row, 1 + column] = 1e6
    one, two = (contributions(model, model.explain(data), orders=2) for data in (table(), other))
    assert one.base.tobytes() == two.base.tobytes()
    assert one.values.tobytes() == two.values.tobytes()
    np.testing.assert_allclose(one.base + one.values.sum(axis=0), explained.forecast, rtol=1e-12)
    assert (one.to_captum(1, "load")[0].numpy()[unread] == 0).all()
