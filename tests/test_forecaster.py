"""The forecaster: tables in, tables of the same kind out, and invalid input refused with a reason."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ibforecast
from ibforecast import DataError, IBForecaster, IBForecastError, UsageError
from ibforecast.data.tables import write
from ibforecast.train.loop import Pace
from ibforecast.zoo import recipes

ROWS, LOOK_BACK, HORIZON, PATCHES = 400, 48, 12, 4
CHANNELS = ("load", "wind", "heat")
SENTINELS = (-9999.0, 12345.0)
TINY = """
[model]
frame = "mean"
[model.gate]
width = 16
[model.readout]
width = 16
[train]
epochs = 2
batch = 64
"""


def hours(count: int = ROWS, first: str = "2023-01-01", step: str = "1h") -> np.ndarray:
    return pd.date_range(first, periods=count, freq=step).to_numpy().astype("datetime64[us]")


def numbers(rows: int = ROWS) -> np.ndarray:
    """Return three channels with a daily rhythm at three levels and scales."""
    hour, noise = np.arange(rows), np.random.default_rng(5).normal(size=(rows, 3))
    rhythm = np.stack([np.sin(2 * np.pi * (hour / 24 + shift)) for shift in (0.0, 0.3, 0.6)], axis=1)
    return (rhythm + 0.3 * noise) * (20.0, 3.0, 0.5) + (900.0, 40.0, -2.0)


def frame(values: np.ndarray | None = None, **times: Any) -> pd.DataFrame:
    values = numbers() if values is None else values
    return pd.DataFrame({"when": hours(len(values), **times)} | dict(zip(CHANNELS, values.T, strict=True)))


def long_frame() -> pd.DataFrame:
    melted = frame().melt("when", CHANNELS, "unique_id", "y").rename(columns={"when": "ds"})
    return melted[["unique_id", "ds", "y"]]


def as_kind(table: pd.DataFrame, kind: str) -> Any:
    return {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind](table)


def columns_of(table: Any) -> dict[str, np.ndarray]:
    if isinstance(table, pa.Table):
        return {name: table[name].to_numpy() for name in table.column_names}
    return {name: table[name].to_numpy() for name in table.columns}


def values_of(table: Any) -> np.ndarray:
    return np.stack([columns_of(table)[name] for name in CHANNELS], axis=1)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(TINY)
    return str(path)


@pytest.fixture(scope="module")
def unfitted(recipe: str) -> Callable[..., IBForecaster]:
    """Return a function that makes a small forecaster; its settings replace the usual ones."""

    def make(**settings: Any) -> IBForecaster:
        usual = {"horizon": HORIZON, "look_back": LOOK_BACK, "budget": 0.25, "recipe": recipe, "device": "cpu"}
        return IBForecaster(**(usual | settings))

    return make


@pytest.fixture(scope="module")
def model(unfitted: Callable[..., IBForecaster]) -> IBForecaster:
    return unfitted(missing_values=SENTINELS).fit(frame())


# --- Tables of every kind and shape ---


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_wide_table_gives_a_wide_forecast_of_the_same_kind(
    model: IBForecaster, unfitted: Callable[..., IBForecaster], kind: str
) -> None:
    table = as_kind(frame(), kind)
    forecast = unfitted().fit(table).predict(table)
    assert type(forecast) is type(table)
    columns = columns_of(forecast)
    assert tuple(columns) == ("when", *CHANNELS)
    assert (columns["when"] == hours(ROWS + HORIZON)[ROWS:]).all()
    assert all(columns[name].dtype == np.float64 for name in CHANNELS)
    assert values_of(forecast).tobytes() == values_of(model.predict(frame())).tobytes()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_long_table_gives_a_long_forecast_of_the_same_kind_and_numbers(
    model: IBForecaster, unfitted: Callable[..., IBForecaster], kind: str
) -> None:
    table = as_kind(long_frame(), kind)
    forecast = unfitted().fit(table).predict(table)
    assert type(forecast) is type(table)
    columns = columns_of(forecast)
    assert tuple(columns) == ("unique_id", "ds", "IBForecast")
    assert columns["unique_id"].tolist() == [name for name in CHANNELS for _ in range(HORIZON)]
    assert (columns["ds"] == np.tile(hours(ROWS + HORIZON)[ROWS:], 3)).all()
    assert columns["IBForecast"].tobytes() == values_of(model.predict(frame())).T.tobytes()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("shape", ["wide", "long"])
def test_a_file_gives_the_same_forecast_as_its_table(
    model: IBForecaster, unfitted: Callable[..., IBForecaster], shape: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"table{suffix}"
    write(frame() if shape == "wide" else long_frame(), path)
    forecast = unfitted().fit(str(path)).predict(path)
    expected = values_of(model.predict(frame()))
    assert isinstance(forecast, pd.DataFrame)
    if shape == "wide":
        assert values_of(forecast).tobytes() == expected.tobytes()
    else:
        assert forecast["IBForecast"].to_numpy().tobytes() == expected.T.tobytes()


def test_the_columns_of_a_long_table_may_have_any_names(
    model: IBForecaster, unfitted: Callable[..., IBForecaster]
) -> None:
    table = long_frame().rename(columns={"unique_id": "meter", "ds": "moment", "y": "kw"})
    forecast = unfitted(id="meter", target="kw", time="moment").fit(table).predict(table)
    assert forecast.columns.tolist() == ["meter", "moment", "IBForecast"]
    assert forecast["IBForecast"].to_numpy().tobytes() == values_of(model.predict(frame())).T.tobytes()


def test_only_the_named_channels_are_read_in_their_order(unfitted: Callable[..., IBForecaster]) -> None:
    table = frame().assign(note="text")
    forecast = unfitted(channels=["heat", "load"], time="when").fit(table).predict(table)
    assert forecast.columns.tolist() == ["when", "heat", "load"]


def test_extra_and_reordered_columns_change_nothing(model: IBForecaster) -> None:
    table = frame().assign(note="text")[["heat", "note", "when", "load", "wind"]]
    pd.testing.assert_frame_equal(model.predict(table), model.predict(frame()), check_exact=True)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_time_column_keeps_its_type(model: IBForecaster, unit: str) -> None:
    table = frame()
    table["when"] = table["when"].astype(f"datetime64[{unit}]")
    assert model.predict(table)["when"].dtype == table["when"].dtype


def test_dates_stay_dates(unfitted: Callable[..., IBForecaster]) -> None:
    days = pl.from_pandas(frame(step="1D")).with_columns(pl.col("when").dt.date())
    forecast = unfitted().fit(days).predict(days)
    assert forecast["when"].dtype == pl.Date
    assert forecast["when"][0] == datetime(2023, 1, 1).date() + (days["when"][-1] - days["when"][0]) + pd.Timedelta(
        "1D"
    )


def test_the_forecast_is_in_the_units_of_the_table(model: IBForecaster, unfitted: Callable[..., IBForecaster]) -> None:
    """In units 1024 times as small all numbers are 1024 times as large, to the last bit."""
    table = frame(1024 * numbers())
    expected = 1024 * values_of(model.predict(frame()))
    assert values_of(unfitted().fit(table).predict(table)).tobytes() == expected.tobytes()
    lowest, highest = numbers().min(axis=0), numbers().max(axis=0)
    room = highest - lowest
    assert ((values_of(model.predict(frame())) > lowest - room) & (expected / 1024 < highest + room)).all()


def test_a_time_zone_is_kept_and_phases_follow_the_wall_clock(unfitted: Callable[..., IBForecaster]) -> None:
    local = pd.date_range("2023-03-12", periods=ROWS, freq="h", tz="Europe/Berlin")
    table = frame().assign(when=local)
    fitted = unfitted().fit(table)
    at = "2023-03-25 20:00"
    expected = pd.date_range("2023-03-25 21:00", periods=HORIZON, freq="h", tz="Europe/Berlin")
    forecast, explanation = fitted.predict(table, at), fitted.explain(table, at)
    assert forecast["when"].dtype == table["when"].dtype
    assert forecast["when"].tolist() == expected.tolist()
    row = local.get_loc(pd.Timestamp(at, tz="Europe/Berlin"))
    span = local[row + 1 - LOOK_BACK : row + 1 + HORIZON]
    assert explanation.phase.tolist() == span.hour.tolist()
    assert explanation.times[LOOK_BACK + 4 : LOOK_BACK + 6] == ("2023-03-26 01:00+01:00", "2023-03-26 03:00+02:00")


def test_a_forecast_may_cross_a_clock_change(unfitted: Callable[..., IBForecaster]) -> None:
    local = pd.date_range(end="2023-10-28 22:00", periods=ROWS, freq="h", tz="Europe/Berlin")
    table = pl.from_pandas(frame().assign(when=local))
    forecast = unfitted().fit(table).predict(table)
    assert forecast["when"].dtype == pl.Datetime(forecast["when"].dtype.time_unit, "Europe/Berlin")
    texts = [str(moment) for moment in forecast["when"].to_list()]
    assert texts[3:6] == [f"2023-10-29 {time}" for time in ("02:00:00+02:00", "02:00:00+01:00", "03:00:00+01:00")]


# --- Cycle and patches ---


@pytest.mark.parametrize(("step", "cycle"), [("1h", 24), ("15min", 96), ("1D", 7), ("1W", 52)])
def test_the_cycle_comes_from_the_frequency(unfitted: Callable[..., IBForecaster], step: str, cycle: int) -> None:
    table = frame(step=step)
    fitted = unfitted(cycle="auto").fit(table)
    assert fitted.fitted.config.cycle == cycle
    assert fitted.explain(table).profile.shape == (cycle, 3)


def test_the_cycle_must_be_set_if_there_is_no_natural_one(unfitted: Callable[..., IBForecaster]) -> None:
    table = frame(step="7min")
    with pytest.raises(UsageError, match=r"a step of 7min has no natural cycle.*; give `cycle`"):
        unfitted(cycle="auto").fit(table)
    explanation = unfitted(cycle=5).fit(table).explain(table)
    assert explanation.profile.shape == (5, 3)
    assert (np.diff(explanation.phase) % 5 == 1).all()


@pytest.mark.parametrize(("look_back", "patch_len"), [(48, 12), (50, 10), (40, 10), (30, 10), (47, 1)])
def test_a_look_back_not_divisible_by_twelve_gets_the_nearest_patch_length(
    unfitted: Callable[..., IBForecaster], look_back: int, patch_len: int
) -> None:
    explanation = unfitted(look_back=look_back).fit(frame()).explain(frame())
    assert explanation.patch_len == patch_len
    assert explanation.mask.shape == (look_back // patch_len, 3)
    assert explanation.verify()


# --- Moments ---


@pytest.mark.parametrize("row", [LOOK_BACK - 1, 201, ROWS - 2, ROWS - 1])
def test_a_forecast_at_a_moment_equals_that_of_the_table_cut_there(model: IBForecaster, row: int) -> None:
    table = frame()
    there, cut = model.predict(table, table["when"][row]), model.predict(table[: row + 1])
    pd.testing.assert_frame_equal(there, cut, check_exact=True)
    assert (there["when"] == hours(row + 1 + HORIZON)[row + 1 :]).all()


@pytest.mark.parametrize("irregular", ["error", "by_row", "fill"])
def test_rows_before_the_window_do_not_change_the_forecast(
    unfitted: Callable[..., IBForecaster], irregular: str
) -> None:
    fitted, table = unfitted(irregular=irregular).fit(frame()), frame()
    for first in (37, ROWS - LOOK_BACK):
        pd.testing.assert_frame_equal(fitted.predict(table[first:]), fitted.predict(table), check_exact=True)


@pytest.mark.parametrize(
    "at",
    [
        "2023-01-08 10:00",
        "2023-01-08T10:00:00",
        datetime(2023, 1, 8, 10),
        pd.Timestamp("2023-01-08 10:00"),
        np.datetime64("2023-01-08T10:00:00.000000000"),
    ],
    ids=lambda at: f"{type(at).__name__} {at}",
)
def test_a_moment_may_be_of_any_time_type(model: IBForecaster, at: Any) -> None:
    assert model.predict(frame(), at)["when"][0] == pd.Timestamp("2023-01-08 11:00")


@pytest.mark.parametrize("row", [LOOK_BACK - 1, 201, ROWS - 1])
def test_the_explanation_contains_the_forecast_of_predict(model: IBForecaster, row: int) -> None:
    table = frame()
    at = table["when"][row]
    forecast, explanation = model.predict(table, at), model.explain(table, at)
    assert values_of(forecast).tobytes() == explanation.forecast.tobytes()
    assert [pd.Timestamp(time) for time in explanation.times[LOOK_BACK:]] == forecast["when"].tolist()
    assert pd.Timestamp(explanation.at) == at
    assert explanation.history.tobytes() == numbers()[row + 1 - LOOK_BACK : row + 1].tobytes()
    assert explanation.weights_sha256 == model.fitted.weights_sha256


def test_the_truth_is_included_as_far_as_it_is_known(model: IBForecaster) -> None:
    values = numbers()
    values[205, 1] = np.nan
    table = frame(values)
    whole = model.explain(table, table["when"][200]).truth
    part = model.explain(table, table["when"][ROWS - 6]).truth
    np.testing.assert_array_equal(whole, values[201 : 201 + HORIZON])
    np.testing.assert_array_equal(part[:5], values[-5:])
    assert np.isnan(part[5:]).all()
    assert model.explain(table).truth is None


def test_explaining_takes_one_pass_through_the_network(model: IBForecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    forward = model.fitted.network.forward
    monkeypatch.setattr(model.fitted.network, "forward", lambda window: passes.append(window) or forward(window))
    model.explain(frame())
    assert len(passes) == 1


# --- Missing values ---


def with_value(*cells: tuple[int, int], value: float = np.nan) -> pd.DataFrame:
    values = numbers()
    for row, column in cells:
        values[row, column] = value
    return frame(values)


def test_a_token_with_a_missing_step_is_closed_and_marked(model: IBForecaster) -> None:
    first = ROWS - LOOK_BACK
    explanation = model.explain(with_value((first, 0), (first + 12, 1), (ROWS - 1, 1), (ROWS - 2, 1)))
    marked = np.zeros((PATCHES, 3), dtype=bool)
    marked[[0, 1, 3], [0, 1, 1]] = True
    np.testing.assert_array_equal(explanation.missing, marked)
    assert not explanation.mask[marked].any()
    assert (explanation.probability[marked] == 0).all()
    assert explanation.open_count == 3
    assert explanation.verify()
    assert "missing values: load (1 of 4 patches); wind (2 of 4 patches)." in explanation.in_words(full=True)


def test_an_open_token_is_closed_if_a_step_is_missing(model: IBForecaster) -> None:
    patch, column = np.argwhere(model.explain(frame()).mask)[0]
    row = ROWS - LOOK_BACK + 12 * int(patch) + 5
    assert not model.explain(with_value((row, int(column)))).mask[patch, column]


def test_the_value_in_a_gap_does_not_change_the_forecast(model: IBForecaster) -> None:
    cells = [(ROWS - 1, 0), (ROWS - 20, 1), (ROWS - LOOK_BACK, 2), (ROWS - 3, 2)]
    forecasts = [values_of(model.predict(with_value(*cells, value=value))).tobytes() for value in (*SENTINELS, np.nan)]
    assert len(set(forecasts)) == 1
    assert forecasts[0] != values_of(model.predict(frame())).tobytes()


def test_the_value_in_a_gap_does_not_change_the_training(unfitted: Callable[..., IBForecaster]) -> None:
    cells = [(row, row % 3) for row in range(5, ROWS, 17)]
    fits = [
        unfitted(missing_values=SENTINELS).fit(with_value(*cells, value=value)).fitted for value in (*SENTINELS, np.nan)
    ]
    assert len({fit.weights_sha256 for fit in fits}) == 1
    assert np.isfinite(fits[0].summary.validation_error)


def test_level_and_scale_come_from_the_observed_values(model: IBForecaster) -> None:
    table = with_value(*((row, 1) for row in range(ROWS - 30, ROWS - 10)))
    explanation = model.explain(table)
    window = (explanation.history - explanation.units.mean) / explanation.units.std
    np.testing.assert_allclose(explanation.level, np.nanmean(window, axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(explanation.scale, np.nanstd(window, axis=0, ddof=1), rtol=1e-4)


def test_a_window_with_a_gap_in_every_token_is_forecast_without_evidence(model: IBForecaster) -> None:
    cells = [(row, column) for row in range(ROWS - LOOK_BACK, ROWS, 12) for column in range(3)]
    explanation = model.explain(with_value(*cells))
    assert explanation.missing.all()
    assert explanation.open_count == 0
    assert np.isfinite(explanation.forecast).all()
    assert explanation.verify()


def test_a_constant_channel_is_forecast_as_constant(unfitted: Callable[..., IBForecaster]) -> None:
    table = frame().assign(wind=7.25)
    explanation = unfitted().fit(table).explain(table)
    np.testing.assert_allclose(explanation.forecast[:, 1], 7.25, atol=0.05)
    assert explanation.verify()


@pytest.mark.filterwarnings("ignore:a number must be a value")
def test_sentinels_may_be_read_as_numbers_or_as_missing(
    unfitted: Callable[..., IBForecaster],
) -> None:
    table = with_value(*((row, 2) for row in range(10, ROWS, 31)), value=-9999.0)
    as_numbers, as_missing = (unfitted(missing_values=marks).fit(table).explain(table) for marks in ((), (-9999.0,)))
    assert as_numbers.verify()
    assert as_missing.verify()
    assert not as_numbers.missing.any()
    assert as_missing.missing[:, 2].any()
    assert as_numbers.units.std[2] > 100
    assert abs(as_missing.forecast[:, 2] + 2).max() < 5


# --- Fit, evaluate, save ---


def test_the_seed_decides_the_weights(unfitted: Callable[..., IBForecaster], model: IBForecaster) -> None:
    assert unfitted(missing_values=SENTINELS).fit(frame()).fitted.weights_sha256 == model.fitted.weights_sha256
    assert unfitted(missing_values=SENTINELS, seed=1).fit(frame()).fitted.weights_sha256 != model.fitted.weights_sha256


def test_the_error_is_the_mean_over_all_windows_of_the_part(model: IBForecaster) -> None:
    table, values = frame(), numbers()
    measured = model.evaluate(table)
    lasts = range(model.fitted.split.validation_end - 1, ROWS - HORIZON)
    explanations = [model.explain(table, table["when"][last]) for last in lasts]
    errors = np.stack(
        [
            (one.forecast - values[last + 1 : last + 1 + HORIZON]) / one.units.std
            for one, last in zip(explanations, lasts, strict=True)
        ]
    )
    assert measured.windows == len(lasts) == 69
    assert measured.mse == pytest.approx((errors**2).mean(), rel=1e-4)
    assert measured.mae == pytest.approx(abs(errors).mean(), rel=1e-4)
    assert measured.open_rate == pytest.approx(np.mean([one.open_rate for one in explanations]))
    assert measured.largest_open_rate <= measured.budget == 0.25
    assert measured.naive_cycle == max(cycle for cycle in model.fitted.config.cycles if cycle <= LOOK_BACK)
    steps = np.arange(HORIZON) % measured.naive_cycle - measured.naive_cycle + 1
    naive = (
        np.stack([values[last + steps] - values[last + 1 : last + 1 + HORIZON] for last in lasts])
        / explanations[0].units.std
    )
    assert measured.naive_mse == pytest.approx((naive**2).mean(), rel=1e-4)
    assert measured.naive_mae == pytest.approx(abs(naive).mean(), rel=1e-4)


def test_any_table_can_be_evaluated_as_a_whole(model: IBForecaster) -> None:
    other = frame(numbers(100), first="2024-01-01")
    assert model.evaluate(other, "all").windows == 100 - LOOK_BACK - HORIZON + 1
    with pytest.raises(
        UsageError, match=r'split "test" must come from the table .*\(this is another\); use split="all"'
    ):
        model.evaluate(other, "test")


def test_the_same_values_at_other_times_are_another_table(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    for one in (model, IBForecaster.load(tmp_path / "model", device="cpu")):
        for other, message in (
            (frame(first="2023-01-01 07:00"), "has its values, but begins at 2023-01-01 07:00"),
            (frame().assign(when=frame()["when"].dt.tz_localize("UTC")), r"begins at 2023-01-01 00:00\+00:00"),
        ):
            with pytest.raises(UsageError, match=rf'split "test" must come from the table .*\(this .*{message}'):
                one.evaluate(other, "test")
        assert one.evaluate(frame(first="2023-01-01 07:00"), "all").windows == ROWS - LOOK_BACK - HORIZON + 1


def test_the_validation_error_of_training_equals_that_of_evaluate(unfitted: Callable[..., IBForecaster]) -> None:
    values = numbers()
    values[300:310, 1] = np.nan
    fitted = unfitted().fit(frame(values))
    measured = fitted.evaluate(frame(values), "validation").mse
    assert fitted.fitted.summary.validation_error == pytest.approx(measured, rel=1e-6)


def test_evaluating_a_table_without_usable_windows_is_refused(model: IBForecaster) -> None:
    table = frame(np.where(np.arange(100)[:, None] < 30, numbers(100), [np.nan, 1.0, 1.0]))
    with pytest.raises(DataError, match="at least one window"):
        model.evaluate(table[30:], "all")


def test_a_saved_model_gives_the_same_forecasts(model: IBForecaster, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = IBForecaster.load(tmp_path / "model", device="cpu")
    pd.testing.assert_frame_equal(loaded.predict(frame()), model.predict(frame()), check_exact=True)
    assert loaded.evaluate(frame()) == model.evaluate(frame())
    assert (loaded.horizon, loaded.look_back, loaded.budget, loaded.cycle) == (HORIZON, LOOK_BACK, 0.25, 24)
    assert repr(loaded) == repr(model)
    assert model.fitted.weights_sha256[:12] in repr(model)


def test_a_loaded_model_can_be_fitted_again_with_the_same_settings(
    unfitted: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    """The file of the recipe is deleted, and a recipe of its name ships with the package."""
    (tmp_path / "quick.toml").write_text(TINY)
    model = unfitted(recipe=str(tmp_path / "quick.toml"), split=(0.5, 0.2, 0.3), epochs=1).fit(frame())
    model.save(tmp_path / "model")
    (tmp_path / "quick.toml").unlink()
    again = IBForecaster.load(tmp_path / "model", device="cpu").fit(frame())
    assert again.fitted.weights_sha256 == model.fitted.weights_sha256
    assert again.fitted.split == model.fitted.split
    assert again.fitted.summary.recipe_sha256 == model.fitted.summary.recipe_sha256
    assert again.replace(recipe="static-newest").fit(frame()).fitted.config.gate.kind == "newest"


MISTAKES = """
import sys
import numpy as np
import pandas as pd
from ibforecast import IBForecaster

