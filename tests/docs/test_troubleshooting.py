"""The page of error messages quotes messages that the library has."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
SOURCES = (ROOT / "src" / "ibforecast", ROOT / "lab" / "src" / "ibforecast_lab")


def texts_in_source() -> list[str]:
    """Return every text in the source of both packages, with … in place of values."""
    texts = []
    for path in (path for source in SOURCES for path in source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return [text.replace("'…'", "…").replace("{…}", "…") for text in texts]


TEXTS = texts_in_source()
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text("utf8"), flags=re.MULTILINE)


def test_the_page_quotes_many_messages_and_each_once() -> None:
    assert len(QUOTED) > 50
    assert len(set(QUOTED)) == len(QUOTED)


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_source(message: str) -> None:
    assert any(message in text for text in TEXTS), message
