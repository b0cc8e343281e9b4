"""docs/results.md: the results as one page, from the ledger and the benchmarks.

`python -m ibforecast_lab.experiments.page` writes it; the same records give the same text. The text is in results.md
next to this file. It has places for numbers, `{{NAME FORM}}`, for words that depend on records, `{{words NAME}}`, and
for tables, `{{table NAME}}`.
"""

import argparse
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import get_args

from ibforecast.core.files import write_atomically
from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.frame import Lead, Row, lead, select
from ibforecast_lab.experiments.ledger import HOLDER, LEDGER, Cell, Ledger, Record
from ibforecast_lab.experiments.parts import FRAMED
from ibforecast_lab.experiments.plans import (
    CHOOSING,
    EXPLAINED,
    FORMER,
    MAIN,
    OF_THE_PAPER,
    ONE_MASK,
    OPEN,
    PLANS,
    SMALL_BUDGETS,
)
from ibforecast_lab.experiments.quoted import (
    BENCH,
    CELLS,
    COMPARED_IN_SUITE,
    RIVALS,
    Sheets,
    Values,
    best_explainers,
    best_rival,
    quoted,
    row_of_ours,
)
from ibforecast_lab.experiments.sheet import NATIVE, NONE, PAPER, markdown_table, words
from ibforecast_lab.experiments.tables import sheets_of
from ibforecast_lab.experiments.tables.errors import COMPARED, OVERALL, better_source
from ibforecast_lab.experiments.tables.suite import AVERAGED
from ibforecast_lab.experiments.variants import split_name

PAGE = Path("docs/results.md")
NAMES = {
    "default": "**ibforecast**, budget 0.2 (`default`)",
    "additive": "ibforecast, budget 0.2, additive readout (`additive`)",
    "steady": "ibforecast, budget 0.2 (`steady`, the former default)",
    OPEN: f"the same readout, everything read (`{OPEN}`)",
    "dense": "gates open, an earlier recipe (`dense`)",
    "static-fixed": "one learned mask for all windows (`static-fixed`)",
    "static-newest": "the two newest patches, always (`static-newest`)",
    "paper": "the paper's recipe, run again (`paper`)",
    "tqnet": "TQNet",
    "cyclenet-linear": "CycleNet/Linear",
    "cyclenet-mlp": "CycleNet/MLP",
    "patchdecomp": "PatchDecomp",
    "patchtst": "PatchTST",
    "itransformer": "iTransformer",
    "dlinear": "DLinear",
    "timesnet": "TimesNet",
    "olinear": "OLinear",
    "timeemb": "TimeEmb",
    "timexer": "TimeXer",
    "tft": "TFT",
    "protots": "ProtoTS",
    "ibforecast": "IB-Forecast, as published",
}
"""Models as the page names them, in its order."""

SOURCES = {"ledger": "our run", "published": "published"}
NEWEST = ("olinear", "timeemb", "timexer")
"""Rivals that were run in a few cells only."""

EXPLAINERS = (NATIVE, "occlusion", "integrated_gradients")
EXCERPTS = {
    "certificate": (
        *("data", "model", "windows", "bits changed on replay", "bits changed on scramble"),
        *("end to end, of the squared shift", "end to end, root of it", "by gates only, of the squared shift"),
        *("masks changed", "windows scrambled, nothing held", "windows changed by it"),
    ),
    "choice": (
        *("data", "horizon", "unusual"),
        *("own against another window's", "own against the usual mask", "own against a fixed mask"),
    ),
    "cost": (
        *("data", "model", "explainer", "forward passes", "backward passes"),
        *("time on the GPU, in forecasts", "time on the CPU, in forecasts"),
    ),
    "coverage": (
        *("data", "level", "coverage", "worst channel", "width"),
        *("coverage, adaptive", "worst channel, adaptive", "width, adaptive"),
    ),
    "fidelity": ("data", "model", "explainer", "score", "native is", "score by window", "native is, by window"),
    "support_recovery": (
        *("mode", "model", "explainer", "AUROC", "AUP", "AUR"),
        *("published auroc", "published aup", "published aur"),
    ),
}
"""The columns of tables that the page shows in part."""

