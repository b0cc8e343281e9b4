"""AUROC, AUP and AUR: compared with scikit-learn, with ties, and what each of them rewards."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve, roc_auc_score
from torch import Tensor

from ibforecast.core.errors import UsageError
from ibforecast_lab.data.framed import generate
from ibforecast_lab.measures.recovery import Scores, areas, recovery, to_unit_range

WINDOWS, LOOK_BACK, CHANNELS = 5, 8, 3
modest = settings(max_examples=60, deadline=None, derandomize=True)


def by_library(truth: np.ndarray, scores: np.ndarray) -> tuple[float, float, float]:
    """Return the three areas as in the literature's code, without the last, appended point of the curves."""
    precision, recall, thresholds = precision_recall_curve(truth.ravel(), scores.ravel())
    return (
        float(roc_auc_score(truth.ravel(), scores.ravel())),
        float(np.trapezoid(precision[:-1], thresholds)),
        float(np.trapezoid(recall[:-1], thresholds)),
    )


def drawn(seed: int, levels: int) -> tuple[Tensor, Tensor]:
    """Return maps with few different values, so that most are tied, and a truth they correlate with."""
    random = np.random.default_rng(seed)
    truth = random.random((WINDOWS, LOOK_BACK, CHANNELS)) < random.uniform(0.05, 0.95)
    scores = random.integers(0, levels, truth.shape) + truth * random.integers(0, 2, truth.shape)
    return torch.from_numpy(scores.astype(np.float32)), torch.from_numpy(truth)


def triple(scores: Scores) -> tuple[float, float, float]:
    return scores.auroc, scores.aup, scores.aur


@modest
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3, 8, 10**6]))
def test_pooled_areas_equal_those_of_scikit_learn_over_all_cells(seed: int, levels: int) -> None:
    importance, truth = drawn(seed, levels)
    assume(truth.any() and not truth.all())
    expected = by_library(truth.numpy(), to_unit_range(importance).numpy())
    assert triple(recovery(importance, truth).pooled) == pytest.approx(expected, abs=1e-12)


@modest
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3, 8, 10**6]))
def test_areas_by_window_equal_those_of_scikit_learn_and_the_mean_skips_undefined_ones(seed: int, levels: int) -> None:
    importance, truth = drawn(seed, levels)
    assume(truth.any() and not truth.all())
    measured = recovery(importance, truth)
    scores = to_unit_range(importance).numpy()
    every = []
    for row in range(WINDOWS):
        mine = [float(area[row]) for area in vars(measured.by_window).values()]
        if 0 < truth[row].sum() < truth[row].numel():
            every.append(by_library(truth[row].numpy(), scores[row]))
            assert mine == pytest.approx(every[-1], abs=1e-12)
        else:
            assert np.isnan(mine).all()
    assert measured.undefined == WINDOWS - len(every)
    if every:
        assert triple(measured.mean) == pytest.approx(np.mean(every, axis=0), abs=1e-12)


def test_each_map_is_rescaled_to_the_unit_range_independently() -> None:
    importance = torch.rand(WINDOWS, LOOK_BACK, CHANNELS) * torch.tensor([1.0, 10.0, 1e-3, 5.0, 2.0])[:, None, None] + 3
    stretched = to_unit_range(importance)
    assert torch.equal(stretched.amin(dim=(1, 2)), torch.zeros(WINDOWS).double())
    assert torch.equal(stretched.amax(dim=(1, 2)), torch.ones(WINDOWS).double())
    assert not to_unit_range(torch.full((2, LOOK_BACK, CHANNELS), 7.0)).any()


def test_a_constant_map_ranks_like_chance_and_has_zero_area() -> None:
    _, truth = drawn(3, 2)
    assert triple(recovery(torch.full(truth.shape, 0.4), truth).pooled) == (0.5, 0, 0)


def test_the_truth_has_the_highest_scores_and_its_opposite_the_lowest() -> None:
    _, truth = drawn(4, 2)
    right, wrong = recovery(truth.float(), truth), recovery(1 - truth.float(), truth)
    share = float(truth.double().mean())
    # Precision is the share of true cells at threshold 0 and 1 at threshold 1: a trapezoid between them.
    assert triple(right.pooled) == pytest.approx((1, (share + 1) / 2, 1))
    assert triple(wrong.pooled) == pytest.approx((0, share / 2, 0.5))
    assert triple(right.mean)[0] == 1


def test_the_precision_of_chance_is_the_planted_share() -> None:
    truth = torch.from_numpy(generate("pulse", 64, 0).support)
    chance = recovery(torch.rand(truth.shape, generator=torch.Generator().manual_seed(0)), truth).pooled
    assert chance.auroc == pytest.approx(0.5, abs=0.03)
    assert chance.aup == pytest.approx(float(truth.double().mean()), abs=0.01)
    assert chance.aur == pytest.approx(chance.auroc, abs=0.03)


def test_scores_closer_to_zero_keep_the_auroc_but_lower_the_recall() -> None:
    truth = torch.from_numpy(generate("pulse", 32, 0).support)
    random = torch.Generator().manual_seed(0)
    graded = 0.5 * torch.rand(truth.shape, generator=random) + 0.4 * truth
    plain, squeezed = recovery(graded, truth), recovery(to_unit_range(graded) ** 4, truth)
    assert torch.equal(plain.by_window.auroc.nan_to_num(-1), squeezed.by_window.auroc.nan_to_num(-1))
    assert squeezed.pooled.aur < plain.pooled.aur - 0.1
    assert plain.pooled.aur == pytest.approx(float(to_unit_range(graded)[truth].mean()), abs=0.01)


def test_the_areas_of_a_row_do_not_depend_on_other_rows() -> None:
    importance, truth = drawn(5, 4)
    scores, marks = to_unit_range(importance).flatten(1), truth.flatten(1)
    together = areas(scores, marks)
    for row in range(WINDOWS):
        alone = areas(scores[row : row + 1], marks[row : row + 1])
        assert alone.aup[0] == together.aup[row]
        assert alone.auroc[0] == together.auroc[row]


def test_a_constant_truth_and_a_map_with_nan_are_refused() -> None:
    importance = torch.rand(2, LOOK_BACK, CHANNELS)
    for truth in (torch.zeros_like(importance).bool(), torch.ones_like(importance).bool()):
        with pytest.raises(UsageError, match="some cells and not all"):
            recovery(importance, truth)
    with pytest.raises(UsageError, match="finite"):
        recovery(importance * torch.nan, importance > 0.5)
