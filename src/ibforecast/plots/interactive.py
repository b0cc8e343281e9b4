"""The interactive figure of an account, by plotly: one page that needs no network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from ibforecast.core.account import Account, Token
from ibforecast.core.cycles import parts
from ibforecast.plots import labels
from ibforecast.plots.extra import needs

if TYPE_CHECKING:
    import plotly.graph_objects

INK = "#333333"
FAINT = "#E3E3E3"
_FILL = 0.92
"""Share of a row's height that its lines may use."""

_BUTTONS = ["toImage", "zoom2d", "pan2d", "resetScale2d"]
"""Spelt out, so that no button is there that sends data anywhere."""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; padding: 12px 20px 32px; max-width: 1400px; }}
body {{ color: {ink}; font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ margin: 8px 0 0; font-size: 20px; }}
p {{ margin: 2px 0 10px; }}
details {{ margin-top: 8px; }}
details p {{ white-space: pre-line; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{rate}</p>
{drawing}
<details open>
<summary>In words</summary>
<p>{words}</p>
</details>
</body>
</html>
"""


@dataclass(frozen=True)
class _Sheet:
    """Where everything goes, in pixels: the map of all gates on top, then one row per channel and covariate."""

    rows: int
    channels: int
    names: int
    numbers: int
    top: int = 78
    between: int = 26
    bottom: int = 64
    split: float = 0.85
    beside: float = 0.89

    @property
    def map(self) -> float:
        return self.channels * float(np.interp(self.channels, [7, 50], [18, 10]))

    @property
    def body(self) -> float:
        return self.rows * float(np.interp(self.rows, [1, 7, 20, 50, 200], [180, 110, 84, 66, 48]))

    @property
    def height(self) -> int:
        return round(self.top + self.map + self.between + self.body + self.bottom)

    @property
    def domains(self) -> tuple[list[float], list[float]]:
        """Give the stretches of rows and map as fractions of the room between the margins."""
        room = self.map + self.between + self.body
        return [0.0, self.body / room], [1 - self.map / room, 1.0]


def to_html(account: Account) -> bytes:
    """Render as one page with everything inside; the same account gives the same bytes."""
    drawing = figure(account).to_html(
        config={"displaylogo": False, "responsive": True, "modeBarButtons": [_BUTTONS]},
        include_plotlyjs=True,
        include_mathjax=False,
        full_html=False,
        div_id="explanation",
    )
    return _PAGE.format(
        title=escape(labels.headline(account)),
        rate=escape(labels.rate_line(account)),
        words=escape(account.in_words()),
        drawing=drawing,
        ink=INK,
    ).encode()


def figure(account: Account) -> "plotly.graph_objects.Figure":
    """Draw the account as a plotly figure: hover for values, drag to zoom in time, click the legend to hide."""
    with needs("plotly"):
        from plotly import graph_objects
    ranges = np.concatenate([labels.value_ranges(account), labels.known_ranges(account)])
    rows = (*account.channels, *labels.covariates(account))
    names = [escape(name, quote=False) for name in labels.row_names(rows, 17)]
    ticks = [labels.value_ticks(low, high, 2 if len(names) > labels.MANY else 3) for low, high in ranges.tolist()]
    sheet = _Sheet(
        rows=len(names),
        channels=len(account.channels),
        names=16 + 7 * max(len(line) for name in names for line in name.split("\n")),
        numbers=10 + 6 * max(len(text) for _, texts in ticks for text in texts),
    )
    place = _rows(ranges)
    tokens = list(account.tokens())
    traces = [
        *_gate_map(account, tokens, sheet),
        *_token_bars(account, tokens, sheet),
        *_lines(account, place),
        *_known(account, place),
        *_profiles(account, sheet),
    ]
    return graph_objects.Figure(
        data=traces,
        layout={
            "template": None,
            "height": sheet.height,
            "margin": {"l": sheet.names + sheet.numbers, "r": 36, "t": sheet.top, "b": sheet.bottom},
            "font": {"family": "system-ui, sans-serif", "size": 12, "color": INK},
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "hovermode": "closest",
            "hoverlabel": {"align": "left", "bgcolor": "white", "bordercolor": "#888888", "font": {"color": INK}},
            "barmode": "overlay",
            "bargap": 0,
            "legend": {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top"},
            "annotations": _annotations(account, names, sheet),
            "shapes": _shapes(account, sheet),
            **_axes(account, ranges, ticks, sheet),
        },
    )


def _rows(
    ranges: Float64[np.ndarray, "channel 2"],
) -> Callable[[Float64[np.ndarray, "steps channel"]], Float64[np.ndarray, "steps channel"]]:
    """Make the map from values to heights: each column fills a row of height one, the first on top.

    There may be more rows than columns; what has no column leaves its row empty.
    """
    low, high = ranges.T
    bottom = np.arange(len(ranges))[::-1] + (1 - _FILL) / 2

    def heights(values: Float64[np.ndarray, "steps channel"]) -> Float64[np.ndarray, "steps channel"]:
        some = slice(values.shape[1])
        return np.asarray(bottom[some] + _FILL * (values - low[some]) / (high - low)[some])

    return heights


def _known(
    account: Account, place: Callable[[Float64[np.ndarray, "steps channel"]], Float64[np.ndarray, "steps channel"]]
) -> Iterator[dict[str, Any]]:
    """Draw the covariates known ahead, below the channels."""
    known, channels = account.known, len(account.channels)
    if known is None:
        return

    def told(step: int, row: int) -> str:
        if row < channels:
            return ""
        return _hover(
            known.names[row - channels], account.times[step], f"known {known.values[step, row - channels]:.5g}"
        )

    rows = np.concatenate([np.full((len(account.times), channels), np.nan), known.values], axis=1)
    look = {"color": labels.PURPLE, "width": 1.8, "shape": "hvh"}
    yield _line(labels.KNOWN, place(rows), 0, look) | _hovers(told, len(account.times), rows.shape[1])


def _lines(
    account: Account, place: Callable[[Float64[np.ndarray, "steps channel"]], Float64[np.ndarray, "steps channel"]]
) -> Iterator[dict[str, Any]]:
    look_back = account.look_back
    past, future = _past(account), _future(account)
    look = {"color": labels.BLUE, "width": 1.2, "dash": "1.5px,2px"}
    yield _line(labels.line_name(account, labels.EXPECTED), place(account.expected), 0, look) | {"hoverinfo": "skip"}
    look = {"color": labels.GREY, "width": 1.5}
    yield _line(labels.LOOK_BACK, place(account.history), 0, look) | past
    if account.truth is not None:
        look = {"color": labels.BLACK, "width": 1.5}
        yield _line(labels.TRUTH, place(account.truth), look_back, look) | future
    look = {"color": labels.VERMILLION, "width": 2, "dash": "6px,3px"}
    yield _line(labels.FORECAST, place(account.forecast), look_back, look) | future


def _line(name: str, heights: Float64[np.ndarray, "steps channel"], first: int, look: dict[str, Any]) -> dict[str, Any]:
    """Draw all channels as one trace with a gap between them: as quick with 500 channels as with 5."""
    steps, rows = heights.shape
    gapped = np.vstack([heights, np.full(rows, np.nan)]).T.ravel()
    return {
        "type": "scatter",
        "name": name,
        "x": np.tile(np.arange(first, first + steps + 1), rows),
        "y": gapped,
        "mode": "lines+markers",
        "line": look,
        "marker": {"color": look["color"], "size": np.where(labels.alone(gapped), 5, 0), "opacity": 1},
    }


def _past(account: Account) -> dict[str, Any]:
    """Tell at every look-back step its value, what was expected, the deviation and the gate."""
    expected, deviation = account.expected, account.deviation

    def told(step: int, row: int) -> str:
        patch = step // account.patch_len
        state = "missing" if account.missing[patch, row] else "open" if account.mask[patch, row] else "closed"
        return _hover(
            account.channels[row],
            account.times[step],
            f"value {account.history[step, row]:.5g}",
            f"baseline {expected[step, row]:.5g}",
            f"deviation {deviation[step, row]:+.3g} σ",
            f"gate {state}, probability {account.probability[patch, row]:.3f}",
        )

    return _hovers(told, account.look_back, len(account.channels))


def _future(account: Account) -> dict[str, Any]:
    """Tell at every step of the horizon its forecast, what was expected, and the truth where known."""
    expected = account.expected[account.look_back :]
    truth = np.full_like(account.forecast, np.nan) if account.truth is None else account.truth

    def told(step: int, row: int) -> str:
        return _hover(
            account.channels[row],
            account.times[account.look_back + step],
            *([f"forecast {account.forecast[step, row]:.5g}"] if account.channels[row] not in account.past else []),
            f"baseline {expected[step, row]:.5g}",
            *([f"truth {truth[step, row]:.5g}"] if np.isfinite(truth[step, row]) else []),
        )

    return _hovers(told, account.horizon, len(account.channels))


def _hovers(told: Callable[[int, int], str], steps: int, rows: int) -> dict[str, Any]:
    """Texts for the points of a `_line`, an empty one at each gap."""
    texts = [text for row in range(rows) for text in (*(told(step, row) for step in range(steps)), "")]
    return {"hovertext": texts, "hoverinfo": "text"}


def _hover(channel: str, when: str, *lines: str) -> str:
    return "<br>".join([f"<b>{escape(channel, quote=False)}</b>", escape(when, quote=False), *lines])


def _told(token: Token) -> str:
    state = "missing values, never read" if token.missing else "open: read" if token.open else "closed: not read"
    lines = [state, f"probability {token.probability:.3f}"]
    if np.isfinite(token.mean_deviation):
        lines += [
            f"mean deviation {token.mean_deviation:+.3g} σ",
            f"largest deviation {token.largest_deviation:+.3g} σ",
        ]
    return _hover(token.channel, f"{token.start} to {token.end}", *lines)


def _token_bars(account: Account, tokens: list[Token], sheet: _Sheet) -> Iterator[dict[str, Any]]:
    """Shade the open tokens and hatch the missing ones behind the lines."""
    patches = len(account.mask)
    for name, cells, look in (
        (labels.OPEN, account.mask, {"color": labels.GREEN, "opacity": 0.3, "line": {"color": "white", "width": 1}}),
        (
            labels.MISSING,
            account.missing,
            {
                "color": "#F2F2F2",
                "line": {"width": 0},
                "pattern": {"shape": "/", "fgcolor": "#A0A0A0", "size": 6, "solidity": 0.2},
            },
        ),
    ):
        places = np.argwhere(cells.T)
        if not len(places) and name == labels.MISSING:
            continue
        yield {
            "type": "bar",
            "name": name,
            "orientation": "h",
            "y": sheet.rows - 0.5 - places[:, 0],
            "base": places[:, 1] * account.patch_len - 0.5,
            "x": np.full(len(places), account.patch_len),
            "width": _FILL,
            "hovertext": [_told(tokens[row * patches + patch]) for row, patch in places],
            "hoverinfo": "text",
            "marker": look,
        }


def _gate_map(account: Account, tokens: list[Token], sheet: _Sheet) -> Iterator[dict[str, Any]]:
    """Colour every gate by its probability, outline the open ones, cross out the missing ones."""
    patches, rows = account.mask.shape
    centres = (np.arange(patches) + 0.5) * account.patch_len - 0.5
    yield {
        "type": "heatmap",
        "x": centres,
        "y": np.arange(rows),
        "z": np.where(account.missing, np.nan, account.probability.astype(np.float64)).T,
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, "#FFFFFF"], [1, labels.GREEN]],
        "xgap": 1,
        "ygap": 1,
        "hovertext": [[_told(token) for token in tokens[row * patches : (row + 1) * patches]] for row in range(rows)],
        "hoverinfo": "text",
        "hoverongaps": True,
        "xaxis": "x3",
        "yaxis": "y3",
        "colorbar": {
            "title": {"text": "gate probability", "side": "top", "font": {"size": 11}},
            "orientation": "h",
            "x": sheet.beside,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "ypad": 0,
            "len": 1 - sheet.beside,
            "thickness": 8,
            "tickvals": [0, 0.5, 1],
            "tickfont": {"size": 10},
            "outlinewidth": 0.5,
        },
    }
    across, down = [], []
    for row, patch in np.argwhere(account.mask.T):
        left, right = patch * account.patch_len - 0.5, (patch + 1) * account.patch_len - 0.5
        across += [left, right, right, left, left, None]
        down += [row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5, None]
    crossed = np.argwhere(account.missing.T)
    beside_map = {"type": "scatter", "xaxis": "x3", "yaxis": "y3", "hoverinfo": "skip", "showlegend": False}
    yield {**beside_map, "x": across, "y": down, "mode": "lines", "line": {"color": labels.BLACK, "width": 1.3}}
    yield {
        **beside_map,
        "x": centres[crossed[:, 1]],
        "y": crossed[:, 0],
        "mode": "markers",
        "marker": {"symbol": "x-thin", "size": 6, "line": {"color": "#A0A0A0", "width": 1}},
    }


def _profiles(account: Account, sheet: _Sheet) -> Iterator[dict[str, Any]]:
    """Draw the learned profiles beside the rows, all on one scale, each cycle on its own; responses below them."""
    place = _rows(np.tile(labels.profile_range(account), (sheet.rows, 1)))
    for number, profile in enumerate(parts(account.profile.astype(np.float64), account.cycles)):
        yield _beside(account, number, "profile Q", account.channels, profile, place, labels.BLUE)
    if account.known is None:
        return
    covariates = range(len(account.known.names))
    limits = [labels.response_range(account, number) for number in covariates]
    place = _rows(np.concatenate([np.tile([0.0, 1.0], (sheet.channels, 1)), limits]))
    above = np.full((account.cycles[0], sheet.channels), np.nan)
    for column, colour, dashed in labels.responses(account):
        rows = np.concatenate([above, account.known.response[:, :, column].astype(np.float64)], axis=1)
        what, names = f"response of {account.channels[column]}", (*account.channels, *account.known.names)
        yield _beside(account, 0, what, names, rows, place, colour, "6px,3px" if dashed else "solid")


def _beside(
    account: Account,
    number: int,
    what: str,
    names: tuple[str, ...],
    values: Float64[np.ndarray, "phase row"],
    place: Callable[[Float64[np.ndarray, "steps channel"]], Float64[np.ndarray, "steps channel"]],
    colour: str,
    dash: str = "solid",
) -> dict[str, Any]:
    """Draw what runs through the phases of a cycle, a line for each row."""
    cycle, rows = values.shape

    def told(step: int, row: int) -> str:
        return _hover(names[row], f"phase {step} of {cycle}", f"{escape(what, quote=False)} {values[step, row]:+.3f}")

    across = labels.profile_place(account, number, np.arange(cycle + 1, dtype=np.float64))
    return (
        _line(what, place(values), 0, {"color": colour, "width": 1.5, "dash": dash})
        | _hovers(told, cycle, rows)
        | {"x": np.tile(across, rows), "xaxis": "x2", "yaxis": "y2", "showlegend": False}
    )


def _axes(
    account: Account,
    ranges: Float64[np.ndarray, "channel 2"],
    ticks: list[tuple[list[float], list[str]]],
    sheet: _Sheet,
) -> dict[str, Any]:
    rows, width = sheet.rows, len(account.cycles) * account.cycles[0]
    places, phases = labels.profile_ticks(account)
    body, top = sheet.domains
    heights = [
        rows - 1 - row + (1 - _FILL) / 2 + _FILL * (tick - low) / (high - low)
        for row, (low, high) in enumerate(ranges.tolist())
        for tick in ticks[row][0]
    ]
    positions, texts = labels.time_ticks(account.times, at_most=8)
    times = {
        "domain": [0, sheet.split],
        "range": [-0.5, len(account.times) - 0.5],
        "tickvals": positions,
        "ticktext": [escape(text, quote=False).replace("\n", "<br>") for text in texts],
        "tickfont": {"size": 11},
        "zeroline": False,
    }
    still = {"fixedrange": True, "showgrid": False, "zeroline": False}
    return {
        "xaxis": {**times, "anchor": "y", "gridcolor": "#EFEFEF"},
        "xaxis3": {**times, "anchor": "y3", "matches": "x", "side": "top", "showgrid": False},
        "xaxis2": {
            **still,
            "domain": [sheet.beside, 1],
            "anchor": "y2",
            "range": [-0.5, width - 0.5],
            "tickvals": places,
            "ticktext": phases,
            "tickfont": {"size": 11},
            "title": {"text": labels.cycles_line(account), "font": {"size": 11}, "standoff": 4},
        },
        "yaxis": {
            **still,
            "domain": body,
            "anchor": "x",
            "range": [0, rows],
            "tickvals": heights,
            "ticktext": [text for _, row in ticks for text in row],
            "tickfont": {"size": 10},
            "ticks": "outside",
            "ticklen": 3,
            "tickcolor": "#BBBBBB",
        },
        "yaxis2": {**still, "domain": body, "anchor": "x2", "range": [0, rows], "showticklabels": False},
        "yaxis3": {
            **still,
            "domain": top,
            "anchor": "x3",
            "range": [sheet.channels - 0.5, -0.5],
            "showticklabels": False,
        },
    }


def _annotations(account: Account, names: list[str], sheet: _Sheet) -> list[dict[str, Any]]:
    """Write the channels' names beside map and rows."""
    few = {"xref": "paper", "showarrow": False, "xanchor": "right", "align": "right", "x": 0}
    beside_rows = [
        {
            **few,
            "yref": "y",
            "y": sheet.rows - 0.5 - row,
            "xshift": -sheet.numbers,
            "text": name.replace("\n", "<br>"),
            "font": {"size": 12},
        }
        for row, name in enumerate(names)
    ]
    small = 12 if sheet.rows <= labels.MANY else 8
    beside_map = [
        {
            **few,
            "yref": "y3",
            "y": row,
            "xshift": -4,
            "text": escape(labels.shortened(name, 24), quote=False),
            "font": {"size": small},
        }
        for row, name in enumerate(account.channels)
    ]
    heading = {
        "xref": "paper",
        "yref": "y2",
        "x": (1 + sheet.beside) / 2,
        "y": sheet.rows,
        "xanchor": "center",
        "yanchor": "bottom",
        "text": "profile Q",
        "showarrow": False,
    }
    return [*beside_rows, *beside_map, heading]


def _shapes(account: Account, sheet: _Sheet) -> list[dict[str, Any]]:
    """Rule the rows off, and mark the moment of the forecast in time and in phase."""
    rules = [
        {"x0": start, "x1": end, "xref": "paper", "y0": row, "y1": row, "yref": "y", "line": _rule(FAINT)}
        for row in range(sheet.rows + 1)
        for start, end in ((0, sheet.split), (sheet.beside, 1))
    ]
    made = account.look_back - 0.5
    phases = [(mark, "x2", "y2") for mark in labels.profile_marks(account)]
    marks = [
        {"x0": at, "x1": at, "xref": x, "y0": 0, "y1": 1, "yref": f"{y} domain", "line": _rule(INK)}
        for at, x, y in ((made, "x", "y"), *phases, (made, "x3", "y3"))
    ]
    return [{"type": "line", "layer": "below", **shape} for shape in rules + marks]


def _rule(colour: str) -> dict[str, Any]:
    return {"color": colour, "width": 1}