AIMS = (
    ("MSE at a fifth at most 0.333", f"accuracy/{OVERALL}/{DEFAULT}/mse", 0.333, ".4f"),
    ("MAE at a fifth at most 0.355", f"accuracy/{OVERALL}/{DEFAULT}/mae", 0.355, ".4f"),
    (f"MSE of every data set at most 1 % above `{FORMER}`", "results/over_former/most/mse", 0.01, "%+"),
    (f"MAE of every data set at most 1 % above `{FORMER}`", "results/over_former/most/mae", 0.01, "%+"),
    ("standard deviation of this MSE over seeds at most 0.001", f"accuracy/{OVERALL}/{DEFAULT}/mse_std", 0.001, ".4f"),
)
"""The aims of the change of the default: the words, the name of the number, its limit and its form."""

Line = dict[str, str]
"""A line of a table: its cells by the names of their columns."""


def _rounded_up(value: float) -> float:
    """Return the value rounded up to one digit, for bounds."""
    return math.ceil(round(10 * value, 6)) / 10


FORMS: dict[str, Callable[[float], str]] = {
    ".2f": "{:.2f}".format,
    ".3f": "{:.3f}".format,
    ".4f": "{:.4f}".format,
    ".0f": "{:.0f}".format,
    "n": "{:,.0f}".format,
    ".1f": "{:,.1f}".format,
    "%0": lambda value: f"{100 * value:.0f} %".replace("-", "−"),
    "%1": lambda value: f"{100 * value:.1f} %",
    "%+": lambda value: f"{round(100 * value, 1) or 0.0:+.1f} %".replace("-", "−"),  # no negative zero
    "up": lambda value: f"{_rounded_up(value):.1f}",
    "points_up": lambda value: f"{_rounded_up(100 * value):.1f}",
    "none": lambda value: "none" if value == 0 else f"{value:,.0f}",
}
"""How a number is written."""


def page(sheets: Sheets, values: Values, records: list[Record]) -> str:
    """Return the page as Markdown."""
    best = best_explainers(sheets)
    shown = {*EXPLAINERS, *(row["explainer"] for row in best)}
    tables = {
        "overall": _overall(sheets),
        "cells": _cells(sheets),
        "data_sets": _data_sets(sheets),
        "former": _former(values),
        "aims": _aims(values),
        "shares": _shares(values),
        "budgets": _budgets(sheets),
        "newest_rivals": _newest_rivals(sheets),
        "choice": _excerpt(sheets, "choice"),
        "maps": _excerpt(sheets, "fidelity", horizon=["96"], model=[ONE_MASK, CHOOSING, OF_THE_PAPER], explainer=shown),
        "certificate": _excerpt(sheets, "certificate", horizon=["96"], model=[ONE_MASK, CHOOSING]),
        "cost": _excerpt(sheets, "cost", model=[ONE_MASK, CHOOSING], explainer=[*EXPLAINERS, "saliency", "dynamask"]),
        "coverage": _excerpt(sheets, "coverage", horizon=["96"], model=[DEFAULT]),
        "planted": _excerpt(sheets, "support_recovery", explainer=EXPLAINERS),
        "suite": _whole(sheets, "tables"),
        "pairs": _pairs(values),
        "origins": _origins(),
        "speed": _speed(values),
        "not_run": _not_run(records),
    }
    phrases = _phrases(sheets, best) | _lost_in_suite(values)

    def filled(place: re.Match[str]) -> str:
        name, form = place[1], place[2]
        if name == "words":
            return phrases[form]
        if name == "table":
            return markdown_table(list(tables[form][0]), [list(line.values()) for line in tables[form]])
        return FORMS[form](values[name])

    text = files("ibforecast_lab.experiments").joinpath("results.md").read_text("utf8")
    return re.sub(r"\{\{(\S+) (\S+)\}\}", filled, text)


