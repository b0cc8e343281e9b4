"""The forecast of an additive model as a workbook of formulas, which a spreadsheet program computes by itself.

Only the values that were read, and the covariates known ahead, are inputs. Everything else is a weight or a formula.

| sheet | contents |
|---|---|
| About | what the workbook is, of which model and moment |
| Forecast | every number of the forecast, as the model printed it and as the formulas give it |
| Read | the values that were read; how far each is from its profile |
| Scales | level and scale of each channel |
| Known ahead | covariates known ahead, if the model has any |
| 1 NAME, … | of each forecast channel: the weights, and what each value adds at each step |
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from ibforecast.core.context import effect
from ibforecast.core.errors import MissingExtraError, names_of, require
from ibforecast.core.explained import ExplainedForecast
from ibforecast.core.files import write_atomically
from ibforecast.core.receipt import FINE, column_of, decimals_of, is_limited
from ibforecast.engine import TorchEngine
from ibforecast.receipts import Read, Weights, additive, weights
from ibforecast.zoo.saved import FittedModel

MOST_CHANNELS = 8
"""How many forecast channels a workbook has unless they are chosen."""

MOST_AMOUNTS = 250_000
"""How many amounts a workbook may have: one for each value that was read, step ahead and forecast channel."""

ABOUT, FORECAST, READ, SCALES, KNOWN = "About", "Forecast", "Read", "Scales", "Known ahead"
WORDS = (
    "This workbook computes a forecast by formulas, so that anyone can check it without the software that made it.",
    "The forecast is the calendar, which is the forecast if every value had been at its learned profile, plus an "
    "amount for every value that was read and for everything that is known ahead. If the channel has limits, the last "
    "amount is what they change.",
    "With u the distance of a value from its profile in standard deviations, its amount is linear × u + bent × "
    "tanh(u) + swing × its share in the change of its channel's scale.",
    "The only inputs are the yellow cells: change one, and the forecast changes as the model's would.",
    "All other numbers are weights of the model for this moment, or formulas.",
)
GENERAL, STANDARDISED, TINY = "General", "0.000000", "0.0E+00"
"""Number formats."""

FORBIDDEN = re.compile(r"[][:*?/\\'\x00-\x1f]")
"""Characters that Excel does not allow in the name of a sheet, or only in some places."""

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Characters that a workbook cannot contain."""

MOST_DECIMALS = 30
"""How many decimals Excel can show."""

TOTAL, AMOUNTS = 4, 8
"""In the sheet of a forecast channel: the row of the forecast, under the head, and the first column of amounts."""

KNOWN_VALUES = 4
"""The first column of values in the sheet of covariates known ahead."""


def write(
    engine: TorchEngine,
    explained: ExplainedForecast,
    path: Path,
    channels: Sequence[str] | None = None,
    steps: Sequence[int] | None = None,
) -> None:
    """Write the forecast of an additive model as a workbook of formulas; the file is complete or not written.

    `channels` and `steps` (numbers of steps ahead, from 1) choose what is in it; None: everything.
    """
    check_file(path)
    check_model(engine.fitted)
    forecast = (name for name in explained.channels if name not in explained.past)
    names = names_of("channels", forecast if channels is None else channels)
    require(
        len(names) > 0 and (channels is not None or len(names) <= MOST_CHANNELS),
        f"a spreadsheet must have a forecast channel, and at most {MOST_CHANNELS} unless they are chosen",
        len(names),
        "choose them: channels=[…] (--channel NAME)",
    )
    columns = dict.fromkeys(column_of(explained, name) for name in names)
    horizon = range(1, explained.horizon + 1)
    chosen = horizon if steps is None else steps
    require(
        len(chosen) > 0 and all(step in horizon for step in chosen),
        f"steps must be numbers of steps ahead from 1 to {explained.horizon}",
        f"steps={steps!r}",
        "try steps=[1]",
    )
    ahead = sorted({int(step) for step in chosen})
    count = explained.open_count * explained.explanation.patch_len * len(columns) * len(ahead)
    require(
        count <= MOST_AMOUNTS,
        f"a spreadsheet must have at most {MOST_AMOUNTS:,} amounts: values read × channels × steps",
        f"{count:,}",
        "choose fewer: channels=[…], steps=[…] (--channel NAME --step NUMBER)",
    )
    write_atomically(path, _Book(explained, weights(engine, explained, list(columns)), ahead).content())


