"""A scene as PNG, drawn by matplotlib: a row per channel on one time axis, with its profile at the right."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ibforecast.plots import labels
from ibforecast.plots.extra import needs
from ibforecast.plots.scene import Row, Scene, Side, Tick
from ibforecast.plots.sheet import (
    HATCH,
    MARGIN,
    NAME_SIZE,
    NUMBER_SIZE,
    RATE_MIDDLE,
    RATE_SIZE,
    STROKES,
    SWATCH_AND_GAP,
    TITLE_MIDDLE,
    TITLE_SIZE,
    Box,
    Rule,
    Sheet,
    Stroke,
    band_fill,
    bar_fill,
    curve_stroke,
    line_swatch,
    response_stroke,
    sheet_of,
    swatch,
    swatch_fill,
)
from ibforecast.plots.waterfall import Waterfall

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_DPI = 160.0
_TALLEST = 40_000
"""The largest height in pixels; PNG allows 65,536, and most machines have too little memory for that."""

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "ibforecast",
    "hatch.linewidth": HATCH.width,
}
_OPEN: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6}
_MISSING: dict[str, Any] = {"edgecolor": HATCH.colour, "hatch": "/////", "linewidth": 0.0}


def to_png(scene: Scene) -> bytes:
    """Return a scene as PNG; the same scene gives the same bytes."""
    drawing = figure(scene)
    buffer = BytesIO()
    with house_style():
        drawing.savefig(buffer, facecolor="white", format="png", metadata={"Software": None})
    return buffer.getvalue()


def figure(scene: Scene) -> "matplotlib.figure.Figure":
    """Return a scene as a figure, to be restyled or saved; matplotlib's settings do not change."""
    with needs("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    sheet = sheet_of(scene)
    with house_style():
        inches = sheet.width / 72, sheet.height / 72
        drawing = Figure(figsize=inches, dpi=resolution(sheet))
        FigureCanvasAgg(drawing)
        _write(
            drawing, sheet, scene.headline, sheet.left, TITLE_MIDDLE, TITLE_SIZE, color=labels.BLACK, fontweight="bold"
        )
        _write(drawing, sheet, scene.rate, sheet.left, RATE_MIDDLE, RATE_SIZE)
        _draw_legend(drawing, scene, sheet)
        # Not joined by sharex, because its cost grows with the square of the number of rows.
        main = [_panel(drawing, sheet, sheet.main_box(row)) for row in range(sheet.rows)]
        side = [_panel(drawing, sheet, sheet.side_box(row)) for row in range(sheet.rows)]
        for number, row in enumerate(scene.rows):
            _draw_row(main[number], scene, row)
            _scale_values(main[number], row, sheet.value_ticks(scene, number))
            _write_name(main[number], row, sheet)
            _draw_side(side[number], row)
        _label_steps(main, scene.time.steps, sheet.time_ticks(scene), sheet)
        _label_steps(side, scene.phases.width, scene.phases.ticks, sheet)
        for axes in main:
            axes.grid(axis="x", color=STROKES["grid"].colour, linewidth=STROKES["grid"].width)
            axes.set_axisbelow(True)
        _name_sides(side, scene)
        if scene.waterfall is not None:
            _draw_waterfall(drawing, sheet, scene.waterfall)
    return drawing


def resolution(sheet: Sheet) -> float:
    """Return the pixels per inch: the usual number, or fewer for a sheet that would be too tall."""
    return min(_DPI, 72 * _TALLEST / sheet.height)


@contextmanager
def house_style() -> Iterator[None]:
    """Use our settings in this block, independent of the user's matplotlibrc, and restore the old ones."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _fractions(sheet: Sheet, across: float, down: float) -> tuple[float, float]:
    """Convert points from the top left corner to fractions of the sheet from the bottom left corner."""
    return across / sheet.width, 1 - down / sheet.height


def _panel(drawing: "matplotlib.figure.Figure", sheet: Sheet, box: Box) -> "matplotlib.axes.Axes":
    return drawing.add_axes(_placed(sheet, box))


def _placed(sheet: Sheet, box: Box) -> tuple[float, float, float, float]:
    """Return left, bottom, width and height of a rectangle as fractions of the sheet."""
    return *_fractions(sheet, box.left, box.bottom), box.width / sheet.width, box.height / sheet.height


def _write(
    drawing: "matplotlib.figure.Figure", sheet: Sheet, text: str, across: float, middle: float, size: float, **look: Any
) -> None:
    usual: dict[str, Any] = {"color": labels.INK, "va": "center_baseline", "parse_math": False}
    drawing.text(*_fractions(sheet, across, middle), text, fontsize=size, **usual | look)


def _pen(stroke: Stroke) -> dict[str, Any]:
    dashes: Any = (0, stroke.dashes) if stroke.dashes else "-"
    return {"color": stroke.colour, "linewidth": stroke.width, "linestyle": dashes}


def _draw_legend(drawing: "matplotlib.figure.Figure", scene: Scene, sheet: Sheet) -> None:
    for entry, left, middle in sheet.legend(scene.legend):
        _draw_swatch(drawing, sheet, entry.role, left, middle)
        _write(drawing, sheet, entry.text, left + SWATCH_AND_GAP, middle, NAME_SIZE, color=labels.BLACK)
    for key, left, middle in sheet.key(scene.key):
        _draw_rule(drawing, sheet, line_swatch(response_stroke(key.style), left, middle))
        _write(drawing, sheet, key.name, left + SWATCH_AND_GAP, middle, NUMBER_SIZE)


def _draw_swatch(drawing: "matplotlib.figure.Figure", sheet: Sheet, role: str, left: float, middle: float) -> None:
    sample = swatch(role, left, middle)
    if isinstance(sample, Box):
        _draw_box(drawing, sheet, sample, facecolor=swatch_fill(role), **_MISSING if role == "missing" else _OPEN)
    else:
        _draw_rule(drawing, sheet, sample)


def _draw_waterfall(drawing: "matplotlib.figure.Figure", sheet: Sheet, waterfall: Waterfall) -> None:
    heading: dict[str, Any] = {"color": labels.BLACK, "fontweight": "bold"}
    _write(drawing, sheet, waterfall.title, sheet.bar_edge, sheet.title_middle, NAME_SIZE, **heading)
    for rule in sheet.steps_between(waterfall):
        _draw_rule(drawing, sheet, rule)
    look: dict[str, Any] = {"color": labels.BLACK, "ha": "right"}
    for bar, box in sheet.bar_boxes(waterfall):
        middle = box.top + box.height / 2
        _draw_box(drawing, sheet, box, facecolor=bar_fill(bar), linewidth=0.0)
        _write(drawing, sheet, bar.text, sheet.bar_edge - 8, middle, NAME_SIZE, **look)
        _write(drawing, sheet, bar.number, sheet.width - MARGIN, middle, NAME_SIZE, **look)


def _draw_box(drawing: "matplotlib.figure.Figure", sheet: Sheet, box: Box, **look: Any) -> None:
    from matplotlib.patches import Rectangle

    across, up, width, height = _placed(sheet, box)
    drawing.add_artist(Rectangle((across, up), width, height, transform=drawing.transFigure, **look))


def _draw_rule(drawing: "matplotlib.figure.Figure", sheet: Sheet, rule: Rule) -> None:
    from matplotlib.lines import Line2D

    ends = _fractions(sheet, rule.left, rule.top), _fractions(sheet, rule.right, rule.bottom)
    places, heights = zip(*ends, strict=True)
    drawing.add_artist(Line2D(places, heights, transform=drawing.transFigure, **_pen(rule.stroke)))


def _draw_row(axes: "matplotlib.axes.Axes", scene: Scene, row: Row) -> None:
    for band in row.bands:
        look = _MISSING if band.state == "missing" else _OPEN
        axes.axvspan(band.first - 0.5, band.last + 0.5, zorder=1, facecolor=band_fill(band), **look)
    for depth, line in enumerate(row.lines):
        steps = range(line.first, line.first + len(line.values))
        stairs = "steps-mid" if line.role == "known" else "default"
        _draw_line(axes, steps, line.values, STROKES[line.role], zorder=2 + 0.1 * depth, drawstyle=stairs)
    axes.axvline(scene.time.made, zorder=3, **_pen(STROKES["made"]))


def _draw_line(
    axes: "matplotlib.axes.Axes", at: Sequence[float | int], values: Sequence[float | None], stroke: Stroke, **look: Any
) -> None:
    heights = np.array(values, dtype=np.float64)
    axes.plot(at, heights, marker=".", markersize=3, markevery=labels.isolated_steps(heights), **_pen(stroke), **look)


def _draw_side(axes: "matplotlib.axes.Axes", row: Row) -> None:
    side = row.side
    for border in side.borders:
        axes.axvline(border, **_pen(STROKES["axis"]))
    axes.axhline(0, zorder=1, **_pen(STROKES["axis"]))
    for mark in side.marks:
        axes.axvline(mark, **_pen(STROKES["made"]))
    for curve in side.curves:
        _draw_line(axes, curve.at, curve.values, curve_stroke(row, curve))
    axes.yaxis.tick_right()
    _scale_values(axes, side, side.ticks)
    axes.spines["left"].set_visible(False)
    axes.spines["right"].set(visible=True, color=STROKES["axis"].colour, linewidth=STROKES["axis"].width)


def _scale_values(axes: "matplotlib.axes.Axes", panel: Row | Side, ticks: Sequence[Tick]) -> None:
    rule = STROKES["axis"]
    axes.set_ylim(panel.low, panel.high)
    axes.set_yticks([tick.at for tick in ticks], [tick.lines[0] for tick in ticks])
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=rule.colour, linewidth=rule.width)
    axes.tick_params(length=2, width=rule.width, color=rule.colour, pad=2, labelbottom=False)
    axes.tick_params(labelcolor=labels.INK, labelsize=NUMBER_SIZE)


def _write_name(axes: "matplotlib.axes.Axes", row: Row, sheet: Sheet) -> None:
    axes.annotate(
        "\n".join(row.label),
        xy=(0, 0.5),
        xycoords="axes fraction",
        xytext=(-sheet.numbers, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=NAME_SIZE,
        linespacing=1.1,
        parse_math=False,
    )


def _name_sides(rows: "list[matplotlib.axes.Axes]", scene: Scene) -> None:
    rows[-1].set_xlabel(scene.phases.title, fontsize=NUMBER_SIZE, color=labels.INK, labelpad=3)
    rows[0].set_title(scene.rows[0].side.title, fontsize=NAME_SIZE, pad=4, color=labels.INK)
    behind = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1}
    look: dict[str, Any] = {"fontsize": NUMBER_SIZE, "va": "top", "color": labels.INK, "bbox": behind}
    for axes, row in zip(rows, scene.rows, strict=True):
        if row.kind == "known":
            axes.text(0.03, 0.96, row.side.title, transform=axes.transAxes, **look)


def _label_steps(rows: "list[matplotlib.axes.Axes]", steps: int, ticks: Sequence[Tick], sheet: Sheet) -> None:
    """Give all rows the same steps, with labels below the last row, and above the first if there are many rows."""
    positions, texts = [tick.at for tick in ticks], ["\n".join(tick.lines) for tick in ticks]
    for axes in rows:
        axes.set_xlim(-0.5, steps - 0.5)
        axes.set_xticks(positions)
    ends = rows[:: max(len(rows) - 1, 1)] if sheet.tall else rows[-1:]
    for axes in ends:
        axes.set_xticks(positions, texts)
    rows[-1].tick_params(axis="x", labelbottom=True)
    if sheet.tall:
        rows[0].tick_params(axis="x", labeltop=True)
