"""Training in stages: the contest between sealed, additive and choosing readers, and how it is resumed and stored."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from torch import Tensor

from ibforecast.core.sizes import Sizes
from ibforecast.data.windows import Windows
from ibforecast.model.config import ObjectiveConfig
from ibforecast.model.network import IBForecast
from ibforecast.model.reading import ChoosingForecast, SealedForecast
from ibforecast.train.checkpoint import Epoch
from ibforecast.train.config import TrainConfig
from ibforecast.train.deadline import AIM, Deadline
from ibforecast.train.loop import Pace, Training
from ibforecast.zoo.recipes import Recipe, resolve
from ibforecast.zoo.stages import (
    FEWEST_APART,
    FEWEST_EPOCHS,
    FEWEST_VALIDATED,
    LEAST_VARIED,
    STAGES,
    TAIL_SHARE,
    TRIAL_EPOCHS,
    USED_SHARE,
    Contest,
    Trained,
    additive_of,
    forget,
    sealed_of,
    stages,
    train_recipe,
    train_recipes_stacked,
    varied,
    within,
)

LOOK_BACK, HORIZON, CHANNELS, CYCLE, ROWS = 12, 3, 2, 4, 240
SIZES = Sizes(LOOK_BACK, HORIZON, CHANNELS, CYCLE)


def windows(starts: range) -> Windows:
    random = torch.Generator().manual_seed(0)
    values = torch.randn(ROWS, CHANNELS, generator=random).cumsum(dim=0) / 4
    return Windows(
        values=values,
        observed=torch.rand(ROWS, CHANNELS, generator=random) > 0.01,
        phase=torch.arange(ROWS + HORIZON) % CYCLE,
        starts=torch.tensor(starts),
        look_back=LOOK_BACK,
        horizon=HORIZON,
    )


TRAINING, VALIDATION = windows(range(150)), windows(range(150, 220))


def recipe(name: str, margin: float | None = None, epochs: int = 2) -> Recipe:
    """Return a recipe with a few short epochs in each stage, and no anchor, which is chosen after them."""
    resolved = resolve(name, SIZES, budget=0.5, readout={"width": 8}, objective={"loss": "mse"})
    short = replace(resolved.train, fewest_steps=2, batch=32, learning_rate=1e-2, anchor_margin=0.0).at_most(epochs)
    return replace(resolved, train=short if margin is None else replace(short, contest_margin=margin))


def trained(
    recipe: Recipe,
    checkpoint: Path | None = None,
    on_epoch: Callable[[int, Epoch, str], None] = lambda epoch, outcome, reader: None,
) -> Trained:
    return train_recipe(recipe, TRAINING, VALIDATION, 7, checkpoint, "identity", on_epoch)


def same_weights(one: Trained, other: Trained) -> bool:
    mine, theirs = one.forecaster.state_dict(), other.forecaster.state_dict()
    return mine.keys() == theirs.keys() and all(_same_bits(mine[name], theirs[name]) for name in mine)


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.numpy().tobytes() == other.numpy().tobytes()


def rigged(monkeypatch: pytest.MonkeyPatch, winner: str) -> None:
    """Let one of the three candidates win every contest."""
    monkeypatch.setattr(Contest, "gain", property(lambda contest: 1.0 if winner == "choosing" else -1.0))
    monkeypatch.setattr(Contest, "additive_wins", property(lambda contest: winner == "additive"))
    monkeypatch.setattr(Contest, "doubt", "")


@pytest.mark.parametrize("name", ["sealed", "additive"])
def test_a_sealed_reader_that_wins_the_contest_has_the_weights_of_its_own_recipe(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rigged(monkeypatch, name)
    default, sealed = trained(recipe("default")), trained(recipe(name))
    assert default.contest is not None
    assert default.contest.winner == name
    assert sealed.contest is None
    assert isinstance(default.forecaster, SealedForecast)
    assert same_weights(default, sealed)
    assert default.recipe.config == sealed.recipe.config
    assert default.recipe.train == sealed.recipe.train
    before = 2 if name == "additive" else 0
    assert default.training.best_epoch == before + sealed.training.best_epoch
    assert len(default.training.history) == before + 2


def test_a_choosing_reader_that_wins_the_contest_has_the_weights_of_the_choosing_recipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rigged(monkeypatch, "choosing")
    default, choosing = trained(recipe("default")), trained(recipe("choosing"))
    assert choosing.contest is None
    assert isinstance(choosing.forecaster, ChoosingForecast)
    assert same_weights(default, choosing)
    assert default.recipe.config == choosing.recipe.config
    assert default.recipe.train == choosing.recipe.train
    assert default.training.best_epoch == choosing.training.best_epoch > 2


@pytest.mark.parametrize("winner", ["sealed", "choosing"])
def test_the_first_stage_is_kept_if_the_second_is_worse_unless_a_choosing_reader_was_requested(
    monkeypatch: pytest.MonkeyPatch, winner: str
) -> None:
    rigged(monkeypatch, winner)
    second = vars(TrainConfig)["second"].fget
    monkeypatch.setattr(TrainConfig, "second", property(lambda train: replace(second(train), learning_rate=3.0)))
    default, choosing = trained(recipe("default")), trained(recipe("choosing"))
    assert isinstance(default.forecaster, SealedForecast)
    assert default.recipe.config == sealed_of(recipe("default")).config
    assert default.training.best_epoch <= 2
    assert isinstance(choosing.forecaster, ChoosingForecast)
    assert choosing.training.best_epoch > 2


def test_the_winner_is_determined_by_the_margin() -> None:
    assert Contest(1.0, 0.97, 0.02, 3.0).winner == "choosing"
    assert Contest(1.0, 0.985, 0.02, 3.0).winner == "sealed"
    assert Contest(1.0, 1.2, 0.02, 3.0).winner == "sealed"
    assert Contest(0.0, 0.0, 0.02, 3.0).winner == "sealed"


def test_an_additive_reader_takes_the_place_of_the_sealed_one_if_it_is_better_by_the_margin() -> None:
    assert Contest(1.0, 1.2, 0.02, 3.0, 1.01, 0.05).winner == "sealed"
    assert Contest(1.0, 1.2, 0.02, 3.0, 0.96, 0.05).winner == "sealed"
    assert Contest(1.0, 1.2, 0.02, 3.0, 0.94, 0.05).winner == "additive"
    assert Contest(1.0, 0.97, 0.02, 3.0, 0.96, 0.05).winner == "choosing", "it is compared with the sealed one"
    assert Contest(1.0, 0.93, 0.02, 3.0, 0.94, 0.05).winner == "additive", "choosing is 1 % better than the better one"
    assert Contest(1.0, 0.9, 0.02, 3.0, 0.94, 0.05).winner == "choosing"
    assert Contest(1.0, 1.0, 0.02, 3.0, 0.0, 0.05).winner == "additive"


def history(*errors: float) -> tuple[Epoch, ...]:
    return tuple(Epoch(0.0, 0.2, error, 1e-3) for error in errors)


def test_an_additive_candidate_is_given_up_if_it_is_not_ahead_at_the_end_of_its_trial() -> None:
    first = (*[2.0] * (TRIAL_EPOCHS - 1), 1.0, 0.5)
    plan = stages(recipe("default", epochs=24), 7, VALIDATION)
    assert next(plan).name == ""
    stage = plan.send(Training(history(*first), len(first), 0.5, 0.6))
    assert (stage.name, stage.done, stage.seed(7)) == (".additive", len(first), 7)
    assert stage.forecaster.config == additive_of(sealed_of(recipe("default", epochs=24))).config
    behind, ahead = [3.0] * (TRIAL_EPOCHS - 1), [3.0] * (TRIAL_EPOCHS - 2)
    assert not stage.hopeless(history(*behind)), "the trial is not over"
    assert stage.hopeless(history(*behind, 0.96))
    assert not stage.hopeless(history(*behind, 0.94))
    assert not stage.hopeless(history(*ahead, 0.9, 4.0))
    assert not stage.hopeless(history(*behind, 1.1, 1.1)), "it is judged once"


@pytest.mark.parametrize(
    ("errors", "absolute", "additive"),
    [
        ([0.9] * 10, 0.4, 0.9**0.5 * 0.4 / 0.5),  # at the end: squared errors, and the squares of absolute ones
        ([1.5] * TRIAL_EPOCHS, 0.1, 1.5),  # given up: squared errors at the end of the trial
        ([0.0] * 10, 0.0, 0.0),
    ],
)
def test_an_additive_candidate_is_compared_by_both_errors_or_where_it_was_given_up(
    errors: list[float], absolute: float, additive: float
) -> None:
    plan, done = stages(recipe("default", epochs=24), 7, VALIDATION), Training(history(1.0, 1.0), 2, 1.0, 1.0)
    next(plan)
    plan.send(Training(history(*[1.0] * 12), 12, 1.0, 0.5))
    plan.send(Training(history(*errors), len(errors), errors[-1], absolute))
    plan.send(done)
    with pytest.raises(StopIteration) as end:
        plan.send(done)
    assert end.value.value.contest.additive == pytest.approx(additive)
    assert end.value.value.contest.winner == ("additive" if additive < 0.95 else "sealed")


@pytest.mark.parametrize(
    ("choosing", "additive", "words"),
    [
        (
            0.9,
            None,
            "choosing: a choosing reader was 10.0% better, more than the 2% that the weaker promise must be worth; "
            "2 candidates, 12 s",
        ),
        (
            0.985,
            None,
            "sealed: a choosing reader was 1.5% better, not worth the weaker promise (margin 2%); 2 candidates, 12 s",
        ),
        (
            1.25,
            0.96,
            "sealed: an additive readout was 4.0% better, not enough (margin 5%); a choosing reader was 25.0% worse; "
            "3 candidates, 12 s",
        ),
        (
            1.25,
            1.05,
            "sealed: an additive readout was 5.0% worse; a choosing reader was 25.0% worse; 3 candidates, 12 s",
        ),
        (
            0.98,
            0.8,
            "additive: an additive readout was 20.0% better; a choosing reader was 22.5% worse; 3 candidates, 12 s",
        ),
    ],
)
def test_a_contest_says_who_won_and_why(choosing: float, additive: float | None, words: str) -> None:
    assert str(Contest(1.0, choosing, 0.02, 12.3, additive, 0.05)) == words


def test_a_choosing_reader_never_wins_on_few_windows_or_with_the_same_mask_in_all() -> None:
    enough = Contest(1.0, 0.9, 0.02, 12.0, windows=FEWEST_APART, varied=LEAST_VARIED)
    assert enough.winner == "choosing"
    few, alike = replace(enough, windows=1), replace(enough, varied=LEAST_VARIED / 2)
    assert (few.winner, alike.winner) == ("sealed", "sealed")
    assert str(few) == (
        "sealed: a choosing reader was 10.0% better, but the stronger promise is kept by rule: there are "
        "fewer than 25 validation windows without overlap (1); 2 candidates, 12 s"
    )
    assert "kept by rule: it reads the same places in nearly every validation window; 2 candidates" in str(alike)
    additive = replace(few, additive=0.9, additive_margin=0.05, choosing=0.8)
    assert additive.winner == "additive", "it has the stronger promise, too"
    assert "rule" not in str(replace(few, choosing=1.1)), "it lost without the rule"


def generous(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every choosing candidate be better by far, and no additive one."""
    monkeypatch.setattr(Contest, "gain", 0.5)
    monkeypatch.setattr(Contest, "additive_wins", False)


