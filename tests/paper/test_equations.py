"""Eqs. 2-9 and Algorithm 1, written with loops and compared with the network."""

from collections.abc import Iterator
from dataclasses import replace
from math import exp, log, pi, sqrt

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Bernoulli, kl_divergence

from ibforecast.core.context import Context
from ibforecast.core.sizes import Sizes
from ibforecast.core.tokens import closed_to_zero, spread, to_tokens
from ibforecast.core.window import Target, Window
from ibforecast.model import objective
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.stage2_score import GateNetwork
from ibforecast.model.stage3_gate import ThresholdGate, logistic_noise
from ibforecast.model.stage4_readout import LinearReadout, MLPReadout
from ibforecast.zoo.recipes import resolve

BATCH, LOOK_BACK, HORIZON, CHANNELS, PATCH_LEN = 3, 24, 10, 3, 6
PATCHES = LOOK_BACK // PATCH_LEN
CYCLE = 7
"""It divides neither the look-back nor the horizon, so that tiling and the start of the future show."""

EPSILON = 1e-5


@pytest.fixture(autouse=True)
def _the_same_numbers_every_time() -> Iterator[None]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        yield


def network(kind: str = "threshold", budget: float = 1.0, attention: str = "joint", seed: int = 0) -> IBForecast:
    config = ModelConfig(
        LOOK_BACK,
        HORIZON,
        CHANNELS,
        CYCLE,
        patch_len=PATCH_LEN,
        budget=budget,
        frame="mean",
        gate=GateConfig(kind=kind, attention=attention, width=8, heads=2, recent=1),  # type: ignore[arg-type]
        readout=ReadoutConfig(kind="linear"),
    )
    return moved(IBForecast(config), seed)


def moved(module: IBForecast, seed: int) -> IBForecast:
    """Change every weight from its initial value, so that no zero hides a term."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=random))
    return module.eval()


def window(gaps: bool = False, seed: int = 1) -> Window:
    random = torch.Generator().manual_seed(seed)
    values = 3 + 2 * torch.randn(BATCH, LOOK_BACK, CHANNELS, generator=random)
    observed = torch.ones_like(values, dtype=torch.bool)
    if gaps:
        observed = torch.rand(values.shape, generator=random) > 0.1
    tau = torch.tensor([0, 3, 6])[:, None]
    return Window(values, observed, (tau + torch.arange(LOOK_BACK + HORIZON)) % CYCLE)


def target(seed: int = 2) -> Target:
    random = torch.Generator().manual_seed(seed)
    values = torch.randn(BATCH, HORIZON, CHANNELS, generator=random)
    return Target(values, torch.rand(values.shape, generator=random) > 0.1)


def close(one: Tensor, other: Tensor | float) -> None:
    torch.testing.assert_close(one.double(), torch.as_tensor(other).double(), rtol=1e-5, atol=1e-5)


def naive_frame(data: Window) -> tuple[Tensor, Tensor]:
    """Return μ and σ of each window and channel: mean and unbiased spread of the observed steps."""
    level, scale = (torch.zeros(BATCH, CHANNELS, dtype=torch.float64) for _ in range(2))
    for b in range(BATCH):
        for c in range(CHANNELS):
            seen = [float(data.values[b, t, c]) for t in range(LOOK_BACK) if data.observed[b, t, c]]
            mu = sum(seen) / len(seen)
            level[b, c] = mu
            scale[b, c] = sqrt(sum((x - mu) ** 2 for x in seen) / (len(seen) - 1) + EPSILON)
    return level, scale


def naive_deviation(data: Window, profile: Tensor) -> Tensor:
    level, scale = naive_frame(data)
    deviation = torch.zeros(BATCH, LOOK_BACK, CHANNELS, dtype=torch.float64)
    for b in range(BATCH):
        tau = int(data.phase[b, 0])
        for t in range(LOOK_BACK):
            for c in range(CHANNELS):
                if data.observed[b, t, c]:
                    framed = (float(data.values[b, t, c]) - level[b, c]) / scale[b, c]
                    deviation[b, t, c] = framed - float(profile[(tau + t) % CYCLE, c])
    return deviation


def naive_logits(score: GateNetwork, deviation: Tensor, joint: bool) -> Tensor:
    """Compute Eqs. 3 to 5 with the network's encoder; rows here are patch first, in the network channel first."""
    logits = torch.zeros(BATCH, PATCHES, CHANNELS)
    for b in range(BATCH):
        embedded = {}
        for p in range(PATCHES):
            for c in range(CHANNELS):
                token = torch.stack([deviation[b, p * PATCH_LEN + i, c] for i in range(PATCH_LEN)])
                embedded[p, c] = score.embed.weight @ token + score.position[p]
        groups = [list(embedded)] if joint else [[(p, c) for p in range(PATCHES)] for c in range(CHANNELS)]
        for group in groups:
            contextualised = score.encoder(torch.stack([embedded[place] for place in group])[None])[0]
            for (p, c), row in zip(group, contextualised, strict=True):
                logits[b, p, c] = score.head.weight[0] @ row + score.head.bias[0] + score.bias[p, c]
    return logits


