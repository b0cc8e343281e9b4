"""The forecaster for sktime: sktime's own checks, the numbers of IBForecaster, and its explanations."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sktime", reason="needs sktime: pip install 'ibforecast[sktime]'")

import pandas as pd
from sktime.forecasting.base import ForecastingHorizon
from sktime.split import ExpandingWindowSplitter

from ibforecast import DataError, ExplainedForecast, IBForecaster, UsageError
from ibforecast.adapters.sktime import FEWEST_PATCHES, USUAL_LOOK_BACK, Cut, IBForecastForecaster
from ibforecast.data.splits import Split

ROWS, HORIZON, CYCLE = 120, 6, 7
FH = [1, 2, 3, 4, 5, 6]
FIRST = 18_262
"""The number of days from the Monday the phases are counted from to the first row."""

INDICES = {
    "times": pd.date_range("2020-01-05", periods=ROWS, freq="D"),
    "times that do not say how far apart": pd.DatetimeIndex(
        pd.date_range("2020-01-05", periods=ROWS, freq="D").tolist()
    ),
    "periods": pd.period_range("2020-01-05", periods=ROWS, freq="D"),
    "a range": pd.RangeIndex(FIRST, FIRST + ROWS),
    "numbers": pd.Index(np.arange(FIRST, FIRST + ROWS)),
}


def series(index: pd.Index | None = None, rows: int = ROWS) -> pd.DataFrame:
    """Make two channels with a weekly cycle at different levels and scales."""
    index = INDICES["times"][:rows] if index is None else index
    day, noise = np.arange(len(index)), np.random.default_rng(5).normal(size=(len(index), 2))
    rhythm = np.stack([np.sin(2 * np.pi * (day / CYCLE + shift)) for shift in (0.0, 0.3)], axis=1)
    return pd.DataFrame((rhythm + 0.3 * noise) * (20.0, 0.5) + (900.0, -2.0), index, ["load", "heat"])


def unfitted(**settings: Any) -> IBForecastForecaster:
    """Make a small forecaster; the arguments override the defaults here."""
    usual = {"recipe": "any-budget", "cycle": CYCLE, "max_epochs": 2, "device": "cpu"}
    return IBForecastForecaster(**(usual | settings))


def as_table(y: pd.DataFrame) -> pd.DataFrame:
    return y.rename_axis("time").reset_index()


@pytest.fixture(scope="module")
def fitted() -> IBForecastForecaster:
    return unfitted().fit(series(), fh=FH)


# --- sktime's own checks ---


CHECKS = """
import warnings

import torch
from sktime.utils.estimator_checks import check_estimator

from ibforecast.adapters.sktime import IBForecastForecaster

warnings.simplefilter("ignore")  # sktime's, about itself
torch.set_num_threads(1)
outcomes = check_estimator(IBForecastForecaster, raise_exceptions=True, verbose=False)
print(sum(outcome == "PASSED" for outcome in outcomes.values()), len(outcomes))
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process without the type-checking hook, which hides the signatures that sktime inspects."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_every_check_of_sktime_passes() -> None:
    done = run(CHECKS)
    assert done.returncode == 0, done.stderr
    passed, checks = map(int, done.stdout.split()[-2:])
    assert passed == checks >= 600


# --- The same numbers as IBForecaster ---


def test_forecasts_and_explanations_equal_those_of_ibforecaster() -> None:
    y = series()
    ours = IBForecaster(
        HORIZON,
        48,
        0.25,
        CYCLE,
        id="id",
        patch_len=6,
        recipe="any-budget",
        seed=3,
        device="cpu",
        split=(0.875, 0.125, 0.0),
    ).fit(as_table(y))
    theirs = IBForecastForecaster(
        look_back=48, patch_len=6, budget=0.25, cycle=CYCLE, recipe="any-budget", random_state=3, device="cpu"
    ).fit(y, fh=FH)
    assert theirs.ibforecaster_.fitted.weights_sha256 == ours.fitted.weights_sha256
    expected = ours.predict(as_table(y))
    forecast = theirs.predict()
    assert forecast.to_numpy().tobytes() == expected[["load", "heat"]].to_numpy().tobytes()
    assert forecast.index.tolist() == expected["time"].tolist()
    assert theirs.explain().to_json() == ours.explain(as_table(y)).to_json()