def check_file(path: Path) -> None:
    """Refuse a file that is not a workbook, and any file if the package that writes it is missing."""
    require(path.suffix.lower() == ".xlsx", "a spreadsheet's file must end in .xlsx", repr(path.name), "rename it")
    if find_spec("openpyxl") is None:
        raise MissingExtraError("openpyxl", "spreadsheet")


def check_model(fitted: FittedModel) -> None:
    """Refuse a model whose forecasts are not sums of amounts."""
    sealed = fitted.config.sealed
    require(
        additive(fitted.network) is not None and sealed,
        "a spreadsheet needs a sealed model whose readout is additive",
        f"readout {fitted.config.readout.kind!r}, {'sealed' if sealed else 'not sealed'}",
        'fit with recipe="additive"',
    )


class _Formula(str):
    """A text that a spreadsheet program computes. Any other text is shown as it is, even if it begins with "="."""


class _Input(float):
    """A number that a reader may change."""


@dataclass(frozen=True)
class _Place:
    """A value that was read: its number, its step and column in the window, and its row in the sheet `Read`."""

    number: int
    step: int
    column: int
    row: int


@dataclass(frozen=True, eq=False)
class _Book:
    """A workbook to be written: an explanation, the published sums of the chosen channels, and the steps ahead."""

    explained: ExplainedForecast
    sums: dict[int, Weights]
    ahead: Sequence[int]

    @cached_property
    def shared(self) -> Read:
        """The values that were read: with level and scales they are the same in all published sums."""
        return next(iter(self.sums.values())).read

    @cached_property
    def places(self) -> list[_Place]:
        """The values that were read, channel by channel, so that the values of a channel are one range."""
        places = zip(self.shared.step.tolist(), self.shared.channel.tolist(), strict=True)
        return [_Place(number, step, column, number + 2) for number, (step, column) in enumerate(places)]

    @cached_property
    def scaled(self) -> dict[int, int]:
        """The columns of channels that are read or forecast, and the row of each in the sheet `Scales`."""
        columns = sorted({place.column for place in self.places} | self.sums.keys())
        return {column: row for row, column in enumerate(columns, start=2)}

    @cached_property
    def sheets(self) -> dict[int, str]:
        """The name of each forecast channel's sheet: numbered, because Excel allows only 31 of certain characters."""
        allowed = {column: FORBIDDEN.sub("_", self.explained.channels[column]) for column in self.sums}
        return {column: f"{n} {name}"[:31] for n, (column, name) in enumerate(allowed.items(), start=1)}

    @property
    def times(self) -> list[str]:
        """The moment of each step ahead."""
        return [self.explained.times[self.explained.look_back + step - 1] for step in self.ahead]

    def content(self) -> bytes:
        """Return the file."""
        from openpyxl import Workbook

        book = Workbook()
        book.calculation.fullCalcOnLoad = True  # the file has formulas without their results
        self._about(book.active)
        self._forecast(book.create_sheet(FORECAST))
        self._read(book.create_sheet(READ))
        self._scales(book.create_sheet(SCALES))
        if self.explained.covariates:
            self._known(book.create_sheet(KNOWN))
        for column, name in self.sheets.items():
            self._channel(book.create_sheet(name), column)
        file = BytesIO()
        book.save(file)
        return file.getvalue()

    def _about(self, sheet: Any) -> None:
        explained, differences = self.explained, f"{FORECAST}!G2:G{1 + len(self.sums) * len(self.ahead)}"
        sheet.title = ABOUT
        _write(sheet, 1, ["A forecast by formulas"], bold=True)
        for row, sentence in enumerate(WORDS, start=2):
            _write(sheet, row, [sentence])
        facts: dict[str, Any] = {
            "forecast made at": explained.at,
            "forecast of": f"{self.times[0]} to {self.times[-1]}, steps of {explained.frequency}",
            "units": "those of the table, each channel in its own",
            "weights of the model (SHA-256)": explained.weights_sha256,
            "explanation (SHA-256)": explained.sha256,
            "values that were read": len(self.places),
            "largest difference (standard deviations)": _Formula(f"=MAX(MAX({differences}),-MIN({differences}))"),
        }
        for row, fact in enumerate(facts.items(), start=len(WORDS) + 3):
            _write(sheet, row, fact, [GENERAL, TINY])
        sheet.column_dimensions["A"].width = 42

    def _forecast(self, sheet: Any) -> None:
        explained = self.explained
        names = "forecast in the document", "forecast by the formulas", "difference", "in standard deviations"
        _head(sheet, ["channel", "steps ahead", "time", *names], freeze="A2")
        row = 1
        for column, name in self.sheets.items():
            digits, std = self._digits(column), f"{SCALES}!$G${self.scaled[column]}"
            for number, (step, time) in enumerate(zip(self.ahead, self.times, strict=True)):
                row += 1
                printed = float(explained.forecast[step - 1, column])
                total = _Formula(f"='{name}'!{_letter(AMOUNTS + number)}{TOTAL}")
                differences = _Formula(f"=E{row}-D{row}"), _Formula(f"=F{row}/{std}")
                cells = [explained.channels[column], step, time, printed, total, *differences]
                _write(sheet, row, cells, [GENERAL] * 3 + [digits] * 2 + [TINY] * 2)

    def _read(self, sheet: Any) -> None:
        explained, own = self.explained, self.shared
        names = (
            "value",
            "profile",
            "standard deviation",
            "u",
            "weight in the level",
            *_in_std(
                "distance of the profile from the level", "distance from the level", "share in the change of scale"
            ),
        )
        _head(sheet, ["channel", "time", *names], freeze="C2")
        for place in self.places:
            row, scale, number = place.row, self.scaled[place.column], place.number
            value, std = float(explained.history[place.step, place.column]), float(explained.units.std[place.column])
            usual = value - float(own.departure[number]) * std
            doubt, count, level, now, then, unit = (f"{SCALES}!${letter}${scale}" for letter in "BCDEFG")
            cells = [
                *(explained.channels[place.column], explained.times[place.step], _Input(value), usual),
                _Formula(f"={unit}"),
                _Formula(f"=(C{row}-D{row})/E{row}"),
                *(float(own.of_level[number]), float(own.season[number])),
                _Formula(f"=H{row}+F{row}-{level}"),
                _Formula(f"=(I{row}^2-H{row}^2)/(({doubt}+{count})*({now}+{then}))"),
            ]
            digits = self._digits(place.column)
            _write(sheet, row, cells, [GENERAL] * 3 + [digits] * 2 + [STANDARDISED] * 5)

    def _scales(self, sheet: Any) -> None:
        _head(
            sheet,
            [
                "channel",
                "doubt",
                "values read",
                *_in_std("level", "scale", "scale of the profile"),
                "standard deviation",
            ],
            freeze="B2",
        )
        for column, row in self.scaled.items():
            rows = [place.row for place in self.places if place.column == column]
            u, weights_of_level, usual, now = (f"{READ}!{x}{rows[0]}:{x}{rows[-1]}" if rows else "0" for x in "FGHI")
            cells = [
                *(self.explained.channels[column], float(self.shared.doubt[column]), len(rows)),
                _Formula(f"=SUMPRODUCT({weights_of_level},{u})"),
                *(_Formula(f"=SQRT((B{row}+SUMSQ({each}))/(B{row}+C{row}))") for each in (now, usual)),
                float(self.explained.units.std[column]),
            ]
            _write(sheet, row, cells, [GENERAL, STANDARDISED, GENERAL] + [STANDARDISED] * 3)

    def _known(self, sheet: Any) -> None:
        known, units, look_back = self.explained.known, self.explained.known_units, self.explained.look_back
        assert known is not None
        assert units is not None
        titles = [f"{title} at {time}" for title in ("value", "u") for time in self.times]
        _head(sheet, ["covariate", "usual value", "standard deviation", *titles], freeze=f"{_letter(KNOWN_VALUES)}2")
        for number, covariate in enumerate(self.explained.covariates):
            row, count = number + 2, len(self.ahead)
            values = [_Input(known[look_back + step - 1, number]) for step in self.ahead]
            letters = _letters(KNOWN_VALUES, count)
            away = [_Formula(f"=({letter}{row}-$B{row})/$C{row}") for letter in letters]
            cells = [covariate, float(units.mean[number]), float(units.std[number]), *values, *away]
            _write(sheet, row, cells, [GENERAL] * (3 + count) + [STANDARDISED] * count)

    def _channel(self, sheet: Any, column: int) -> None:
        """Write the weights of one forecast channel, in its units, and what each value adds to its forecast."""
        explained, count = self.explained, len(self.ahead)
        amounts, linear, bent = (_letters(AMOUNTS + number * count, count) for number in range(3))
        away = _letters(KNOWN_VALUES + count, count)
        sums, std, steps = self.sums[column], float(explained.units.std[column]), np.array(self.ahead) - 1
        name, channels = explained.channels[column], explained.channels
        swings = {source: TOTAL + 2 + number for number, source in enumerate(self.scaled)}
        top, bottom = TOTAL + 2, TOTAL + 1 + len(swings)
        last = bottom + len(explained.covariates) + len(self.places)
        limit = last + 1 if is_limited(explained, column) else None

        def line(part: str, channel: str, facts: Sequence[Any], *blocks: Sequence[Any]) -> list[Any]:
            return [part, channel, *facts, *[None] * (5 - len(facts)), *(cell for block in blocks for cell in block)]

        def in_units(weights_of: Float64[np.ndarray, " horizon"]) -> list[float]:
            return [float(weight) * std for weight in weights_of[steps]]

        total = [_Formula(f"=SUM({a}{TOTAL + 1}:{a}{limit or last})") for a in amounts]
        calendar = [_Formula(f"={s}{TOTAL + 1}+SUMPRODUCT({s}{top}:{s}{bottom},$E{top}:$E{bottom})") for s in linear]
        constant = [each + float(explained.units.mean[column]) for each in in_units(sums.constant)]
        lines = [line("forecast", name, [], total), line("calendar", name, [], calendar, constant)]
        for source, row in self.scaled.items():
            facts: list[Any] = [None, _Formula(f"={SCALES}!E{row}"), _Formula(f"={SCALES}!F{row}")]
            lines.append(
                line("swing of the scale", channels[source], facts, [None] * count, in_units(sums.swing[source]))
            )
        for number, covariate in enumerate(explained.covariates):
            row = TOTAL + len(lines)
            moved = [_Formula(f"={s}{row}*'{KNOWN}'!{u}{2 + number}") for s, u in zip(linear, away, strict=True)]
            lines.append(line("known ahead", covariate, [], moved, in_units(self._response(column)[number])))
        for place in self.places:
            row, weights_of = TOTAL + len(lines), (sums.linear[place.number], sums.bent[place.number])
            facts = [explained.times[place.step], *(_Formula(f"={READ}!{x}{place.row}") for x in "CDFJ")]
            added = [
                _Formula(f"={s}{row}*$F{row}+{b}{row}*TANH($F{row})+{s}${swings[place.column]}*$G{row}")
                for s, b in zip(linear, bent, strict=True)
            ]
            lines.append(line("read", channels[place.column], facts, added, *map(in_units, weights_of)))
        if limit is not None:
            sums_of = (f"SUM({a}{TOTAL + 1}:{a}{last})" for a in amounts)
            changed = [_Formula(f"={self._within_limits(column, computed)}-{computed}") for computed in sums_of]
            lines.append(line("limit", name, [], changed))
        blocks = f"amount added to {name}", "linear weight (calendar: the constant)", "bent weight"
        titles = (title for block in blocks for title in [block, *[None] * (count - 1)])
        _write(sheet, 1, [*[None] * (AMOUNTS - 1), *titles], bold=True)
        _write(sheet, 2, [*[None] * (AMOUNTS - 1), *[f"+{step}" for step in self.ahead] * 3], bold=True)
        names = "part", "channel", "time", "value", "profile", "u", "share in the change of scale"
        _head(sheet, [*names, *self.times * 3], freeze=f"{_letter(AMOUNTS)}{TOTAL + 1}", row=TOTAL - 1)
        digits = [GENERAL] * 5 + [STANDARDISED] * 2 + [self._digits(column)] * 3 * count
        for row, cells in enumerate(lines, start=TOTAL):
            _write(sheet, row, cells, digits, bold=row == TOTAL)

    def _within_limits(self, column: int, computed: str) -> str:
        """Return the expression of what the model computed, within the limits of a channel."""
        limits = self.explained.limits
        assert limits is not None
        low, high = float(limits.low[column]), float(limits.high[column])
        within = f"ROUND({computed},0)" if limits.whole[column] else computed
        within = f"MAX({low!r},{within})" if np.isfinite(low) else within
        return f"MIN({high!r},{within})" if np.isfinite(high) else within

    def _response(self, column: int) -> Float64[np.ndarray, "covariate horizon"]:
        """Return by how much a standard deviation of each covariate moves a channel, in standardised units."""
        context, look_back = self.explained.explanation.context, self.explained.look_back
        assert context.response is not None
        phase, response = context.phase[look_back:], context.response.astype(np.float64)
        return effect(np.ones((len(phase), response.shape[1])), response, phase)[..., column].T

    def _digits(self, column: int) -> str:
        """Return the number format of a channel, with the digits of its receipts."""
        decimals = min(decimals_of(float(self.explained.units.std[column]), FINE), MOST_DECIMALS)
        return f"0.{'0' * decimals}" if decimals else "0"


