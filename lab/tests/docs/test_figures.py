"""Every decimal figure in README and docs is compared with a record.

CONTRIBUTING.md says how a figure is marked.
"""

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest

from ibforecast_lab.experiments.quoted import TRIALS, trials

ROOT = Path(__file__).parents[3]
GENERATED = "docs/results.md"
PAGES = {
    name: path.read_text("utf8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if (name := str(path.relative_to(ROOT))) != GENERATED
}

MOST_UNRECORDED = 10
"""Figures of runs that were not kept. The number may only fall."""

MARKED = re.compile(
    r"(?P<figure>[−-]?\d[\d,]*(?:\.\d+)?)\**(?P<percent> %)?<!--(?P<name>(?!(?:setting|paper)-->)[^\s>]+)-->"
)
SOURCE = re.compile(
    r"^ *<!-- (?P<kind>trials|unrecorded): (?P<text>.+?) -->\n(?P<block>.*?)(?=\n *\n|\Z)", re.MULTILINE | re.DOTALL
)
"""A comment on a line of its own, and the paragraph, list or table below it, up to the next empty line."""

NOT_FIGURES = {
    "code, and output that other tests compare": re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL),
    "a setting, an aim or a figure in the words of the paper": re.compile(r"[\d.]+(?: %)?<!--(?:setting|paper)-->"),
    "a marked figure": MARKED,
    "code in a line": re.compile(r"`[^`]+`"),
    "an address": re.compile(r"\]\([^)]*\)"),
    "a comment": re.compile(r"<!--.*?-->", re.DOTALL),
    "a version": re.compile(
        r"(?:Python|Node|PyTorch|pandas|neuralforecast|version) \d+\.\d+(?:\.\d+)?(?: to \d+\.\d+)?|\b\d+\.\d+\.\d+\b"
        r"|Apache-2\.0"
    ),
    "shares of the rows": re.compile(r"0\.7, 0\.1 and 0\.2"),
    "a setting": re.compile(
        r"(?:budget|budget of|prior|prior of|bar of|ρ =|ρ of|π =|λ\w* =|α =|β =|β of|β₁ to|⌊) ?\d+\.\d+"
    ),
}

FIGURE = re.compile(r"(?<![\w.])(?P<figure>\d+\.\d+)(?![\w.]*\d)(?P<percent> %)?")

EXPRESSION = re.compile(r"(?P<function>\w+)\((?P<arguments>[^()]+)\)")
FUNCTIONS: dict[str, Callable[[list[float]], float]] = {
    "mean": mean,
    "most": max,
    "least": min,
    "difference": lambda numbers: numbers[0] - numbers[1],
    "ratio": lambda numbers: numbers[0] / numbers[1],
    "over": lambda numbers: numbers[0] / numbers[1] - 1,
    "below": lambda numbers: 1 - numbers[0] / numbers[1],
}


@dataclass(frozen=True)
class Figure:
    """A figure: where it is, how it is printed, and the name of its record, if it has one."""

    page: str
    line: int
    printed: str
    is_percent: bool
    name: str = ""

    @property
    def value(self) -> float:
        """The number as it is printed."""
        return float(self.printed.replace(",", "").replace("−", "-"))

    def agrees_with(self, number: float) -> bool:
        """Whether a number, rounded to the printed digits, is the figure."""
        digits = len(self.printed.partition(".")[2])
        return abs(number - self.value) <= 0.5 * 10.0**-digits + 1e-9

    def is_record(self, number: float) -> bool:
        """Whether the figure is that of a record, which contains shares where pages print percentages."""
        return self.agrees_with(100 * number if self.is_percent else number)

    def is_trial(self, numbers: list[float]) -> bool:
        """Whether the figure is one of the numbers of trials. Trials contain shares, and some contain percentages."""
        return any(self.is_record(number) or self.agrees_with(number) for number in numbers)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.printed}{' %' * self.is_percent} {self.name}"


@dataclass(frozen=True)
class Page:
    """The figures of a page, by what they are compared with."""

    marked: list[tuple[Figure, list[float]]]
    """Figures with the name of a record, and the numbers of the trials that their passage names."""

    of_trials: list[tuple[Figure, list[float]]]
    unrecorded: list[Figure]
    unmarked: list[Figure]


def read(name: str, text: str, files: Mapping[str, list[float]]) -> Page:
    """Find the figures of a text."""
    page = Page([], [], [], [])
    passages = list(_passages(text, files))
    for figure, position in _figures(name, text):
        passage = next((each for each in passages if each.start <= position < each.end), None)
        if figure.name:
            page.marked.append((figure, passage.numbers if passage else []))
        elif passage is None:
            page.unmarked.append(figure)
        elif passage.is_recorded:
            page.of_trials.append((figure, passage.numbers))
        else:
            page.unrecorded.append(figure)
    return page


class Passage(NamedTuple):
    """A passage of trials with the numbers of its files, or one whose runs were not kept."""

    start: int
    end: int
    is_recorded: bool
    numbers: list[float]


def _passages(text: str, files: Mapping[str, list[float]]) -> Iterator[Passage]:
    for source in SOURCE.finditer(text):
        names = source["text"].split() if source["kind"] == "trials" else []
        yield Passage(*source.span(), bool(names), [number for name in names for number in files[name]])