@pytest.mark.parametrize("kind", INDICES)
def test_every_kind_of_index_gives_the_same_numbers_and_keeps_its_kind(fitted: IBForecastForecaster, kind: str) -> None:
    index = INDICES[kind]
    other = unfitted().fit(series(index), fh=[2, 6])
    forecast = other.predict()
    assert forecast.to_numpy().tobytes() == fitted.predict().iloc[[1, 5]].to_numpy().tobytes()
    assert other.explain().phase.tolist() == fitted.explain().phase.tolist()
    assert forecast.columns.tolist() == ["load", "heat"]
    assert isinstance(forecast.index, pd.Index if kind == "a range" else type(index))
    if kind in ("a range", "numbers"):
        assert forecast.index.tolist() == [index[-1] + 2, index[-1] + 6]
    else:
        assert forecast.index.astype(str).tolist() == ["2020-05-05", "2020-05-09"]


@pytest.mark.parametrize("freq", ["h", "15min", "D", "W", "MS", "ME", "QE", "YE", "7min"])
def test_forecast_times_continue_with_any_even_step(freq: str) -> None:
    index = pd.date_range("2020-01-31", periods=42, freq=freq)
    fitted = unfitted(cycle="auto", max_epochs=1).fit(series(index[:40]), fh=[1, 2])
    assert fitted.predict().index.tolist() == index[40:].tolist()
    assert [pd.Timestamp(time) for time in fitted.explain().times[-2:]] == index[40:].tolist()


@pytest.mark.parametrize("freq", ["h", "D", "W-WED", "M", "Q", "Y", "2M"])
def test_forecast_periods_continue_with_any_length(freq: str) -> None:
    index = pd.period_range("2020-01", periods=42, freq=freq)
    fitted = unfitted(cycle="auto", max_epochs=1).fit(series(index[:40]), fh=[1, 2])
    assert fitted.predict().index.tolist() == index[40:].tolist()
    explained = fitted.explain()
    assert [pd.Timestamp(time) for time in explained.times[-2:]] == index[40:].start_time.tolist()
    assert ExplainedForecast.from_json(explained.to_json()).times == explained.times


def test_a_time_zone_is_kept_and_phases_follow_the_wall_clock() -> None:
    index = pd.date_range("2020-03-27", periods=62, freq="h", tz="Europe/Berlin")
    fitted = unfitted(cycle="auto").fit(series(index[:60]), fh=[1, 2])
    assert fitted.predict().index.tolist() == index[60:].tolist()
    explained = fitted.explain()
    assert explained.phase.tolist() == index[60 - explained.look_back :].hour.tolist()


@pytest.mark.parametrize(
    ("index", "cycle"),
    [
        (pd.date_range("2020-01-01", periods=40, freq="h"), 24),
        (pd.period_range("2020-01", periods=40, freq="M"), 12),
        (pd.period_range("1960", periods=40, freq="Y"), 1),
        (pd.date_range("2020-01-01", periods=40, freq="7min"), 1),
        (pd.RangeIndex(40), 1),
    ],
    ids=["hours", "months", "years", "seven minutes", "numbers"],
)
def test_the_cycle_comes_from_the_frequency_and_is_one_without_a_frequency(index: pd.Index, cycle: int) -> None:
    fitted = unfitted(cycle="auto", max_epochs=1).fit(series(index), fh=1)
    assert fitted.ibforecaster_.fitted.config.cycle == cycle


def test_columns_may_have_any_names() -> None:
    y = series(INDICES["a range"]).assign(more=1.0, last=2.0).set_axis(["time", "unique_id", "y", 7], axis=1)
    fitted = unfitted().fit(y, fh=FH)
    assert fitted.predict().columns.tolist() == ["time", "unique_id", "y", 7]
    assert fitted.explain().channels == ("time", "unique_id", "y", "7")


