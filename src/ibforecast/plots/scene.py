"""The picture of an explanation as plain data: lines, bands, ticks and words, computed once for all formats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from ibforecast.core import words
from ibforecast.core.cycles import parts
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.receipt import Step, places
from ibforecast.plots import labels
from ibforecast.plots.waterfall import Itemised, Waterfall, forecast_of, itemised, tones, waterfall_of

Role = Literal["level", "baseline", "usual", "look-back", "truth", "calendar", "forecast", "known"]
"""The meaning of a line in a row, from back to front."""

State = Literal["open", "missing", "closed"]
"""Whether a token was read, could not be read, or was not read."""

NAME_WIDTH = 17
"""Characters in one line of a row's label."""

_TIME_LABELS, _VALUE_LABELS = (4, 8, 16), (2, 3)
"""The largest number of ticks in each set: of the time axis from narrow to wide, of a row from low to high."""

_PRECISION = 1e-6
"""Numbers are rounded to this part of a row's range: no drawing shows more, and the text is shorter."""


@dataclass(frozen=True)
class Tick:
    """A position on an axis and its label, in one or two lines."""

    at: float
    lines: tuple[str, ...]


TickSets = tuple[tuple[Tick, ...], ...]
"""The same axis with few ticks, then with more."""


@dataclass(frozen=True)
class Time:
    """The time axis of all rows: it runs from -0.5 to `steps` - 0.5, and step i is at i.

    `made` is the position at which the forecast was made: between the last step of the look-back and the first of the
    horizon.
    """

    steps: int
    look_back: int
    made: float
    times: tuple[str, ...]
    ticks: TickSets


@dataclass(frozen=True)
class Phases:
    """The axis of all side panels: from -0.5 to `width` - 0.5, with the cycles next to each other, equally wide."""

    title: str
    width: int
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Line:
    """The values of consecutive steps; None where there is no value."""

    role: Role
    first: int
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Band:
    """A token to be shaded: its first and last step, both included.

    `tone` is what an open token adds to the forecast of the itemised channel, as a part of the largest amount: from -1
    to 1. It is None without a receipt.
    """

    first: int
    last: int
    state: State
    tone: float | None


