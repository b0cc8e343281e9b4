"""A scene as SVG: one self-contained text without scripts, references or identifiers."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from math import ceil

from ibforecast.plots import labels
from ibforecast.plots.scene import Band, Line, Phases, Row, Scene, Side, Tick
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

_PIXELS = 96 / 72
"""Pixels in a point."""

_HATCH_STEP = 4
_UNWRITABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow."""

_HALO = ' stroke="white" stroke-width="3" paint-order="stroke"'

Scale = Callable[[float], float]


def to_svg(scene: Scene) -> str:
    """Return a scene as SVG; the same scene gives the same text."""
    sheet = sheet_of(scene)
    width, height = _number(sheet.width * _PIXELS), _number(sheet.height * _PIXELS)
    body = "\n".join(_parts(scene, sheet))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(sheet.width)} {_number(sheet.height)}" '
        f'width="{width}" height="{height}" role="img" aria-label="{_escaped(scene.headline)}" '
        f'font-family="DejaVu Sans, Verdana, Helvetica, Arial, sans-serif" style="max-width:100%;height:auto">\n'
        f"<title>{_escaped(scene.headline)}</title>\n<desc>{_escaped(scene.words)}</desc>\n{body}\n</svg>\n"
    )


def _parts(scene: Scene, sheet: Sheet) -> Iterator[str]:
    yield f'<rect width="{_number(sheet.width)}" height="{_number(sheet.height)}" fill="white"/>'
    yield _text(scene.headline, sheet.left, TITLE_MIDDLE, TITLE_SIZE, colour=labels.BLACK, more=' font-weight="bold"')
    yield _text(scene.rate, sheet.left, RATE_MIDDLE, RATE_SIZE)
    for entry, left, middle in sheet.legend(scene.legend):
        yield from _swatch(entry.role, left, middle)
        yield _text(entry.text, left + SWATCH_AND_GAP, middle, NAME_SIZE, colour=labels.BLACK)
    for number, row in enumerate(scene.rows):
        main, side = sheet.main_box(number), sheet.side_box(number)
        yield f'<g class="{row.kind}">'
        yield from _main(scene, sheet, number, main)
        yield from _side(row, scene.phases, side)
        yield "</g>"
    yield from _axes(scene, sheet)
    for key, left, middle in sheet.key(scene.key):
        yield _rule(*line_swatch(response_stroke(key.style), left, middle))
        yield _text(key.name, left + SWATCH_AND_GAP, middle, NUMBER_SIZE)
    if scene.waterfall is not None:
        yield '<g class="waterfall">'
        yield from _waterfall(scene.waterfall, sheet)
        yield "</g>"


def _main(scene: Scene, sheet: Sheet, number: int, box: Box) -> Iterator[str]:
    row, (across, down) = scene.rows[number], _scales(box, scene.time.steps, scene.rows[number])
    yield f"<title>{_escaped(row.name)}</title>"
    for tick in sheet.time_ticks(scene):
        yield _rule(across(tick.at), box.top, across(tick.at), box.bottom, STROKES["grid"])
    if row.kind == "channel":
        yield from _tokens(scene, number, box, across)
    yield '<g pointer-events="none">'
    for line in row.lines:
        yield from _line(line, across, down)
    yield _rule(across(scene.time.made), box.top, across(scene.time.made), box.bottom, STROKES["made"])
    yield "</g>"
    yield from _frame(box, box.left)
    yield from _value_axis(sheet.value_ticks(scene, number), down, box.left, -1)
    for at, text in enumerate(row.label):
        middle = box.top + box.height / 2 + 9 * (at - (len(row.label) - 1) / 2)
        yield _text(text, sheet.name_edge, middle, NAME_SIZE, "end", labels.BLACK)


def _waterfall(waterfall: Waterfall, sheet: Sheet) -> Iterator[str]:
    heading, edge = ' font-weight="bold"', sheet.width - MARGIN
    yield _text(waterfall.title, sheet.bar_edge, sheet.title_middle, NAME_SIZE, colour=labels.BLACK, more=heading)
    for rule in sheet.steps_between(waterfall):
        yield _rule(*rule)
    for bar, box in sheet.bar_boxes(waterfall):
        middle = box.top + box.height / 2
        yield _rectangle(box, bar_fill(bar))
        yield _text(bar.text, sheet.bar_edge - 8, middle, NAME_SIZE, "end", labels.BLACK)
        yield _text(bar.number, edge, middle, NAME_SIZE, "end", labels.BLACK)


