"""How well every explainer finds what was planted, beside the published numbers. Paper: Table "gtmetrics"."""

from collections.abc import Iterable
from typing import Any

from ibforecast_lab.experiments.ledger import Record
from ibforecast_lab.experiments.parts import FRAMED
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.sheet import Sheet
from ibforecast_lab.experiments.tables.measured import (
    NATIVE,
    NONE,
    NOT_RUN,
    PAPER,
    Group,
    as_printed,
    groups,
    in_print,
    in_words,
    mean_of,
    spread_of,
)

METRICS = ("auroc", "aup", "aur")
OF_THE_PAPER = "framed"
"""Our recipe that stands where the paper's own model stands on this benchmark."""

SELF_EXPLAINED = (PAPER, "patchdecomp", "tft")
SETTING = {"timing": "timing_defaults"}
"""TIMING was run at its release's settings in the paper, and has them by this name here."""

HEADER = [
    *("mode", "model", "MSE", "read", "explainer", "seeds"),
    *(metric.upper() for metric in METRICS),
    *(f"published {metric}" for metric in METRICS),
]
TITLE = "Planted support recovered, mean and standard deviation over seeds"
NOTE = (
    "Higher is better; the cells of all windows are pooled. Explainers that ask for a budget are told the true "
    "share. Bold: the best of our runs in that mode. `framed` stands where the paper's model does and has settings of "
    "its own, chosen by what its gates recover of validation windows: an advantage that no other model here was "
    "given."
)

Row = dict[str, Any]


def sheet(records: list[Record]) -> Sheet:
    """Every model of the plan on every mode; what was not run says so."""
    ours = [row for group in groups(records, "recovery") if group.data in FRAMED for row in _rows(group)]
    body: list[list[str]] = []
    for mode in FRAMED.values():
        here = [row for row in ours if row["mode"] == mode]
        best = {metric: _largest(row[metric] for row in here) for metric in METRICS}
        for model in dict.fromkeys((*PLANS["support_recovery"].models, *(row["model"] for row in here))):
            lines = [_shown(row, best) for row in here if row["model"] == model]
            body += lines or _not_run(mode, model)
    return Sheet(TITLE, [*ours, *_published_rows()], HEADER, body, NOTE)


def _rows(group: Group) -> list[Row]:
    found = []
    for explainer, rows in group.by_explainer("recovery").items():
        by_seed = {name: [row[name] for row in rows] for metric in METRICS for name in (metric, f"{metric}_by_window")}
        found.append(
            {"mode": FRAMED[group.data], "model": group.model, "mse": group.mse, "open_rate": group.open_rate}
            | {"explainer": explainer, "seeds": group.seeds}
            | {metric: mean_of(by_seed[metric]) for metric in METRICS}
            | {f"{metric}_std": spread_of(by_seed[metric]) for metric in METRICS}
            | {f"{metric}_by_window": mean_of(by_seed[f"{metric}_by_window"]) for metric in METRICS}
            | {"source": "ledger"}
        )
    return found


def _published_rows() -> list[Row]:
    found = []
    for (mode, _, name), printed in in_print("support_recovery").items():
        native = name in SELF_EXPLAINED
        found.append(
            {"mode": mode, "model": name if native else PAPER, "mse": None, "open_rate": None}
            | {"explainer": NATIVE if native else name, "seeds": 0}
            | {metric: printed[metric].value for metric in METRICS}
            | {f"{metric}_std": printed[metric].spread for metric in METRICS}
            | {f"{metric}_by_window": None for metric in METRICS}
            | {"source": "published"}
        )
    return found


def _shown(row: Row, best: dict[str, float | None]) -> list[str]:
    own = []
    for metric in METRICS:
        told = in_words(row[metric], row[f"{metric}_std"])
        own.append(f"**{told}**" if row[metric] is not None and row[metric] == best[metric] else told)
    beside = _beside(row["mode"], row["model"], row["explainer"])
    model = (row["model"], in_words(row["mse"]), f"{row['open_rate']:.1%}")
    return [row["mode"], *model, row["explainer"], str(row["seeds"]), *own, *beside]


def _not_run(mode: str, model: str) -> list[list[str]]:
    """Lines for a model that was not run: the explainers the paper prints for it, or its own."""
    names = [SETTING.get(name, name) for place, _, name in in_print("support_recovery") if place == mode]
    explainers = (
        [NATIVE, *(name for name in names if name not in SELF_EXPLAINED)] if model == OF_THE_PAPER else [NATIVE]
    )
    return [
        [mode, model, NONE, NONE, explainer, NONE, NOT_RUN, NONE, NONE, *_beside(mode, model, explainer)]
        for explainer in explainers
    ]


def _beside(mode: str, model: str, explainer: str) -> list[str]:
    if explainer == NATIVE:
        name = PAPER if model == OF_THE_PAPER else model
    else:
        in_the_paper = {ours: theirs for theirs, ours in SETTING.items()}
        name = in_the_paper.get(explainer, explainer) if model == OF_THE_PAPER else ""
    printed = next(
        (told for (place, _, who), told in in_print("support_recovery").items() if (place, who) == (mode, name)), {}
    )
    return [as_printed(printed.get(metric)) for metric in METRICS]


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
