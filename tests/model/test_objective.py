"""The terms of the objective beyond the paper's equation, and the weights each of them trains."""

from dataclasses import replace
from math import exp

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from ibforecast.core.contracts import Loss
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

CONFIG = ModelConfig(
    24,
    6,
    3,
    5,
    patch_len=6,
    budget=0.25,
    gate=GateConfig(kind="threshold", width=8, heads=2, dropout=0.0, noise_until=1.0),
    readout=ReadoutConfig(kind="linear"),
    objective=ObjectiveConfig(rate_weight=0.0, consistency_weight=0.0, departure_weight=0.0),
)


def network(config: ModelConfig) -> IBForecast:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        model = IBForecast(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def loss(config: ModelConfig, gaps: bool = False) -> Loss:
    random = torch.Generator().manual_seed(1)
    values = torch.randn(4, 24, 3, generator=random)
    observed = torch.rand(4, 24, 3, generator=random) > (0.1 if gaps else -1)
    window = Window(values, observed, torch.arange(30).expand(4, -1) % 5)
    target = Target(torch.randn(4, 6, 3, generator=random), torch.ones(4, 6, 3, dtype=torch.bool))
    return network(config).loss(window, target, torch.tensor(0.5), torch.Generator().manual_seed(2))


def knobs(**weights: float) -> ModelConfig:
    return replace(CONFIG, objective=replace(CONFIG.objective, **weights))


def test_a_weight_of_zero_leaves_the_term_out() -> None:
    assert loss(CONFIG).terms.keys() == {"fit"}


@pytest.mark.parametrize("name", ["rate", "budget", "contiguity", "consistency", "absence", "departure"])
def test_a_weight_multiplies_only_its_term(name: str) -> None:
    once, thrice = loss(knobs(**{f"{name}_weight": 1.0})), loss(knobs(**{f"{name}_weight": 3.0}))
    assert once.terms.keys() == {"fit", name}
    assert float(once.terms[name].detach()) > 0
    torch.testing.assert_close(thrice.terms[name], 3 * once.terms[name])
    assert torch.equal(thrice.terms["fit"], once.terms["fit"])


def test_the_budget_term_is_the_squared_distance_of_the_mean_probability_from_the_budget() -> None:
    config = knobs(budget_weight=1.0)
    model = network(config)
    random = torch.Generator().manual_seed(1)
    values = torch.randn(4, 24, 3, generator=random)
    window = Window(values, torch.ones(4, 24, 3, dtype=torch.bool), torch.arange(30).expand(4, -1) % 5)
    with torch.no_grad():
        logits = model.score(model.decompose(window)[1])
    mean = torch.sigmoid(logits).mean()
    torch.testing.assert_close(loss(config).terms["budget"].detach(), (mean - 0.25) ** 2)


def test_consistency_is_the_cross_entropy_of_the_mask_and_the_second_scores() -> None:
    margin, mask = torch.tensor([[[2.0, -1.0, 0.5]]]), torch.tensor([[[1.0, 0.0, 0.0]]])
    none = torch.zeros(1, 1, 3, dtype=torch.bool)
    p = torch.sigmoid(margin.double())
    expected = -(p[..., 0].log() + (1 - p[..., 1]).log() + (1 - p[..., 2]).log()).sum() / 3
    torch.testing.assert_close(objective.consistency(margin, mask, none).double(), expected)
    last = torch.tensor([[[False, False, True]]])
    without = -(p[..., 0].log() + (1 - p[..., 1]).log()).sum() / 2
    torch.testing.assert_close(objective.consistency(margin, mask, last).double(), without)


def test_consistency_ignores_missing_tokens_and_is_finite_for_certain_gates() -> None:
    margin = torch.tensor([[[1e30, -1e30, float("inf")]]])
    mask = torch.tensor([[[1.0, 1.0, 0.0]]])
    missing = torch.tensor([[[False, False, True]]])
    value = objective.consistency(margin, mask, missing)
    assert 10 < float(value) < 40


def test_consistency_trains_the_gate_network_and_not_the_readout() -> None:
    model = network(knobs(consistency_weight=1.0))
    random = torch.Generator().manual_seed(1)
    values = torch.randn(4, 24, 3, generator=random)
    window = Window(values, torch.ones(4, 24, 3, dtype=torch.bool), torch.arange(30).expand(4, -1) % 5)
    target = Target(torch.randn(4, 6, 3, generator=random), torch.ones(4, 6, 3, dtype=torch.bool))
    model.loss(window, target, torch.tensor(0.5), torch.Generator().manual_seed(2)).terms["consistency"].backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.score.head.parameters())
    assert all(p.grad is None for p in model.readout.parameters())
    assert model.decompose.profile.grad is None


@pytest.mark.parametrize("gaps", [False, True])
def test_the_open_rate_in_training_is_that_of_the_sampled_mask(gaps: bool) -> None:
    exact = replace(CONFIG, gate=replace(CONFIG.gate, kind="exact"))
    rate = loss(exact, gaps).open_rate
    assert not rate.requires_grad
    assert float(rate) == 3 / 12 or gaps
    assert 0 < float(rate) <= 3 / 12


