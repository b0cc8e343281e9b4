"""Small multiples of curves and dots: the same bytes every time, and a note for what was not run."""

import re
from collections.abc import Callable

import matplotlib
import pytest

from ibforecast_lab.plots import curves, dots
from ibforecast_lab.plots.records import FORMS, Form

ONE = curves.Curve("ours", [5.0, 20.0, 50.0], [0.42, 0.40, 0.39], [0.01, None, 0.02], default=1)
OTHER = curves.Curve("theirs", [20.0], [0.41], [None])
GRID = curves.Grid(
    panels=[[curves.Panel([ONE, OTHER], 0.38), curves.Panel([OTHER], not_run=["ours"])], [curves.Panel([])] * 2],
    rows=["ETTh1, MSE", "ETTh1, MAE"],
    columns=["horizon 96", "horizon 192"],
    across="read",
    names=["ours", "theirs"],
    level="dense",
    default="as it is",
    limits=(0.0, 55.0),
)
ROWS = [
    dots.DotRow("exact", [dots.Dot(0.37, 0.01), dots.Dot(0.2)], heads=True),
    dots.DotRow("− cycle Q", [dots.Dot(printed=0.43), dots.Dot(printed=0.24)], run=False),
    dots.DotRow("static", [dots.Dot(0.38, 0.0, 0.39), dots.Dot()], heads=True),
]
PICTURES: dict[str, Callable[[Form], bytes]] = {
    "curves": lambda form: curves.draw(GRID, form),
    "dots": lambda form: dots.draw(ROWS, ["MSE", "read"], form),
}


def texts(svg: bytes) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())


@pytest.mark.parametrize("name", list(PICTURES))
@pytest.mark.parametrize("form", FORMS)
def test_a_picture_has_the_requested_form_and_ignores_the_users_settings(name: str, form: Form) -> None:
    first = PICTURES[name](form)
    assert first.startswith(b"\x89PNG" if form == "png" else b"<?xml")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert PICTURES[name](form) == first


def test_the_grid_names_its_curves_rows_columns_and_level() -> None:
    shown = texts(PICTURES["curves"]("svg"))
    assert {"ours", "theirs", "dense", "as it is", "horizon 192", "ETTh1, MSE", "read"} <= set(shown)


def test_a_panel_names_the_curves_that_were_not_run_and_an_empty_one_says_so() -> None:
    shown = texts(PICTURES["curves"]("svg"))
    assert shown.count("not run: ours") == 1
    assert shown.count("not run") == 2


def test_the_ticks_of_a_column_may_be_words() -> None:
    words = curves.Grid(
        [[curves.Panel([curves.Curve("a", [0.0, 2.0], [1.0, 2.0], [None, None])])]], ["r"], ["c"], "x", ["a"]
    )
    labelled = curves.Grid(**{**vars(words), "ticks": [["0", "1e-4", "0.1"]], "even": True})
    assert {"0", "1e-4", "0.1"} <= set(texts(curves.draw(labelled, "svg")))


def test_a_long_list_of_names_is_broken_only_between_words() -> None:
    names = ["static-newest at 12.5/50 %", "static-fixed", "any-budget", "exact at 5/10/35/50 %"]
    panel = curves.Panel([OTHER], not_run=names)
    grid = curves.Grid([[panel] * 3], ["r"], ["a", "b", "c"], "x", ["theirs"])
    shown = " ".join(texts(curves.draw(grid, "svg")))
    assert all(word in shown for name in names for word in name.split())


def test_dots_name_the_models_and_those_that_were_not_run() -> None:
    shown = texts(PICTURES["dots"]("svg"))
    assert {"exact", "− cycle Q (not run)", "static", "MSE", "published"} <= set(shown)
