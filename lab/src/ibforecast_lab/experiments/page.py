"""docs/results.md: the results as one page, from the ledger and the benchmarks.

`python -m ibforecast_lab.experiments.page` writes it; the same records give the same text. The text is in results.md
next to this file. It has places for numbers, `{{NAME FORM}}`, for words that depend on records, `{{words NAME}}`, and
for tables, `{{table NAME}}`.
"""

import argparse
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import get_args

from ibforecast.core.files import write_atomically
from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.data.fev import TASKS
from ibforecast_lab.data.suite import SUITE
from ibforecast_lab.experiments.aims import AIMS, MISSED, NOT_RUN, TOPICS, Aim
from ibforecast_lab.experiments.frame import Lead, Row, lead, select
from ibforecast_lab.experiments.ledger import HOLDER, LEDGER, Cell, Ledger, Record
from ibforecast_lab.experiments.parts import FRAMED
from ibforecast_lab.experiments.plans import (
    CAPACITY,
    CHOOSING,
    EXPLAINED,
    FORMER,
    LENGTHENED,
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
    LOOK_BACKS,
    NEWEST,
    RIVALS,
    TRIALS,
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
    "ridge": "ridge regression (`ridge`)",
    "lightgbm": "LightGBM (`lightgbm`)",
    "seasonal-naive": "repeat the last cycle (`seasonal-naive`)",
    "ibforecast": "IB-Forecast, as published",
}
"""Models as the page names them, in its order."""

SOURCES = {"ledger": "our run", "published": "published"}
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
    "s": lambda value: f"{value:.0f} s" if value >= 100 else f"{value:.1f} s",
    "×": "{:.1f} times".format,
    ".2×": "{:.2f} times".format,
    ".2s": "{:.2f} s".format,
    "ms": "{:.0f} ms".format,
    "yes": lambda value: "yes" if value else "no",
}
"""How a number is written."""


TRIED = {
    "`sealed`, which `default` trains first": ("h200-14", "h200-15", "h200-16", "cpu-steps"),
    "`choosing` and the contest": ("h200-17",),
    "`additive` and its place in the contest": ("h200-18", "cpu-readouts", "cpu-margin"),
    "a longer cycle": ("cpu-weeks", "cpu-few-weeks"),
    "`steady`, the former default, and recipes before it": (
        *("h200-1", "h200-2", "h200-3", "h200-4", "h200-6", "h200-9", "h200-10", "h200-12", "h200-13"),
        *("cpu-absence", "cpu-demo", "cpu-nested", "cpu-quick", "cpu-small"),
    ),
    "`framed`, for planted truth": ("h200-7", "h200-11", "h200-19", "cpu-framed-open"),
    "the paper's recipes": ("h200-5", "cpu-uncapped"),
    "ProtoTS": ("h200-8",),
    "TimesNet": ("h200-8",),
    "DLinear": ("cpu-dlinear",),
}
"""The files of trials by what was chosen with them. Those of a rival count only runs of the rival."""

TESTED = re.compile(r'"(?:test\w*|tmse|tmae)"')
"""A key of a trial that was measured on test windows, too."""


