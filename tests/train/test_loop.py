"""The training loop: the epoch it keeps, when it stops, its random numbers, and its silence."""

import random
import time
from dataclasses import replace
from importlib import import_module
from math import exp
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ibforecast.core.context import Context
from ibforecast.core.contracts import Forecaster, Loss, ParameterGroup
from ibforecast.core.errors import DataError, IBForecastError
from ibforecast.core.explanation import Forecast
from ibforecast.core.window import Target, Window
from ibforecast.data.windows import Windows
from ibforecast.evaluate.accuracy import accuracy
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.deadline import Deadline
from ibforecast.train.loop import Pace, Training, best_of, epoch_seed, pace_of, train
from ibforecast.train.step import Step

LOOK_BACK, HORIZON, ROWS = 12, 4, 70
PACE = TrainConfig(epochs=3, batch=16, learning_rate=1e-2, constant_epochs=1, decay=0.5)


def windows(starts: range, missing: float = 0.0) -> Windows:
    values = torch.randn(ROWS, 2, generator=torch.Generator().manual_seed(0))
    observed = torch.rand(ROWS, 2, generator=torch.Generator().manual_seed(1)) >= missing
    return Windows(
        values=values.where(observed, torch.zeros(())),
        observed=observed,
        phase=torch.arange(ROWS + HORIZON) % 6,
        starts=torch.tensor(starts, dtype=torch.int64),
        look_back=LOOK_BACK,
        horizon=HORIZON,
    )


TRAINING, VALIDATION = windows(range(40)), windows(range(40, 55))