def _tokens(scene: Scene, channel: int, box: Box, across: Scale) -> Iterator[str]:
    """Shade the tokens that are open or missing; the title of each token describes it."""
    bands = {band.first: band for band in scene.rows[channel].bands}
    gates = scene.gates
    for patch, (states, texts, adds) in enumerate(zip(gates.state, gates.text, gates.adds, strict=True)):
        state, first = states[channel], patch * gates.patch_len
        title = "; ".join(filter(None, (texts[channel], adds[channel])))
        left, right = across(first - 0.5), across(first + gates.patch_len - 0.5)
        token = Box(left, box.top, right - left, box.height)
        look = _look(bands.get(first))
        yield f'<rect class="{state}"{_placed(token)} {look}><title>{_escaped(title)}</title></rect>'
        if state == "missing":
            yield _hatch(token)


def _look(band: Band | None) -> str:
    if band is None:
        return 'fill="none" pointer-events="all"'  # so that its text is shown under the pointer
    return f'fill="{band_fill(band)}"' + (' stroke="white" stroke-width="0.6"' if band.state == "open" else "")


def _line(line: Line, across: Scale, down: Scale) -> Iterator[str]:
    places = [across(line.first + step) for step in range(len(line.values))]
    heights = [None if value is None else down(value) for value in line.values]
    yield from _curve(line.role, places, heights, STROKES[line.role], stairs=line.role == "known")


def _side(row: Row, phases: Phases, box: Box) -> Iterator[str]:
    side, (across, down) = row.side, _scales(box, phases.width, row.side)
    zero = down(0.0)
    for border in side.borders:
        yield _rule(across(border), box.top, across(border), box.bottom, STROKES["axis"])
    yield _rule(box.left, zero, box.right, zero, STROKES["axis"])
    for mark in side.marks:
        yield _rule(across(mark), box.top, across(mark), box.bottom, STROKES["made"])
    for curve in side.curves:
        heights = [None if value is None else down(value) for value in curve.values]
        yield from _curve("side", [across(at) for at in curve.at], heights, curve_stroke(row, curve))
    yield from _frame(box, box.right)
    for tick in phases.ticks:
        yield _rule(across(tick.at), box.bottom, across(tick.at), box.bottom + 2, STROKES["axis"])
    yield from _value_axis(side.ticks, down, box.right, 1)


def _axes(scene: Scene, sheet: Sheet) -> Iterator[str]:
    """Label time and phases below the last row, and above the first too if there are many rows."""
    last = len(scene.rows) - 1
    for box, steps, ticks in (
        (sheet.main_box(last), scene.time.steps, sheet.time_ticks(scene)),
        (sheet.side_box(last), scene.phases.width, scene.phases.ticks),
    ):
        across = _horizontal(box, steps)
        for tick in ticks:
            for line, text in enumerate(tick.lines):
                yield _text(text, across(tick.at), box.bottom + 8 + 8.5 * line, NUMBER_SIZE, "middle")
                if sheet.tall:
                    above = sheet.head - 6 - 8.5 * (len(tick.lines) - 1 - line)
                    yield _text(text, across(tick.at), above, NUMBER_SIZE, "middle")
    box = sheet.side_box(last)
    centre = box.left + box.width / 2
    yield _text(scene.phases.title, centre, box.bottom + 18, NUMBER_SIZE, "middle")
    yield _text(scene.rows[0].side.title, centre, sheet.head - (22 if sheet.tall else 7), NAME_SIZE, "middle")
    for number, row in enumerate(scene.rows):
        if row.kind == "known":
            box = sheet.side_box(number)
            yield _text(row.side.title, box.left + 3, box.top + 6, NUMBER_SIZE, more=_HALO)


def _scales(box: Box, steps: int, panel: Row | Side) -> tuple[Scale, Scale]:
    def down(value: float) -> float:
        return box.bottom - (value - panel.low) / (panel.high - panel.low) * box.height

    return _horizontal(box, steps), down


def _horizontal(box: Box, steps: int) -> Scale:
    return lambda at: box.left + (at + 0.5) / steps * box.width


