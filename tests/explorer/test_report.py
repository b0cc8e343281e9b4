"""Reports as files: their content, and invalid requests."""

import re
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ibforecast import IBForecaster
from ibforecast.core.comparison import compare
from ibforecast.core.errors import DataError, UsageError, VerificationError
from ibforecast.core.verdict import Check, Verification
from ibforecast.plots.page import EXPLORER
from ibforecast.report import to_html
from ibforecast.use import Desk


@pytest.fixture(scope="module")
def town(desk: Any) -> IBForecaster:
    return IBForecaster.load(desk.model("town"))


def test_a_report_refers_to_no_other_file(town: IBForecaster, desk: Any) -> None:
    page = to_html(town, desk.table("town"), [None], "town", "town.csv").decode()
    assert not re.findall(r'(?:src|href)="(?!data:)[^"]*"', page)
    assert 'from "./' not in page
    assert "default-src 'none'" in page


def test_the_explanations_of_a_report_are_compared_with_its_table(town: IBForecaster, desk: Any) -> None:
    page = to_html(town, desk.table("town"), [None], "town", "town.csv").decode()
    assert "history, times, truth and what was known ahead are the table's own" in page


def test_moments_are_sorted_and_unique(town: IBForecaster, desk: Any) -> None:
    moments = ["2023-01-10 11:00", "2023-01-09 11:00", "2023-01-10 11:00"]
    page = to_html(town, desk.table("town"), moments, "town", "town.csv").decode()
    assert re.findall(r'{"at": "([^"]+)"', page) == ["2023-01-09 11:00", "2023-01-10 11:00"]


def test_a_name_that_looks_like_a_tag_is_escaped(town: IBForecaster, desk: Any) -> None:
    page = to_html(town, desk.table("town"), [None], "</script><b>", "<!--").decode()
    assert "</script><b>" not in page
    assert page.count("</script>") == 2


