"""The still figure of an account, by matplotlib: a row per channel on one time axis, its profile at the right."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from ibforecast.core.account import Account
from ibforecast.core.cycles import parts
from ibforecast.plots import labels
from ibforecast.plots.extra import needs

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

_DPI = 160
_TALLEST = 40_000
"""Pixels; the format ends at 65,536, and the memory of most machines long before."""

_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "svg.fonttype": "none",
    "svg.hashsalt": "ibforecast",
    "hatch.linewidth": 0.5,
}
_NAME_SIZE, _NUMBER_SIZE = 8, 7
FAINT = "#C8C8C8"
INK = "#333333"

_LINES: dict[str, dict[str, Any]] = {
    labels.LOOK_BACK: {"color": labels.GREY, "linewidth": 1.0, "zorder": 3},
    labels.TRUTH: {"color": labels.BLACK, "linewidth": 1.0, "zorder": 4},
    labels.FORECAST: {"color": labels.VERMILLION, "linewidth": 1.3, "linestyle": (0, (3.2, 1.4)), "zorder": 5},
    labels.EXPECTED: {"color": labels.BLUE, "linewidth": 0.9, "linestyle": (0, (1, 1.3)), "zorder": 2},
    labels.KNOWN: {"color": labels.PURPLE, "linewidth": 1.2, "drawstyle": "steps-mid", "zorder": 3},
}
_DASHES: tuple[Any, Any] = ("-", (0, (3.2, 1.4)))
_MADE: dict[str, Any] = {"color": INK, "linewidth": 0.8, "zorder": 2.5}
_OPEN: dict[str, Any] = {"facecolor": labels.GREEN, "alpha": 0.30, "edgecolor": "white", "linewidth": 0.6, "zorder": 1}
_MISSING: dict[str, Any] = {
    "facecolor": "#F2F2F2",
    "edgecolor": "#A0A0A0",
    "hatch": "/////",
    "linewidth": 0.0,
    "zorder": 1,
}


@dataclass(frozen=True)
class _Sheet:
    """Where everything goes, in inches from the top left corner; more channels make the sheet taller."""

    rows: int
    names: float
    numbers: float
    width: float = 10.0
    profile: float = 1.15
    between: float = 0.24
    right: float = 0.42
    bottom: float = 0.62

    @property
    def many(self) -> bool:
        return self.rows > labels.MANY

    @property
    def row(self) -> float:
        """Height of one row and the gap below it: full for a few channels, slim for many."""
        return float(np.interp(self.rows, [1, 7, 20, 50, 200], [1.6, 1.0, 0.72, 0.56, 0.4]))

    @property
    def top(self) -> float:
        """Height of title and legend, and of the second set of time labels a tall sheet has."""
        return 1.36 if self.many else 1.1

    @property
    def height(self) -> float:
        return self.top + self.rows * self.row + self.bottom

    @property
    def left(self) -> float:
        return self.names + self.numbers

    def box(self, row: int, *, beside: bool) -> tuple[float, float, float, float]:
        """Give a row's main panel, or the narrow one `beside` it, as fractions of the sheet."""
        main = self.width - self.left - self.between - self.profile - self.right
        start, span = (self.left + main + self.between, self.profile) if beside else (self.left, main)
        low = self.height - self.top - (row + 0.92) * self.row
        return start / self.width, low / self.height, span / self.width, 0.92 * self.row / self.height

    def at(self, across: float, down: float) -> tuple[float, float]:
        """Turn inches from the top left corner into fractions of the sheet."""
        return across / self.width, 1 - down / self.height


def to_png(account: Account) -> bytes:
    """Render as PNG; the same account gives the same bytes."""
    return _rendered(account, format="png", metadata={"Software": None})


def to_svg(account: Account) -> bytes:
    """Render as SVG with its text as text; the same account gives the same bytes."""
    return _rendered(account, format="svg", metadata={"Date": None})


