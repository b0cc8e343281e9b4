"""Matched-budget fidelity, compared with loops and checked on maps that are known to be right or wrong."""

from dataclasses import replace
from itertools import pairwise
from math import floor, isnan, sqrt
from typing import Literal, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ibforecast.core.chosen import evenly_spaced
from ibforecast.core.context import Context
from ibforecast.core.contracts import Predictor
from ibforecast.core.errors import UsageError
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.tokens import spread
from ibforecast.core.window import Window
from ibforecast.evaluate.fidelity import (
    Aggregate,
    Fidelity,
    Measure,
    Shift,
    Shifts,
    Space,
    every_fidelity,
    every_shift,
    native_importance,
    native_points,
    perturb,
    top_points,
)
from ibforecast.explain.guest import Guest
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast

BATCH, LOOK_BACK, HORIZON, CHANNELS, PATCH_LEN, CYCLE = 9, 12, 5, 3, 3, 4
modest = settings(max_examples=30, deadline=None, derandomize=True)


def make_window(batch: int = BATCH, missing: float = 0.0, seed: int = 0, dtype: torch.dtype = torch.float32) -> Window:
    random = torch.Generator().manual_seed(seed)
    values = 3 + 2 * torch.randn(batch, LOOK_BACK, CHANNELS, generator=random, dtype=dtype)
    observed = torch.rand(values.shape, generator=random) >= missing
    phase = (torch.randint(0, CYCLE, (batch, 1), generator=random) + torch.arange(LOOK_BACK + HORIZON)) % CYCLE
    return Window(values.where(observed, torch.zeros((), dtype=dtype)), observed, phase)


