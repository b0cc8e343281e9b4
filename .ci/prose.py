"""Check the prose for words that are not used here, or measure the share of docstring sentences that are hard to read.

    python .ci/prose.py check [FILE ...]     codespell, with its own dictionary and the house's list in prose.txt
    python .ci/prose.py measure [FOLDER ...] the share of 200 sentences drawn at random that break the rule of `faults`

codespell looks up words. A key of prose.txt may also be a phrase, because the pattern given to codespell for what a
word is starts with every phrase of the list. A phrase that a line break divides is not noticed by `check`.
"""

import ast
import os
import random
import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).resolve().parent
ROOT = HOME.parent
WORDS = HOME / "prose.txt"
READ = (
    *("src", "lab", "tests", "docs", "examples", "benchmarks", "page/src", ".ci", "conftest.py", "Makefile"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml", "mkdocs.yml", "constraints.txt"),
)
SAMPLE, SEED, LONGEST = 200, 2024, 35
NO_VERB = (
    "a an the this that these those it its their his her our your my what whatever which who whose whether where when "
    "how why if all any both each either every few many more most much neither no none some such one two three four "
    "five six seven eight nine ten of in on at by for from to with as and or but not only then so there"
)
"""Words that no imperative starts with."""

VERBS = frozenset({"return", "check", "warn", "say", "print", "make", "refuse", "require", "find", "count", "name"})
"""Verbs that may be followed by `of`, `that` or `which`."""


def listed() -> list[str]:
    """Return the words and phrases of the list."""
    return [line.partition("->")[0] for line in WORDS.read_text("utf8").splitlines()]


def pattern() -> str:
    """Return the pattern of a word for codespell: a phrase of the list, longest first, or a plain word."""
    phrases = sorted((key for key in listed() if not re.fullmatch(r"[\w'-]+", key)), key=len, reverse=True)
    ends = (r"(?=[\s\"'`)]|$)" if not phrase[-1].isalpha() else r"\b" for phrase in phrases)
    bounded = (rf"\b{re.escape(phrase)}{end}" for phrase, end in zip(phrases, ends, strict=True))
    return rf"(?i:{'|'.join(bounded)})|[\w\-'’]+"


def check(files: list[str]) -> int:
    """Run codespell over files, by default over all text that a person reads, and return its exit code."""
    from codespell_lib import main

    chosen = files or [os.path.relpath(ROOT / name) for name in READ if (ROOT / name).exists()]
    return main("--toml", str(ROOT / "pyproject.toml"), "--dictionary", f"{WORDS},-", "--regex", pattern(), *chosen)


class Sentence(NamedTuple):
    """A sentence of a docstring, and whether it opens the docstring of a function that is no property."""

    place: str
    text: str
    opens_function: bool


def sentences(folders: list[Path]) -> list[Sentence]:
    """Return the sentences of all docstrings in the Python files of some folders, without lists and examples."""
    collected = []
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            no_property = function and not any("property" in ast.unparse(one) for one in node.decorator_list)
            for number, text in enumerate(split(ast.get_docstring(node) or "")):
                place = f"{file}:{getattr(node, 'lineno', 1)}"
                collected.append(Sentence(place, text, bool(no_property and number == 0)))
    return collected


def split(docstring: str) -> list[str]:
    """Split a docstring into sentences. Indented blocks and `Paper:` notes are no sentences."""
    paragraphs = (part for part in re.split(r"\n\s*\n", docstring) if not part.startswith((" ", "\t", "-", "|", ">>>")))
    parts = (
        one for part in paragraphs for one in re.split(r"(?<=[.!?])\s+(?=[A-ZΑ-Ω`\"'(])", re.sub(r"\s+", " ", part))
    )
    return [one for one in parts if len(one.split()) > 1 and not one.startswith("Paper:")]


def faults(sentence: Sentence) -> list[str]:
    """Return the faults of a sentence.

    The rule: a sentence is hard to read if it contains a word or phrase of prose.txt, has more than 35 words, begins
    with a free relative (What, Whatever, Whoever, Whichever) and is no question, or opens the docstring of a function
    without a verb in the imperative. The last is decided by the first two words: the first is an article, pronoun,
    numeral, preposition or question word, or ends in a single s; or the second is of, that, between, which or whose,
    and the first is none of `VERBS`.
    """
    forbidden = set(listed())
    plain = re.sub(settings()["ignore-regex"], " ", sentence.text)
    reasons = [match[0] for match in re.finditer(pattern(), plain) if match[0].lower() in forbidden]
    words = sentence.text.split()
    if len(words) > LONGEST:
        reasons.append(f"{len(words)} words")
    if re.match(r"(What|Whatever|Whoever|Whichever)\b", sentence.text) and "?" not in sentence.text:
        reasons.append("free relative")
    first, second = (re.sub(r"\W", "", word).lower() for word in words[:2])
    noun = (
        first in NO_VERB.split()
        or re.search(r"[^s]s$", first)
        or (first not in VERBS and second in {"of", "that", "between", "which", "whose"})
    )
    if sentence.opens_function and noun:
        reasons.append("no imperative")
    return reasons


def settings() -> dict[str, str]:
    """Return the settings of codespell in pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["codespell"]


def measure(folders: list[str]) -> int:
    """Print the sentences of the sample that break the rule, and their share."""
    everything = sentences([Path(folder) for folder in folders or (ROOT / "src", ROOT / "lab" / "src")])
    sample = random.Random(SEED).sample(everything, min(SAMPLE, len(everything)))
    for sentence in sample:
        if reasons := faults(sentence):
            print(f"{sentence.place}: {sentence.text} [{'; '.join(reasons)}]")
    for name, chosen in (("sample", sample), ("all", everything)):
        hard = sum(bool(faults(sentence)) for sentence in chosen)
        print(f"{name}: {hard} of {len(chosen)} sentences are hard to read: {hard / len(chosen):.1%}")
    return 0


if __name__ == "__main__":
    verbs = {"check": check, "measure": measure}
    if len(sys.argv) < 2 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    sys.exit(verbs[sys.argv[1]](sys.argv[2:]))
