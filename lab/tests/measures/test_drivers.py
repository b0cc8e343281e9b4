"""Scores of maps and sizes against planted drivers: AUROC, alignment of loadings, and matching."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from ibforecast.core.errors import UsageError
from ibforecast.drivers import Driver, Drivers, Moves
from ibforecast_lab.data.drivers import DriverConstants, generate
from ibforecast_lab.measures.drivers import alignment, driver_auroc, matched, size_auroc, size_maps, source_sizes

CONSTANTS = DriverConstants()


def test_the_auroc_is_one_for_the_truth_zero_for_its_opposite_and_a_half_for_chance() -> None:
    support = torch.from_numpy(generate(200, 1).tokens(12))
    guess = torch.rand(200, 1, *support.shape[2:], generator=torch.Generator().manual_seed(0))
    maps = torch.cat([support.float(), 1.0 - support.float(), torch.full_like(guess, 0.3), guess], dim=1)
    scores = driver_auroc(maps, support)
    assert scores.shape == (8, 3)
    assert (scores[:3].diagonal() == 1).all()
    assert (scores[3:6].diagonal() == 0).all()
    assert (scores[6] == 0.5).all()
    assert (scores[7] - 0.5).abs().max() < 0.1


def test_the_auroc_equals_that_of_scikit_learn_with_ties() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = torch.randint(0, 5, (40, 2, 3, 4), generator=generator) / 4
    support = torch.rand(40, 3, 3, 4, generator=generator) < 0.2
    scores = driver_auroc(maps, support)
    for one in range(2):
        for other in range(3):
            expected = roc_auc_score(support[:, other].flatten(), maps[:, one].flatten())
            assert float(scores[one, other]) == pytest.approx(expected)


@pytest.mark.parametrize("shown", [False, True])
def test_a_driver_without_a_marked_or_an_unmarked_token_is_refused(shown: bool) -> None:
    with pytest.raises(UsageError, match=r"must mark some tokens and not all \(got .+ of 8 tokens\); draw more"):
        driver_auroc(torch.zeros(2, 1, 2, 2), torch.full((2, 1, 2, 2), shown))


def test_alignment_ignores_size_and_sign_and_is_zero_for_a_zero_loading() -> None:
    loading = torch.from_numpy(CONSTANTS.loading)
    learned = torch.cat([-3 * loading[:, [2]], 0.1 * loading[:, [0]], 0 * loading[:, [0]]], dim=1)
    scores = alignment(learned, loading)
    assert float(scores[0, 2]) == pytest.approx(1)
    assert float(scores[1, 0]) == pytest.approx(1)
    assert (scores[2] == 0).all()
    assert scores.max() <= 1 + 1e-12


def test_matching_maximises_the_sum_of_scores_and_uses_no_map_twice() -> None:
    greedy_fails = torch.tensor([[0.9, 0.8], [0.8, 0.1]])
    assert matched(greedy_fails) == (1, 0)
    assert matched(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.2, 0.8]])) == (1, 2)
    for seed in range(5):
        order = torch.randperm(4, generator=torch.Generator().manual_seed(seed))
        assert matched(torch.eye(4)[order]) == tuple(order.argsort().tolist())


def test_fewer_maps_than_drivers_are_refused() -> None:
    with pytest.raises(UsageError, match=r"must be a map for every driver \(got 1 maps, 2 drivers\); use more maps"):
        matched(torch.zeros(1, 2))


def test_sizes_are_placed_by_channel_patch_and_source() -> None:
    rows = (
        Driver("load", "read", "wind", 0, 3.0, 0.0, 0.5, 1.0),
        Driver("load", "read", "load", 8, 2.0, 0.0, 0.3, 1.0),
        Driver("load", "known ahead", "price", None, 1.0, 0.0, 0.2, 1.0),
        Driver("heat", "read", "load", 4, 5.0, 0.0, 1.0, 1.0),
    )
    none = np.zeros((0, 2, 0))
    moves = Moves(("load", "heat"), (), np.zeros(0, "datetime64[us]"), none, none, np.zeros((0, 2)))
    maps = size_maps(Drivers(rows, moves, "test"), ("load", "heat", "wind"), look_back=12, patch_len=4)
    assert maps.shape == (2, 3, 3)
    assert {(*place,): float(maps[tuple(place)]) for place in maps.nonzero().tolist()} == {
        (0, 2, 2): 3.0,
        (0, 0, 0): 2.0,
        (1, 1, 0): 5.0,
    }


def test_sizes_of_sources_are_placed_by_channel_and_source() -> None:
    rows = tuple(
        Driver(channel, "read", source, back, 1.0, 0.0, 0.2, 1.0)
        for channel in ("load", "heat")
        for source, back in (("load", 4), ("wind", 0), ("wind", 8))
    )
    sizes = np.array([[[2.0, 0.0, 0.0, 1.0], [4.0, 0.0, 3.0, 1.0]], [[4.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]]])
    moves = Moves(
        ("load", "heat"),
        ("load", "heat", "wind", "price"),
        np.zeros(2, "datetime64[us]"),
        sizes,
        np.zeros_like(sizes),
        np.zeros((2, 2)),
    )
    assert source_sizes(Drivers(rows, moves, "test"), ("load", "heat", "wind")).tolist() == [[3, 0, 0], [2, 0, 2]]


def test_the_auroc_of_sizes_equals_that_of_scikit_learn_over_the_judged_places() -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(0, 4, (3, 6, 4), generator=generator).double()
    support, judged = (torch.rand(3, 6, 4, generator=generator) < share for share in (0.3, 0.8))
    scores = size_auroc(sizes, support, judged)
    for score, one, truth, use in zip(scores, sizes, support, judged, strict=True):
        assert float(score) == pytest.approx(roc_auc_score(truth[use], one[use]))
