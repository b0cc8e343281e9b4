"""A table ready to be printed: flat rows for programs, a header and a body for people."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ibforecast.core.files import to_json

Cells = list[str]


@dataclass(frozen=True)
class Sheet:
    """What a label comes to, with a `note` on how to read it.

    In the body `**x**` is the best and `_x_` the best interpretable one.
    """

    title: str
    rows: list[dict[str, Any]]
    header: Cells
    body: list[Cells]
    note: str = ""


def to_markdown(sheet: Sheet) -> str:
    """A GitHub-flavoured table under its title, the note below it."""
    lines = [sheet.header, ["---"] * len(sheet.header), *sheet.body]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{sheet.title}**\n\n{table}\n" + (f"\n{sheet.note}\n" if sheet.note else "")


def to_latex(sheet: Sheet) -> str:
    """A booktabs table under its title."""
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
    """The flat rows as CSV; what was not run is empty."""
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
