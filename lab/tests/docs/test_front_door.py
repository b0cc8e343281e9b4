"""The first page stays short; its code and output are compared by tests/docs/test_blocks.py."""

from pathlib import Path

README = Path(__file__).parents[3] / "README.md"
LONGEST = 600


def test_readme_is_short() -> None:
    assert len(README.read_text("utf8").split()) <= LONGEST
