"""A scene as SVG: well-formed, self-contained, and the same picture as the PNG."""

from collections import Counter
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from ibforecast.core.account import Account

from ibforecast.plots.scene import scene_of
from ibforecast.plots.static import figure
from ibforecast.plots.svg import to_svg

Accounts = Callable[..., Account]
SVG = "{http://www.w3.org/2000/svg}"


def parsed(account: Account) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(scene_of(account)))


@given(names=some.lists(some.text(min_size=1, max_size=40), min_size=1, max_size=3, unique=True))
def test_it_is_well_formed_whatever_a_channel_is_called(synthetic_account: Accounts, names: list[str]) -> None:
    account = synthetic_account(names=tuple(names), look_back=16, horizon=4)
    picture = ElementTree.fromstring(to_svg(scene_of(account)).encode())
    assert len(picture.findall(f".//{SVG}g[@class='channel']")) == len(names)


def test_every_channel_and_covariate_is_named_as_text(synthetic_account: Accounts) -> None:
    names = ("HUFL", "a & b", "cost $x_1$ in $", "naïve", "<script>alert('x')</script>")
    account = synthetic_account(names=names)
    picture = parsed(account)
    assert set(names) <= {title.text for title in picture.iter(f"{SVG}title")}
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"HUFL", "a & b", "cost $x_1$ in $", "naïve"} <= set(texts)
    assert scene_of(account).headline in texts
    assert not list(picture.iter(f"{SVG}script"))


def test_nothing_is_fetched_and_nothing_runs(account_with_covariates: Account) -> None:
    picture = parsed(account_with_covariates)
    tags = {element.tag.removeprefix(SVG) for element in picture.iter()}
    assert tags == {"svg", "title", "desc", "g", "rect", "path", "line", "text"}
    attributes = {name for element in picture.iter() for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or name in {"id", "href", "src"}}
    assert "url(" not in to_svg(scene_of(account_with_covariates))


def test_it_has_a_title_and_says_in_words_what_it_shows(synthetic_account: Accounts) -> None:
    account = synthetic_account(3)
    title, words = list(parsed(account))[:2]
    assert (title.tag, title.text) == (f"{SVG}title", scene_of(account).headline)
    assert (words.tag, words.text) == (f"{SVG}desc", account.in_words())


def test_the_same_account_gives_the_same_text(synthetic_account: Accounts) -> None:
    assert to_svg(scene_of(synthetic_account(3))) == to_svg(scene_of(synthetic_account(3)))


@pytest.mark.parametrize("covariates", [False, True])
def test_matplotlib_and_svg_draw_the_same_bands_and_lines(
    synthetic_account: Accounts, account_with_covariates: Account, covariates: bool
) -> None:
    account = account_with_covariates if covariates else synthetic_account(7)
    scene = scene_of(account)
    count, picture = len(scene.rows), parsed(account)
    drawn = [element.get("class") for element in picture.iter() if element.tag in (f"{SVG}path", f"{SVG}rect")]
    axes = figure(scene).axes
    patches = Counter("missing" if patch.get_hatch() else "open" for row in axes[:count] for patch in row.patches)
    assert {state: drawn.count(state) for state in ("open", "missing")} == patches
    assert drawn.count("open") == account.open_count
    # Rules such as the moment of the forecast have two points.
    curves = [
        [sum(len(line.get_xdata()) > 2 for line in row.lines) for row in rows] for rows in (axes[:count], axes[count:])
    ]
    roles = Counter(line.role for row in scene.rows for line in row.lines)
    assert sum(curves[0]) == roles.total() == sum(drawn.count(role) for role in roles)
    assert sum(curves[1]) == sum(len(row.side.curves) for row in scene.rows) == drawn.count("side")


def test_a_gap_breaks_a_line_and_a_value_between_gaps_is_a_dot(synthetic_account: Accounts) -> None:
    account = synthetic_account(1, with_missing=False)
    account.history[[3, 5], 0] = np.nan
    picture = parsed(account)
    (path,) = picture.findall(f".//{SVG}path[@class='look-back']")
    assert path.attrib["d"].count("M") == 3
    assert len(picture.findall(f".//{SVG}circle")) == 1


def test_all_marks_lie_on_the_sheet(account_with_covariates: Account) -> None:
    picture = parsed(account_with_covariates)
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for text in picture.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height
    for rectangle in picture.iter(f"{SVG}rect"):
        left, top = float(rectangle.get("x", 0)), float(rectangle.get("y", 0))
        assert left + float(rectangle.attrib["width"]) <= width
        assert top + float(rectangle.attrib["height"]) <= height