def test_an_explanation_that_fails_a_check_is_refused(
    town: IBForecaster, desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Verification((Check("replay", False, "differs"),))
    monkeypatch.setattr(Desk, "verify", lambda *_, **__: failed)
    with pytest.raises(VerificationError, match="differs"):
        to_html(town, desk.table("town"), [None], "town", "town.csv")


def test_a_report_needs_moments_of_the_table(town: IBForecaster, desk: Any) -> None:
    with pytest.raises(UsageError, match="at least one moment"):
        to_html(town, desk.table("town"), [], "town", "town.csv")
    with pytest.raises(DataError, match="must be a time of the table"):
        to_html(town, desk.table("town"), ["2031-01-01 00:00"], "town", "town.csv")


def test_the_command_writes_only_html(desk: Any, cli: Callable[..., int], tmp_path: Path) -> None:
    model, table, out = desk.model("town"), desk.table("town"), tmp_path / "report.html"
    assert cli("report", model, table, "--out", out) == 0
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert cli("report", model, table, "--out", tmp_path / "report.pdf") == 2
    assert list(tmp_path.iterdir()) == [out]


def test_the_page_refers_to_every_other_file_of_the_explorer() -> None:
    page = (EXPLORER / "index.html").read_text("utf8")
    for path in EXPLORER.iterdir():
        assert path.name in page or path.name == "index.html"


def test_a_click_on_a_step_shows_a_receipt_that_adds_up_and_a_place_its_amounts(
    town: IBForecaster, desk: Any, view: Any, tmp_path: Path
) -> None:
    explanation = town.explain(desk.table("town"))
    page = view(explanation.plot(tmp_path / "why.html").as_uri(), width=390)
    channel, ahead = explanation.channels[0], explanation.times[explanation.look_back :]
    chart = page.locator(f".row[data-channel={channel}] .u-over")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    last = (len(explanation.times) - 0.5) / len(explanation.times)
    page.mouse.click(box["x"] + last * box["width"], box["y"] + box["height"] / 2)
    assert page.locator("#receipt-channel").input_value() == channel
    assert page.locator("#receipt-step").input_value() == ahead[-1]
    printed = page.locator("#receipt-table td:nth-of-type(1)").all_inner_texts()
    *amounts, forecast = (Decimal(text.replace("−", "-")) for text in printed)
    assert sum(amounts) == forecast
    assert float(forecast) == pytest.approx(explanation.itemised(channel, len(ahead)).forecast, rel=0.01)
    page.locator("#receipt-table button").first.click()
    assert page.locator("#receipt-place tr").count() == 1 + len(ahead)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_each_forecast_of_a_report_is_compared_with_the_one_before_it(
    town: IBForecaster, desk: Any, view: Any, tmp_path: Path
) -> None:
    moments = ["2023-01-10 11:00", "2023-01-12 11:00"]
    out = tmp_path / "report.html"
    out.write_bytes(to_html(town, desk.table("town"), moments, "town", "town.csv", drivers=2))
    page = view(out.as_uri(), width=390, ready="#compare-table:not([hidden])")
    explained = {at: town.explain(desk.table("town"), at) for at in ("2023-01-09 11:00", *moments)}
    for earlier, later in reversed(list(pairwise(explained))):  # the newest is shown first
        channel = page.locator("#receipt-channel").input_value()
        expected = compare(explained[later], explained[earlier], channel)
        page.wait_for_function(
            "words => document.querySelector('#compare-words').textContent === words",
            arg=expected.in_words().splitlines()[0],
        )
        printed = page.locator("#compare-table td:nth-of-type(1)").all_inner_texts()
        before, *changes, after = [Decimal(text.replace("−", "-")) for text in printed]
        assert before + sum(changes) == after
        assert [float(change) for change in changes] == [reason.change for reason in expected.reasons()]
        page.click("#back")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_first_moments_of_a_table_have_no_earlier_forecast(town: IBForecaster, desk: Any) -> None:
    page = to_html(town, desk.table("town"), ["2023-01-02 23:00"], "town", "town.csv", drivers=0).decode()
    assert '"comparisons": []' in page


def test_a_report_shows_what_moves_each_channel(town: IBForecaster, desk: Any, view: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_bytes(to_html(town, desk.table("town"), [None], "town", "town.csv", drivers=3))
    page = view(out.as_uri(), ready="#receipt-table:not([hidden])")
    page.click("#tab-table")
    page.wait_for_selector("#sources tbody tr")
    assert "on 3 windows" in page.locator("#drivers-words").inner_text()
    sources = list(town.drivers(desk.table("town"), "all", 3, "load").sources())
    page.select_option("#drivers-channel", "load")
    first = page.locator("#sources tbody tr").first
    assert first.locator("th").inner_text() == ("its own past" if sources[0].source == "load" else sources[0].source)
    assert first.locator("td").first.inner_text() == f"{100 * sources[0].share:.3g} %"
    assert page.locator("#errors").is_hidden()


def test_a_report_shows_what_moves_each_channel_in_events(
    town: IBForecaster, desk: Any, view: Any, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    out.write_bytes(to_html(town, desk.table("town"), [None], "town", "town.csv", drivers=12))
    page = view(out.as_uri(), ready="#receipt-table:not([hidden])", width=390)
    page.click("#tab-table")
    page.wait_for_selector("#groups .cell")
    page.select_option("#drivers-channel", "heat")
    grouped = town.drivers(desk.table("town"), "all", 12, "heat").by("event")
    words = page.locator("#groups-words").inner_text()
    assert words.startswith("Events are the tenth of the windows in which the forecast of heat is furthest")
    assert "; ".join(grouped.watch("heat")) in words
    assert page.locator("#groups-heads span").all_inner_texts() == ["", "event", "other"]
    assert page.locator("#drivers-by").is_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_report_of_one_window_has_no_events(town: IBForecaster, desk: Any, view: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_bytes(to_html(town, desk.table("town"), [None], "town", "town.csv", drivers=1))
    page = view(out.as_uri(), ready="#receipt-table:not([hidden])")
    page.click("#tab-table")
    page.wait_for_selector("#sources tbody tr")
    assert page.locator("#groups-part").is_hidden()


def test_drivers_can_be_left_out_of_a_report(town: IBForecaster, desk: Any, view: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_bytes(to_html(town, desk.table("town"), [None], "town", "town.csv", drivers=0))
    assert view(out.as_uri(), ready="#receipt-table:not([hidden])").locator("#tabs").is_hidden()
    with pytest.raises(UsageError, match="number of windows"):
        to_html(town, desk.table("town"), [None], "town", "town.csv", drivers=-1)