def test_with_few_validation_windows_a_fit_stays_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    generous(monkeypatch)
    assert VALIDATION.apart() < FEWEST_APART
    outcome = trained(recipe("default"))
    assert isinstance(outcome.forecaster, SealedForecast)
    assert outcome.contest is not None
    assert (outcome.contest.windows, outcome.contest.varied) == (VALIDATION.apart(), None)
    assert same_weights(outcome, trained(recipe("sealed")))


@pytest.mark.parametrize(
    ("variety", "sealed"), [([0.5, 0.5], False), ([0.0], True), ([0.5, 0.0], True)], ids=["varied", "never", "later"]
)
def test_a_choosing_reader_whose_mask_hardly_changes_gives_way_to_a_sealed_one(
    monkeypatch: pytest.MonkeyPatch, variety: list[float], sealed: bool
) -> None:
    generous(monkeypatch)
    monkeypatch.setattr("ibforecast.zoo.stages.FEWEST_APART", 2)
    left = list(variety)
    monkeypatch.setattr("ibforecast.zoo.stages.varied", lambda reader, windows: left.pop(0))
    second = replace(recipe("default"), train=replace(recipe("default", epochs=4).train, epochs=2))
    outcome = trained(second)
    assert left == []
    assert outcome.contest is not None
    assert outcome.contest.varied == variety[-1]
    assert outcome.contest.winner == ("sealed" if sealed else "choosing")
    if sealed:
        assert isinstance(outcome.forecaster, SealedForecast)


