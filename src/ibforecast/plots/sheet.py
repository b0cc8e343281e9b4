"""The positions and colours in a drawing of a scene, the same for every format."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np

from ibforecast.plots import labels
from ibforecast.plots.scene import Band, Curve, Entry, Key, Row, Scene, Tick, fitting
from ibforecast.plots.waterfall import Bar, Waterfall

TITLE_SIZE, RATE_SIZE, NAME_SIZE, NUMBER_SIZE = 11.0, 9.0, 8.0, 7.0
"""Font sizes, in points."""

TITLE_MIDDLE, RATE_MIDDLE = 19.0, 36.0
"""Heights of the first two lines, in points from the top."""

SWATCH, SWATCH_AND_GAP = 17.0, 21.0
"""Width of the sample of a line or band in the legend, without and with the gap before its text, in points."""

_WIDTH, MARGIN, _BETWEEN = 720.0, 18.0, 17.0
_LEGEND_TOP, _LEGEND_LINE, _KEY_LINE = 54.0, 14.0, 11.5
_WATERFALL_HEAD, _BAR_LINE, _BAR_HEIGHT = 14.0, 13.5, 8.5
_LETTERS = {
    0.35: " '!,./:;\\fijlIJ|",
    0.4: "()-[]rt",
    0.55: '"*?_`csz',
    0.65: "$0123456789EFLPSTYabdeghknopquvxy{}",
    0.8: "&ABCDGHKNOQRUVXZ",
    1.0: "#%+<=>@MW^mw~−—…",
}
_WIDTHS = {letter: width for width, letters in _LETTERS.items() for letter in letters}
"""Widths of letters in DejaVu Sans, rounded up; most sans-serif typefaces are narrower."""


@dataclass(frozen=True)
class Stroke:
    """Colour of a line, its width in points and its dashes in units of the width; a line without dashes is solid."""

    colour: str
    width: float
    dashes: tuple[float, ...] = ()


STROKES = {
    "level": Stroke("#9FBFD3", 0.6),
    "baseline": Stroke(labels.BLUE, 0.9, (1.0, 1.3)),
    "usual": Stroke(labels.BLUE, 0.8, (1.0, 1.6)),
    "calendar": Stroke(labels.BLUE, 0.9, (4.0, 2.0)),
    "look-back": Stroke(labels.GREY, 1.0),
    "truth": Stroke(labels.BLACK, 1.0),
    "forecast": Stroke(labels.VERMILLION, 1.3, (3.2, 1.4)),
    "known": Stroke(labels.PURPLE, 1.2),
    "made": Stroke(labels.INK, 0.8),
    "axis": Stroke(labels.FAINT, 0.6),
    "grid": Stroke(labels.GRID, 0.6),
    "profile": Stroke(labels.BLUE, 0.9),
    "joint": Stroke(labels.GREY, 0.5),
}
OPEN_FILL, MISSING_FILL, HATCH = "#B2E2D5", "#F2F2F2", Stroke("#A0A0A0", 0.5)
_WARM, _COOL, _NEUTRAL = (246, 174, 116), (132, 190, 228), "#E4E4E4"
"""Colours of the largest amount that raises a forecast, of the largest that lowers it, and of none."""

_FAINTEST = 0.18
"""The strength of the smallest amount: a place that was read must not look like one that was not."""


def tone_fill(tone: float) -> str:
    """Return the colour of what a place adds: warm if it raises the forecast, cool if it lowers it."""
    if tone == 0:
        return _NEUTRAL
    # The square root, because a few large amounts would otherwise leave all others nearly white.
    strength = _FAINTEST + (1 - _FAINTEST) * abs(tone) ** 0.5
    parts = (round(255 + strength * (part - 255)) for part in (_WARM if tone > 0 else _COOL))
    return "#" + "".join(f"{part:02X}" for part in parts)


def band_fill(band: Band) -> str:
    """Return the colour of a token that is open or missing."""
    if band.state == "missing":
        return MISSING_FILL
    return OPEN_FILL if band.tone is None else tone_fill(band.tone)


def swatch_fill(role: str) -> str:
    """Return the colour of a band in the legend."""
    tones = {"raises": 1.0, "lowers": -1.0, "neither": 0.0}
    return tone_fill(tones[role]) if role in tones else {"open": OPEN_FILL, "missing": MISSING_FILL}[role]


def bar_fill(bar: Bar) -> str:
    """Return the colour of a bar: those of lines for the calendar and the forecast, otherwise that of its sign."""
    return STROKES[bar.part].colour if bar.part in STROKES else tone_fill(float(np.sign(bar.amount)))


def response_stroke(style: int) -> Stroke:
    """Return the stroke of a response; once all colours are used, they are used again with dashes."""
    colours = (labels.PURPLE, labels.SKY, labels.ORANGE, labels.GREEN, labels.BLUE, labels.VERMILLION)
    return Stroke(colours[style % len(colours)], 0.9, () if style < len(colours) else (3.2, 1.4))


def curve_stroke(row: Row, curve: Curve) -> Stroke:
    """Return the stroke of a line in the side panel of a row."""
    return STROKES["profile"] if row.kind == "channel" else response_stroke(curve.style)


class Box(NamedTuple):
    """A rectangle, in points from the top left corner of the sheet."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


