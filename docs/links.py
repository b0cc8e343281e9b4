"""A hook of the documentation site: links to files outside docs/, which the site does not contain."""

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links that leave docs/ by the path of their file; on a code host the links stay as they are."""
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else OUTSIDE.sub(_as_path, part) for part in parts)


def _as_path(link: re.Match[str]) -> str:
    text, path = link[1].strip("`"), link[2]
    return f"`{path}`" if path.rstrip("/").endswith(text.rstrip("/")) else f"{link[1]} (`{path}`)"
