"""Receipts and drivers in the live explorer, next to those of reports."""

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.core.comparison import compare
from ibforecast.core.receipt import UNREAD

MOMENT = "2023-01-15 11:00"
READY = "#receipt-table:not([hidden])"
WHATIFS = "performance.getEntriesByName('what-if').length"


@pytest.fixture(scope="module")
def own(desk: Any) -> Callable[[str], ExplainedForecast]:
    tables = {"sealed": "town", "dial": "town"}

    def explain(name: str) -> ExplainedForecast:
        return IBForecaster.load(desk.model(name)).explain(desk.table(tables.get(name, name)), MOMENT)

    return explain


def click_step(page: Any, explained: ExplainedForecast, channel: str, step: int) -> None:
    """Click a step of the picture, counted from the start of the look-back."""
    chart = page.locator(f".row[data-channel={channel}] .u-over")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    across = (step + 0.5) / len(explained.times)
    page.mouse.click(box["x"] + across * box["width"], box["y"] + box["height"] / 2)


def amounts(page: Any, table: str = "#receipt-table") -> list[Decimal]:
    printed = page.locator(f"{table} td:nth-of-type(1)").all_inner_texts()
    return [Decimal(text.replace("−", "-")) for text in printed]


def whatif(page: Any, act: Callable[[], Any]) -> str:
    """Act, and return the outcome once another what-if is shown."""
    shown = page.evaluate(WHATIFS)
    act()
    page.wait_for_function(f"shown => {WHATIFS} > shown", arg=shown)
    return str(page.locator("#outcome").inner_text())


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("model", ["town", "sealed", "driven"])
def test_a_click_on_a_step_of_the_live_page_shows_its_receipt(
    view: Any, place: Any, own: Any, model: str, width: int
) -> None:
    page, explained = view(place.at(model=model), width=width, ready=READY), own(model)
    assert page.locator("#words").inner_text().split() == explained.in_words().split()
    for channel in (name for name in explained.channels if name not in explained.past):
        for step in (1, explained.horizon):
            click_step(page, explained, channel, explained.look_back + step - 1)
            assert page.locator("#receipt-channel").input_value() == channel
            assert page.locator("#receipt-step").input_value() == explained.times[explained.look_back + step - 1]
            *parts, forecast = amounts(page)
            assert sum(parts) == forecast
            expected = explained.itemised(channel, step)
            decimals = -forecast.as_tuple().exponent
            assert float(forecast) == pytest.approx(expected.forecast, abs=10.0**-decimals)
            assert float(parts[0]) == pytest.approx(expected.calendar, abs=10.0**-decimals)
            known = page.locator("#receipt-table tr", has_text="known ahead")
            assert known.locator("th").all_text_contents() == [f"{name} known ahead" for name in explained.covariates]
            added = [text.replace("−", "-") for text in known.locator("td:nth-of-type(1)").all_inner_texts()]
            assert [float(text) for text in added] == pytest.approx(expected.known, abs=10.0**-decimals)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_words_and_picture_of_the_live_page_are_those_of_a_report(
    view: Any, place: Any, own: Any, tmp_path: Path
) -> None:
    explained = own("town")
    live = view(place.at(), ready=READY)
    report = view(explained.plot(tmp_path / "why.html").as_uri(), ready=READY)
    for part in ("#words", "#legend", "#receipt-table", "#receipt-step", "#receipt-channel", "#numbers-channel"):
        assert live.locator(part).inner_text() == report.locator(part).inner_text(), part
    assert live.locator("#words").inner_text().split() == explained.in_words().split()
    assert "calendar" in live.locator("#legend").inner_text()


