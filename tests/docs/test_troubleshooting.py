"""The messages people look up are those the library speaks."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"


def spoken() -> list[str]:
    """Every text in the source, with … where a value goes."""
    texts = []
    for path in (ROOT / "src" / "ibforecast").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return [text.replace("'…'", "…").replace("{…}", "…") for text in texts]


SPOKEN = spoken()
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE.read_text("utf8"), flags=re.MULTILINE)


def test_the_page_quotes_the_messages_of_every_kind() -> None:
    assert len(QUOTED) > 50
    assert len(set(QUOTED)) == len(QUOTED)


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_one_the_library_speaks(message: str) -> None:
    assert any(message in text for text in SPOKEN), message