def figure(account: Account) -> "matplotlib.figure.Figure":
    """Draw the account as a figure of your own, to be restyled or saved; matplotlib's settings stay as they were."""
    with needs("matplotlib"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    covariates = labels.covariates(account)
    names = labels.row_names((*account.channels, *covariates), 17)
    ranges = np.concatenate([labels.value_ranges(account), labels.known_ranges(account)])
    ticks = [labels.value_ticks(low, high, 2 if len(names) > labels.MANY else 3) for low, high in ranges.tolist()]
    key = _key(account)
    beside_numbers = (text for low, high in _beside(account) for text in labels.value_ticks(low, high, 3)[1])
    sheet = _Sheet(
        rows=len(names),
        names=0.2 + _widest((line for name in names for line in name.split("\n")), _NAME_SIZE),
        numbers=0.16 + _widest((text for _, texts in ticks for text in texts), _NUMBER_SIZE),
        profile=1.15 + 0.7 * (len(account.cycles) - 1),
        right=max(0.42, 0.16 + _widest(beside_numbers, _NUMBER_SIZE)),
        bottom=max(0.62, 0.46 + 0.16 * len(key)),
    )
    with house_style():
        drawing = Figure(figsize=(sheet.width, sheet.height), dpi=min(_DPI, _TALLEST / sheet.height))
        FigureCanvasAgg(drawing)
        _write_title(drawing, account, sheet)
        # Not joined by sharex, whose cost grows with the square of the rows.
        main = [drawing.add_axes(sheet.box(row, beside=False)) for row in range(sheet.rows)]
        beside = [drawing.add_axes(sheet.box(row, beside=True)) for row in range(sheet.rows)]
        expected = account.expected
        for row, axes in enumerate(main):
            _scale_values(axes, ranges[row].tolist(), ticks[row])
            _write_name(axes, names[row], sheet)
        for row, (axes, narrow) in enumerate(zip(main[: len(account.channels)], beside, strict=False)):
            _draw_tokens(axes, account, row)
            _draw_lines(axes, account, row, expected[:, row])
            _draw_profile(narrow, account, row)
        for number, (axes, narrow) in enumerate(
            zip(main[len(account.channels) :], beside[len(account.channels) :], strict=True)
        ):
            _draw_known(axes, account, number)
            _draw_response(narrow, account, number)
        _label_times(main, account, sheet)
        _label_phases(beside, account, sheet)
        _write_key(drawing, key, sheet)
    return drawing


def _beside(account: Account) -> list[tuple[float, float]]:
    """The ranges of all narrow panels, each once."""
    covariates = range(len(labels.covariates(account)))
    return [labels.profile_range(account), *(labels.response_range(account, number) for number in covariates)]


def _widest(texts: Iterable[str], size: int) -> float:
    """Measure the widest text, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=_STYLE["font.sans-serif"], size=size)
    widths = (text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] for text in texts)
    return max(float(width) for width in widths) / 72


@contextmanager
def house_style() -> Iterator[None]:
    """Draw alike whatever the user's matplotlibrc says, and leave it as it was."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _rendered(account: Account, **how: Any) -> bytes:
    drawing = figure(account)
    buffer = BytesIO()
    with house_style():
        drawing.savefig(buffer, facecolor="white", **how)
    return buffer.getvalue()


def _write_title(drawing: "matplotlib.figure.Figure", account: Account, sheet: _Sheet) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawing.text(
        *sheet.at(sheet.left, 0.18),
        labels.headline(account),
        fontsize=11,
        fontweight="bold",
        va="top",
        parse_math=False,
    )
    drawing.text(*sheet.at(sheet.left, 0.42), labels.rate_line(account), fontsize=9, color=INK, va="top")
    drawn = [name for name in _LINES if name != labels.TRUTH or account.truth is not None]
    drawn = [name for name in drawn if name != labels.KNOWN or account.known is not None]
    handles: list[Any] = [Line2D([], [], label=labels.line_name(account, name), **_LINES[name]) for name in drawn]
    handles.append(Patch(label=labels.OPEN, **_OPEN))
    if account.missing.any():
        handles.append(Patch(label=labels.MISSING, **_MISSING))
    handles.append(Line2D([], [], label=labels.MADE, marker="|", markersize=9, linestyle="", color=INK))
    drawing.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=sheet.at(sheet.left, 0.66),
        ncols=len(handles),
        borderpad=0,
        borderaxespad=0,
        columnspacing=1.4,
        handlelength=1.9,
        handletextpad=0.5,
        fontsize=8,
        frameon=False,
    )