def test_a_click_on_a_read_place_shows_what_it_adds_and_turns_no_gate(view: Any, place: Any, own: Any) -> None:
    page, explained = view(place.at(), ready=READY), own("town")
    patch, column = np.argwhere(explained.mask)[0].tolist()
    name = explained.channels[column]
    page.select_option("#receipt-channel", name)
    click_step(page, explained, name, explained.steps(patch).start + 1)
    page.wait_for_selector("#receipt-place:not([hidden])")
    shown = [float(amount) for amount in amounts(page, "#receipt-place")]
    added = [explained.itemised(name, step).read[0] for step in ("mean", *range(1, explained.horizon + 1))]
    assert shown == pytest.approx(added, abs=6e-3 * max(map(abs, added)))
    assert page.locator("body.with-whatif").count() == 0
    outcome = whatif(page, lambda: page.get_by_role("button", name="Close this gate").click())
    assert "The forecast moved" in outcome


def test_a_token_and_the_map_say_what_a_place_adds_to_the_number_that_is_itemised(
    view: Any, place: Any, own: Any, tmp_path: Path
) -> None:
    explained = own("town")
    patch, column = np.argwhere(explained.mask)[0].tolist()
    name, when = explained.channels[column], explained.times[explained.look_back + 2]
    for url in (place.at(), explained.plot(tmp_path / "why.html").as_uri()):
        page = view(url, ready=READY)
        click_step(page, explained, name, explained.steps(patch).start + 1)
        for channel in ("load", "heat"):
            page.select_option("#receipt-channel", channel)
            for option, forecast in ((0, f"mean forecast of {channel}"), (3, f"forecast of {channel} for {when}")):
                page.locator("#receipt-step").select_option(index=option)
                cell = page.locator("#gates .grid-row").nth(column).locator("[role=gridcell]").nth(patch)
                for text in (page.locator("#token p").inner_text(), cell.get_attribute("aria-label")):
                    assert f" to the {forecast}" in text
                    assert text.count("adds") == 1
                added = explained.itemised(channel, option or "mean").read[0]
                stated = re.search(r"adds (\S+) to", page.locator("#token p").inner_text())
                assert stated is not None
                assert float(stated[1].replace("−", "-")) == pytest.approx(added, rel=1e-3)


def test_colours_follow_the_receipt_that_is_shown(view: Any, place: Any) -> None:
    page = view(place.at(), ready=READY)
    for name in ("load", "heat"):
        page.select_option("#receipt-channel", name)
        assert f"read, raises {name}" in page.locator("#legend").inner_text()


def test_in_a_what_if_the_receipt_says_that_it_is_of_the_models_own_forecast(view: Any, place: Any) -> None:
    page = view(place.at(), ready=READY)
    notes, before = page.locator("#receipt-notes"), amounts(page)
    assert "own forecast" not in notes.inner_text()
    whatif(page, lambda: page.locator("#gates .cell.open").first.click())
    assert "Of the model's own forecast, not of the what-if." in notes.inner_text()
    assert amounts(page) == before
    assert page.locator("#words-note").is_visible()
    page.click("#reset")
    page.wait_for_selector(".badge.verified")
    assert "own forecast" not in notes.inner_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_no_words_are_out_of_reach_in_a_what_if(view: Any, place: Any, width: int) -> None:
    page = view(place.at(model="driven"), width=width, ready=READY)
    whatif(page, lambda: page.locator("#gates .cell.open").first.click())
    if page.locator("#words-more").is_visible():
        page.click("#words-more")
    hidden = page.locator("#words").evaluate("words => words.scrollHeight - words.clientHeight")
    assert hidden <= 1
    assert page.locator("#words").evaluate("words => words.clientHeight % 20") == 0  # whole lines


def test_a_what_if_does_not_contradict_itself(view: Any, place: Any) -> None:
    page = view(place.at(), ready=READY)
    turned = whatif(page, lambda: page.locator("#gates .cell.open").first.click())
    assert "The forecast moved in" in turned
    both = whatif(page, lambda: page.click("#scramble"))
    assert "that moved not one bit. The other changes moved the forecast in" in both
    assert "of the forecast moved" not in both
    page.click("#reset")
    page.wait_for_selector(".badge.verified")
    only = whatif(page, lambda: page.click("#scramble"))
    assert "not one bit of the forecast moved." in only
    assert "changes moved" not in only


