"""Does choosing pay? From made-up records to the table."""

import json
from typing import Any

import numpy as np
import pytest

from ibforecast.core.errors import DataError
from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.ledger import Cell, Record, Scores
from ibforecast_lab.experiments.plans import CHOOSING, ONE_MASK, SEEDS
from ibforecast_lab.experiments.sheet import FORMATS, Sheet
from ibforecast_lab.experiments.tables import TABLES

BLOCKS = 50
DAYS = np.random.default_rng(0).lognormal(0, 0.5, BLOCKS)
"""The errors of a fixed mask on each day."""


def record(
    model: str, days: np.ndarray, data: str = "bike_dc", seed: int = SEEDS[0], budget: float | None = None
) -> Record:
    """Return a record with these errors by day, 2 % and 1 % larger through another window's and the usual mask."""
    errors = {"own": days, "another": 1.02 * days, "usual": 1.01 * days}
    blocks = {"steps": 24, "windows": [24] * len(days), **{name: list(error) for name, error in errors.items()}}
    rows = [
        {
            "measure": "choice",
            "part": part,
            "unusual": 0.25,
            **{name: float(error.mean()) for name, error in errors.items()},
            "blocks": blocks if part == "test" else {"steps": 24, "windows": [1], "own": [9.0]},
        }
        for part in ("validation", "test")
    ]
    cell = Cell(data, SUITE[data].horizons[0], model, seed, budget, study="choice")
    scores, numbers = Scores(10, float(days.mean()), 1.0, 0.2, 0.2), (10, 0, 1, 2, 1, 1.0, 10.0)
    settings = {"config": {"budget": budget or 0.2}, "train": {}}
    return Record(cell, "ibforecast", scores, scores, *numbers, settings, "r", "d", 1, "c", "CPU", {}, "now", rows)


def pair(ratio: float, data: str = "bike_dc", noise: float = 0.01) -> list[Record]:
    """Return the records of both models for every seed; `ratio` is that of their errors, apart from noise."""
    random = np.random.default_rng(3)
    return [
        one
        for seed in SEEDS
        for one in (
            record(CHOOSING, ratio * DAYS * random.normal(1, noise, BLOCKS), data, seed),
            record(ONE_MASK, DAYS, data, seed),
        )
    ]


def line(sheet: Sheet, data: str) -> dict[str, str]:
    (cells,) = (cells for cells in sheet.body if cells[0] == data)
    return dict(zip(sheet.header, cells, strict=True))


def row(sheet: Sheet, data: str) -> dict[str, Any]:
    (one,) = (one for one in sheet.rows if one["data"] == data)
    return one


def test_a_table_has_a_line_for_every_table_of_the_suite_and_one_for_all() -> None:
    for records in ([], pair(0.9)):
        sheet = TABLES["choice"](records)
        assert [(cells[0], cells[1]) for cells in sheet.body] == [
            *((name, str(table.horizons[0])) for name, table in SUITE.items() if not name.endswith("-known")),
            ("Overall", "–"),
        ]
        assert line(sheet, "tetuan")["own against a fixed mask"] == "not run"
        assert json.loads(FORMATS["json"](sheet)) == sheet.rows
    assert line(TABLES["choice"]([]), "Overall")["own against a fixed mask"] == "not run"


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"), [(0.9, 0.01, "ahead"), (1.1, 0.01, "behind"), (1.0, 0.3, "level")]
)
def test_a_mask_is_ahead_or_behind_only_if_the_interval_excludes_zero(ratio: float, noise: float, verdict: str) -> None:
    sheet = TABLES["choice"](pair(ratio, noise=noise))
    one, text = row(sheet, "bike_dc"), line(sheet, "bike_dc")
    assert one["fixed_is"] == verdict
    assert one["over_fixed_low"] < one["over_fixed"] < one["over_fixed_high"]
    assert (one["over_fixed_low"] <= 0 <= one["over_fixed_high"]) == (verdict == "level")
    assert text["own against a fixed mask"].endswith(f"), {verdict}")
    assert text["own against another window's"] == "-2.0% (-2.0% to -2.0%), ahead"
    assert text["own against the usual mask"] == "-1.0% (-1.0% to -1.0%), ahead"
    assert (text["seeds"], text["blocks"], text["read"], text["unusual"]) == ("3", "50", "20.0%", "25.0%")


def test_errors_of_seeds_are_averaged_before_blocks_are_drawn() -> None:
    random = np.random.default_rng(2)
    opposite = 0.2 * random.normal(0, 1, BLOCKS) * DAYS
    records = [
        one
        for seed, days in zip(SEEDS, (DAYS + opposite, DAYS - opposite), strict=False)
        for one in (record(CHOOSING, 0.9 * days, seed=seed), record(ONE_MASK, DAYS, seed=seed))
    ]
    one = row(TABLES["choice"](records), "bike_dc")
    assert [one[f"over_fixed{bound}"] for bound in ("", "_low", "_high")] == pytest.approx([-0.1] * 3)


def test_only_seeds_of_both_models_are_compared_with_a_fixed_mask() -> None:
    records = [
        record(CHOOSING, 0.9 * DAYS, seed=SEEDS[0]),
        record(CHOOSING, 5 * DAYS, seed=SEEDS[1]),
        record(ONE_MASK, DAYS, seed=SEEDS[0]),
        record(ONE_MASK, 7 * DAYS, seed=SEEDS[2]),
    ]
    one = row(TABLES["choice"](records), "bike_dc")
    assert (one["seeds"], one["over_fixed"]) == (2, pytest.approx(-0.1))


def test_records_at_another_budget_or_without_blocks_are_not_compared() -> None:
    old = record(CHOOSING, DAYS)
    for measurement in old.measurements:
        del measurement["blocks"]
    others = [record(CHOOSING, 9 * DAYS, budget=0.1), record("steady", 9 * DAYS)]
    assert TABLES["choice"]([old, *others]) == TABLES["choice"]([])


def test_one_model_can_be_shown_without_the_other() -> None:
    text = line(TABLES["choice"]([record(CHOOSING, DAYS)]), "bike_dc")
    assert text["own against the usual mask"] == "-1.0% (-1.0% to -1.0%), ahead"
    assert text["own against a fixed mask"] == "not run"
    text = line(TABLES["choice"]([record(ONE_MASK, DAYS)]), "bike_dc")
    assert (text["MSE"], text["own against a fixed mask"]) == ("not run", "not run")


def test_different_blocks_are_refused() -> None:
    with pytest.raises(DataError, match=r"the same blocks of windows \(got bike_dc, horizon 24, sealed"):
        TABLES["choice"]([record(CHOOSING, DAYS), record(ONE_MASK, DAYS[1:])])


def test_the_last_line_has_the_geometric_mean_and_counts_losses_whatever_their_interval() -> None:
    records = [*pair(0.8, "bike_dc", 0.0), *pair(1.25, "tetuan", 0.0), *pair(1.005, "epf_de", 0.0)]
    sheet = TABLES["choice"](records)
    one = row(sheet, "Overall")
    assert (one["tables"], one["tables_ahead"], one["tables_behind"]) == (3, 1, 1)
    assert one["over_fixed"] == pytest.approx(1.005 ** (1 / 3) - 1)
    assert line(sheet, "Overall")["own against a fixed mask"] == (
        "ratio 1.002 (geometric mean); ahead on 1 of 3, more than 1% worse on 1"
    )
