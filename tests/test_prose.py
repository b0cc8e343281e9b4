"""Plain words: the linter of the prose notices every listed word and phrase, and no name in the packages is one."""

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
LINTER = ROOT / ".ci" / "prose.py"
FORBIDDEN = {"told", "asked", "found", "beside", "anew"}
"""Participles and adverbs: a name is a noun for a thing or a verb for an action."""


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prose", LINTER)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lint(file: Path) -> tuple[int, list[str]]:
    """Return the exit code and the lower-case words and phrases that were noticed, in order."""
    pytest.importorskip("codespell_lib", reason="needs codespell: pip install 'ibforecast[dev]'")
    command = [sys.executable, LINTER, "check", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert not done.stderr, done.stderr
    return done.returncode, [line.split(" ==> ")[0].split(": ")[1].lower() for line in done.stdout.splitlines()]


def test_the_linter_notices_every_listed_word_and_phrase(prose: ModuleType, tmp_path: Path) -> None:
    sample = tmp_path / "sample.md"
    # "what" is forbidden only as the first word of a sentence, "alone" only after another word.
    sample.write_text("".join("What \n" if key == "what" else f"the table {key} \n" for key in prose.listed()))
    code, noticed = lint(sample)
    assert noticed == prose.listed()
    assert code != 0


@pytest.mark.parametrize(
    "text",
    [
        "Return the rows of the table. None if there is no table.",
        "What is a token? It is the part of a channel in one patch; what it contains is a row of numbers.",
        "## What a token is",
        "Leave the other channels alone.",
        'rows = [alone for alone in alone if alone.name == "storytold"]',
        "The colours of neighbouring channels, a catalogue, and a normalised centre.",
    ],
)
def test_the_linter_passes_plain_sentences_and_technical_uses(text: str, tmp_path: Path) -> None:
    sample = tmp_path / "sample.md"
    sample.write_text(text + "\n")
    assert lint(sample) == (0, [])


def test_the_linter_notices_misspellings_and_where_they_are(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text('"""The table."""\n\nseperate = 1  # the ledger alone\n')
    assert lint(sample)[1] == ["seperate", "alone"]


@pytest.mark.parametrize(
    ("docstring", "faults"),
    [
        ("Return the rows of a table.", []),
        ("The rows of a table.", ["no imperative"]),
        ("Rows of a table.", ["no imperative"]),
        ("Probability that a gate opens.", ["no imperative"]),
        ("Process the rows.", []),
        ("Return " + "one and " * 18 + "more.", ["38 words"]),
    ],
)
def test_sentences_that_break_the_rule_are_counted(
    prose: ModuleType, tmp_path: Path, docstring: str, faults: list[str]
) -> None:
    (tmp_path / "module.py").write_text(f'def rows() -> None:\n    """{docstring}\n\n    Paper: Eq. 1, X.\n    """\n')
    (sentence,) = prose.sentences([tmp_path])
    assert prose.faults(sentence) == faults


def test_only_functions_need_an_imperative(prose: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        'class Table:\n    """The rows. What are rows? Numbers."""\n\n'
        '    @property\n    def rows(self):\n        """The rows."""\n'
    )
    sentences = prose.sentences([tmp_path])
    assert [sentence.text for sentence in sentences] == ["The rows.", "What are rows?", "The rows."]
    assert not any(prose.faults(sentence) for sentence in sentences)


def names_in(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the names that a file defines, with their lines: functions, classes, arguments and variables."""
    for node in ast.walk(ast.parse(file.read_text("utf8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def test_no_name_in_the_packages_is_a_participle() -> None:
    files = [file for folder in ("src", "lab/src") for file in sorted((ROOT / folder).rglob("*.py"))]
    assert files
    assert [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files
        for name, line in names_in(file)
        if FORBIDDEN & set(name.lower().split("_"))
    ] == []
