"""Small multiples of dots: a row per model, a column per measure, our number with its spread and the published one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ibforecast.plots import labels
from ibforecast.plots.labels import INK
from ibforecast_lab.plots.records import SIZE, Form, finish, paper, rendered

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_ROW, _AROUND = 0.24, 1.15
"""Inches: height of a row, and of legend, names and numbers together."""

_OWN: dict[str, Any] = {"marker": "o", "markersize": 4.5, "color": labels.VERMILLION, "linestyle": ""}
_PRINTED: dict[str, Any] = {
    "marker": "D",
    "markersize": 4.5,
    "color": labels.BLUE,
    "markerfacecolor": "white",
    "linestyle": "",
}
_STRIPE = "#F5F5F5"


@dataclass(frozen=True)
class Dot:
    """Our number with its spread over seeds, and the published one; each None if there is none."""

    own: float | None = None
    spread: float | None = None
    printed: float | None = None


@dataclass(frozen=True)
class DotRow:
    """A model by name with a dot for each measure; a line separates a row that `heads` a group from the row above."""

    name: str
    dots: Sequence[Dot]
    heads: bool = False
    run: bool = True


def draw(rows: Sequence[DotRow], measures: Sequence[str], form: Form) -> bytes:
    """Draw a panel per measure over the same rows; the name of a model that was not run says so."""
    with paper(_AROUND + _ROW * len(rows), layout="constrained") as drawing:
        every = drawing.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for column, (axes, measure) in enumerate(zip(every, measures, strict=True)):
            _draw_column(axes, rows, column)
            finish(axes, "", "")
            axes.set_title(measure, fontsize=SIZE, fontweight="bold", loc="left", color=INK)
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
            axes.tick_params(axis="x", labelsize=SIZE - 1.5)
            axes.locator_params(axis="x", nbins=3)
            axes.margins(x=0.1)
        names = [row.name if row.run else f"{row.name} (not run)" for row in rows]
        every[0].set_yticks(range(len(rows)), names)
        for label, row in zip(every[0].get_yticklabels(), rows, strict=True):
            label.set_fontweight("bold" if row.heads else "normal")
        every[0].set_ylim(len(rows) - 0.5, -0.5)
        _write_legend(drawing)
        return rendered(drawing, form)


def _draw_column(axes: "matplotlib.axes.Axes", rows: Sequence[DotRow], column: int) -> None:
    axes.grid(axis="x", color="#ECECEC", linewidth=0.6)
    axes.set_axisbelow(True)
    for height, row in enumerate(rows):
        dot = row.dots[column]
        if height % 2:
            axes.axhspan(height - 0.5, height + 0.5, color=_STRIPE, linewidth=0, zorder=0)
        if row.heads and height:
            axes.axhline(height - 0.5, color=labels.GREY, linewidth=0.6, zorder=1)
        if dot.printed is not None:
            axes.plot([dot.printed], [height], zorder=2, **_PRINTED)
        if dot.own is not None:
            axes.errorbar([dot.own], [height], xerr=[dot.spread or 0.0], zorder=3, elinewidth=1.2, **_OWN)


def _write_legend(drawing: "matplotlib.figure.Figure") -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label="ours, with the spread over seeds", **_OWN),
        Line2D([], [], label="published", **_PRINTED),
    ]
    drawing.legend(handles=handles, loc="outside upper left", ncols=2, fontsize=SIZE, frameon=False)