class Walker(Forecaster):
    """A forecaster with one weight that every step moves by the learning rate, and whose error is that weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        return Forecast(self.weight.expand(len(window.values), HORIZON, 2))

    def context(self, window: Window) -> Context:
        raise AssertionError("training needs no context")

    def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
        return Loss({"fit": -self.weight}, torch.zeros(()))


def test_averaged_weights_are_validated_and_kept_while_training_goes_on_from_the_last_ones() -> None:
    pace = TrainConfig(epochs=2, batch=10, learning_rate=0.125, constant_epochs=9, averaged=0.5)
    forecaster, ahead = Walker(), replace(VALIDATION, values=torch.full_like(VALIDATION.values, 1e3))
    run = train(forecaster, TRAINING, ahead, pace, seed=1)
    weight = average = 0.0
    averages = []
    for _ in range(2):
        for _ in range(4):
            weight += 0.125
            average += (1 - exp(-1 / (0.5 * 4))) * (weight - average)
        averages.append(average)
    assert forecaster.weight.item() == pytest.approx(averages[-1], rel=1e-5)
    assert [epoch.validation_error for epoch in run.history] == pytest.approx([(1e3 - a) ** 2 for a in averages])


class Scripted(Forecaster):
    """A forecaster whose error in each epoch is scripted, and whose state contains the epoch."""

    def __init__(self, errors: list[float]) -> None:
        super().__init__()
        self.errors = errors
        self.weight = nn.Parameter(torch.zeros(()))
        self.register_buffer("epoch", torch.zeros(()))
        self.seen: list[tuple[int, float]] = []

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        offset = self.errors[int(self.epoch)] ** 0.5
        return Forecast(torch.full((len(window.values), HORIZON, 2), offset))

    def context(self, window: Window) -> Context:
        raise AssertionError("training needs no context")

    def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
        self.epoch.copy_((progress * (len(self.errors) - 1)).round())
        self.seen.append((int(self.epoch), float(progress)))
        return Loss({"fit": 0 * self.weight + 2.0, "more": torch.tensor(1.0)}, torch.tensor(0.25))


def run_script(errors: list[float], patience: int = 99) -> tuple[Scripted, Training]:
    forecaster = Scripted(errors)
    silent = replace(VALIDATION, values=torch.zeros(ROWS, 2))
    pace = TrainConfig(epochs=len(errors), batch=16, patience=patience)
    return forecaster, train(forecaster, TRAINING, silent, pace, seed=0)


@pytest.mark.parametrize(
    ("errors", "best"),
    [([3, 1, 2], 2), ([1, 2, 3], 1), ([3, 2, 1], 3), ([2, 1, 3, 1, 2], 4), ([1, 1, 1], 3), ([5], 1)],
)
def test_the_best_epoch_is_kept_and_in_a_tie_the_last(errors: list[float], best: int) -> None:
    forecaster, training = run_script(errors)
    assert training.best_epoch == best
    assert int(forecaster.epoch) == best - 1
    assert [epoch.validation_error for epoch in training.history] == pytest.approx(errors, rel=1e-6)
    assert not forecaster.training


@pytest.mark.parametrize(
    ("errors", "patience", "epochs"),
    [
        ([1, 2, 3, 4, 5, 6], 1, 2),
        ([1, 2, 3, 4, 5, 6], 2, 3),
        ([3, 4, 2, 4, 4, 1], 2, 5),
        ([3, 4, 2, 4, 4, 1], 3, 6),
        ([2, 2, 2, 2, 2, 2], 1, 6),
    ],
)
def test_training_stops_when_patience_runs_out_and_a_tie_renews_it(
    errors: list[float], patience: int, epochs: int
) -> None:
    forecaster, training = run_script(errors, patience)
    assert len(training.history) == epochs
    assert max(epoch for epoch, _ in forecaster.seen) == epochs - 1


def test_an_empty_history_has_no_best_epoch() -> None:
    assert best_of(()) == -1
    assert best_of(tuple(Epoch(0.0, 0.0, error, 0.0) for error in (2.0, 1.0, 1.0))) == 2


def test_an_epoch_reports_mean_loss_open_rate_and_learning_rate() -> None:
    reported: list[tuple[int, Epoch]] = []
    pace = TrainConfig(epochs=3, batch=16, learning_rate=0.1, constant_epochs=1, decay=0.5)
    training = train(
        Scripted([1, 1, 1]),
        TRAINING,
        VALIDATION,
        pace,
        0,
        on_epoch=lambda number, epoch: reported.append((number, epoch)),
    )
    assert reported == list(enumerate(training.history, start=1))
    assert [epoch.loss for epoch in training.history] == pytest.approx([3.0] * 3)
    assert [epoch.open_rate for epoch in training.history] == pytest.approx([0.25] * 3)
    assert [epoch.learning_rate for epoch in training.history] == pytest.approx([0.1, 0.05, 0.025])


def test_every_epoch_uses_all_whole_batches_and_passes_the_progress() -> None:
    forecaster, _ = run_script([1, 1, 1])
    assert forecaster.seen == [(epoch, epoch / 2) for epoch in range(3) for _ in range(40 // 16)]


class Noting(Forecaster):
    """A forecaster that records its windows and draws from both generators."""

    def __init__(self, rate: float = 1.0) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))
        self.rate = rate
        self.shown: list[list[float]] = []
        self.own_draws: list[list[float]] = []
        self.global_draws: list[list[float]] = []

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        return Forecast(torch.zeros(len(window.values), HORIZON, 2) + 0 * self.weight)

    def context(self, window: Window) -> Context:
        raise AssertionError("training needs no context")

    def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
        assert self.training
        self.shown.append(window.values[:, 0, 0].tolist())
        self.own_draws.append(torch.rand(4, generator=generator).tolist())
        self.global_draws.append(torch.rand(4).tolist())
        return Loss({"fit": self.weight + self.other}, torch.tensor(1.0))

    def parameter_groups(self) -> list[ParameterGroup]:
        return [ParameterGroup([self.weight]), ParameterGroup([self.other], self.rate)]


def train_noting(seed: int, pace: TrainConfig = PACE) -> Noting:
    forecaster = Noting()
    train(forecaster, TRAINING, VALIDATION, pace, seed)
    return forecaster


def test_the_order_of_windows_gate_noise_and_dropout_come_from_the_seed() -> None:
    one, again, other = train_noting(1), train_noting(1), train_noting(2)
    for drawn in ("shown", "own_draws", "global_draws"):
        assert getattr(one, drawn) == getattr(again, drawn)
        assert all(a != b for a, b in zip(getattr(one, drawn), getattr(other, drawn), strict=True))


def test_every_step_of_every_epoch_draws_new_numbers() -> None:
    forecaster = train_noting(1)
    for drawn in (forecaster.shown, forecaster.own_draws, forecaster.global_draws):
        assert len({tuple(numbers) for numbers in drawn}) == len(drawn) == 6


def test_an_epoch_uses_no_window_twice() -> None:
    forecaster = train_noting(1)
    starts = TRAINING.values[TRAINING.starts, 0].tolist()
    for epoch in range(3):
        shown = [start for step in forecaster.shown[2 * epoch : 2 * epoch + 2] for start in step]
        assert len(set(shown)) == 32
        assert set(shown) <= set(starts)


def test_a_batch_larger_than_the_number_of_windows_contains_them_all() -> None:
    forecaster = train_noting(1, replace(PACE, batch=1000, fewest_steps=1))
    assert [len(step) for step in forecaster.shown] == [40, 40, 40]


def test_parameters_learn_at_the_rate_of_their_group() -> None:
    forecaster = Noting(rate=3.0)
    train(forecaster, TRAINING, VALIDATION, TrainConfig(epochs=1, batch=40, learning_rate=0.01, fewest_steps=1), 0)
    # With a gradient of one, the first step of Adam is as long as its learning rate.
    assert forecaster.weight.item() == pytest.approx(-0.01, rel=1e-3)
    assert forecaster.other.item() == pytest.approx(-0.03, rel=1e-3)


def test_seeds_of_epochs_and_runs_are_all_different_and_valid() -> None:
    state = random.getstate()
    seeds = {epoch_seed(seed, epoch) for seed in range(20) for epoch in range(20)}
    assert random.getstate() == state
    assert len(seeds) == 400
    assert epoch_seed(3, 4) == epoch_seed(3, 4)
    for seed in (min(seeds), max(seeds)):
        torch.Generator().manual_seed(seed)


def network(dropout: float = 0.0, noise: float = 0.3) -> IBForecast:
    config = ModelConfig(
        LOOK_BACK,
        HORIZON,
        2,
        6,
        patch_len=3,
        budget=0.5,
        gate=GateConfig(width=4, heads=2, dropout=dropout, noise=noise, noise_until=1.0),
        readout=ReadoutConfig(width=8, dropout=dropout),
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return IBForecast(config)


def trained(seed: int, pace: TrainConfig = PACE, **settings: float) -> dict[str, Tensor]:
    forecaster = network(**settings)
    train(forecaster, TRAINING, VALIDATION, pace, seed)
    return forecaster.state_dict()


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_seeded_run_repeats_exactly_and_another_seed_is_another_run() -> None:
    first = trained(1, dropout=0.2)
    torch.rand(100)
    assert same(first, trained(1, dropout=0.2))
    assert not same(first, trained(2, dropout=0.2))


def test_gate_noise_is_enough_to_make_seeds_differ() -> None:
    """One batch contains every window and there is no dropout: only order and noise depend on the seed."""
    all_at_once = replace(PACE, batch=40, fewest_steps=1)
    noisy = [trained(seed, all_at_once, noise=1.0)["readout.leave.weight"] for seed in (1, 2)]
    quiet = [trained(seed, all_at_once, noise=0.0)["readout.leave.weight"] for seed in (1, 2)]
    torch.testing.assert_close(*quiet, rtol=1e-4, atol=1e-5)
    assert (noisy[0] - noisy[1]).abs().max() > 1e-4


def test_training_leaves_the_global_generators_unchanged() -> None:
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    trained(1, dropout=0.2)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)


def test_a_run_that_fails_leaves_the_global_generator_unchanged() -> None:
    state = torch.get_rng_state()
    with pytest.raises(IBForecastError):
        run_script([1.0, float("nan")])
    assert torch.equal(torch.get_rng_state(), state)


def test_training_prints_nothing(capfd: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    train(network(), TRAINING, VALIDATION, PACE, 0, checkpoint=tmp_path / "run.safetensors")
    assert capfd.readouterr() == ("", "")


def test_training_lowers_the_loss() -> None:
    slow = train(network(), TRAINING, VALIDATION, replace(PACE, epochs=8, constant_epochs=8), 0)
    assert slow.history[-1].loss < slow.history[0].loss


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_validation_error_is_the_mean_over_windows_of_their_mean_squared_error(missing: float) -> None:
    gaps = windows(range(40, 55), missing=missing)
    forecaster = network(dropout=0.3)
    training = train(forecaster, TRAINING, gaps, replace(PACE, epochs=1), 0)
    squares = []
    with torch.no_grad():
        for start in range(40, 55):
            window, target = gaps.take(torch.tensor([start]))
            squares.append((forecaster(window).values - target.values)[target.observed] ** 2)
    error = training.history[0].validation_error
    assert error == pytest.approx(float(torch.stack([one.mean() for one in squares]).mean()), rel=1e-6)
    assert (error == pytest.approx(float(torch.cat(squares).mean()), rel=1e-6)) is (not missing)


def test_the_validation_windows_do_not_change_the_weights() -> None:
    other = replace(VALIDATION, values=VALIDATION.values.clone())
    other.values[-15:] += 3.0
    forecasters = [network(), network()]
    for forecaster, chosen in zip(forecasters, (VALIDATION, other), strict=True):
        train(forecaster, TRAINING, chosen, replace(PACE, epochs=1), 0)
    assert same(forecasters[0].state_dict(), forecasters[1].state_dict())


@pytest.mark.parametrize(("training", "validation"), [(windows(range(0)), VALIDATION), (TRAINING, windows(range(0)))])
def test_training_without_windows_is_refused(training: Windows, validation: Windows) -> None:
    with pytest.raises(DataError, match="at least one window"):
        train(network(), training, validation, PACE, 0)


@pytest.mark.parametrize("error", [float("nan"), float("inf")])
def test_a_run_that_diverges_is_stopped_and_the_error_names_the_epoch(error: float) -> None:
    with pytest.raises(IBForecastError, match=r"training must stay finite \(got .* epoch 2\); lower the learning rate"):
        run_script([1.0, error, 1.0])


def test_a_disabled_profile_stays_at_zero() -> None:
    config = replace(network().config, profile=False)
    forecaster = IBForecast(config)
    train(forecaster, TRAINING, VALIDATION, PACE, 0)
    assert not forecaster.decompose.profile.any()


@pytest.mark.parametrize("before", [False, True])
def test_training_is_deterministic_and_restores_the_global_setting(before: bool) -> None:
    during: list[bool] = []
    torch.use_deterministic_algorithms(before)
    try:
        train(
            Scripted([1.0, 0.5, 0.2]),
            TRAINING,
            VALIDATION,
            PACE,
            seed=0,
            on_epoch=lambda *_: during.append(torch.are_deterministic_algorithms_enabled()),
        )
        assert during == [True, True, True]
        assert torch.are_deterministic_algorithms_enabled() == before
    finally:
        torch.use_deterministic_algorithms(False)


def test_epochs_are_compared_on_some_windows_and_the_best_is_measured_on_all() -> None:
    run = train(network(), TRAINING, VALIDATION, replace(PACE, validated=4), seed=3)
    forecaster = network()
    assert train(forecaster, TRAINING, VALIDATION.spaced(4), PACE, seed=3).history == run.history
    with torch.no_grad():
        window, target = VALIDATION.take(VALIDATION.starts)
        squares = (forecaster(window).values - target.values) ** 2
    assert run.best_error == pytest.approx(squares.mean().item())
    assert run.best_error != min(epoch.validation_error for epoch in run.history)


def test_an_epoch_of_few_steps_draws_other_windows_every_time() -> None:
    drawn: list[list[int]] = []

    class Noting(Walker):
        def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
            drawn.append(window.phase[:, 0].tolist())
            return super().loss(window, target, progress, generator)

    every = replace(TRAINING, phase=torch.arange(ROWS + HORIZON))
    train(Noting(), every, VALIDATION, TrainConfig(epochs=2, batch=10, fewest_steps=1, most_steps=3), seed=5)
    assert [len(batch) for batch in drawn] == [10] * 6
    first, second = ([start for batch in part for start in batch] for part in (drawn[:3], drawn[3:]))
    assert len(set(first)) == len(set(second)) == 30, "no window is drawn twice in an epoch"
    assert set(first) != set(second)


@pytest.mark.parametrize("has", [True, False])
def test_short_numbers_multiply_matrices_only_in_training_and_only_if_the_processor_has_them(
    monkeypatch: pytest.MonkeyPatch, has: bool
) -> None:
    monkeypatch.setattr("ibforecast.train.step.has_bfloat16", lambda: has)
    inside: set[tuple[bool, bool]] = set()

    class Noting(Walker):
        def forward(self, window: Window, held: Context | None = None) -> Forecast:
            inside.add((self.training, torch.is_autocast_enabled("cpu")))
            return super().forward(window, held)

        def loss(self, window: Window, target: Target, progress: Tensor, generator: torch.Generator) -> Loss:
            inside.add((self.training, torch.is_autocast_enabled("cpu")))
            return super().loss(window, target, progress, generator)

    train(Noting(), TRAINING, VALIDATION, replace(PACE, bfloat16=True), seed=1)
    assert inside == {(True, has), (False, False)}


def test_training_leaves_the_settings_of_torch_as_they_were() -> None:
    filling: Any = import_module("torch.utils.deterministic")
    before = (torch.are_deterministic_algorithms_enabled(), filling.fill_uninitialized_memory)
    train(network(), TRAINING, VALIDATION, PACE, seed=1)
    assert (torch.are_deterministic_algorithms_enabled(), filling.fill_uninitialized_memory) == before


def test_a_training_that_is_stopped_keeps_the_best_epoch_so_far() -> None:
    steps = 0

    def until() -> bool:
        nonlocal steps
        steps += 1
        return steps > 3

    whole = train(network(), TRAINING, VALIDATION, PACE, seed=3)
    stopped_early = network()
    run = train(stopped_early, TRAINING, VALIDATION, PACE, seed=3, until=until)
    assert run.stopped
    assert not whole.stopped
    assert run.history == whole.history[: len(run.history)]
    assert 1 <= len(run.history) < len(whole.history)
    one = network()
    train(one, TRAINING, VALIDATION, replace(PACE, epochs=3, patience=3), 3, until=lambda: True)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), stopped_early.parameters(), strict=True))


def test_a_training_that_is_hopeless_ends_with_the_best_epoch_so_far() -> None:
    given_up = network()
    run = train(given_up, TRAINING, VALIDATION, PACE, seed=3, hopeless=lambda history: len(history) == 2)
    whole = train(network(), TRAINING, VALIDATION, PACE, seed=3)
    assert len(whole.history) > 2
    assert run.history == whole.history[:2]
    assert not run.stopped, "nobody stopped it"


def test_the_absolute_error_of_a_training_is_that_of_its_best_epoch_on_all_validation_windows() -> None:
    forecaster = network()
    run = train(forecaster, TRAINING, VALIDATION, PACE, seed=3)
    assert (run.best_error, run.best_absolute_error) == pytest.approx(
        (accuracy(forecaster, VALIDATION).mse, accuracy(forecaster, VALIDATION).mae), rel=1e-5
    )


def test_the_first_epoch_is_finished_even_if_training_must_stop_at_once() -> None:
    run = train(network(), TRAINING, VALIDATION, PACE, seed=3, until=lambda: True)
    assert (len(run.history), run.best_epoch, run.stopped) == (1, 1, True)


def test_measuring_the_pace_draws_no_random_number_of_the_caller() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    for most_seconds in (0.0, 60.0):
        pace = pace_of(network(0.3), TRAINING, VALIDATION, PACE, most_seconds)
        assert min(pace.step, pace.window) > 0
    assert torch.equal(torch.rand(3), expected)


def test_an_epoch_takes_all_its_steps_and_the_windows_that_are_validated() -> None:
    pace, steps = Pace(2.0, 0.5), PACE.steps_of(len(TRAINING))
    assert pace.epoch(TRAINING, VALIDATION, PACE) == 2.0 * steps + 0.5 * len(VALIDATION)
    assert pace.epoch(TRAINING, VALIDATION, replace(PACE, validated=3, most_steps=1)) == 2.0 + 1.5


def test_at_a_deadline_a_needed_first_epoch_is_short_and_another_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    run_step = Step.run
    monkeypatch.setattr(Step, "run", lambda step, starts: steps.append(1) or run_step(step, starts))
    late = Deadline(time.perf_counter() - 60, 1.0)
    run = train(network(), TRAINING, VALIDATION, PACE, seed=3, deadline=late)
    assert (len(run.history), run.best_epoch, run.stopped, len(steps)) == (1, 1, True, 1)
    assert late.reached
    run = train(network(), TRAINING, VALIDATION, PACE, seed=3, deadline=late, needed=False)
    assert (run.history, run.best_epoch, run.best_error, run.stopped) == ((), 0, float("inf"), True)
    assert len(steps) == 1


def test_a_deadline_that_is_far_away_changes_nothing() -> None:
    plain, limited, deadline = network(), network(), Deadline(time.perf_counter(), 6000.0)
    expected = train(plain, TRAINING, VALIDATION, PACE, seed=3)
    assert train(limited, TRAINING, VALIDATION, PACE, seed=3, deadline=deadline) == expected
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), limited.parameters(), strict=True))
    assert deadline.tail > 0
