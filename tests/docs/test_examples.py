"""Examples that a page explains contain the code of that page, which `test_blocks` runs."""

import ast
from pathlib import Path

from tests.docs.test_blocks import blocks

ROOT = Path(__file__).parents[2]


def test_the_metered_source_is_the_code_of_its_page() -> None:
    example = (ROOT / "examples" / "metered_source.py").read_text("utf8")
    page = blocks((ROOT / "docs" / "metered.md").read_text("utf8"))
    code = "\n".join(block.text for block in page if block.kind == "python")
    assert [ast.dump(node) for node in ast.parse(example).body[1:]] == [ast.dump(node) for node in ast.parse(code).body]
