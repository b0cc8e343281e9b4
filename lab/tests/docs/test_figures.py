"""Every figure in README and docs that comes from a record is compared with that record.

CONTRIBUTING.md says how a figure is marked.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
GENERATED = "docs/results.md"

NOT_YET_MARKED = {
    f"docs/{name}.md"
    for name in (
        *("audit", "budget", "covariates", "departures", "fleet", "interop", "intervals", "notebook", "onnx"),
        *("own-data", "service", "theory", "tune"),
    )
}
"""Pages whose figures have no marks yet; a page is taken off the list when it has them."""

MARKED = re.compile(r"(?P<figure>[−-]?\d[\d,]*(?:\.\d+)?)(?P<percent> %)?<!--(?P<name>[^\s>]+)-->")
BLOCK = re.compile(r"<!--figures:(?:trial|example|setting)-->.*?<!--figures:end-->", re.DOTALL)
"""A passage whose figures come from no record: trials in the notebook, examples, settings."""

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
NO_FIGURES = (
    FENCED,
    BLOCK,
    MARKED,
    re.compile(r"`[^`]+`"),
    re.compile(r"\]\([^)]*\)"),
    re.compile(r"<!--.*?-->", re.DOTALL),
)
ALLOWED = {
    "a version": r"(?:Python|Node|PyTorch|pandas|version) \d+\.\d+(?:\.\d+)?(?: to \d+\.\d+)?|\b\d+\.\d+\.\d+\b",
    "a setting": r"(?:budget|budget of|prior|prior of|bar|bar of|below|least|ρ =|π =|λ\w* =|α =|β =|β₁ to|⌊) ?\d+\.\d+",
    "a share of the rows": r"\d+\.\d+, \d+\.\d+ and \d+\.\d+ unless set",
}
"""Kinds of figures that need no mark."""

FIGURE = re.compile(r"(?<![\w.-])\d+\.\d+(?![\w.]*\d)")


@dataclass(frozen=True)
class Figure:
    """A marked figure: where it is, how it is printed, and the name of its record."""

    page: str
    line: int
    printed: str
    is_percent: bool
    name: str

    @property
    def digits(self) -> int:
        """Digits after the point."""
        return len(self.printed.partition(".")[2])

    @property
    def value(self) -> float:
        """The number as it is printed."""
        return float(self.printed.replace(",", "").replace("−", "-"))

    def agrees_with(self, recorded: float) -> bool:
        """Whether the record, rounded to the printed digits, is the figure."""
        number = 100 * recorded if self.is_percent else recorded
        return abs(number - self.value) <= 0.5 * 10.0**-self.digits + 1e-9

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.printed} ({self.name})"


def marked(page: str, text: str) -> Iterator[Figure]:
    """Find the marked figures of a text."""
    for mark in MARKED.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        yield Figure(page, line, mark["figure"], mark["percent"] is not None, mark["name"])


def unmarked(text: str) -> list[str]:
    """Find the decimal figures of a text that have no mark and are of no kind that needs none."""
    for pattern in (*NO_FIGURES, *(re.compile(kind) for kind in ALLOWED.values())):
        text = pattern.sub(" ", text)
    return FIGURE.findall(text)


def figures() -> list[Figure]:
    return [figure for name, path in PAGES.items() for figure in marked(name, path.read_text("utf8"))]


def test_every_marked_figure_is_that_of_its_record(values: dict[str, float]) -> None:
    every = [figure for figure in figures() if figure.name != "trial"]
    assert [str(figure) for figure in every if figure.name not in values] == []
    assert [
        f"{figure} is {values[figure.name]}" for figure in every if not figure.agrees_with(values[figure.name])
    ] == []


@pytest.mark.parametrize("name", sorted(PAGES.keys() - NOT_YET_MARKED - {GENERATED}))
def test_no_decimal_figure_of_a_page_is_without_a_mark(name: str) -> None:
    assert unmarked(PAGES[name].read_text("utf8")) == []


@pytest.mark.parametrize("name", sorted(NOT_YET_MARKED & PAGES.keys()))
def test_a_page_that_needs_no_more_marks_is_taken_off_the_list(name: str) -> None:
    assert unmarked(PAGES[name].read_text("utf8")) != []


def test_marks_are_read_with_sign_percent_and_thousands() -> None:
    text = "MSE 0.339<!--a/mse-->, −1.5 %<!--b-->, 8,355<!--c--> windows, `0.1`, budget 0.2\n```\n0.5\n```\n<!--d-->"
    found = list(marked("page", text))
    assert [(figure.value, figure.is_percent, figure.name) for figure in found] == [
        (0.339, False, "a/mse"),
        (-1.5, True, "b"),
        (8355, False, "c"),
    ]
    assert found[0].agrees_with(0.33949)
    assert not found[0].agrees_with(0.3396)
    assert found[1].agrees_with(-0.0152)
    assert unmarked(text) == []
    assert unmarked("<!--figures:trial-->0.71<!--figures:end--> 0.72, about 3.4 %.") == ["0.72", "3.4"]