def test_the_random_state_decides_the_weights() -> None:
    def weights(random_state: Any) -> str:
        return unfitted(random_state=random_state).fit(series(), fh=FH).ibforecaster_.fitted.weights_sha256

    assert weights(1) == weights(1) != weights(2)
    assert weights(None) != weights(None)
    assert weights(np.random.RandomState(1)) == weights(np.random.RandomState(1))


# --- Explanations ---


@pytest.mark.parametrize("kind", ["times", "periods", "a range"])
def test_the_explanation_matches_the_forecast_verifies_and_uses_the_index_labels(kind: str, tmp_path: Path) -> None:
    y = series(INDICES[kind])
    fitted = unfitted().fit(y, fh=FH)
    explained, forecast = fitted.explain(), fitted.predict()
    assert explained.verify()
    assert explained.forecast.tobytes() == forecast.to_numpy().tobytes()
    dates = [str(label).removesuffix(" 00:00:00") for label in [*y.index, *forecast.index]]
    assert list(explained.times) == dates[-HORIZON - explained.look_back :]
    assert f"made at {dates[ROWS - 1]}." in explained.in_words()
    assert explained.frequency == ("1 step" if kind == "a range" else "1d")
    again = ExplainedForecast.from_json(explained.to_json())
    assert (again.times, again.frequency) == (explained.times, explained.frequency)
    assert isinstance(explained.to_table(), pd.DataFrame)
    assert explained.plot(tmp_path / "explained.svg").stat().st_size > 1000


@pytest.mark.parametrize("kind", ["times", "periods", "a range"])
def test_any_time_of_the_series_can_be_explained(kind: str) -> None:
    y = series(INDICES[kind])
    fitted = unfitted().fit(y, fh=FH)
    explained = fitted.explain(at=y.index[89])
    assert explained.verify()
    np.testing.assert_array_equal(explained.history, y[90 - explained.look_back : 90])
    np.testing.assert_array_equal(explained.truth, y[90 : 90 + HORIZON])


def test_an_explanation_keeps_the_budget(fitted: IBForecastForecaster) -> None:
    assert 0 < fitted.explain().open_rate <= fitted.explain().budget <= 0.2


def test_missing_values_are_not_read() -> None:
    y = series()
    y.iloc[5::11, 0] = np.nan
    y.iloc[-1] = np.nan
    fitted = unfitted().fit(y, fh=FH)
    explained = fitted.explain()
    assert explained.missing[-1].all()
    assert not explained.mask[-1].any()
    assert explained.verify()
    assert fitted.predict().notna().all(axis=None)


@pytest.mark.parametrize("kind", ["times", "periods", "a range"])
def test_missing_rows_can_be_filled_and_are_not_read(kind: str) -> None:
    y = series(INDICES[kind])
    with_gaps = y.drop(index=y.index[[70, 71, 112]])
    with pytest.raises(DataError, match=r"row 70: .*irregular='fill'"):
        unfitted().fit(with_gaps, fh=FH)
    fitted = unfitted(irregular="fill").fit(with_gaps, fh=FH)
    as_missing = unfitted().fit(with_gaps.reindex(y.index), fh=FH)
    explained = fitted.explain()
    assert explained.missing.any()
    assert explained.times == as_missing.explain().times
    assert fitted.predict().index.tolist() == as_missing.predict().index.tolist()


def test_each_of_several_series_has_its_own_explanation() -> None:
    several = pd.concat({"a": series(rows=40), "b": 2 * series(rows=40)}, names=["site", "day"])
    fitted = unfitted(max_epochs=1).fit(several, fh=[1, 2])
    assert len(fitted.predict()) == 4
    assert fitted.forecasters_.iloc[1, 0].explain().verify()
    with pytest.raises(UsageError, match=r"of one series .*fitted to several.*`forecasters_`"):
        fitted.explain()


# --- Sealed models ---


@pytest.fixture(scope="module")
def sealed() -> IBForecastForecaster:
    return unfitted(recipe="sealed").fit(series(), fh=FH)


