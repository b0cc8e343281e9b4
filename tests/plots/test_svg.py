"""A scene as SVG: well-formed, self-contained, and the same picture as the PNG."""

from collections import Counter
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.core.samples import changed

from ibforecast.core.explained import ExplainedForecast
from ibforecast.plots.scene import scene_of
from ibforecast.plots.static import figure
from ibforecast.plots.svg import to_svg

Samples = Callable[..., ExplainedForecast]
SVG = "{http://www.w3.org/2000/svg}"


def parsed(explained: ExplainedForecast) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(scene_of(explained)))


@given(names=some.lists(some.text(min_size=1, max_size=40), min_size=1, max_size=3, unique=True))
def test_the_svg_is_well_formed_for_any_channel_name(synthetic: Samples, names: list[str]) -> None:
    explained = synthetic(names=tuple(names), look_back=16, horizon=4)
    picture = ElementTree.fromstring(to_svg(scene_of(explained)).encode())
    assert len(picture.findall(f".//{SVG}g[@class='channel']")) == len(names)


def test_every_channel_and_covariate_is_named_as_text(synthetic: Samples) -> None:
    names = ("HUFL", "a & b", "cost $x_1$ in $", "naïve", "<script>alert('x')</script>")
    explained = synthetic(names=names)
    picture = parsed(explained)
    assert set(names) <= {title.text for title in picture.iter(f"{SVG}title")}
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert {"HUFL", "a & b", "cost $x_1$ in $", "naïve"} <= set(texts)
    assert scene_of(explained).headline in texts
    assert not list(picture.iter(f"{SVG}script"))


def test_the_svg_fetches_and_runs_nothing(with_covariates: ExplainedForecast) -> None:
    picture = parsed(with_covariates)
    tags = {element.tag.removeprefix(SVG) for element in picture.iter()}
    assert tags == {"svg", "title", "desc", "g", "rect", "path", "line", "text"}
    attributes = {name for element in picture.iter() for name in element.attrib}
    assert not {name for name in attributes if name.startswith("on") or name in {"id", "href", "src"}}
    assert "url(" not in to_svg(scene_of(with_covariates))


def test_the_svg_has_a_title_and_a_description(synthetic: Samples) -> None:
    explained = synthetic(3)
    title, words = list(parsed(explained))[:2]
    assert (title.tag, title.text) == (f"{SVG}title", scene_of(explained).headline)
    assert (words.tag, words.text) == (f"{SVG}desc", explained.in_words())


def test_the_same_explanation_gives_the_same_text(synthetic: Samples) -> None:
    assert to_svg(scene_of(synthetic(3))) == to_svg(scene_of(synthetic(3)))


@pytest.mark.parametrize("covariates", [False, True])
def test_matplotlib_and_svg_draw_the_same_bands_and_lines(
    synthetic: Samples, with_covariates: ExplainedForecast, covariates: bool
) -> None:
    explained = with_covariates if covariates else synthetic(7)
    scene = scene_of(explained)
    count, picture = len(scene.rows), parsed(explained)
    drawn = [element.get("class") for element in picture.iter() if element.tag in (f"{SVG}path", f"{SVG}rect")]
    axes = figure(scene).axes
    patches = Counter("missing" if patch.get_hatch() else "open" for row in axes[:count] for patch in row.patches)
    assert {state: drawn.count(state) for state in ("open", "missing")} == patches
    assert drawn.count("open") == explained.open_count
    # Rules such as the moment of the forecast have two points.
    curves = [
        [sum(len(line.get_xdata()) > 2 for line in row.lines) for row in rows] for rows in (axes[:count], axes[count:])
    ]
    roles = Counter(line.role for row in scene.rows for line in row.lines)
    assert sum(curves[0]) == roles.total() == sum(drawn.count(role) for role in roles)
    assert sum(curves[1]) == sum(len(row.side.curves) for row in scene.rows) == drawn.count("side")


def test_a_gap_breaks_a_line_and_a_value_between_gaps_is_a_dot(synthetic: Samples) -> None:
    explained = synthetic(1, with_missing=False)
    arrays = {name: getattr(explained, name).copy() for name in ("history", "mask", "missing", "evidence")}
    arrays["history"][[3, 5], 0] = np.nan
    arrays["mask"][0], arrays["missing"][0], arrays["evidence"][: explained.patch_len] = False, True, 0.0
    picture = parsed(changed(explained, **arrays))
    (path,) = picture.findall(f".//{SVG}path[@class='look-back']")
    assert path.attrib["d"].count("M") == 3
    assert len(picture.findall(f".//{SVG}circle")) == 1


def test_all_marks_lie_on_the_sheet(with_covariates: ExplainedForecast) -> None:
    picture = parsed(with_covariates)
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    for text in picture.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height
    for rectangle in picture.iter(f"{SVG}rect"):
        left, top = float(rectangle.get("x", 0)), float(rectangle.get("y", 0))
        assert left + float(rectangle.attrib["width"]) <= width
        assert top + float(rectangle.attrib["height"]) <= height
