"""The fidelity of explanations against their cost: a labelled point per explainer and device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ibforecast.plots import labels
from ibforecast.plots.labels import FAINT, INK
from ibforecast_lab.plots.records import SIZE, WIDTH, Form, finish, paper, rendered, write_title

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_PANEL, _GAP, _TOP, _BOTTOM, _LEFT, _RIGHT = 3.1, 0.75, 0.62, 0.45, 0.65, 0.2
"""Inches."""

_DEVICES: dict[str, dict[str, Any]] = {
    "GPU": {"marker": "o", "markersize": 5},
    "CPU": {"marker": "s", "markersize": 7, "markerfacecolor": "none"},
}
_OTHER: dict[str, Any] = {"marker": "^", "markersize": 6}
_ASIDE = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
_DISTANCES = (6, 12, 20, 30, 42, 56)
"""Places for a name: the side of its point, and the distance in points (1/72 inch)."""

_MARKER = 4.5
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class CostPoint:
    """One explainer on one device; `emphasised` if the figure is about it."""

    explainer: str
    device: str
    forward_equivalents: float
    score: float
    emphasised: bool = False


def draw(panels: Mapping[str, Sequence[CostPoint]], form: Form) -> bytes:
    """Draw a panel per data set, one below the other, on one scale."""
    points = [point for panel in panels.values() for point in panel]
    height = _TOP + len(panels) * _PANEL + (len(panels) - 1) * _GAP + _BOTTOM
    with paper(height) as drawing:
        for row, (title, here) in enumerate(panels.items()):
            bottom = height - _TOP - row * (_PANEL + _GAP) - _PANEL
            across = (WIDTH - _LEFT - _RIGHT) / WIDTH
            axes = drawing.add_axes((_LEFT / WIDTH, bottom / height, across, _PANEL / height))
            _scale(axes, points)
            _draw_points(axes, here)
            finish(axes, "cost of an explanation, in forward passes", "fidelity score")
            write_title(axes, title)
            _write_names(axes, here)
        _write_legend(drawing, points)
        return rendered(drawing, form)


def _scale(axes: "matplotlib.axes.Axes", points: Sequence[CostPoint]) -> None:
    costs, scores = [point.forward_equivalents for point in points], [point.score for point in points]
    low, high = min(scores), max(scores)
    air = 0.08 * (high - low) or 0.1
    axes.set_xscale("log")
    axes.set_xlim(min(*costs, 1.0) / 1.6, max(*costs, 1.0) * 2.5)
    axes.set_ylim(low - air, high + air)
    ticks = [10**power for power in range(-2, 7) if axes.get_xlim()[0] <= 10**power <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.tick_params(which="minor", length=1.5, width=0.6, color=FAINT)
    axes.grid(color="#ECECEC", linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_points(axes: "matplotlib.axes.Axes", points: Sequence[CostPoint]) -> None:
    for explainer in dict.fromkeys(point.explainer for point in points):
        same = [point for point in points if point.explainer == explainer]
        axes.plot(
            [point.forward_equivalents for point in same],
            [point.score for point in same],
            color=FAINT,
            linewidth=0.9,
            zorder=2,
        )
    for point in points:
        style: dict[str, Any] = {"color": _colour(point), "linestyle": "", "zorder": 3}
        axes.plot([point.forward_equivalents], [point.score], **style | _DEVICES.get(point.device, _OTHER))


def _write_names(axes: "matplotlib.axes.Axes", points: Sequence[CostPoint]) -> None:
    """Write every explainer's name once, next to the first of its points, without touching points or other names."""
    to_points = 72 / axes.figure.dpi
    data = [(point.forward_equivalents, point.score) for point in points]
    places: list[tuple[float, float]] = (to_points * axes.transData.transform(data)).tolist()
    taken: list[Box] = [(x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER) for x, y in places]
    left, bottom, right, top = (float(edge) * to_points for edge in axes.get_window_extent().extents)
    named: set[str] = set()
    for point, (x, y) in zip(points, places, strict=True):
        if point.explainer in named:
            continue
        named.add(point.explainer)
        text = point.explainer.replace("_", " ")
        across, up = _size(text, point.emphasised)
        box, close = _free_place(x, y, across, up, taken, (left, bottom, right, top))
        taken.append(box)
        nearest = (_nearest(x, box[0], box[2]), _nearest(y, box[1], box[3]))
        line = {"arrowstyle": "-", "color": labels.GREY, "lw": 0.6, "shrinkA": 0, "shrinkB": 3, "relpos": nearest}
        axes.annotate(
            text,
            (point.forward_equivalents, point.score),
            xytext=((box[0] + box[2]) / 2 - x, (box[1] + box[3]) / 2 - y),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=SIZE,
            fontweight="bold" if point.emphasised else "normal",
            color=_colour(point) if point.emphasised else INK,
            arrowprops=None if close else line,
            zorder=4,
        )


def _free_place(x: float, y: float, across: float, up: float, taken: Sequence[Box], within: Box) -> tuple[Box, bool]:
    """Find the nearest place for a name that touches nothing and is inside the panel, and whether it is close.

    If there is no such place, return the first one tried.
    """
    boxes = []
    for distance, (right, above) in product(_DISTANCES, _ASIDE):
        middle_x = x + right * (distance + across / 2)
        middle_y = y + above * (distance + up / 2)
        boxes.append((middle_x - across / 2, middle_y - up / 2, middle_x + across / 2, middle_y + up / 2))
    free = (
        (number, box)
        for number, box in enumerate(boxes)
        if _lies_in(box, within) and not any(_touch(box, other) for other in taken)
    )
    number, box = next(free, (0, boxes[0]))
    return box, number < 4


def _lies_in(box: Box, within: Box) -> bool:
    return box[0] >= within[0] and box[1] >= within[1] and box[2] <= within[2] and box[3] <= within[3]


def _nearest(place: float, low: float, high: float) -> float:
    """Return the position on a side of the name, from 0 to 1, that is nearest to its point."""
    return 0.0 if place <= low else 1.0 if place >= high else 0.5


def _touch(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _size(text: str, bold: bool) -> tuple[float, float]:
    """Return width and height of a name, in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=["DejaVu Sans"], size=SIZE, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]), 1.25 * SIZE


def _write_legend(drawing: "matplotlib.figure.Figure", points: Sequence[CostPoint]) -> None:
    from matplotlib.lines import Line2D

    devices = dict.fromkeys(point.device for point in points)
    handles = [
        Line2D(
            [],
            [],
            label=f"timed on a {device}",
            linestyle="",
            **{"color": labels.BLUE} | _DEVICES.get(device, _OTHER),
        )
        for device in devices
    ]
    drawing.legend(handles=handles, loc="upper right", ncols=len(handles), fontsize=SIZE, frameon=False)


def _colour(point: CostPoint) -> str:
    return labels.VERMILLION if point.emphasised else labels.BLUE
