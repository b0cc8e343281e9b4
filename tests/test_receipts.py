"""Receipts of forecasts: they add up, are what the model does, and a false one is refused."""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.anchors import halve_anchor
from tests.forgery.forgeries import sealed as with_fingerprint

from ibforecast import ExplainedForecast, IBForecaster, UsageError
from ibforecast.core.errors import DataError
from ibforecast.core.receipt import decimals_for, places, unrounded
from ibforecast.engine import TorchEngine
from ibforecast.receipts import amounts, weights

ROWS, LOOK_BACK, HORIZON = 420, 48, 12
KINDS: dict[str, dict[str, Any]] = {
    "additive": {"recipe": "additive"},
    "additive, covariates, two cycles": {
        "recipe": "additive",
        "past": ["wind"],
        "future": ["holiday"],
        "cycle": (24, 168),
    },
    "additive, patches": {"recipe": "additive", "patch_len": 4},
    "sealed": {"sealed": True},
    "sealed, few values": {"sealed": True, "budget": 0.03},
    "choosing": {"choosing": True},
    "level of the window": {"recipe": "static-fixed", "patch_len": 6},
    "covariates": {"sealed": True, "past": ["wind"], "future": ["holiday"]},
}


def table(kind: str) -> pd.DataFrame:
    """Make three channels of different sizes with a gap, and a column that is known ahead."""
    hour, random = np.arange(ROWS), np.random.default_rng(3)
    values = np.sin(2 * np.pi * hour / 24)[:, None] + 0.5 * random.normal(size=(ROWS, 3))
    values = values * (20.0, 3.0, 0.05) + (900.0, 40.0, -2.0)
    columns = dict(zip(("load", "wind", "heat"), values.T, strict=True))
    columns["heat"][ROWS - 20] = np.nan
    columns = {"when": pd.date_range("2023-01-01", periods=ROWS, freq="h")} | columns
    if "covariates" in kind:
        columns["holiday"] = (hour // 24 % 6 == 0).astype(float)
    return pd.DataFrame(columns)


@pytest.fixture(scope="module", params=KINDS)
def model(request: pytest.FixtureRequest) -> IBForecaster:
    settings = {"budget": 0.2, "epochs": 1, "device": "cpu", **KINDS[request.param]}
    forecaster = IBForecaster(HORIZON, LOOK_BACK, **settings).fit(table(request.param))
    disturb(forecaster)
    return forecaster


def disturb(forecaster: IBForecaster) -> None:
    """Add noise to all weights, so that nothing is left at its first value of zero."""
    import torch

    torch.manual_seed(1)
    halve_anchor(forecaster)
    with torch.no_grad():
        for parameter in forecaster.fitted.network.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))


@pytest.fixture(scope="module")
def explained(model: IBForecaster) -> ExplainedForecast:
    rows = table("covariates" if model.fitted.layout.future else "")
    return model.explain(rows, rows["when"].iloc[ROWS - HORIZON - 1])


def forecast_names(explained: ExplainedForecast) -> list[str]:
    return [name for name in explained.channels if name not in explained.past]


def test_amounts_add_up_to_every_number_of_the_forecast(explained: ExplainedForecast) -> None:
    for name in forecast_names(explained):
        for step in ("mean", *range(1, HORIZON + 1)):
            receipt = explained.itemised(name, step)  # type: ignore[arg-type]
            values = explained.forecast[:, explained.channels.index(name)]
            total = values.mean() if step == "mean" else values[int(step) - 1]
            assert receipt.adds_up
            assert receipt.forecast == pytest.approx(total, abs=1e-4 * explained.units.std.max())


def test_amounts_are_those_of_the_model_before_they_are_rounded(explained: ExplainedForecast) -> None:
    """What is left for the last digit is rounding: a millionth of a standard deviation."""
    for name in forecast_names(explained):
        column, parts = explained.channels.index(name), explained.amounts(name)
        total = parts.calendar + parts.read.sum(axis=0) + parts.known.sum(axis=0)
        total = total if parts.unread is None else total + parts.unread
        assert np.abs(total - explained.forecast[:, column]).max() < 2e-5 * explained.units.std[column]


def test_the_table_of_a_receipt_has_the_places_that_were_read(explained: ExplainedForecast) -> None:
    name = forecast_names(explained)[0]
    rows = explained.receipt(name, 3)
    assert list(rows.columns) == ["part", "channel", "start", "end", "amount"]
    read = rows[rows.part == "read"]
    expected = [
        (explained.channels[column], explained.times[explained.steps(patch).start])
        for patch, column in places(explained)
    ]
    assert list(zip(read.channel, read.start, strict=True)) == expected
    assert (rows.part == "unread").sum() == (0 if explained.sealed else 1)
    printed = sum(Decimal(repr(amount)) for amount in rows.amount)
    assert float(printed) == explained.itemised(name, 3).forecast