class Rule(NamedTuple):
    """A straight line, in points from the top left corner of the sheet."""

    left: float
    top: float
    right: float
    bottom: float
    stroke: Stroke


def swatch(role: str, left: float, middle: float) -> Rule | Box:
    """Return the sample of a role in the legend: a line, or a box for a band."""
    if role == "made":
        return Rule(left + SWATCH / 2, middle - 5, left + SWATCH / 2, middle + 5, STROKES[role])
    if role in STROKES:
        return line_swatch(STROKES[role], left, middle)
    return Box(left, middle - 3.5, SWATCH, 7.0)


def line_swatch(stroke: Stroke, left: float, middle: float) -> Rule:
    """Return the sample of a line: a piece of it."""
    return Rule(left, middle, left + SWATCH, middle, stroke)


@dataclass(frozen=True)
class Sheet:
    """The layout of a scene, in points from the top left corner; more rows make the sheet taller."""

    rows: int
    left: float
    numbers: float
    side: float
    right: float
    head: float
    foot: float
    bars: int = 0
    bar_edge: float = 0.0
    number_edge: float = 0.0
    width: float = _WIDTH

    @property
    def tall(self) -> bool:
        """Whether time is labelled above the rows too, because there are many of them."""
        return self.rows > labels.MANY

    @property
    def row(self) -> float:
        """Height of one row and the gap below it: large for a few rows, small for many."""
        return float(np.interp(self.rows, [1, 7, 20, 50, 200], [115, 72, 52, 40, 29]))

    @property
    def height(self) -> float:
        """Height of the whole sheet."""
        below = 0.0 if self.bars == 0 else _WATERFALL_HEAD + self.bars * _BAR_LINE + MARGIN
        return self.bottom + below

    @property
    def bottom(self) -> float:
        """The lower end of the rows and their labels."""
        return self.head + self.rows * self.row + self.foot

    @property
    def title_middle(self) -> float:
        """The middle height of the waterfall's title."""
        return self.bottom + _WATERFALL_HEAD / 4

    @property
    def name_edge(self) -> float:
        """Where the names of the rows end."""
        return self.left - self.numbers

    def main_box(self, row: int) -> Box:
        """Return the rectangle of a row's main panel."""
        width = self.width - self.left - _BETWEEN - self.side - self.right
        return Box(self.left, self.head + row * self.row, width, 0.92 * self.row)

    def side_box(self, row: int) -> Box:
        """Return the rectangle of a row's side panel."""
        return Box(self.width - self.right - self.side, self.head + row * self.row, self.side, 0.92 * self.row)

    def time_ticks(self, scene: Scene) -> tuple[Tick, ...]:
        """Return the ticks of the time axis that fit."""
        return fitting(scene.time.ticks, 8)

    def value_ticks(self, scene: Scene, row: int) -> tuple[Tick, ...]:
        """Return the ticks of a row that fit."""
        return fitting(scene.rows[row].ticks, 2 if self.tall else 3)

    def legend(self, entries: Iterable[Entry]) -> list[tuple[Entry, float, float]]:
        """Return each entry of the legend, its left end and its middle height; a full line is continued below."""
        placed, across, down = [], self.left, _LEGEND_TOP
        for entry in entries:
            room = SWATCH_AND_GAP + text_width(entry.text, NAME_SIZE)
            if across + room > self.width - MARGIN and across > self.left:
                across, down = self.left, down + _LEGEND_LINE
            placed.append((entry, across, down))
            across += room + 10
        return placed

    def key(self, key: Iterable[Key]) -> list[tuple[Key, float, float]]:
        """Return each line of the key below the side panels, its left end and its middle height."""
        left, top = self.side_box(0).left, self.bottom - self.foot + 33
        return [(line, left, top + number * _KEY_LINE) for number, line in enumerate(key)]

    def bar_boxes(self, waterfall: Waterfall) -> Iterator[tuple[Bar, Box]]:
        """Yield the bars of a waterfall and their rectangles; calendar and forecast are upright marks."""
        sums = [bar.after for bar in waterfall.bars]
        low, high = min(sums), max(sums)
        width = self.number_edge - self.bar_edge
        for number, bar in enumerate(waterfall.bars):
            ends = sorted((bar.before, bar.after))
            left, right = (self.bar_edge + width * ((end - low) / (high - low) if high > low else 0.5) for end in ends)
            # A bar of no width would not be seen.
            middle, width_of_bar = (left + right) / 2, max(right - left, 1.5)
            top = self.bottom + _WATERFALL_HEAD + number * _BAR_LINE + (_BAR_LINE - _BAR_HEIGHT) / 2
            yield bar, Box(middle - width_of_bar / 2, top, width_of_bar, _BAR_HEIGHT)

    def steps_between(self, waterfall: Waterfall) -> Iterator[Rule]:
        """Yield the thin lines from the end of each bar to the start of the next, and the line above the sum."""
        boxes = list(self.bar_boxes(waterfall))
        for (_, upper), (bar, lower) in pairwise(boxes):
            across = lower.right if bar.before > bar.after else lower.left
            if bar.before == bar.after:
                across = lower.left + lower.width / 2
            yield Rule(across, upper.bottom, across, lower.top, STROKES["joint"])
        top = boxes[-1][1].top - (_BAR_LINE - _BAR_HEIGHT) / 2
        yield Rule(self.number_edge + 8, top, self.width - MARGIN, top, STROKES["made"])


