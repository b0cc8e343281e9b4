"""The benchmark of receipts, on generated tables: what it counts, and that it notices what is wrong."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks import receipts

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.core.receipt import Receipt, printed

COUNT, ROWS, HORIZON = 150, 300, 4
KINDS: dict[str, dict[str, Any]] = {
    "additive, with what is known ahead": {"recipe": "additive", "future": ["holiday"]},
    "choosing": {"choosing": True},
}


def table(kind: str) -> pd.DataFrame:
    """Make two channels of very different sizes with gaps, and a column that is known ahead."""
    hour, random = np.arange(ROWS), np.random.default_rng(len(kind))
    values = np.sin(2 * np.pi * hour / 24)[:, None] + 0.5 * random.normal(size=(ROWS, 2))
    load, heat = (values * (3e5, 2e-3) + (7e5, -2.0)).T
    heat[random.choice(ROWS, 9, replace=False)] = np.nan
    columns = {"date": pd.date_range("2023-01-01", periods=ROWS, freq="h"), "load": load, "heat": heat}
    return pd.DataFrame(columns | ({"holiday": hour // 24 % 6 == 0} if "known ahead" in kind else {})).astype(
        {"holiday": float} if "known ahead" in kind else {}
    )


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> tuple[IBForecaster, pd.DataFrame]:
    rows = table(request.param)
    settings = {"epochs": 1, "device": "cpu", **KINDS[request.param]}
    return IBForecaster(HORIZON, 24, **settings).fit(rows), rows


def test_every_receipt_adds_up_and_no_forged_one_passes(model: tuple[IBForecaster, pd.DataFrame]) -> None:
    forecaster, rows = model
    tally = receipts.counted(forecaster, forecaster.open(rows), COUNT)
    additive = forecaster.fitted.config.readout.kind == "additive"
    assert (tally.receipts, tally.windows) == (COUNT, 15)
    assert (tally.exact, tally.known_ahead, tally.unread) == ((COUNT, COUNT, 0) if additive else (0, 0, COUNT))
    assert (tally.wrong_sum, tally.wrong_forecast, tally.not_accepted) == (0, 0, 0)
    kinds = set(receipts.LIES) - ({"error understated by three units"} if additive else set())
    assert tally.forged.keys() == kinds
    assert tally.not_refused.total() == 0


def test_a_model_whose_receipts_miss_the_forecast_is_noticed(
    model: tuple[IBForecaster, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receipts that are wrong by one unit, in a document that is not checked when it is made."""
    forecaster, rows = model
    true = ExplainedForecast.itemised

    def wrong(explained: ExplainedForecast, channel: str, step: Any = "mean") -> Receipt:
        own = true(explained, channel, step)
        unit = receipts._unit(explained, explained.channels.index(channel))
        return replace(own, calendar=float(printed(own.calendar) + unit))

    monkeypatch.setattr(ExplainedForecast, "itemised", wrong)
    monkeypatch.setattr("ibforecast.core.receipt.Receipt.adds_up", property(lambda own: True))
    tally = receipts.counted(forecaster, forecaster.open(rows), 20)
    assert (tally.wrong_sum, tally.not_accepted) == (20, 20)


def test_timing_names_ratios_for_additive_models_and_milliseconds_for_others(
    model: tuple[IBForecaster, pd.DataFrame],
) -> None:
    forecaster, rows = model
    timed = receipts.seconds(forecaster, forecaster.open(rows))
    additive = forecaster.fitted.config.readout.kind == "additive"
    assert ("receipt_over_forecast" in timed, "receipt_ms" in timed) == (additive, not additive)
    assert all(value > 0 for value in timed.values())
