"""The label `tables`: its cells, the roles of columns in a run, and the table of ratios."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from ibforecast.cli.main import main
from ibforecast.core.calendar import Clock, Frequency
from ibforecast.data.series import Series
from ibforecast_lab.data import suite
from ibforecast_lab.data.suite import KNOWN, SUITE, SuiteTable
from ibforecast_lab.experiments import parts
from ibforecast_lab.experiments.facts import facts
from ibforecast_lab.experiments.ledger import Cell, Ledger, Record, Scores
from ibforecast_lab.experiments.plans import FITTED_IN_SUITE, IN_SUITE, PLANS, SEEDS
from ibforecast_lab.experiments.quoted import compared_in_suite
from ibforecast_lab.experiments.run import recipe_of, run
from ibforecast_lab.experiments.sheet import NOT_RUN
from ibforecast_lab.experiments.tables import TABLES, sheets_of
from ibforecast_lab.experiments.tables.suite import AVERAGED, MODELS, PLACES, REFERENCE

CPU = torch.device("cpu")
ROWS, LOOK_BACK, HORIZON = 200, 12, 4
PLAIN = SuiteTable("tiny", ROWS, 3, "1h", 6, (3, 6), (HORIZON,), "c", "o", "l", "s")
TINY = {
    "tiny": PLAIN,
    "tiny-past": replace(PLAIN, name="tiny-past", past=("c",)),
    f"tiny{KNOWN}": replace(PLAIN, name=f"tiny{KNOWN}", future=("c",)),
}
RECIPE = """
[model]
patch_len = 3
budget = 0.5
[model.gate]
width = 4
heads = 2
[model.readout]
width = 8
[train]
epochs = 1
batch = 16
"""


def series(table: SuiteTable) -> Series:
    """Return three channels in the roles of the table, the first of which has a gap of 30 rows in the test part."""
    random, hour = np.random.default_rng(0), np.arange(ROWS)
    values = np.sin(hour / 6 * 2 * np.pi)[:, None] + random.normal(size=(ROWS, 3))
    values[165:195, 0] = np.nan
    clock = Clock(np.datetime64("2020-01-01", "us") + hour * np.timedelta64(1, "h"), Frequency(3600))
    if table.future:
        return Series(values[:, :2], ("a", "b"), clock, covariates=table.future, known=values[:, 2:])
    return Series(values, ("a", "b", "c"), clock, past=len(table.past))


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(RECIPE)
    Path("rival.toml").write_text('forecaster = "tqnet"\n[model]\nwidth = 8\n[train]\nepochs = 1\nbatch = 16\n')
    for name, table in TINY.items():
        monkeypatch.setitem(SUITE, name, table)
    monkeypatch.setattr(suite, "load", lambda name: series(SUITE[name]))
    parts.series_of.cache_clear()
    yield
    parts.series_of.cache_clear()


def cell(data: str, recipe: str) -> Cell:
    return Cell(data, HORIZON, recipe, 7, look_back=LOOK_BACK)


# --- Cells and runs ---


def test_the_plan_runs_every_model_on_every_table_and_horizon_and_fitted_ones_once() -> None:
    cells = PLANS["tables"].cells()
    assert len(cells) == len(set(cells)) == len({cell.key for cell in cells})
    assert {(cell.data, cell.horizon) for cell in cells} == set(PLACES)
    for models, seeds in ((IN_SUITE, SEEDS), (FITTED_IN_SUITE, SEEDS[:1])):
        run = [(cell.data, cell.horizon, cell.recipe, cell.seed) for cell in cells if cell.recipe in models]
        assert len(run) == len(PLACES) * len(models) * len(seeds)


def test_every_recipe_of_the_plan_has_the_sizes_and_roles_of_its_table() -> None:
    for planned in PLANS["tables"].cells():
        table, config = SUITE[planned.data], recipe_of(planned).config
        assert (config.channels, config.horizon) == (table.channels, planned.horizon)
        if hasattr(config, "past"):
            assert (config.past, config.future) == (len(table.past), len(table.future))
            assert config.readout.cross_channel or not table.past


def test_ours_learn_the_cycles_of_a_plain_fit_and_trained_rivals_the_longest_one() -> None:
    cycles = {
        (planned.data, planned.recipe): getattr(config, "cycles", (config.cycle,))
        for planned in PLANS["tables"].cells()
        for config in [recipe_of(planned).config]
    }
    for name, table in SUITE.items():
        for recipe in ("default", "sealed", "choosing", "choosing+open"):
            assert cycles[name, recipe] == table.learned
        assert cycles[name, "tqnet"] == (max(table.cycle, *table.learned),)
        assert cycles[name, "steady"] == cycles[name, "lightgbm"] == (table.cycle,)


@pytest.mark.usefixtures("_tiny")
def test_the_roles_of_columns_do_not_change_the_recipe_of_a_plain_table() -> None:
    plain, read, known = (recipe_of(cell(data, "tiny.toml")) for data in TINY)
    assert (plain.config.past, plain.config.future, plain.config.readout.cross_channel) == (0, 0, False)
    assert (read.config.past, read.config.future, read.config.readout.cross_channel) == (1, 0, True)
    assert (known.config.past, known.config.future, known.config.readout.cross_channel) == (0, 1, False)
    assert recipe_of(cell("tiny-past", "rival.toml")).config.channels == 3


@pytest.mark.usefixtures("_tiny")
@pytest.mark.parametrize("data", TINY)
def test_every_kind_of_model_is_measured_on_the_same_usable_windows(data: str) -> None:
    records = [run(cell(data, recipe), CPU) for recipe in ("tiny.toml", "rival.toml", "seasonal-naive")]
    cut = parts.parts_of(cell(data, "tiny.toml"), CPU, False)
    every = len(TINY[data].parts.starts("test", LOOK_BACK, HORIZON))
    assert {record.test.windows for record in records} == {len(cut.test)}
    assert 0 < len(cut.test) < every
    assert records[0].verified_windows == len(cut.test)
    assert records[0].broken_windows == 0
    assert all(np.isfinite([record.test.mse, record.validation.mse]).all() for record in records)


@pytest.mark.usefixtures("_tiny")
def test_errors_are_only_of_channels_that_are_forecast() -> None:
    naive = run(cell("tiny-past", "seasonal-naive"), CPU)
    windows = parts.parts_of(cell("tiny-past", "seasonal-naive"), CPU, False).test
    window, target = windows.take(windows.starts)
    assert target.observed.any(dim=(0, 1)).tolist() == [True, True, False]
    squares = (recipe_of(cell("tiny-past", "seasonal-naive")).build(0)(window).values - target.values) ** 2
    kept = squares.where(target.observed, 0.0)[..., :2].sum(dim=(1, 2)) / target.observed[..., :2].sum(dim=(1, 2))
    assert naive.test.mse == pytest.approx(float(kept.mean()))


@pytest.mark.usefixtures("_tiny")
def test_a_fitted_model_has_no_epochs_and_names_the_versions_of_its_libraries() -> None:
    record = run(cell("tiny", "seasonal-naive"), CPU)
    assert (record.epochs, record.best_epoch, record.parameters, record.windows_per_second) == (0, 0, 0, 0)
    for library in ("mlforecast", "lightgbm"):
        pytest.importorskip(library, reason=f"needs {library} (extra trees)")
    trees = run(cell("tiny", "lightgbm"), CPU)
    assert trees.versions.keys() - record.versions.keys() == {"mlforecast", "lightgbm"}
    assert trees.seconds > 0


# --- The table ---


def record(place: Cell, mse: float, mae: float) -> Record:
    scores = Scores(windows=10, mse=mse, mae=mae, open_rate=0.2, largest_open_rate=0.2)
    return Record(
        cell=place,
        forecaster="ibforecast",
        validation=scores,
        test=scores,
        verified_windows=10,
        broken_windows=0,
        parameters=1,
        epochs=2,
        best_epoch=1,
        seconds=1.0,
        windows_per_second=10.0,
        recipe={"config": {"budget": 0.2}, "train": {}},
        recipe_sha256="r",
        data_sha256="d",
        results_version=1,
        commit="c",
        device="CPU",
        versions={},
        finished="now",
    )


def grid(model: str, factor: float, places: list[tuple[str, int]] = PLACES) -> list[Record]:
    """Return records whose errors are `factor` times 1, 2, 3, … at the places of the suite, the mean of three seeds."""
    return [
        record(Cell(data, horizon, model, seed), factor * (1 + PLACES.index((data, horizon))) + shift, 2 * factor)
        for data, horizon in places
        for seed, shift in zip(SEEDS, (-0.1, 0.0, 0.1), strict=True)
    ]


def rows_of(records: list[Record], **where: Any) -> list[dict[str, Any]]:
    rows = TABLES["tables"](records).rows
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def test_rows_have_mean_errors_and_their_ratio_to_the_reference() -> None:
    (row,) = rows_of([*grid(REFERENCE, 1.0), *grid("sealed", 0.5)], data="elec2_nsw", model="sealed")
    assert (row["seeds"], row["horizon"]) == (3, 24)
    assert (row["mse"], row["mae"]) == pytest.approx((1.0, 1.0))
    assert row["mse_std"] == pytest.approx(0.1)
    assert (row["mse_ratio"], row["mae_ratio"]) == pytest.approx((0.5, 0.5))


def test_the_last_line_is_the_geometric_mean_over_all_tables_without_covariates_known_ahead() -> None:
    ratios = {place: 0.5 + 0.1 * number for number, place in enumerate(PLACES)}
    ours = [one for place, ratio in ratios.items() for one in grid("sealed", ratio, [place])]
    (row,) = rows_of([*grid(REFERENCE, 1.0), *ours], data="Overall", model="sealed")
    assert row["mse_ratio"] == pytest.approx(geometric_mean(ratios[place] for place in AVERAGED))
    assert len(AVERAGED) == len(PLACES) - 1
    assert row["mse"] is row["horizon"] is None
    assert facts(sheets_of([*grid(REFERENCE, 1.0), *ours]))["tables/Overall/sealed/mse_ratio"] == row["mse_ratio"]


def test_a_model_that_lacks_a_table_has_no_mean() -> None:
    assert not rows_of([*grid(REFERENCE, 1.0), *grid("sealed", 0.5, PLACES[1:])], data="Overall", model="sealed")


def test_the_table_prints_pairs_marks_the_best_and_says_what_was_not_run() -> None:
    sheet = TABLES["tables"]([*grid(REFERENCE, 1.0), *grid("sealed", 0.5), *grid("tqnet", 2.0, PLACES[:1])])
    column = {name: place for place, name in enumerate(sheet.header)}
    first, last = sheet.body[0], sheet.body[-1]
    assert [(line[0], line[1]) for line in sheet.body] == [*((data, str(h)) for data, h in PLACES), ("Overall", "–")]
    assert first[column[f"{REFERENCE}: MSE / MAE"]] == "1.000 / 2.000"
    assert first[column["sealed, relative"]] == "**0.500 / 0.500 (3)**"
    assert last[column["sealed, relative"]] == "**0.500 / 0.500**"
    assert first[column["tqnet, relative"]] == "2.000 / 2.000 (3)"
    assert last[column["tqnet, relative"]] == first[column["lightgbm, relative"]] == NOT_RUN
    assert len(sheet.header) == 3 + len(MODELS)


def test_two_models_are_compared_by_the_seeds_and_places_that_both_have() -> None:
    ours = [*grid("choosing", 0.5), *grid("default", 1.0), *grid("lightgbm", 2.0, AVERAGED[:3])[::3]]
    others = [one for one in grid("choosing+no-exchange", 1.0, AVERAGED[:4]) if one.cell.seed == SEEDS[1]]
    values = compared_in_suite([*ours, *others])
    # Only the second seed, in which `grid` shifts nothing, was run for both.
    assert values["results/tables/choosing/choosing+no-exchange/mse_ratio"] == pytest.approx(0.5)
    assert values["results/tables/choosing/choosing+no-exchange/lines"] == 4
    assert values["results/tables/choosing/choosing+no-exchange/lower_mse"] == 4
    # A model that needs no seeds is compared with the mean over all seeds.
    ratios = [(1.0 + place) / (2.0 * (1.0 + place) - 0.1) for place in map(PLACES.index, AVERAGED[:3])]
    assert values["results/tables/default/lightgbm/mse_ratio"] == pytest.approx(geometric_mean(ratios))
    assert values[f"results/tables/default/lightgbm/{AVERAGED[0][0]}/{AVERAGED[0][1]}/mse_ratio"] == ratios[0]
    assert "results/tables/default/steady/mse_ratio" not in values


def test_runs_on_the_suite_change_no_other_table() -> None:
    models = (*IN_SUITE, *FITTED_IN_SUITE)
    before, after = sheets_of([]), sheets_of([one for model in models for one in grid(model, 1.0)])
    assert {label for label in before if before[label] != after[label]} == {"tables"}


def test_the_verb_shows_the_flat_rows(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl.zst")
    for one in [*grid(REFERENCE, 1.0, PLACES[:1]), *grid("lightgbm", 0.5, PLACES[:1])]:
        ledger.write(one)
    outcome = CliRunner().invoke(main, ["show", "tables", "--format", "json", "--ledger", str(ledger.packed)])
    assert outcome.exit_code == 0, outcome.output
    shown = {row["model"]: (row["mse"], row["mse_ratio"]) for row in json.loads(outcome.stdout)}
    assert shown == {REFERENCE: pytest.approx((1.0, 1.0)), "lightgbm": pytest.approx((0.5, 0.5))}
