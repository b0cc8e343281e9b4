"""Gates as heat maps: a row per channel, a column per lag, the value in every cell, open gates outlined."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibforecast.plots import labels
from ibforecast.plots.labels import FAINT, INK
from ibforecast_lab.plots.records import SIZE, Form, finish, paper, rendered, write_title

if TYPE_CHECKING:
    import matplotlib.axes

_ROW, _AROUND = 0.32, 1.0
"""Inches: height of a channel's row, and of title and lags together."""

_CELLS_WITH_NUMBERS, _CHANNELS_WITH_NAMES = 12, 60
"""Largest numbers of patches and channels for which each of them is labelled."""

_DARK = 0.46
"""Value above which the number in a cell is white."""


@dataclass(frozen=True)
class GatePicture:
    """Values in [0, 1] by patch and channel, the names of both, and the mask (None if there is none).

    `where` is written under the title, `meaning` next to the colour bar.
    """

    title: str
    where: str
    meaning: str
    patches: Sequence[str]
    channels: Sequence[str]
    values: Sequence[Sequence[float]]
    mask: Sequence[Sequence[int]] | None = None


def draw(pictures: Sequence[GatePicture], form: Form) -> bytes:
    """Draw a panel per picture, one below the other; its height grows with the channels up to a limit."""
    heights = [_AROUND + _ROW * min(max(len(picture.channels), 4), _CHANNELS_WITH_NAMES) for picture in pictures]
    with paper(sum(heights), layout="constrained") as drawing:
        every = drawing.subplots(len(pictures), squeeze=False, height_ratios=heights)
        for (axes,), picture in zip(every, pictures, strict=True):
            _draw_panel(axes, picture)
        return rendered(drawing, form)


def _draw_panel(axes: "matplotlib.axes.Axes", picture: GatePicture) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("gates", ["white", labels.BLUE, "#003A5C"])
    by_channel = list(zip(*picture.values, strict=True))
    shown = axes.imshow(by_channel, cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    if len(picture.patches) <= _CELLS_WITH_NUMBERS and len(picture.channels) <= _CHANNELS_WITH_NAMES:
        _write_values(axes, by_channel)
    if picture.mask is not None:
        _outline(axes, picture.mask)
    _name(axes, picture)
    bar = axes.figure.colorbar(shown, ax=axes, fraction=0.03, pad=0.015)
    bar.set_label(picture.meaning, fontsize=SIZE, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, width=0.6, labelsize=SIZE, labelcolor=INK, color=FAINT)


def _write_values(axes: "matplotlib.axes.Axes", by_channel: Sequence[Sequence[float]]) -> None:
    for row, values in enumerate(by_channel):
        for column, value in enumerate(values):
            colour = "white" if value >= _DARK else labels.BLACK
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=SIZE, color=colour)


def _outline(axes: "matplotlib.axes.Axes", mask: Sequence[Sequence[int]]) -> None:
    from matplotlib.patches import Rectangle

    for column, gates in enumerate(mask):
        for row, opened in enumerate(gates):
            if opened:
                corner = (column - 0.46, row - 0.43)
                axes.add_patch(Rectangle(corner, 0.92, 0.86, fill=False, edgecolor=labels.VERMILLION, linewidth=2.0))


def _name(axes: "matplotlib.axes.Axes", picture: GatePicture) -> None:
    every = -(-len(picture.patches) // _CELLS_WITH_NUMBERS)
    columns = range(0, len(picture.patches), every)
    axes.set_xticks(columns, [picture.patches[column].replace("-", "−") for column in columns])
    rows = range(0, len(picture.channels), -(-len(picture.channels) // _CHANNELS_WITH_NAMES))
    axes.set_yticks(rows, [picture.channels[row] for row in rows])
    finish(axes, "steps before the forecast", "")
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    write_title(axes, picture.title, picture.where)