def test_the_mask_of_a_sealed_reader_does_not_change_and_that_of_a_choosing_one_may() -> None:
    whole = replace(VALIDATION, observed=torch.ones_like(VALIDATION.observed))
    assert varied(recipe("sealed").build(1).eval(), whole) == 0.0
    choosing = recipe("choosing").build(1).eval()
    masks = torch.zeros(70, 4, 2)
    masks[:, 0] = 1.0
    masks[0, 0, 0], masks[0, 3, 0] = 0.0, 1.0  # one of two open tokens, in one of seventy windows
    read = iter(masks[:, None])
    assert isinstance(choosing, ChoosingForecast)
    object.__setattr__(choosing, "read", lambda window: SimpleNamespace(mask=torch.cat(list(read))))
    assert varied(choosing, whole) == pytest.approx(0.5 / 70, abs=1e-6)


def test_a_contest_compares_the_best_errors_of_both_candidates() -> None:
    epochs: list[tuple[int, Epoch]] = []
    readers: list[str] = []

    def note(epoch: int, outcome: Epoch, reader: str) -> None:
        epochs.append((epoch, outcome))
        readers.append(reader)

    outcome = trained(recipe("default", margin=0.5), on_epoch=note)
    assert readers == [
        name for name in ("", "additive candidate", "sealed candidate", "choosing candidate") for _ in range(2)
    ]
    assert [epoch for epoch, _ in epochs] == list(range(1, 9)), "a sealed reader that wins needs no second stage"
    errors = [outcome.validation_error for _, outcome in epochs]
    assert outcome.contest is not None
    assert (outcome.contest.sealed, outcome.contest.choosing) == (min(errors[4:6]), min(errors[6:8]))
    assert outcome.contest.seconds == pytest.approx(sum(outcome.seconds for _, outcome in epochs[2:8]), abs=1e-3)
    kept = errors[:4] if outcome.contest.additive_wins else errors[:2]
    assert [epoch.validation_error for epoch in outcome.training.history] == kept
    assert outcome.training.best_error == min(kept[-2:])