# --- Words ---


def _phrases(sheets: Sheets, best: list[Row]) -> dict[str, str]:
    rows = select(sheets["accuracy"].rows, source="ledger", other_budget=None)
    overall = {row["model"]: row for row in select(rows, data=OVERALL)}
    linear = {data: _shown(sheets, "cyclenet-linear", data)["default_is"] for data in MAIN}
    former = {
        metric: {row["data"]: row[field] for row in select(rows, model=FORMER)} for field, metric in COMPARED.items()
    }
    return {
        "open_mse": words(overall[OPEN]["default_is"]),
        "open_mae": words(overall[OPEN]["default_is_by_mae"]),
        **{f"former_{metric}": words(leads.pop(OVERALL)) for metric, leads in former.items()},
        **{f"former_{metric}_by_data": _by_lead(leads) for metric, leads in former.items()},
        **{f"worst_{metric}": _worst(sheets, metric) for metric in former},
        "linear": _by_lead(linear),
        "explainers": _listed(dict.fromkeys(row["explainer"].replace("_", " ") for row in best)),
        "false_alarms": _listed(_false_alarms(sheets)),
    }


def _listed(names: Iterable[str]) -> str:
    *most, last = [*names] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def _by_lead(leads: Mapping[str, str | None]) -> str:
    """Say where something is ahead, level and behind."""
    places = {word: [data for data, here in leads.items() if here == word] for word in get_args(Lead)}
    return ", ".join(f"{word} on {_listed(data)}" for word, data in places.items() if data)


def _worst(sheets: Sheets, metric: str) -> str:
    """Name the cell in which the default loses most against the former default, and by how much."""
    over = {
        cell: row_of_ours(sheets, *cell, DEFAULT)[metric] / row_of_ours(sheets, *cell, FORMER)[metric] - 1
        for cell in CELLS
    }
    data, horizon = max(over, key=lambda cell: over[cell])
    return f"{FORMS['%+'](over[data, horizon])} ({data}, horizon {horizon})"


def _lost_in_suite(values: Values) -> dict[str, str]:
    """Name for each pair of models the tables of the suite on which the second has the lower MSE, with the horizon."""
    return {
        f"lower_{other}": _listed(
            f"`{data}` ({horizon})"
            for data, horizon in AVERAGED
            if values.get(f"results/tables/{ours}/{other}/{data}/{horizon}/mse_ratio", 0.0) > 1
        )
        for ours, other in COMPARED_IN_SUITE
    }


def _false_alarms(sheets: Sheets) -> Iterator[str]:
    """Yield the generators on which another map has a higher AUP than the recipe made for them."""
    for mode in FRAMED.values():
        rows = select(sheets["support_recovery"].rows, mode=mode, source="ledger")
        (ours,) = select(rows, model="framed", explainer=NATIVE)
        if any(lead(ours, other, "aup", larger_is_better=True) == "behind" for other in rows):
            yield f"`{mode}`"


# --- Tables ---


def _form(value: int | float | None, form: str) -> str:
    return NONE if value is None else FORMS[form](value)


def _with_spread(row: Row, field: str, form: str = ".3f") -> str:
    spread = row.get(f"{field}_std")
    return _form(row.get(field), ".3f") + (f" ± {FORMS[form](spread)}" if spread is not None else "")


def _excerpt(sheets: Sheets, label: str, **where: Collection[str]) -> list[Line]:
    """Return some columns of a table, of the lines that have one of these texts in each named column."""
    return [
        {name: line[name].replace("%", " %") for name in EXCERPTS[label]}
        for line in _whole(sheets, label)
        if all(line[name] in texts for name, texts in where.items())
    ]


def _whole(sheets: Sheets, label: str) -> list[Line]:
    """Return a table with all its lines and columns."""
    return [dict(zip(sheets[label].header, cells, strict=True)) for cells in sheets[label].body]


