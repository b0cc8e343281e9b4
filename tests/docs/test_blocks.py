"""The pages are correct: every Python block runs, every output is compared, every command line exists.

A page is run from top to bottom, in a folder that contains `demo/` as `ibforecast demo` writes it. A ```text block that
directly follows a ```python or a ```console block is the output of that block. It is compared as doctest does with
ELLIPSIS and NORMALIZE_WHITESPACE: … matches any text, such as digits that depend on the machine, and lines may be
wrapped anywhere. Commands in a ```console block begin with `$ `; they run only if an output follows.
"""

import io
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pytest
from matplotlib import pyplot

from ibforecast import MissingExtraError
from ibforecast.cli.main import main, run
from ibforecast.core.devices import has_bfloat16

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
pytestmark = pytest.mark.xdist_group("pages")  # one worker trains the demo for all
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its kind, the number of its first line, its text, and the output that follows it."""

    kind: str
    line: int
    text: str
    output: str | None = None


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page; an output that follows its block directly becomes a part of it."""
    collected: list[Block] = []
    end = 0
    for match in FENCED.finditer(text):
        directly = not text[end : match.start()].strip()
        if match[1] == "text" and directly and collected and collected[-1].kind in ("python", "console"):
            collected[-1] = replace(collected[-1], output=match[2])
        else:
            collected.append(Block(match[1], text.count("\n", 0, match.start()) + 2, match[2]))
        end = match.end()
    return collected


def matches(shown: str, printed: str) -> bool:
    """Compare the output on a page with the printed one; … matches any text."""
    parts = re.split(" ?… ?", " ".join(shown.split()))
    return re.fullmatch(".*".join(map(re.escape, parts)), " ".join(printed.split())) is not None


@pytest.fixture
def _working_folder(tmp_path: Path, demo: Path, training: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with a copy of the demo."""
    shutil.copytree(demo, tmp_path / "demo")
    (tmp_path / "docs" / "images").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ibforecast.zoo.stages.train", training)
    yield
    pyplot.close("all")


OTHERS_WARNINGS = {"docs/interop.md": "ignore"}
"""Pages on which other libraries warn: Lightning, and shap about matplotlib and numba."""

RUNNABLE = [
    pytest.param(name, marks=[pytest.mark.filterwarnings(OTHERS_WARNINGS[name])] if name in OTHERS_WARNINGS else [])
    for name, page in PAGES.items()
    if any(block.kind == "python" for block in blocks(page.read_text("utf8")))
]


def run_commands(commands: str) -> str:
    """Run the `$ ibforecast …` lines of a block and return their output."""
    terminal = io.StringIO()
    for command in commands.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(command.removeprefix("$ "), comments=True)
        assert program == "ibforecast", f"only ibforecast runs here (got {command})"
        with redirect_stdout(terminal), redirect_stderr(terminal), pytest.raises(SystemExit):
            run(words)
    return terminal.getvalue()


def run_block(block: Block, page: Path, namespace: dict[str, Any]) -> str | None:
    """Run a block and return its output; None if it is not to be run."""
    if block.kind == "python":
        with redirect_stdout(io.StringIO()) as terminal:
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
        return terminal.getvalue()
    return run_commands(block.text) if block.kind == "console" and block.output is not None else None


@pytest.mark.usefixtures("_working_folder")
@pytest.mark.parametrize("name", RUNNABLE)
def test_a_page_runs_from_top_to_bottom_and_prints_the_output_it_shows(name: str) -> None:
    page = PAGES[name]
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page.read_text("utf8")):
        try:
            printed = run_block(block, page, namespace)
        except MissingExtraError as error:
            pytest.skip(str(error))
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("ibforecast"):
                raise
            pytest.skip(f"{name}, line {block.line}: {error}")
        if block.output is not None and has_bfloat16():  # other processors train other weights, and print other digits
            assert printed is not None
            assert matches(block.output, printed), f"{name}, line {block.line} prints\n{printed}"


@pytest.mark.parametrize("name", PAGES)
def test_an_output_directly_follows_the_code_that_prints_it(name: str) -> None:
    assert [block.line for block in blocks(PAGES[name].read_text("utf8")) if block.kind == "text"] == []


def test_outputs_are_read_and_compared() -> None:
    page = "```python\nprint(1.25)\n```\n\n```text\n1.2…\n```\n\nWords.\n\n```text\nloose\n```\n"
    code, loose = blocks(page)
    assert (code.kind, code.line, code.output) == ("python", 2, "1.2…\n")
    assert (loose.kind, loose.output) == ("text", None)
    assert matches("1.2…\n", run_block(code, ROOT, {}) or "")
    assert matches("one\ntwo …\n…\n", "one two three\n")
    assert matches("14.… % read", "14.1 % read")
    assert not matches("1.2…\n", "1.35\n")


def command_lines(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every `ibforecast …` of a page, in blocks and between backticks, as words; comments are left out."""
    text = page.read_text("utf8")
    for block in blocks(text):
        if block.kind in ("", "sh", "bash", "console"):
            for number, line in enumerate(block.text.replace("\\\n", " ").splitlines()):
                if command := re.match(r"(?:\$ )?(?:\w+=\S+ )*ibforecast (.+)", line.strip()):
                    yield block.line + number, shlex.split(command[1], comments=True)
    outside = FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    for command in re.finditer(r"`ibforecast\s([^`]+)`", outside):
        yield outside.count("\n", 0, command.start()) + 1, command[1].replace("\\|", "|").split()


def problem(words: list[str]) -> str | None:
    """Name the verb or options that the command does not have; None if it has them all."""
    command: click.Command = main
    while isinstance(command, click.Group) and words:
        if not re.fullmatch("[a-z]+", words[0]):
            return None  # prose, such as `ibforecast VERB`
        verb = command.get_command(click.Context(command), words[0])
        if verb is None:
            return f"there is no {words[0]!r}"
        command, words = verb, words[1:]
    known = {name for option in command.params for name in option.opts}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known | {"--help"}]
    return f"{command.name} has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("name", PAGES)
def test_every_command_line_of_a_page_exists(name: str) -> None:
    wrong = [(line, words, problem(words)) for line, words in command_lines(PAGES[name]) if problem(words)]
    assert wrong == []


def test_command_lines_are_collected_and_checked(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Use `ibforecast fit a.csv`.\n\n```console\n$ ibforecast predict m \\\n  b.csv  # c\n```\n", "utf8")
    assert [words for _, words in command_lines(page)] == [["predict", "m", "b.csv"], ["fit", "a.csv"]]
    assert problem(["fit", "load.csv", "--horizon", "24", "--out=model"]) is None
    assert problem(["fleet", "fit", "meters.csv", "--horizon", "24"]) is None
    assert problem(["fit", "load.csv", "--horizn", "24"]) == "fit has no --horizn"
    assert problem(["fits", "load.csv"]) == "there is no 'fits'"
