"""Workbooks of formulas: an evaluator of formulas gets the forecasts of the model, also of changed values."""

import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
import torch
from openpyxl.utils import range_boundaries
from tests.anchors import halve_anchor

from ibforecast import ExplainedForecast, IBForecaster, MissingExtraError, UsageError
from ibforecast.adapters.spreadsheet import AMOUNTS, TOTAL
from ibforecast.core.receipt import places

ROWS, LOOK_BACK, HORIZON = 300, 24, 6
CLOSE = 1e-5
"""Standard deviations by which a formula may differ from the model, which computes in single precision."""

FIRST, LAST = "=1+1", "a [long] name: heat, cut where Excel cuts it/?"
RECIPE = """
extends = "additive"
[model.readout]
width = 16
[train]
epochs = 1
batch = 64
"""


# --- A spreadsheet program for the few functions that are used ---

REFERENCE = re.compile(r"(?:(?:'([^']+)'|([A-Za-z]\w*))!)?(\$?[A-Z]{1,3}\$?\d+(?::\$?[A-Z]{1,3}\$?\d+)?)(?!\()")


def flat(arguments: Iterable[Any]) -> list[float]:
    """Return the numbers among arguments, which are numbers or ranges."""
    cells = [cell for one in arguments for cell in (one if isinstance(one, list) else [one])]
    return [cell for cell in cells if isinstance(cell, int | float)]


def sum_of_products(*columns: Any) -> float:
    lists = [[float(cell or 0) for cell in (column if isinstance(column, list) else [column])] for column in columns]
    return math.fsum(math.prod(row) for row in zip(*lists, strict=True))


FUNCTIONS: dict[str, Callable[..., float]] = {
    "SUM": lambda *cells: math.fsum(flat(cells)),
    "SUMSQ": lambda *cells: math.fsum(cell**2 for cell in flat(cells)),
    "SUMPRODUCT": sum_of_products,
    "SQRT": math.sqrt,
    "TANH": math.tanh,
    "MAX": lambda *cells: max(flat(cells)),
    "MIN": lambda *cells: min(flat(cells)),
    "ROUND": lambda value, digits: round(value, int(digits)),
}


class Program:
    """A workbook that was opened, with formulas computed when they are needed."""

    def __init__(self, path: Path) -> None:
        self.book = openpyxl.load_workbook(path)
        self.computed: dict[tuple[str, str], Any] = {}

    def change(self, sheet: str, cell: str, value: float) -> None:
        self.book[sheet][cell].value = value
        self.computed.clear()

    def value(self, sheet: str, cell: str) -> Any:
        key = sheet, cell.replace("$", "")
        if key not in self.computed:
            content = self.book[sheet][key[1]]
            self.computed[key] = self._formula(sheet, content.value) if content.data_type == "f" else content.value
        return self.computed[key]

    def column(self, sheet: str, letter: str, first: int = 2) -> list[Any]:
        return [self.value(sheet, f"{letter}{row}") for row in range(first, self.book[sheet].max_row + 1)]

    def _formula(self, sheet: str, formula: str) -> float:
        def cells(reference: re.Match[str]) -> str:
            other, area = reference[1] or reference[2] or sheet, reference[3].replace("$", "")
            return f"at({other!r}, {area!r})"

        def at(other: str, area: str) -> Any:
            if ":" not in area:
                return self.value(other, area)
            left, top, right, bottom = range_boundaries(area)
            assert left == right, "only columns are used"
            letter = area.rstrip("0123456789").rpartition(":")[2]
            return [self.value(other, f"{letter}{row}") for row in range(top, bottom + 1)]

        python = REFERENCE.sub(cells, formula.removeprefix("=")).replace("^", "**")
        return float(eval(python, {"__builtins__": {}, "at": at} | FUNCTIONS))


# --- Models ---


def make_table(**more: Any) -> pd.DataFrame:
    random, hour = np.random.default_rng(2), np.arange(ROWS)
    values = np.sin(2 * np.pi * hour / 24)[:, None] * (5.0, 0.01, 300.0) + random.normal(size=(ROWS, 3)) * (2, 0.01, 90)
    when = pd.date_range("2023-03-01", periods=ROWS, freq="h")
    return pd.DataFrame({"when": when, FIRST: values[:, 0] + 20, "wind": values[:, 1], LAST: values[:, 2] - 7e4} | more)


def fit(folder: Path, table: pd.DataFrame, **settings: Any) -> IBForecaster:
    """Fit an additive model, and move its weights so that every one of them matters."""
    recipe = folder / "tiny.toml"
    recipe.write_text(RECIPE)
    model = IBForecaster(HORIZON, LOOK_BACK, recipe=str(recipe), device="cpu", **settings).fit(table)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.fitted.network.parameters():
            weight += 0.2 * torch.randn(weight.shape, generator=random)
    return halve_anchor(model)