def test_receipts_are_requested_after_the_picture_and_those_of_a_left_moment_are_dropped(view: Any, place: Any) -> None:
    page = view(place.at(), ready=READY)
    held: list[Any] = []
    page.route("**/receipts?form=page", lambda route: held.append(route))
    page.click("#forth")
    page.wait_for_selector(".badge.verified")
    page.wait_for_function("() => document.querySelector('#words').textContent.includes('Adding up')")
    assert "made at 2023-01-15 12:00" in page.locator("#words").inner_text()
    with page.expect_event("requestfailed", lambda sent: "receipts" in sent.url):
        page.click("#back")
    while len(held) < 2:
        page.wait_for_timeout(10)
    held[1].continue_()
    page.wait_for_function("words => document.querySelector('#words').textContent.includes(words)", arg="calendar")
    assert f"made at {MOMENT}" in page.locator("#words").inner_text()


def test_refused_receipts_are_reported_once_and_the_picture_stays(view: Any, place: Any) -> None:
    page = view(place.at(), ready=READY)
    requests: list[Any] = []
    refused = {"version": 1, "error": "too large", "hint": "name fewer", "field": "channel"}

    def refuse(route: Any) -> None:
        requests.append(route)
        route.fulfill(status=413, json=refused)

    page.route("**/receipts?form=page", refuse)
    page.click("#forth")
    page.wait_for_selector("#alert:not([hidden])")
    page.wait_for_selector(".badge.verified")
    page.wait_for_timeout(300)
    assert len(requests) == 1
    assert "It read" in page.locator("#words").inner_text()
    page.troubles.clear()  # the browser itself logs the refusal


def test_of_fifty_channels_receipts_are_requested_at_the_first_click(view: Any, place: Any, own: Any) -> None:
    page, explained = view(place.at(model="fifty")), own("fifty")
    requests: list[str] = []
    page.on("request", lambda sent: requests.append(sent.url) if "receipts" in sent.url else None)
    assert page.locator("#receipt-table").is_hidden()
    assert "Click a step" in page.locator("#receipt-notes").text_content()
    click_step(page, explained, "meter_02", explained.look_back + 3)
    page.wait_for_selector(READY)
    *parts, forecast = amounts(page)
    assert sum(parts) == forecast
    assert float(forecast) == pytest.approx(explained.itemised("meter_02", 4).forecast, rel=0.01)
    page.click("#forth")
    page.wait_for_selector(".badge.verified")
    assert len(requests) == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_a_forecast_is_compared_with_that_of_the_day_before_or_of_a_chosen_moment(
    view: Any, place: Any, desk: Any, width: int
) -> None:
    page, model = view(place.at(), width=width, ready=READY), IBForecaster.load(desk.model("town"))
    page.select_option("#receipt-channel", "wind")
    page.click("#compare summary")
    today = model.explain(desk.table("town"), MOMENT)
    for other, choose in (("2023-01-14 11:00", None), ("2023-01-11 05:00", "2023-01-11T05:00")):
        if choose:
            page.fill("#compare-at", choose)
            page.dispatch_event("#compare-at", "change")
        expected = compare(today, model.explain(desk.table("town"), other), "wind")
        page.wait_for_function(
            "words => document.querySelector('#compare-words').textContent === words",
            arg=expected.in_words().splitlines()[0],
        )
        assert page.locator("#compare-at").input_value() == other.replace(" ", "T")
        before, *changes, after = amounts(page, "#compare-table")
        assert before + sum(changes) == after
        assert list(map(float, changes)) == [reason.change for reason in expected.reasons()]
    click_step(page, today, "wind", today.look_back + 2)
    page.wait_for_function("() => document.querySelector('#compare-words').textContent.startsWith('Step 3 of')")
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_first_moment_says_that_there_is_no_earlier_forecast(view: Any, place: Any) -> None:
    page = view(place.at("2023-01-02 23:00"), ready=READY)
    page.click("#compare summary")
    page.wait_for_function("() => document.querySelector('#compare-words').textContent.includes('rows before it')")
    assert page.locator("#compare-table").is_hidden()
    assert page.locator("#alert").is_hidden()
    page.troubles.clear()  # the browser itself logs the refusal


