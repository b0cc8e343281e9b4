"""A hook of the documentation site: what pages say of files outside of docs/, which the site does not hold."""

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", flags=re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn links that leave docs/ into the path of their file, so that pages read well here and on a code host."""
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else OUTSIDE.sub(_told, part) for part in parts)


def _told(link: re.Match[str]) -> str:
    text, path = link[1].strip("`"), link[2]
    return f"`{path}`" if path.rstrip("/").endswith(text.rstrip("/")) else f"{link[1]} (`{path}`)"
