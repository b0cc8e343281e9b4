"""The marks of figures in the documentation: find, compare and write the figures.

`python -m ibforecast_lab.experiments.marks` writes every marked figure again from its record. CONTRIBUTING.md says how
a figure is marked.
"""

import fnmatch
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from ibforecast.core.files import write_atomically
from ibforecast_lab.experiments.ledger import Ledger
from ibforecast_lab.experiments.page import PAGE
from ibforecast_lab.experiments.quoted import BENCH, TRIALS, quoted, trials
from ibforecast_lab.experiments.tables import sheets_of

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
        """Return whether a number, rounded to the printed digits, is the figure."""
        digits = len(self.printed.partition(".")[2])
        return abs(number - self.value) <= 0.5 * 10.0**-digits + 1e-9

    def is_record(self, number: float) -> bool:
        """Return whether the figure is that of a record, which contains shares where pages print percentages."""
        return self.agrees_with(100 * number if self.is_percent else number)

    def is_trial(self, numbers: list[float]) -> bool:
        """Return whether the figure is one of the numbers of trials, which contain shares and percentages."""
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


# --- Writing ---

SIGNED = re.compile(rf"(?P<sign>[+−-]?)(?<![\d.]){MARKED.pattern.replace('[−-]?', '', 1)}")
"""A marked figure with its sign, which may also be a plus."""

COMMIT = re.compile(r"`(?P<commit>[0-9a-f]{7})`<!--commit:(?P<file>[\w-]+)(?:/(?P<part>\w+))?-->")
"""The first digits of the commit that a benchmark, or a part of it, is of."""


def written(text: str, values: Mapping[str, float], files: Mapping[str, list[float]], bench: Path = BENCH) -> str:
    """Return the text with every marked figure and commit as its record has it. Those without a record stay."""
    passages = list(_passages(text, files))

    def figure(mark: re.Match[str]) -> str:
        passage = next((each for each in passages if each.start <= mark.start() < each.end), None)
        number = evaluate(mark["name"], values, passage.numbers if passage else [])
        now = Figure("", 0, mark["sign"].replace("+", "") + mark["figure"], mark["percent"] is not None)
        if number is None or now.is_record(number):
            return mark[0]
        line = text[text.rfind("\n", 0, mark.start()) + 1 :].partition("\n")[0]
        plus = "+" if mark["sign"] and any(other["sign"] == "+" for other in SIGNED.finditer(line)) else ""
        minus = mark["sign"] if mark["sign"] in ("-", "−") else "−"
        digits = len(mark["figure"].partition(".")[2])
        size = f"{abs(100 * number if now.is_percent else number):,.{digits}f}"
        sign = "" if not float(size.replace(",", "")) else minus if number < 0 else plus
        return sign + size + mark[0][mark[0].index(mark["figure"]) + len(mark["figure"]) :]

    return COMMIT.sub(lambda mark: _commit(mark, bench), SIGNED.sub(figure, text))


def _commit(mark: re.Match[str], bench: Path) -> str:
    record = json.loads((bench / f"{mark['file']}.json").read_text("utf8"))
    part = record["measures"].get(mark["part"], {}) if mark["part"] else record
    return mark[0].replace(mark["commit"], part.get("commit", mark["commit"])[:7], 1)


def main() -> None:
    """Write the pages."""
    records = Ledger().records()
    values, files = quoted(sheets_of(records), records), trials(TRIALS)
    for path in (Path("README.md"), *sorted(path for path in Path("docs").glob("*.md") if path != PAGE)):
        text = path.read_text("utf8")
        for figure, numbers in read(str(path), text, files).marked:
            if evaluate(figure.name, values, numbers) is None:
                print(f"no record: {figure}", file=sys.stderr)
        if (new := written(text, values, files)) != text:
            write_atomically(path, new.encode())
            print(path)


if __name__ == "__main__":
    main()
