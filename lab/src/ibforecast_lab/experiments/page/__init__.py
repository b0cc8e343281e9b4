"""docs/results.md: the results as one page, from the ledger and the benchmarks.

`python -m ibforecast_lab.experiments.page` writes it; the same records give the same text. The text is in results.md,
one folder above. It has places for numbers, `{{NAME FORM}}`, for words that depend on records, `{{words NAME}}`, and
for tables, `{{table NAME}}`.
"""

import argparse
import re
from importlib.resources import files
from pathlib import Path

from ibforecast.core.files import write_atomically
from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.experiments.aims import NOT_RUN
from ibforecast_lab.experiments.ledger import LEDGER, Ledger, Record
from ibforecast_lab.experiments.page import errors, excerpts, phrases, work
from ibforecast_lab.experiments.page.forms import FORMS, NAMES, Line
from ibforecast_lab.experiments.plans import CHOOSING, OF_THE_PAPER, ONE_MASK
from ibforecast_lab.experiments.quoted import BENCH, TRIALS, Sheets, Values, best_explainers, quoted
from ibforecast_lab.experiments.sheet import NONE, markdown_table
from ibforecast_lab.experiments.tables import sheets_of

__all__ = ["FORMS", "NAMES", "PAGE", "main", "page", "printed"]

PAGE = Path("docs/results.md")


def page(sheets: Sheets, values: Values, records: list[Record], bench: Path = BENCH, trials: Path = TRIALS) -> str:
    """Return the page as Markdown."""
    best = best_explainers(sheets)
    shown = {*excerpts.EXPLAINERS, *(row["explainer"] for row in best)}
    tables = {
        "overall": errors.overall(sheets),
        "cells": errors.cells(sheets),
        "data_sets": errors.data_sets(sheets),
        "former": errors.former(values),
        "outcomes": work.outcomes(values),
        "attacks": work.attacks(bench / "torture.json"),
        "trials": work.trials(trials),
        "fev": errors.fev(sheets),
        "look_backs": errors.look_backs(sheets),
        "shares": errors.shares(values),
        "budgets": errors.budgets(sheets),
        "newest_rivals": errors.newest_rivals(sheets),
        "choice": excerpts.excerpt(sheets, "choice"),
        "maps": excerpts.excerpt(
            sheets, "fidelity", horizon=["96"], model=[ONE_MASK, CHOOSING, OF_THE_PAPER], explainer=shown
        ),
        "certificate": excerpts.excerpt(sheets, "certificate", horizon=["96"], model=[ONE_MASK, CHOOSING]),
        "cost": excerpts.excerpt(
            sheets, "cost", model=[ONE_MASK, CHOOSING], explainer=[*excerpts.EXPLAINERS, "saliency", "dynamask"]
        ),
        "coverage": excerpts.excerpt(sheets, "coverage", horizon=["96"], model=[DEFAULT]),
        "planted": excerpts.excerpt(sheets, "support_recovery", explainer=excerpts.EXPLAINERS),
        "suite": excerpts.whole(sheets, "tables"),
        "pairs": errors.pairs(values),
        "origins": excerpts.origins(),
        "speed": excerpts.speed(values),
        "not_run": work.not_run(records),
    }
    words = (
        phrases.phrases(sheets, best)
        | phrases.lost_in_suite(values)
        | work.commits(bench)
        | {
            "aims": work.aims(values),
            "outcomes": work.outcome(values),
            "unrecorded": work.unrecorded(values, records, bench),
        }
    )

    def filled(place: re.Match[str]) -> str:
        name, form = place[1], place[2]
        if name == "words":
            return words[form]
        if name == "table":
            return printed(tables[form])
        return FORMS[form](values[name])

    text = files("ibforecast_lab.experiments").joinpath("results.md").read_text("utf8")
    return re.sub(r"\{\{(\S+) (\S+)\}\}", filled, text)


def printed(lines: list[Line]) -> str:
    """Return a table as Markdown, or one sentence if nothing of it was run."""
    columns = {name: {line[name] for line in lines} for name in lines[0]}
    to_run = [cells for cells in columns.values() if NOT_RUN in cells]
    if to_run and all(cells <= {NOT_RUN, NONE} for cells in to_run):
        return "Nothing of this was run yet ([what was not run](#what-was-not-run))."
    return markdown_table(list(columns), [list(line.values()) for line in lines])


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="The page of results, from the ledger and the benchmarks.")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    records = Ledger(chosen.ledger).records()
    sheets = sheets_of(records)
    text = page(sheets, quoted(sheets, records, chosen.bench), records, chosen.bench)
    write_atomically(chosen.out, text.encode())