def test_gates_and_context_learn_at_the_context_rate() -> None:
    groups = network(replace(CONFIG, context_rate=4.0)).parameter_groups()
    model = network(CONFIG)
    assert [group.rate for group in groups] == [1.0, 4.0]
    assert len(groups[0].parameters) == len(list(model.readout.parameters()))


def test_absence_is_the_mean_softplus_of_the_margins_of_closed_tokens() -> None:
    margin = torch.tensor([[[2.0], [-1.0], [5.0], [7.0]]])
    mask, missing = torch.tensor([[[0.0], [0.0], [1.0], [0.0]]]), torch.tensor([[[False], [False], [False], [True]]])
    expected = torch.nn.functional.softplus(torch.tensor([2.0, -1.0])).mean()
    torch.testing.assert_close(objective.absence(margin, mask, missing), expected)
    assert objective.absence(margin - 1, mask, missing) < expected


def test_absence_is_zero_if_every_token_is_open() -> None:
    nothing = torch.zeros(1, 2, 1, dtype=torch.bool)
    assert objective.absence(torch.ones(1, 2, 1), torch.ones(1, 2, 1), nothing) == 0


def test_absence_trains_only_the_gate_network() -> None:
    model = network(knobs(absence_weight=1.0))
    random = torch.Generator().manual_seed(1)
    values = torch.randn(4, 24, 3, generator=random)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(30).expand(4, -1))
    target = Target(torch.zeros(4, 6, 3), torch.ones(4, 6, 3, dtype=torch.bool))
    model.loss(window, target, torch.tensor(0.5), torch.Generator().manual_seed(2)).terms["absence"].backward()
    moved = {name.split(".")[0] for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert moved == {"score"}


def test_departure_is_the_mean_square_beyond_the_bias_without_missing_tokens() -> None:
    bias = torch.tensor([[2.0], [-1.0], [0.0]])
    logits, missing = torch.tensor([[[2.5], [-1.0], [9.0]]]), torch.tensor([[[False], [False], [True]]])
    torch.testing.assert_close(objective.departure(logits, bias, missing), torch.tensor(0.125))
    assert objective.departure(bias[None], bias, missing) == 0


def test_departure_trains_the_gate_network_but_not_the_bias() -> None:
    model = network(replace(knobs(departure_weight=1.0), gate=replace(CONFIG.gate, recent=1)))
    random = torch.Generator().manual_seed(1)
    values = torch.randn(4, 24, 3, generator=random)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(30).expand(4, -1))
    target = Target(torch.zeros(4, 6, 3), torch.ones(4, 6, 3, dtype=torch.bool))
    model.loss(window, target, torch.tensor(0.5), torch.Generator().manual_seed(2)).terms["departure"].backward()
    assert model.score.bias.grad is None or not model.score.bias.grad.any()
    assert model.score.head.weight.grad.any()


@given(some.lists(some.tuples(*[some.floats(0, 10)] * 2, *[some.floats(-5, 5)] * 2), min_size=1, max_size=6))
def test_the_exchange_term_is_a_mean_over_windows_of_the_relative_gain_times_the_odds(
    cases: list[tuple[float, float, float, float]],
) -> None:
    before, after, opened, closed = torch.tensor(cases, dtype=torch.float64).unbind(dim=1)
    mean, expected = max(sum(case[0] for case in cases) / len(cases), 1e-12), 0.0
    for with_own, with_other, of_opened, of_closed in cases:
        expected -= (with_own - with_other) / mean / (1 + exp(of_opened - of_closed)) / len(cases)
    assert float(objective.exchange(before, after, opened, closed)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_descending_the_exchange_term_opens_what_was_worth_reading_and_closes_the_rest() -> None:
    opened, closed = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    before, after = torch.tensor([2.0, 2.0], requires_grad=True), torch.tensor([1.0, 3.0], requires_grad=True)
    objective.exchange(before, after, opened, closed).backward()
    assert closed.grad is not None
    assert opened.grad is not None
    assert closed.grad[0] < 0 < closed.grad[1]
    assert opened.grad[0] > 0 > opened.grad[1]
    assert before.grad is after.grad is None  # the readout learns from the terms of the error


def test_the_error_of_a_window_counts_only_what_was_observed() -> None:
    random = torch.Generator().manual_seed(4)
    forecast, truth = torch.randn(5, 6, 3, generator=random), torch.randn(5, 6, 3, generator=random)
    observed = torch.rand(5, 6, 3, generator=random) > 0.4
    observed[2] = False
    for window, error in enumerate(objective.squared_by_window(forecast, Target(truth, observed)).tolist()):
        squares = [
            float(forecast[window, step, channel] - truth[window, step, channel]) ** 2
            for step in range(6)
            for channel in range(3)
            if observed[window, step, channel]
        ]
        assert error == pytest.approx(sum(squares) / max(1, len(squares)), rel=1e-5)
