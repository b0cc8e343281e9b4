"""Pictures of the documentation are those of the code and the records as they are now: see docs/pictures.py."""

import re
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ibforecast import IBForecaster

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "docs" / "images"


def test_every_picture_has_its_fingerprint_and_is_shown_on_a_page(drawn: Any) -> None:
    files = {path.name for path in IMAGES.glob("*.png")}
    pages = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    shown = {name for page in pages for name in re.findall(r"\]\((?:docs/)?images/([^)]+)\)", page.read_text("utf8"))}
    assert files == drawn["pictures"].keys() == shown


def test_no_picture_was_changed_by_hand(drawn: Any) -> None:
    prints = {name: sha256((IMAGES / name).read_bytes()).hexdigest() for name in drawn["pictures"]}
    assert prints == {name: kept["file"] for name, kept in drawn["pictures"].items()}, "run: make pictures"


def check(every: list[Any], drawn: Any) -> None:
    now = {picture.name: picture.fingerprint for picture in every}
    assert now == {name: drawn["pictures"][name]["source"] for name in now}, "run: make pictures"


def test_pictures_of_theorems_and_benchmarks_are_up_to_date(pictures: ModuleType, drawn: Any) -> None:
    check(pictures.from_theory_and_benchmarks(), drawn)


@pytest.mark.xdist_group("pages")
@pytest.mark.usefixtures("_same_machine")
def test_pictures_of_the_demo_are_up_to_date(pictures: ModuleType, drawn: Any, demo: Path) -> None:
    check(pictures.from_demo(IBForecaster.load(demo / "model", device="cpu")), drawn)


@pytest.mark.usefixtures("_same_machine")
def test_the_picture_of_the_stages_is_up_to_date(pictures: ModuleType, drawn: Any) -> None:
    check(pictures.from_stages(), drawn)


@pytest.mark.usefixtures("_same_machine")
def test_the_picture_of_covariates_is_up_to_date(pictures: ModuleType, drawn: Any) -> None:
    check(pictures.from_covariates(pictures.fit_covariates()), drawn)


def test_another_source_has_another_fingerprint(pictures: ModuleType) -> None:
    one, other = (pictures.Picture("a.png", {"at": [number]}, print) for number in (0.1, 0.2))
    assert one.fingerprint != other.fingerprint
