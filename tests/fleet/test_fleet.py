"""A fleet: members are independent, finished work is kept, and a failure does not stop the others."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ibforecast import DataError, IBForecaster, ModelFileError, UsageError
from ibforecast.core import document
from ibforecast.core.folders import locked
from ibforecast.data.sources import load
from ibforecast.fleet import Fleet, Outcome
from ibforecast.fleet.fleet import MEMBER_FORMAT, VERSION
from ibforecast.fleet.work import worst_first

Make = Callable[..., Any]


def long(tables: dict[Any, pd.DataFrame]) -> pd.DataFrame:
    ids = [name for name, table in tables.items() for _ in range(len(table))]
    return pd.concat(list(tables.values()), ignore_index=True).assign(unique_id=ids)


def states(outcomes: tuple[Outcome, ...]) -> dict[str, str]:
    return {outcome.name: outcome.state for outcome in outcomes}


@pytest.fixture
def three(series: Make) -> dict[str, pd.DataFrame]:
    return {name: series(seed) for seed, name in enumerate("abc")}


# --- Independent members ---


def test_a_member_equals_a_model_fitted_on_its_own(series: Make, forecaster: Make, tmp_path: Path) -> None:
    tables = {f"meter {seed}": series(seed) for seed in range(3)}
    fleet = Fleet(tmp_path / "fleet")
    outcomes = fleet.fit(long(tables), forecaster())
    forecast = fleet.predict(long(tables)).table()
    assert forecast.columns.tolist() == ["unique_id", "ds", "IBForecast"]
    for name, outcome in zip(tables, outcomes, strict=True):
        single = forecaster().fit(tables[name])
        assert fleet.model(name).fitted.weights_sha256 == single.fitted.weights_sha256
        assert outcome.validation_error == single.fitted.summary.validation_error
        assert outcome.open_rate == single.evaluate(tables[name], "validation").open_rate
        own = forecast[forecast["unique_id"] == name].reset_index(drop=True)
        expected = single.predict(tables[name])
        pd.testing.assert_series_equal(own["ds"], expected["ds"])
        np.testing.assert_array_equal(own["IBForecast"], expected["y"])


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder", "mapping", "polars", "pyarrow"])
def test_the_same_series_give_the_same_fleet_from_every_kind_of_source(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path, kind: str
) -> None:
    folder, table = tmp_path / "tables", long(three)
    folder.mkdir()
    for name, own in three.items():
        own.to_csv(folder / f"{name}.csv", index=False)
    table.to_csv(tmp_path / "long.csv", index=False)
    table.to_parquet(tmp_path / "long.parquet")
    sources: dict[str, Any] = {
        "csv": tmp_path / "long.csv",
        "parquet": str(tmp_path / "long.parquet"),
        "folder": folder,
        "mapping": three,
        "polars": pl.from_pandas(table),
        "pyarrow": pa.Table.from_pandas(table),
    }
    fleet, direct = Fleet(tmp_path / "fleet"), Fleet(tmp_path / "direct")
    assert states(fleet.fit(sources[kind], forecaster())) == dict.fromkeys(three, "fitted")
    direct.fit(table, forecaster())
    for name in three:
        assert fleet.model(name).fitted.weights_sha256 == direct.model(name).fitted.weights_sha256
    forecasts, expected = fleet.predict(sources[kind]), direct.predict(table)
    assert forecasts.table()["IBForecast"].tolist() == expected.table()["IBForecast"].tolist()


def test_ids_may_be_numbers_and_rows_may_be_interleaved(series: Make, forecaster: Make, tmp_path: Path) -> None:
    tables = {seed: series(seed) for seed in range(3)}
    mixed = long(tables).sort_values(["ds", "unique_id"])
    fleet = Fleet(tmp_path / "fleet")
    assert states(fleet.fit(mixed, forecaster())) == dict.fromkeys(["0", "1", "2"], "fitted")
    assert fleet.model("2").fitted.weights_sha256 == forecaster().fit(tables[2]).fitted.weights_sha256


def test_a_long_table_may_have_several_channels_and_unused_columns(
    series: Make, forecaster: Make, tmp_path: Path
) -> None:
    tables = {name: series(seed, channels=("load", "heat")) for seed, name in enumerate("ab")}
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(long(tables).assign(note="x"), forecaster(channels=["load", "heat"]))
    forecast = fleet.predict(long(tables)).table()
    assert forecast.columns.tolist() == ["unique_id", "ds", "channel", "IBForecast"]
    assert len(forecast) == 2 * 2 * 12
    single = forecaster(channels=["load", "heat"]).fit(tables["b"]).predict(tables["b"])
    own = forecast[(forecast["unique_id"] == "b") & (forecast["channel"] == "heat")]
    assert own["IBForecast"].tolist() == single["heat"].tolist()


def test_past_and_future_covariates_are_not_forecast(series: Make, forecaster: Make, tmp_path: Path) -> None:
    tables = {name: series(seed, channels=("y", "heat")) for seed, name in enumerate("ab")}
    for table in tables.values():
        table["holiday"] = (table.index // 24 % 7 == 6).astype(float)
        table.loc[table.index >= 188, ["y", "heat"]] = np.nan
    fleet, settings = Fleet(tmp_path / "fleet"), {"past": ["heat"], "future": ["holiday"]}
    assert states(fleet.fit(long(tables), forecaster(**settings))) == dict.fromkeys("ab", "fitted")
    forecast = fleet.predict(long(tables)).table()
    single = forecaster(**settings, channels=["y"]).fit(tables["b"])
    own = forecast[forecast["unique_id"] == "b"].reset_index(drop=True)
    assert forecast.columns.tolist() == ["unique_id", "ds", "IBForecast"]
    assert own["IBForecast"].tolist() == single.predict(tables["b"])["y"].tolist()
    assert own["ds"][0] == tables["b"]["ds"][188]


# --- Failures ---


def test_a_broken_series_is_reported_and_does_not_stop_the_others(
    series: Make, forecaster: Make, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    good = [f"good{seed}" for seed in range(5)]
    for seed, name in enumerate(good):
        series(seed).to_csv(folder / f"{name}.csv", index=False)
    whole = series(9)
    whole[:30].to_csv(folder / "short.csv", index=False)
    whole.drop(index=[50]).to_csv(folder / "gap.csv", index=False)
    whole.assign(y=5.0).to_csv(folder / "constant.csv", index=False)
    whole.assign(y=whole["y"].where(whole.index % 9 != 0)).to_csv(folder / "holes.csv", index=False)
    whole.assign(y=np.nan).to_csv(folder / "nothing.csv", index=False)
    whole.astype({"y": object}).assign(y=["x", *whole["y"][1:]]).to_csv(folder / "words.csv", index=False)
    pd.concat([whole, whole]).sort_values("ds").to_csv(folder / "doubled.csv", index=False)
    whole.to_csv(folder / "twice.csv", index=False)
    whole.to_parquet(folder / "twice.parquet")
    (folder / "torn.parquet").write_bytes(b"PAR1 and then nothing")
    (folder / "README.md").write_text("no table")
    (folder / ".hidden.csv").write_text("no table either")

    outcomes = Fleet(tmp_path / "fleet").fit(folder, forecaster())
    problems = {
        "short": "the train part must contain at least one window",
        "gap": "row 50: 2023-01-03 03:00 follows 2023-01-03 01:00",
        "nothing": "every channel needs an observation",
        "words": "a channel must contain numbers",
        "doubled": "a row must have a time of its own",
        "twice": "must belong to one table (got 2 of the name 'twice')",
        "torn": "must be whole and well formed",
    }
    expected = dict.fromkeys([*good, "constant", "holes"], "fitted") | dict.fromkeys(problems, "failed")
    assert states(outcomes) == expected
    for outcome in outcomes:
        assert problems.get(outcome.name, "") in outcome.message
        assert bool(outcome.message) == (outcome.state == "failed")

    report = pd.read_csv(tmp_path / "fleet" / "fleet.csv", keep_default_na=False)
    reported = worst_first(outcomes)
    assert {outcome.state for outcome in reported[: len(problems)]} == {"failed"}
    assert report["name"].tolist() == [outcome.name for outcome in reported]
    assert report["state"].tolist() == [outcome.state for outcome in reported]
    assert report["message"].tolist() == [outcome.message for outcome in reported]

    forecasts = Fleet(tmp_path / "fleet").predict(folder)
    assert states(forecasts.outcomes) == {name: "failed" if name in problems else "forecast" for name in expected}
    messages = {outcome.name: outcome.message for outcome in forecasts.outcomes}
    assert "its fit failed: the train part must contain" in messages["short"]
    constant = forecasts.parts["constant"]["IBForecast"].to_numpy()
    np.testing.assert_allclose(constant, 5.0, atol=0.1)


@pytest.mark.parametrize("nothing", [None, "", "  "], ids=["null", "empty", "blank"])
def test_rows_without_an_id_are_reported_and_do_not_stop_the_others(
    series: Make, forecaster: Make, tmp_path: Path, nothing: Any
) -> None:
    table = long({"a": series(0), "b": series(1)})
    table.loc[table.index[-3:], "unique_id"] = nothing
    outcomes = Fleet(tmp_path / "fleet").fit(table, forecaster(split=(0.6, 0.2, 0.2)))
    assert states(outcomes) == {"a": "fitted", "b": "fitted", "": "failed"}
    assert outcomes[-1].message == "every row must have an id (got 3 without); fill 'unique_id'"


def test_an_unexpected_error_is_reported_for_its_member(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = IBForecaster.fit

    def stumble(self: IBForecaster, table: Any, **settings: Any) -> IBForecaster:
        if table["y"][0].as_py() > 15:
            raise ZeroDivisionError("oh")
        return fit(self, table, **settings)

    monkeypatch.setattr(IBForecaster, "fit", stumble)
    outcomes = Fleet(tmp_path / "fleet").fit(three, forecaster())
    assert states(outcomes) == {"a": "fitted", "b": "fitted", "c": "failed"}
    assert outcomes[-1].message == "unexpected ZeroDivisionError: oh"


AWKWARD = ["../escape", "a/b", "a\\b", "A", "a", ".", "CON", "ä ß", "日本", "long" * 80, "x\ny", "a_b", "-a", "*?"]


def test_every_name_gets_its_own_folder(series: Make, forecaster: Make, tmp_path: Path) -> None:
    table = series(1)
    fleet = Fleet(tmp_path / "fleet")
    assert states(fleet.fit(dict.fromkeys(AWKWARD, table), forecaster())) == dict.fromkeys(AWKWARD, "fitted")
    folders = [path.name for path in (tmp_path / "fleet" / "members").iterdir()]
    assert len({name.lower() for name in folders}) == len(AWKWARD)
    assert max(map(len, folders)) < 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet", "tiny.toml"]
    assert all(fleet.model(name).fitted.channels == ("y",) for name in AWKWARD)


def test_names_that_become_equal_as_text_are_all_refused(series: Make, forecaster: Make, tmp_path: Path) -> None:
    outcomes = Fleet(tmp_path / "fleet").fit({1: series(1), "1": series(2), "2": series(3)}, forecaster())
    assert states(outcomes) == {"1": "failed", "2": "fitted"}


# --- Finished work is kept ---


@pytest.fixture
def fitted_again(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets one entry per fit."""
    calls: list[int] = []
    fit = IBForecaster.fit

    def count(self: IBForecaster, table: Any, **settings: Any) -> IBForecaster:
        calls.append(1)
        return fit(self, table, **settings)

    monkeypatch.setattr(IBForecaster, "fit", count)
    return calls


