"""Limits of forecasts: every number is within them, receipts still add up, and a forged limit is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.anchors import halve_anchor
from tests.forgery.forgeries import sealed as with_fingerprint
from tests.properties.test_receipts import Units, assert_true, departures, desk, every_kind, explained

from ibforecast import IBForecaster, UsageError
from ibforecast.core.errors import DataError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.limits import LIMIT, Limits, rests_at_zero
from ibforecast.use import Desk
from ibforecast.zoo import saved

ROWS = 24 * 20
modest = settings(max_examples=6, deadline=None, derandomize=True)
ends = st.one_of(st.none(), st.integers(-30, 30))


@st.composite
def some_limits(draw: st.DrawFn, channels: int = 2) -> Limits:
    """Draw limits, some of them at places where forecasts are."""
    low, high, whole = [], [], []
    for _ in range(channels):
        below, above = draw(ends), draw(ends)
        if below is not None and above is not None:
            below, above = min(below, above), max(below, above) + 1
        low.append(-np.inf if below is None else float(below))
        high.append(np.inf if above is None else float(above))
        whole.append(draw(st.booleans()))
    return Limits(np.array(low), np.array(high), np.array(whole))


def limited(model: Desk, limits: Limits | None) -> Desk:
    return replace(model, fitted=replace(model.fitted, limits=limits))


UNITS = [Units(3.0, 4.0), Units(-2.0, 20.0)]


@every_kind
@modest
@given(some_limits(), st.integers(0, 99))
def test_forecasts_are_within_limits_and_their_receipts_add_up(kind: str, limits: Limits, seed: int) -> None:
    plain = desk(kind, UNITS, horizon=2)
    model = limited(plain, limits)
    free, explanation = (explained(each, departures(each, seed)) for each in (plain, model))
    forecast = explanation.forecast
    assert (limits.low <= forecast).all()
    assert (forecast <= limits.high).all()
    assert (forecast[:, limits.whole] == np.rint(forecast[:, limits.whole])).all()
    inside = (free.forecast >= limits.low) & (free.forecast <= limits.high) & ~limits.whole
    assert (forecast[inside] == free.forecast[inside]).all()
    assert (explanation.computed == free.forecast).all()
    assert_true(model, explanation, list(explanation.channels))
    again = ExplainedForecast.from_json(explanation.to_json())
    assert again.sha256 == explanation.sha256
    for step in ("mean", 1):
        assert len(explanation.in_words(explanation.channels[0], step).splitlines()) <= 8
    explanation.in_words()


@modest
@given(
    some_limits(3),
    st.lists(st.floats(-50, 50), min_size=3, max_size=3),
    st.lists(st.floats(0, 40), min_size=3, max_size=3),
)
def test_intervals_stay_ordered_and_around_the_forecast(
    limits: Limits, computed: list[float], half: list[float]
) -> None:
    values, reach = np.array([computed]), np.array([half])
    low, high = limits.around(values - reach, values + reach)
    forecast = limits.apply(values)
    assert (low <= forecast).all()
    assert (forecast <= high).all()
    assert ((limits.low <= low) & (high <= limits.high)).all()


def test_a_model_without_limits_gives_the_document_it_always_gave() -> None:
    model = desk("sealed", UNITS)
    explanation = explained(model, departures(model, 1))
    document = json.loads(explanation.with_receipts().to_json())
    assert not {"limits", "unlimited"} & document.keys()
    assert all("limit" not in receipt for receipt in document["receipts"])
    allowing = Limits(np.full(2, -np.inf), np.full(2, np.inf), np.zeros(2, dtype=bool))
    other = limited(model, allowing)
    assert (explained(other, departures(model, 1)).forecast == explanation.forecast).all()


# --- forgeries ---


def _lower_a_limit(document: dict[str, Any]) -> None:
    document["limits"]["low"][0] = -1000.0
    document["forecast"] = document["unlimited"]
    del document["receipts"]


def _drop_the_limits(document: dict[str, Any]) -> None:
    document["forecast"] = document.pop("unlimited")
    del document["limits"], document["receipts"]


def _move_the_forecast(document: dict[str, Any]) -> None:
    document["forecast"][0][0] += 1.0


def _move_what_was_computed(document: dict[str, Any]) -> None:
    document["unlimited"][0][0] -= 1.0  # below the limit as well, so that the forecast still follows


def _hide_the_limit_in_the_calendar(document: dict[str, Any]) -> None:
    (receipt,) = document["receipts"]
    receipt["calendar"], receipt["limit"] = receipt["calendar"] + receipt["limit"], 0.0


FORGERIES = (
    _lower_a_limit,
    _drop_the_limits,
    _move_the_forecast,
    _move_what_was_computed,
    _hide_the_limit_in_the_calendar,
)


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_forged_limit_is_refused(forge: Callable[[dict[str, Any]], None]) -> None:
    limits = Limits(np.array([5.0, -np.inf]), np.array([np.inf, np.inf]), np.zeros(2, dtype=bool))
    model = limited(desk("sealed", UNITS), limits)
    explanation = next(
        each for seed in range(99) if (each := explained(model, departures(model, seed))).computed[0, 0] < 4.0
    ).with_receipts(["channel 0"], 1)
    document = json.loads(explanation.to_json())
    assert model.verify(explanation.to_json())
    assert document["receipts"][0]["limit"] > 0
    forge(document)
    try:
        verdict = bool(model.verify(with_fingerprint(document)))
    except DataError:  # its parts contradict each other
        verdict = False
    assert not verdict


# --- fitted models ---


def calls() -> pd.DataFrame:
    """Make hourly calls with empty nights, and a temperature of whole degrees that is never below 0."""
    hour, random = np.arange(ROWS), np.random.default_rng(5)
    open_hours = (hour % 24 >= 7) & (hour % 24 < 20)
    return pd.DataFrame(
        {
            "when": pd.date_range("2024-01-01", periods=ROWS, freq="h"),
            "calls": random.poisson(np.where(open_hours, 4.0, 0.02)).astype(float),
            "degrees": np.rint(12 + 6 * np.sin(hour / 24 * 2 * np.pi) + random.normal(size=ROWS)).clip(min=1),
        }
    )


def fit(**more: Any) -> IBForecaster:
    return halve_anchor(IBForecaster(24, 48, recipe="additive", epochs=1, device="cpu", **more).fit(calls()))


@pytest.fixture(scope="module")
def model() -> IBForecaster:
    return fit(limits={"degrees": (4, 14)}, whole=["degrees"])


def test_counts_that_are_often_zero_are_limited_and_whole_degrees_are_not() -> None:
    table = calls()
    assert rests_at_zero(table["calls"].to_numpy())
    assert not rests_at_zero(table["degrees"].to_numpy())
    assert not rests_at_zero(table["calls"].to_numpy() + 0.5)
    assert not rests_at_zero(table["calls"].to_numpy() - 1)
    assert not rests_at_zero(np.zeros(100))


def test_a_fit_learns_limits_and_takes_those_that_are_given(model: IBForecaster, tmp_path: Path) -> None:
    limits = model.fitted.limits
    assert limits is not None
    assert dict(limits.named(model.fitted.channels)) == {
        "calls": "at least 0",
        "degrees": "at least 4, at most 14, whole numbers",
    }
    model.save(tmp_path / "model")
    loaded = IBForecaster.load(tmp_path / "model", device="cpu")
    assert loaded.fitted.limits is not None
    assert loaded.fitted.limits.same_as(limits)
    assert loaded.limits == {"calls": (0, None), "degrees": (4, 14)}
    assert loaded.whole == ("degrees",)


def test_predictions_intervals_and_backtests_are_within_the_limits(model: IBForecaster) -> None:
    table = model.predict(calls(), level=[50, 80])
    for name, low, high in (("calls", 0, np.inf), ("degrees", 4, 14)):
        for lower, upper in ((f"{name}-lo-50", f"{name}-hi-50"), (f"{name}-lo-80", f"{name}-hi-80")):
            assert (table[lower] <= table[name]).all()
            assert (table[name] <= table[upper]).all()
            assert table[lower].min() >= low
            assert table[upper].max() <= high
    assert model.cross_validation(calls(), 3)["IBForecast"].min() >= 0


def test_an_evaluation_measures_the_forecasts_that_users_get(model: IBForecaster) -> None:
    table, none = calls(), np.zeros(2, dtype=bool)

    def error(limits: Limits | None) -> float:
        return IBForecaster.of(replace(model.fitted, limits=limits), device="cpu").evaluate(table).mse

    free, seen = error(None), table[["calls", "degrees"]].to_numpy()
    assert error(Limits(seen.min(axis=0), seen.max(axis=0), none)) <= free
    assert error(Limits(np.full(2, -np.inf), np.full(2, 0.5), none)) > 1.5 * free


def test_audit_and_dossier_state_the_errors_of_the_limited_forecast(model: IBForecaster) -> None:
    table, narrow = calls(), Limits(np.full(2, -np.inf), np.full(2, 0.5), np.zeros(2, dtype=bool))
    limited = IBForecaster.of(replace(model.fitted, limits=narrow), device="cpu")
    measured, every = limited.evaluate(table), 10**6
    assert limited.audit(table, windows=every).mse == pytest.approx(measured.mse, rel=1e-5)
    dossier = limited.dossier(table, windows=every)
    assert dossier.facts.use.limits == ("calls at most 0.5", "degrees at most 0.5")
    assert dossier.facts.use.anchors == tuple(limited.fitted.anchors())
    rows = dossier.facts.accuracy.channels
    assert [row.mae for row in rows] == pytest.approx([each.mae for each in measured.channels], rel=1e-5)


def test_limits_can_be_lifted_and_given_for_every_channel() -> None:
    lifted = fit(limits={"calls": (None, None)}).fitted
    assert lifted.limits is not None
    assert not lifted.limits.present.any()
    assert settings_of_limits(limits=(0, None)) == {"*": (0, None)}
    assert settings_of_limits(limits=["0..", "calls=..5e2", "a=b=-1..1"]) == {
        "*": (0, None),
        "calls": (None, 500),
        "a=b": (-1, 1),
    }


def settings_of_limits(**more: Any) -> Any:
    return IBForecaster(24, 48, **more).limits


@pytest.mark.parametrize(
    "wrong",
    [
        {"calls": (5, 1)},
        {"calls": 3},
        (1, 2, 3),
        ["calls=5"],
        ["=0..1"],
        ["calls=a..b"],
        (0, float("inf")),
        {"calls": (1, 2, 3)},
    ],
)
def test_limits_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="limits must be"):
        IBForecaster(24, 48, limits=wrong)


@pytest.mark.parametrize("wrong", [{"limits": {"calsl": (0, 5)}}, {"whole": ["calsl"]}])
def test_names_that_are_not_forecast_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="did you mean 'calls'"):
        fit(**wrong)


def test_whole_numbers_need_whole_limits() -> None:
    with pytest.raises(UsageError, match="whole numbers"):
        fit(limits={"calls": (0.5, 9)}, whole=["calls"])


def test_a_saved_model_with_impossible_limits_is_refused(model: IBForecaster, tmp_path: Path) -> None:
    limits = model.fitted.limits
    assert limits is not None
    with pytest.raises(UsageError, match="limits of a model"):
        replace(model.fitted, limits=Limits(limits.high, limits.low, limits.whole))
    with pytest.raises(UsageError, match="limits of a model"):
        replace(model.fitted, limits=limits.first(1))
    model.save(tmp_path / "model")
    assert saved.load(tmp_path / "model").limits is not None


def test_onnx_gives_the_limited_forecast(model: IBForecaster, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from ibforecast.adapters.onnx import OnnxForecaster

    model.to_onnx(tmp_path / "model.onnx")
    runner, table = OnnxForecaster(tmp_path / "model.onnx"), calls()
    history, times = table[["calls", "degrees"]].to_numpy(), table["when"].to_numpy()
    forecast = runner.predict(history, times)
    assert forecast == pytest.approx(model.predict(table)[["calls", "degrees"]].to_numpy(), abs=1e-5)
    assert forecast.min() >= 0
    document = model.explain(table).to_json()
    assert runner.verify(document)
    assert model.verify(runner.explain(history, times))


def test_drivers_comparisons_and_shap_have_the_limits_as_a_source(model: IBForecaster) -> None:
    table = calls()
    explained = model.explain(table)
    before = model.explain(table, at=table["when"].iloc[-30])
    changes = explained.compare(before, "calls")
    assert "limit" in set(changes["kind"])
    parts = explained.receipt("calls", 2)
    assert parts["part"].iloc[-1] == "limit"
    drivers = model.drivers(table, windows=3)
    assert "limit" in {row.part for row in drivers.rows}
    (line,) = (line for line in drivers.in_words().splitlines() if line.startswith("degrees:"))
    assert f"; {LIMIT} " in line, "after what comes from outside, because it does not"


def test_words_name_the_limit_that_acted(model: IBForecaster) -> None:
    limits = Limits(np.array([1.5, -np.inf]), np.array([np.inf, 12.0]), np.array([False, False]))
    explained = IBForecaster.of(replace(model.fitted, limits=limits), device="cpu").explain(calls())
    computed = explained.computed
    raised, lowered = int(computed[:, 0].argmin()) + 1, int(computed[:, 1].argmax()) + 1
    assert f"Limit: raised to 1.5: +{1.5 - computed[:, 0].min():.2f}." in explained.in_words("calls", raised)
    assert f"Limit: lowered to 12: -{computed[:, 1].max() - 12:.2f}." in explained.in_words("degrees", lowered)
    count = int((computed[:, 0] < 1.5).sum())
    assert f"Limit: {count} of 24 steps raised to 1.5: +" in explained.in_words("calls")
