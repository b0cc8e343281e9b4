"""What a fit costs: the model of time and memory, compared with fits that were measured, and its words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.core.sizes import Sizes
from ibforecast.zoo.cost import LARGE_MEGABYTES, LONG_SECONDS, Cost, cost_of, duration, seconds_of
from ibforecast.zoo.recipes import Recipe, resolve

RESULTS = Path(__file__).parents[2] / "results"
LINES = [json.loads(line) for line in (RESULTS / "trials" / "cpu-cost.jsonl").read_text("utf8").splitlines()]
WITHIN = 1.5


def recipe_of(line: dict[str, Any]) -> Recipe:
    cycle = 96 if line["rows"] == 35_040 else 24
    recipe = resolve("default", Sizes(line["look_back"], line["horizon"], line["channels"], cycle))
    return recipe if line["epochs"] is None else replace(recipe, train=recipe.train.at_most(line["epochs"]))


def near(estimate: float, measured: float) -> bool:
    return 1 / WITHIN < estimate / measured < WITHIN


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['channels']} x {line['rows']}, {line['epochs']}")
def test_the_memory_is_near_that_of_a_measured_fit(line: dict[str, Any]) -> None:
    cost = cost_of(recipe_of(line), line["rows"], line["windows"], line["validation"])
    assert near(cost.megabytes, line["megabytes"])


@pytest.mark.parametrize("line", [line for line in LINES if line["epochs"] is None], ids=lambda line: line["channels"])
def test_the_usual_time_is_near_that_of_a_measured_fit(line: dict[str, Any]) -> None:
    assert line["contest"].startswith("sealed: an additive readout was ")
    assert near(seconds_of(recipe_of(line), line["windows"], usual=True), line["processor_seconds"])


@pytest.mark.parametrize("channels", [100, 300])
def test_the_time_of_further_epochs_is_near_the_measured_one(channels: int) -> None:
    one, two = (
        next(line for line in LINES if (line["channels"], line["epochs"]) == (channels, epochs)) for epochs in (1, 2)
    )
    estimates = [seconds_of(recipe_of(line), line["windows"], usual=True) for line in (one, two)]
    assert near(estimates[1] - estimates[0], two["processor_seconds"] - one["processor_seconds"])


@pytest.mark.parametrize(("name", "windows", "horizon"), [("hours", 6013, 24), ("quarter_hours", 24337, 96)])
def test_the_time_is_near_that_of_the_benchmark(name: str, windows: int, horizon: int) -> None:
    measured = json.loads((RESULTS / "bench" / "cpu-fits.json").read_text())["measures"]["fits"]
    sizes = Sizes(96, horizon, 5, 24)
    assert near(seconds_of(resolve("sealed", sizes), windows), measured[f"{name}_sealed_seconds"])
    assert near(seconds_of(resolve("default", sizes), windows, usual=True), measured[f"{name}_plain_seconds"])


def test_the_usual_time_is_the_longest_one_without_a_contest() -> None:
    sizes = Sizes(96, 24, 5, 24)
    for name in ("sealed", "choosing", "any-budget"):
        assert seconds_of(resolve(name, sizes), 1000, usual=True) == seconds_of(resolve(name, sizes), 1000)
    plain = resolve("default", sizes)
    assert 2 * seconds_of(plain, 1000, usual=True) < seconds_of(plain, 1000)


def test_a_cost_is_one_line() -> None:
    assert str(Cost(300, 100.0, 363.0, 2741.0)) == "300 channels: about 2 to 6 min on one thread and 2.7 GB of memory"
    assert str(Cost(1, 20.0, 90.0, 512.0)) == "1 channel: about 20 to 90 s on one thread and 0.5 GB of memory"
    assert Cost(1, 40.0, 200.0, 0.0).time == "40 s to 3 min"
    assert Cost(1, 40.0, 200.0, 0.0).within(30.0).time == "30 s"
    assert (duration(0.1), duration(99.4), duration(100.0)) == ("1 s", "99 s", "2 min")


def test_a_fit_is_large_if_it_may_need_much_time_or_memory() -> None:
    small = Cost(5, LONG_SECONDS / 3, LONG_SECONDS, LARGE_MEGABYTES)
    assert not small.is_large
    assert replace(small, most_seconds=LONG_SECONDS + 1).is_large
    assert replace(small, megabytes=LARGE_MEGABYTES + 1).is_large


def test_a_fit_reports_its_cost_once_before_it_trains() -> None:
    rows = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=400, freq="h"), "load": np.sin(np.arange(400))})
    settings: dict[str, Any] = {"horizon": 6, "look_back": 24, "epochs": 1, "device": "cpu"}
    events: list[Any] = []
    model = IBForecaster(**settings)
    model.fit(rows, on_start=events.append, on_epoch=lambda number, *rest: events.append(number))
    assert events == [model.check(rows).cost, *range(1, len(events))]
    assert isinstance(events[0], Cost)
    assert events[0].channels == 1


def test_a_time_limit_is_the_longest_time_of_its_cost() -> None:
    rows = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=400, freq="h"), "load": np.sin(np.arange(400))})
    costs: list[Cost] = []
    IBForecaster(horizon=6, look_back=24, device="cpu", sealed=True).fit(rows, minutes=0.01, on_start=costs.append)
    assert [cost.most_seconds <= 0.6 for cost in costs] == [True]