def _figures(name: str, text: str) -> Iterator[tuple[Figure, int]]:
    """Find the marked figures and the others that are of no kind that needs no mark, with their positions."""
    for mark in MARKED.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        yield Figure(name, line, mark["figure"], mark["percent"] is not None, mark["name"]), mark.start()
    for kind in NOT_FIGURES.values():
        text = kind.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for match in FIGURE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Figure(name, line, match["figure"], match["percent"] is not None), match.start()


def evaluate(name: str, values: Mapping[str, float], numbers: list[float]) -> float | None:
    """Return the number with a name, or the value of an expression. None if there is no such record.

    An argument is the name of a record, a pattern of names, an integer, or a number with a point that must be in the
    files of trials.
    """
    expression = EXPRESSION.fullmatch(name)
    if expression is None:
        return values.get(name)
    arguments = [_numbers(argument, values, numbers) for argument in expression["arguments"].split(",")]
    if [] in arguments or expression["function"] not in FUNCTIONS:
        return None
    return FUNCTIONS[expression["function"]]([number for argument in arguments for number in argument])


def _numbers(argument: str, values: Mapping[str, float], numbers: list[float]) -> list[float]:
    if argument.isdigit():
        return [float(argument)]
    if re.fullmatch(r"\d+\.\d+", argument):
        printed = Figure("", 0, argument, is_percent=False)
        return [number for number in numbers if printed.agrees_with(number)][:1]
    if "*" in argument:
        return [values[name] for name in fnmatch.filter(values, argument)]
    return [values[argument]] if argument in values else []


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    files = trials(ROOT / TRIALS)
    return {name: read(name, text, files) for name, text in PAGES.items()}


def test_every_marked_figure_is_that_of_its_record(pages: dict[str, Page], values: dict[str, float]) -> None:
    every = [
        (figure, evaluate(figure.name, values, numbers)) for page in pages.values() for figure, numbers in page.marked
    ]
    assert [str(figure) for figure, number in every if number is None] == []
    assert [
        f"{figure} is {number}" for figure, number in every if number is not None and not figure.is_record(number)
    ] == []


def test_every_figure_of_a_trial_is_in_a_file_of_its_passage(pages: dict[str, Page]) -> None:
    of_trials = [(figure, numbers) for page in pages.values() for figure, numbers in page.of_trials]
    assert [str(figure) for figure, numbers in of_trials if not figure.is_trial(numbers)] == []


def test_no_decimal_figure_is_without_a_record_or_a_reason(pages: dict[str, Page]) -> None:
    assert [str(figure) for page in pages.values() for figure in page.unmarked] == []


def test_figures_of_runs_that_were_not_kept_do_not_become_more(pages: dict[str, Page]) -> None:
    checked = sum(len(page.marked) + len(page.of_trials) for page in pages.values())
    unrecorded = sum(len(page.unrecorded) for page in pages.values())
    print(f"{checked} figures checked, {unrecorded} unrecorded, {checked + unrecorded} in all")
    assert unrecorded <= MOST_UNRECORDED


def test_marks_are_read_with_sign_percent_and_thousands() -> None:
    text = "MSE 0.339<!--a/mse-->, −1.5 %<!--b-->, 8,355<!--c--> windows, `0.1`, budget 0.2\n```\n0.5\n```\n<!--d-->"
    page = read("page", text, {})
    found = [figure for figure, _ in page.marked]
    assert [(figure.value, figure.is_percent, figure.name) for figure in found] == [
        (0.339, False, "a/mse"),
        (-1.5, True, "b"),
        (8355, False, "c"),
    ]
    assert found[0].is_record(0.33949)
    assert not found[0].is_record(0.3396)
    assert found[1].is_record(-0.0152)
    assert page.unmarked == []


def test_a_passage_ends_at_an_empty_line() -> None:
    text = "<!-- trials: a b -->\n- 0.71\n- 3.4 %\n\n0.72, 0.1-0.4\n\n<!-- unrecorded: before -->\n0.6\n"
    page = read("page", text, {"a": [0.714], "b": [0.5]})
    assert [(figure.printed, figure.is_trial(numbers)) for figure, numbers in page.of_trials] == [
        ("0.71", True),
        ("3.4", False),
    ]
    assert [figure.printed for figure in page.unmarked] == ["0.72", "0.1", "0.4"]
    assert [figure.printed for figure in page.unrecorded] == ["0.6"]


def test_an_expression_combines_records_and_numbers_of_trials() -> None:
    values, numbers = {"a": 3.0, "b": 2.0}, [0.5004, 0.7]
    assert evaluate("over(a,b)", values, numbers) == pytest.approx(0.5)
    assert evaluate("below(b,a)", values, numbers) == pytest.approx(1 / 3)
    assert evaluate("most(*)", values, numbers) == 3
    assert evaluate("ratio(a,1000)", values, numbers) == pytest.approx(0.003)
    assert evaluate("mean(0.500,0.7)", values, numbers) == pytest.approx(0.6002)
    assert evaluate("mean(0.6,0.7)", values, numbers) is None
    assert evaluate("other(a,b)", values, numbers) is None
