"""What every token adds to the forecast: it adds up, closed tokens add nothing, and shap and captum can read it."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ibforecast.core.account import Account

from ibforecast import IBForecaster, UsageError, checks
from ibforecast.adapters.attributions import Contributions, contributions
from ibforecast.core.tokens import closed_to_zero

pd = pytest.importorskip("pandas")
DOCS = Path(__file__).parents[2] / "docs" / "interop.md"
HORIZON, PATCH = 4, 3


def table(rows: int = 160) -> Any:
    random = np.random.default_rng(3)
    values = np.cumsum(random.normal(size=(rows, 3)), axis=0) * (5.0, 0.1, 1.0) + (100.0, -3.0, 0.0)
    values[rows - 5, 2] = np.nan
    times = pd.date_range("2020-01-05", periods=rows, freq="D")
    return pd.DataFrame({"day": times, "load": values[:, 0], "heat": values[:, 1], "wind": values[:, 2]})


def fit(recipe: str = "exact", budget: float = 0.25) -> IBForecaster:
    model = IBForecaster(HORIZON, 12, budget, patch_len=PATCH, recipe=recipe, epochs=3, device="cpu")
    return model.fit(table())


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return fit()


@pytest.fixture(scope="module")
def told(model: IBForecaster) -> Account:
    return model.explain(table())


@pytest.fixture(scope="module")
def added(model: IBForecaster, told: Account) -> Contributions:
    return contributions(model, told)


def forecast_with(model: IBForecaster, told: Account, opened: Any) -> Any:
    held, mask = checks.explanation_of(told), torch.zeros(1, *told.mask.shape, dtype=torch.bool)
    for patch, column in opened:
        mask[0, patch, column] = True
    chosen = replace(held, mask=mask, evidence=closed_to_zero(mask, held.evidence))
    with torch.no_grad():
        return checks.in_units(model.fitted.network.replay(chosen), model.fitted.standardiser)


def test_base_and_values_add_up_to_the_forecast(added: Contributions, told: Account) -> None:
    assert len(added.places) == told.open_count >= 2
    np.testing.assert_allclose(added.base + added.values.sum(axis=0), told.forecast, rtol=1e-12)


def test_the_base_is_the_forecast_of_the_context_alone(
    model: IBForecaster, told: Account, added: Contributions
) -> None:
    np.testing.assert_array_equal(added.base, forecast_with(model, told, []))


def test_values_are_the_mean_move_over_all_orders(model: IBForecaster, told: Account) -> None:
    many = contributions(model, told, orders=40)
    orders = list(permutations(range(len(many.places))))
    exact = np.zeros_like(many.values)
    for order in orders:
        for place, number in enumerate(order):
            before, after = (forecast_with(model, told, many.places[list(order[:end])]) for end in (place, place + 1))
            exact[number] += (after - before) / len(orders)
    np.testing.assert_allclose(many.values, exact, atol=0.1 * np.abs(exact).max())


def test_where_the_readout_is_linear_a_value_is_what_closing_the_token_takes_away(tmp_path: Path) -> None:
    recipe = tmp_path / "linear.toml"
    recipe.write_text('[model]\nframe = "mean"\n[model.readout]\nkind = "linear"\n')
    model = fit(str(recipe))
    told = model.explain(table())
    one, many = contributions(model, told, orders=1), contributions(model, told, orders=5, seed=9)
    np.testing.assert_allclose(one.values, many.values, atol=1e-4)
    for number, place in enumerate(one.places):
        others = [other for other in one.places if not np.array_equal(other, place)]
        np.testing.assert_allclose(one.values[number], told.forecast - forecast_with(model, told, others), atol=1e-4)


def test_captums_form_is_the_window_and_adds_up_to_what_was_moved(added: Contributions, told: Account) -> None:
    attributed = added.to_captum(step=2, channel="heat")
    assert attributed.shape == (1, *told.history.shape)
    assert attributed.sum().item() == pytest.approx(told.forecast[2, 1] - added.base[2, 1])
    read = torch.from_numpy(told.mask).repeat_interleave(PATCH, dim=0)
    assert (attributed[0][~read] == 0).all()
    patches = attributed[0].reshape(-1, PATCH, 3)
    assert (patches == patches[:, :1]).all()


@pytest.fixture
def shap() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about matplotlib and numba
        yield pytest.importorskip("shap", reason="needs shap: pip install 'ibforecast[shap]'")


def test_shap_reads_steps_tokens_and_channels(added: Contributions, told: Account, shap: Any) -> None:
    explanation = added.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.shape == (HORIZON, told.mask.size, 3)
    np.testing.assert_allclose(explanation.base_values + explanation.values.sum(axis=1), told.forecast, rtol=1e-12)
    tokens = list(told.tokens())
    assert explanation.feature_names[5] == f"heat {tokens[5].start} to {tokens[5].end}"
    closed = [number for number, token in enumerate(tokens) if not token.open]
    assert (explanation.values[:, closed] == 0).all()
    patch, column = added.places[0]
    np.testing.assert_array_equal(explanation.values[:, column * len(told.mask) + patch], added.values[0])
    np.testing.assert_allclose(explanation.data[0, 0], told.history[:PATCH, 0].mean())
    assert np.isfinite(explanation.data).all()


def test_shaps_plots_draw_it(added: Contributions, shap: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    load = added.to_shap(["heat", "load"])[:, :, "load"]
    assert load.shape == (HORIZON, 12)
    for axes in (shap.plots.waterfall(load[0], show=False), shap.plots.bar(load, show=False)):
        assert axes.get_figure() is not None
    matplotlib.pyplot.close("all")


def test_what_cannot_be_is_refused(model: IBForecaster, told: Account, added: Contributions) -> None:
    with pytest.raises(UsageError, match=r"from the model at hand \(got weights 123, where this model has"):
        contributions(model, replace(told, weights_sha256="123"))
    with pytest.raises(UsageError, match=r"orders must be at least 1 \(got 0\)"):
        contributions(model, told, orders=0)
    with pytest.raises(UsageError, match=r"channel must be one of the forecast's \(got 'cold'\); try 'load'"):
        added.to_captum(0, "cold")
    with pytest.raises(UsageError, match=r"step must lie below 4 \(got 4\)"):
        added.to_captum(4, "load")


def test_nothing_read_means_nothing_added(model: IBForecaster, told: Account) -> None:
    closed = replace(told, mask=np.zeros_like(told.mask), evidence=np.zeros_like(told.evidence))
    assert contributions(model, closed).values.shape == (0, HORIZON, 3)


@pytest.mark.filterwarnings("ignore")  # shap's, about matplotlib and numba
def test_the_examples_in_the_docs_run(shap: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("utilsforecast")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf8"), flags=re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})