def _curve(
    name: str, places: Sequence[float], heights: Sequence[float | None], stroke: Stroke, *, stairs: bool = False
) -> Iterator[str]:
    """Join neighbouring values; a gap breaks the line, and a value between two gaps becomes a dot."""
    path, dots, before = [], [], None
    for step, (place, height) in enumerate(zip(places, heights, strict=True)):
        if height is None:
            before = None
            continue
        after = heights[step + 1] if step + 1 < len(heights) else None
        if before is None:
            path.append(f"M{_number(place)} {_number(height)}")
            if after is None:
                dots.append(f'<circle cx="{_number(place)}" cy="{_number(height)}" r="1.2" fill="{stroke.colour}"/>')
        elif stairs:
            path.append(f"H{_number((places[step - 1] + place) / 2)}V{_number(height)}H{_number(place)}")
        else:
            path.append(f"L{_number(place)} {_number(height)}")
        before = height
    yield f'<path class="{name}" d="{"".join(path)}" fill="none" stroke-linejoin="round"{_stroke(stroke)}/>'
    yield from dots


def _hatch(box: Box) -> str:
    """Draw slanted lines across a rectangle, cut off at its edges."""
    # Lines rise by 45 degrees from (start, bottom). All lie on one grid, so that they meet those of the next token.
    path, start = [], ceil((box.left + box.top) / _HATCH_STEP) * _HATCH_STEP - box.bottom
    while start < box.right:
        low, high = max(start, box.left), min(start + box.height, box.right)
        ends = ((across, box.bottom - (across - start)) for across in (low, high))
        path.append("M{} {}L{} {}".format(*(_number(place) for end in ends for place in end)))
        start += _HATCH_STEP
    return f'<path d="{"".join(path)}"{_stroke(HATCH)} pointer-events="none"/>'


def _swatch(role: str, left: float, middle: float) -> Iterator[str]:
    sample = swatch(role, left, middle)
    if not isinstance(sample, Box):
        yield _rule(*sample)
        return
    yield _rectangle(sample, swatch_fill(role))
    if role == "missing":
        yield _hatch(sample)


def _frame(box: Box, upright: float) -> Iterator[str]:
    """Draw the lower edge of a panel and the vertical edge at `upright`."""
    yield _rule(upright, box.top, upright, box.bottom, STROKES["axis"])
    yield _rule(box.left, box.bottom, box.right, box.bottom, STROKES["axis"])


def _value_axis(ticks: Iterable[Tick], down: Scale, edge: float, outwards: int) -> Iterator[str]:
    for tick in ticks:
        yield _rule(edge, down(tick.at), edge + 2 * outwards, down(tick.at), STROKES["axis"])
        anchor = "end" if outwards < 0 else "start"
        yield _text(tick.lines[0], edge + 4 * outwards, down(tick.at), NUMBER_SIZE, anchor)


def _text(
    text: str,
    across: float,
    middle: float,
    size: float,
    anchor: str = "start",
    colour: str = labels.INK,
    more: str = "",
) -> str:
    return (
        f'<text x="{_number(across)}" y="{_number(middle + 0.36 * size)}" font-size="{_number(size)}" fill="{colour}" '
        f'text-anchor="{anchor}"{more}>{_escaped(text)}</text>'
    )


def _rule(left: float, top: float, right: float, bottom: float, stroke: Stroke) -> str:
    ends = f'x1="{_number(left)}" y1="{_number(top)}" x2="{_number(right)}" y2="{_number(bottom)}"'
    return f"<line {ends}{_stroke(stroke)}/>"


def _rectangle(box: Box, fill: str) -> str:
    return f'<rect{_placed(box)} fill="{fill}"/>'


def _placed(box: Box) -> str:
    left, top, width, height = map(_number, box)
    return f' x="{left}" y="{top}" width="{width}" height="{height}"'


def _stroke(stroke: Stroke) -> str:
    dashes = " ".join(_number(dash * stroke.width) for dash in stroke.dashes)
    return f' stroke="{stroke.colour}" stroke-width="{stroke.width}"' + (
        f' stroke-dasharray="{dashes}"' if dashes else ""
    )


def _number(value: float) -> str:
    """Format a number with at most two decimals, and zero without a minus."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def _escaped(text: str) -> str:
    return escape(_UNWRITABLE.sub("\ufffd", text))