def _key(account: Account) -> list[tuple[str, str, bool]]:
    """Name, colour and dash of the lines in the panels of responses; none where they need no key, or have no room."""
    told = labels.responses(account) if account.known is not None else []
    some = told if 1 < len(told) <= labels.MANY else []
    return [(labels.shortened(account.channels[column], 17), colour, dashed) for column, colour, dashed in some]


def _write_key(drawing: "matplotlib.figure.Figure", key: list[tuple[str, str, bool]], sheet: _Sheet) -> None:
    """Tell below the narrow panels which channel responds so."""
    from matplotlib.lines import Line2D

    left = sheet.width - sheet.profile - sheet.right
    for row, (name, colour, dashed) in enumerate(key):
        down = sheet.height - sheet.bottom + 0.38 + 0.16 * row
        (start, height), (end, _), (text, _) = (sheet.at(left + across, down) for across in (0.0, 0.24, 0.3))
        drawing.add_artist(Line2D([start, end], [height] * 2, color=colour, linestyle=_DASHES[dashed], linewidth=1.2))
        drawing.text(text, height, name, fontsize=_NUMBER_SIZE, color=INK, va="center", parse_math=False)


def _draw_tokens(axes: "matplotlib.axes.Axes", account: Account, row: int) -> None:
    for cells, look in ((account.mask, _OPEN), (account.missing, _MISSING)):
        for patch in np.flatnonzero(cells[:, row]):
            first = float(patch) * account.patch_len - 0.5
            axes.axvspan(first, first + account.patch_len, **look)


def _draw_lines(
    axes: "matplotlib.axes.Axes", account: Account, row: int, expected: Float64[np.ndarray, " steps"]
) -> None:
    past, future = np.arange(account.look_back), np.arange(account.look_back, len(account.times))
    _draw_line(axes, np.arange(len(account.times)), expected, labels.EXPECTED)
    _draw_line(axes, past, account.history[:, row], labels.LOOK_BACK)
    if account.truth is not None:
        _draw_line(axes, future, account.truth[:, row], labels.TRUTH)
    _draw_line(axes, future, account.forecast[:, row], labels.FORECAST)
    axes.axvline(account.look_back - 0.5, **_MADE)


def _draw_line(axes: "matplotlib.axes.Axes", steps: Any, values: Float64[np.ndarray, " steps"], name: str) -> None:
    axes.plot(steps, values, marker=".", markersize=3, markevery=labels.alone(values), **_LINES[name])


def _scale_values(
    axes: "matplotlib.axes.Axes", limits: Sequence[float], ticks: tuple[Sequence[float], Sequence[str]]
) -> None:
    axes.set_ylim(*limits)
    axes.set_yticks(*ticks)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=FAINT, linewidth=0.6)
    axes.tick_params(length=2, width=0.6, color=FAINT, labelcolor=INK, labelsize=_NUMBER_SIZE, pad=2, labelbottom=False)