@pytest.mark.parametrize(
    ("winner", "last"),
    [
        *(("sealed", last) for last in (1, 3, 7)),
        ("additive", 3),
        ("additive", 5),
        *(("choosing", n) for n in (1, 5, 8, 9)),
    ],
)
def test_a_training_that_was_interrupted_in_any_stage_ends_with_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, winner: str, last: int
) -> None:
    rigged(monkeypatch, winner)
    checkpoint = tmp_path / "run"

    def stop(epoch: int, outcome: Epoch, reader: str) -> None:
        if epoch == last:
            raise KeyboardInterrupt

    expected = trained(recipe("default"))
    with pytest.raises(KeyboardInterrupt):
        trained(recipe("default"), checkpoint, stop)
    seen: list[int] = []
    resumed = trained(recipe("default"), checkpoint, lambda epoch, outcome, reader: seen.append(epoch))
    assert seen == list(range(last + 1, 11 if winner == "choosing" else 9))
    assert same_weights(resumed, expected)
    assert resumed.training.best_epoch == expected.training.best_epoch
    assert resumed.recipe.config == expected.recipe.config
    assert resumed.contest is not None
    assert expected.contest is not None
    assert replace(resumed.contest, seconds=0.0) == replace(expected.contest, seconds=0.0)


def test_forgetting_a_checkpoint_removes_the_files_of_all_its_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rigged(monkeypatch, "choosing")
    checkpoint = tmp_path / "run"
    (tmp_path / "runner").write_text("of somebody else")
    trained(recipe("default", epochs=1), checkpoint)
    assert {path.name for path in tmp_path.iterdir()} == {"runner", *(f"run{stage}" for stage in STAGES)}
    forget(checkpoint)
    forget(checkpoint)
    assert [path.name for path in tmp_path.iterdir()] == ["runner"]


