"""One window on its way through the four stages: a row for each result, a column for each channel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from ibforecast.plots import labels
from ibforecast.plots.labels import FAINT, GRID, INK
from ibforecast_lab.plots.records import SIZE, WIDTH, Form, paper, rendered

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_LEFT, _RIGHT, _GAP = 1.8, 0.26, 0.52
"""Inches: where the first panel begins, and the space after and between panels."""

_MARGIN, _TOP, _BETWEEN, _BOTTOM = 0.06, 0.78, 0.2, 0.4
_SMALL, _DARK = 6.5, 0.5
_DOTTED: Any = (0, (1.2, 1.6))
_TITLE: dict[str, Any] = {"fontsize": SIZE + 1, "fontweight": "bold", "color": INK}
_MARK: dict[str, Any] = {"fontsize": _SMALL + 0.5, "color": "#8A5A00", "va": "center", "clip_on": False}
_LINES: dict[str, dict[str, Any]] = {
    "read from the table": {"color": labels.GREY, "linewidth": 1.0, "zorder": 2},
    "context μ + σQ": {"color": labels.ORANGE, "linewidth": 1.1, "zorder": 2.2},
    "read by the readout": {"color": labels.BLUE, "linewidth": 1.4, "zorder": 2.4},
    "forecast": {"color": labels.VERMILLION, "linewidth": 1.6, "zorder": 2.6},
    "what followed": {"color": labels.BLACK, "linewidth": 1.0, "linestyle": _DOTTED, "zorder": 2.5},
}
"""The lines by what they mean, which is written in the legend."""

_CELLS_WITH_NUMBERS = 8
"""The largest number of patches whose probabilities are written into their cells."""

Steps = Float[np.ndarray, "look_back channel"]
Future = Float[np.ndarray, "horizon channel"]


@dataclass(frozen=True)
class Overview:
    """The results of each stage for one window; `allowance` is the number of tokens that the `budget` allows.

    History, level, scale, context, forecast and truth are in the units of the table, all others in units of the scale.
    `context` is μ + σQ over look-back and horizon, and `readout` the future deviation D̂.
    """

    title: str
    channels: Sequence[str]
    history: Steps
    level: Float[np.ndarray, " channel"]
    scale: Float[np.ndarray, " channel"]
    context: Float[np.ndarray, "steps channel"]
    deviation: Steps
    logits: Float[np.ndarray, "patch channel"]
    probability: Float[np.ndarray, "patch channel"]
    mask: Bool[np.ndarray, "patch channel"]
    evidence: Steps
    readout: Future
    forecast: Future
    truth: Future
    budget: float
    allowance: int

    @property
    def patch_len(self) -> int:
        """Number of steps of a patch."""
        return len(self.history) // len(self.mask)

    @property
    def past(self) -> Float[np.ndarray, " look_back"]:
        """The steps of the look-back, counted from the moment of the forecast: −L + 1 to 0."""
        return np.arange(len(self.history)) - len(self.history) + 1.0

    @property
    def ahead(self) -> Float[np.ndarray, " horizon"]:
        """The steps of the horizon: 1 to H."""
        return np.arange(len(self.forecast)) + 1.0

    @property
    def edges(self) -> Float[np.ndarray, " edge"]:
        """The borders of the patches."""
        return np.asarray(self.past[0] - 0.5 + self.patch_len * np.arange(len(self.mask) + 1.0))


@dataclass(frozen=True)
class _Row:
    """A result: the number of its stage (0: none), words and formulas next to it, its height, and what draws it."""

    stage: int
    title: str
    words: Sequence[str]
    height: float
    draw: Callable[["matplotlib.axes.Axes", Overview, int], None]


def draw(overview: Overview, form: Form) -> bytes:
    """Draw the window, what each stage makes of it, and the forecast, on one time axis."""
    rows = _rows(overview)
    height = _TOP + sum(row.height for row in rows) + (len(rows) - 1) * _BETWEEN + _BOTTOM
    with paper(height) as drawing:
        _write_head(drawing, overview, height)
        top = height - _TOP
        for row in rows:
            _write_words(drawing, row, top, height)
            axes = [_panel(drawing, overview, column, top, row.height, height) for column in _columns(overview)]
            for column, panel in enumerate(axes):
                row.draw(panel, overview, column)
            if row is rows[0]:
                for panel, name in zip(axes, overview.channels, strict=True):
                    panel.set_title(name, fontsize=SIZE + 1, fontweight="bold", color=INK, pad=5, parse_math=False)
            if row is rows[-1]:
                _label_steps(axes, overview)
            top -= row.height + _BETWEEN
        return rendered(drawing, form)


def _columns(overview: Overview) -> range:
    return range(len(overview.channels))


def _rows(overview: Overview) -> list[_Row]:
    patches, channels = overview.mask.shape
    allowed = f"⌊ρPC⌋ = ⌊{overview.budget:g}·{patches}·{channels}⌋ = {overview.allowance}"
    opened = int(overview.mask.sum())
    return [
        _Row(0, "look-back X", ["and its context $\\mathcal{C}$: level μ,", "scale σ, profile Q"], 0.95, _draw_window),
        _Row(1, "Decompose", ["deviation,", r"$D = (X-\mu)/\sigma - Q^{per}$"], 0.72, _draw_deviation),
        _Row(
            2,
            "Score",
            [f"{overview.mask.size} tokens of {overview.patch_len} steps,", r"a logit $\ell$ for each"],
            0.72,
            _draw_logits,
        ),
        _Row(
            3,
            "Gate",
            ["p in %; the mask m opens", "p > ½, but no more than", f"{allowed}; here {opened}"],
            0.62,
            _draw_gates,
        ),
        _Row(4, "Read out", [r"evidence $\bar{m} \odot D$,", r"future deviation $\hat{D}$"], 0.72, _draw_evidence),
        _Row(0, "forecast Ŷ", [r"$\hat{Y} = \sigma\,(\hat{D} + Q^{per}) + \mu$"], 0.95, _draw_forecast),
    ]


def _panel(
    drawing: "matplotlib.figure.Figure", overview: Overview, column: int, top: float, own: float, height: float
) -> "matplotlib.axes.Axes":
    count = len(overview.channels)
    width = (WIDTH - _LEFT - _RIGHT - (count - 1) * _GAP) / count
    left = _LEFT + column * (width + _GAP)
    axes = drawing.add_axes((left / WIDTH, (top - own) / height, width / WIDTH, own / height))
    axes.set_xlim(overview.edges[0], overview.ahead[-1] + 0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.6)
    axes.tick_params(length=2, width=0.6, color=FAINT, labelcolor=INK, labelsize=_SMALL, pad=2, labelbottom=False)
    axes.set_xticks([])
    axes.axvline(0.5, color=INK, linewidth=0.8, zorder=1)
    return axes


def _write_head(drawing: "matplotlib.figure.Figure", overview: Overview, height: float) -> None:
    from matplotlib.lines import Line2D

    drawing.text(_MARGIN / WIDTH, 1 - 0.17 / height, overview.title, va="center", parse_math=False, **_TITLE)
    handles = [Line2D([], [], label=label, **look) for label, look in _LINES.items()]
    drawing.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(_MARGIN / WIDTH, 1 - 0.27 / height),
        borderaxespad=0,
        borderpad=0,
        ncols=len(handles),
        columnspacing=1.8,
        handlelength=1.6,
        fontsize=SIZE - 0.5,
        frameon=False,
    )


def _write_words(drawing: "matplotlib.figure.Figure", row: _Row, top: float, height: float) -> None:
    left = _MARGIN
    if row.stage:
        circle = {"boxstyle": "circle,pad=0.28", "facecolor": labels.BLUE, "edgecolor": "none"}
        across, up = (left + 0.09) / WIDTH, (top - 0.1) / height
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold", "fontsize": SIZE - 0.5}
        drawing.text(across, up, str(row.stage), color="white", bbox=circle, **look)
        left += 0.28
    drawing.text(left / WIDTH, (top - 0.1) / height, row.title, va="center", **_TITLE)
    for line, words in enumerate(row.words):
        up = (top - 0.3 - 0.155 * line) / height
        drawing.text(_MARGIN / WIDTH, up, words, fontsize=SIZE - 0.5, color=INK, va="center")


def _draw_window(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    level, scale = overview.level[column], overview.scale[column]
    axes.axhspan(level - scale, level + scale, color=labels.ORANGE, alpha=0.13, linewidth=0)
    axes.axhline(level, color=labels.ORANGE, linewidth=0.8, linestyle=_DOTTED)
    _draw_context(axes, overview, column)
    axes.plot(overview.past, overview.history[:, column], **_LINES["read from the table"])
    for words, height in (("μ", level), ("+σ", level + scale), ("−σ", level - scale)):
        axes.text(overview.ahead[-1] + 2.5, height, words, **_MARK)
    _scale_units(axes, overview, column)


def _draw_deviation(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    _draw_patches(axes, overview)
    axes.plot(overview.past, overview.deviation[:, column], **_LINES["read from the table"])
    _scale_deviations(axes, overview)


def _draw_logits(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    middles = (overview.edges[1:] + overview.edges[:-1]) / 2
    colours = [labels.BLUE if opened else FAINT for opened in overview.mask[:, column]]
    axes.axhline(0, color=FAINT, linewidth=0.6)
    axes.bar(middles, overview.logits[:, column], 0.84 * overview.patch_len, color=colours)
    low, high = min(overview.logits.min(), 0.0), max(overview.logits.max(), 0.0)
    axes.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
    axes.locator_params(axis="y", nbins=3)


def _draw_gates(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    from matplotlib.patches import Rectangle

    for left, probability, opened in zip(
        overview.edges[:-1], overview.probability[:, column], overview.mask[:, column], strict=True
    ):
        corner, width = (left + 0.05 * overview.patch_len, 0.1), 0.9 * overview.patch_len
        shade: dict[str, Any] = {"facecolor": labels.BLUE, "alpha": float(probability), "linewidth": 0}
        axes.add_patch(Rectangle(corner, width, 0.8, **shade))
        edge: dict[str, Any] = {
            "edgecolor": labels.VERMILLION if opened else FAINT,
            "linewidth": 1.8 if opened else 0.6,
        }
        axes.add_patch(Rectangle(corner, width, 0.8, fill=False, **edge))
        if len(overview.mask) <= _CELLS_WITH_NUMBERS:
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": _SMALL - 0.5}
            colour = "white" if probability > _DARK else INK
            axes.text(left + overview.patch_len / 2, 0.48, f"{100 * probability:.0f}", color=colour, **look)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)


def _draw_evidence(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    _draw_patches(axes, overview)
    for left, opened in zip(overview.edges[:-1], overview.mask[:, column], strict=True):
        if opened:
            axes.axvspan(left, left + overview.patch_len, color=labels.BLUE, alpha=0.16, linewidth=0, zorder=0)
    axes.plot(overview.past, overview.evidence[:, column], **_LINES["read by the readout"])
    axes.plot(overview.ahead, overview.readout[:, column], **_LINES["forecast"])
    _scale_deviations(axes, overview)


def _draw_forecast(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    steps, patch_len = slice(len(overview.past), None), overview.patch_len
    _draw_context(axes, overview, column)
    context, forecast = overview.context[steps, column], overview.forecast[:, column]
    axes.fill_between(overview.ahead, context, forecast, color=labels.VERMILLION, alpha=0.2, linewidth=0)
    for patch in np.flatnonzero(overview.mask[:, column]):
        read = slice(patch * patch_len, (patch + 1) * patch_len)
        axes.axvspan(*overview.edges[patch : patch + 2], color=labels.BLUE, alpha=0.16, linewidth=0, zorder=0)
        axes.plot(overview.past[read], overview.history[read, column], **_LINES["read by the readout"])
    axes.plot(overview.ahead, overview.truth[:, column], **_LINES["what followed"])
    axes.plot(overview.ahead, forecast, **_LINES["forecast"])
    _scale_units(axes, overview, column)


def _draw_context(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    axes.plot((*overview.past, *overview.ahead), overview.context[:, column], **_LINES["context μ + σQ"])


def _draw_patches(axes: "matplotlib.axes.Axes", overview: Overview) -> None:
    axes.vlines(overview.edges, 0, 1, transform=axes.get_xaxis_transform(), color=GRID, linewidth=0.6, zorder=0)
    axes.axhline(0, color=FAINT, linewidth=0.6, zorder=1)


def _scale_units(axes: "matplotlib.axes.Axes", overview: Overview, column: int) -> None:
    """Give the first and the last row of a channel the same scale."""
    drawn = [overview.history, overview.context, overview.forecast, overview.truth]
    values = np.concatenate([values[:, column] for values in drawn])
    low, high = np.nanmin(values), np.nanmax(values)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axes.locator_params(axis="y", nbins=4)


def _scale_deviations(axes: "matplotlib.axes.Axes", overview: Overview) -> None:
    """Give deviation, evidence and readout of all channels the same scale."""
    values = np.concatenate([overview.deviation, overview.evidence, overview.readout])
    low, high = np.nanmin(values), np.nanmax(values)
    axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axes.locator_params(axis="y", nbins=4)


def _label_steps(every: Sequence["matplotlib.axes.Axes"], overview: Overview) -> None:
    last, horizon, quarter = len(overview.past), len(overview.ahead), len(overview.past) // 4
    every[len(every) // 2].set_xlabel("steps before and after the forecast is made", fontsize=SIZE - 0.5, color=INK)
    places = [*range(-last, 1, quarter), horizon]
    for axes in every:
        axes.set_xticks(places, [f"{place}".replace("-", "−") for place in places])
        axes.tick_params(labelbottom=True)