def _pairs(values: Values) -> list[Line]:
    """Return how the errors of pairs of models compare over the tables of the suite."""
    lines = []
    for ours, other in COMPARED_IN_SUITE:
        pair = {
            name: values[f"results/tables/{ours}/{other}/{name}"]
            for name in ("mse_ratio", "mae_ratio", "lower_mse", "lower_mae", "lines")
        }
        lines.append(
            {"model": f"`{ours}`", "divided by": f"`{other}`"}
            | {metric.upper(): FORMS[".3f"](pair[f"{metric}_ratio"]) for metric in COMPARED.values()}
            | {
                f"lower {metric.upper()} on": f"{pair[f'lower_{metric}']:.0f} of {pair['lines']:.0f}"
                for metric in COMPARED.values()
            }
        )
    return lines


def _origins() -> list[Line]:
    """Return what the tables of the suite are, where they come from, and their licences."""
    return [
        {
            "table": table.name,
            "content": table.content,
            "rows × columns": f"{table.rows:,} × {table.columns}",
            "step": table.frequency,
            "cycle": str(table.cycle),
            "origin": table.origin,
            "licence": table.licence,
        }
        for table in SUITE.values()
    ]


def _overall(sheets: Sheets) -> list[Line]:
    rows, lines = select(sheets["accuracy"].rows, data=OVERALL), []
    for model, title in NAMES.items():
        here = select(rows, model=model, other_budget=None)
        ours, printed = ({} | next(iter(select(here, source=source)), {}) for source in SOURCES)
        if here:
            lines.append(
                {"model": title, "read": _form(ours.get("open_rate"), "%1"), "seeds": _form(ours.get("seeds"), "n")}
                | {metric.upper(): _with_spread(ours, metric, ".4f") for metric in COMPARED.values()}
                | {f"published {metric.upper()}": _form(printed.get(metric), ".3f") for metric in COMPARED.values()}
            )
    return lines


def _cells(sheets: Sheets) -> list[Line]:
    lines = []
    for data, horizon in CELLS:
        ours, line = row_of_ours(sheets, data, horizon, DEFAULT), {"data": data, "horizon": str(horizon)}
        for field, metric in COMPARED.items():
            rival = best_rival(sheets, data, horizon, metric)
            source = "" if rival["model"] == PAPER else f", {SOURCES[rival['source']]}"
            line |= {
                metric.upper(): _with_spread(ours, metric),
                f"best rival by {metric.upper()}": f"{rival[metric]:.3f} ({NAMES[rival['model']]}{source})",
                f"by {metric.upper()}": words(rival[field]),
            }
        lines.append(line)
    return lines


def _shown(sheets: Sheets, model: str, data: str) -> Row:
    """Return the mean errors of a model on a data set: of a rival the better of our runs and print, by MSE."""
    (row,) = better_source(select(sheets["accuracy"].rows, model=model, data=data, other_budget=None))
    return row


def _data_sets(sheets: Sheets) -> list[Line]:
    models = (
        DEFAULT,
        OPEN,
        FORMER,
        "dense",
        "static-fixed",
        "static-newest",
        "paper",
        "cyclenet-linear",
        "tqnet",
        PAPER,
    )
    return [
        {"model": NAMES[model]}
        | {
            data: f"{row['mse']:.3f} / {row['mae']:.3f}"
            + (f" ({SOURCES[row['source']]})" if model in RIVALS and model != PAPER else "")
            for data in MAIN
            for row in [_shown(sheets, model, data)]
        }
        for model in models
    ]


def _former(values: Values) -> list[Line]:
    """Return the errors of the default, each with its change from the former default."""
    return [
        {"data": data}
        | {
            metric.upper(): f"{error:.3f} ({FORMS['%+'](error / former - 1)})"
            for metric in COMPARED.values()
            for error, former in [tuple(values[f"accuracy/{data}/{name}/{metric}"] for name in (DEFAULT, FORMER))]
        }
        for data in (*MAIN, OVERALL)
    ]


