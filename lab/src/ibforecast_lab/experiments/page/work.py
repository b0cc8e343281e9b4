"""The aims, the trials, the attacks and what was not run, for the page of results."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path

from ibforecast.zoo.recipes import DEFAULT
from ibforecast_lab.experiments.aims import AIMS, MISSED, NOT_RUN, TOPICS, Aim
from ibforecast_lab.experiments.ledger import HOLDER, Cell, Record
from ibforecast_lab.experiments.page.forms import Line, formatted, listed
from ibforecast_lab.experiments.plans import (
    CAPACITY,
    CHOOSING,
    MAIN,
    ONE_MASK,
    PLANS,
)
from ibforecast_lab.experiments.quoted import (
    Values,
)
from ibforecast_lab.experiments.sheet import NONE, markdown_table
from ibforecast_lab.experiments.variants import split_name


def aims(values: Values) -> str:
    """Return a heading and a table for each topic of the aims."""
    sections = []
    for topic, aims in TOPICS.items():
        lines = [_aim(aim, values) for aim in aims]
        sections.append(f"### {topic}\n\n{markdown_table(list(lines[0]), [list(line.values()) for line in lines])}")
    return "\n\n".join(sections)


def _aim(aim: Aim, values: Values) -> Line:
    """Return an aim, what was measured, and whether it was met; without a number, why there is none."""
    measured, verdict = formatted(values.get(aim.name), aim.form), aim.verdict(values)
    if verdict == NOT_RUN:
        verdict += f": {aim.reason}"
    elif not aim.is_whole(values):
        measured += f" ({values.get(aim.parts, 0.0):,.0f} of {aim.planned:,})"
    elif aim.parts and aim.counts_faults and not aim.parts.endswith("seconds"):
        measured += f" of {values[aim.parts]:,.0f}"
    return {"aim": aim.words, "measured": measured, "": verdict}


def outcomes(values: Values) -> list[Line]:
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


def outcome(values: Values) -> str:
    """Return in words how many of all aims have each outcome."""
    *_, every = outcomes(values)
    return f"{len(AIMS)} aims: " + listed(f"{count} {word}" for word, count in every.items() if word != "topic")


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


def trials(folder: Path) -> list[Line]:
    """Return how many trials there were, by what was chosen with them."""
    lines = []
    for chosen, names in TRIED.items():
        texts = [text for name in names for text in (folder / f"{name}.jsonl").read_text("utf8").splitlines()]
        if chosen in ("ProtoTS", "TimesNet"):
            texts = [text for text in texts if chosen.lower() in text]
        tested = sum(bool(TESTED.search(text)) for text in texts)
        lines.append({"what was chosen": chosen, "trials": f"{len(texts):,}", "with test errors": f"{tested:,}"})
    return lines


def commits(bench: Path) -> dict[str, str]:
    """Name the commit of each benchmark, and the file."""
    return {
        f"of_{path.stem}": f"[{path.name}](../results/bench/{path.name}), commit `{record['commit'][:7]}`"
        for path in sorted(bench.glob("*.json"))
        for record in [json.loads(path.read_text("utf8"))]
        if "commit" in record
    }


def attacks(path: Path) -> list[Line]:
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


def not_run(records: list[Record]) -> list[Line]:
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
            models = listed(f"`{model}`" for model in dict.fromkeys(split_name(cell.recipe)[0] for cell in missing))
            lines.append({"label": label, "cells": f"{len(cells)}", "not run": f"{len(missing)}", "of": models})
    return lines


def unrecorded(values: Values, records: list[Record], bench: Path) -> str:
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
