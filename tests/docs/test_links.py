"""Every link of the repository's Markdown leads to a file, and to a heading if it names one.

`mkdocs --strict` checks only the pages in docs/.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
OTHERS = {".venv", ".git", "node_modules", "build", "dist", "demo", "site"}
"""Folders with files of other projects, and folders that are built."""

TEMPLATE = Path("lab/src/ibforecast_lab/experiments/results.md")
"""The template of docs/results.md, whose links are those of that page."""

CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<target>[^()\s]+)(?: \"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(?P<words>.+?) *#*$", re.MULTILINE)


def pages() -> list[Path]:
    here = (path.relative_to(ROOT) for path in ROOT.rglob("*.md"))
    return sorted(ROOT / path for path in here if path != TEMPLATE and not OTHERS & {*path.parts[:-1]})


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, by the rule of GitHub."""
    seen: dict[str, int] = {}
    found = set()
    for heading in HEADING.finditer(re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf8"), flags=re.M | re.S)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading["words"])
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        count = seen[anchor] = seen.get(anchor, -1) + 1
        found.add(f"{anchor}-{count}" if count else anchor)
    return frozenset(found)


def broken(page: Path, text: str) -> Iterator[str]:
    """Yield the links of a page's text that lead nowhere."""
    for link in LINK.finditer(CODE.sub("", text)):
        path, _, anchor = unquote(link["target"]).partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield f"{page.relative_to(ROOT)}: {link['target']}"


def test_every_internal_link_leads_to_a_file_and_a_heading() -> None:
    assert [link for page in pages() for link in broken(page, page.read_text("utf8"))] == []


def test_a_link_to_a_missing_file_or_heading_is_found() -> None:
    page = ROOT / "SECURITY.md"
    text = "[a](docs/promises.md) [b](docs/promises.md#none) [c](none.md) [d](https://x.org) `[e](f)` [g](#security)"
    assert list(broken(page, text)) == ["SECURITY.md: docs/promises.md#none", "SECURITY.md: none.md"]