Case = tuple[IBForecaster, pd.DataFrame, ExplainedForecast, Path]


@pytest.fixture(scope="module", params=["plain", "covariates", "limits", "anchor"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model, its table, an explanation at the end of the table, and its workbook."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "anchor":
        table = make_table()
        table[FIRST] = np.repeat(table[FIRST].to_numpy()[::40], 40)[
            :ROWS
        ]  # stairs, which the newest value describes best
        model = fit(folder, table)
        anchor = model.fitted.network.decompose.anchor
        assert anchor is not None
        assert anchor.blend[:, 0].sum() > 0
        anchor.blend *= 0.5  # so that the readout matters too
        explained = model.explain(table)
    elif request.param != "covariates":
        table = make_table()
        limits = {"limits": {FIRST: (18.5, 21.5), "wind": (0, None)}, "whole": [LAST]}
        model = fit(folder, table, **(limits if request.param == "limits" else {}))
        explained = model.explain(table)
    else:
        random = np.random.default_rng(3)
        table = make_table(plan=random.normal(size=ROWS) * 4 + 9, holiday=(random.random(ROWS) < 0.2).astype(float))
        model = fit(folder, table, past=["wind"], future=["plan", "holiday"], patch_len=2, cycle=(24, 12 * 7))
        explained = model.explain(table, at=table["when"][ROWS - HORIZON - 1])
    return model, table, explained, explained.to_spreadsheet(folder / "why.xlsx")


def by_formulas(program: Program, explained: ExplainedForecast) -> np.ndarray:
    """Return the forecast that the workbook computes: horizon, forecast channel."""
    return np.array(program.column("Forecast", "E")).reshape(-1, explained.horizon).T


def forecast_of(explained: ExplainedForecast) -> np.ndarray:
    return explained.forecast[:, explained.is_forecast]


def in_stds(difference: np.ndarray, explained: ExplainedForecast) -> float:
    return float(np.abs(difference / explained.units.std[explained.is_forecast]).max())


def test_the_formulas_give_every_number_of_the_forecast(case: Case) -> None:
    _, _, explained, path = case
    program = Program(path)
    assert in_stds(by_formulas(program, explained) - forecast_of(explained), explained) < CLOSE
    printed = np.array(program.column("Forecast", "D")).reshape(-1, HORIZON).T
    assert printed == pytest.approx(forecast_of(explained), rel=1e-15)  # a workbook has 16 digits
    facts = dict(zip(program.column("About", "A"), program.column("About", "B"), strict=True))
    assert facts["largest difference (standard deviations)"] < CLOSE
    assert facts["weights of the model (SHA-256)"] == explained.weights_sha256
    assert facts["forecast made at"] == explained.at


def test_a_value_that_is_changed_in_the_workbook_changes_the_forecast_as_in_the_model(case: Case) -> None:
    model, table, explained, path = case
    program = Program(path)
    assert program.book["Read"].max_row - 1 == explained.open_count * explained.patch_len
    for row in range(2, program.book["Read"].max_row + 1, 3):
        channel, time, value = (program.value("Read", f"{letter}{row}") for letter in "ABC")
        other = value + 3 * float(explained.units.std[explained.channels.index(channel)])
        changed = table.copy()
        changed.loc[changed["when"] == pd.Timestamp(time), channel] = other
        again = model.explain(changed, at=pd.Timestamp(explained.at))
        assert in_stds(forecast_of(again) - forecast_of(explained), explained) > 100 * CLOSE
        program.change("Read", f"C{row}", other)
        assert in_stds(by_formulas(program, explained) - forecast_of(again), explained) < CLOSE
        program.change("Read", f"C{row}", value)


def test_a_covariate_that_is_changed_in_the_workbook_changes_the_forecast_as_in_the_model(case: Case) -> None:
    model, table, explained, path = case
    program = Program(path)
    assert ("Known ahead" in program.book.sheetnames) == bool(explained.covariates)
    for number, covariate in enumerate(explained.covariates):
        changed = table.copy()
        changed.loc[ROWS - HORIZON + 1, covariate] = 5.0
        program.change("Known ahead", f"E{2 + number}", 5.0)  # the second step ahead
        again = model.explain(changed, at=pd.Timestamp(explained.at))
        assert in_stds(forecast_of(again) - forecast_of(explained), explained) > 100 * CLOSE
        assert in_stds(by_formulas(program, explained) - forecast_of(again), explained) < CLOSE
        program = Program(path)


def test_the_amounts_are_those_of_the_receipt(case: Case) -> None:
    _, _, explained, path = case
    program, look_back = Program(path), {time: step for step, time in enumerate(explained.times)}
    names = [name for name in explained.channels if name not in explained.past]
    for sheet, name in zip(program.book.sheetnames[-len(names) :], names, strict=True):
        amounts, std = explained.amounts(name), float(explained.units.std[explained.channels.index(name)])
        read, known = {place: np.zeros(HORIZON) for place in places(explained)}, []
        for row in range(TOTAL + 1, program.book[sheet].max_row + 1):
            part, channel, time = (program.value(sheet, f"{letter}{row}") for letter in "ABC")
            cells = [program.book[sheet].cell(row, AMOUNTS + step).coordinate for step in range(HORIZON)]
            added = np.array([program.value(sheet, cell) for cell in cells], dtype=float)
            if part == "read":
                token = look_back[time] // explained.patch_len, explained.channels.index(channel)
                read[token] += added
            elif part == "known ahead":
                known.append(added)
            elif part == "calendar":
                assert np.abs(added - amounts.calendar).max() < CLOSE * std
        assert np.abs(np.array([*read.values()]) - amounts.read).max() < CLOSE * std
        assert len(known) == len(amounts.known)
        assert all(np.abs(one - other).max() < CLOSE * std for one, other in zip(known, amounts.known, strict=True))


def test_names_are_text_in_every_sheet_and_only_yellow_cells_are_inputs(case: Case) -> None:
    _, _, explained, path = case
    book = openpyxl.load_workbook(path)
    cells = [cell for sheet in book for row in sheet for cell in row if cell.value is not None]
    assert all(cell.data_type == "s" for cell in cells if cell.value in explained.channels)
    assert {cell.value for cell in cells if cell.data_type == "s"} >= {FIRST, LAST}
    inputs = [cell for cell in cells if cell.fill.fgColor.rgb == "00FFF2CC"]
    expected = explained.open_count * explained.patch_len + len(explained.covariates) * HORIZON
    assert len(inputs) == expected
    assert all(cell.data_type == "n" for cell in inputs)


def test_channels_and_steps_can_be_chosen(case: Case, tmp_path: Path) -> None:
    _, _, explained, _ = case
    program = Program(explained.to_spreadsheet(tmp_path / "some.xlsx", channels=[LAST], steps=[5, 2]))
    column = explained.channels.index(LAST)
    assert program.column("Forecast", "A") == [LAST, LAST]
    assert program.column("Forecast", "B") == [2, 5]
    differences = program.column("Forecast", "E") - explained.forecast[[1, 4], column]
    assert np.abs(differences).max() < CLOSE * explained.units.std[column]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"channels": ["sun"]}, "channel must be one that is forecast"),
        ({"channels": []}, "a spreadsheet must have a forecast channel"),
        ({"channels": "wind"}, r"channels must be a list of names \(got 'wind'\); write \['wind'\]"),
        ({"steps": [0]}, "from 1 to 6"),
        ({"steps": [7]}, "from 1 to 6"),
        ({"steps": []}, "from 1 to 6"),
    ],
)
def test_an_invalid_choice_is_refused(case: Case, tmp_path: Path, choice: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        case[2].to_spreadsheet(tmp_path / "some.xlsx", **choice)
    assert not [*tmp_path.iterdir()]


def test_a_workbook_that_would_be_too_large_is_refused(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained = case[2]
    monkeypatch.setattr("ibforecast.adapters.spreadsheet.MOST_CHANNELS", 1)
    with pytest.raises(UsageError, match=r"at most 1 unless they are chosen .*; choose them: channels=\[…\]"):
        explained.to_spreadsheet(tmp_path / "why.xlsx")
    monkeypatch.setattr("ibforecast.adapters.spreadsheet.MOST_AMOUNTS", 10)
    with pytest.raises(UsageError, match=r"at most 10 amounts.*; choose fewer"):
        explained.to_spreadsheet(tmp_path / "why.xlsx", channels=[LAST])


def test_a_model_that_is_not_additive_is_refused(tmp_path: Path) -> None:
    table = make_table()
    sealed = IBForecaster(HORIZON, LOOK_BACK, recipe="sealed", epochs=1, device="cpu").fit(table)
    with pytest.raises(UsageError, match=r"readout is additive \(got readout 'phase'.*fit with recipe=\"additive\""):
        sealed.explain(table).to_spreadsheet(tmp_path / "why.xlsx")


def test_other_files_and_explanations_without_a_model_are_refused(case: Case, tmp_path: Path) -> None:
    explained = case[2]
    with pytest.raises(UsageError, match=r"must end in \.xlsx"):
        explained.to_spreadsheet(tmp_path / "why.csv")
    with pytest.raises(UsageError, match="a spreadsheet needs the model that gave the explanation"):
        ExplainedForecast.from_json(explained.to_json()).to_spreadsheet(tmp_path / "why.xlsx")


def test_without_openpyxl_the_error_says_what_to_install(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ibforecast\[spreadsheet\]'"):
        case[2].to_spreadsheet(tmp_path / "why.xlsx")
