"""ibforecast drivers and ibforecast compare: what moves a channel, and why two forecasts differ."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ibforecast import IBForecaster
from ibforecast.core.comparison import compare

Call = Callable[..., Any]
AT, EARLIER = "2023-01-12 10:00", "2023-01-11 10:00"


def test_drivers_are_printed_in_words_and_written_as_a_table_and_a_picture(
    desk: Any, call: Call, tmp_path: Path
) -> None:
    out, plot = tmp_path / "drivers.csv", tmp_path / "drivers.png"
    outcome = call("drivers", desk.model, desk.table, "--windows", 3, "--out", out, "--plot", plot)
    drivers = IBForecaster.load(desk.model).drivers(desk.table, windows=3)
    assert (outcome.code, outcome.out.rstrip()) == (0, drivers.in_words())
    assert outcome.err.splitlines() == [f"drivers written to {out}", f"picture drawn at {plot}"]
    assert len(pd.read_csv(out)) == len(drivers.rows)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_drivers_of_one_channel_are_one_document(desk: Any, call: Call) -> None:
    words = ("--split", "all", "--windows", 2, "--channel", "wind", "--json")
    outcome = call("drivers", desk.model, desk.table, *words)
    assert (outcome.code, outcome.err) == (0, "")
    document = outcome.document
    assert (document["split"], document["windows"]) == ("all", 2)
    assert {row["channel"] for row in document["drivers"]} == {"wind"}
    assert sum(row["share"] for row in document["drivers"]) == pytest.approx(1)
    sources = IBForecaster.load(desk.model).drivers(desk.table, "all", 2, "wind").sources()
    assert document["sources"] == [vars(source) for source in sources]


def test_drivers_are_grouped_by_the_clock_or_by_event(desk: Any, call: Call, tmp_path: Path) -> None:
    out, plot, words = tmp_path / "by.csv", tmp_path / "by.png", ("--split", "all", "--windows", 12)
    outcome = call("drivers", desk.model, desk.table, *words, "--by", "weekday", "--out", out, "--plot", plot)
    grouped = IBForecaster.load(desk.model).drivers(desk.table, "all", 12, by="weekday").by("weekday")
    assert (outcome.code, outcome.out.rstrip()) == (0, grouped.in_words())
    assert (
        pd.read_csv(out)["group"].unique().tolist()
        == [row.group for row in grouped.rows[:: len(grouped.of("load"))]][:7]
    )
    assert plot.read_bytes().startswith(b"\x89PNG")
    document = call("drivers", desk.model, desk.table, *words, "--by", "event", "--json").document
    assert {source["channel"] for source in document["sources"]} == {"load", "wind", "heat"}
    assert (document["by"], {row["group"] for row in document["drivers"]}) == ("event", {"event", "other"})


@pytest.mark.parametrize(("option", "name"), [("--out", "drivers.xlsx"), ("--plot", "drivers.pdf")])
def test_a_file_of_another_format_is_refused_before_any_work(
    desk: Any, call: Call, tmp_path: Path, option: str, name: str
) -> None:
    outcome = call("drivers", tmp_path / "no-model", desk.table, option, tmp_path / name)
    assert outcome.code == 2
    assert name in outcome.err


def test_a_comparison_is_printed_in_words(desk: Any, call: Call) -> None:
    outcome = call("compare", desk.model, desk.table, "--at", AT, "--with", EARLIER, "--channel", "load", "--step", 2)
    model = IBForecaster.load(desk.model)
    expected = compare(model.explain(desk.table, AT), model.explain(desk.table, EARLIER), "load", 2)
    assert (outcome.code, outcome.out.rstrip(), outcome.err) == (0, expected.in_words(), "")


def test_a_comparison_as_a_document_has_every_change(desk: Any, call: Call) -> None:
    outcome = call("compare", desk.model, desk.table, "--with", EARLIER, "--channel", "load", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    document = outcome.document
    difference = document["after"]["forecast"] - document["before"]["forecast"]
    assert sum(change["change"] for change in document["changes"]) == pytest.approx(difference)
    assert document["made_before"] == EARLIER
    assert document["before"]["step"] == "mean"


def test_a_comparison_needs_a_channel_if_several_are_forecast(desk: Any, call: Call) -> None:
    outcome = call("compare", desk.model, desk.table, "--at", AT, "--with", EARLIER)
    assert outcome.code == 2
    assert "a comparison is of one channel (got 3 channels that are forecast)" in outcome.err
    assert "try --channel load" in outcome.err


def test_a_step_after_the_horizon_is_refused(desk: Any, call: Call) -> None:
    outcome = call("compare", desk.model, desk.table, "--with", EARLIER, "--channel", "load", "--step", 13)
    assert outcome.code == 2
    assert "a number of steps ahead from 1 to 12 (got 13)" in outcome.err


def test_a_forecast_is_compared_with_that_of_the_day_before_by_default(desk: Any, call: Call) -> None:
    document = call("compare", desk.model, desk.table, "--at", AT, "--channel", "load", "--json").document
    assert (document["made_after"], document["made_before"]) == (AT, EARLIER)
