"""A look at a table before a fit: what is found in generated tables, and what is advised."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ibforecast import DataError, IBForecaster, UsageError
from ibforecast.check import Findings
from ibforecast.cli.main import run
from ibforecast.data.demo import demo_table


def hourly(rows: int = 2000, **columns: Any) -> pd.DataFrame:
    random, hour = np.random.default_rng(0), np.arange(rows)
    load = 50 + 10 * np.sin(2 * np.pi * hour / 24) + random.normal(size=rows)
    return pd.DataFrame({"time": pd.date_range("2024-01-01", periods=rows, freq="h"), "load": load} | columns)


def look(table: Any, **settings: Any) -> Findings:
    return IBForecaster(**{"horizon": 24} | settings).check(table)


def topics(findings: Findings) -> dict[str, str]:
    return {each.topic: f"{each.finding}; {each.remedy}" for each in findings.advice}


def test_a_plain_table_is_described_without_advice() -> None:
    findings = look(hourly())
    assert (findings.rows, findings.channels, findings.step) == (2000, ("load",), "1h")
    assert (findings.first, findings.last) == ("2024-01-01 00:00", "2024-03-24 07:00")
    assert (findings.missing, findings.gaps, findings.unreadable) == (0, 0, 0.0)
    assert (findings.windows, findings.validation_windows) == (1281, 177)
    assert (findings.cycle, [each.length for each in findings.rhythms]) == ((24,), [24])
    assert (findings.advice, findings.refusal) == ((), "")
    assert findings.cost is not None
    assert f"  a fit     {findings.cost.words}" in str(findings)


def test_the_windows_are_those_that_a_fit_reports() -> None:
    table = hourly(400)
    table.loc[100:230, "load"] = np.nan
    fitted = IBForecaster(horizon=6, look_back=48, epochs=1, sealed=True, device="cpu").fit(table).fitted
    assert look(table, horizon=6, look_back=48).windows == fitted.summary.windows < 227


def test_gaps_are_counted_and_tokens_with_a_gap_cannot_be_read() -> None:
    table = hourly()
    table.loc[[0, 1, 500, 1999], "load"] = np.nan
    findings = look(table)
    assert (findings.missing, findings.gaps) == (4, 3)
    assert findings.unreadable == 4 / 2000
    assert look(table, recipe="any-budget").unreadable > 4 / 2000


def test_empty_nights_are_named() -> None:
    table = hourly()
    table.loc[table["time"].dt.hour < 5, "load"] = np.nan
    advice = topics(look(table))["empty hours"]
    assert "00:00, 01:00, 02:00, 03:00, 04:00" in advice
    assert "--irregular by_row --cycle 19" in advice


def test_further_cycles_and_a_look_back_that_spans_them_are_advised() -> None:
    table = hourly()
    table["load"] -= 15.0 * (table["time"].dt.dayofweek >= 5)
    findings = look(table)
    assert findings.cycle == (24, 168)  # a fit learns both
    assert findings.options == ("--look-back 168",)
    assert not look(table, cycle=(24, 168), look_back=168).options


def test_a_step_without_a_natural_cycle_gets_the_one_that_was_found() -> None:
    table = hourly()
    table["time"] = pd.date_range("2024-01-01", periods=2000, freq="7h")
    findings = look(table)
    assert (findings.cycle, findings.refusal) == ((24,), "")
    assert "--cycle 24" in findings.options


def test_odd_channels_are_named_with_an_option() -> None:
    random = np.random.default_rng(1)
    findings = look(
        hourly(
            still=np.ones(2000),
            holiday=(np.arange(2000) // 24 % 9 == 0).astype(float),
            visits=random.poisson(8, 2000),
            sensor=np.where(np.arange(2000) == 700, 1e6, random.normal(size=2000)),
            marked=np.where(np.arange(2000) % 100 == 7, -9999, random.normal(size=2000)),
        )
    )
    advice = topics(findings)
    assert "--channels load,holiday,visits,sensor,marked" in advice["constant channels"]
    assert "--future holiday" in advice["flags"]
    assert "visits" in advice["counts"]
    assert "'sensor'" in advice["outliers"]
    assert "1e+06 at 2024-01-30 04:00" in advice["outliers"]
    assert "--missing-value -9999" in findings.options


def test_a_step_without_a_cycle_is_planned_without_one_as_the_advice_says() -> None:
    years = pd.date_range("1700-01-01", periods=300, freq="YS")
    findings = look(pd.DataFrame({"time": years, "load": np.random.default_rng(0).normal(size=300)}), horizon=5)
    assert (findings.cycle, findings.options, findings.refusal) == ((), ("--cycle 1",), "")
    assert (findings.windows, findings.validation_windows) == (110, 26)
    assert "learn none: --cycle 1" in str(findings)
    assert "110 windows to train on" in str(findings)


def test_one_of_a_kind_is_not_called_several() -> None:
    table = hourly()[["time", "load"]]
    table.loc[7, "load"] = np.nan
    text = str(look(table))
    assert "2,000 rows x 1 channel, steps of 1h" in text
    assert "in 1 gap; " in text
    assert "24 in 1 of 1 channel\n" in text


def test_uneven_times_are_filled_and_named() -> None:
    findings = look(hourly().drop(index=[40, 41, 42]))
    assert (findings.rows, findings.missing) == (2000, 3)
    assert findings.options == ("--irregular fill",)


def test_a_table_that_cannot_be_read_is_refused_as_by_a_fit() -> None:
    table = hourly().astype({"load": object})
    table.loc[5, "load"] = "n/a?"
    with pytest.raises(DataError, match="a channel must contain numbers"):
        look(table)


def test_a_fit_that_would_be_refused_says_why() -> None:
    findings = look(hourly(100), horizon=60)
    assert "look_back" in findings.refusal
    assert "would be refused" in str(findings)
    assert (findings.windows, findings.cost) == (0, None)


def test_a_huge_value_is_named_without_a_warning_of_another_library() -> None:
    table = hourly()
    table.loc[40, "load"] = 1e300
    findings = look(table)
    assert "above 1e+30" in findings.refusal
    assert any("1e+300" in finding for finding in topics(findings).values())


def test_a_short_table_gets_other_defaults_and_advice_says_so() -> None:
    findings = look(hourly(120))
    assert (findings.look_back, findings.refusal) == (24, "")
    assert "a fit takes a look-back of 24" in topics(findings)["short table"]


def test_the_demo_table_fits_on_one_screen() -> None:
    text = str(look(pd.DataFrame(demo_table().columns())))
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 160


def test_the_command_prints_one_screen_or_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hourly().to_csv("my load.csv", index=False)

    def call(*words: str) -> tuple[Any, str]:
        with pytest.raises(SystemExit) as stop:
            run(["check", "my load.csv", *words])
        return stop.value.code, capsys.readouterr().out

    code, text = call()
    assert code == 0
    assert text.endswith("next: ibforecast fit 'my load.csv' --horizon 24 --out model\n")
    code, text = call("--horizon", "1500")
    assert code == 0
    assert "next, once nothing is refused: ibforecast fit 'my load.csv' --horizon 1500" in text
    code, document = call("--json", "--horizon", "12")
    assert (code, json.loads(document)["horizon"]) == (0, 12)


def test_the_printed_fit_has_every_option_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ibforecast.cli.fit import command

    monkeypatch.chdir(tmp_path)
    table = hourly(**{"wind [kW]": np.arange(2000) % 7.3, "plan": np.arange(2000) % 5.1, "visits": np.arange(2000) % 9})
    table["still"] = 1.0
    table.rename(columns={"time": "at"}).to_csv("my load.csv", index=False)
    given = (
        *("--horizon", "12", "--look-back", "72", "--budget", "0.1", "--cycle", "24,168", "--patch-len", "1"),
        *("--time", "at", "--past", "wind [kW]", "--future", "plan", "--id", "site", "--target", "kwh", "--freq", "1h"),
        *("--dates", "s", "--zone", "UTC", "--irregular", "fill", "--missing-value", "-9999"),
        *("--missing-value", "-99.5", "--limit", "visits=0..", "--limit", "load=..", "--whole", "visits"),
        *("--split", "0.6,0.2,0.2", "--choosing", "--recipe", "choosing", "--loss", "mae", "--epochs", "3"),
        *("--seed", "0", "--device", "cpu"),
    )
    with pytest.raises(SystemExit) as stop:
        run(["check", "my load.csv", *given])
    printed = capsys.readouterr().out
    assert stop.value.code == 0, printed
    words = shlex.split(printed.rpartition("next: ")[2])
    assert words[:2] == ["ibforecast", "fit"]
    wanted = command.make_context("fit", ["my load.csv", *given, "--out", "model", "--channels", "load,visits"])
    assert command.make_context("fit", words[2:]).params == wanted.params  # advice leaves out the channel "still"
    assert "if values below 0 are possible" not in printed
    assert "--limit visits=0.. keeps" not in printed


def test_limits_are_advised_only_for_channels_that_are_forecast_without() -> None:
    counts = np.random.default_rng(3).poisson(0.5, 2000)
    table = hourly(sales=counts, visits=counts + 5)
    assert {each.finding.split()[0] for each in look(table).advice if each.topic == "counts"} == {"counts,", "only"}
    assert "counts" not in topics(look(table, limits={"sales": (0, None), "visits": (0, None)}))
    assert "counts" not in topics(look(table, limits=(0, None)))
    assert "counts" not in topics(look(table, past=["sales", "visits"]))


def test_a_stuck_sensor_is_named_with_the_times_of_its_longest_run() -> None:
    random, hour = np.random.default_rng(4), np.arange(2000)
    stuck = random.normal(20, 3, 2000).round(2)
    stuck[700:1100], stuck[1500:1700] = 49.2, 49.2
    advice = topics(look(hourly(sensor=stuck)))["stuck values"]
    assert "sensor is 49.2 in 400 rows in a row, 2024-01-30 04:00 to 2024-02-15 19:00, and 1 more such run" in advice
    sun = np.where((hour % 24 > 6) & (hour % 24 < 18), random.uniform(1, 5, 2000), 0.0)
    sales = random.poisson(2, 2000)
    sales[700:1100] = 0  # a shop that is closed
    tariff = np.repeat(random.uniform(10, 20, 10), 200)  # every run is as long
    assert "stuck values" not in topics(look(hourly(sun=sun, sales=sales, tariff=tariff)))
    sun[700:1100] = 0.0  # far longer than a night
    assert "sun is 0 in" in topics(look(hourly(sun=sun)))["stuck values"]


def test_a_measurement_that_is_often_zero_and_never_below_gets_advice_but_no_option() -> None:
    hour = np.arange(2000)
    sun = np.where(hour % 24 < 12, np.random.default_rng(5).uniform(0.5, 4, 2000), 0.0)
    findings = look(hourly(**{"WR 1 [kW]": sun}))
    assert "if values below 0 are impossible: --limit 'WR 1 [kW]=0..'" in topics(findings)["limits"]
    assert not [option for option in findings.options if option.startswith("--limit")]
    assert "limits" not in topics(look(hourly(**{"WR 1 [kW]": sun}), limits={"WR 1 [kW]": (0, None)}))
    assert "limits" not in topics(look(hourly(sun=sun - 0.001)))


def test_a_largest_value_that_is_reached_often_gets_a_limit_to_consider_but_no_option() -> None:
    random, hour = np.random.default_rng(6), np.arange(2000)
    cloudless = np.maximum(0, 60 * np.sin(2 * np.pi * (hour % 24 - 6) / 24)) * random.uniform(0.7, 1.2, 2000)
    humidity = np.minimum(100, 80 + 15 * np.cos(2 * np.pi * hour / 24) + random.normal(0, 8, 2000)).round()
    bicycles = np.minimum(30, random.poisson(24, 2000))
    table = hourly(**{"WR 1 [kW]": np.minimum(cloudless, 49.5), "humidity": humidity, "bicycles": bicycles})
    findings = look(table)
    limits = {
        each.finding.split(" is at")[0]: each.remedy for each in findings.advice if "largest value" in each.finding
    }
    assert limits == {
        "WR 1 [kW]": "if higher values are impossible: --limit 'WR 1 [kW]=0..49.5'",
        "humidity": "if higher values are impossible: --limit humidity=0..100",
        "bicycles": "if higher values are impossible: --limit bicycles=0..30",
    }
    assert not [option for option in findings.options if option.startswith("--limit")]
    given = look(table, limits={"WR 1 [kW]": (0, 49.5), "humidity": (0, 100), "bicycles": (0, 30)})
    assert not [each for each in given.advice if each.topic == "limits"]


def test_a_largest_value_of_a_distribution_that_thins_out_is_no_limit() -> None:
    random, hour = np.random.default_rng(7), np.arange(2000)
    stuck = random.normal(20, 3, 2000).round(2)
    stuck[700:1100] = 49.2  # one run: a sensor that was stuck
    table = hourly(
        temperature=random.normal(15, 4, 2000).round(),
        calls=random.poisson(3, 2000),
        rain=np.where(random.random(2000) < 0.1, random.exponential(2, 2000), 0.0),
        weekday=hour // 24 % 7.0,
        stuck=stuck,
    )
    assert not [each for each in look(table).advice if "largest value" in each.finding]


def test_a_flag_that_must_be_forecast_gets_its_limits() -> None:
    open_hours = (np.arange(2000) % 24 > 8).astype(float)
    assert topics(look(hourly(shop=open_hours)))["flags"].endswith("; if it must be forecast: --limit shop=0..1")
    assert "--limit" not in topics(look(hourly(shop=open_hours), limits={"shop": (0, 1)}))["flags"]


# --- Rows that are left out ---


def sales(step: str = "h", rows: int = 2000) -> pd.DataFrame:
    """Make counts of a shop that is open by day, with a row only if something was sold."""
    times = pd.date_range("2024-01-01", periods=rows, freq=step)
    mean = np.maximum(0, 5 * np.sin(2 * np.pi * (times.hour + times.minute / 60 - 6) / 24))
    table = pd.DataFrame({"time": times, "sales": np.random.default_rng(7).poisson(mean)})
    return table[table["sales"] > 0]


@pytest.mark.parametrize(("step", "span"), [("h", "00:00..23:00"), ("15min", "00:00..23:45")])
def test_steps_of_counts_that_are_left_out_are_asked_about_and_can_be_read_as_zero(step: str, span: str) -> None:
    findings = look(sales(step))
    advice = topics(findings)
    assert "no row = 0?" in advice["left out"]
    assert f"--zero-at {span} --irregular fill" in advice["left out"]
    assert findings.options == ("--irregular fill", f"--zero-at {span}")
    assert not {"empty hours", "empty channels"} & set(advice)
    again = look(sales(step), zero_at=[span], irregular="fill")
    assert (again.missing, "left out" in topics(again)) == (0, False)


def test_cells_of_counts_that_are_empty_are_asked_about_as_well() -> None:
    table = sales().set_index("time").asfreq("h").reset_index()
    advice = topics(look(table))["left out"]
    assert "no value = 0?" not in advice  # every cell of such a row is empty
    table["temperature"] = np.random.default_rng(8).normal(size=len(table))
    advice = topics(look(table))["left out"]
    assert "no value = 0?" in advice
    assert "the other channels must be left out: --channels sales" in advice


def test_gaps_of_other_channels_are_not_taken_for_zeros() -> None:
    large = hourly(meter=np.random.default_rng(9).integers(5000, 9000, 2000))[["time", "meter"]]
    assert "left out" not in topics(look(large.drop(index=range(500, 700))))
    with_zeros = sales().set_index("time").asfreq("h").reset_index().fillna(0).drop(index=range(500, 700))
    assert "left out" not in topics(look(with_zeros))
    assert "left out" not in topics(look(hourly().drop(index=range(500, 700))))


def test_counts_of_days_are_to_be_written_as_zeros() -> None:
    table = pd.DataFrame({"time": pd.date_range("2020-01-01", periods=900, freq="D")})
    table["sales"] = np.random.default_rng(7).poisson(1, 900)
    advice = topics(look(table[table["sales"] > 0], horizon=7))["left out"]
    assert "write them into the table as 0" in advice


def test_workdays_are_counted_as_such() -> None:
    table = hourly(500)
    table["time"] = pd.bdate_range("2022-01-03", periods=500)
    findings = look(table, horizon=5)
    assert (findings.options, findings.missing) == (("--freq B",), 0)
    findings = look(table.drop(index=[77, 200]), horizon=5)
    assert (findings.options, findings.missing) == (("--freq B", "--irregular fill"), 2)


def test_rows_of_the_same_hours_of_every_day_are_counted_and_all_advice_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = hourly()
    trading = table[table["time"].dt.hour.between(9, 17)]
    findings = look(trading)
    assert findings.options == ("--irregular by_row", "--cycle 9")
    assert (findings.cycle, findings.missing, "empty hours" in topics(findings)) == ((9,), 0, False)
    findings = look(trading.drop(index=trading.index[50:53]))  # counted, later rows would be at other phases
    assert findings.options == ("--irregular fill",)
    assert "by_row" not in str(findings)
    trading.to_csv(tmp_path / "trading.csv", index=False)
    with pytest.raises(SystemExit):
        run(["check", str(tmp_path / "trading.csv")])
    assert capsys.readouterr().out.endswith("--horizon 9 --irregular by_row --cycle 9 --out model\n")


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0.0},
        {"horizon": 0},
        {"limits": {"lod": (0, None)}},
        {"whole": ["lod"]},
        {"recipe": "none"},
        {"patch_len": 7},
    ],
)
def test_settings_that_a_fit_refuses_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        look(hourly(), **wrong)
    with pytest.raises(UsageError) as refused_by_fit:
        IBForecaster(**{"horizon": 24} | wrong).fit(hourly())
    assert str(refused.value) == str(refused_by_fit.value)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_a_table_whose_clock_changes_gets_a_zone(zone: str) -> None:
    table = hourly()
    table["time"] = pd.date_range("2023-10-01", periods=2000, freq="h", tz=zone).tz_localize(None)
    findings = look(table)
    assert (findings.options, findings.missing, findings.rows) == ((f"--zone {zone}",), 0, 2000)