def test_a_sealed_forecaster_reads_single_values_as_its_recipe_says(sealed: IBForecastForecaster) -> None:
    assert sealed.ibforecaster_.fitted.config.patch_len == 1
    explained = sealed.explain()
    assert explained.sealed
    assert explained.verify().checks[-1].name == "unread"
    assert explained.forecast.tobytes() == sealed.predict().to_numpy().tobytes()
    cells = sealed.ibforecaster_.reads(at=INDICES["times"][-1])
    assert len(cells) == explained.open_count
    receipt = explained.itemised(explained.channels[0], 1)
    assert receipt.adds_up
    assert receipt.forecast == pytest.approx(explained.forecast[0, 0], abs=1e-3)


def test_unread_values_change_no_forecast_of_a_sealed_forecaster(sealed: IBForecastForecaster) -> None:
    explained, y = sealed.explain(), series()
    window = y.to_numpy(copy=True)
    window[-explained.look_back :][~explained.mask] = 1e6
    empty = y.to_numpy(copy=True)
    empty[-explained.look_back :][~explained.mask] = np.nan
    for values in (window, empty):
        other = sealed.clone().fit(y, fh=FH)
        other.update(pd.DataFrame(values, y.index, y.columns), update_params=False)
        pd.testing.assert_frame_equal(other.predict(), sealed.predict(), check_exact=True)


def test_the_default_recipe_forecasts_and_explains() -> None:
    forecaster = IBForecastForecaster(cycle=CYCLE, max_epochs=1, device="cpu").fit(series(), fh=FH)
    assert forecaster.explain().verify()
    assert forecaster.predict().notna().all(axis=None)


# --- Intervals ---


@pytest.mark.parametrize("kind", ["times", "periods", "a range"])
def test_intervals_equal_those_of_ibforecaster(kind: str) -> None:
    y = series(INDICES[kind])
    fitted = unfitted(val_size=30).fit(y, fh=[2, 6])
    intervals, forecast = fitted.predict_interval(coverage=[0.9, 0.5]), fitted.predict()
    own = fitted.ibforecaster_.predict(fitted._table(y), level=[50, 90]).iloc[[1, 5]]
    assert intervals.index.tolist() == forecast.index.tolist()
    assert intervals.columns.tolist() == [
        (name, share, end) for name in ("load", "heat") for share in (0.9, 0.5) for end in ("lower", "upper")
    ]
    for name, share, end in intervals.columns:
        expected = own[f"{name}-{'lo' if end == 'lower' else 'hi'}-{100 * share:g}"]
        np.testing.assert_array_equal(intervals[name, share, end], expected)


def test_the_median_is_the_forecast_and_quantiles_are_ends_of_intervals() -> None:
    fitted = unfitted(val_size=30).fit(series(), fh=FH)
    quantiles, ends = fitted.predict_quantiles(alpha=[0.1, 0.5, 0.9]), fitted.predict_interval(coverage=0.8)
    np.testing.assert_array_equal(quantiles["load", 0.5], fitted.predict()["load"])
    np.testing.assert_array_equal(quantiles["load", 0.1], ends["load", 0.8, "lower"])
    np.testing.assert_array_equal(quantiles["load", 0.9], ends["load", 0.8, "upper"])


def test_quantiles_next_to_the_median_are_ends_of_the_narrowest_interval() -> None:
    fitted = unfitted(val_size=30).fit(series(), fh=FH)
    quantiles = fitted.predict_quantiles(alpha=[0.495, 0.499, 0.49999, 0.5, 0.501, 0.505])
    np.testing.assert_array_equal(quantiles["load", 0.5], fitted.predict()["load"])
    for near in (0.499, 0.49999):
        np.testing.assert_array_equal(quantiles["load", near], quantiles["load", 0.495])
    np.testing.assert_array_equal(quantiles["load", 0.501], quantiles["load", 0.505])
    assert (quantiles["load", 0.499] < quantiles["load", 0.5]).all()
    assert (quantiles["load", 0.5] < quantiles["load", 0.501]).all()


def test_a_coverage_with_too_few_calibration_rows_gives_unbounded_intervals() -> None:
    intervals = unfitted(val_size=HORIZON + 3).fit(series(), fh=FH).predict_interval(coverage=[0.8, 0.9])
    assert np.isfinite(intervals.xs(0.8, axis=1, level=1)).all(axis=None)
    assert (intervals["heat", 0.9, "lower"] == -np.inf).all()
    assert (intervals["load", 0.9, "upper"] == np.inf).all()