def naive_readout(evidence: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    future = torch.zeros(BATCH, HORIZON, CHANNELS, dtype=torch.float64)
    for b in range(BATCH):
        for h in range(HORIZON):
            for c in range(CHANNELS):
                future[b, h, c] = bias[h] + sum(weight[h, t] * evidence[b, t, c] for t in range(LOOK_BACK))
    return future


def naive_restore(future: Tensor, data: Window, level: Tensor, scale: Tensor, profile: Tensor) -> Tensor:
    values = torch.zeros_like(future)
    for b in range(BATCH):
        tau = int(data.phase[b, 0])
        for h in range(HORIZON):
            for c in range(CHANNELS):
                expected = profile[(tau + LOOK_BACK + h) % CYCLE, c]
                values[b, h, c] = scale[b, c] * (future[b, h, c] + expected) + level[b, c]
    return values


@pytest.mark.parametrize("gaps", [False, True])
@torch.no_grad()
def test_eq_2_the_deviation_is_the_window_minus_frame_and_tiled_profile(gaps: bool) -> None:
    net, data = network(), window(gaps)
    context, deviation = net.decompose(data)
    level, scale = naive_frame(data)
    close(context.level, level)
    close(context.scale, scale)
    close(deviation, naive_deviation(data, net.decompose.profile))
    assert torch.equal(context.phase, data.phase)
    assert not deviation[~data.observed].any()


@torch.no_grad()
def test_eq_2_the_profile_repeats_after_every_cycle() -> None:
    profile = torch.randn(CYCLE, CHANNELS)
    context = Context(torch.zeros(1, CHANNELS), torch.ones(1, CHANNELS), torch.zeros(1, 1, dtype=torch.int64), profile)
    phase = torch.arange(5, 5 + 3 * CYCLE)[None]
    for step, row in enumerate(context.expected(phase)[0]):
        assert torch.equal(row, profile[(5 + step) % CYCLE])


def test_eq_3_a_token_is_a_slice_of_one_channel() -> None:
    deviation = torch.randn(BATCH, LOOK_BACK, CHANNELS)
    tokens = to_tokens(deviation, PATCH_LEN)
    assert tokens.shape == (BATCH, PATCHES, CHANNELS, PATCH_LEN)
    for p in range(1, PATCHES + 1):  # the paper counts from 1
        for i in range(1, PATCH_LEN + 1):
            assert torch.equal(tokens[:, p - 1, :, i - 1], deviation[:, (p - 1) * PATCH_LEN + i - 1])


@pytest.mark.parametrize("attention", ["joint", "within"])
@torch.no_grad()
def test_eq_4_the_encoder_input_is_a_linear_embedding_plus_the_patch_position(attention: str) -> None:
    net = network(attention=attention)
    deviation, rows = torch.randn(BATCH, LOOK_BACK, CHANNELS), []
    net.score.encoder.register_forward_pre_hook(lambda module, inputs: rows.append(inputs[0]))
    net.score(deviation)
    embedded = rows[0].reshape(BATCH, CHANNELS, PATCHES, -1)
    assert rows[0].shape[1] == (PATCHES * CHANNELS if attention == "joint" else PATCHES)
    for p in range(PATCHES):
        for c in range(CHANNELS):
            for d in range(8):
                token = deviation[:, p * PATCH_LEN : (p + 1) * PATCH_LEN, c]
                value = sum(net.score.embed.weight[d, i] * token[:, i] for i in range(PATCH_LEN))
                close(embedded[:, c, p, d], value + net.score.position[p, d])
    assert net.score.embed.bias is None


@pytest.mark.parametrize("attention", ["joint", "within"])
@torch.no_grad()
def test_eq_5_the_probability_is_the_sigmoid_of_a_linear_head_on_the_encoded_token(attention: str) -> None:
    net = network(attention=attention)
    deviation = torch.randn(BATCH, LOOK_BACK, CHANNELS)
    expected = naive_logits(net.score, deviation, attention == "joint")
    logits = net.score(deviation)
    close(logits, expected)
    _, probability = net.gate(logits, torch.zeros(BATCH, PATCHES, CHANNELS, dtype=torch.bool))
    for place in torch.cartesian_prod(torch.arange(BATCH), torch.arange(PATCHES), torch.arange(CHANNELS)):
        b, p, c = place.tolist()
        close(probability[b, p, c], 1 / (1 + exp(-float(expected[b, p, c]))))


@torch.no_grad()
def test_eq_5_joint_scores_depend_on_other_channels_and_scores_within_do_not() -> None:
    deviation = torch.randn(BATCH, LOOK_BACK, CHANNELS)
    other = deviation.clone()
    other[..., 1:] += torch.randn(BATCH, LOOK_BACK, CHANNELS - 1)
    joint, within = network(attention="joint").score, network(attention="within").score
    assert (joint(deviation)[..., 0] - joint(other)[..., 0]).abs().max() > 1e-3
    close(within(deviation)[..., 0], within(other)[..., 0])


def paper_gate() -> ThresholdGate:
    return ThresholdGate(12, 12, GateConfig(kind="threshold", noise_until=1.0))


NOTHING_MISSING = torch.zeros(BATCH, PATCHES, CHANNELS, dtype=torch.bool)


@pytest.mark.parametrize("progress", [0.0, 0.4, 1.0])
def test_eq_6_gates_are_the_noisy_sigmoid_thresholded_at_one_half(progress: float) -> None:
    logits = torch.randn(BATCH, PATCHES, CHANNELS)
    noise = logistic_noise(logits, torch.Generator().manual_seed(3))
    mask = paper_gate().sample(logits, NOTHING_MISSING, torch.tensor(progress), torch.Generator().manual_seed(3))
    temperature = 0.5 * (0.1 / 0.5) ** progress
    for place in torch.cartesian_prod(torch.arange(BATCH), torch.arange(PATCHES), torch.arange(CHANNELS)):
        b, p, c = place.tolist()
        smooth = 1 / (1 + exp(-(float(logits[b, p, c]) + float(noise[b, p, c])) / temperature))
        assert float(mask[b, p, c]) == (1.0 if smooth > 0.5 else 0.0)
    assert 0 < mask.mean() < 1


@pytest.mark.parametrize("progress", [0.0, 0.4, 1.0])
def test_eq_6_the_gradient_of_the_gate_is_that_of_its_smooth_surrogate(progress: float) -> None:
    weights = torch.randn(BATCH, PATCHES, CHANNELS)
    logits = (3 * torch.randn(BATCH, PATCHES, CHANNELS)).requires_grad_()
    mask = paper_gate().sample(logits, NOTHING_MISSING, torch.tensor(progress), torch.Generator().manual_seed(4))
    (mask * weights).sum().backward()
    noise = logistic_noise(weights, torch.Generator().manual_seed(4)).double()
    temperature = 0.5 * (0.1 / 0.5) ** progress
    smooth = 1 / (1 + (-(logits.detach().double() + noise) / temperature).exp())
    assert logits.grad is not None
    close(logits.grad, weights * smooth * (1 - smooth) / temperature)
    assert logits.grad.abs().max() > 0.1


@pytest.mark.parametrize("progress", [0.0, 0.5, 1.0])
def test_eq_6_a_sampled_gate_opens_with_the_probability_of_its_logit_at_every_temperature(progress: float) -> None:
    draws = 20_000
    levels = torch.tensor([[-2.5, -1.0, -0.2], [0.0, 0.4, 2.0]])
    gate = paper_gate()
    closed = torch.zeros(draws, 2, 3, dtype=torch.bool)
    random = torch.Generator().manual_seed(5)
    mask = gate.sample(levels.expand(draws, 2, 3).contiguous(), closed, torch.tensor(progress), random)
    for p in range(2):
        for c in range(3):
            expected = 1 / (1 + exp(-float(levels[p, c])))
            spread_of_mean = sqrt(expected * (1 - expected) / draws)
            assert abs(float(mask[:, p, c].mean()) - expected) < 4 * spread_of_mean


def test_eq_6_the_noise_is_logistic() -> None:
    noise = logistic_noise(torch.zeros(100_000), torch.Generator().manual_seed(6)).double()
    assert abs(float(noise.mean())) < 4 * sqrt(pi**2 / 3 / 100_000)
    assert abs(float(noise.var()) / (pi**2 / 3) - 1) < 0.03
    for level in (0.05, 0.3, 0.5, 0.8, 0.99):
        below = float((noise < log(level / (1 - level))).double().mean())
        assert abs(below - level) < 4 * sqrt(level * (1 - level) / 100_000)


@torch.no_grad()
def test_eq_7_every_gate_is_broadcast_over_its_patch_and_the_rest_is_zero() -> None:
    deviation = torch.randn(BATCH, LOOK_BACK, CHANNELS)
    mask = torch.rand(BATCH, PATCHES, CHANNELS) > 0.5
    evidence = closed_to_zero(mask, deviation)
    for t in range(LOOK_BACK):
        gate = mask[:, t // PATCH_LEN]
        assert torch.equal(spread(mask, PATCH_LEN)[:, t], gate)
        assert torch.equal(evidence[:, t], torch.where(gate, deviation[:, t], torch.zeros(())))


@torch.no_grad()
def test_eq_7_the_linear_readout_is_one_map_over_time_shared_by_all_channels() -> None:
    readout = LinearReadout(LOOK_BACK, HORIZON)
    evidence, mask = torch.randn(BATCH, LOOK_BACK, CHANNELS), torch.ones(BATCH, PATCHES, CHANNELS)
    context, _ = network().decompose(window())
    assert isinstance(readout.map, nn.Linear)
    close(readout(evidence, mask, context), naive_readout(evidence, readout.map.weight, readout.map.bias))


@torch.no_grad()
def test_eq_7_the_mlp_readout_has_one_hidden_layer_with_relu() -> None:
    readout = MLPReadout(LOOK_BACK, HORIZON, 5)
    evidence, mask = torch.randn(BATCH, LOOK_BACK, CHANNELS), torch.ones(BATCH, PATCHES, CHANNELS)
    context, _ = network().decompose(window())
    future = readout(evidence, mask, context)
    enter, _, leave = readout.map.children()
    for b in range(BATCH):
        for c in range(CHANNELS):
            hidden = [max(0.0, float(enter.weight[i] @ evidence[b, :, c] + enter.bias[i])) for i in range(5)]
            for h in range(HORIZON):
                expected = sum(float(leave.weight[h, i]) * hidden[i] for i in range(5)) + float(leave.bias[h])
                close(future[b, h, c], expected)


@torch.no_grad()
def test_eq_8_the_forecast_restores_profile_scale_and_level() -> None:
    net, data = network(), window()
    context, _ = net.decompose(data)
    future = torch.randn(BATCH, HORIZON, CHANNELS)
    expected = naive_restore(future, data, context.level, context.scale, context.profile)
    close(context.restore(future), expected)


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.9])
@torch.no_grad()
def test_eq_9_the_rate_is_the_mean_divergence_of_bernoullis(prior: float) -> None:
    logits = 3 * torch.randn(BATCH, PATCHES, CHANNELS)
    total = 0.0
    for logit in logits.flatten().tolist():
        p = 1 / (1 + exp(-logit))
        divergence = p * log(p / prior) + (1 - p) * log((1 - p) / (1 - prior))
        total += divergence
        close(objective.token_rate(torch.tensor([logit]), prior)[0], divergence)
    close(objective.rate(logits, prior), total / logits.numel())
    known = kl_divergence(Bernoulli(logits=logits.double()), Bernoulli(torch.tensor(prior).double()))
    close(objective.token_rate(logits, prior), known)


