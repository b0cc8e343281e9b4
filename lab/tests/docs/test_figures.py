"""Every decimal figure in README and docs is compared with a record.

CONTRIBUTING.md says how a figure is marked.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ibforecast_lab.experiments.marks import Page, evaluate, read, written
from ibforecast_lab.experiments.quoted import BENCH, TRIALS, trials

ROOT = Path(__file__).parents[3]
GENERATED = "docs/results.md"
PAGES = {
    name: path.read_text("utf8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if (name := str(path.relative_to(ROOT))) != GENERATED
}

MOST_UNRECORDED = 10
"""Figures of runs that were not kept. The number may only fall."""


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


def test_marked_figures_and_commits_are_written_as_their_records_have_them(values: Mapping[str, float]) -> None:
    files = trials(ROOT / TRIALS)
    assert [name for name, text in PAGES.items() if written(text, values, files, ROOT / BENCH) != text] == []


def test_a_figure_is_written_with_its_digits_sign_percent_and_thousands() -> None:
    values = {"a": 0.3456, "b": 0.012, "c": -0.0301, "d": 98765.0, "e": 0.0}
    text = "0.30<!--a-->, −9.9 %<!--b-->, +1.0 %<!--c-->, 1,234<!--d-->, -7.0 %<!--e-->, 0.1<!--unknown-->"
    new = "0.35<!--a-->, +1.2 %<!--b-->, −3.0 %<!--c-->, 98,765<!--d-->, 0.0 %<!--e-->, 0.1<!--unknown-->"
    assert written(text, values, {}) == new
    assert written(new, values, {}) == new
    assert written("99 %<!--b--> and 0.346<!--a-->", values, {}) == "1 %<!--b--> and 0.346<!--a-->"


def test_the_commit_of_a_benchmark_is_written(tmp_path: Path) -> None:
    (tmp_path / "speed.json").write_text('{"commit": "0123456789", "measures": {"part": {"commit": "abcdef0123"}}}')
    text = "`1111111`<!--commit:speed--> `2222222`<!--commit:speed/part-->"
    assert written(text, {}, {}, tmp_path) == "`0123456`<!--commit:speed--> `abcdef0`<!--commit:speed/part-->"
