"""Coverage: the rows of the study on a small series, and the table."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ibforecast.core.calendar import Clock, Frequency
from ibforecast.core.errors import UsageError
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.series import Series
from ibforecast.data.splits import Split
from ibforecast.data.windows import Windows
from ibforecast.evaluate.conformal import inside, quantiles, scores, tracked
from ibforecast.model.config import GateConfig, ModelConfig, ReadoutConfig
from ibforecast.model.network import IBForecast
from ibforecast_lab.experiments.ledger import Cell, Record, Scores
from ibforecast_lab.experiments.parts import Parts, parts_of
from ibforecast_lab.experiments.plans import MAIN, PLANS
from ibforecast_lab.experiments.render import render
from ibforecast_lab.experiments.sheet import to_markdown
from ibforecast_lab.experiments.studies import coverage
from ibforecast_lab.experiments.tables import TABLES

ROWS, LOOK_BACK, HORIZON = 700, 24, 6
CELL = Cell("ETTh1", 96, "steady", 2024, study="coverage")


@pytest.fixture(scope="module")
def parts() -> Parts:
    """Return windows of noise that doubles at the start of the test part."""
    split = Split(300, 500, ROWS)
    values = np.random.default_rng(0).normal(size=(ROWS, 3)) * np.where(np.arange(ROWS) < 500, 1.0, 2.0)[:, None]
    stamps = np.datetime64("2023-01-02", "us") + np.arange(ROWS) * np.timedelta64(1, "h")
    series = Series(values, ("a", "b", "c"), Clock(stamps, Frequency(3600)))
    units = Standardiser.of(values[:300], series.channels)
    training = Windows.of(series, units, 24, split.starts("train", LOOK_BACK, HORIZON), LOOK_BACK, HORIZON)
    validation, test = (training.at(split.starts(part, LOOK_BACK, HORIZON)) for part in ("validation", "test"))
    return Parts(training, validation, test)


@pytest.fixture(scope="module")
def forecaster() -> IBForecast:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        config = ModelConfig(
            look_back=LOOK_BACK,
            horizon=HORIZON,
            channels=3,
            cycle=24,
            patch_len=6,
            frame="none",  # a frame would already adapt each window to the noise
            gate=GateConfig(width=8, heads=2),
            readout=ReadoutConfig(width=8),
        )
        return IBForecast(config).eval()


def test_the_study_measures_both_variants_at_both_levels(forecaster: IBForecast, parts: Parts) -> None:
    rows = coverage.study(forecaster, parts, CELL)
    assert [(row["level"], row["variant"]) for row in rows] == [
        (level, variant) for level in (80, 95) for variant in ("plain", "adaptive")
    ]
    assert {row["windows"] for row in rows} == {200 - HORIZON + 1}
    by_variant = {(row["variant"], row["level"]): row for row in rows}
    start = quantiles(scores(forecaster, parts.validation), [80])[0]
    within = inside(scores(forecaster, parts.test), start[None])
    assert by_variant["plain", 80]["coverage"] == pytest.approx(float(within.mean()), abs=1e-6)
    assert by_variant["plain", 80]["worst_channel"] == pytest.approx(float(within.mean(dim=(0, 1)).min()), abs=1e-6)
    assert by_variant["plain", 80]["width"] == pytest.approx(float(2 * start.mean()), rel=1e-5)
    for level in (80, 95):
        plain, adaptive = by_variant["plain", level], by_variant["adaptive", level]
        assert plain["coverage"] < adaptive["coverage"] < level / 100 + 0.02
        assert plain["width"] < adaptive["width"]
        assert adaptive["worst_channel"] <= adaptive["coverage"]


def test_a_window_is_measured_with_the_widths_known_at_its_forecast(forecaster: IBForecast, parts: Parts) -> None:
    every = parts.test.at(range(int(parts.validation.starts[0]), int(parts.test.starts[-1]) + 1))
    start = quantiles(scores(forecaster, parts.validation), [95])[0]
    widths = tracked(start, scores(forecaster, every), 95)
    offset = int(parts.test.starts[0] - parts.validation.starts[0])
    within = inside(scores(forecaster, parts.test), widths[offset : offset + len(parts.test)])
    row = coverage.study(forecaster, parts, CELL)[3]
    assert row["coverage"] == pytest.approx(float(within.mean()), abs=1e-6)


def test_windows_that_do_not_follow_each_other_are_refused(forecaster: IBForecast) -> None:
    framed = parts_of(Cell("framed-pulse", 24, "framed", 1), torch.device("cpu"), False)
    with pytest.raises(UsageError, match=r"follow each other in time \(got framed-pulse\)"):
        coverage.study(forecaster, framed, replace(CELL, data="framed-pulse"))


# --- The table ---


def record(data: str, seed: int, plain: float, adaptive: float) -> Record:
    score = Scores(windows=100, mse=0.4, mae=0.4, open_rate=0.196, largest_open_rate=0.196)
    rows = [
        {"measure": "coverage", "variant": variant, "level": level, "windows": 100}
        | {"coverage": share * level / 80, "worst_channel": share * level / 80 - 0.1, "width": 1.5}
        for level in (80, 95)
        for variant, share in (("plain", plain), ("adaptive", adaptive))
    ]
    return Record(
        cell=Cell(data, 96, "default", seed, study="coverage"),
        forecaster="ibforecast",
        validation=score,
        test=score,
        verified_windows=100,
        broken_windows=0,
        parameters=1,
        epochs=1,
        best_epoch=1,
        seconds=1.0,
        windows_per_second=1.0,
        recipe={"config": {"budget": 0.2}, "train": {}},
        recipe_sha256="a",
        data_sha256="b",
        results_version=1,
        commit="c",
        device="CPU",
        versions={},
        finished="2026-01-01T00:00:00+00:00",
        measurements=rows,
    )


def test_the_table_has_a_line_for_each_level_averages_seeds_and_marks_close_coverage() -> None:
    sheet = TABLES["coverage"]([record("ETTh1", 2024, 0.70, 0.79), record("ETTh1", 2025, 0.74, 0.81)])
    first, second, *others = sheet.body
    assert first[:6] == ["ETTh1", "96", "default", "2", "19.6%", "80"]
    assert first[6:] == ["72.0%", "62.0%", "1.500", "**80.0%**", "70.0%", "1.500"]
    assert second[5] == "95"
    assert [line[0] for line in others] == list(MAIN[1:])
    assert all("not run" in line for line in others)
    assert [row["level"] for row in sheet.rows] == [80, 95]
    assert "**80.0%**" in to_markdown(sheet)


def test_the_plan_has_the_five_data_sets_three_times() -> None:
    cells = PLANS["coverage"].cells()
    assert len(cells) == 15
    assert {cell.study for cell in cells} == {"coverage"}
    assert {cell.data for cell in cells} == set(MAIN)


def test_the_table_is_rendered_with_the_others(tmp_path: Path) -> None:
    from ibforecast_lab.experiments.ledger import Ledger

    Ledger(tmp_path / "ledger" / "ledger.jsonl.zst").write(record("Weather", 2024, 0.8, 0.8))
    assert Ledger(tmp_path / "ledger" / "ledger.jsonl.zst").records()[0] == record("Weather", 2024, 0.8, 0.8)
    assert asdict(record("Weather", 2024, 0.8, 0.8))["measurements"]
    render(tmp_path / "ledger" / "ledger.jsonl.zst", tmp_path / "bench", tmp_path)
    assert "Weather" in (tmp_path / "tables" / "coverage.md").read_text()