def test_the_calendar_is_the_forecast_of_a_usual_window(model: IBForecaster, explained: ExplainedForecast) -> None:
    engine = TorchEngine(model.fitted)
    usual = np.where(np.isnan(explained.history), np.nan, explained.usual)
    _, forecast = engine.run(usual, explained.explanation.context.phase, explained.known)
    for name in forecast_names(explained):
        column, parts = explained.channels.index(name), explained.amounts(name)
        expected = forecast[:, column] - parts.known.sum(axis=0)
        assert np.abs(parts.calendar - expected).max() < 2e-5 * explained.units.std[column]


def test_a_usual_window_has_nothing_to_add(model: IBForecaster, explained: ExplainedForecast) -> None:
    engine = TorchEngine(model.fitted)
    usual = np.where(np.isnan(explained.history), np.nan, explained.usual)
    explanation, forecast = engine.run(usual, explained.explanation.context.phase, explained.known)
    still = replace(explained, explanation=explanation, forecast=forecast, history=usual)
    for name in forecast_names(explained):
        parts = still.amounts(name)
        assert np.abs(parts.read).max(initial=0.0) < 2e-5 * explained.units.std[explained.channels.index(name)]


def test_an_unknown_channel_or_step_is_refused(explained: ExplainedForecast) -> None:
    name = forecast_names(explained)[0]
    with pytest.raises(UsageError, match="channel must be one that is forecast"):
        explained.receipt("nothing")
    for step in (0, HORIZON + 1, True):
        with pytest.raises(UsageError, match="step must be"):
            explained.receipt(name, step)


def test_one_name_instead_of_a_list_is_refused(explained: ExplainedForecast) -> None:
    for call in (explained.amounts_of, explained.with_receipts):
        with pytest.raises(UsageError, match=r"channels must be a list of names \(got 'load'\); write \['load'\]"):
            call("load")


def test_an_explanation_without_its_model_has_only_the_receipts_of_its_document(explained: ExplainedForecast) -> None:
    name = forecast_names(explained)[0]
    again = ExplainedForecast.from_json(explained.with_receipts([name], 2).to_json())
    assert again.itemised(name, 2) == explained.itemised(name, 2)
    with pytest.raises(UsageError, match="a receipt needs the model"):
        again.itemised(name, 3)


def test_a_document_with_receipts_is_verified(model: IBForecaster, explained: ExplainedForecast) -> None:
    verification = model.verify(explained.with_receipts().to_json(), exact=True)
    assert verification
    assert "receipts" in {check.name for check in verification.checks}


def test_a_document_without_receipts_keeps_its_fingerprint(explained: ExplainedForecast) -> None:
    assert "receipts" not in json.loads(explained.to_json())
    assert replace(explained.with_receipts(), receipts=()).sha256 == explained.sha256


def forged(explained: ExplainedForecast, lie: Any) -> str:
    document = json.loads(explained.with_receipts().to_json())
    lie(document["receipts"][0])
    return with_fingerprint(document)


def test_a_receipt_whose_amounts_are_exchanged_is_refused(model: IBForecaster, explained: ExplainedForecast) -> None:
    """It still adds up, so only computing it again shows the lie."""

    def lie(receipt: dict[str, Any]) -> None:
        read = receipt["read"]
        low, high = min(range(len(read)), key=read.__getitem__), max(range(len(read)), key=read.__getitem__)
        read[low], read[high] = read[high], read[low]

    verification = model.verify(forged(explained, lie))
    assert [check.name for check in verification.checks if not check.passed] == ["receipts"]


def test_a_receipt_that_moves_an_amount_to_the_calendar_is_refused(
    model: IBForecaster, explained: ExplainedForecast
) -> None:
    def lie(receipt: dict[str, Any]) -> None:
        largest = max(receipt["read"], key=abs)
        receipt["read"][receipt["read"].index(largest)] = 0.0
        receipt["calendar"] = float(Decimal(repr(receipt["calendar"])) + Decimal(repr(largest)))

    assert not model.verify(forged(explained, lie))


def test_amounts_that_are_not_rounded_at_one_threshold_are_refused(
    model: IBForecaster, explained: ExplainedForecast
) -> None:
    """One unit of the last digit is moved to the amount that was rounded up the most, from that rounded down."""
    own = explained.with_receipts().receipts[0]
    exact = unrounded(explained, explained.amounts(own.channel), own.channel, own.step)
    added = np.array(own.amounts) - exact
    unit = 10.0 ** -decimals_for(explained, explained.channels.index(own.channel), own.step)
    read = added[1 : 1 + len(own.read)]
    to, other = int(read.argmax()), int(read.argmin())
    assert to != other

    def lie(receipt: dict[str, Any]) -> None:
        for number, by in ((to, unit), (other, -unit)):
            receipt["read"][number] = float(Decimal(repr(receipt["read"][number])) + Decimal(repr(by)))

    verification = model.verify(forged(explained, lie))
    assert [check.name for check in verification.checks if not check.passed] == ["receipts"]


