"""Sealed models in the explorer: scrambling with nothing held, patches of one step, one mask for all windows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from ibforecast import ExplainedForecast, IBForecaster
from ibforecast.plots.explanation import draw
from ibforecast.report import to_html

MOMENT = "2023-01-15 11:00"
WHATIFS = "performance.getEntriesByName('what-if').length"
BUTTON = "Scramble all unread values"


def document(place: Any, model: str = "sealed") -> str:
    question = {"model": model, "table": place.tables[model], "at": MOMENT}
    return httpx.post(f"{place.url}/explain?form=document", json=question).text


def watched(page: Any) -> list[str]:
    """Return a list that gets the path of every what-if that the page requests."""
    paths: list[str] = []
    names = ("replay", "rerun")
    page.on("request", lambda sent: paths.append(name) if (name := sent.url.rpartition("/")[2]) in names else None)
    return paths


def after(page: Any, act: Callable[[], Any]) -> str:
    """Act, and return the outcome once another what-if is shown."""
    shown = page.evaluate(WHATIFS)
    act()
    page.wait_for_function(f"shown => {WHATIFS} > shown", arg=shown)
    return str(page.locator("#outcome").inner_text())


def test_scrambling_a_sealed_model_holds_nothing_and_changes_nothing(view: Any, place: Any) -> None:
    page = view(place.at(model="sealed"))
    paths, explained = watched(page), json.loads(document(place))
    assert page.locator("#scramble").inner_text() == BUTTON
    with page.expect_response("**/rerun") as sent:
        outcome = after(page, lambda: page.click("#scramble"))
    answer, values = sent.value.json(), json.loads(sent.value.request.post_data)["values"]
    mask, history = explained["explanation"]["mask"], explained["window"]["history"]
    cells = [(step, column) for step in range(len(mask)) for column in range(3) if history[step][column] is not None]
    unread = [(step, column) for step, column in cells if not mask[step][column]]
    assert all(values[step][column] != history[step][column] for step, column in unread)
    assert all(values[step][column] == history[step][column] for step, column in cells if mask[step][column])
    assert answer["same_bits"]
    assert answer["replaced"] == len(unread)
    assert answer["forecast"] == explained["forecast"]
    assert outcome.startswith(f"{len(unread)} unread values replaced by noise, and the whole model run again.")
    assert "Nothing was held, neither the mask nor the context." in outcome
    assert "the same to the last bit" in outcome
    assert page.locator(".row .shift").all_inner_texts() == ["not moved"] * 3
    assert page.locator(".badge.verified").count() == 0
    assert paths == ["rerun"]


def test_scrambling_any_other_model_still_holds_the_context(view: Any, place: Any) -> None:
    page = view(place.at(model="town"))
    paths = watched(page)
    assert page.locator("#scramble").inner_text() == "Scramble closed tokens"
    outcome = after(page, lambda: page.click("#scramble"))
    assert "closed tokens scrambled" in outcome
    assert "held" not in outcome
    assert set(paths) == {"replay"}


def test_a_sealed_model_that_changed_would_be_reported(view: Any, place: Any) -> None:
    page = view(place.at(model="sealed"))

    def forged(route: Any) -> None:
        answer = route.fetch().json()
        route.fulfill(json=answer | {"changed": ["level", "forecast"], "same_bits": False})

    page.route("**/rerun", forged)
    outcome = after(page, lambda: page.click("#scramble"))
    assert "Changed, which must not happen: level, forecast." in outcome
    assert "last bit" not in outcome


def test_turning_a_gate_of_a_sealed_model_ends_its_scramble(view: Any, place: Any) -> None:
    page = view(place.at(model="sealed"))
    after(page, lambda: page.click("#scramble"))
    assert page.locator("#scramble").get_attribute("aria-pressed") == "true"
    paths = watched(page)
    outcome = after(page, lambda: page.locator("#gates .cell.open").first.click())
    assert "The forecast moved" in outcome
    assert page.locator("#scramble").get_attribute("aria-pressed") == "false"
    outcome = after(page, lambda: page.click("#scramble"))
    assert "Nothing was held" in outcome
    assert page.locator("#gates .cell.shut").count() == 0
    assert paths == ["replay", "rerun"]


def test_a_link_restores_the_scramble_of_a_sealed_model(view: Any, place: Any) -> None:
    page = view(place.at(model="sealed"))
    outcome = after(page, lambda: page.click("#scramble"))
    again = view(f"{page.url}&flip=0.0", ready="body.with-whatif")
    assert again.url == page.url
    assert again.locator("#outcome").inner_text() == outcome


@pytest.mark.parametrize("width", [1280, 390])
def test_all_gates_of_one_step_are_visible_at_once(view: Any, place: Any, width: int) -> None:
    page = view(place.at(model="sealed"), width=width)
    assert page.locator("#gates .cell").count() == 96 * 3
    assert page.locator("#gates").evaluate("grid => grid.parentNode.scrollWidth <= grid.parentNode.clientWidth")
    label = page.locator("#gates .cell").last.get_attribute("aria-label")
    assert label.startswith(f"heat, {MOMENT}: open, probability")


def test_the_whole_table_says_that_the_mask_is_fixed(view: Any, place: Any) -> None:
    page, explained = view(place.at(model="sealed")), json.loads(document(place))
    page.click("#tab-table")
    page.wait_for_selector("#errors canvas")
    words = page.locator("#fixed-words").inner_text()
    assert "reads the same 72 of 288 places in every window" in words
    assert explained["open_count"] <= 72
    assert "at least one of them was missing" in words
    assert not page.locator("#frequency").is_visible()
    assert not page.locator("#rates").is_visible()
    page.select_option("#model", "town")
    page.wait_for_selector("#rates canvas")
    assert page.locator("#frequency").is_visible()
    assert not page.locator("#fixed-words").is_visible()
    page.select_option("#model", "sealed")
    page.wait_for_selector("#fixed-words", state="visible")


def test_a_report_of_a_sealed_model_says_what_was_checked_when_it_was_made(
    view: Any, place: Any, desk: Any, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    model = IBForecaster.load(desk.model("sealed"))
    out.write_bytes(to_html(model, desk.table("town"), [MOMENT], "sealed", "town.csv"))
    page = view(out.as_uri())
    assert "with nothing held" in page.locator(".note").inner_text()
    assert not page.locator("#scramble").is_visible()
    draw(ExplainedForecast.from_json(document(place)), tmp_path / "why.html")
    page = view((tmp_path / "why.html").as_uri(), ready="body.has-picture .badge.unknown")
    assert "held" not in page.locator(".note").inner_text()
    out.write_bytes(to_html(IBForecaster.load(desk.model("town")), desk.table("town"), [MOMENT], "town", "town.csv"))
    assert "held" not in view(out.as_uri()).locator(".note").inner_text()
