"""Heat maps of shares, one for each channel that is forecast, drawn by matplotlib."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from ibforecast.core.errors import UsageError
from ibforecast.core.files import write_atomically
from ibforecast.plots import labels
from ibforecast.plots.extra import needs
from ibforecast.plots.sheet import NAME_SIZE, NUMBER_SIZE
from ibforecast.plots.static import house_style

SUFFIXES = (".png", ".svg")
"""The suffixes of the files that are drawn."""

_WIDTH, _ROW, _AROUND, _DPI = 7.0, 0.22, 0.85, 160
"""In inches: the width of the figure, the height of a row, and the space around the rows of a panel."""

_TICKS, _NAME = 12, 25
"""The largest number of labels along the steps, and of characters in a name."""

_CHARACTER = 0.0125
"""About the width of a character of a label, as a share of the width of a panel."""


@dataclass(frozen=True)
class HeatMap:
    """Shares of one channel: a row per source, a column per place; NaN where nothing is ever read."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: Float64[np.ndarray, "row column"]


def check_suffix(path: Path) -> str:
    """Return the suffix of a picture's file; refuse any other."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError("a picture's file must end in .png or .svg", repr(path.name), f"try {path.stem + '.png'!r}")
    return suffix


def ticks_of(columns: Sequence[str]) -> list[int]:
    """Return the columns that get a label, from the last one on, as many as fit next to each other."""
    ticks, left = list[int](), float("inf")
    for tick in range(len(columns) - 1, -1, -len(columns) // _TICKS):
        half = _CHARACTER * len(columns) * (len(columns[tick]) + 1) / 2
        if tick + half <= left:
            ticks.append(tick)
            left = tick - half
    return ticks


def draw(maps: Sequence[HeatMap], path: Path, across: str, scale: str) -> None:
    """Draw heat maps below each other into a file, all with one scale of colours.

    `across` is the label of the columns and `scale` that of the colours.
    """
    suffix = check_suffix(path)
    with needs("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import PowerNorm
        from matplotlib.figure import Figure
    heights = [_AROUND + _ROW * len(each.rows) for each in maps]
    largest = max((float(np.nanmax(each.shares)) for each in maps if np.isfinite(each.shares).any()), default=1.0)
    # One channel usually has most of the shares; roots keep the others visible.
    colours = PowerNorm(0.5, vmin=0, vmax=100 * largest or 1)
    with house_style():
        drawing = Figure(figsize=(_WIDTH, sum(heights)), dpi=_DPI, layout="constrained")
        FigureCanvasAgg(drawing)
        panels = drawing.subplots(len(maps), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axes, each in zip(panels, maps, strict=True):
            image = axes.imshow(100 * each.shares, aspect="auto", cmap="Blues", norm=colours)
            ticks = ticks_of(each.columns)
            axes.set_xticks(ticks, [each.columns[tick] for tick in ticks])
            names = [labels.shortened(name, _NAME) for name in each.rows]
            axes.set_yticks(range(len(names)), names, parse_math=False)
            axes.tick_params(length=2, labelsize=NUMBER_SIZE, labelcolor=labels.INK, color=labels.FAINT)
            axes.spines[:].set_color(labels.FAINT)
            axes.set_title(
                labels.shortened(each.title, 60), loc="left", fontsize=NAME_SIZE, fontweight="bold", parse_math=False
            )
            axes.set_xlabel(across, fontsize=NUMBER_SIZE, color=labels.INK)
        bar = drawing.colorbar(image, ax=list(panels), fraction=0.03, pad=0.02)
        bar.set_label(scale, fontsize=NUMBER_SIZE, color=labels.INK)
        bar.ax.tick_params(labelsize=NUMBER_SIZE, labelcolor=labels.INK)
        buffer = BytesIO()
        # Without software and date, the same shares give the same file.
        drawing.savefig(
            buffer,
            facecolor="white",
            format=suffix[1:],
            metadata={"Software": None} if suffix == ".png" else {"Date": None},
        )
    write_atomically(path, buffer.getvalue())
