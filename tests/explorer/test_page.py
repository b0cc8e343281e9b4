"""The explorer in a real browser with a real service."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.data.sources import to_csv
from ibforecast.plots.explanation import draw
from ibforecast.plots.scene import scene_of
from ibforecast.plots.svg import to_svg

HORIZON, LOOK_BACK = 12, 48
MOMENT = "2023-01-15 11:00"
MINUS = "−"
WHATIFS = "performance.getEntriesByName('what-if').length"


def document(place: Any, moment: str = MOMENT, model: str = "town") -> str:
    question = {"model": model, "table": place.tables[model], "at": moment}
    return httpx.post(f"{place.url}/explain?form=document", json=question).text


def numbers(page: Any, channel: str, name: str) -> list[float]:
    """Return a column of the table of numbers."""
    if not page.locator("#numbers").evaluate("element => element.open"):
        page.click("#numbers > summary")
    page.select_option("#numbers-channel", channel)
    head = page.locator("#numbers-table thead th").all_inner_texts()
    cells = page.locator(f"#numbers-table tbody td:nth-child({head.index(name) + 1})").all_inner_texts()
    return [float(cell.replace(MINUS, "-")) for cell in cells]


def replayed(page: Any, act: Callable[[], Any], containing: str = "") -> dict[str, Any]:
    """Act, wait for the request to /replay that contains this text, and return the answer once it is shown."""
    shown = page.evaluate(WHATIFS)

    def is_replay(response: Any) -> bool:
        return response.url.endswith("/replay") and containing in (response.request.post_data or "")

    with page.expect_response(is_replay) as answer:
        act()
    page.wait_for_function(f"shown => {WHATIFS} > shown", arg=shown)
    document: dict[str, Any] = answer.value.json()
    return document


def open_gate(page: Any) -> Any:
    return page.locator("#gates .cell.open").first


def test_a_forecast_is_shown_with_words_open_rate_and_verified_badge(view: Any, place: Any) -> None:
    page, explanation = view(place.at()), json.loads(document(place))
    assert page.locator("#badge-words").inner_text() == "Verified"
    own = IBForecaster.load(place.desk.model("town")).explain(place.desk.table("town"), MOMENT)
    page.wait_for_selector("#receipt-table:not([hidden])")
    assert page.locator("#words").inner_text().split() == own.in_words().split()
    assert f"{explanation['open_count']} of 12 tokens" in page.locator("#rate-read").inner_text()
    assert "budget 25 %" in page.locator("#rate-budget").inner_text()
    assert page.locator("#gates .cell.open").count() == explanation["open_count"]
    assert page.locator("#gates .cell").count() == 12
    assert page.locator(".row canvas").count() == 3
    expected = [row[0] for row in explanation["forecast"]]
    assert numbers(page, "load", "forecast") == pytest.approx(expected, rel=1e-3)


def test_the_badge_is_green_only_after_a_successful_check(view: Any, place: Any) -> None:
    page = view(place.at())
    held: list[Any] = []
    page.route("**/verify", lambda route: held.append(route))
    page.click("#forth")
    page.wait_for_selector(".badge.checking")
    while not held:
        page.wait_for_timeout(10)
    refuted = {
        "version": 1,
        "model": "town",
        "verified": False,
        "checks": [{"name": "replay", "passed": False, "detail": "differs"}],
        "notes": [],
    }
    held[0].fulfill(json=refuted)
    page.wait_for_selector(".badge.refuted")
    assert page.locator("#badge-words").inner_text() == "Not verified"


def test_a_shown_explanation_is_compared_with_its_table_and_notes_are_shown(view: Any, place: Any) -> None:
    page = view(place.at())
    checks = page.locator("#checks")
    assert "are the table's own" in checks.text_content()
    assert "made-up table" not in checks.text_content()
    answer = {"version": 1, "model": "town", "verified": True, "checks": [], "notes": ["signature: not checked"]}
    page.route("**/verify", lambda route: route.fulfill(json=answer))
    page.click("#forth")
    page.wait_for_function("() => document.querySelector('#checks').textContent === 'signature: not checked'")


def test_a_late_check_does_not_apply_to_the_next_document(view: Any, place: Any) -> None:
    page = view(place.at())
    held: list[Any] = []
    page.route("**/verify", lambda route: held.append(route))
    for _ in range(2):
        before = page.locator("#slider").input_value()
        page.click("#forth")
        page.wait_for_function("before => document.querySelector('#slider').value !== before", arg=before)
        page.wait_for_timeout(100)
    while len(held) < 2:
        page.wait_for_timeout(10)
    held[0].continue_()
    page.wait_for_timeout(200)
    assert page.locator(".badge.checking").count() == 1
    held[1].continue_()
    page.wait_for_selector(".badge.verified")


def test_moments_can_be_chosen_by_steps_date_slider_and_play(view: Any, place: Any) -> None:
    page = view(place.at())

    def shows(moment: str) -> None:
        page.wait_for_function(
            "words => document.querySelector('#words').textContent.includes(words)", arg=f"made at {moment}"
        )

    page.click("#forth")
    shows("2023-01-15 12:00")
    page.click("#back")
    shows("2023-01-15 11:00")
    page.fill("#date", "2023-01-12T05:00")
    page.locator("#date").blur()
    shows("2023-01-12 05:00")
    page.locator("#slider").focus()
    page.keyboard.press("ArrowRight")
    shows("2023-01-12 06:00")
    page.click("#play")
    shows("2023-01-12 08:00")
    page.click("#play")
    assert page.locator("#play").get_attribute("aria-pressed") == "false"


def test_a_toggled_gate_shows_the_forecast_that_replay_returned(view: Any, place: Any) -> None:
    page = view(place.at())
    label = open_gate(page).get_attribute("aria-label")
    channel = label.partition(",")[0]
    column = ("load", "wind", "heat").index(channel)
    before = numbers(page, channel, "forecast")
    answer = replayed(page, lambda: open_gate(page).click())
    expected = [row[column] for row in answer["forecast"]]
    assert answer["what_if"]
    assert not answer["same_bits"]
    assert numbers(page, channel, "what-if") == pytest.approx(expected, rel=1e-3)
    assert numbers(page, channel, "forecast") == before
    shift = page.locator("#shifts tbody tr", has_text=channel).inner_text()
    largest = float(re.split(r"\s+", shift)[3].replace(MINUS, "-").replace("+", ""))
    assert largest == pytest.approx(answer["shift"][column]["largest"], rel=1e-3)
    assert page.locator(".badge.verified").count() == 0
    page.click("#reset")
    page.wait_for_selector(".badge.verified")
    assert page.locator("#numbers-table thead th", has_text="what-if").count() == 0


def test_scrambling_closed_tokens_changes_nothing_and_says_so(view: Any, place: Any) -> None:
    page = view(place.at())
    before = numbers(page, "load", "forecast")
    answer = replayed(page, lambda: page.click("#scramble"), containing='"evidence":[{')
    assert answer["same_bits"]
    assert answer["closed_edits"] == 12 - answer["open_count"]
    assert "not one bit of the forecast moved" in page.locator("#outcome").inner_text()
    assert numbers(page, "load", "what-if") == before
    assert page.locator(".row .shift").all_inner_texts() == ["not moved"] * 3


def test_an_edited_value_changes_the_forecast_only_if_its_token_is_open(view: Any, place: Any) -> None:
    page = view(place.at())
    cells = page.locator("#gates .cell")
    is_open = [json.loads(cells.nth(number).get_attribute("aria-selected")) for number in range(12)]
    for number, opened in ((is_open.index(True), True), (is_open.index(False), False)):
        cells.nth(number).focus()
        page.click("#token summary")
        box = page.locator("#token input").first
        box.fill("1234.5")
        answer = replayed(page, lambda box=box: box.press("Tab"))
        assert answer["same_bits"] is not opened
        assert answer["closed_edits"] == int(not opened)
        if not opened:
            assert "moves nothing" in page.locator("#outcome").inner_text()
        page.click("#reset")
        page.wait_for_selector(".badge.verified")
        page.click("#token summary")


def test_a_threshold_opens_more_than_the_budget_and_says_so(view: Any, place: Any) -> None:
    page = view(place.at())
    answer = replayed(page, lambda: page.fill("#threshold", "0"))
    assert answer["open_count"] > answer["allowance"]
    assert "beyond the budget" in page.locator("#rate-budget").inner_text()
    assert "more than the model may read" in page.locator("#outcome").inner_text()


def test_the_budget_dial_is_shown_only_for_models_of_any_budget(view: Any, place: Any) -> None:
    assert not view(place.at()).locator("#dial").is_visible()
    page = view(place.at(model="dial"))
    page.fill("#dial", "0.5")
    page.wait_for_function("() => document.querySelector('#rate-budget').textContent === 'budget 50 %'")
    page.wait_for_selector(".badge.verified")
    assert "budget=0.5" in page.url


def test_a_broken_table_is_refused_with_the_librarys_message(view: Any, place: Any, tmp_path: Path) -> None:
    page = view(place.at())
    broken = tmp_path / "broken.csv"
    broken.write_text("date,load\n2020-01-01,1\n2020-01-02,x\n2020-01-03,3\n")
    page.set_input_files("#file", broken)
    page.wait_for_selector("#alert:not([hidden])")
    assert "(got row 1: 'x'" in page.locator("#alert").inner_text()
    page.troubles.clear()  # the browser itself logs the refusal
    assert page.locator(".row canvas").count() == 3


def test_an_uploaded_table_is_shown(view: Any, place: Any, tmp_path: Path) -> None:
    page = view(place.at())
    mine = tmp_path / "mine.csv"
    mine.write_text("".join(place.desk.table("town").read_text().splitlines(keepends=True)[:200]))
    page.set_input_files("#file", mine)
    page.wait_for_function("() => document.querySelector('#table').selectedOptions[0].textContent === 'mine.csv'")
    page.wait_for_function("() => document.querySelector('#words').textContent.includes('made at 2023-01-08 18:00')")
    page.wait_for_selector(".badge.verified")


def test_exports_are_exact_and_the_json_verifies_from_the_command_line(
    view: Any, place: Any, cli: Any, tmp_path: Path
) -> None:
    page = view(place.at())

    def export(kind: str) -> Path:
        page.click(".menu summary")
        with page.expect_download() as offered:
            page.click(f"[data-export={kind}]")
        path = tmp_path / offered.value.suggested_filename
        offered.value.save_as(path)
        return path

    written = export("json")
    assert written.name == "why-2023-01-15-11-00.json"
    assert written.read_bytes() == document(place).encode()
    assert cli("verify", place.desk.model("town"), written) == 0
    tokens = tmp_path / "tokens.csv"
    model = place.desk.model("town")
    assert cli("explain", model, place.desk.table("town"), "--at", MOMENT, "--tokens", tokens) == 0
    assert export("csv").read_text() == tokens.read_text()
    own = IBForecaster.load(model).explain(place.desk.table("town"), MOMENT)
    assert export("svg").read_text() == to_svg(scene_of(own))
    assert export("png").read_bytes().startswith(b"\x89PNG")


def test_a_link_restores_the_same_view(view: Any, place: Any) -> None:
    page = view(place.at())
    replayed(page, lambda: open_gate(page).click())
    replayed(page, lambda: page.click("#scramble"))
    outcome = page.locator("#outcome").inner_text()
    again = view(page.url, ready="body.with-whatif")
    assert again.url == page.url
    assert again.locator("#outcome").inner_text() == outcome
    assert again.locator("#gates .cell.shut").count() == 1


def test_a_gate_can_be_toggled_with_only_the_keyboard(view: Any, place: Any) -> None:
    page = view(place.at())
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.role") == "gridcell":
            break
    page.keyboard.press("End")
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    label = page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    assert label.startswith("wind, 2023-01-14 00:00 to 2023-01-14 11:00")
    answer = replayed(page, lambda: page.keyboard.press("Enter"))
    explanation = json.loads(document(place))
    assert abs(answer["open_count"] - explanation["open_count"]) == 1
    assert "by hand" in page.evaluate("() => document.activeElement.getAttribute('aria-label')")


def test_every_control_has_an_accessible_name(view: Any, place: Any) -> None:
    page = view(place.at())
    for role in ("button", "combobox", "slider", "tab", "gridcell", "meter", "grid"):
        for part in page.get_by_role(role).all():
            name = (
                part.get_attribute("aria-label") or part.inner_text() or part.evaluate("e => e.labels?.[0]?.innerText")
            )
            assert name, f"a {role} without a name"


@pytest.mark.parametrize("model", ["town", "fifty", "driven", "sealed"])
def test_the_page_fits_a_narrow_screen(view: Any, place: Any, model: str) -> None:
    page = view(place.at(model=model), width=390, height=844)
    for act in (
        lambda: None,
        lambda: replayed(page, lambda: open_gate(page).click()),
        lambda: page.click("#tab-table"),
    ):
        act()
        page.wait_for_timeout(100)
        assert page.evaluate("() => document.documentElement.scrollWidth") == 390
    page.wait_for_selector("#errors canvas")


def test_of_fifty_channels_only_the_visible_ones_are_drawn(view: Any, place: Any) -> None:
    page = view(place.at(model="fifty"))
    assert page.locator(".row").count() == 50
    assert page.locator(".row canvas").count() < 25
    assert page.locator("#gates .grid-row").count() < 30
    page.locator(".row").last.scroll_into_view_if_needed()
    page.locator(".row").last.locator("canvas").wait_for()
    assert page.locator(".row").first.locator("canvas").count() == 0


def test_the_second_tab_shows_the_whole_table(view: Any, place: Any) -> None:
    page = view(place.at())
    page.click("#tab-table")
    page.wait_for_selector("#rates canvas")
    history = httpx.get(f"{place.url}/tables/{place.tables['town']}/history?model=town&windows=256").json()
    label = page.locator("#frequency .cell").first.get_attribute("aria-label")
    assert f"open in {100 * history['open_frequency'][0][0]:.3g} %" in label
    assert "256 windows" in page.locator("#over").inner_text()
    page.locator("#errors .u-over").click()
    page.wait_for_url(lambda url: MOMENT.replace(" ", "+").replace(":", "%3A") not in url)
    page.wait_for_selector("#view-window:not([hidden]) .badge.verified")


def test_dark_mode_follows_the_system_and_can_be_switched(view: Any, place: Any) -> None:
    page = view(place.at(), color_scheme="dark")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.click("#theme")
    light = page.evaluate(paper)
    assert dark != light
    assert page.locator("#theme").get_attribute("aria-label") == "Switch to dark"


def test_the_page_sends_the_token_of_the_service(view: Any, serve: Any) -> None:
    with serve("town", token="a-long-secret") as guarded:
        page = view(guarded.url, ready="#alert:not([hidden])")
        assert "must carry the service's token" in page.locator("#alert").inner_text()
        page.fill("#alert input", "a-long-secret")
        page.click("#alert form button")
        page.wait_for_function("() => document.querySelector('#model').options.length === 1")
        page.wait_for_function(
            "() => document.querySelector('#alert').textContent.includes('No table has the channels')"
        )
        page.troubles.clear()  # the browser itself logs the 401


def test_a_report_opens_from_a_file_and_requests_nothing(view: Any, desk: Any, cli: Any, tmp_path: Path) -> None:
    out, other = tmp_path / "report.html", "2023-01-16 07:00"
    model, table = desk.model("town"), desk.table("town")
    assert cli("report", model, table, "--at", MOMENT, "--at", other, "--out", out) == 0
    requests: list[str] = []
    page = view(out.as_uri())
    page.on("request", lambda request: requests.append(request.url))
    assert page.locator("#badge-words").inner_text() == "Verified when made"
    assert f"made at {other}" in page.locator("#words").inner_text()
    assert not page.locator("#scramble").is_visible()
    assert "ibforecast serve" in page.locator(".note.frozen").inner_text()
    page.click("#back")
    page.wait_for_function(
        "words => document.querySelector('#words').textContent.includes(words)", arg=f"made at {MOMENT}"
    )
    page.click(".menu summary")
    with page.expect_download() as offered:
        page.click("[data-export=json]")
    explained = IBForecaster.load(model).explain(table, MOMENT)
    written = Path(offered.value.path()).read_text()
    assert written == explained.to_json()
    assert ExplainedForecast.from_json(written).sha256 == explained.sha256
    assert [url for url in requests if not url.startswith("blob:")] == []


def test_a_report_shows_covariates_and_channels_without_a_forecast(view: Any, desk: Any, tmp_path: Path) -> None:
    out, table = tmp_path / "report.html", desk.table("fifty")
    past, known = "meter_00", "meter_01"
    model = IBForecaster(HORIZON, LOOK_BACK, recipe=str(desk.folder / "fifty.toml"), past=[past], future=[known])
    channels = ["meter_02", past, known]
    frame = pd.read_csv(table)[["when", *channels]]
    explanation = model.fit(frame).explain(frame, MOMENT)
    explanation.plot(out)
    page = view(out.as_uri())
    assert page.locator(".row").evaluate_all("rows => rows.map((row) => row.dataset.channel)") == [
        *explanation.channels,
        known,
    ]
    assert page.locator(f".row[data-channel={known}] .facts").inner_text() == "known ahead"
    assert "not forecast" in page.locator(f".row[data-channel={past}] .facts").inner_text()
    assert page.locator("#gates .grid-row").count() == 2
    expected = explanation.known[-HORIZON:, 0]
    assert numbers(page, "meter_02", known) == pytest.approx(expected.tolist(), rel=1e-3)
    page.click(".menu summary")
    for kind, content in (("svg", to_svg(scene_of(explanation))), ("csv", to_csv(explanation.to_table()).decode())):
        with page.expect_download() as offered:
            page.evaluate("kind => document.querySelector(`[data-export=${kind}]`).click()", kind)
        assert Path(offered.value.path()).read_text() == content


def test_a_model_with_covariates_is_shown_and_verified(view: Any, place: Any) -> None:
    page, explanation = view(place.at(model="driven")), json.loads(document(place, model="driven"))
    assert page.locator("#badge-words").inner_text() == "Verified"
    assert page.locator(".row").evaluate_all("rows => rows.map((row) => row.dataset.channel)") == [
        "load",
        "wind",
        "price",
    ]
    assert page.locator(".row[data-channel=price] .facts").inner_text() == "known ahead"
    assert "not forecast" in page.locator(".row[data-channel=wind] .facts").inner_text()
    assert page.locator(".row canvas").count() == 3
    assert page.locator("#gates .grid-row").count() == 2
    assert page.locator("#gates .cell.open").count() == explanation["open_count"]
    assert numbers(page, "load", "forecast") == pytest.approx([row[0] for row in explanation["forecast"]], rel=1e-3)
    known = [row[0] for row in explanation["window"]["known"][LOOK_BACK:]]
    assert numbers(page, "load", "price") == pytest.approx(known, rel=1e-3)


def test_a_what_if_with_covariates_shows_what_replay_returned(view: Any, place: Any) -> None:
    page = view(place.at(model="driven"))
    answer = replayed(page, lambda: open_gate(page).click())
    assert answer["what_if"]
    assert [shift["channel"] for shift in answer["shift"]] == ["load"]
    assert numbers(page, "load", "what-if") == pytest.approx([row[0] for row in answer["forecast"]], rel=1e-3)
    assert page.locator("#shifts tbody tr").count() == 1
    page.click("#reset")
    page.wait_for_selector(".badge.verified")
    answer = replayed(page, lambda: page.click("#scramble"), containing='"evidence":[{')
    assert answer["same_bits"]
    assert "not one bit of the forecast moved" in page.locator("#outcome").inner_text()
    page.click("#tab-table")
    page.wait_for_selector("#rates canvas")


def test_a_report_without_a_model_says_that_nothing_was_checked(view: Any, place: Any, tmp_path: Path) -> None:
    draw(ExplainedForecast.from_json(document(place)), tmp_path / "why.html")
    page = view((tmp_path / "why.html").as_uri(), ready="body.has-picture .badge.unknown")
    assert page.locator("#badge-words").inner_text() == "Not checked"


def test_the_page_starts_with_the_newest_forecast_of_the_table_that_was_opened(
    serve: Any, desk: Any, view: Any
) -> None:
    with serve("town", opened=[desk.table("town")]) as running:
        page = view(running.url)
        assert page.input_value("#table") == "town.csv"
        assert page.input_value("#date") == "2023-01-17T15:00"
        assert "at=2023-01-17+15%3A00" in page.evaluate("location.hash")
