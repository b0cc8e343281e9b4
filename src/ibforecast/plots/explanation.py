"""The figure of one window's forecast and explanation, written to a file. Paper: Figure "case study"."""

from collections.abc import Callable
from pathlib import Path

from ibforecast.core.account import Account
from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically
from ibforecast.plots import interactive, static
from ibforecast.plots.static import figure

__all__ = ["SUFFIXES", "draw", "figure"]

_RENDERERS: dict[str, Callable[[Account], bytes]] = {
    ".png": static.to_png,
    ".svg": static.to_svg,
    ".html": interactive.to_html,
}

SUFFIXES = tuple(_RENDERERS)
"""The endings `draw` knows: two still pictures and a page for the browser."""


def draw(account: Account, path: Path | str) -> None:
    """Draw an account into a file, as its suffix asks: .png, .svg, or .html, which works offline.

    The same account gives the same bytes, and the file is either whole or not there.
    """
    path = Path(path)
    write_atomically(path, _RENDERERS[check_suffix(path)](account))


def check_suffix(path: Path) -> str:
    """Return the ending of a figure's file; another is refused."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"a figure's file must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
            repr(path.name),
            f"try {path.stem + '.png'!r}",
        )
    return suffix