def test_a_finished_member_is_kept_until_its_table_or_the_settings_change(
    three: dict[str, pd.DataFrame], forecaster: Make, recipe: Path, tmp_path: Path, fitted_again: list[int]
) -> None:
    fleet = Fleet(tmp_path / "fleet")

    def fits(**settings: Any) -> int:
        fitted_again.clear()
        outcomes = fleet.fit(three, forecaster(**settings))
        assert [outcome.state for outcome in outcomes].count("fitted") == len(fitted_again)
        return len(fitted_again)

    assert (fits(), fits()) == (3, 0)
    three["b"] = three["b"].assign(y=three["b"]["y"] + (three["b"].index == 7))
    assert (fits(), fits()) == (1, 0)
    assert (fits(seed=5), fits(seed=5)) == (3, 0)
    recipe.write_text(recipe.read_text().replace("batch = 64", "batch = 32"))
    assert (fits(seed=5), fits(seed=5)) == (3, 0)
    elsewhere = tmp_path / "same.toml"
    elsewhere.write_text(recipe.read_text())
    assert fits(seed=5, recipe=str(elsewhere)) == 0


def test_a_failed_member_is_retried_and_kept_once_it_succeeds(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path, fitted_again: list[int]
) -> None:
    fleet, whole = Fleet(tmp_path / "fleet"), three["b"]
    three["b"] = whole[:20]
    assert states(fleet.fit(three, forecaster())) == {"a": "fitted", "b": "failed", "c": "fitted"}
    assert states(fleet.fit(three, forecaster())) == {"a": "kept", "b": "failed", "c": "kept"}
    three["b"] = whole
    fitted_again.clear()
    assert states(fleet.fit(three, forecaster())) == {"a": "kept", "b": "fitted", "c": "kept"}
    assert len(fitted_again) == 1


