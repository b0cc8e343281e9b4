"""Convergence of the mask optimisers, and the paper's own settings for the planted benchmark."""

import pytest
import torch

from ibforecast.core.errors import UsageError
from ibforecast.core.sizes import Sizes
from ibforecast_lab.data.resident import resident
from ibforecast_lab.experiments.ledger import Cell
from ibforecast_lab.experiments.parts import Parts
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.studies import convergence
from ibforecast_lab.experiments.studies.convergence import same_choice
from ibforecast_lab.experiments.tables import TABLES
from ibforecast_lab.experiments.variants import varied
from ibforecast_lab.recipes import resolve

LOOK_BACK, HORIZON, CHANNELS = 12, 4, 2
CELL = Cell("framed-pulse", HORIZON, "dlinear", 1, look_back=LOOK_BACK)


def parts(planted: bool) -> Parts:
    random = torch.Generator().manual_seed(0)
    past = torch.randn(6, LOOK_BACK, CHANNELS, generator=random)
    future = past[:, -HORIZON:]  # the last steps decide
    windows = resident(past.numpy(), future.numpy(), torch.zeros(6, dtype=torch.int64).numpy())
    support = torch.zeros(6, LOOK_BACK, CHANNELS, dtype=torch.bool)
    support[:, -HORIZON:] = True
    return Parts(windows, windows, windows, support if planted else None)


def test_two_maps_agree_by_the_points_that_both_name() -> None:
    one = torch.arange(12.0).reshape(1, 6, 2)
    assert same_choice(one, 2 * one, torch.tensor([0.25])) == 1
    assert same_choice(one, -one, torch.tensor([0.25])) == 0
    assert same_choice(one, one.roll(2, dims=1), torch.tensor([0.5])) == pytest.approx(2 / 6)
    assert same_choice(one, one, torch.tensor([0.0])) == 0


def test_every_number_of_steps_is_compared_with_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "STEPS", (1, 3))
    forecaster = resolve("dlinear", Sizes(LOOK_BACK, HORIZON, CHANNELS, 6)).build(0)
    rows = convergence.study(forecaster, parts(planted=True), CELL)
    assert [(row["explainer"], row["steps"]) for row in rows] == [
        (name, steps) for name in convergence.OPTIMISERS for steps in (1, 3)
    ]
    assert [row["agreement"] for row in rows[1::2]] == [1, 1]
    assert all(0 <= row["auroc"] <= 1 for row in rows)
    with pytest.raises(UsageError, match="planted support"):
        convergence.study(forecaster, parts(planted=False), CELL)


def test_the_table_has_a_line_for_every_number_of_steps() -> None:
    body = TABLES["convergence"]([]).body
    assert len(body) == len(convergence.OPTIMISERS) * len(convergence.STEPS)
    assert {line[5] for line in body} == {"not run"}


def test_the_papers_settings_for_the_planted_benchmark_are_those_it_prints() -> None:
    sizes = Sizes(96, 24, 7, 24)
    recipe = resolve("paper-framed", sizes, "framed-decoy")
    objective = recipe.config.objective
    assert (recipe.config.patch_len, recipe.train.epochs) == (6, 150)
    assert (objective.rate_weight, objective.prior, objective.budget_weight) == (0.1, 0.05, 0)
    weaker = varied("paper-framed+rate_weight=0.02", sizes, "framed-decoy").config
    assert weaker.objective.rate_weight == 0.02
    assert not varied("paper-framed+no-profile", sizes, "framed-pulse").config.profile
    cells = {(cell.data, cell.recipe) for cell in PLANS["support_recovery"].cells() if "+" in cell.recipe}
    assert cells == {
        ("framed-decoy", "paper-framed+rate_weight=0.02"),
        ("framed-pulse", "paper-framed+no-profile"),
    }