@torch.no_grad()
def test_eq_9_the_budget_term_is_the_squared_distance_of_the_mean_probability() -> None:
    probability = torch.rand(BATCH, PATCHES, CHANNELS)
    mean = sum(probability.flatten().tolist()) / probability.numel()
    close(objective.budget(probability, 0.2), (mean - 0.2) ** 2)


@torch.no_grad()
def test_eq_9_the_contiguity_term_is_the_mean_jump_between_neighbouring_patches() -> None:
    mask = (torch.rand(BATCH, PATCHES, CHANNELS) > 0.5).float()
    jumps = [
        abs(float(mask[b, p + 1, c]) - float(mask[b, p, c]))
        for b in range(BATCH)
        for p in range(PATCHES - 1)
        for c in range(CHANNELS)
    ]
    close(objective.contiguity(mask), sum(jumps) / len(jumps))
    assert float(objective.contiguity(mask[:, :1])) == 0


@torch.no_grad()
def test_eq_9_the_fit_is_the_mean_squared_error_of_what_was_observed() -> None:
    truth, forecast = target(), torch.randn(BATCH, HORIZON, CHANNELS)
    errors = [
        (float(forecast[b, h, c]) - float(truth.values[b, h, c])) ** 2
        for b in range(BATCH)
        for h in range(HORIZON)
        for c in range(CHANNELS)
        if truth.observed[b, h, c]
    ]
    assert len(errors) < truth.values.numel()
    close(objective.fit(forecast, truth, ObjectiveConfig()), sum(errors) / len(errors))