def _head(sheet: Any, names: Sequence[Any], freeze: str, row: int = 1) -> None:
    """Write the head of a sheet, which stays visible, and give the columns a readable width."""
    _write(sheet, row, names, bold=True)
    for number, name in enumerate(names, start=1):
        sheet.column_dimensions[_letter(number)].width = max(12, len(str(name)) + 2)
    sheet.freeze_panes = freeze


def _write(sheet: Any, row: int, cells: Iterable[Any], formats: Iterable[str] = (), bold: bool = False) -> None:
    """Write a row; a cell is a text, a number, a formula, or None, which is left empty."""
    from openpyxl.styles import Font, PatternFill

    for number, (content, form) in enumerate(zip_longest(cells, formats, fillvalue=None), start=1):
        if content is None:
            continue
        cell = sheet.cell(row, number)
        if isinstance(content, str) and not isinstance(content, _Formula):
            cell.value = UNPRINTABLE.sub("_", content)
            cell.data_type = "s"  # a name that begins with "=" is no formula
        else:
            cell.value = content
            if form is not None:
                cell.number_format = form
        if isinstance(content, _Input):
            cell.fill = PatternFill("solid", fgColor="FFF2CC")
        if bold:
            cell.font = Font(bold=True)


def _letters(first: int, count: int) -> list[str]:
    """Return the letters of a given number of columns, from this one on."""
    return [_letter(number) for number in range(first, first + count)]


def _in_std(*names: str) -> list[str]:
    """Name columns that are not in the table's units."""
    return [f"{name} (in standard deviations)" for name in names]


def _letter(number: int) -> str:
    """Return the letters of a column, counted from 1."""
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(number))
