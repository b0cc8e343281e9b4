"""The parts of the service that the explorer needs: its files, served at the root, and the forms of an explanation."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ibforecast.data.tables import write
from ibforecast.plots.scene import scene_of
from ibforecast.plots.svg import to_svg
from ibforecast.serve import app


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "explorer"
    (folder / "parts").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>explorer</title>")
    (folder / "parts" / "map.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("not for you")
    monkeypatch.setattr(app, "EXPLORER", folder)
    return folder


def test_the_page_is_served_and_may_load_nothing_from_other_sites(make: Any, over: Any, page: Path) -> None:
    client = over(make())
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.text.startswith("<!doctype html>")
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert client.get("/parts/map.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/health").json()["status"] == "ok"
    missing = client.get("/parts/nothing.js")
    assert (missing.status_code, missing.json()["hint"]) == (404, "see /openapi.json")
    assert 'route="other",status="200"} 2' in client.get("/metrics").text


def test_the_page_needs_no_token_but_the_data_do(make: Any, over: Any, page: Path) -> None:
    client = over(make(token="a long secret"))
    assert client.get("/").status_code == 200
    assert client.get("/parts/map.js").status_code == 200
    for path in (
        "/models",
        "/parts/nothing.js",
        "/%2e%2e/secret.txt",
        "/../secret.txt",
        "/parts",
        "/%00",
        "/" + "a" * 5000,
    ):
        assert client.get(path).status_code == 401, path


def test_files_outside_the_folder_are_not_served(make: Any, over: Any, page: Path) -> None:
    client = over(make())
    for path in (
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/parts/..%2f..%2fsecret.txt",
        "//etc/passwd",
        "/%00",
        "/%ff%fe",
        "/" + "a" * 5000,
    ):
        assert client.get(path).status_code == 404, path


def test_without_the_folder_the_root_is_not_found(make: Any, over: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(app, "EXPLORER", tmp_path / "none")
    assert over(make()).get("/").status_code == 404


def test_the_form_for_the_page_contains_document_and_scene(client: Any, desk: Any) -> None:
    answer = client.post("/explain?form=page", {"table": desk.columns()}).json()
    explanation = desk.model().explain(desk.table)
    assert answer == {"document": explanation.to_json(), "scene": scene_of(replace(explanation, host=None)).document()}


def test_picture_and_tokens_equal_those_of_the_library(client: Any, desk: Any, tmp_path: Path) -> None:
    explanation = desk.model().explain(desk.table)
    svg, csv = (client.post(f"/explain?form={form}", {"table": desk.columns()}) for form in ("svg", "csv"))
    assert (svg.headers["content-type"], svg.text) == ("image/svg+xml", to_svg(scene_of(explanation)))
    write(explanation.to_table(), tmp_path / "tokens.csv")
    assert csv.headers["content-type"].startswith("text/csv")
    assert csv.text == (tmp_path / "tokens.csv").read_text()


@pytest.mark.parametrize("form", ["document", "page", "svg", "csv"])
def test_every_form_except_the_answer_takes_one_moment(client: Any, desk: Any, form: str) -> None:
    moments = desk.columns()["when"][-2:]
    refused = client.post(f"/explain?form={form}", {"table": desk.columns(), "at": moments})
    assert (refused.status_code, refused.json()["field"]) == (422, "form")
