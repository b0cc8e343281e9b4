"""The promises of receipts, for any weights, units and window: they add up, and the model confirms them."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ibforecast import ExplainedForecast
from ibforecast.core.receipt import LARGEST_REST, Step
from ibforecast.core.standardiser import Standardiser
from ibforecast.data.splits import Split
from ibforecast.data.tables import Layout
from ibforecast.model.config import GateConfig, ModelConfig, ObjectiveConfig, ReadoutConfig
from ibforecast.model.reading import network_of
from ibforecast.use import Desk
from ibforecast.zoo.saved import FittedModel, TrainingSummary

modest = settings(max_examples=40, deadline=None, derandomize=True)
FIXED = GateConfig(attention="none", recent=1)
MIXED = ReadoutConfig("phase", 16, 0.0, cross_channel=True, by_channel=True)
KINDS: dict[str, dict[str, Any]] = {
    "additive": {
        "sealed": True,
        "frame": "seasonal",
        "gate": FIXED,
        "readout": ReadoutConfig("additive", 16, 0.0, cross_channel=True, by_channel=True),
    },
    "sealed": {"sealed": True, "frame": "seasonal", "gate": FIXED, "readout": MIXED},
    "choosing": {
        "level_from": "reading",
        "frame": "seasonal",
        "gate": GateConfig(attention="mixing", width=4, heads=2),
        "readout": MIXED,
        "objective": ObjectiveConfig(rate_weight=0.0, consistency_weight=0.0),
    },
    "level of the window": {"gate": FIXED, "readout": ReadoutConfig("phase", 16, 0.0)},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@dataclass(frozen=True)
class Units:
    """The mean and spread of a channel."""

    mean: float
    std: float


def desk(kind: str, units: list[Units], horizon: int = 2, look_back: int = 8, budget: float = 0.5) -> Desk:
    """Build a model with arbitrary weights for channels of these units."""
    sizes = {"look_back": look_back, "horizon": horizon, "channels": len(units), "cycle": 5, "patch_len": 1}
    config = ModelConfig(**{**KINDS[kind], **sizes, "budget": budget})
    with torch.random.fork_rng([]), torch.no_grad():
        torch.manual_seed(2)
        network = network_of(config).eval()
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    fitted = FittedModel(
        network=network,
        standardiser=Standardiser(np.array([each.mean for each in units]), np.array([each.std for each in units])),
        layout=Layout(time="when", channels=names(units), shape="wide", frequency="1h"),
        origin="2024-01-01T00:00:00",
        split=Split(1, 1, 1),
        summary=TrainingSummary("", "0" * 64, "", 0, 0, "cpu", 0.0, 0, 0, 0, 0.0),
    )
    return Desk(fitted, "cpu", "pandas")


def names(units: list[Units]) -> tuple[str, ...]:
    return tuple(f"channel {number}" for number in range(len(units)))


def explained(model: Desk, departures: np.ndarray) -> ExplainedForecast:
    """Explain the window with these departures from the mean, in standard deviations; NaN is missing."""
    values = model.fitted.standardiser.to_units(departures)
    times = pd.date_range("2024-01-01", periods=len(values), freq="h")
    rows = pd.DataFrame(values, columns=list(model.fitted.channels)).assign(when=times)
    return model.explain(model.open(rows), 0)


def assert_true(model: Desk, explanation: ExplainedForecast, channels: list[str]) -> None:
    """Check the receipts of every step of these channels as decimals, and verify a document that has them."""
    steps: list[Step] = ["mean", *range(1, explanation.horizon + 1)]
    receipts = tuple(explanation.itemised(name, step) for name in channels for step in steps)
    for receipt in receipts:
        column = explanation.channels.index(receipt.channel)
        values = explanation.forecast[:, column]
        total = values.mean() if receipt.step == "mean" else values[int(receipt.step) - 1]
        assert sum(Decimal(repr(amount)) for amount in receipt.amounts) == Decimal(repr(receipt.forecast))
        size = max(abs(total), abs(float(explanation.units.mean[column])))
        assert abs(receipt.forecast - total) <= 1e-3 * explanation.units.std[column] + 1e-12 * size
    assert model.verify(replace(explanation, receipts=receipts).to_json(), exact=True)


def departures(model: Desk, seed: int, missing: float = 0.0) -> np.ndarray:
    shape, random = (model.look_back, len(model.fitted.channels)), np.random.default_rng(seed)
    values = random.normal(size=shape)
    values[random.random(shape) < missing] = np.nan
    return values


exponents = st.integers(-12, 12)
units = st.builds(
    lambda exponent, digit, sign, further: Units(sign * 10.0 ** (exponent + further), digit * 10.0**exponent),
    exponents,
    st.floats(1, 9.99),
    st.sampled_from([-1, 0, 1]),
    st.integers(-3, 9),
)


@every_kind
@modest
@given(st.lists(units, min_size=1, max_size=3), st.integers(1, 3), st.integers(0, 99))
def test_receipts_add_up_in_any_units(kind: str, units: list[Units], horizon: int, seed: int) -> None:
    """Spreads from 1e-12 to 1e13, and means up to a milliard spreads away from 0."""
    model = desk(kind, units, horizon)
    explanation = explained(model, departures(model, seed))
    assert_true(model, explanation, list(names(units)))
    explanation.in_words()


@every_kind
@modest
@given(st.integers(0, 999), st.floats(0.05, 0.4), st.integers(1, 3))
def test_receipts_of_windows_with_gaps_add_up(kind: str, seed: int, missing: float, horizon: int) -> None:
    model = desk(kind, [Units(900.0, 20.0), Units(-2.0, 0.05), Units(0.0, 3.0)], horizon, budget=0.9)
    values = departures(model, seed, missing)
    # Every channel must be observed where it is read.
    values[model.fitted.cells.argmax(axis=0), range(values.shape[1])] = 0.5
    assert_true(model, explained(model, values), list(model.fitted.channels))


@every_kind
@modest
@given(st.integers(0, 99), st.floats(10, 1e6), st.sampled_from([-1, 1]))
def test_receipts_of_a_window_with_an_outlier_add_up(kind: str, seed: int, size: float, sign: int) -> None:
    """A broken sensor: single precision then loses more of the sum than a thousandth of a standard deviation."""
    model = desk(kind, [Units(900.0, 20.0), Units(-2.0, 0.05)])
    values = departures(model, seed)
    place = np.argwhere(model.fitted.cells)[seed % int(model.fitted.cells.sum())]
    values[tuple(place)] = sign * size
    assert_true(model, explained(model, values), list(model.fitted.channels))


@every_kind
@pytest.mark.parametrize("value", [0.0, 7.25, -1e12])
def test_receipts_of_a_constant_channel_add_up(kind: str, value: float) -> None:
    """Its spread is counted as 1, and its values are the usual ones."""
    constant = Standardiser.of(np.full((20, 1), value), ("constant",))
    model = desk(kind, [Units(float(constant.mean[0]), float(constant.std[0])), Units(5.0, 2.0)])
    values = departures(model, 3)
    values[:, 0] = 0.0
    assert_true(model, explained(model, values), list(model.fitted.channels))


@pytest.mark.parametrize("kind", ["additive", "sealed"])
def test_receipts_of_862_channels_add_up(kind: str) -> None:
    random = np.random.default_rng(0)
    many = [Units(*pair) for pair in zip(random.normal(50, 20, 862), random.uniform(0.1, 9, 862), strict=True)]
    model = desk(kind, many, horizon=1, look_back=4, budget=0.5)
    explanation = explained(model, departures(model, 1))
    assert explanation.open_count > 862
    assert_true(model, explanation, ["channel 0", "channel 861"])


def test_amounts_that_miss_the_forecast_are_refused_in_any_units() -> None:
    """The tolerance is relative to the spread: no unit is so small that a wrong sum passes."""
    for std in (1e-12, 1.0, 1e12):
        model = desk("sealed", [Units(5 * std, std)])
        explanation = explained(model, departures(model, 0))
        moved = replace(explanation, forecast=explanation.forecast + 10 * LARGEST_REST * std)
        with pytest.raises(Exception, match="the amounts of a receipt must add up to the forecast"):
            moved.itemised("channel 0")