def test_a_recipe_without_a_second_stage_is_trained_once() -> None:
    single = recipe("sealed")
    outcome = trained(replace(single, train=replace(single.train, second_epochs=0)))
    assert len(outcome.training.history) == 2
    assert outcome.contest is None


def test_a_recipe_with_open_gates_reads_everything_in_both_stages() -> None:
    choosing = recipe("choosing")
    gate, silent = replace(choosing.config.gate, kind="open"), ObjectiveConfig(0.0, consistency_weight=0.0)
    dense = replace(choosing, config=replace(choosing.config, budget=1.0, gate=gate, objective=silent))
    outcome = trained(dense)
    assert outcome.recipe.config == dense.config
    window, _ = next(VALIDATION.batches(8))
    for forecaster in (outcome.forecaster, sealed_of(dense).build(0).eval()):
        assert isinstance(forecaster, IBForecast)
        mask = forecaster.read(window).mask
        assert torch.equal(mask, window.observed)


def test_a_sealed_recipe_is_its_own_sealed_counterpart() -> None:
    sealed = recipe("sealed")
    assert sealed_of(sealed) is sealed
    assert sealed_of(recipe("choosing")).config == sealed.config


def measured(monkeypatch: pytest.MonkeyPatch, sealed: float, choosing: float, window: float = 0.0) -> None:
    """Let a step of a sealed reader, whatever its readout, and of a choosing one take these seconds; stop the clock."""
    monkeypatch.setattr("time.perf_counter", lambda: 0.0)
    monkeypatch.setattr(
        "ibforecast.zoo.stages.pace_of",
        lambda forecaster, *_: Pace(choosing if isinstance(forecaster, ChoosingForecast) else sealed, window),
    )


def stepping(name: str) -> Recipe:
    """Return a recipe whose epochs have one step, so that both take as long."""
    resolved = resolve(name, SIZES)
    return replace(resolved, train=replace(resolved.train, most_steps=1))


@given(some.floats(0.01, 1e4), some.floats(0.001, 60), some.floats(1, 8), some.floats(0, 0.01))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_recipe_within_a_time_is_as_long_as_the_time_allows(
    monkeypatch: pytest.MonkeyPatch, seconds: float, sealed: float, times: float, window: float
) -> None:
    measured(monkeypatch, sealed, sealed * times, window)
    default, limit = stepping("default"), Deadline(0.0, seconds)
    limited, validation = within(default, TRAINING, VALIDATION, limit)
    pace, validated = limited.train, window * len(validation)
    contest = pace.contest.epochs * (1 + times) * sealed if pace.contest_margin else 0.0
    planned = pace.epochs * (1 + bool(pace.additive_margin)) * sealed + contest + pace.second_epochs * times * sealed
    assert planned + limit.tail <= limit.left * USED_SHARE * (1 + 1e-9) or 1 in (pace.epochs, pace.second_epochs)
    assert limit.tail <= TAIL_SHARE * limit.left * (1 + 1e-9) or len(validation) == FEWEST_VALIDATED
    assert pace.contest_margin == 0 or pace.epochs >= FEWEST_EPOCHS
    assert pace.epochs <= default.train.epochs
    enough = 72 * (sealed + validated) + 2 * ((1 + times) * sealed + 2 * validated) + 12 * (sealed * times + validated)
    if limit.left * USED_SHARE - limit.tail >= (enough + 2 * validated) * (1 + 1e-9):
        assert pace == default.train