def test_a_receipt_that_does_not_add_up_is_refused_when_it_is_read(explained: ExplainedForecast) -> None:
    def lie(receipt: dict[str, Any]) -> None:
        receipt["calendar"] += 1.0

    with pytest.raises(DataError, match="add up to the forecast to the last digit"):
        ExplainedForecast.from_json(forged(explained, lie))


def test_a_smaller_error_than_the_sampled_one_is_refused(model: IBForecaster, explained: ExplainedForecast) -> None:
    if explained.itemised(forecast_names(explained)[0]).error is None:
        pytest.skip("the amounts of this model are exact")
    assert not model.verify(forged(explained, lambda receipt: receipt.update(error=0.0)))


def test_words_have_at_most_eight_lines_and_add_up(explained: ExplainedForecast) -> None:
    assert len(explained.in_words().split("\n")) <= 8
    for name in forecast_names(explained):
        text = explained.in_words(name, 4)
        lines = text.split("\n")
        assert len(lines) <= 8
        assert text.startswith(f"{name}, {explained.times[LOOK_BACK + 3]}: ")
        assert ("No value that was not read can change this forecast." in lines) == explained.sealed


# --- The two ways to compute amounts ---


def test_a_shapley_value_is_the_mean_over_all_orders() -> None:
    """Compare with a plain loop over all orders, computed by the whole model one window at a time."""
    forecaster = IBForecaster(HORIZON, LOOK_BACK, 0.03, sealed=True, epochs=1, device="cpu").fit(table(""))
    disturb(forecaster)
    explained = forecaster.explain(table(""))
    engine, opened = TorchEngine(forecaster.fitted), places(explained)
    assert 1 < len(opened) <= 5
    phase, usual = explained.explanation.context.phase, np.where(np.isnan(explained.history), np.nan, explained.usual)
    expected, orders = np.zeros((len(opened), HORIZON, 3)), list(permutations(range(len(opened))))
    for order in orders:
        history = usual.copy()
        before = engine.run(history, phase, None)[1]
        for number in order:
            patch, column = opened[number]
            history[explained.steps(patch), column] = explained.history[explained.steps(patch), column]
            after = engine.run(history, phase, None)[1]
            expected[number] += (after - before) / len(orders)
            before = after
    for column, parts in enumerate(amounts(engine, explained, range(3))):
        assert np.abs(parts.read - expected[..., column]).max() < 2e-5 * explained.units.std[column]
        assert parts.error is None


def test_an_additive_forecast_is_its_published_sum() -> None:
    """The weights do not depend on the values: with other values, the same weights give the model's own forecast."""
    forecaster = IBForecaster(HORIZON, LOOK_BACK, 0.2, recipe="additive", epochs=1, device="cpu").fit(table(""))
    disturb(forecaster)
    engine, rows = TorchEngine(forecaster.fitted), table("")
    explained = forecaster.explain(rows)
    changed = rows.assign(load=rows.load + np.where(rows.index % 5 == 0, 30.0, -4.0), wind=rows.wind * 1.1)
    other = forecaster.explain(changed)
    for column in range(3):
        here, there = (weights(engine, each, [column])[column] for each in (explained, other))
        for name in ("constant", "swing", "linear", "bent"):
            assert np.array_equal(getattr(here, name), getattr(there, name))
        departure = there.read.departure[:, None]
        own = here.linear * departure + here.bent * np.tanh(departure)
        total = here.constant + there.read.scale @ here.swing + own.sum(axis=0)
        expected = (other.forecast[:, column] - other.units.mean[column]) / other.units.std[column]
        assert np.abs(total - expected).max() < 1e-5


def test_a_value_above_the_usual_one_gets_the_credit_of_the_level_it_raises() -> None:
    forecaster = IBForecaster(HORIZON, LOOK_BACK, 0.2, recipe="additive", epochs=1, device="cpu").fit(table(""))
    network = forecaster.fitted.network
    if network.decompose.anchor is not None:
        network.decompose.anchor.blend.zero_()
    explained = forecaster.explain(table(""))
    column, raised = 0, explained.history.copy()
    opened = explained.explanation.mask.repeat(explained.patch_len, axis=0)[:, column]
    raised[opened, column] = explained.usual[opened, column] + 50.0
    engine = TorchEngine(forecaster.fitted)
    explanation, forecast = engine.run(raised, explained.explanation.context.phase, None)
    higher = replace(explained, explanation=explanation, forecast=forecast, history=raised)
    own = [
        amount for (_, source), amount in zip(places(higher), higher.itemised("load").read, strict=True) if source == 0
    ]
    assert sum(own) > 0.5 * 50.0
