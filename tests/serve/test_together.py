"""Windows computed together: each to the bit as if alone, and together only where that was seen to hold."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from ibforecast import IBForecaster
from ibforecast.core.errors import DataError
from ibforecast.core.explanation import Forecast
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Window
from ibforecast.model.network import IBForecast
from ibforecast.serve.together import SIZES, TRIALS, Task, Together, _apart, _joined, _same_bits
from ibforecast.zoo.recipes import resolve


def network_of(sizes: Sizes, recipe: str = "exact") -> IBForecast:
    network = resolve(recipe, sizes).build(0).eval()
    assert isinstance(network, IBForecast)
    return network


def windows_of(count: int, sizes: Sizes) -> list[Window]:
    random = torch.Generator().manual_seed(count)
    shape = (count, sizes.look_back, sizes.channels)
    observed = torch.rand(shape, generator=random) > 0.01
    phase = torch.arange(sizes.look_back + sizes.horizon).expand(count, -1) % sizes.cycle
    return _apart(Window(torch.randn(shape, generator=random) * observed, observed, phase), count)


def alone(network: IBForecast, windows: list[Window]) -> list[Forecast]:
    with torch.no_grad():
        return [network(window) for window in windows]


@pytest.fixture
def sizes() -> Sizes:
    return Sizes(look_back=96, horizon=24, channels=7, cycle=24)


@pytest.mark.parametrize("recipe", ["exact", "paper"])
@pytest.mark.parametrize(("look_back", "channels"), [(96, 7), (48, 3)])
def test_however_many_come_together_each_is_forecast_as_if_alone(recipe: str, look_back: int, channels: int) -> None:
    sizes = Sizes(look_back, 24, channels, 24)
    network = network_of(sizes, recipe)
    together = Together(network)
    for count in (3, 13, 16) * (TRIALS + 1):
        windows = windows_of(count, sizes)
        pairs = zip(together.forecast(windows), alone(network, windows), strict=True)
        assert all(_same_bits(found, expected) for found, expected in pairs)


class Pretended:
    """In place of a network for batches: the windows one by one, counted; the last bit of one of them may be wrong."""

    def __init__(self, network: IBForecast, wrong: bool = False) -> None:
        self.network, self.wrong, self.batches = network, wrong, 0

    def __call__(self, window: Window) -> Forecast:
        self.batches += 1
        forecasts = alone(self.network, _apart(window, len(window.values)))
        values = torch.cat([forecast.values for forecast in forecasts])
        if self.wrong:
            values[-1, -1, -1] = values[-1, -1, -1].nextafter(torch.tensor(torch.inf))
        explanations = [forecast.explanation for forecast in forecasts]
        told = {
            name: torch.cat([getattr(one, name) for one in explanations])
            for name in ("mask", "evidence", "probability", "missing")
        }
        contexts = [one.context for one in explanations if one is not None]
        context = {name: torch.cat([getattr(one, name) for one in contexts]) for name in ("level", "scale", "phase")}
        return Forecast(values, replace(explanations[0], context=replace(contexts[0], **context), **told))


def test_a_size_whose_bits_differ_once_is_told_as_alone_and_never_used_again(sizes: Sizes) -> None:
    network = network_of(sizes)
    together = Together(network)
    together._joint = joint = Pretended(network, wrong=True)  # type: ignore[assignment]
    windows = windows_of(4, sizes)
    for batches in (1, 2, 2):  # one of four differs, one of two differs, and there are no more
        found = together.forecast(windows)
        assert all(map(_same_bits, found, alone(network, windows)))
        assert joint.batches == batches
    assert together.sizes == tuple(size for size in SIZES if size > 4)


def test_a_size_that_agreed_often_enough_is_no_longer_computed_twice(
    sizes: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = network_of(sizes)
    together = Together(network)
    together._joint = joint = Pretended(network)  # type: ignore[assignment]
    windows = windows_of(8, sizes)
    for _ in range(TRIALS):
        together.forecast(windows)
    expected = alone(network, windows)
    monkeypatch.setattr(together, "_network", None)
    assert all(map(_same_bits, together.forecast(windows), expected))
    assert joint.batches == TRIALS + 1


def test_a_wide_model_is_computed_window_by_window() -> None:
    sizes = Sizes(look_back=96, horizon=2, channels=700, cycle=24)
    assert Together(network_of(sizes)).sizes == ()
    assert Together(network_of(replace(sizes, channels=300))).sizes == (2,)


def test_taking_a_batch_apart_is_the_inverse_of_joining_it(sizes: Sizes) -> None:
    windows = windows_of(5, sizes)
    batch = _joined(windows)
    assert batch.values.shape == (5, 96, 7)
    assert all(map(_same_bits, _apart(batch, 5), windows))
    forecast = network_of(sizes)(batch)
    parts = _apart(forecast, 5)
    assert [part.explanation.context.level.shape for part in parts] == [(1, 7)] * 5
    assert parts[3].explanation.context.profile is forecast.explanation.context.profile
    assert torch.equal(parts[3].explanation.mask[0], forecast.explanation.mask[3])


def test_what_is_wrong_with_one_window_is_its_own_matter(desk: Any) -> None:
    model: IBForecaster = desk.model()
    source = model.open(desk.table)
    moments = ["2023-01-10 05:00", "2023-01-01 05:00", "2023-01-11 05:00"]
    tasks = [Task(model, source, at, None, lambda explained: explained.to_json()) for at in moments]
    Together(model.fitted.network).prepare(tasks)
    assert [one.forecast is None for one in tasks] == [False, True, False]
    for number in (0, 2):
        assert tasks[number]() == model.explain(source, moments[number]).to_json()
    with pytest.raises(DataError, match="look_back = 48 rows before it"):
        tasks[1]()


def test_a_window_of_its_own_or_under_another_budget_is_left_alone(desk: Any) -> None:
    model = IBForecaster.load(desk.dial, device="cpu")
    source = model.open(desk.table)
    together = Together(model.fitted.network)
    tasks = [Task(model, source, None, budget, lambda explained: explained) for budget in (0.1, None)]
    together.prepare([*tasks, lambda: None])
    assert [one.forecast for one in tasks] == [None, None]
    assert [one().budget for one in tasks] == [0.1, 0.25]