@pytest.mark.parametrize(
    ("recipe", "weights"),
    [
        ("paper", {"fit": 1.0, "rate": 0.02}),
        ("paper-sparse", {"fit": 1.0, "rate": 0.02, "budget": 5.0, "contiguity": 1e-3}),
    ],
)
def test_eq_9_the_loss_of_the_papers_recipe_is_the_weighted_sum_of_its_terms(
    recipe: str, weights: dict[str, float]
) -> None:
    sizes = Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)
    config = resolve(recipe, sizes, patch_len=PATCH_LEN).config
    net, data, truth, progress = moved(IBForecast(config), 7), window(), target(), torch.tensor(0.3)
    loss = net.loss(data, truth, progress, torch.Generator().manual_seed(8))

    with torch.no_grad():
        deviation = naive_deviation(data, net.decompose.profile).float()
        logits = net.score(deviation)
        noise = logistic_noise(logits, torch.Generator().manual_seed(8))
        mask = (logits + noise > 0).float()
        evidence = torch.zeros(BATCH, LOOK_BACK, CHANNELS)
        for t in range(LOOK_BACK):
            evidence[:, t] = mask[:, t // PATCH_LEN] * deviation[:, t]
        level, scale = naive_frame(data)
        future = naive_readout(evidence, net.readout.map.weight, net.readout.map.bias)
        forecast = naive_restore(future, data, level, scale, net.decompose.profile)
        prior, budget = config.objective.prior, config.budget
        by_hand = {
            "fit": ((forecast - truth.values) ** 2)[truth.observed].mean(),
            "rate": kl_divergence(Bernoulli(logits=logits.double()), Bernoulli(torch.tensor(prior).double())).mean(),
            "budget": (torch.sigmoid(logits).mean() - budget) ** 2,
            "contiguity": (mask[:, 1:] - mask[:, :-1]).abs().mean(),
        }
    assert loss.terms.keys() == weights.keys()
    for name, weight in weights.items():
        close(loss.terms[name].detach(), weight * by_hand[name])
    close(loss.total.detach(), sum(weight * float(by_hand[name]) for name, weight in weights.items()))
    close(loss.open_rate, mask.mean())


@pytest.mark.parametrize("attention", ["joint", "within"])
@torch.no_grad()
def test_algorithm_1_the_forward_pass_is_its_steps_written_out(attention: str) -> None:
    net, data = network(attention=attention), window()
    forecast = net(data)
    profile = net.decompose.profile

    level, scale = naive_frame(data)
    deviation = naive_deviation(data, profile)
    probability = torch.sigmoid(naive_logits(net.score, deviation.float(), attention == "joint"))
    mask = probability > 0.5
    evidence = torch.zeros_like(deviation)
    for t in range(LOOK_BACK):
        evidence[:, t] = mask[:, t // PATCH_LEN] * deviation[:, t]
    future = naive_readout(evidence, net.readout.map.weight, net.readout.map.bias)

    close(forecast.values, naive_restore(future, data, level, scale, profile))
    explanation = forecast.explanation
    assert explanation is not None
    assert torch.equal(explanation.mask, mask)
    assert mask.any()
    assert not mask.all()
    close(explanation.evidence, evidence)
    close(explanation.probability, probability)
    close(explanation.context.level, level)
    close(explanation.context.scale, scale)
    assert torch.equal(explanation.context.phase, data.phase)
    assert torch.equal(explanation.context.profile, profile)


@pytest.mark.parametrize("kind", ["exact", "threshold", "capped"])
@torch.no_grad()
def test_algorithm_1_within_a_budget_only_the_best_tokens_that_are_not_missing_open(kind: str) -> None:
    net, data = network(kind, budget=0.25), window(gaps=True)
    data.observed[0] = True
    data.observed[1, 3:] = True
    data.observed[1, 0, 0] = False
    _, deviation = net.decompose(data)
    logits = naive_logits(net.score, deviation, joint=True)
    explanation = net(data).explanation
    assert explanation is not None
    for b in range(BATCH):
        missing = {
            (p, c): not all(data.observed[b, p * PATCH_LEN + i, c] for i in range(PATCH_LEN))
            for p in range(PATCHES)
            for c in range(CHANNELS)
        }
        readable = [place for place in missing if not missing[place]]
        best = sorted(readable, key=lambda place: -float(logits[b][place]))[:3]  # ⌊0.25 · 12⌋
        if kind != "exact":
            best = [place for place in best if logits[b][place] > 0]
        assert {place for place in missing if explanation.mask[b][place]} == set(best)
        assert {place for place in missing if explanation.missing[b][place]} == set(missing) - set(readable)
    assert explanation.mask[0].sum() == 3


def test_the_frame_of_a_window_depends_only_on_that_window() -> None:
    data = window()
    changed = replace(data, values=data.values.clone())
    changed.values[1:] *= 100
    context, _ = network().decompose(data)
    other, _ = network().decompose(changed)
    assert torch.equal(context.level[0], other.level[0])
    assert torch.equal(context.scale[0], other.scale[0])
