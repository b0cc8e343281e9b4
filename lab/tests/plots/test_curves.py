"""Small multiples: curves and dots, the same bytes every time, and words for what is not there."""

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
def test_a_picture_is_what_it_is_called_and_the_same_whatever_the_users_settings(name: str, form: Form) -> None:
    first = PICTURES[name](form)
    assert first.startswith(b"\x89PNG" if form == "png" else b"<?xml")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert PICTURES[name](form) == first


def test_the_grid_names_its_curves_rows_columns_and_what_they_are_held_against() -> None:
    told = texts(PICTURES["curves"]("svg"))
    assert {"ours", "theirs", "dense", "as it is", "horizon 192", "ETTh1, MSE", "read"} <= set(told)


def test_a_panel_says_what_was_not_run_and_an_empty_one_that_nothing_was() -> None:
    told = texts(PICTURES["curves"]("svg"))
    assert told.count("not run: ours") == 1
    assert told.count("not run") == 2


def test_words_may_stand_below_a_column_instead_of_numbers() -> None:
    words = curves.Grid(
        [[curves.Panel([curves.Curve("a", [0.0, 2.0], [1.0, 2.0], [None, None])])]], ["r"], ["c"], "x", ["a"]
    )
    labelled = curves.Grid(**{**vars(words), "ticks": [["0", "1e-4", "0.1"]], "even": True})
    assert {"0", "1e-4", "0.1"} <= set(texts(curves.draw(labelled, "svg")))


def test_names_of_many_that_were_not_run_are_broken_between_words_only() -> None:
    names = ["static-newest at 12.5/50 %", "static-fixed", "any-budget", "exact at 5/10/35/50 %"]
    panel = curves.Panel([OTHER], not_run=names)
    grid = curves.Grid([[panel] * 3], ["r"], ["a", "b", "c"], "x", ["theirs"])
    told = " ".join(texts(curves.draw(grid, "svg")))
    assert all(word in told for name in names for word in name.split())


def test_dots_tell_the_models_and_which_of_them_were_not_run() -> None:
    told = texts(PICTURES["dots"]("svg"))
    assert {"exact", "− cycle Q (not run)", "static", "MSE", "published"} <= set(told)
