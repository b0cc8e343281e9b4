"""The figure of one window's forecast and explanation, written to a file. Paper: Figure "case study"."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ibforecast._version import __version__
from ibforecast.core.errors import UsageError
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.files import write_atomically
from ibforecast.core.receipt import Step
from ibforecast.core.verdict import Verification
from ibforecast.plots import static
from ibforecast.plots.page import moment, page
from ibforecast.plots.scene import Scene, scene_of
from ibforecast.plots.svg import to_svg

if TYPE_CHECKING:
    import matplotlib.figure

_PICTURES: dict[str, Callable[[Scene], bytes]] = {
    ".png": static.to_png,
    ".svg": lambda scene: to_svg(scene).encode(),
}

SUFFIXES = (*_PICTURES, ".html")
"""The suffixes that `draw` takes: two pictures, and the report of one explanation."""


def draw(
    explained: ExplainedForecast,
    path: Path | str,
    verify: Callable[[ExplainedForecast], Verification] | None = None,
    channel: str | None = None,
    step: Step = "mean",
) -> None:
    """Draw an explanation to a file, by its suffix: .png, .svg, or .html, a page that works offline.

    If the explanation has its model, a picture shows the receipt of `channel` at one step ahead or of its mean. By
    default it is the channel that the read values move most. The page starts with the mean and has all steps. The page
    shows the checks that `verify` makes, or says that nothing was checked. The same explanation gives the same picture,
    byte for byte. The file is written completely or not at all.
    """
    path = Path(path)
    suffix = check_suffix(path)
    if suffix in _PICTURES:
        content = _PICTURES[suffix](scene_of(explained, channel, step))
    else:
        content = _report(explained, verify, channel)
    write_atomically(path, content)


def figure(explained: ExplainedForecast, channel: str | None = None, step: Step = "mean") -> "matplotlib.figure.Figure":
    """Return an explanation as a matplotlib figure, to be restyled or saved."""
    return static.figure(scene_of(explained, channel, step))


def check_suffix(path: Path) -> str:
    """Return the suffix of a figure's file; refuse any other."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"a figure's file must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
            repr(path.name),
            f"try {path.stem + '.png'!r}",
        )
    return suffix


def _report(
    explained: ExplainedForecast, verify: Callable[[ExplainedForecast], Verification] | None, channel: str | None
) -> bytes:
    """Return the report of one explanation; all it shows of model and table is in the explanation."""
    channels = list(explained.channels)
    content = {
        "made": {"on": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "version": __version__},
        "model": {
            "name": f"model {explained.weights_sha256[:12]}",
            "horizon": explained.horizon,
            "channels": channels,
            "budget": explained.budget,
            "any_budget": False,
        },
        "table": {"id": "report", "name": "one explanation", "kind": "report", "channels": channels},
        "moments": [moment(explained, None if verify is None else verify(explained).checks, channel)],
    }
    return page(content)
