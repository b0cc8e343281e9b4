"""Small multiples of curves: a grid of panels with one legend; each curve has a band over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ibforecast.plots import labels
from ibforecast.plots.labels import INK
from ibforecast_lab.plots.records import SIZE, WIDTH, Form, finish, paper, rendered

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_ROW, _AROUND = 1.45, 0.75
"""Inches: height of a row of panels, and of the legend with the names of the columns."""

_SMALL = 6.5
_LETTERS = 17
"""Number of small letters per inch."""

_TITLE: dict[str, Any] = {"fontsize": SIZE + 1, "fontweight": "bold", "color": INK}
_NOTE: dict[str, Any] = {"fontsize": _SMALL, "color": INK}

_STYLES: tuple[dict[str, Any], ...] = (
    {"color": labels.VERMILLION, "marker": "o"},
    {"color": labels.BLUE, "marker": "s"},
    {"color": labels.GREEN, "marker": "^"},
    {"color": labels.GREY, "marker": "D"},
    {"color": labels.PURPLE, "marker": "v"},
    {"color": labels.ORANGE, "marker": "P"},
    {"color": labels.SKY, "marker": "X"},
    {"color": labels.BLACK, "marker": "p"},
)
_LEVEL: dict[str, Any] = {"color": labels.BLACK, "linewidth": 1.0, "linestyle": (0, (3, 2)), "zorder": 2}

_HOLLOW: dict[str, Any] = {"marker": "o", "markersize": 5.5, "markerfacecolor": "white", "color": INK, "linestyle": ""}


@dataclass(frozen=True)
class Curve:
    """Points in order, the half-width of the band at each (None if one seed), and the index of the `default`."""

    name: str
    across: Sequence[float]
    up: Sequence[float]
    spread: Sequence[float | None]
    default: int | None = None


@dataclass(frozen=True)
class Panel:
    """Curves on one pair of axes, a level to compare them with (None if there is none), and the curves `not_run`."""

    curves: Sequence[Curve]
    level: float | None = None
    not_run: Sequence[str] = ()


@dataclass(frozen=True)
class Grid:
    """Panels row by row, with the names of `rows` and `columns`.

    `names` are the curves in the order of the legend; `level` and `default` are the legend's texts for those. `ticks`
    are the labels below each column if they are words instead of numbers, or below each row if they differ `by_row`;
    `limits` are the fixed ends of the axis. If the grid is `even`, the panels of a row share a scale.
    """

    panels: Sequence[Sequence[Panel]]
    rows: Sequence[str]
    columns: Sequence[str]
    across: str
    names: Sequence[str]
    level: str = ""
    default: str = ""
    ticks: Sequence[Sequence[str]] = ()
    limits: tuple[float, float] | None = None
    even: bool = False
    by_row: bool = False


def draw(grid: Grid, form: Form) -> bytes:
    """Draw the grid; the names of curves that were not run are written above their panel."""
    with paper(_AROUND + _ROW * len(grid.rows), layout="constrained") as drawing:
        every = drawing.subplots(
            len(grid.rows),
            len(grid.columns),
            squeeze=False,
            sharex="row" if grid.by_row else "col",
            sharey="row" if grid.even else False,
        )
        for row, (name, panels) in enumerate(zip(grid.rows, grid.panels, strict=True)):
            for column, panel in enumerate(panels):
                axes = every[row][column]
                _draw_panel(axes, panel, grid)
                last, first = row == len(grid.rows) - 1, column == 0
                finish(axes, grid.across if last else "", name if first else "")
                axes.grid(color="#ECECEC", linewidth=0.6)
                axes.set_axisbelow(True)
                if grid.limits:
                    axes.set_xlim(*grid.limits)
                if grid.ticks:
                    ticks = grid.ticks[row if grid.by_row else column]
                    axes.set_xticks(range(len(ticks)), ticks)
                    axes.set_xlim(-0.4, len(ticks) - 0.6)
                axes.tick_params(labelsize=_SMALL + 0.5)
                if row == 0:
                    lines = max(len(_note(panel, grid).splitlines()) for panel in panels)
                    axes.set_title(grid.columns[column], loc="left", pad=6 + 8 * lines, **_TITLE)
        _write_legend(drawing, grid)
        return rendered(drawing, form)


def _draw_panel(axes: "matplotlib.axes.Axes", panel: Panel, grid: Grid) -> None:
    if panel.level is not None:
        axes.axhline(panel.level, **_LEVEL)
    for curve in panel.curves:
        style = _STYLES[list(grid.names).index(curve.name) % len(_STYLES)]
        low = [value - (band or 0.0) for value, band in zip(curve.up, curve.spread, strict=True)]
        high = [value + (band or 0.0) for value, band in zip(curve.up, curve.spread, strict=True)]
        axes.fill_between(curve.across, low, high, color=style["color"], alpha=0.18, linewidth=0, zorder=1)
        axes.vlines(curve.across, low, high, color=style["color"], linewidth=0.9, zorder=2)
        axes.plot(curve.across, curve.up, linewidth=1.2, markersize=3.5, zorder=3, **style)
        if curve.default is not None:
            place = ([curve.across[curve.default]], [curve.up[curve.default]])
            axes.plot(*place, linestyle="", markersize=5.5, markerfacecolor="white", zorder=4, **style)
    if note := _note(panel, grid):
        axes.annotate(note, (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points", **_NOTE)
    if not panel.curves:
        axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", va="center", fontsize=SIZE, color=INK)


def _note(panel: Panel, grid: Grid) -> str:
    """Return the line above a panel that names what was not run; an empty panel has its own text instead."""
    if not panel.curves or not panel.not_run:
        return ""
    across = int(_LETTERS * 0.8 * WIDTH / len(grid.columns))
    return fill(f"not run: {', '.join(panel.not_run)}", across, break_on_hyphens=False, break_long_words=False)


def _write_legend(drawing: "matplotlib.figure.Figure", grid: Grid) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], label=name, linewidth=1.2, markersize=4, **_STYLES[number % len(_STYLES)])
        for number, name in enumerate(grid.names)
    ]
    if grid.level:
        handles.append(Line2D([], [], label=grid.level, **_LEVEL))
    if grid.default:
        handles.append(Line2D([], [], label=grid.default, **_HOLLOW))
    drawing.legend(handles=handles, loc="outside upper left", ncols=len(handles), fontsize=SIZE, frameon=False)