def sheet_of(scene: Scene) -> Sheet:
    """Return the layout of a scene: names and numbers get the space they need, and the main panels the rest."""
    rows = len(scene.rows)
    numbers = 12 + _widest((line for row in scene.rows for tick in row.ticks[-1] for line in tick.lines), NUMBER_SIZE)
    names = 14 + _widest((line for row in scene.rows for line in row.label), NAME_SIZE)
    edge = 12 + _widest((text for row in scene.rows for tick in row.side.ticks for text in tick.lines), NUMBER_SIZE)
    sheet = Sheet(
        rows=rows,
        left=names + numbers,
        numbers=numbers,
        side=83.0 + 50 * len(scene.rows[0].side.borders),
        right=max(30.0, edge),
        head=0.0,
        foot=max(45.0, 33 + _KEY_LINE * len(scene.key)),
    )
    if scene.waterfall is not None:
        bars = scene.waterfall.bars
        sheet = replace(
            sheet,
            bars=len(bars),
            bar_edge=24 + max(sheet.name_edge - 10, _widest((bar.text for bar in bars), NAME_SIZE)),
            number_edge=_WIDTH - MARGIN - 16 - _widest((bar.number for bar in bars), NAME_SIZE),
        )
    *_, (_, _, lowest) = sheet.legend(scene.legend)
    return replace(sheet, head=lowest + (44 if sheet.tall else 25))


def text_width(text: str, size: float) -> float:
    """Return the estimated width of a text in points; the text is rarely wider."""
    return size * sum(_WIDTHS.get(letter, 1.1 if east_asian_width(letter) in "WF" else 0.8) for letter in text)


def _widest(texts: Iterable[str], size: float) -> float:
    return max(text_width(text, size) for text in texts)