def test_a_failed_fit_leaves_the_earlier_model(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet, whole = Fleet(tmp_path / "fleet"), three["b"]
    fleet.fit(three, forecaster())
    before = fleet.model("b").fitted.weights_sha256
    three["b"] = whole.drop(index=50)
    assert states(fleet.fit(three, forecaster())) == {"a": "kept", "b": "failed", "c": "kept"}
    assert fleet.model("b").fitted.weights_sha256 == before
    assert states(fleet.fit(three, forecaster())) == {"a": "kept", "b": "failed", "c": "kept"}
    three["b"] = whole.assign(y=whole["y"] ** 2)
    assert states(fleet.fit(three, forecaster())) == {"a": "kept", "b": "fitted", "c": "kept"}
    assert fleet.model("b").fitted.weights_sha256 != before
    assert not [path for path in (tmp_path / "fleet" / "members").iterdir() if path.name.startswith(".")]


def test_a_stopped_run_resumes_where_it_was(
    series: Make, forecaster: Make, tmp_path: Path, fitted_again: list[int]
) -> None:
    tables = {f"s{seed}": series(seed) for seed in range(5)}
    fleet = Fleet(tmp_path / "fleet")

    def stop(outcome: Outcome, members: int) -> None:
        assert members == 5
        if outcome.name == "s1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet.fit(tables, forecaster(), on_member=stop)
    assert pd.read_csv(tmp_path / "fleet" / "fleet.csv")["name"].sort_values().tolist() == ["s0", "s1"]
    half = tmp_path / "fleet" / "members" / ".s2-half"
    half.mkdir()
    fitted_again.clear()
    outcomes = fleet.fit(tables, forecaster())
    assert [outcome.state for outcome in outcomes] == ["kept", "kept", "fitted", "fitted", "fitted"]
    assert len(fitted_again) == 3
    assert not half.exists()


@pytest.mark.parametrize("change", [{"seconds ": 1.0}, {"rows": 2.5}, {"ratio": "x"}, {"mae": 10**400}, {"message": 1}])
def test_a_member_with_a_record_of_other_fields_or_types_is_fitted_again(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path, change: dict[str, object]
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    (outcome,) = fleet.fit({"a": three["a"]}, forecaster())
    path = tmp_path / "fleet" / "members" / outcome.folder / "member.json"
    record = document.read(path.read_bytes(), MEMBER_FORMAT, VERSION)
    path.write_text(document.write(MEMBER_FORMAT, VERSION, record | change))
    assert states(fleet.fit({"a": three["a"]}, forecaster())) == {"a": "fitted"}


def test_a_member_with_a_damaged_record_is_fitted_again(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    folder = {outcome.name: outcome.folder for outcome in fleet.fit(three, forecaster())}["b"]
    (tmp_path / "fleet" / "members" / folder / "member.json").write_text("{")
    assert states(fleet.fit(three, forecaster())) == {"a": "kept", "b": "fitted", "c": "kept"}


# --- Forecasts ---


def test_a_member_with_the_folder_of_another_is_not_used_and_is_fitted_again(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    first, second, _ = (tmp_path / "fleet" / "members" / each.folder for each in fleet.fit(long(three), forecaster()))
    before = fleet.predict(long(three)).table()
    for place, target in ((first, tmp_path / "other"), (second, first), (tmp_path / "other", second)):
        place.rename(target)
    forecasts = fleet.predict(long(three))
    assert states(forecasts.outcomes) == {"a": "failed", "b": "failed", "c": "forecast"}
    with pytest.raises(ModelFileError, match="'a': it is not in this fleet"):
        fleet.model("a")
    assert states(fleet.fit(long(three), forecaster())) == {"a": "fitted", "b": "fitted", "c": "kept"}
    pd.testing.assert_frame_equal(fleet.predict(long(three)).table(), before)


def test_a_table_that_cannot_be_forecast_is_reported(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(three, forecaster())
    forecasts = fleet.predict({"a": three["a"], "b": three["b"][:20], "z": three["a"]})
    assert states(forecasts.outcomes) == {"a": "forecast", "b": "failed", "z": "failed"}
    messages = {outcome.name: outcome.message for outcome in forecasts.outcomes}
    assert "look_back = 48 rows before it (got 20)" in messages["b"]
    expected = (
        "a member must be fitted before it is used (got 'z': it is not in this fleet); fit the fleet with its table"
    )
    assert messages["z"] == expected
    assert set(forecasts.table()["unique_id"]) == {"a"}
    with pytest.raises(DataError, match="all of its members failed"):
        fleet.predict({"z": three["a"]}).table()


def test_a_forecast_from_an_earlier_moment_equals_that_of_the_model(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(three, forecaster())
    forecast = fleet.predict(three, "2023-01-05 10:00").table()
    expected = fleet.model("b").predict(three["b"], "2023-01-05 10:00")
    own = forecast[forecast["unique_id"] == "b"]
    assert own["IBForecast"].tolist() == expected["y"].tolist()
    assert own["ds"].tolist() == expected["ds"].tolist()


def test_forecasts_are_written_as_one_file_or_as_a_folder(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(three, forecaster())
    forecasts = fleet.predict(three)
    forecasts.save(tmp_path / "next.csv")
    forecasts.save(tmp_path / "next.parquet")
    forecasts.save(tmp_path / "next")
    expected = forecasts.table()["IBForecast"].tolist()
    assert pd.read_csv(tmp_path / "next.csv", float_precision="round_trip")["IBForecast"].tolist() == expected
    assert pd.read_parquet(tmp_path / "next.parquet")["IBForecast"].tolist() == expected
    parts = sorted((tmp_path / "next").iterdir())
    assert [number for path in parts for number in pd.read_parquet(path)["IBForecast"]] == expected


@pytest.mark.parametrize(
    ("id", "time", "channels", "expected"),
    [
        ("channel", "ds", ("y",), ["channel", "ds", "IBForecast"]),
        ("channel", "ds", ("load", "heat"), ["channel", "ds", "channel_", "IBForecast"]),
        ("IBForecast", "channel", ("y",), ["IBForecast", "channel", "IBForecast_"]),
        ("unique_id", "name", ("y",), ["unique_id", "name", "IBForecast"]),
    ],
)
def test_forecast_columns_do_not_clash_with_the_tables_own(
    series: Make, forecaster: Make, tmp_path: Path, id: str, time: str, channels: tuple[str, ...], expected: list[str]
) -> None:
    table = long({name: series(seed, channels=channels) for seed, name in enumerate("ab")})
    fleet, settings = Fleet(tmp_path / "fleet"), {"id": id, "channels": list(channels)}
    fleet.fit(table.rename(columns={"unique_id": id, "ds": time}), forecaster(**settings))
    forecasts = fleet.predict(table.rename(columns={"unique_id": id, "ds": time}))
    assert states(forecasts.outcomes) == dict.fromkeys("ab", "forecast")
    joined = forecasts.table()
    assert joined.columns.tolist() == expected
    assert joined[id].unique().tolist() == ["a", "b"]
    forecasts.save(tmp_path / "next.csv")
    forecasts.save(tmp_path / "next")
    values = joined.iloc[:, -1].tolist()
    assert pd.read_csv(tmp_path / "next.csv", float_precision="round_trip").iloc[:, -1].tolist() == values
    parts = [pd.read_parquet(path) for path in sorted((tmp_path / "next").iterdir())]
    assert pd.concat(parts).iloc[:, -1].tolist() == values


def test_times_of_different_names_are_merged_next_to_an_id_called_time(
    series: Make, forecaster: Make, tmp_path: Path
) -> None:
    tables = {"a": series(0), "b": series(1).rename(columns={"ds": "channel"})}
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(tables, forecaster(id="time"))
    forecast = fleet.predict(tables).table()
    assert forecast.columns.tolist() == ["time", "time_", "IBForecast"]
    assert forecast["time"].unique().tolist() == ["a", "b"]


@pytest.mark.parametrize("channels", [None, ("kWh",), ("volt",)])
@pytest.mark.parametrize("fit", [Fleet.fit, Fleet.fit_global])
def test_a_long_table_may_have_own_names_of_id_and_target(
    fit: Any, channels: tuple[str, ...] | None, three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    table = long(three).rename(columns={"unique_id": "meter", "y": "kWh"}).assign(volt=lambda table: 2 * table["kWh"])
    fleet = Fleet(tmp_path / "fleet")
    outcomes = fit(fleet, table, forecaster(id="meter", target="kWh", channels=channels))
    assert states(outcomes) == dict.fromkeys("abc", "fitted"), outcomes[0].message
    part = table[table["meter"] == "b"].drop(columns="meter")
    assert fleet.model("b").predict(part).columns.tolist() == ["ds", *(channels or ["kWh"])]
    ahead = fleet.predict(table.replace({"meter": {"c": "new"}}))
    expected = {"a": "forecast", "b": "forecast", "new": "forecast" if fit is Fleet.fit_global else "failed"}
    assert states(ahead.outcomes) == expected
    assert ahead.table()["meter"].unique().tolist() == [name for name, state in expected.items() if state == "forecast"]


def test_an_earlier_forecast_of_a_failed_member_is_removed(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(three, forecaster())
    fleet.predict(three).save(tmp_path / "next")
    (tmp_path / "next" / "notes.txt").write_text("mine")
    three["b"] = three["b"][:20]
    fleet.predict(three).save(tmp_path / "next")
    assert sorted(path.name[0] for path in (tmp_path / "next").iterdir()) == ["a", "c", "n"]


def test_times_of_different_types_and_names_are_merged(series: Make, forecaster: Make, tmp_path: Path) -> None:
    zoned = series(1).assign(ds=lambda table: table["ds"].dt.tz_localize("Asia/Kolkata"))
    tables = {"a": series(0), "b": zoned.rename(columns={"ds": "when"})}
    fleet = Fleet(tmp_path / "fleet")
    fleet.fit(tables, forecaster())
    forecast = fleet.predict(tables).table()
    assert forecast.columns.tolist() == ["unique_id", "time", "IBForecast"]
    assert forecast["time"].tolist()[0].startswith("2023-01-09 08:00:00")
    assert forecast["time"].tolist()[-1].startswith("2023-01-09 19:00:00")
    assert not forecast["time"].str.contains(".000", regex=False).any()


# --- Invalid arguments ---


def test_a_folder_with_other_content_is_left_unchanged(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("do not lose me")
    with pytest.raises(UsageError, match="only a fleet can be continued"):
        Fleet(tmp_path / "letters").fit(three, forecaster())
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["dear.txt"]


@pytest.mark.skipif(os.name != "posix", reason="needs a lock of the system")
def test_a_fleet_that_is_being_fitted_is_refused(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path / "fleet")
    fleet.folder.mkdir()
    with locked(fleet.folder, wait=False), pytest.raises(UsageError, match="by one process at a time"):
        fleet.fit(three, forecaster())
    assert list(fleet.folder.iterdir()) == []


def test_a_full_disk_is_reported_for_its_member(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ibforecast.fleet.work.FittedModel.files", property(full))
    (outcome,) = Fleet(tmp_path / "fleet").fit({"a": three["a"]}, forecaster())
    assert outcome.state == "failed"
    assert outcome.message.startswith("a path must be one that can be read and written (got the disk: No space left")


@pytest.mark.parametrize(
    "content",
    [None, "{", "[]", '{"format": "ibforecast.model"}', '{"format": "ibforecast.fleet", "version": 9}'],
)
def test_a_folder_without_a_valid_fleet_is_refused(
    three: dict[str, pd.DataFrame], tmp_path: Path, content: str
) -> None:
    if content:
        (tmp_path / "fleet.json").write_text(content)
    with pytest.raises(
        ModelFileError, match=r"a fleet must be a folder with a complete fleet\.json .*name the folder of a fleet"
    ):
        Fleet(tmp_path).predict(three)


def test_settings_that_no_member_can_have_are_refused_before_fitting(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    for settings, message in (({"recipe": "dlinear"}, "one that ships"), ({"recipe": "exakt"}, "one that ships")):
        with pytest.raises(UsageError, match=message):
            Fleet(tmp_path / "fleet").fit(three, forecaster(**settings))
    assert not (tmp_path / "fleet").exists()


def test_a_source_without_members_is_refused(series: Make, forecaster: Make, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, message in ((tmp_path / "empty", "must have members"), (series(0), "no 'unique_id' among 'ds', 'y'")):
        with pytest.raises(DataError, match=message):
            Fleet(tmp_path / "fleet").fit(source, forecaster())


def test_the_document_records_how_the_fleet_was_fitted(
    three: dict[str, pd.DataFrame], forecaster: Make, tmp_path: Path
) -> None:
    Fleet(tmp_path / "fleet").fit(long(three), forecaster(zone="UTC"))
    document = json.loads((tmp_path / "fleet" / "fleet.json").read_text())
    assert (document["format"], document["version"]) == ("ibforecast.fleet", 1)
    assert document["settings"]["zone"] == "UTC"
    assert document["settings"]["horizon"] == 12
    text = (tmp_path / "fleet" / "fleet.json").read_text()
    (tmp_path / "fleet" / "fleet.json").write_text(text.replace('"UTC"', '"GMT"'))
    with pytest.raises(ModelFileError, match="must match its fingerprint"):
        Fleet(tmp_path / "fleet").predict(long(three))


def test_a_fingerprint_depends_on_the_numbers_and_not_on_how_they_were_stored(series: Make, tmp_path: Path) -> None:
    from ibforecast.fleet.members import Member

    table = series(3)
    table.to_csv(tmp_path / "a.csv", index=False)
    arrow = load(table)[0]
    chunked = pa.concat_tables([arrow[:50], arrow[50:]])
    digests = {Member("a", source).sha256 for source in (arrow, chunked, load(tmp_path / "a.csv")[0])}
    assert len(digests) == 1
    changed = table.assign(y=table["y"].where(table.index != 3, 0.0))
    assert Member("a", load(changed)[0]).sha256 not in digests
