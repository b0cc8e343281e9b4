"""A model that reads what it says it did not, and times that are not those of the forecast, are found out."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from torch import Tensor

from ibforecast import IBForecaster, Verification
from ibforecast.core.account import Account
from ibforecast.core.context import Context
from ibforecast.core.explanation import Explanation, Forecast
from ibforecast.core.window import Window
from ibforecast.model.network import IBForecast

ROWS, LOOK_BACK, HORIZON = 200, 24, 6


def table(zone: str | None = None, frequency: str = "h") -> pd.DataFrame:
    """Two noisy channels; hour by hour the table spans the night the clocks of Berlin are put on."""
    when = pd.date_range("2023-03-20", periods=ROWS, freq=frequency, tz=zone)
    values = np.random.default_rng(3).normal(size=(ROWS, 2)) + np.sin(np.arange(ROWS) * 2 * np.pi / 24)[:, None]
    return pd.DataFrame({"when": when, "load": values[:, 0], "wind": values[:, 1]})


def fitted(given: pd.DataFrame, cycle: int | str = "auto", irregular: str = "error") -> IBForecaster:
    settings = {"recipe": "quick", "epochs": 1, "device": "cpu"}
    return IBForecaster(HORIZON, LOOK_BACK, 0.25, cycle=cycle, irregular=irregular, **settings).fit(given)


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return fitted(table())


def failures(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.passed}


class Remembering(IBForecast):
    """Puts a statistic of the window it saw last into the forecast, behind the explanation's back."""

    def forward(self, window: Window, held: Context | None = None) -> Forecast:
        self.last = window.values.mean()
        return super().forward(window, held)

    def replay(self, explanation: Explanation) -> Tensor:
        return super().replay(explanation) + self.last


def test_a_model_that_remembers_the_window_is_found_out_every_time(model: IBForecaster) -> None:
    network = Remembering(model.fitted.config).eval()
    network.load_state_dict(model.fitted.network.state_dict())
    sly = IBForecaster.of(replace(model.fitted, network=network), device="cpu")
    for _ in range(2):
        assert failures(sly.verify(sly.explain(table()))) == {"replay", "scramble"}


def shifted(told: Account, by: timedelta) -> Account:
    """The explanation as if all had been at another time; read from a document with a fingerprint that fits."""
    times = tuple(str(datetime.fromisoformat(time) + by)[: len(time)] for time in told.times)
    again = Account.from_json(replace(told, times=times).to_json())
    assert again.intact
    return again


@pytest.mark.parametrize("by", [timedelta(hours=1), timedelta(hours=-7), timedelta(days=3, hours=5)])
def test_other_times_are_found_out_by_the_phase(model: IBForecaster, by: timedelta) -> None:
    told = model.explain(table())
    assert failures(model.verify(shifted(told, timedelta(0)))) == set()
    verification = model.verify(shifted(told, by))
    assert failures(verification) == {"rerun"}
    assert "differs in phase" in str(verification)


def test_one_time_that_is_out_of_step_is_found_out(model: IBForecaster) -> None:
    told = model.explain(table())
    odd = replace(told, times=(told.times[0], "1999-12-31 07:00", *told.times[2:]))
    assert failures(model.verify(odd)) == {"rerun"}


@pytest.mark.parametrize(
    ("made", "cycle", "irregular"),
    [
        (lambda: table("Europe/Berlin"), "auto", "error"),
        (lambda: table("Europe/Berlin", "D"), "auto", "error"),
        (lambda: table(frequency="ME"), "auto", "error"),
        (lambda: table(frequency="17min"), 5, "error"),
        (lambda: table().drop(index=[30, 31, 150]), "auto", "by_row"),
        (lambda: table().drop(index=[30, 31, 150]), "auto", "fill"),
        (lambda: table().assign(when=lambda it: it["when"] + pd.Timedelta("00:20:00.5")), "auto", "error"),
    ],
    ids=["clocks put on", "days of a zone", "ends of months", "odd steps", "rows counted", "rows filled", "fractions"],
)
def test_true_times_of_every_calendar_pass(made: Callable[[], pd.DataFrame], cycle: int | str, irregular: str) -> None:
    given = made()
    model = fitted(given, cycle, irregular)
    for row in (LOOK_BACK + 2, len(given) - HORIZON - 30, len(given) - 1):
        told = Account.from_json(model.explain(given, given["when"].iloc[row]).to_json())
        verification = model.verify(told)
        assert verification, str(verification)


@pytest.mark.parametrize("numbered", [range(LOOK_BACK + HORIZON), range(20230101, 20230101 + LOOK_BACK + HORIZON)])
def test_steps_that_are_numbered_have_no_phase_to_be_held_against(model: IBForecaster, numbered: range) -> None:
    assert model.verify(replace(model.explain(table()), times=tuple(map(str, numbered))))