def network(kind: str = "exact", budget: float = 0.4, seed: int = 3) -> IBForecast:
    config = ModelConfig(
        LOOK_BACK,
        HORIZON,
        CHANNELS,
        CYCLE,
        patch_len=PATCH_LEN,
        budget=budget,
        gate=GateConfig(kind=kind, width=4, heads=2),  # type: ignore[arg-type]
        readout=ReadoutConfig(width=6),
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        forecaster = IBForecast(config)
        with torch.no_grad():
            for parameter in forecaster.parameters():
                parameter.add_(0.4 * torch.randn_like(parameter))
    return forecaster.eval()


@torch.no_grad()
def explain(forecaster: IBForecast, window: Window) -> Explanation:
    explanation: Explanation = forecaster(window).explanation
    return explanation


class Planted(Predictor):
    """A predictor that reads a few cells of the framed window, and records the windows it reads."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(7)
        self.cells = torch.rand(LOOK_BACK, CHANNELS, generator=random).argsort(dim=0) < 2
        self.weights = (1 + torch.rand(LOOK_BACK, CHANNELS, generator=random, dtype=dtype)) * self.cells
        self.curve = torch.linspace(1, 2, HORIZON, dtype=dtype)
        self.shown: list[tuple[Window, Context | None]] = []

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        self.shown.append((window, held))
        context = held or self.context(window)
        read = (context.remove(window.values) * self.weights).sum(dim=1)
        return Forecast(context.restore(read[:, None] * self.curve[:, None]))

    def context(self, window: Window) -> Context:
        level, scale = window.values.mean(dim=1), window.values.std(dim=1)
        return Context(level, scale, window.phase, torch.zeros(1, CHANNELS, dtype=window.values.dtype))

    @property
    def truth(self) -> Tensor:
        return self.cells.to(self.weights.dtype).expand(BATCH, -1, -1)


def same_count(count: int, batch: int = BATCH) -> Tensor:
    return torch.full((batch,), count)


def default_fidelity(predictor: Predictor, window: Window, importance: Tensor, points: Tensor) -> Fidelity:
    return perturb(predictor, window, importance, points).shifts().fidelity()


@modest
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(0, LOOK_BACK * CHANNELS + 3))
def test_the_top_points_are_the_largest_observed_ones_and_ties_go_to_the_earlier(
    seed: int, levels: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    importance = random.integers(0, levels, (2, LOOK_BACK, CHANNELS)).astype(np.float32)
    observed = random.random(importance.shape) > 0.2
    marked = top_points(torch.from_numpy(importance), torch.from_numpy(observed), torch.tensor([count, count // 2]))
    for row, allowed in enumerate([count, count // 2]):
        cells = [place for place in np.ndindex(LOOK_BACK, CHANNELS) if observed[row][place]]
        first = sorted(cells, key=lambda place: (-importance[row][place], place))[:allowed]
        assert {tuple(place) for place in marked[row].nonzero().tolist()} == set(first)


def test_a_map_that_contains_nan_is_refused() -> None:
    importance = torch.full((BATCH, LOOK_BACK, CHANNELS), torch.nan)
    with pytest.raises(UsageError, match="finite"):
        top_points(importance, torch.ones_like(importance, dtype=torch.bool), same_count(3))


@modest
@given(st.integers(1, 3000), st.integers(1, 20_000))
def test_chosen_windows_are_evenly_spaced_from_the_first_to_the_last(count: int, total: int) -> None:
    chosen = evenly_spaced(count, total).tolist()
    assert len(set(chosen)) == len(chosen) == min(count, total)
    assert chosen[0] == 0
    if len(chosen) > 1:
        assert chosen[-1] == total - 1
        steps = {after - before for before, after in pairwise(chosen)}
        assert steps <= {floor((total - 1) / (len(chosen) - 1)), floor((total - 1) / (len(chosen) - 1)) + 1}


def test_the_chosen_windows_are_exact_despite_rounding() -> None:
    assert evenly_spaced(256, 11425).tolist() == [place * 11424 // 255 for place in range(256)]
    assert 11424 % 255 != 0
    assert evenly_spaced(1, 5).tolist() == [0]
    with pytest.raises(UsageError, match="count"):
        evenly_spaced(0, 5)


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(("kind", "budget"), [("open", 1.0), ("newest", 0.5)])
def test_a_mask_that_does_not_depend_on_the_window_scores_one_and_zero(
    kind: str, budget: float, missing: float
) -> None:
    forecaster, window = network(kind, budget), make_window(missing=missing)
    explanation = explain(forecaster, window)
    assert (explanation.open_count > 0).all()
    rows = every_fidelity([every_shift(forecaster, window, native_importance(explanation), native_points(explanation))])
    for row in rows:
        assert (row.fidelity.comprehensiveness, row.fidelity.sufficiency) == (1, 0)
        assert row.fidelity.score == row.fidelity.clipped_score == 1


@modest
@given(st.integers(0, 10**6), st.sampled_from(["exact", "threshold", "capped"]), st.sampled_from([0.0, 0.15]))
def test_with_the_mask_held_the_native_map_scores_exactly_one_and_zero(seed: int, kind: str, missing: float) -> None:
    forecaster, window = network(kind, 0.5, seed), make_window(missing=missing, seed=seed)
    explanation = explain(forecaster, window)
    shifts = every_shift(forecaster, window, native_importance(explanation), native_points(explanation))
    for measure, measured in shifts.items():
        if measure.gating == "frozen":
            assert torch.equal(measured.deleted, measured.all_deleted)
            assert not measured.kept.any()
            if measured.all_deleted.any():
                fidelity = measured.fidelity()
                scores = fidelity.comprehensiveness, fidelity.clipped_comprehensiveness, fidelity.sufficiency
                assert scores == (1, 1, 0)


def test_gates_that_run_again_react_to_deleted_values() -> None:
    forecaster, window = network(), make_window()
    explanation = explain(forecaster, window)
    fidelity = default_fidelity(forecaster, window, native_importance(explanation), native_points(explanation))
    assert fidelity.comprehensiveness != 1
    assert fidelity.sufficiency > 0


def test_a_true_map_scores_one_and_zero_its_reverse_zero_and_one_and_chance_is_between() -> None:
    predictor, window = Planted(), make_window()
    points = same_count(int(predictor.cells.sum()))
    right = default_fidelity(predictor, window, predictor.truth, points)
    assert (right.comprehensiveness, right.sufficiency) == pytest.approx((1, 0), abs=1e-6)
    wrong = default_fidelity(predictor, window, 1 - predictor.truth, points)
    assert (wrong.comprehensiveness, wrong.sufficiency) == pytest.approx((0, 1), abs=1e-6)
    for seed in range(5):
        chance = torch.rand(window.values.shape, generator=torch.Generator().manual_seed(seed))
        assert wrong.score < default_fidelity(predictor, window, chance, points).score < right.score


def test_a_map_of_no_points_scores_zero_and_one() -> None:
    forecaster, window = network(), make_window()
    shifts = every_shift(forecaster, window, torch.rand(window.values.shape), same_count(0))
    for row in every_fidelity([shifts]):
        assert (row.fidelity.comprehensiveness, row.fidelity.sufficiency) == (0, 1)


def by_hand(forecasts: list[Tensor], scale: Tensor, shift: Shift, space: Space) -> list[list[float]]:
    """Return the shifts of the last three forecasts from the first, window by window."""
    first, *others = (forecast.double().numpy() for forecast in forecasts)
    shifts = []
    for other in others:
        sizes = []
        for row in range(len(first)):
            moved = [
                (other[row, h, c] - first[row, h, c]) / (float(scale[row, c]) if space == "frame" else 1)
                for h in range(HORIZON)
                for c in range(CHANNELS)
            ]
            if shift == "squared":
                sizes.append(sum(m * m for m in moved) / len(moved))
            elif shift == "absolute":
                sizes.append(sum(abs(m) for m in moved) / len(moved))
            else:
                sizes.append(sqrt(sum(m * m for m in moved)))
        shifts.append(sizes)
    return shifts


def averaged(deleted: list[float], kept: list[float], none: list[float], aggregate: Aggregate) -> tuple[float, ...]:
    clipped = [min(d, n) for d, n in zip(deleted, none, strict=True)]
    if aggregate == "ratio_of_means":
        return tuple(sum(part) / sum(none) for part in (deleted, clipped, kept))
    enough = [row for row, n in enumerate(none) if n > 1e-3 * sum(none) / len(none)]
    return tuple(sum(part[row] / none[row] for row in enough) / len(enough) for part in (deleted, clipped, kept))


@torch.no_grad()
def test_every_measure_follows_its_formula() -> None:
    forecaster, window = network(), make_window(missing=0.05)
    importance = torch.rand(window.values.shape, generator=torch.Generator().manual_seed(1))
    points = torch.randint(0, 20, (BATCH,), generator=torch.Generator().manual_seed(2))
    explanation = explain(forecaster, window)
    held = explanation.context
    top, reference = top_points(importance, window.observed, points), held.reference(LOOK_BACK)
    shown = [window.values, window.values.where(~top, reference), reference.where(~top, window.values), reference]
    regated = [forecaster(replace(window, values=values), held).values for values in shown]
    opened = spread(explanation.mask, PATCH_LEN)
    frozen = [
        forecaster.replay(replace(explanation, evidence=held.remove(values).masked_fill(~opened, 0.0)))
        for values in shown
    ]
    rows = every_fidelity([every_shift(forecaster, window, importance, points)])
    assert len(rows) == 2 * 2 * 3 * 2
    assert len({(row.measure, row.aggregate) for row in rows}) == len(rows)
    for row in rows:
        forecasts = regated if row.measure.gating == "regated" else frozen
        sizes = by_hand(forecasts, held.scale, row.measure.shift, row.measure.space)
        expected = averaged(*sizes, row.aggregate)
        fidelity = row.fidelity
        scores = fidelity.comprehensiveness, fidelity.clipped_comprehensiveness, fidelity.sufficiency
        assert scores == pytest.approx(expected)
        assert fidelity.score == pytest.approx(expected[0] - expected[2])
        assert fidelity.clipped_score == pytest.approx(expected[1] - expected[2])


def test_all_measures_share_four_forecasts_and_four_replays() -> None:
    class Counting(IBForecast):
        forwards, replays = 0, 0

        def forward(self, window: Window, held: Context | None = None) -> Forecast:
            self.forwards += 1
            return super().forward(window, held)

        def replay(self, explanation: Explanation) -> Tensor:
            self.replays += 1
            return super().replay(explanation)

    forecaster = Counting(network().config).eval()
    every_shift(forecaster, make_window(), torch.rand(BATCH, LOOK_BACK, CHANNELS), same_count(6))
    assert forecaster.forwards == 4 + 1  # one more for the mask that is held
    assert forecaster.replays == 4 + 5


def test_context_observations_and_phase_are_held() -> None:
    predictor, window = Planted(), make_window(missing=0.2)
    context = predictor.context(window)
    perturb(predictor, window, predictor.truth, same_count(4))
    assert len(predictor.shown) == 4
    for shown, held in predictor.shown:
        assert held is not None
        assert torch.equal(held.level, context.level)
        assert torch.equal(held.scale, context.scale)
        assert torch.equal(shown.observed, window.observed)
        assert torch.equal(shown.phase, window.phase)
    whole, deleted, kept, nothing = (shown.values for shown, _ in predictor.shown)
    reference = context.reference(LOOK_BACK)
    assert torch.equal(whole, window.values)
    assert torch.equal(nothing, reference)
    changed = (deleted != window.values).flatten(1).sum(dim=1)
    assert torch.equal(changed, (kept == window.values).flatten(1).sum(dim=1))
    assert ((deleted == window.values) | (deleted == reference)).all()


@modest
@given(st.integers(0, 1000), st.floats(0.1, 50), st.floats(-100, 100))
def test_in_frame_units_the_scale_of_the_data_does_not_matter(seed: int, scale: float, level: float) -> None:
    predictor, window = Planted(torch.float64), make_window(seed=seed, dtype=torch.float64)
    factors = torch.tensor([scale, 1.0, 1 / scale], dtype=torch.float64)
    moved = replace(window, values=window.values * factors + level)
    importance = torch.rand(window.values.shape, generator=torch.Generator().manual_seed(seed))
    here, there = (perturb(predictor, shown, importance, same_count(5)) for shown in (window, moved))
    for shift in get_args(Shift):
        for one, other in zip(vars(here.shifts(shift)).values(), vars(there.shifts(shift)).values(), strict=True):
            assert one.tolist() == pytest.approx(other.tolist(), rel=1e-6, abs=1e-9)
    alike = replace(window, values=window.values * scale + level)
    output = perturb(predictor, alike, importance, same_count(5)).shifts("squared", "output")
    assert output.deleted.tolist() == pytest.approx((scale**2 * here.shifts(space="output").deleted).tolist(), rel=1e-6)


def test_clipping_is_done_window_by_window() -> None:
    shifts = Shifts(torch.tensor([3.0, 0.0]).double(), torch.tensor([0.0, 1.0]).double(), torch.ones(2).double())
    for aggregate in get_args(Aggregate):
        fidelity = shifts.fidelity(aggregate)
        assert fidelity.comprehensiveness == 1.5
        assert (
            fidelity.clipped_comprehensiveness == 0.5
        )  # not min(1.5, 1): an excess in one window does not help another
        assert (fidelity.sufficiency, fidelity.score, fidelity.clipped_score) == (0.5, 1.0, 0.0)


def test_a_window_that_hardly_moves_is_left_out_of_the_mean_of_ratios_and_is_counted() -> None:
    shifts = Shifts(*(torch.tensor(values).double() for values in ([1.0, 1.0, 5.0], [0.0, 0.0, 5.0], [1.0, 1.0, 1e-6])))
    guarded = shifts.fidelity("mean_of_ratios")
    assert (guarded.comprehensiveness, guarded.sufficiency, guarded.windows, guarded.left_out) == (1, 0, 3, 1)
    assert shifts.fidelity("mean_of_ratios", smallest_share=0.0).comprehensiveness > 1e6
    plain = shifts.fidelity()
    assert plain.comprehensiveness == pytest.approx(7 / 2, rel=1e-5)
    assert plain.left_out == 0


def test_every_window_counts_once_at_any_batch_size() -> None:
    predictor, window = Planted(torch.float64), make_window(dtype=torch.float64)
    importance = torch.rand(window.values.shape, generator=torch.Generator().manual_seed(0))
    points = torch.arange(BATCH) + 2

    def in_batches(size: int) -> list[Fidelity]:
        parts = [
            every_shift(
                predictor,
                Window(window.values[rows], window.observed[rows], window.phase[rows]),
                importance[rows],
                points[rows],
            )
            for rows in (slice(first, first + size) for first in range(0, BATCH, size))
        ]
        return [row.fidelity for row in every_fidelity(parts)]

    whole = in_batches(BATCH)
    for size in (1, 4):
        for one, other in zip(in_batches(size), whole, strict=True):
            assert vars(one) == pytest.approx(vars(other))
            assert one.windows == BATCH


def test_fidelity_is_nan_if_no_forecast_moves() -> None:
    still = Shifts(*(torch.zeros(3).double() for _ in range(3)))
    for aggregate in get_args(Aggregate):
        fidelity = still.fidelity(aggregate)
        assert isnan(fidelity.comprehensiveness)
        assert isnan(fidelity.sufficiency)
        assert isnan(fidelity.score)


def test_open_tokens_rank_above_equally_probable_tokens_outside_the_budget() -> None:
    forecaster, window = network("threshold", 0.25), make_window()
    with torch.no_grad():
        forecaster.score.bias += 60  # type: ignore[operator]  # every probability is 1 in float32
    explanation = explain(forecaster, window)
    assert (explanation.probability == 1).all()
    top = top_points(native_importance(explanation), window.observed, native_points(explanation))
    assert torch.equal(top, spread(explanation.mask, PATCH_LEN))


def test_a_predictor_without_a_mask_is_measured_only_with_regating() -> None:
    guest = Guest(lambda values: values[:, -HORIZON:].cumsum(dim=1).sin())
    window = make_window()
    importance = torch.rand(window.values.shape, generator=torch.Generator().manual_seed(0))
    rows = every_fidelity([every_shift(guest, window, importance, same_count(9))])
    assert {row.measure.gating for row in rows} == {"regated"}
    assert len(rows) == 12
    assert all(0 <= row.fidelity.clipped_comprehensiveness <= 1 for row in rows)
    with pytest.raises(UsageError, match='use gating="regated"'):
        perturb(guest, window, importance, same_count(3), "frozen")


@pytest.mark.parametrize("wrong", [{"shift": "cubed"}, {"space": "raw"}, {"gating": "soft"}])
def test_an_unknown_measure_is_refused(wrong: dict[str, Literal["squared"]]) -> None:
    with pytest.raises((UsageError, TypeError)):
        Measure(**wrong)


def test_measuring_leaves_forecaster_and_generator_unchanged() -> None:
    forecaster, state = network(), torch.get_rng_state()
    weights = {name: tensor.clone() for name, tensor in forecaster.state_dict().items()}
    window = make_window()
    importance = torch.rand(window.values.shape, generator=torch.Generator().manual_seed(0))
    shifts = every_shift(forecaster, window, importance, same_count(6))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in forecaster.state_dict().items())
    assert all(parameter.grad is None for parameter in forecaster.parameters())
    assert not any(size.requires_grad for measured in shifts.values() for size in vars(measured).values())
    assert all(size.dtype == torch.float64 for measured in shifts.values() for size in vars(measured).values())