def _write_name(axes: "matplotlib.axes.Axes", name: str, sheet: _Sheet) -> None:
    axes.annotate(
        name,
        xy=(0, 0.5),
        xycoords="axes fraction",
        xytext=(-72 * sheet.numbers, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=_NAME_SIZE,
        linespacing=1.1,
        parse_math=False,
    )


def _draw_profile(axes: "matplotlib.axes.Axes", account: Account, row: int) -> None:
    """Draw the profile of each cycle on its own, side by side."""
    for mark in labels.profile_marks(account):
        axes.axvline(mark, **_MADE)
    for number, profile in enumerate(parts(account.profile[:, row].astype(np.float64), account.cycles)):
        if number:
            axes.axvline(labels.profile_place(account, number, np.array([-0.5]))[0], color=FAINT, linewidth=0.6)
        _draw_phases(axes, account, number, profile, labels.BLUE)
    _scale_beside(axes, *labels.profile_range(account))


def _draw_known(axes: "matplotlib.axes.Axes", account: Account, number: int) -> None:
    """Draw a covariate over all the steps it was known for."""
    assert account.known is not None
    _draw_line(axes, np.arange(len(account.times)), account.known.values[:, number], labels.KNOWN)
    axes.axvline(account.look_back - 0.5, **_MADE)


def _draw_response(axes: "matplotlib.axes.Axes", account: Account, number: int) -> None:
    """Draw how every channel that is forecast responds to a covariate, by the phase of the first cycle."""
    assert account.known is not None
    response = account.known.response[:, number].astype(np.float64)
    for column, colour, dashed in labels.responses(account):
        _draw_phases(axes, account, 0, response[:, column], colour, _DASHES[dashed])
    _scale_beside(axes, *labels.response_range(account, number))


def _draw_phases(
    axes: "matplotlib.axes.Axes",
    account: Account,
    number: int,
    values: Float64[np.ndarray, " phase"],
    colour: str,
    dash: Any = "-",
) -> None:
    axes.plot(
        labels.profile_place(account, number, np.arange(len(values), dtype=np.float64)),
        values,
        color=colour,
        linestyle=dash,
        linewidth=0.9,
        marker=".",
        markersize=3,
        markevery=labels.alone(values),
    )


def _scale_beside(axes: "matplotlib.axes.Axes", low: float, high: float) -> None:
    axes.axhline(0, color=FAINT, linewidth=0.6, zorder=1)
    axes.yaxis.tick_right()
    _scale_values(axes, (low, high), labels.value_ticks(low, high, 3))
    axes.spines["left"].set_visible(False)
    axes.spines["right"].set(visible=True, color=FAINT, linewidth=0.6)


def _label_times(rows: "list[matplotlib.axes.Axes]", account: Account, sheet: _Sheet) -> None:
    positions, texts = labels.time_ticks(account.times, at_most=8)
    _label_steps(rows, len(account.times), positions, texts, sheet)
    for axes in rows:
        axes.grid(axis="x", color="#ECECEC", linewidth=0.6)
        axes.set_axisbelow(True)


def _label_phases(rows: "list[matplotlib.axes.Axes]", account: Account, sheet: _Sheet) -> None:
    _label_steps(rows, len(account.cycles) * account.cycles[0], *labels.profile_ticks(account), sheet)
    rows[-1].set_xlabel(labels.cycles_line(account), fontsize=_NUMBER_SIZE, color=INK, labelpad=3)
    rows[0].set_title("profile Q", fontsize=_NAME_SIZE, pad=4, color=INK)
    for axes in rows[len(account.channels) :]:
        behind = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1}
        axes.text(
            0.03, 0.96, "response", transform=axes.transAxes, fontsize=_NUMBER_SIZE, va="top", color=INK, bbox=behind
        )


def _label_steps(
    rows: "list[matplotlib.axes.Axes]", steps: int, positions: Sequence[float | int], texts: list[str], sheet: _Sheet
) -> None:
    """Give all rows the same steps, labelled below the last, and above the first too where they are far apart."""
    for axes in rows:
        axes.set_xlim(-0.5, steps - 0.5)
        axes.set_xticks(positions)
    ends = rows[:: max(len(rows) - 1, 1)] if sheet.many else rows[-1:]
    for axes in ends:
        axes.set_xticks(positions, texts)
    rows[-1].tick_params(axis="x", labelbottom=True)
    if sheet.many:
        rows[0].tick_params(axis="x", labeltop=True)