# --- Covariates that are known ahead ---


def known(index: pd.Index) -> pd.DataFrame:
    """Make a covariate with the name of a channel, and one whose name is not a string."""
    random = np.random.default_rng(7)
    return pd.DataFrame(
        {"load": random.integers(0, 2, len(index)).astype(float), 3: random.normal(size=len(index))}, index
    )


@pytest.mark.parametrize("kind", ["times", "times that do not say how far apart", "periods", "a range"])
def test_covariates_known_ahead_are_used_as_in_ibforecaster(kind: str) -> None:
    index, now = INDICES[kind], ROWS - HORIZON
    y, covariates = series(index), known(index)
    theirs = unfitted(cycle=(CYCLE, 14)).fit(y[:now], covariates[:now], fh=FH)
    forecast = theirs.predict(X=covariates[now:])
    names = ["load_", "3"]
    days = pd.concat([series(), known(INDICES["times"]).set_axis(names, axis=1)], axis=1)
    ours = theirs.ibforecaster_.replace(freq=None).fit(as_table(days[:now]))
    expected = ours.predict(as_table(days[:now]), future=as_table(days[now:]))
    assert ours.fitted.layout.future == ("load_", "3")
    assert ours.fitted.config.cycles == (CYCLE, 14)
    assert forecast.to_numpy().tobytes() == expected[["load", "heat"]].to_numpy().tobytes()
    explanation = theirs.explain(X=covariates[now:])
    assert explanation.verify()
    assert explanation.forecast.tobytes() == forecast.to_numpy().tobytes()


def test_a_forecast_needs_covariates_only_for_the_requested_steps() -> None:
    y, covariates, now = series(), known(INDICES["times"]), ROWS - HORIZON
    fitted = unfitted(horizon=HORIZON).fit(y[:now], covariates[:now])
    whole = fitted.predict(fh=FH, X=covariates[now:])
    some = fitted.predict(fh=[2, 4], X=covariates.iloc[[now + 1, now + 3]])
    assert some.to_numpy().tobytes() == whole.iloc[[1, 3]].to_numpy().tobytes()
    changed = covariates.iloc[[now + 1, now + 3]] + 1
    assert (fitted.predict(fh=[2, 4], X=changed) != some).to_numpy().any()
    with pytest.raises(DataError, match=r"must have a value in every row .*2020-05-01"):
        fitted.predict(fh=[2, 4], X=covariates.iloc[[now + 1, now + 2]])
    with pytest.raises(DataError, match="up to its last step"):
        fitted.explain(X=covariates[now : now + 2])


def test_missing_or_misnamed_covariates_are_refused() -> None:
    y, covariates, now = series(), known(INDICES["times"]), ROWS - HORIZON
    fitted = unfitted().fit(y[:now], covariates[:now], fh=FH)
    with pytest.raises(DataError, match="a forecast needs 'load_', '3' up to its last step"):
        fitted.predict()
    with pytest.raises(DataError, match="X must have the columns of fit"):
        fitted.predict(X=covariates[now:].rename(columns={3: 4}))


def test_new_rows_include_their_covariates() -> None:
    y, covariates, now = series(), known(INDICES["times"]), ROWS - 2 * HORIZON
    settings = {"horizon": HORIZON, "look_back": 24, "patch_len": 4}
    fitted = unfitted(**settings).fit(y[:now], covariates[:now])
    fitted.update(y[now:-HORIZON], covariates[now:-HORIZON], update_params=False)
    later = fitted.ibforecaster_.predict(
        as_table(pd.concat([y, covariates.set_axis(["load_", "3"], axis=1)], axis=1)), y.index[-HORIZON - 1]
    )
    forecast = fitted.predict(fh=FH, X=covariates[-HORIZON:])
    assert forecast.to_numpy().tobytes() == later[["load", "heat"]].to_numpy().tobytes()


# --- New rows ---


