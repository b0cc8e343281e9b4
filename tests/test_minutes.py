"""Time limits of fits: with a clock that charges every step, every pass and the end, a fit ends within its limit."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.model.reading import ChoosingForecast
from ibforecast.train.deadline import AIM
from ibforecast.zoo.stages import FEWEST_VALIDATED, NoContest

RECIPE = """
extends = "{name}"
[model.readout]
width = 8
[train]
fewest_steps = 12
most_steps = 12
"""


def table(rows: int = 1200) -> pd.DataFrame:
    random, hour = np.random.default_rng(3), np.arange(rows)
    values = np.sin(hour / 24 * 2 * np.pi) + random.normal(size=rows) / 4
    return pd.DataFrame({"when": pd.date_range("2024-01-01", periods=rows, freq="h"), "load": values})


@dataclass
class Machine:
    """A machine on which a step and a window of a pass take these seconds, and a choosing reader `choosing` times more.

    After `steady` seconds everything takes `slower` times longer.
    """

    step: float
    window: float
    choosing: float = 4.0
    steady: float = 0.0
    slower: float = 1.0
    now: float = 1000.0

    def charge(self, seconds: float, network: object = None) -> None:
        factor = self.choosing if isinstance(network, ChoosingForecast) else 1.0
        self.now += seconds * factor * (self.slower if self.now - 1000 > self.steady else 1.0)

    def charged(self, work: Callable[..., Any], cost: Callable[..., tuple[float, object]]) -> Callable[..., Any]:
        def charging(*arguments: Any, **named: Any) -> Any:
            self.charge(*cost(*arguments, **named))
            return work(*arguments, **named)

        return charging

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Charge every step and every pass; the end of a fit takes six passes in all, and half a second."""
        from ibforecast import fitting
        from ibforecast.train import loop
        from ibforecast.train.step import Step
        from ibforecast.zoo import stages

        monkeypatch.setattr("time.perf_counter", lambda: self.now)
        for place, name, cost in (
            (Step, "run", lambda step, starts: (self.step, step._scored.forecaster)),
            (loop, "errors_on", lambda network, windows: (self.window * len(windows), network)),
            (stages, "anchored", lambda network, windows, margin: (2 * self.window * len(windows), network)),
            (fitting, "calibrated_on", lambda network, windows, series: (2 * self.window * len(windows), network)),
            (fitting, "behind_naive", lambda fitted, windows, naive: (self.window * len(windows), fitted.network)),
        ):
            monkeypatch.setattr(place, name, self.charged(getattr(place, name), cost))


def fitted(tmp_path: Path, name: str, minutes: float | None, **settings: Any) -> IBForecaster:
    (tmp_path / "tiny.toml").write_text(RECIPE.format(name=name))
    usual = {"budget": 0.25, "cycle": 24, "split": (0.6, 0.3, 0.1), "recipe": str(tmp_path / "tiny.toml")}
    return IBForecaster(6, 24, device="cpu", **(usual | settings)).fit(table(), minutes=minutes)


SIZES = {
    "usual": Machine(0.1, 1e-3),
    "wide": Machine(0.5, 5e-3),
    "no epoch fits": Machine(1.2, 2e-3),
    "long validation": Machine(0.1, 0.01),
    "slower once measured": Machine(0.1, 1e-3, steady=3.0, slower=2.0),
    "slower in the middle": Machine(0.1, 2e-3, steady=14.0, slower=2.0),
}


@pytest.mark.parametrize("name", ["sealed", "choosing", "default"])
@pytest.mark.parametrize("size", SIZES)
def test_a_fit_ends_within_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, name: str) -> None:
    machine = Machine(**vars(SIZES[size]))
    machine.install(monkeypatch)
    model = fitted(tmp_path, name, 0.5)
    spent, summary = machine.now - 1000, model.fitted.summary
    assert spent <= (1.0 if machine.slower > 1 else AIM) * 30.0
    assert summary.epochs >= 1
    assert model.fitted.calibration is not None
    assert model.fitted.config.sealed == (name != "choosing")


@pytest.mark.parametrize("name", ["sealed", "default"])
def test_most_of_the_time_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine = Machine(0.2, 1e-3)
    machine.install(monkeypatch)
    fitted(tmp_path, name, 1.0)
    assert machine.now - 1000 > 36


@pytest.mark.parametrize(("name", "minutes"), [("sealed", 60.0), ("choosing", 1e308)])
def test_a_time_limit_that_allows_everything_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, minutes: float
) -> None:
    plain = fitted(tmp_path, name, None, epochs=2)
    Machine(1e-3, 1e-6).install(monkeypatch)
    limited = fitted(tmp_path, name, minutes, epochs=2)
    assert limited.fitted.weights_sha256 == plain.fitted.weights_sha256


def test_a_long_end_is_shortened_by_validating_fewer_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[int] = []
    for window in (1e-4, 0.01, 0.05):
        machine = Machine(0.1, window)
        with monkeypatch.context() as context:
            machine.install(context)
            calibration = fitted(tmp_path, "sealed", 0.5).fitted.calibration
        assert calibration is not None
        windows.append(calibration.windows)
        assert machine.now - 1000 <= 30
    assert windows[0] > windows[1] > windows[2] == FEWEST_VALIDATED


@pytest.mark.parametrize(
    ("machine", "minutes", "reason"),
    [(Machine(0.1, 1e-3), 0.5, "no time"), (Machine(0.1, 1e-3, steady=12.0, slower=6.0), 2.0, "out of time")],
)
def test_a_contest_that_the_time_does_not_allow_is_named_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine, minutes: float, reason: str
) -> None:
    with monkeypatch.context() as context:
        machine.install(context)
        model = fitted(tmp_path, "default", minutes)
    model.save(tmp_path / "model")
    summary = IBForecaster.load(tmp_path / "model").fitted.summary
    assert summary.contest is None
    assert summary.no_contest == model.fitted.summary.no_contest == NoContest(reason)
    assert str(summary.no_contest).startswith("sealed by rule: ")
    assert model.fitted.config.sealed


def test_a_recipe_without_a_contest_misses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(0.1, 1e-3).install(monkeypatch)
    assert fitted(tmp_path, "sealed", 0.5).fitted.summary.no_contest is None
    assert fitted(tmp_path, "choosing", 0.5).fitted.summary.no_contest is None