def _aims(values: Values) -> list[Line]:
    """Return the aims that were set for the change of the default, what was measured, and which were met."""
    return [
        {"aim": aim, "measured": FORMS[form](values[name]), "": "met" if values[name] <= limit else "**missed**"}
        for aim, name, limit, form in AIMS
    ]


def _shares(values: Values) -> list[Line]:
    columns = {data: data for data in MAIN} | {"ETTm": "ETTm1 and ETTm2"}
    return [
        {"lead of": f"`{model}`", "over TQNet": title}
        | {"MSE": FORMS[".4f"](values[f"results/lead_over_tqnet/{model}/{source}/mse"])}
        | {
            name: _form(values[f"results/lead_over_tqnet/{model}/{source}/{data}/share"], "%0")
            for data, name in columns.items()
        }
        for model in (DEFAULT, FORMER)
        for source, title in (("own", "our runs"), ("better", "the better"))
    ]


def _budgets(sheets: Sheets) -> list[Line]:
    """Return the mean errors of the default at two budgets, beside those of reading everything."""
    lines = []
    for data in (*MAIN, OVERALL):
        rows = select(sheets["accuracy"].rows, data=data, source="ledger")
        (everything,) = select(rows, model=OPEN)
        line = {"data": data, "everything": _both(everything)}
        for budget in (None, max(SMALL_BUDGETS)):
            for row in select(rows, model=DEFAULT, other_budget=budget):
                change = FORMS["%+"](row["mse"] / everything["mse"] - 1)
                line["a fifth" if budget is None else "a tenth"] = f"{_both(row)} ({change})"
        lines.append(line)
    return lines


def _both(row: Row) -> str:
    return f"{row['mse']:.3f} / {row['mae']:.3f}"


def _newest_rivals(sheets: Sheets) -> list[Line]:
    """Return the errors of the newest rivals where they were run, and of the default there."""
    lines = []
    for data, horizon in CELLS:
        rows = select(sheets["per_horizon"].rows, data=data, horizon=horizon, source="ledger", other_budget=None)
        run = {model: row for model in NEWEST for row in select(rows, model=model)}
        if run:
            ours = {NAMES[DEFAULT]: row_of_ours(sheets, data, horizon, DEFAULT)}
            theirs = {NAMES[model]: run.get(model) for model in NEWEST}
            cells = {name: f"{_both(row)} ({row['seeds']})" if row else NONE for name, row in (ours | theirs).items()}
            lines.append({"data": data, "horizon": str(horizon)} | cells)
    return lines


def _not_run(records: list[Record]) -> list[Line]:
    """Return for each label the number of cells of its plan, and of those that have no record."""
    run = {record.cell for record in records}
    bare = {replace(cell, study="") for cell in run}

    def has_run(cell: Cell) -> bool:
        holder = replace(cell, study=HOLDER.get(cell.study, cell.study))
        return cell in run or holder in run or (not cell.study and cell in bare)

    lines = []
    for label, plan in PLANS.items():
        cells = plan.cells()
        missing = [cell for cell in cells if not has_run(cell)]
        if missing:
            models = _listed(f"`{model}`" for model in dict.fromkeys(split_name(cell.recipe)[0] for cell in missing))
            lines.append({"label": label, "cells": f"{len(cells)}", "not run": f"{len(missing)}", "of": models})
    return lines


def _speed(values: Values) -> list[Line]:
    return [
        {"shape of": data}
        | {
            f"`{recipe}`, {batches}": FORMS[".2f"](values[f"bench:cpu/explanation/{data}_{batch}_{recipe}_over_open"])
            for recipe in (ONE_MASK, CHOOSING)
            for batch, batches in ((1, "one window"), (64, "64 windows"))
        }
        for data in EXPLAINED
    ]


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="The page of results, from the ledger and the benchmarks.")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--out", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    records = Ledger(chosen.ledger).records()
    sheets = sheets_of(records)
    write_atomically(chosen.out, page(sheets, quoted(sheets, records, chosen.bench), records).encode())


if __name__ == "__main__":
    main()