def test_an_update_without_refitting_only_moves_the_look_back() -> None:
    y = series()
    fitted = unfitted().fit(y[:100], fh=FH)
    weights, before = fitted.ibforecaster_.fitted.weights_sha256, fitted.predict()
    forecast = fitted.update(y[100:], update_params=False).predict()
    assert fitted.ibforecaster_.fitted.weights_sha256 == weights
    assert forecast.index[0] == y.index[-1] + pd.Timedelta("1D")
    own = fitted.ibforecaster_.predict(as_table(y))[["load", "heat"]]
    assert forecast.to_numpy().tobytes() == own.to_numpy().tobytes() != before.to_numpy().tobytes()
    assert fitted.explain().verify()


def test_updating_row_by_row_equals_updating_at_once() -> None:
    y = series(INDICES["numbers"])
    at_once, by_one = (unfitted().fit(y[:110], fh=FH) for _ in range(2))
    at_once.update(y[110:], update_params=False)
    for row in range(110, ROWS):
        by_one.update(y[row : row + 1], update_params=False)
    pd.testing.assert_frame_equal(by_one.predict(), at_once.predict(), check_exact=True)


def test_an_update_that_refits_equals_a_fit_to_all_rows() -> None:
    y = series()
    updated = unfitted().fit(y[:100], fh=FH).update(y[100:])
    refitted = unfitted().fit(y, fh=FH)
    assert updated.ibforecaster_.fitted.weights_sha256 == refitted.ibforecaster_.fitted.weights_sha256
    pd.testing.assert_frame_equal(updated.predict(), refitted.predict(), check_exact=True)


def test_a_repeated_row_replaces_the_earlier_one() -> None:
    y, changed = series(), series()
    changed.iloc[-1, 0] += 50
    fitted = unfitted().fit(y, fh=FH)
    fitted.update(changed[-1:], update_params=False)
    assert fitted.explain().history[-1, 0] == changed.iloc[-1, 0]


def test_a_forecast_at_an_earlier_cutoff_does_not_depend_on_later_rows(fitted: IBForecastForecaster) -> None:
    y = series()
    splitter = ExpandingWindowSplitter(fh=FH, initial_window=80, step_length=HORIZON)
    moved = fitted.update_predict(y, cv=splitter, update_params=False)
    cutoffs = y.index[79 : ROWS - HORIZON : HORIZON]
    assert len(cutoffs) == 6
    for cutoff in cutoffs:
        np.testing.assert_array_equal(moved[cutoff].dropna(), fitted.explain(at=cutoff).forecast)


# --- Horizons ---


def test_with_a_horizon_any_fh_within_it_can_be_requested_later() -> None:
    fitted = unfitted(horizon=HORIZON).fit(series())
    assert not fitted.get_tag("requires-fh-in-fit")
    whole = fitted.predict(fh=FH)
    pd.testing.assert_frame_equal(fitted.predict(fh=[2, 5]), whole.iloc[[1, 4]], check_exact=True, check_freq=False)
    days = ForecastingHorizon([pd.Timedelta("2D"), pd.Timedelta("5D")])
    pd.testing.assert_frame_equal(fitted.predict(fh=days), whole.iloc[[1, 4]], check_exact=True, check_freq=False)
    with pytest.raises(UsageError, match=r"beyond the horizon that was fitted \(got step 7 of 6\); .*horizon=7"):
        fitted.predict(fh=[1, 7])


# --- Short series ---