def page(sheets: Sheets, values: Values, records: list[Record], bench: Path = BENCH, trials: Path = TRIALS) -> str:
    """Return the page as Markdown."""
    best = best_explainers(sheets)
    shown = {*EXPLAINERS, *(row["explainer"] for row in best)}
    tables = {
        "overall": _overall(sheets),
        "cells": _cells(sheets),
        "data_sets": _data_sets(sheets),
        "former": _former(values),
        "outcomes": _outcomes(values),
        "attacks": _attacks(bench / "torture.json"),
        "trials": _trials(trials),
        "fev": _fev(sheets),
        "look_backs": _look_backs(sheets),
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
    phrases = _phrases(sheets, best) | _lost_in_suite(values) | _commits(bench) | {"aims": _aims(values)}
    *_, outcomes = _outcomes(values)
    phrases |= {
        "outcomes": f"{len(AIMS)} aims: " + _listed(f"{count} {word}" for word, count in [*outcomes.items()][1:])
    }
    phrases |= {"unrecorded": _unrecorded(values, records, bench)}

    def filled(place: re.Match[str]) -> str:
        name, form = place[1], place[2]
        if name == "words":
            return phrases[form]
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
    """Return the mean errors of a model on a data set; for a rival, ours or those in print: the lower ones by MSE."""
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


def _aims(values: Values) -> str:
    """Return a heading and a table for each topic of the aims."""
    sections = []
    for topic, aims in TOPICS.items():
        lines = [_aim(aim, values) for aim in aims]
        sections.append(f"### {topic}\n\n{markdown_table(list(lines[0]), [list(line.values()) for line in lines])}")
    return "\n\n".join(sections)


def _aim(aim: Aim, values: Values) -> Line:
    """Return an aim, what was measured, and whether it was met; without a number, why there is none."""
    measured, verdict = _form(values.get(aim.name), aim.form), aim.verdict(values)
    if verdict == NOT_RUN:
        verdict += f": {aim.reason}"
    elif not aim.is_whole(values):
        measured += f" ({values.get(aim.parts, 0.0):,.0f} of {aim.planned:,})"
    elif aim.parts and aim.counts_faults and not aim.parts.endswith("seconds"):
        measured += f" of {values[aim.parts]:,.0f}"
    return {"aim": aim.words, "measured": measured, "": verdict}


def _outcomes(values: Values) -> list[Line]:
    """Count the aims of each topic by outcome; what is met or missed so far counts as met or missed."""
    lines = []
    for topic, aims in (*TOPICS.items(), ("all", AIMS)):
        verdicts = [aim.verdict(values) for aim in aims]
        missed, not_run, open_so_far = (
            sum(verdict.startswith(word) for verdict in verdicts)
            for word in (MISSED.removesuffix("**"), NOT_RUN, "not shown")
        )
        met = len(verdicts) - missed - not_run - open_so_far
        counts = {"met": met, "missed": missed, "not shown yet": open_so_far, "not run": not_run}
        anchor = re.sub(r"[^a-z0-9 -]", "", topic.lower()).replace(" ", "-")
        title = topic if topic == "all" else f"[{topic}](#{anchor})"
        lines.append({"topic": title} | {name: f"{count}" for name, count in counts.items()})
    return lines


def _fev(sheets: Sheets) -> list[Line]:
    """Return the MASE in each task: ours at every look-back, then those in print."""
    rows = sheets["fev"].rows
    ours = [(DEFAULT, look_back) for look_back in LOOK_BACKS if look_back in _look_backs_of(DEFAULT)]
    run = [(row["model"], row["look_back"]) for row in select(rows, source="ledger")]
    printed = [(row["model"], None) for row in select(rows, source="published")]
    run.sort(key=lambda place: (place[0] != DEFAULT, place))
    return [
        {"model": f"`{model}`" if look_back else model, "look-back": _form(look_back, "n")}
        | {
            task: next(
                (
                    FORMS[".3f"](row["MASE"])
                    for row in select(rows, task=task, model=model, look_back=look_back)
                    if row["MASE"] is not None
                ),
                NOT_RUN,
            )
            for task in TASKS
        }
        for model, look_back in dict.fromkeys((*ours, *run, *printed))
    ]


def _look_backs_of(model: str) -> set[int]:
    return {plan.look_back for plan in PLANS["fev"].also if model in plan.models}


def _look_backs(sheets: Sheets) -> list[Line]:
    """Return the MSE at every look-back, with the change from that of the protocol."""
    lines = []
    for data in LENGTHENED:
        rows = {row["look_back"]: row for row in select(sheets["look_back"].rows, data=data)}
        cells = {str(look_back): NOT_RUN for look_back in LOOK_BACKS}
        for look_back, row in rows.items():
            change = row["mse_change"]
            cells[str(look_back)] = FORMS[".3f"](row["mse"]) + (f" ({FORMS['%+'](change)})" if change else "")
        taken = min(rows.values(), key=lambda row: float(row["validation_mse"]), default=None)
        seeds = {row["seeds"] for row in rows.values()}
        of = f"{min(seeds)}" if seeds else NONE
        lines.append({"data": data} | cells | {"smallest validation error": str(taken["look_back"]) if taken else NONE})
        lines[-1]["seeds"] = of
    return lines


def _trials(folder: Path) -> list[Line]:
    """Return how many trials there were, by what was chosen with them."""
    lines = []
    for chosen, names in TRIED.items():
        texts = [text for name in names for text in (folder / f"{name}.jsonl").read_text("utf8").splitlines()]
        if chosen in ("ProtoTS", "TimesNet"):
            texts = [text for text in texts if chosen.lower() in text]
        tested = sum(bool(TESTED.search(text)) for text in texts)
        lines.append({"what was chosen": chosen, "trials": f"{len(texts):,}", "with test errors": f"{tested:,}"})
    return lines


def _commits(bench: Path) -> dict[str, str]:
    """Name the commit of each benchmark, and the file."""
    return {
        f"of_{path.stem}": f"[{path.name}](../results/bench/{path.name}), commit `{record['commit'][:7]}`"
        for path in sorted(bench.glob("*.json"))
        for record in [json.loads(path.read_text("utf8"))]
        if "commit" in record
    }


def _attacks(path: Path) -> list[Line]:
    """Return what the attacks on the library did, by part; a part without a record says so."""
    parts = json.loads(path.read_text("utf8"))["measures"]
    lines = []
    for name, (attack, amount, outcome) in ATTACKS.items():
        line = {"part": f"`{name}`"}
        if name not in parts:
            lines.append(
                line | {"attack": attack, "how much": "no record", "what broke": NONE, "minutes": NONE, "commit": NONE}
            )
            continue
        figures = dict(parts[name])
        broken = len(figures["broken"])
        counts = {key: list(each.values()) for key, each in figures.items() if isinstance(each, dict)}
        figures |= {f"kinds_of_{key}": len(each) for key, each in counts.items()}
        figures |= {f"tried_of_{key}": sum(map(bool, each)) for key, each in counts.items()}
        outcome_of = "nothing" if not broken else f"**broken: {broken:,}**"
        line |= {"attack": attack, "how much": amount.format(**figures)}
        line |= {"what broke": outcome_of + outcome.format(**figures)}
        lines.append(line | {"minutes": f"{figures['seconds'] / 60:.0f}", "commit": f"`{figures['commit'][:7]}`"})
    return lines


ATTACKS = {
    "kills": (
        "a process is killed before a file operation, and the same command runs again",
        "{points:,} operations of {kinds_of_operations} kinds of work, and {killed_twice:,} pairs of them",
        "; the same bits {resumed_to_the_same_bits:,} times",
    ),
    "storage": (
        "the disk is full, broken, read-only or slow, the clock jumps, or two processes write to one place",
        "{points:,} faults, of {tried_of_points_by_fault} of these {kinds_of_points_by_fault} kinds",
        "; the same bits {finished_to_the_same_bits:,} times",
    ),
    "fuzz": (
        "every reader gets malformed input",
        "{inputs:,} inputs to {kinds_of_inputs_by_reader} readers",
        "",
    ),
    "scrambled": (
        "values that a sealed model does not read are replaced",
        "{windows:,} windows in {kinds} ways",
        "; {changed:,} changed",
    ),
    "numerics": (
        "models are fitted to numbers of very different sizes and shapes, drawn at random",
        "{cases:,} cases; {kinds_of_forecast} kinds were forecast and {kinds_of_refused} refused",
        "",
    ),
    "distributed": (
        "nodes, processes and the command are killed while a fleet is fitted and forecast",
        "{series:,} series",
        "",
    ),
    "service": (
        "honest and hostile clients use a service while models are replaced and processes killed",
        "{clients} and {attackers} clients; {answers:,} answers, each compared with the library's; {attacks:,} attacks "
        "and {kills} kills",
        "; {lost_to_kills:,} requests failed because their process was killed. Half of the answers took at most "
        "{p50_ms:,.0f} ms, 99 % at most {p99_ms:,.0f} ms; {health_above_1_s:,} of {health:,} answers of `/health` took "
        "longer than a second, one of them {health_largest_ms:,.0f} ms",
    ),
}
"""The parts of `make torture`: the attack, how much of it, and what to say about the outcome."""


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
    """Return the mean errors of the default at two budgets, next to those of reading everything."""
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


def _unrecorded(values: Values, records: list[Record], bench: Path) -> str:
    """Return a list of what has no record at all and no cell in a plan."""
    run = {(record.cell.data, record.cell.recipe) for record in records}
    parts = json.loads((bench / "torture.json").read_text("utf8"))["measures"]
    in_tables = {("eia_demand", model) for model in (DEFAULT, ONE_MASK, CHOOSING)}
    measured: dict[str, object] = {
        "LightGBM on the 20 cells of the benchmarks; it was fitted to the other tables only": [
            data for data in MAIN if (data, "lightgbm") in run
        ],
        f"`{DEFAULT}`, `{ONE_MASK}` and `{CHOOSING}` on `eia_demand`, one of the ten tables (cells of `tables`)": (
            in_tables <= run
        ),
        "the paper's capacity study, a gate network of twice the width or depth, on the largest stand-in (cells of "
        "`large_channels`)": {(cell.data, cell.recipe) for cell in CAPACITY.cells()} <= run,
        "growth with rows and channels on a GPU: [the only record](../results/bench/h200-channels.json) is of a recipe "
        "that is gone": "results/growth/gpu/most" in values,
        "the largest memory of a training: records of the grid have its time, and not its memory": [
            one.name for one in fields(Record) if "memory" in one.name
        ],
        "a fit next to LightGBM, NHITS, DLinear and TiDE in one run (benchmark `neighbours`)": (
            "results/neighbours" in values
        ),
        "a fleet of a model for each of 52 series (benchmark `fleet`): the record has one model for all": (
            "results/fleet/own/generated/over_best" in values
        ),
        "the service with Arrow in and lean answers (benchmark `serving`): its record is older than this part": (
            "bench:cpu-serving/serving/lean_2_over_batched" in values
        ),
        "naive forecasts next to all 400 series and ten tables (benchmark `naive`): the record is of a part": (
            "bench:cpu-naive/naive/generated_validation_worse" in values
        ),
        **{f"the part `{name}` of `make torture`": name in parts for name in ATTACKS},
    }
    return "\n".join(f"- {what}" for what, record in measured.items() if not record)


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
    text = page(sheets, quoted(sheets, records, chosen.bench), records, chosen.bench)
    write_atomically(chosen.out, text.encode())


if __name__ == "__main__":
    main()
