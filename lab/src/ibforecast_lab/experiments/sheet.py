"""Tables: a specification of rows and columns, and the resulting sheet of flat rows and printed text."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ibforecast.core.files import to_json
from ibforecast_lab.experiments.frame import Row, frame
from ibforecast_lab.experiments.ledger import LOOK_BACK, Record
from ibforecast_lab.experiments.plans import Plan

NOT_RUN, NONE, UNDEFINED = "not run", "–", "undefined"
NATIVE, PAPER = "native", "ibforecast"
"""The name of a forecaster's own explanation, and the name of our forecaster in print."""

MARKS = "marks"
"""The field of a line that contains a pattern for the text of each marked field, such as "**{}**"."""

Cells = list[str]


@dataclass(frozen=True)
class Sheet:
    """The content of a label, with a `note` on how to read it; `keys` are the fields that identify a row.

    In the body `**x**` marks the best value and `_x_` the best one of an interpretable model.
    """

    title: str
    rows: list[Row]
    header: Cells
    body: list[Cells]
    note: str = ""
    keys: tuple[str, ...] = ()


# --- Formats of values ---


def known(form: str) -> Callable[[Any], str]:
    """Format a value; None is a dash."""
    return lambda value: NONE if value is None else format(value, form)


def measured(value: float | None) -> str:
    """Format a measured number; None is undefined."""
    return UNDEFINED if value is None else f"{value:.3f}"


def words(value: Any) -> str:
    """Return a value as text; None is a dash."""
    return NONE if value is None else str(value)


number, share, change, count, general = map(known, (".3f", ".1%", "+z.1%", ",", "g"))


# --- Tables ---


@dataclass(frozen=True)
class Column:
    """A printed column: its name, its field and the field's format; `spread` names the field of a standard deviation.

    A column of `published` numbers shows the field in the published rows that belong to the line.
    """

    name: str
    field: str
    form: Callable[[Any], str] = words
    spread: str = ""
    published: bool = False

    def text(self, line: Row) -> str:
        """Return the text for a line that has the field."""
        text = self.form(line[self.field])
        if line.get(self.spread) is not None:
            text += f" ± {self.form(line[self.spread])}"
        return str(line.get(MARKS, {}).get(self.field, "{}")).format(text)


@dataclass(frozen=True)
class Table:
    """The specification of a table: flat rows for programs, and the columns and lines that are printed.

    `rows` and `published` return the rows of our runs and of print. `compared` adds fields that depend on other rows.
    `lines` selects and sorts the rows that are printed. If a line lacks a field, its cell is "not run" if the field is
    in `missing`, and a dash otherwise. `counterparts` returns the published rows that belong to a line. `look_back` is
    that of the runs which the table is about; None means any.
    """

    title: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: Callable[[list[Row]], list[Row]]
    lines: Callable[[list[Row]], list[Row]]
    note: str = ""
    missing: Collection[str] = ()
    published: Callable[[], list[Row]] = list
    compared: Callable[[list[Row]], list[Row]] = list
    counterparts: Callable[[Row, list[Row]], list[Row]] = lambda line, published: []
    look_back: int | None = LOOK_BACK

    def __call__(self, records: Iterable[Record]) -> Sheet:
        """Compute the sheet from records."""
        return self.sheet(frame(records))

    def sheet(self, tidy: list[Row]) -> Sheet:
        """Compute the sheet from the frame of records."""
        measured = [row for row in tidy if self.look_back in (None, row["look_back"])]
        rows = _alike(self.compared([*self.rows(measured), *self.published()]))
        published = [row for row in rows if row.get("source") == "published"]
        body = [
            [self._cell(column, line, printed) for column in self.columns]
            for line in self.lines(rows)
            for printed in [self.counterparts(line, published)]
        ]
        header = [column.name for column in self.columns]
        return Sheet(self.title, rows, header, body, self.note, self.keys)

    def _cell(self, column: Column, line: Row, printed: list[Row]) -> str:
        if column.published:
            return " / ".join(column.text(row) for row in printed if row.get(column.field) is not None) or NONE
        if column.field not in line:
            return NOT_RUN if column.field in self.missing else NONE
        return column.text(line)


def _alike(rows: list[Row]) -> list[Row]:
    """Return rows with their fields in the order of the first row, the source last."""
    fields = sorted(rows[0], key=lambda name: name == "source") if rows else []
    return [{name: row[name] for name in fields} for row in rows]


def places(plan: Plan) -> list[Row]:
    """Return the data set, horizon and model of every line of a plan."""
    return [
        {"data": data, "horizon": horizon, "model": model}
        for horizon in plan.horizons
        for data in plan.data
        for model in plan.models
    ]


def placed(rows: Iterable[Row], planned: list[Row], beyond: bool = True) -> list[Row]:
    """Return the rows of the ledger, planned places first; a planned place without rows is a line by itself."""
    fields = list(planned[0])
    lines: dict[tuple[Any, ...], list[Row]] = {tuple(place.values()): [] for place in planned}
    for row in rows:
        place = tuple(row[field] for field in fields)
        if row["source"] == "ledger" and (beyond or place in lines):
            lines.setdefault(place, []).append(row)
    return [line for place, here in lines.items() for line in here or [dict(zip(fields, place, strict=True))]]


def run_fields(line: Row) -> Row:
    """Return a line without the fields that are None, so that their cells are "not run"."""
    return {name: value for name, value in line.items() if value is not None}


def marked(line: Row, **marks: str) -> Row:
    """Return a line with patterns for the text of its fields."""
    return line | {MARKS: line.get(MARKS, {}) | marks}


# --- Formats of sheets ---


def to_markdown(sheet: Sheet) -> str:
    """Return the title, a GitHub-flavoured table and the note."""
    table = markdown_table(sheet.header, sheet.body)
    return f"**{sheet.title}**\n\n{table}\n" + (f"\n{sheet.note}\n" if sheet.note else "")


def markdown_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a GitHub-flavoured table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *body))


def to_latex(sheet: Sheet) -> str:
    """Return a booktabs table, with title and note as comments."""
    lines = [" & ".join(_latex(cell) for cell in line) + r" \\" for line in (sheet.header, *sheet.body)]
    return "\n".join(
        [
            f"% {sheet.title}",
            *([f"% {sheet.note}"] if sheet.note else []),
            rf"\begin{{tabular}}{{{'l' * len(sheet.header)}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def to_csv(sheet: Sheet) -> str:
    """Return the flat rows as CSV; None is an empty field."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(sheet.rows[0]) if sheet.rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(sheet.rows)
    return text.getvalue()


FORMATS: dict[str, Callable[[Sheet], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
    "json": lambda sheet: to_json(sheet.rows).decode(),
}


def _latex(cell: str) -> str:
    for mark, command in (("**", r"\textbf"), ("_", r"\underline")):
        if len(cell) > 2 * len(mark) and cell.startswith(mark) and cell.endswith(mark):
            return f"{command}{{{_latex(cell[len(mark) : -len(mark)])}}}"
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), ("–", "--"), ("&", r"\&")):
        cell = cell.replace(plain, escaped)
    return cell