@dataclass(frozen=True)
class Curve:
    """A line in a side panel: the profile of one cycle, or the response of one channel in the colour `style`."""

    name: str
    style: int
    at: tuple[float, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Side:
    """The side panel of a row: profiles of a channel, or responses to a covariate.

    `marks` are the positions of the last step of the look-back; `borders` lie between two cycles.
    """

    title: str
    low: float
    high: float
    ticks: tuple[Tick, ...]
    curves: tuple[Curve, ...]
    marks: tuple[float, ...]
    borders: tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """One channel, or one covariate known ahead, over look-back and horizon."""

    kind: Literal["channel", "known"]
    name: str
    label: tuple[str, ...]
    low: float
    high: float
    ticks: TickSets
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    side: Side


@dataclass(frozen=True)
class Entry:
    """A line of the legend: the role of a line, the state of a band, or "made", and its text."""

    role: str
    text: str


@dataclass(frozen=True)
class Key:
    """The name of a channel whose response is drawn in the colour `style`."""

    name: str
    style: int


@dataclass(frozen=True)
class Gates:
    """The map of all gates: for each patch, then for each channel, its probability, its state and a sentence.

    `adds` says what an open token adds to the number that is itemised. It is empty for other tokens and without a
    receipt.
    """

    channels: tuple[str, ...]
    patch_len: int
    probability: tuple[tuple[float, ...], ...]
    state: tuple[tuple[State, ...], ...]
    text: tuple[tuple[str, ...], ...]
    adds: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Scene:
    """Everything that a drawing of one explanation shows, without sizes, fonts and colours."""

    headline: str
    rate: str
    words: str
    open_rate: float
    budget: float
    time: Time
    phases: Phases
    rows: tuple[Row, ...]
    legend: tuple[Entry, ...]
    key: tuple[Key, ...]
    gates: Gates
    waterfall: Waterfall | None

    @property
    def channels(self) -> tuple[Row, ...]:
        """The rows of the channels; those of the covariates follow them."""
        return tuple(row for row in self.rows if row.kind == "channel")

    def document(self) -> dict[str, Any]:
        """Return the scene as nested dicts and lists of text, numbers and None, ready to be written as JSON."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def most_read(self, at_most: int) -> "Scene":
        """Return the scene with at most `at_most` channels: those with the most open tokens, in their order."""
        opened = [sum(band.state == "open" for band in row.bands) for row in self.channels]
        kept = sorted(np.argsort([-count for count in opened], kind="stable")[:at_most].tolist())
        covariates = self.rows[len(opened) :]
        gates = replace(
            self.gates,
            channels=_columns(self.gates.channels, kept),
            probability=tuple(_columns(patch, kept) for patch in self.gates.probability),
            state=tuple(_columns(patch, kept) for patch in self.gates.state),
            text=tuple(_columns(patch, kept) for patch in self.gates.text),
            adds=tuple(_columns(patch, kept) for patch in self.gates.adds),
        )
        return replace(self, rows=(*_columns(self.rows, kept), *covariates), gates=gates)


def scene_of(explained: ExplainedForecast, channel: str | None = None, step: Step = "mean") -> Scene:
    """Return the scene of an explanation, with the receipt of a channel if it has one or its model is available.

    By default it is the channel that the values of the window move most, and the mean over the horizon.
    """
    responding = _responding(explained)
    shown = itemised(explained, channel, step)  # computes all channels together, before the words need some of them
    return Scene(
        headline=headline(explained),
        rate=words.rate_line(explained),
        words=explained.in_words(),
        open_rate=explained.open_rate,
        budget=explained.budget,
        time=_time(explained),
        phases=_phases(explained),
        rows=(*_channel_rows(explained, shown), *_known_rows(explained)),
        legend=tuple(_legend(explained, shown)),
        key=tuple(Key(labels.shortened(explained.channels[column], NAME_WIDTH), style) for column, style in responding)
        if 1 < len(responding) <= labels.MANY
        else (),
        gates=_gates(explained, shown),
        waterfall=None if shown is None else waterfall_of(explained, shown.receipt),
    )


def headline(explained: ExplainedForecast) -> str:
    """Say when the forecast was made."""
    return f"Forecast made at {explained.moments[explained.look_back - 1]}{explained.zone}"


def fitting(sets: TickSets, at_most: int) -> tuple[Tick, ...]:
    """Return the largest set with at most `at_most` ticks, or the smallest set if all have more."""
    return max((ticks for ticks in sets if len(ticks) <= at_most), key=len, default=sets[0])


def _time(explained: ExplainedForecast) -> Time:
    return Time(
        steps=len(explained.times),
        look_back=explained.look_back,
        made=explained.look_back - 0.5,
        times=explained.moments,
        ticks=tuple(_ticks(*labels.time_ticks(explained.times, at_most)) for at_most in _TIME_LABELS),
    )


def _phases(explained: ExplainedForecast) -> Phases:
    """Return the axis of phases: a few labels per cycle, with the last phase if there is only one cycle."""
    cycles = explained.cycles
    several = len(cycles) > 1
    ticks = []
    for number, cycle in enumerate(cycles):
        for phase in sorted({0, cycle // 2} if several else {0, cycle // 2, cycle - 1}):
            ticks.append(Tick(_place(cycles, number, phase), (str(phase),)))
    lengths = " and ".join(map(str, cycles))
    return Phases(f"phase (cycle{'s' if several else ''} of {lengths})", len(cycles) * cycles[0], tuple(ticks))


def _channel_rows(explained: ExplainedForecast, shown: Itemised | None) -> Iterator[Row]:
    explanation, look_back = explained.explanation, explained.look_back
    mask, missing = explanation.mask, explanation.missing
    tone = None if shown is None else tones(explained, shown.receipt)
    lines = _context_lines(explained, shown)
    lines["look-back"] = (0, explained.history)
    if explained.truth is not None:
        lines["truth"] = (look_back, explained.truth)
    lines["forecast"] = (look_back, explained.forecast)
    ranges = _ranges(np.concatenate([values for _, values in lines.values()]))
    label = _labels(explained)
    for column, (name, side) in enumerate(zip(explained.channels, _profiles(explained), strict=True)):
        low, high = ranges[column]
        yield Row(
            kind="channel",
            name=name,
            label=label[column],
            low=low,
            high=high,
            ticks=_value_ticks(low, high),
            lines=tuple(
                Line(role, first, _numbers(values[:, column], high - low))
                for role, (first, values) in lines.items()
                if np.isfinite(values[:, column]).any()
            ),
            bands=tuple(
                Band(
                    explained.steps(patch).start,
                    explained.steps(patch).stop - 1,
                    state,
                    float(tone[patch, column]) if tone is not None and state == "open" else None,
                )
                for patch, state in enumerate(map(_state, mask[:, column], missing[:, column]))
                if state != "closed"
            ),
            side=side,
        )


def _context_lines(
    explained: ExplainedForecast, shown: Itemised | None
) -> dict[Role, tuple[int, Float64[np.ndarray, "step channel"]]]:
    """Return the lines behind the values, with their first steps.

    With a receipt these are the two that its amounts start from: the profile of every step that could be read, and the
    forecast if all had been usual. Without one it is the profile at this window's level. Next to amounts, that would
    look like a forecast.
    """
    own = explained.explanation.context
    if shown is None:
        level = np.tile(explained.units.to_units(own.level[None].astype(np.float64)), (len(explained.times), 1))
        return {"level": (0, level), "baseline": (0, explained.expected)}
    calendar = np.full_like(explained.forecast, np.nan)
    for name, amounts in shown.amounts.items():
        calendar[:, explained.channels.index(name)] = amounts.calendar + amounts.known.sum(axis=0)
    return {"usual": (0, explained.usual), "calendar": (explained.look_back, calendar)}


def _known_rows(explained: ExplainedForecast) -> Iterator[Row]:
    if explained.known is None:
        return
    ranges = _ranges(explained.known)
    label = _labels(explained)[len(explained.channels) :]
    for number, name in enumerate(explained.covariates):
        low, high = ranges[number]
        yield Row(
            kind="known",
            name=name,
            label=label[number],
            low=low,
            high=high,
            ticks=_value_ticks(low, high),
            lines=(Line("known", 0, _numbers(explained.known[:, number], high - low)),),
            bands=(),
            side=_responses(explained, number),
        )


def _labels(explained: ExplainedForecast) -> list[tuple[str, ...]]:
    names = (*explained.channels, *explained.covariates)
    return [tuple(name.split("\n")) for name in labels.row_names(names, NAME_WIDTH)]


def _profiles(explained: ExplainedForecast) -> Iterator[Side]:
    """Yield the profiles of each channel; all channels share one range, so that a flat one looks flat."""
    context = explained.explanation.context
    profile, cycles, phase = context.profile.astype(np.float64), context.cycles, context.phase
    low, high = _around_zero(profile)
    ticks = _value_ticks(low, high)[-1]
    tables = parts(profile, cycles)
    made = int(phase[explained.look_back - 1])
    marks = tuple(_place(cycles, number, made % cycle + 0.5) for number, cycle in enumerate(cycles))
    borders = tuple(_place(cycles, number, -0.5) for number in range(1, len(cycles)))
    for column in range(len(explained.channels)):
        curves = tuple(
            _curve(f"cycle of {cycles[number]}", 0, cycles, number, table[:, column], high - low)
            for number, table in enumerate(tables)
        )
        yield Side("profile Q (in σ)", low, high, ticks, curves, marks, borders)


TITLE_ROOM = 0.2
"""The part of the height of a response that is free above its curves, where its title is written."""


def _responses(explained: ExplainedForecast, number: int) -> Side:
    """Return the response of every forecast channel to a covariate, by the phase of the first cycle."""
    context = explained.explanation.context
    assert context.response is not None
    response, cycles = context.response[:, number].astype(np.float64), context.cycles
    low, high = _around_zero(response)
    high += TITLE_ROOM * (high - low)
    return Side(
        title="response (in std)",
        low=low,
        high=high,
        ticks=_value_ticks(low, high)[-1],
        curves=tuple(
            _curve(explained.channels[column], style, cycles, 0, response[:, column], high - low)
            for column, style in _responding(explained)
        ),
        marks=(),
        borders=(),
    )


def _responding(explained: ExplainedForecast) -> list[tuple[int, int]]:
    """Return the column and the style of each channel that responds to covariates. Many channels share one style."""
    if explained.known is None:
        return []
    columns = np.flatnonzero(explained.is_forecast).tolist()
    return [(column, style if len(columns) <= labels.MANY else 0) for style, column in enumerate(columns)]


def _legend(explained: ExplainedForecast, shown: Itemised | None) -> Iterator[Entry]:
    missing = explained.explanation.missing
    yield Entry("look-back", "look-back")
    if explained.truth is not None:
        yield Entry("truth", "truth")
    yield Entry("forecast", "forecast")
    if shown is None:
        yield Entry("level", "level")
        # With covariates, the baseline contains their effects too.
        known = explained.known is not None
        yield Entry("baseline", "profile at this level + effects" if known else "profile at this level and scale")
    else:
        if shown.amounts:
            yield Entry("calendar", "calendar" if explained.known is None else "calendar + known ahead")
        yield Entry("usual", "learned profile")
    if explained.known is not None:
        yield Entry("known", "known ahead")
    if shown is None:
        yield Entry("open", "open (read)")
    else:
        name = labels.shortened(shown.receipt.channel, NAME_WIDTH)
        yield Entry("raises", f"read, raises {name}")
        yield Entry("lowers", f"read, lowers {name}")
        if 0 in shown.receipt.read:
            yield Entry("neither", "read, adds 0")
    if missing.any():
        yield Entry("missing", "missing")
    yield Entry("made", "forecast made")


def _gates(explained: ExplainedForecast, shown: Itemised | None) -> Gates:
    explanation = explained.explanation
    mask, probability, missing = explanation.mask, explanation.probability, explanation.missing
    state = [[_state(*cell) for cell in zip(*rows, strict=True)] for rows in zip(mask, missing, strict=True)]
    text = []
    for patch, states in enumerate(state):
        span = words.span_of(explained, patch, patch)
        cells = zip(explained.channels, states, probability[patch], strict=True)
        text.append([f"{name}, {span}: {state}, probability {gate:.2f}" for name, state, gate in cells])
    adds = [[""] * len(explained.channels) for _ in state]
    if shown is not None:
        forecast = forecast_of(explained, shown.receipt)
        for (patch, column), amount in zip(places(explained), shown.receipt.read, strict=True):
            adds[patch][column] = f"adds {amount:+g} to the {forecast}"
    return Gates(
        channels=explained.channels,
        patch_len=explanation.patch_len,
        probability=tuple(tuple(round(float(gate), 4) for gate in row) for row in probability),
        state=tuple(map(tuple, state)),
        text=tuple(map(tuple, text)),
        adds=tuple(map(tuple, adds)),
    )


def _state(opened: np.bool_, missing: np.bool_) -> State:
    return "open" if opened else "missing" if missing else "closed"


def _curve(
    name: str, style: int, cycles: Sequence[int], number: int, values: Float64[np.ndarray, " phase"], span: float
) -> Curve:
    at = tuple(_place(cycles, number, phase) for phase in range(len(values)))
    return Curve(name, style, at, _numbers(values, span))


def _place(cycles: Sequence[int], number: int, phase: float | int) -> float:
    """Return the position of a phase: cycles are next to each other, each as wide as the first."""
    return round(number * cycles[0] + phase * cycles[0] / cycles[number], 4)


def _value_ticks(low: float, high: float) -> TickSets:
    return tuple(_ticks(*labels.value_ticks(low, high, at_most)) for at_most in _VALUE_LABELS)


def _ticks(positions: Sequence[float | int], texts: Sequence[str]) -> tuple[Tick, ...]:
    return tuple(Tick(float(at), tuple(text.split("\n"))) for at, text in zip(positions, texts, strict=True))


def _ranges(values: Float64[np.ndarray, "step row"]) -> list[tuple[float, float]]:
    """Return the lowest and the highest value of each row, with some air around them."""
    values = np.where(np.isfinite(values), values, np.nan)
    ranges = labels.with_air(np.nanmin(values, axis=0), np.nanmax(values, axis=0))
    return [(low, high) for low, high in ranges.tolist()]


def _around_zero(values: Float64[np.ndarray, "phase channel"]) -> tuple[float, float]:
    return _ranges(np.append(values.ravel(), 0.0)[:, None])[0]


def _numbers(values: Float64[np.ndarray, " step"], span: float) -> tuple[float | None, ...]:
    """Return numbers as precise as a drawing needs; None for a missing one."""
    decimals = int(np.ceil(-np.log10(_PRECISION * span)))
    # Adding 0.0 turns -0.0 into 0.0, so that the same picture is always the same text.
    return tuple(round(value, decimals) + 0.0 if np.isfinite(value) else None for value in values.tolist())


def _columns(cells: Sequence[Any], kept: Sequence[int]) -> tuple[Any, ...]:
    return tuple(cells[column] for column in kept)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(member) for member in value] if isinstance(value, tuple) else value