@given(
    rows=st.integers(1, 2000),
    horizon=st.integers(1, 40),
    look_back=st.none() | st.integers(1, 60),
    patch_len=st.none() | st.integers(1, 20),
    val_size=st.none() | st.integers(40, 80),
    usual=st.sampled_from([1, 2, 12]),
)
def test_the_chosen_lengths_leave_windows_for_training_and_validation(
    rows: int, horizon: int, look_back: int | None, patch_len: int | None, val_size: int | None, usual: int
) -> None:
    try:
        cut = Cut.of(rows, horizon, look_back, patch_len, val_size, usual)
    except DataError as error:
        needed = re.search(r"give (\d+) rows or more", str(error))
        assert needed
        Cut.of(int(needed[1]), horizon, look_back, patch_len, val_size, usual)
        with pytest.raises(DataError):
            Cut.of(int(needed[1]) - 1, horizon, look_back, patch_len, val_size, usual)
        return
    split = Split.by_fractions((cut.train_share, 1 - cut.train_share, 0.0), rows)
    assert split.starts("train", cut.look_back, horizon)
    assert split.starts("validation", cut.look_back, horizon)
    held = rows - split.train_end
    assert held == (max(horizon, rows // 8) if val_size is None else val_size)
    if look_back is not None:
        assert (cut.look_back, cut.patch_len) == (look_back, patch_len)
        return
    assert cut.patch_len is not None
    assert cut.look_back % cut.patch_len == 0
    assert cut.look_back <= USUAL_LOOK_BACK
    if patch_len is None:
        assert cut.look_back // cut.patch_len >= FEWEST_PATCHES
        assert cut.patch_len <= usual


def test_a_long_series_gets_the_default_lengths() -> None:
    for usual in (1, 12):
        cut = Cut.of(1000, 24, None, None, None, usual)
        assert (cut.look_back, cut.patch_len) == (96, usual)


def test_the_shortest_valid_series_is_fitted_and_one_row_less_is_refused() -> None:
    fitted = unfitted(cycle="auto").fit(series(rows=14), fh=[1, 2, 3])
    assert fitted.ibforecaster_.look_back == 8
    assert fitted.explain().verify()
    with pytest.raises(
        DataError,
        match=r"look_back \+ horizon = 8 \+ 3 rows to train on and 3 to select on \(got 13\); give 14 rows or more",
    ):
        unfitted().fit(series(rows=13), fh=[1, 2, 3])


# --- Invalid arguments ---


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"horizon": 3}, UsageError, r"beyond the horizon \(got step 6, horizon=3\); give horizon=6"),
        ({"budget": 0.01}, UsageError, r"at least one token \(got budget=0\.01 of 16 tokens\)"),
        ({"patch_len": 0}, UsageError, r"patch_len must be at least 1 \(got 0\)"),
        ({"look_back": 10, "patch_len": 3}, UsageError, r"patch_len must divide look_back"),
        ({"look_back": 100}, DataError, r"look_back \+ horizon = 100 \+ 6 rows to train on and 15 .*give 121 rows"),
        ({"val_size": 5}, UsageError, r"val_size must be at least 6 \(got 5\)"),
        ({"val_size": 115}, DataError, r"115 to select on \(got 120\)"),
        ({"max_epochs": 0}, UsageError, r"epochs must be at least 1 \(got 0\)"),
        ({"cycle": 0}, UsageError, r"cycle must be a positive number"),
        ({"recipe": "tqnet"}, UsageError, r"one that ships or a path to a .toml file \(got 'tqnet'\)"),
        ({"device": "abacus"}, UsageError, r"device must be"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_invalid_setting_is_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        unfitted(**settings).fit(series(), fh=FH)


@pytest.mark.parametrize("at", ["2021-01-01", "teatime", "2020-02", ["2020-02-02"], 3])
def test_a_time_that_is_not_in_the_series_is_refused(fitted: IBForecastForecaster, at: Any) -> None:
    with pytest.raises(DataError, match=r"`at` must be a time of the series, which runs from 2020-01-05 .* to 2020-05"):
        fitted.explain(at)


def test_new_rows_with_other_columns_are_refused(fitted: IBForecastForecaster) -> None:
    with pytest.raises(DataError, match=r"must have the columns of fit \(got \['load', 'cold'\], fitted to .*; use"):
        unfitted().fit(series()[:100], fh=FH).update(series()[100:].rename(columns={"heat": "cold"}))


def test_columns_whose_names_become_equal_as_text_are_refused() -> None:
    with pytest.raises(DataError, match=r"different names \(got \['0', '0'\]\)"):
        unfitted().fit(series().set_axis([0, "0"], axis=1), fh=FH)


def test_without_sktime_the_error_names_the_package_to_install() -> None:
    done = run("import sys; sys.modules['sktime'] = None; import ibforecast.adapters.sktime")
    assert "MissingExtraError: this needs sktime" in done.stderr
    assert "pip install 'ibforecast[sktime]'" in done.stderr
