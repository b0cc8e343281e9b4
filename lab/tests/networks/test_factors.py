"""The factor decomposition: it is accountable, a state depends only on its own map, and drivers are recovered."""

import tomllib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor

from ibforecast.core.contracts import Loss
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation
from ibforecast.core.tokens import spread
from ibforecast.core.window import Target, Window
from ibforecast.evaluate.verification import broken
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import GATES, IBForecast
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import train
from ibforecast.zoo.configs import build
from ibforecast_lab.data.drivers import DriverConstants, DriverWindows, generate
from ibforecast_lab.data.framed import FramedConstants
from ibforecast_lab.data.resident import resident
from ibforecast_lab.measures import drivers
from ibforecast_lab.networks.factors import FactorConfig, FactorForecast, diversity

BATCH, LOOK_BACK, HORIZON, CHANNELS, PATCH_LEN, FACTORS = 4, 24, 6, 3, 6, 2
PATCHES = LOOK_BACK // PATCH_LEN
CONFIG = FactorConfig(
    LOOK_BACK,
    HORIZON,
    CHANNELS,
    5,
    patch_len=PATCH_LEN,
    budget=0.5,
    gate=GateConfig(width=8, heads=2, recent=0),
    readout=ReadoutConfig(kind="linear"),
    factors=FACTORS,
)
RULE_VALUE_REMEDY = r"^.+ must .+ \(got .+\); .+"


@pytest.fixture(autouse=True)
def _fixed_seed() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def without_factors(made: FactorForecast) -> FactorForecast:
    """Return a copy of the network with loadings of zero, so that the factors add nothing."""
    bare = deepcopy(made)
    torch.nn.init.zeros_(bare.readout.loading)
    return bare


def network(config: FactorConfig = CONFIG, moved: float = 0.3) -> FactorForecast:
    """Return a network with perturbed weights, because some start at zero and would have no effect."""
    made = FactorForecast(config)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(moved * torch.randn_like(parameter))
    return made.eval()


def window(gaps: bool = False) -> Window:
    values = 1 + 2 * torch.randn(BATCH, LOOK_BACK, CHANNELS)
    observed = torch.rand(values.shape) > (0.02 if gaps else -1)
    return Window(values, observed, (torch.randint(0, 5, (BATCH, 1)) + torch.arange(LOOK_BACK + HORIZON)) % 5)


def target() -> Target:
    return Target(torch.randn(BATCH, HORIZON, CHANNELS), torch.rand(BATCH, HORIZON, CHANNELS) > 0.1)


def loss_of(made: FactorForecast, seed: int = 3) -> Loss:
    with torch.random.fork_rng([]):
        torch.manual_seed(1)
        batch, follows = window(), target()
    return made.loss(batch, follows, torch.tensor(0.3), torch.Generator().manual_seed(seed))


@torch.no_grad()
def explained(made: FactorForecast, batch: Window) -> tuple[Tensor, Explanation]:
    forecast = made(batch)
    assert forecast.explanation is not None
    return forecast.values, forecast.explanation


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("kind", GATES)
def test_a_forecast_is_replayed_from_its_explanation_bit_for_bit_and_within_the_budget(kind: str, gaps: bool) -> None:
    gate = replace(CONFIG.gate, kind=kind)  # type: ignore[arg-type]
    made = network(replace(CONFIG, gate=gate, budget=1.0 if kind == "open" else 0.5))
    batch = window(gaps)
    with torch.no_grad():
        forecast = made(batch)
    assert not broken(made, batch, forecast, torch.Generator().manual_seed(0)).any()
    assert int(forecast.explanation.open_count.max()) <= made.config.allowance


def test_a_factor_reads_only_tokens_that_are_open_in_the_mask() -> None:
    made = network()
    _, explanation = explained(made, window(gaps=True))
    factors = made.factors(explanation)
    assert factors.maps.any()
    assert not (factors.maps & ~explanation.mask[:, None]).any()
    assert torch.equal(factors.maps, factors.probability > 0.5)
    assert (factors.probability[~explanation.mask[:, None].expand_as(factors.maps)] == 0).all()


