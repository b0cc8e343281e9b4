"""OLinear: its bases, its layer over channels, its loss, and how a run prepares it."""

from typing import Any

import pytest
import torch

from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.zoo.recipes import Recipe
from ibforecast_lab.data.resident import resident
from ibforecast_lab.experiments.run import _prepared
from ibforecast_lab.recipes import resolve
from ibforecast_lab.rivals.olinear import Mixing, OLinear, OLinearConfig, uncorrelated

LOOK_BACK, HORIZON, CHANNELS, CYCLE = 12, 5, 3, 6


def config(**settings: Any) -> OLinearConfig:
    return OLinearConfig(LOOK_BACK, HORIZON, CHANNELS, CYCLE, width=8, layers=1, copies=2, **settings)


def rows(count: int = 300) -> torch.Tensor:
    """Return smooth channels of different size, and one that never changes."""
    noise = torch.randn(count + 4, CHANNELS, generator=torch.Generator().manual_seed(0))
    smooth = noise.unfold(0, 5, 1).mean(2) * torch.tensor([1.0, 30.0, 1.0])
    smooth[:, 2] = 0.5
    return smooth


def test_the_coordinates_are_those_in_which_the_steps_are_uncorrelated() -> None:
    values = rows()
    basis = uncorrelated(values, LOOK_BACK).double()
    assert torch.allclose(basis.T @ basis, torch.eye(LOOK_BACK, dtype=torch.float64), atol=1e-5)
    correlations = [torch.corrcoef(values[:, c].double().unfold(0, LOOK_BACK, 1).T) for c in (0, 1)]
    turned = basis.T @ (correlations[0] + correlations[1]) @ basis
    assert torch.allclose(turned, torch.diag(turned.diagonal()), atol=1e-4)


def test_a_channel_that_never_changes_does_not_count() -> None:
    values = rows()
    assert torch.equal(uncorrelated(values, 4), uncorrelated(values[:, :2], 4))


def test_rows_of_the_weights_over_channels_are_positive_and_add_up_to_one() -> None:
    layer = Mixing(config()).eval()
    with torch.no_grad():
        layer.leave.weight.zero_()
        layer.leave.bias.zero_()
        mixing = torch.nn.functional.softplus(layer.weights)
        mixing = mixing / mixing.sum(1, keepdim=True)
        tokens = torch.randn(2, CHANNELS, 8)
        alone = layer(tokens)
        layer.leave.weight.copy_(torch.eye(8))
        values = layer.value(tokens)
        expected = layer.first(tokens + torch.einsum("cd,bdw->bcw", mixing, values))
        expected = layer.second(expected + layer.features(expected))
    assert (mixing > 0).all()
    assert torch.allclose(layer(tokens), expected, atol=1e-5)
    assert not torch.allclose(alone, expected)


def test_turning_back_and_forth_changes_nothing_if_the_map_between_is_the_identity() -> None:
    torch.manual_seed(0)
    one, other = OLinear(config(dropout=0.0)).eval(), OLinear(config(dropout=0.0)).eval()
    other.load_state_dict(one.state_dict())
    values = torch.randn(2, LOOK_BACK, CHANNELS)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(LOOK_BACK + HORIZON).repeat(2, 1))
    turn = uncorrelated(rows(), LOOK_BACK)
    with torch.no_grad():
        other.past_basis.copy_(turn)
        enter = other.map[0]
        assert isinstance(enter, torch.nn.Linear)
        by_step = enter.weight.unflatten(1, (2, LOOK_BACK))
        enter.weight.copy_((by_step @ turn).flatten(1))
        assert torch.allclose(one(window).values, other(window).values, atol=1e-4)


@torch.no_grad()
def test_later_steps_count_less_in_the_loss() -> None:
    made, values = OLinear(config()).eval(), torch.zeros(1, LOOK_BACK, CHANNELS)
    window = Window(values, torch.ones_like(values, dtype=torch.bool), torch.arange(LOOK_BACK + HORIZON)[None])
    forecast, generator = made(window).values, torch.Generator()

    def loss(step: int) -> float:
        truth = forecast.clone()
        truth[:, step] += 1
        target = Target(truth, torch.ones_like(truth, dtype=torch.bool))
        return float(made.loss(window, target, torch.tensor(0.0), generator).total)

    assert loss(3) == pytest.approx(0.5 * loss(0), rel=1e-4)


def training() -> Windows:
    values = rows().numpy()
    whole = values[: 17 * (LOOK_BACK + HORIZON)].reshape(17, LOOK_BACK + HORIZON, CHANNELS)
    phase = torch.zeros(17, dtype=torch.int64).numpy()
    return resident(whole[:, :LOOK_BACK], whole[:, LOOK_BACK:], phase)


def test_a_run_computes_the_bases_from_the_training_rows_before_it_trains() -> None:
    recipe = resolve("olinear", config())
    assert isinstance(recipe, Recipe)
    windows = training()
    ready, bare = _prepared(recipe, windows).build(0), recipe.build(0)
    assert isinstance(ready, OLinear)
    assert isinstance(bare, OLinear)
    assert torch.equal(bare.past_basis, torch.eye(LOOK_BACK))
    assert torch.equal(ready.past_basis, uncorrelated(windows.values, LOOK_BACK))
    assert torch.equal(ready.future_basis, uncorrelated(windows.values, HORIZON))
    assert torch.equal(ready.copies, bare.copies)
    assert _prepared(recipe, windows).sha256 == recipe.sha256
