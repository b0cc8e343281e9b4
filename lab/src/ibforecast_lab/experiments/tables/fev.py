"""Scores in three tasks of fev-bench, next to the published ones of foundation models and of trained models."""

from dataclasses import fields

import numpy as np

from ibforecast_lab.data.fev import TASKS
from ibforecast_lab.experiments.frame import Row, grouped, mean, over, seeds, select, spread, summarised
from ibforecast_lab.experiments.plans import PLANS
from ibforecast_lab.experiments.published import in_print
from ibforecast_lab.experiments.sheet import Column, Table, change, known, marked, number, share, words
from ibforecast_lab.measures.fev import SCORES, Losses, scores

KEYS = ("task", "model", "look_back")
FIELDS = {"seeds": seeds, "open_rate": mean("open_rate"), "seconds": mean("seconds")}
FIELDS |= {score: mean(score) for score in SCORES} | {f"{score}_std": spread(score) for score in SCORES}
REFERENCE = "Chronos-2"


def _rows(tidy: list[Row]) -> list[Row]:
    """Return a row for each task, model and look-back of which all items were run with the same seed."""
    runs = []
    measured = [row for row in select(tidy, measure="fev", own_budget=True) if not row["variant"]]
    for (task, model, look_back, seed), group in grouped(measured, (*KEYS, "seed")).items():
        items = grouped(group, ("data",)).values()
        if len(items) == len(TASKS[task]):
            run: Row = {"task": task, "model": model, "look_back": look_back, "seed": seed}
            run["open_rate"] = float(np.mean([rows[0]["open_rate"] for rows in items]))
            run["seconds"] = float(sum(rows[0]["seconds"] for rows in items))
            runs.append(run | scores([_losses(rows) for rows in items]))
    return summarised(runs, KEYS, FIELDS)


def _losses(rows: list[Row]) -> Losses:
    ordered = sorted(rows, key=lambda row: int(row["window"]))
    return Losses(**{field.name: np.array([row[field.name] for row in ordered]) for field in fields(Losses)})


def _published() -> list[Row]:
    return [
        dict.fromkeys((*KEYS, *FIELDS))
        | {"task": task, "model": model, "seeds": 0, "source": "published"}
        | {("seconds" if name == "training_seconds" else name): one.value for name, one in printed.items()}
        for (task, _, model), printed in in_print("fev").items()
    ]


def _compared(rows: list[Row]) -> list[Row]:
    """Add how far each MASE is from that of the reference."""
    references = {row["task"]: row["MASE"] for row in select(rows, model=REFERENCE)}
    return [row | {"over_reference": over(row["MASE"], references.get(row["task"]))} for row in rows]


def _lines(rows: list[Row]) -> list[Row]:
    """Return the rows of each task in the order of their MASE, ours in bold, and a line for each that was not run."""
    lines: list[Row] = []
    for task in TASKS:
        here = sorted(select(rows, task=task), key=lambda row: float(row["MASE"]))
        lines += [marked(row, model="**{}**") if row["model"] == "default" else row for row in here]
        run = {(row["model"], row["look_back"]) for row in here}
        planned = {(model, plan.look_back) for plan in PLANS["fev"].also for model in plan.models}
        lines += [{"task": task, "model": model, "look_back": look_back} for model, look_back in sorted(planned - run)]
    return lines


fev = Table(
    title="Scores in three tasks of fev-bench",
    keys=KEYS,
    columns=(
        Column("task", "task"),
        Column("model", "model"),
        Column("source", "source", lambda source: "ours" if source == "ledger" else str(source)),
        Column("look-back", "look_back", words),
        Column("read", "open_rate", share),
        Column("seeds", "seeds", lambda count: words(count or None)),
        Column("MASE", "MASE", number, "MASE_std"),
        Column(f"over {REFERENCE}", "over_reference", change),
        *(Column(score, score, number) for score in SCORES[1:]),
        Column("training seconds", "seconds", known(",.0f")),
    ),
    rows=_rows,
    lines=_lines,
    note=(
        "Each task: the last 20 windows, one horizon apart, horizons 168, 96 and 144, season 24, 96 and 144. SQL is "
        "the score by which the benchmark ranks. Ours is fitted once, to the rows before the first window; its "
        "settings were fixed before the first run; PatchTST and TFT were fitted again before each window, for up to "
        "two hours. The quantiles of ours are its forecast plus quantiles of its errors on validation windows. "
        "Foundation models read far longer look-backs; the benchmark marks Moirai-2.0 as trained on these data. "
        "Published seconds are of other machines."
    ),
    missing=("MASE",),
    published=_published,
    compared=_compared,
    look_back=None,
)
