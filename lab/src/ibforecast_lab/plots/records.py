"""Shared by all figures of records: their size, their axes, and their conversion to bytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, get_args

from ibforecast.plots.extra import needs
from ibforecast.plots.labels import FAINT, INK
from ibforecast.plots.static import house_style

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

Form = Literal["png", "svg"]
FORMS: tuple[Form, ...] = get_args(Form)
"""Pixels, or vectors whose text stays text."""

WIDTH = 7.4
"""Inches: letters of `SIZE` points are still legible in a figure as wide as a README."""

SIZE = 8
_DPI = 160
_METADATA: dict[Form, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}


@contextmanager
def paper(height: float, **how: Any) -> Iterator["matplotlib.figure.Figure"]:
    """Make an empty figure of the usual width; drawings inside the block have the house's style."""
    with needs("matplotlib"):
        from matplotlib.figure import Figure
    with house_style():
        yield Figure(figsize=(WIDTH, height), dpi=_DPI, **how)


def rendered(drawing: "matplotlib.figure.Figure", form: Form) -> bytes:
    """Render a figure as the bytes of a file; the same figure gives the same bytes."""
    buffer = BytesIO()
    with house_style():
        drawing.savefig(buffer, format=form, facecolor="white", metadata=_METADATA[form])
    return buffer.getvalue()


def finish(axes: "matplotlib.axes.Axes", across: str, up: str) -> None:
    """Label the axes and draw their frame in a faint colour."""
    axes.set_xlabel(across, fontsize=SIZE, color=INK)
    axes.set_ylabel(up, fontsize=SIZE, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.6)
    axes.tick_params(length=2, width=0.6, color=FAINT, labelcolor=INK, labelsize=SIZE)


def write_title(axes: "matplotlib.axes.Axes", title: str, under: str = "") -> None:
    """Write a title above the axes and, if there is one, a line under it."""
    pad = 18 if under else 6
    axes.set_title(title, fontsize=SIZE + 1, fontweight="bold", loc="left", color=INK, pad=pad)
    if under:
        axes.annotate(
            under, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", fontsize=SIZE, color=INK
        )