def test_a_reader_without_time_for_a_contest_is_sealed_and_one_chosen_by_hand_chooses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(monkeypatch, 1.0, 3.0)
    short, _ = within(stepping("default"), TRAINING, VALIDATION, Deadline(0.0, 20.0))
    assert short.config == sealed_of(resolve("default", SIZES)).config
    assert short.train == replace(stepping("sealed").train, epochs=int(20 * AIM * USED_SHARE))
    by_hand, _ = within(stepping("choosing"), TRAINING, VALIDATION, Deadline(0.0, 20.0))
    assert by_hand.config.chooses
    assert by_hand.train.second_epochs >= 1


@pytest.mark.parametrize("last", [1, 3, 5, 7])
def test_a_training_stopped_before_the_second_stage_keeps_the_sealed_reader(last: int) -> None:
    seen: list[int] = []
    outcome = train_recipe(
        recipe("default"),
        TRAINING,
        VALIDATION,
        7,
        on_epoch=lambda epoch, outcome, reader: seen.append(epoch),
        until=lambda: len(seen) >= last,
    )
    assert outcome.contest is None
    assert str(outcome.no_contest) == (
        "sealed by rule: the contest has no outcome, because the fit was stopped before it ended"
    )
    assert isinstance(outcome.forecaster, SealedForecast)
    assert outcome.training.stopped
    assert outcome.recipe.train.second_epochs == 0
    if last > 1:
        assert same_weights(outcome, trained(recipe("sealed")))


def test_stacked_models_take_part_in_the_same_contests_as_on_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, seeds, default = (TRAINING, VALIDATION), (7, 8, 9), recipe("default")
    default = replace(default, train=replace(default.train, bfloat16=False))
    alone = [train_recipe(default, *parts, seed) for seed in seeds]
    best = min(one.contest.choosing for one in alone if one.contest)
    # Only the best candidate wins, so that the models of the stack go different ways.
    wins = property(lambda contest: 1.0 if contest.choosing == pytest.approx(best, rel=1e-4) else -1.0)
    monkeypatch.setattr(Contest, "gain", wins)
    monkeypatch.setattr(Contest, "additive_wins", property(lambda contest: False))
    monkeypatch.setattr(Contest, "doubt", "")
    alone = [train_recipe(default, *parts, seed) for seed in seeds]
    stacked = train_recipes_stacked(default, [parts] * 3, seeds)
    assert {type(one.forecaster) for one in alone} == {SealedForecast, ChoosingForecast}
    for one, other in zip(alone, stacked, strict=True):
        assert isinstance(other, Trained)
        assert type(other.forecaster) is type(one.forecaster)
        assert other.recipe == one.recipe
        assert len(other.training.history) == len(one.training.history)
        assert other.training.best_error == pytest.approx(one.training.best_error, rel=0.02)


def test_stacked_models_get_the_anchors_that_they_get_on_their_own() -> None:
    sealed, seeds = recipe("sealed"), (7, 8)
    sealed = replace(sealed, train=replace(sealed.train, anchor_margin=1e-4, bfloat16=False))
    for seed, stacked in zip(
        seeds, train_recipes_stacked(sealed, [(TRAINING, VALIDATION)] * len(seeds), seeds), strict=True
    ):
        alone = train_recipe(sealed, TRAINING, VALIDATION, seed)
        assert isinstance(stacked, Trained)
        assert stacked.recipe == alone.recipe
        assert stacked.recipe.config.anchored
        blends = (one.forecaster.state_dict()["decompose.anchor.blend"] for one in (stacked, alone))
        assert torch.equal(*blends)
