"""Cost in forward passes: passes are counted exactly, times are only positive."""

from collections.abc import Iterator
from math import isfinite

import pytest
import torch
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.contracts import Explainer, Importance, Predictor
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Window
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast_lab.measures.cost import Cost, cost, counting

BATCH, LOOK_BACK, HORIZON, CHANNELS = 6, 12, 4, 2


class Plain(Predictor):
    """A linear map without hard decisions, so that `relaxed` is `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(LOOK_BACK, HORIZON)

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        return Forecast(self.map(window.values.transpose(1, 2)).transpose(1, 2))

    def context(self, window: Window) -> Context:
        raise AssertionError("no explainer here needs it")


def gated() -> IBForecast:
    gate, readout = GateConfig(width=4, heads=2), ReadoutConfig(width=6)
    return IBForecast(
        ModelConfig(LOOK_BACK, HORIZON, CHANNELS, 4, patch_len=3, budget=0.5, gate=gate, readout=readout)
    ).eval()


@pytest.fixture(params=[Plain, gated])
def predictor(request: pytest.FixtureRequest) -> Iterator[Predictor]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield request.param()


def window(batch: int = BATCH) -> Window:
    values = torch.randn(batch, LOOK_BACK, CHANNELS, generator=torch.Generator().manual_seed(0))
    phase = torch.arange(LOOK_BACK + HORIZON).expand(batch, -1) % 4
    return Window(values, torch.ones_like(values, dtype=torch.bool), phase)


class Working(Explainer):
    """Makes given numbers of forecasts, of gradients of relaxed forecasts, and of forecasts of half the batch."""

    def __init__(self, forwards: int, gradients: int, halves: int = 0) -> None:
        self.forwards, self.gradients, self.halves = forwards, gradients, halves

    def explain(self, predictor: Predictor, window: Window, share: Tensor, generator: torch.Generator) -> Importance:
        with torch.no_grad():
            for _ in range(self.forwards):
                predictor(window)
            for _ in range(self.halves):
                half = len(window.values) // 2
                predictor(Window(window.values[:half], window.observed[:half], window.phase[:half]))
        for _ in range(self.gradients):
            values = window.values.clone().requires_grad_()
            energy = predictor.relaxed(Window(values, window.observed, window.phase)).square().sum()
            torch.autograd.grad(energy, values)
        total = self.forwards + self.gradients
        return Importance(torch.rand(window.values.shape, generator=generator), total, self.gradients)


def measured(predictor: Predictor, explainer: Explainer, repeats: int = 3) -> Cost:
    return cost(explainer, predictor, window(), torch.full((BATCH,), 0.2), torch.Generator().manual_seed(0), repeats)


@pytest.mark.parametrize(("forwards", "gradients", "halves"), [(1, 0, 0), (0, 1, 0), (5, 3, 0), (2, 0, 3), (0, 0, 0)])
def test_passes_over_the_whole_batch_are_counted_exactly(
    predictor: Predictor, forwards: int, gradients: int, halves: int
) -> None:
    spent = measured(predictor, Working(forwards, gradients, halves))
    assert spent.forwards == forwards + gradients + halves / 2
    assert spent.backwards == gradients


def test_the_passes_an_explainer_reports_equal_the_passes_counted(predictor: Predictor) -> None:
    explainer = Working(4, 2)
    with counting(predictor) as passes:
        reported = explainer.explain(predictor, window(), torch.ones(BATCH), torch.Generator())
    assert (passes.forward, passes.backward) == (reported.forwards * BATCH, reported.backwards * BATCH)


def test_a_relaxed_forecast_that_calls_forward_is_counted_once() -> None:
    predictor = Plain()
    with counting(predictor) as passes:
        predictor.relaxed(window())
    assert (passes.forward, passes.backward) == (BATCH, 0)


def test_a_gradient_taken_twice_is_counted_twice(predictor: Predictor) -> None:
    with counting(predictor) as passes:
        values = window().values.clone().requires_grad_()
        shown = Window(values, window().observed, window().phase)
        energy = predictor.relaxed(shown).square().sum()
        torch.autograd.grad(energy, values, retain_graph=True)
        torch.autograd.grad(energy, values)
    assert (passes.forward, passes.backward) == (BATCH, 2 * BATCH)


def test_counting_stops_even_if_explaining_fails(predictor: Predictor) -> None:
    class Failing(Working):
        def explain(
            self, predictor: Predictor, window: Window, share: Tensor, generator: torch.Generator
        ) -> Importance:
            super().explain(predictor, window, share, generator)
            raise KeyError

    before = set(vars(predictor))
    with pytest.raises(KeyError):
        measured(predictor, Failing(1, 1))
    with counting(predictor) as passes:
        predictor(window())
    predictor(window())
    predictor.relaxed(window())
    assert passes.forward == BATCH
    assert set(vars(predictor)) == before
    assert not predictor._forward_hooks


def test_every_run_is_timed_and_the_cost_is_a_ratio_of_medians(predictor: Predictor) -> None:
    spent = measured(predictor, Working(3, 1), repeats=4)
    assert len(spent.seconds) == len(spent.forward_seconds) == 4
    assert all(isfinite(seconds) and seconds > 0 for seconds in (*spent.seconds, *spent.forward_seconds))
    assert isfinite(spent.forward_equivalents)
    assert spent.forward_equivalents > 0
    assert Cost((6.0, 1e9, 4.0), (2.0, 1.0, 3.0), 0.0, 0.0).forward_equivalents == 3


def test_measuring_takes_no_gradient_and_needs_at_least_one_run() -> None:
    predictor = Plain()
    spent = measured(predictor, Working(1, 0), repeats=1)
    assert spent.backwards == 0
    assert all(parameter.grad is None for parameter in predictor.parameters())
    with pytest.raises(UsageError, match="repeats"):
        measured(predictor, Working(1, 0), repeats=0)
