"""Stacked training: every model of a stack ends as it does on its own, whatever becomes of the others."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ibforecast.core.contracts import Loss
from ibforecast.core.errors import DataError, IBForecastError, UsageError
from ibforecast.core.sizes import Sizes
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import SealedForecast
from ibforecast.train.config import TrainConfig
from ibforecast.train.loop import Training, train
from ibforecast.train.stack import Member, train_stacked
from ibforecast.zoo.recipes import resolve

LOOK_BACK, HORIZON, CHANNELS, CYCLE, ROWS = 12, 3, 2, 4, 240
PACE = TrainConfig(epochs=3, batch=16, learning_rate=1e-2, most_steps=3, averaged=0.5, validated=40)
RECIPES = ("sealed", "choosing", "additive", "paper")


def windows(starts: range, data: int = 0) -> Windows:
    random = torch.Generator().manual_seed(data)
    values = torch.randn(ROWS, CHANNELS, generator=random).cumsum(dim=0) / 4
    observed = torch.rand(ROWS, CHANNELS, generator=random) > 0.01
    phase = torch.arange(ROWS + HORIZON) % CYCLE
    rows = torch.tensor(starts, dtype=torch.int64)
    return Windows(values.where(observed, torch.zeros(())), observed, phase, rows, LOOK_BACK, HORIZON)


def network(name: str, seed: int, budget: float | None = 0.5, dropout: float = 0.2) -> IBForecast:
    settings = {"patch_len": 3, "budget": budget, "readout": {"width": 8, "dropout": dropout}}
    forecaster = resolve(name, Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE), **settings).build(seed)
    assert isinstance(forecaster, IBForecast)
    return forecaster


def member(name: str, seed: int, data: int = 0) -> Member:
    return Member(network(name, seed), windows(range(150), data), windows(range(150, 220), data), seed)


def on_its_own(one: Member, name: str, pace: TrainConfig) -> tuple[IBForecast, Training]:
    forecaster = network(name, one.seed)
    return forecaster, train(forecaster, one.training, one.validation, pace, one.seed)


def weights(forecaster: torch.nn.Module) -> Tensor:
    return torch.cat([tensor.flatten() for tensor in forecaster.state_dict().values()])


@pytest.mark.parametrize("name", RECIPES)
def test_every_model_of_a_stack_ends_as_on_its_own_whatever_its_seed_and_table(name: str) -> None:
    members = [member(name, seed, data) for seed, data in ((1, 0), (2, 0), (1, 1))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcomes = train_stacked(members, PACE)
    for one, outcome in zip(members, outcomes, strict=True):
        forecaster, alone = on_its_own(one, name, PACE)
        assert isinstance(outcome, Training)
        for figure in ("validation_error", "loss", "open_rate", "learning_rate"):
            mine, theirs = ([getattr(epoch, figure) for epoch in run.history] for run in (outcome, alone))
            assert mine == pytest.approx(theirs, rel=1e-4)
        assert (outcome.best_epoch, outcome.best_error) == pytest.approx((alone.best_epoch, alone.best_error), rel=1e-4)
        assert torch.allclose(weights(one.forecaster), weights(forecaster), atol=2e-3)
        assert not one.forecaster.training


def test_each_model_stops_by_its_own_patience_and_keeps_its_own_best_epoch() -> None:
    pace = replace(PACE, epochs=6, patience=1, learning_rate=0.1, averaged=0.0, most_steps=2)
    members = [member("sealed", seed) for seed in range(3)]
    outcomes = train_stacked(members, pace)
    lengths = [len(outcome.history) for outcome in outcomes if isinstance(outcome, Training)]
    assert len(set(lengths)) > 1, "the test needs models that stop at different times"
    for one, length in zip(members, lengths, strict=True):
        forecaster, alone = on_its_own(one, "sealed", pace)
        assert length == len(alone.history)
        assert torch.allclose(weights(one.forecaster), weights(forecaster), atol=2e-2)


def test_a_model_that_is_hopeless_leaves_the_stack_and_the_others_go_on() -> None:
    one, other = member("sealed", 1), replace(member("sealed", 2), hopeless=lambda history: len(history) == 2)
    whole, given_up = train_stacked([one, other], PACE)
    assert isinstance(whole, Training)
    assert isinstance(given_up, Training)
    assert (len(whole.history), len(given_up.history)) == (3, 2)
    alone = train(network("sealed", 2), other.training, other.validation, PACE, 2, hopeless=other.hopeless)
    assert (given_up.best_epoch, given_up.best_error, given_up.best_absolute_error) == pytest.approx(
        (alone.best_epoch, alone.best_error, alone.best_absolute_error), rel=1e-4
    )


class Fragile(SealedForecast):
    """A sealed network whose loss is not a number in a model that was marked."""

    def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
        loss = super().loss(window, target, progress, generator)
        broken = self.decompose.profile[0, 0] > 100
        return Loss({"fit": loss.total * torch.where(broken, torch.nan, 1.0)}, loss.open_rate)


def test_a_model_that_does_not_stay_finite_leaves_the_others_as_they_are() -> None:
    members = [replace(member("sealed", s), forecaster=Fragile(network("sealed", s).config)) for s in (1, 2)]
    for one in members:
        one.forecaster.load_state_dict(network("sealed", one.seed).state_dict())
    with torch.no_grad():
        members[1].forecaster.decompose.profile[0, 0] = 200
    sound, broken = train_stacked(members, PACE)
    assert isinstance(broken, IBForecastError)
    assert "finite" in str(broken)
    assert isinstance(sound, Training)
    assert sound.best_error == pytest.approx(on_its_own(members[0], "sealed", PACE)[1].best_error, rel=1e-4)


def test_models_of_different_budgets_or_lengths_are_refused_as_one_stack() -> None:
    one = member("sealed", 1)
    with pytest.raises(UsageError, match="one shape"):
        train_stacked([one, replace(one, forecaster=network("sealed", 2, budget=0.25))], PACE)
    with pytest.raises(UsageError, match="one shape"):
        train_stacked([one, replace(one, training=windows(range(20)))], PACE)
    with pytest.raises(DataError, match="at least one window"):
        train_stacked([replace(one, validation=windows(range(0)))], PACE)