table, recipe, out = pd.read_pickle(sys.argv[1]), sys.argv[2], sys.argv[3]
settings = {"horizon": 12, "look_back": 48, "recipe": recipe, "device": "cpu"}
other = {"horizon": np.int64(12), "seed": np.int64(2024), "missing_values": [np.float32(-9999)]}
model = IBForecaster(**settings, missing_values=[-9999.0]).fit(table)
again = IBForecaster(**settings | other | {"channels": np.array(["load", "wind", "heat"])}).fit(table)
again.save(out)
assert IBForecaster.load(out).fitted.weights_sha256 == model.fitted.weights_sha256
for mistake in (
    lambda: IBForecaster(12, look_back="48"),
    lambda: IBForecaster(12, seed=1.5),
    lambda: IBForecaster(12, epochs=True),
    lambda: IBForecaster(12, channels="load"),
    lambda: IBForecaster(12, irregular="Error"),
    lambda: IBForecaster(12, missing_values=-9999),
    lambda: model.evaluate(table, "val"),
    lambda: model.calibrate(table, "val"),
    lambda: model.audit(table, "val"),
    lambda: model.audit(table, windows="8"),
    lambda: model.cross_validation(table, 1.5),
    lambda: model.cross_validation(table, 2, step_size=0),
):
    try:
        mistake()
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print("no error")
"""


def test_arguments_of_the_wrong_type_are_refused_without_type_checks(recipe: str, tmp_path: Path) -> None:
    """Run in a separate process, because in this one the signatures are checked."""
    frame().to_pickle(tmp_path / "table")
    arguments = [str(tmp_path / "table"), recipe, str(tmp_path / "model")]
    done = subprocess.run([sys.executable, "-c", MISTAKES, *arguments], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert done.stdout.splitlines() == [
        "UsageError look_back must be a whole number (got '48'); write it without quotes or a point",
        "UsageError seed must be a whole number (got 1.5); write it without quotes or a point",
        "UsageError epochs must be a whole number (got True); write it without quotes or a point",
        "UsageError channels must be a list of names (got 'load'); write ['load']",
        "UsageError irregular must be one of error, by_row, fill (got irregular='Error'); choose one",
        "UsageError missing_values must be a list of numbers or texts (got -9999); write [-9999]",
        *["UsageError split must be one of train, validation, test, all (got split='val'); choose one"] * 3,
        "UsageError windows must be a whole number (got '8'); write it without quotes or a point",
        "UsageError n_windows must be a whole number (got 1.5); write it without quotes or a point",
        "UsageError step_size must be at least 1 (got 0); try 12, the horizon",
    ]


def test_a_network_returns_from_its_device_after_an_error(model: IBForecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(network: Any, windows: Any) -> None:
        raise MemoryError

    moved: list[str] = []
    network = type(model.fitted.network)
    move, back = network.to, network.cpu
    monkeypatch.setattr(network, "to", lambda self, device: (moved.append(str(device)), move(self, device))[1])
    monkeypatch.setattr(network, "cpu", lambda self: (moved.append("home"), back(self))[1])
    for name, use in (
        ("use.accuracy", model.evaluate),
        ("fitting.scores", model.calibrate),
        ("audit.audit_windows", model.audit),
    ):
        monkeypatch.setattr(f"ibforecast.{name}", lambda *arguments: refuse(*arguments[:2]))
        with pytest.raises(MemoryError):
            use(frame())
    assert moved == ["cpu", "home"] * 3


def test_an_interrupted_fit_continues_from_its_checkpoint(
    unfitted: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    epochs: list[int] = []

    def stop_after(last: int) -> Callable[..., None]:
        def on_epoch(epoch: int, of: int, outcome: Any) -> None:
            epochs.append(epoch)
            if epoch == last:
                raise KeyboardInterrupt

        return on_epoch

    settings = {"recipe": str(tmp_path / "longer.toml")}
    (tmp_path / "longer.toml").write_text(TINY.replace("epochs = 2", "epochs = 4"))
    checkpoint = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        unfitted(**settings).fit(frame(), checkpoint=checkpoint, on_epoch=stop_after(2))
    resumed = unfitted(**settings).fit(frame(), checkpoint=checkpoint, on_epoch=stop_after(0))
    assert epochs == [1, 2, 3, 4]
    assert resumed.fitted.weights_sha256 == unfitted(**settings).fit(frame()).fitted.weights_sha256


def test_a_fit_within_minutes_states_the_schedule_that_it_had(
    unfitted: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ibforecast.zoo.stages.pace_of", lambda *_: Pace(15.0, 0.0))
    seen: list[tuple[int, int]] = []
    model = unfitted().fit(frame(), minutes=0.5, on_epoch=lambda epoch, epochs, _: seen.append((epoch, epochs)))
    assert seen == [(1, 1)]
    model.save(tmp_path / "model")
    summary = IBForecaster.load(tmp_path / "model").fitted.summary
    assert summary.schedule is not None
    assert (summary.epochs, summary.schedule.epochs, summary.stopped) == (1, 1, False)


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("inf"), float("nan")])
def test_a_time_limit_must_be_positive(unfitted: Callable[..., IBForecaster], minutes: float) -> None:
    with pytest.raises(UsageError, match=r"minutes must be positive \(got minutes="):
        unfitted().fit(frame(), minutes=minutes)


def test_a_fit_that_is_over_its_time_stops_and_says_so(
    unfitted: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ibforecast.zoo.stages.pace_of", lambda *_: Pace(1e-9, 1e-9))
    monkeypatch.setattr("ibforecast.fitting.Deadline.over", lambda deadline: True)
    model = unfitted().fit(frame(), minutes=10)
    assert (model.fitted.summary.epochs, model.fitted.summary.stopped) == (1, True)


def test_every_epoch_is_reported_with_the_error_of_the_naive_yardstick(unfitted: Callable[..., IBForecaster]) -> None:
    outcomes: list[Any] = []
    model = unfitted().fit(frame(), on_epoch=lambda epoch, epochs, outcome: outcomes.append(outcome))
    naive = model.evaluate(frame(), "validation").naive_mse
    assert [outcome.naive_error for outcome in outcomes] == pytest.approx([naive, naive], rel=1e-5)


@pytest.mark.parametrize(
    ("other", "table"),
    [
        ({"seed": 7}, frame()),
        ({"split": (0.6, 0.2, 0.2)}, frame()),
        ({"budget": 0.5}, frame()),
        ({"cycle": 12}, frame()),
        ({}, frame(first="2023-01-01 07:00")),
        ({}, frame(numbers() ** 2)),
    ],
    ids=["seed", "split", "budget", "cycle", "other times", "other values"],
)
def test_a_fit_does_not_continue_from_the_checkpoint_of_another(
    unfitted: Callable[..., IBForecaster], tmp_path: Path, other: dict[str, Any], table: pd.DataFrame
) -> None:
    unfitted().fit(frame(), checkpoint=tmp_path / "run")
    restarted = unfitted(**other).fit(table, checkpoint=tmp_path / "run")
    undisturbed = unfitted(**other).fit(table).fitted.weights_sha256
    assert restarted.fitted.weights_sha256 == undisturbed != unfitted().fit(frame()).fitted.weights_sha256


def test_a_fit_does_not_continue_from_the_checkpoint_of_another_version(
    unfitted: Callable[..., IBForecaster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    epochs: list[int] = []
    for version in (ibforecast.__version__, ibforecast.__version__, "99.0"):
        monkeypatch.setattr("ibforecast.fitting.__version__", version)
        unfitted().fit(frame(), checkpoint=tmp_path / "run", on_epoch=lambda epoch, *_: epochs.append(epoch))
    assert epochs == [1, 2, 1, 2]


# --- Irregular tables ---


def weekdays(rows: int = ROWS) -> pd.DataFrame:
    return frame(numbers(rows)).assign(when=pd.bdate_range("2023-01-02", periods=rows))


def test_rows_of_an_uneven_table_are_counted_from_its_first_row(
    unfitted: Callable[..., IBForecaster], tmp_path: Path
) -> None:
    whole = weekdays(ROWS + 30)
    unfitted(irregular="by_row", cycle=5).fit(whole[:ROWS]).save(tmp_path / "model")
    fitted = IBForecaster.load(tmp_path / "model", device="cpu")
    assert fitted.explain(whole).phase[0] == (len(whole) - LOOK_BACK) % 5
    earlier = pd.concat([weekdays(1).assign(when=pd.Timestamp("2022-12-30")), whole])
    assert fitted.explain(earlier).phase[0] == fitted.explain(whole).phase[0]
    with pytest.raises(DataError, match=r"2023-01-02, .*got a table from 2024-04-05 on, and those of training did not"):
        fitted.predict(whole[-101:])
    even = frame(first="2024-07-22", step="1D")
    with pytest.raises(
        DataError, match=r"from 2024-07-22 on, and those of training did not\); give the table from its"
    ):
        fitted.predict(even)


@pytest.mark.parametrize("gaps", [False, True])
def test_a_model_records_whether_its_training_rows_were_even(unfitted: Callable[..., IBForecaster], gaps: bool) -> None:
    """Check this also if windows are missing from the calibration."""
    uneven, even = weekdays(), frame(step="1D")
    for table in (uneven, even):
        table.loc[300, list(CHANNELS)] = np.nan if gaps else table.loc[300, list(CHANNELS)]
    settings = {"irregular": "by_row", "cycle": 5, "epochs": 1}
    later = frame(first="2024-07-22", step="1D")
    by_weekday, by_day = (unfitted(**settings).fit(table) for table in (uneven, even))
    assert (by_weekday.fitted.even, by_day.fitted.even) == (False, True)
    with pytest.raises(DataError, match="those of training did not"):
        by_weekday.predict(later)
    days = (later["when"][ROWS - LOOK_BACK] - even["when"][0]).days
    assert by_day.explain(later).phase[0] == days % 5


# --- Tables opened by another model ---


def test_a_table_opened_by_another_model_is_checked_and_gets_the_origin_of_this_one(
    unfitted: Callable[..., IBForecaster], model: IBForecaster
) -> None:
    for settings, message in (
        ({}, "missing_values=(-9999.0, 12345.0) .*missing_values=()"),
        (
            {"missing_values": SENTINELS, "channels": ["wind", "load", "heat"]},
            "the channels of training, ('load', 'wind', 'heat') .*",
        ),
        ({"missing_values": SENTINELS, "irregular": "by_row"}, "irregular='error' .* irregular='by_row'"),
    ):
        other = unfitted(epochs=1, **settings).fit(frame())
        with pytest.raises(DataError, match=message.replace("(", r"\(").replace(")", r"\)") + ".*open it with this"):
            model.predict(other.open(frame()))
    assert model.open(source := model.open(frame())) is source
    early, late = (unfitted(irregular="by_row", cycle=7, epochs=1).fit(frame()[first:]) for first in (0, 5))
    assert late.explain(early.open(frame())).phase.tolist() == late.explain(frame()).phase.tolist()


# --- Invalid input ---


def rows_swapped() -> pd.DataFrame:
    order = np.arange(ROWS)
    order[[7, 8]] = 8, 7
    return frame().iloc[order]


BAD_TABLES: dict[str, tuple[Callable[[], Any], str]] = {
    "no time column": (
        lambda: frame().drop(columns="when"),
        r"must have a time column \(got none among 'load', 'wind', 'heat'\); name it",
    ),
    "unsorted": (
        rows_swapped,
        r"timestamps must increase \(got row 8: 2023-01-01 07:00 comes after .*\); sort the table",
    ),
    "a repeated time": (
        lambda: pd.concat([frame()[:9], frame()[8:]]),
        r"even steps.*\(got row 9: 2023-01-01 08:00 appears twice\).*irregular='by_row'.*irregular='fill'",
    ),
    "a gap in time": (
        lambda: frame().drop(index=[30, 31]),
        r"even steps, here of 1h \(got row 30: 2023-01-02 08:00 follows 2023-01-02 05:00\).*irregular='fill'",
    ),
    "text": (
        lambda: frame().astype({"wind": object}).replace({"wind": {numbers()[4, 1]: "calm"}}),
        r"must contain numbers \(got row 4: 'calm' at 2023-01-01 04:00 in 'wind'\); .*otherwise correct the cells",
    ),
    "infinity": (
        lambda: with_value((5, 2), value=np.inf),
        r"values must be finite \(got row 5: inf at 2023-01-01 05:00 in 'heat'\); correct them",
    ),
    "too short": (
        lambda: frame()[:70],
        r"train part must contain at least one window of look_back \+ horizon = 60 rows \(got 49 rows\); give a longer",
    ),
    "two rows": (lambda: frame()[:2], r"at least 3 rows .*\(got 2\); add rows"),
    "no rows": (lambda: frame()[:0], r"must have rows and columns \(got 0 x 4\); fill it"),
    "a channel never observed in training": (
        lambda: with_value(*((row, 1) for row in range(300))),
        r"every channel needs an observation in the training rows \(got none in 'wind'\); drop the channel",
    ),
    "no file": (lambda: "nowhere.csv", r"a file that exists \(got 'nowhere.csv'\); check the path"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_fitting_to_an_invalid_table_is_refused(unfitted: Callable[..., IBForecaster], name: str) -> None:
    make, message = BAD_TABLES[name]
    with pytest.raises(DataError, match=message):
        unfitted().fit(make())


BAD_INPUTS: dict[str, tuple[Callable[[], Any], str]] = {
    "too few rows": (
        lambda: frame()[: LOOK_BACK - 1],
        r"must have look_back = 48 rows before it \(got 47\); give earlier rows",
    ),
    "a channel unobserved in the window": (
        lambda: with_value(*((row, 1) for row in range(ROWS - LOOK_BACK, ROWS))),
        r"observed at least once in the window \(got nothing in 'wind' from 2023-01-15 16:00 to 2023-01-17 15:00\); "
        "choose another moment",
    ),
    "a channel renamed": (
        lambda: frame().rename(columns={"wind": "winds"}),
        r"channel 'wind' must be in the table \(got 'load', 'winds', 'heat'\); did you mean 'winds'\?",
    ),
    "a channel missing": (
        lambda: frame().drop(columns="heat"),
        r"channel 'heat' must be in the table \(got 'load', 'wind'\)",
    ),
    "the time column renamed": (
        lambda: frame().rename(columns={"when": "wen"}),
        r"time column 'when' must be in the table .*; did you mean 'wen'\?",
    ),
    "another frequency": (
        lambda: frame(step="15min"),
        r"requested frequency \(got steps of 15min, requested 1h\); resample the table",
    ),
    "a gap in time": (lambda: frame().drop(index=[390]), r"even steps, here of 1h \(got row 390"),
}


@pytest.mark.parametrize("verb", ["predict", "explain"])
@pytest.mark.parametrize("name", BAD_INPUTS)
def test_forecasting_from_an_invalid_table_is_refused(model: IBForecaster, name: str, verb: str) -> None:
    make, message = BAD_INPUTS[name]
    with pytest.raises(DataError, match=message):
        getattr(model, verb)(make())


@pytest.mark.parametrize(
    ("at", "error", "message"),
    [
        (
            "2023-02-01",
            DataError,
            r"of the table, which runs from 2023-01-01 00:00 to 2023-01-17 15:00 \(got 2023-02-01\); the nearest is",
        ),
        ("2023-01-08 10:30", DataError, r"must be a time of the table.*the nearest is 2023-01-08 1"),
        ("2023-01-02 22:00", DataError, r"look_back = 48 rows before it \(got 47\); .*forecast from a later moment"),
        ("teatime", UsageError, r"must be an ISO time \(got 'teatime'\); try '2023-01-17 15:00'"),
        ("2023-01-08 10:00+01:00", UsageError, r"times have no zone .*leave out the offset"),
    ],
)
def test_an_invalid_moment_is_refused(model: IBForecaster, at: str, error: type[IBForecastError], message: str) -> None:
    with pytest.raises(error, match=message):
        model.explain(frame(), at)


BAD_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"budget": 0.0}, r"budget must lie in \(0, 1\] \(got budget=0\.0\); try 0\.2"),
    ({"budget": 1.5}, r"budget must lie in \(0, 1\] \(got budget=1\.5\); try 0\.2"),
    ({"budget": 0.05}, r"least one token \(got budget=0\.05 of 12 tokens\); try 0\.083334 or more, or patches shorter"),
    ({"budget": float("nan")}, r"budget must lie in \(0, 1\] \(got budget=nan\)"),
    ({"patch_len": 10}, r"patch_len must divide look_back \(got patch_len=10, look_back=48\); try 6, 8, 12"),
    ({"patch_len": 0}, r"patch_len must be at least 1 \(got 0\); give a positive"),
    ({"horizon": 0}, r"horizon must be at least 1 \(got horizon=0\); give a positive"),
    ({"look_back": 0}, r"look_back must be at least 1 \(got look_back=0\); give a positive"),
    ({"recipe": "seeled"}, r"recipe must be one that ships or a path .*\(got 'seeled'\); did you mean 'sealed'\?"),
    ({"recipe": "tqnet"}, r"one that ships or a path to a .toml file \(got 'tqnet'\); choose among"),
    ({"split": (0.9, 0.2, 0.2)}, r"three fractions that add up to 1.*\(got \(0\.9, 0\.2, 0\.2\)\); try \(0\.7"),
    ({"split": (1.0, 0.0, 0.0)}, r"three fractions that add up to 1, the first two positive"),
    ({"split": (1.2, -0.4, 0.2)}, r"three fractions that add up to 1"),
    ({"split": (float("nan"), 0.1, 0.2)}, r"three fractions that add up to 1"),
    ({"device": "abacus"}, r'device must be "auto", "cpu" or "cuda" \(got \'abacus\'\); try "auto"'),
    ({"freq": "often"}, r"frequency must be a count and a unit \(got 'often'\); try '15min'"),
    ({"zone": "Mars/Olympus"}, r"must be one of the IANA list \(got 'Mars/Olympus'\); try 'Europe/Berlin'"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS, ids=lambda value: str(value)[:40])
def test_an_invalid_setting_is_refused(
    unfitted: Callable[..., IBForecaster], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        unfitted(**settings).fit(frame())


@pytest.mark.parametrize("name", recipes.OWN.names)
def test_every_recipe_is_resolved_before_the_windows_are_made(unfitted: Callable[..., IBForecaster], name: str) -> None:
    made = unfitted(recipe=name, budget=None, split=(0.7, 0.05, 0.25))
    with pytest.raises(DataError, match="validation part"):
        made.fit(frame()[:100])


@pytest.mark.parametrize("cycle", [0, -24])
def test_an_invalid_cycle_is_refused_before_fitting(unfitted: Callable[..., IBForecaster], cycle: int) -> None:
    with pytest.raises(UsageError, match=rf'number of steps or "auto" \(got {cycle}\); try 24'):
        unfitted(cycle=cycle)


def test_an_unavailable_gpu_is_refused(unfitted: Callable[..., IBForecaster], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    message = r"device must be available \(got 'cuda', but PyTorch sees no GPU\); use \"cpu\""
    with pytest.raises(UsageError, match=message):
        unfitted(device="cuda").fit(frame())


@pytest.mark.parametrize(
    "use",
    [
        lambda model, explanation: model.predict(frame()),
        lambda model, explanation: model.explain(frame()),
        lambda model, explanation: model.evaluate(frame()),
        lambda model, explanation: model.save("model"),
        lambda model, explanation: model.verify(explanation),
    ],
    ids=["predict", "explain", "evaluate", "save", "verify"],
)
def test_a_model_must_be_fitted_before_it_is_used(
    unfitted: Callable[..., IBForecaster], model: IBForecaster, use: Callable[..., Any]
) -> None:
    explanation = replace(model.explain(frame()), host=None)
    with pytest.raises(UsageError, match=r"must be fitted before it is used .*; call fit\(table\) first"):
        use(unfitted(), explanation)


def test_a_refused_fit_leaves_a_fitted_model_unchanged(unfitted: Callable[..., IBForecaster]) -> None:
    kept = unfitted().fit(frame())
    before = kept.predict(frame())
    with pytest.raises(DataError):
        kept.fit(frame()[:70])
    pd.testing.assert_frame_equal(kept.predict(frame()), before, check_exact=True)


def test_the_package_exports_exactly_these_names() -> None:
    assert set(ibforecast.__all__) == {
        "DataError",
        "Evaluation",
        "ExplainedForecast",
        "IBForecastError",
        "IBForecaster",
        "MissingExtraError",
        "ModelFileError",
        "UsageError",
        "Verification",
        "VerificationError",
        "__version__",
        "demo_table",
    }
    assert all(hasattr(ibforecast, name) for name in ibforecast.__all__)


def test_a_model_for_any_budget_keeps_the_requested_one_and_its_explanations_verify(
    unfitted: Callable[..., IBForecaster],
) -> None:
    table = frame()
    fitted = unfitted(recipe="any-budget").fit(table)
    little, much = (fitted.explain(table, budget=budget) for budget in (0.1, 0.5))
    assert little.open_rate <= 0.1 < much.open_rate <= 0.5
    assert not (little.mask & ~much.mask).any()
    assert little.budget == 1 / 12  # a tenth of twelve tokens, rounded down
    for explanation in (little, much, fitted.explain(table)):
        explanation.verify()
    assert values_of(fitted.predict(table, budget=0.5)).tobytes() == much.forecast.tobytes()
    assert fitted.evaluate(table, budget=0.1).largest_open_rate <= 0.1
    assert fitted.evaluate(table).budget == fitted.fitted.config.budget


def test_a_model_for_one_budget_refuses_another_with_a_remedy(model: IBForecaster) -> None:
    with pytest.raises(UsageError, match=r"only in a model trained for any.*any-budget"):
        model.predict(frame(), budget=0.9)


def test_an_explanation_with_a_changed_budget_is_not_verified(
    unfitted: Callable[..., IBForecaster],
) -> None:
    table = frame()
    fitted = unfitted(recipe="any-budget").fit(table)
    explanation = fitted.explain(table, budget=0.5)
    assert not fitted.verify(replace(explanation, budget=0.1))


def test_epochs_replace_those_of_the_recipe_and_change_its_fingerprint(unfitted: Callable[..., IBForecaster]) -> None:
    plain, short = (unfitted(**settings).fit(frame()).fitted.summary for settings in ({}, {"epochs": 1}))
    assert short.epochs == 1 < plain.epochs
    assert short.recipe_sha256 != plain.recipe_sha256