@torch.no_grad()
def test_the_forecast_equals_base_readout_plus_loadings_times_states_written_with_loops() -> None:
    made = network()
    values, explanation = explained(made, window())
    factors, evidence, context = made.factors(explanation), explanation.evidence, explanation.context
    base = made.readout.readout(evidence, explanation.mask.float(), context)
    struct = torch.zeros(BATCH, HORIZON, CHANNELS, dtype=torch.float64)
    for b in range(BATCH):
        for k in range(FACTORS):
            state = torch.zeros((), dtype=torch.float64)
            for p in range(PATCHES):
                for c in range(CHANNELS):
                    token = evidence[b, p * PATCH_LEN : (p + 1) * PATCH_LEN, c]
                    state += factors.maps[b, k, p, c] * (made.readout.weight[k].double() @ token.double())
            torch.testing.assert_close(factors.state[b, k].double(), state, rtol=1e-4, atol=1e-5)
            for h in range(HORIZON):
                for c in range(CHANNELS):
                    struct[b, h, c] += made.readout.loading[h, k, c] * state
    torch.testing.assert_close(values, context.restore(base + struct.float()), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(factors.contribution.sum(dim=1).double(), struct, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_tokens_of_its_map_give_a_factors_state_bit_for_bit() -> None:
    made = network()
    _, explanation = explained(made, window(gaps=True))
    factors = made.factors(explanation)
    for factor in range(FACTORS):
        part = made.part(explanation, factor)
        assert torch.equal(part.mask, factors.maps[:, factor])
        assert not part.evidence[~spread(part.mask, PATCH_LEN)].any()
        alone = made.factors(part)
        assert torch.equal(alone.state[:, factor], factors.state[:, factor])
        assert torch.equal(alone.contribution[:, factor], factors.contribution[:, factor])


@torch.no_grad()
def test_the_score_of_a_token_depends_on_no_other_token() -> None:
    maps, deviation = network().readout.maps, torch.randn(BATCH, LOOK_BACK, CHANNELS)
    changed = deviation.clone()
    changed[:, PATCH_LEN : 2 * PATCH_LEN, 1] += 1
    same = maps(changed) == maps(deviation)
    assert not same[:, :, 1, 1].any()
    same[:, :, 1, 1] = True
    assert same.all()


@torch.no_grad()
def test_the_score_of_a_token_depends_on_its_patch_and_channel() -> None:
    logits = network().readout.maps(torch.ones(1, LOOK_BACK, CHANNELS))
    assert len(logits[0, 0].unique()) == PATCHES * CHANNELS


@pytest.mark.parametrize("kind", ["exact", "threshold", "capped"])
@torch.no_grad()
def test_tokens_selected_by_factors_are_opened_before_all_others(kind: str) -> None:
    gate = replace(CONFIG.gate, kind=kind)  # type: ignore[arg-type]
    made, batch = network(replace(CONFIG, gate=gate, budget=0.6)), window()
    made.score.score.head.bias.fill_(100.0)
    few = many = 0
    for bias in (-3.0, -1.5, 0.0):
        made.readout.maps.leave.bias.fill_(bias)
        selected = (made.readout.maps(made.decompose(batch)[1]) > 0).any(dim=1)
        _, explanation = explained(made, batch)
        for row in range(BATCH):
            fits = int(selected[row].sum()) <= made.config.allowance
            few, many = few + fits, many + (not fits)
            inside, outside = (selected[row], explanation.mask[row])[:: 1 if fits else -1]
            assert not (inside & ~outside).any()
    assert few
    assert many


def test_no_gradient_reaches_the_maps_through_the_gate() -> None:
    made = network()
    deviation = torch.randn(BATCH, LOOK_BACK, CHANNELS)
    made.score(deviation).sum().backward()
    assert all(parameter.grad is None for parameter in made.readout.parameters())
    assert made.score.score.head.weight.grad is not None
    made.score.relaxed(deviation).sum().backward()
    assert all(parameter.grad is not None for parameter in made.readout.maps.parameters())
    assert torch.equal(made.score(deviation), made.score.relaxed(deviation))


def test_untrained_factors_add_nothing_but_their_loadings_have_gradients() -> None:
    made, batch = FactorForecast(CONFIG).eval(), window()
    values, explanation = explained(made, batch)
    assert not made.factors(explanation).contribution.any()
    assert torch.equal(values, explained(without_factors(made), batch)[0])
    loss_of(made).total.backward()
    assert made.readout.loading.grad is not None
    assert made.readout.loading.grad.abs().max() > 0


def test_with_zero_loadings_the_mask_stays_and_only_the_base_readout_forecasts() -> None:
    made, batch = network(), window()
    bare = without_factors(made)
    values, explanation = explained(made, batch)
    without, same = explained(bare, batch)
    assert torch.equal(same.mask, explanation.mask)
    with torch.no_grad():
        base = made.readout.readout(explanation.evidence, explanation.mask.float(), explanation.context)
    assert torch.equal(without, explanation.context.restore(base))
    assert not torch.equal(without, values)
    assert torch.equal(explained(made, batch)[0], values)
    assert bare.score.shared[0] is bare.readout.maps


def test_with_closed_maps_the_network_equals_the_base_network() -> None:
    made, batch = network(), window()
    with torch.no_grad():
        made.readout.maps.leave.bias.fill_(-100.0)
    base = IBForecast(ModelConfig(**{name: getattr(CONFIG, name) for name in ModelConfig.__dataclass_fields__})).eval()
    weights = made.state_dict()
    base.load_state_dict(
        {
            name: weights[name.replace("score.", "score.score.").replace("readout.", "readout.readout.")]
            for name in base.state_dict()
        }
    )
    with torch.no_grad():
        assert torch.equal(made(batch).values, base(batch).values)


def test_maps_have_noise_from_the_given_generator_in_the_loss_and_none_in_use() -> None:
    made = network(replace(CONFIG, gate=replace(CONFIG.gate, noise=0.0)))
    before = torch.get_rng_state()
    first, again, other = (loss_of(made, seed).terms["fit"] for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    batch = window()
    assert torch.equal(explained(made, batch)[0], explained(made, batch)[0])


def test_noise_ends_even_when_scoring_fails() -> None:
    made = network()
    with pytest.raises(ZeroDivisionError), made.readout.sampled(torch.Generator()):
        raise ZeroDivisionError
    assert torch.equal(explained(made, batch := window())[0], explained(made, batch)[0])
    deepcopy(made)


def test_the_relaxed_forecast_has_gradients_that_agree_with_its_differences() -> None:
    made, batch = network().double(), window()
    values = batch.values.double()
    held = made.context(replace(batch, values=values))
    direction = torch.randn_like(values)

    def energy(moved: Tensor) -> Tensor:
        return made.relaxed(replace(batch, values=moved), held).square().sum()

    point = values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(energy(point), point)
    with torch.no_grad():
        ahead, behind = (energy(values + step * direction) for step in (1e-6, -1e-6))
    assert torch.allclose((gradient * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-3)


def test_diversity_is_one_for_parallel_maps_zero_for_disjoint_ones_and_a_mean_over_pairs() -> None:
    one, other = torch.zeros(2, 1, 2, 2), torch.zeros(2, 1, 2, 2)
    one[..., 0], other[..., 1] = 0.7, 0.2
    assert float(diversity(torch.cat([one, 3 * one], dim=1))) == pytest.approx(1)
    assert float(diversity(torch.cat([one, other], dim=1))) == 0
    assert float(diversity(torch.cat([one, one, other], dim=1))) == pytest.approx(1 / 3)
    assert float(diversity(one)) == 0
    half = torch.cat([one, one + 3.5 * other], dim=1)
    assert float(diversity(half)) == pytest.approx(0.5)


def test_diversity_of_a_window_without_a_token_to_read_is_zero_with_finite_gradients() -> None:
    nothing = torch.zeros(1, 3, 2, 2, requires_grad=True)
    diversity(nothing).backward()
    assert nothing.grad is not None
    assert nothing.grad.isfinite().all()


def test_a_weight_of_zero_leaves_a_term_out_and_other_weights_multiply_it() -> None:
    def terms(weight: float, rate: float) -> Loss:
        config = replace(CONFIG, diversity_weight=weight, objective=ObjectiveConfig(rate_weight=rate))
        torch.manual_seed(2)
        return loss_of(network(config))

    assert not {"diversity", "map_rate"} & terms(0.0, 0.0).terms.keys()
    once, thrice = terms(1.0, 1.0), terms(3.0, 3.0)
    for name in ("diversity", "map_rate"):
        assert float(once.terms[name].detach()) > 0
        torch.testing.assert_close(thrice.terms[name], 3 * once.terms[name])
    assert torch.equal(thrice.terms["fit"], once.terms["fit"])


def test_the_loss_reaches_every_parameter_with_a_finite_gradient() -> None:
    objective = ObjectiveConfig(rate_weight=0.1, budget_weight=1.0)
    made = network(replace(CONFIG, gate=replace(CONFIG.gate, recent=1), objective=objective)).train()
    loss_of(made).total.backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_every_parameter_is_in_one_group_and_factors_have_their_own() -> None:
    made = network(replace(CONFIG, gate=replace(CONFIG.gate, recent=1), context_rate=2.0))
    groups = {group.rate: {id(p) for p in group.parameters} for group in made.parameter_groups()}
    base = {id(p) for p in made.readout.readout.parameters()}
    factors = {id(p) for p in made.readout.parameters()} - base
    assert groups == {1.0: base, 10.0: factors, 2.0: {id(p) for p in made.parameters()} - base - factors}


def test_weights_are_listed_once_and_load_into_another_network() -> None:
    made, other, batch = network(), network(), window()
    weights = made.state_dict()
    assert len({tensor.data_ptr() for tensor in weights.values()}) == len(weights)
    assert not torch.equal(explained(made, batch)[0], explained(other, batch)[0])
    other.load_state_dict(load(save(weights)))
    assert torch.equal(explained(made, batch)[0], explained(other, batch)[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"factors": 0},
        {"diversity_weight": float("nan")},
    ],
)
def test_a_setting_that_breaks_a_rule_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=RULE_VALUE_REMEDY):
        replace(CONFIG, **wrong)


def test_the_recipe_builds_a_configuration_and_a_schedule() -> None:
    text = resources.files("ibforecast_lab.recipes").joinpath("factors.toml").read_text("utf8")
    recipe = tomllib.loads(text)
    sizes = {"look_back": 96, "horizon": 24, "channels": 4, "cycle": 24}
    config = build(FactorConfig, {**sizes, **recipe["model"]}, "factors")
    assert recipe["forecaster"] == "ibforecast-factors"
    assert config.factors == DriverConstants().drivers
    assert config.patch_len == DriverConstants().event_steps
    assert build(TrainConfig, recipe["train"], "factors").epochs >= 1
    FactorForecast(config)


SMALL = DriverConstants(
    framed=FramedConstants(look_back=48, horizon=12, channels=3, cycle=12),
    event_steps=6,
    source=(0, 1),
    effect=((0.0, 0.6, -0.6), (0.6, 0.0, 0.6)),
    lead=(2.0, 9.0),
)


@torch.no_grad()
def recovery(made: FactorForecast, truth: DriverWindows) -> tuple[Tensor, Tensor]:
    """Return, for each driver, the AUROC of its best map and the alignment of that map's loading."""
    windows = resident(truth.window, truth.target, truth.phase)
    _, explanation = explained(made, windows.look_backs(windows.starts))
    support = torch.from_numpy(truth.tokens(made.config.patch_len))
    scores = drivers.driver_auroc(made.factors(explanation).probability, support)
    best, each = list(drivers.matched(scores)), range(scores.shape[1])
    return scores[best, each], drivers.alignment(made.readout.loading, torch.from_numpy(truth.loading))[best, each]


def test_training_recovers_planted_drivers() -> None:
    config = FactorConfig(
        48,
        12,
        3,
        12,
        patch_len=6,
        budget=0.25,
        gate=GateConfig(width=16, heads=2, recent=0, dropout=0.0, narrow_until=0.8),
        readout=ReadoutConfig(kind="linear"),
        objective=ObjectiveConfig(rate_weight=0.02, prior=0.2, consistency_weight=0.0),
        factors=2,
    )
    every = generate(1700, 5, SMALL)
    training, validation, test = every.part(0, 1200), every.part(1200, 1400), every.part(1400, 1700)
    made = FactorForecast(config).eval()
    before, _ = recovery(made, test)
    parts = (resident(part.window, part.target, part.phase) for part in (training, validation))
    train(made, *parts, TrainConfig(epochs=10, batch=64, learning_rate=3e-3, constant_epochs=7), seed=0)
    after, loadings = recovery(made, test)
    assert before.max() < 0.75
    assert after.min() > 0.9
    assert loadings.min() > 0.9
    windows = resident(test.window, test.target, test.phase)
    batch, follows = windows.take(windows.starts)
    error, without = (
        float((explained(each, batch)[0] - follows.values).square().mean()) for each in (made, without_factors(made))
    )
    assert error < 0.5 * without
    with torch.no_grad():
        assert not broken(made, batch, made(batch), torch.Generator().manual_seed(0)).any()