def test_the_whole_table_shows_what_moves_each_channel(view: Any, place: Any) -> None:
    page = view(place.at(), ready=READY)
    page.click("#tab-table")
    page.wait_for_selector("#sources tbody tr")
    drivers = httpx.get(f"{place.url}/tables/{place.tables['town']}/drivers?model=town&windows=32").json()
    for channel in ("load", "heat"):
        page.select_option("#drivers-channel", channel)
        page.wait_for_function(
            "name => document.querySelector('#drivers-words').textContent.includes(`of ${name},`)", arg=channel
        )
        rows = [row for row in drivers["rows"] if row["channel"] == channel]
        sources = [source for source in drivers["sources"] if source["channel"] == channel and source["size"]]
        listed = page.locator("#sources tbody tr")
        names = {channel: "its own past", UNREAD: "not read"}
        assert listed.locator("th").all_inner_texts() == [names.get(one["source"], one["source"]) for one in sources]
        shares = [f"{100 * one['share']:.3g} %" for one in sources]
        assert listed.locator("td:nth-of-type(1)").all_inner_texts() == shares
        assert f"{shares[[one['source'] for one in sources].index(channel)]} of what moves {channel}" in (
            page.locator("#drivers-words").inner_text()
        )
        newest = page.locator("#lags .grid-row").first.locator(".cell").last.get_attribute("aria-label")
        first = sources[0]["source"]
        share = next(row["share"] for row in rows if (row["source"], row["steps_back"]) == (first, 0))
        assert newest.startswith(f"{first}, at the newest step: {100 * share:.3g} %")
    assert page.locator("#groups-part").is_hidden()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_shows_when_each_source_moves_a_channel(view: Any, place: Any, width: int) -> None:
    page = view(place.at(tab="table"), ready="#sources tbody tr", width=width)
    url = f"{place.url}/tables/{place.tables['town']}/drivers?model=town&windows=32"
    for by, columns in (("weekday", 7), ("hour", 24), ("event", 2)):
        page.select_option("#drivers-by", by)
        page.wait_for_function(
            "by => !document.querySelector('#groups-part').hidden && "
            "document.querySelector('#groups-title').textContent === `By ${by}`",
            arg=by,
        )
        answer, channel = httpx.get(f"{url}&by={by}").json(), page.locator("#drivers-channel").input_value()
        words = page.locator("#groups-words").inner_text()
        assert "; ".join(answer["watch"][channel]) in words
        assert ("furthest from the calendar" in words) == (by == "event")
        first = next(one["source"] for one in answer["sources"] if one["channel"] == channel)
        rows = [row for row in answer["groups"] if (row["channel"], row["source"]) == (channel, first)]
        cells = page.locator("#groups .grid-row").first.locator(".cell")
        assert cells.count() == len(rows) == columns
        for cell, row in zip(cells.all(), rows, strict=True):
            label = cell.get_attribute("aria-label")
            assert label.startswith(f"{first}, {row['group']}: ")
            assert f"{100 * row['share']:.3g} % of what all sources add, on {row['windows']} window" in label
            assert float(label.split(": ")[1].split(",")[0]) == pytest.approx(row["size"], rel=1e-3)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.select_option("#drivers-by", "")
    page.wait_for_selector("#groups-part", state="hidden")


def test_windows_of_one_month_are_not_grouped_by_month(view: Any, place: Any) -> None:
    page = view(place.at(tab="table"), ready="#sources tbody tr")
    page.select_option("#drivers-by", "month")
    page.wait_for_selector("#alert:not([hidden])")
    assert "at least two groups by month" in page.locator("#alert").inner_text()
    assert page.locator("#groups-part").is_hidden()
    page.troubles.clear()  # the browser itself logs the refusal


def test_drivers_of_a_model_with_covariates_name_what_is_known_ahead(view: Any, place: Any) -> None:
    page = view(place.at(model="driven", tab="table"), ready="#sources tbody tr", width=390)
    assert page.locator("#drivers-channel option").all_inner_texts() == ["load"]
    assert "known ahead" in page.locator("#sources").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
